package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// together is how many operations a strike of the bulk rows meets at once.
const together = 8

// crash is a plan with one fault that ends the process under a crowd.
func crash(at ledger.Phase, do ledger.Action, n int) ledger.Plan {
	return ledger.Plan{Faults: []ledger.Fault{{At: at, Op: ledger.Any, Hold: together, Do: do, N: n}}}
}

// one is a plan with a fault at one phase of operation 3.
func one(f ledger.Fault) ledger.Plan {
	f.Op = 3
	return ledger.Plan{Faults: []ledger.Fault{f}}
}

// some is a plan with a fault at one phase of every fourth operation.
func some(f ledger.Fault) ledger.Plan {
	f.Op, f.Every, f.Times = ledger.Any, 4, -1
	return ledger.Plan{Faults: []ledger.Fault{f}}
}

// processFaults is part A: a server that is a child process, and what becomes of it.
var processFaults = []Scenario{
	{
		ID: "A01", Title: "exit before reading the calls", Bulk: true, Quick: true,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.BeforeRead, Op: 1, Do: ledger.Kill}}},
		Play: firstThenRest,
	},
	{
		ID: "A02", Title: "exit after reading, before the effect", Bulk: true, Quick: true,
		Plan: crash(ledger.AfterRead, ledger.Exit, 1),
	},
	{
		ID: "A03", Title: "exit after the effect, before the reply", Bulk: true, Quick: true,
		Plan: crash(ledger.AfterCommit, ledger.Exit, 1),
	},
	{
		ID: "A04", Title: "exit in the middle of a reply", Bulk: true, Quick: true,
		Plan: ledger.Plan{Faults: []ledger.Fault{
			{At: ledger.AfterCommit, Op: ledger.Any, Hold: together, Do: ledger.Gather},
			{At: ledger.MidReply, Op: 5, Do: ledger.Kill},
		}},
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) { p.Faults[1].N = 1 + e.Rand.IntN(80) },
	},
	{
		ID: "A05", Title: "exit right after a whole reply", Bulk: true, Quick: true,
		Plan: one(ledger.Fault{At: ledger.AfterReply, Do: ledger.Exit, N: 1}),
	},
	{
		ID: "A06", Title: "clean exit while idle", Quick: true,
		Play: func(e *Episode) {
			e.Run(e.Ops[:6])
			pid := e.ServerPid()
			e.Struck(pid, "SIGTERM, exit 0")
			inject.Signal(pid, syscall.SIGTERM)
			e.Gone(pid, time.Second)
			e.Run(e.Ops[6:])
		},
		// Nothing was under way: the next call must not notice.
		Check: allOK("a call noticed that the server had been away"),
	},
	{
		ID: "A07", Title: "crash at start, always", Slow: true, Reach: oracle.Hopeless, Deadline: 5 * time.Second,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AtStart, Times: -1, Do: ledger.Exit, N: 1}}},
		Play: func(e *Episode) {
			for begin := time.Now(); time.Since(begin) < e.Long(12*time.Second, 4*time.Second); {
				op := e.op(len(e.all), ledger.Plain)
				e.Run([]*driver.Op{op})
			}
		},
		Check: func(e *Episode, s *oracle.Score) {
			if s.Starts > 8 {
				e.Miss("more than 8 starts of a hopeless server")
			}
		},
	},
	{
		ID: "A08", Title: "crash at every third call", Slow: true, Ops: 24, AtOnce: 2, Reach: oracle.Hopeless,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterCommit, Op: ledger.Any, Every: 3, Times: -1, Do: ledger.Exit, N: 1}}},
		Check: func(e *Episode, s *oracle.Score) {
			if float64(s.Frames) > 1.2*float64(s.Ops)+1 {
				e.Miss("amplification above 1.2")
			}
		},
	},
	{
		ID: "A09", Title: "SIGSTOP while idle, then calls, then SIGCONT", Slow: true, Quick: true, Reach: oracle.Harmless,
		Play: func(e *Episode) {
			e.Run(e.Ops[:4])
			pid := e.ServerPid()
			e.Struck(0, "SIGSTOP")
			inject.Signal(pid, syscall.SIGSTOP)
			e.Sleep(500 * time.Millisecond) // nothing waits yet, so nothing need be noticed
			go e.showsAndGoesOn(pid)
			e.Run(e.Ops[4:])
		},
		Check: notKilled,
	},
	{
		ID: "A10", Title: "SIGSTOP during calls, then SIGCONT", Slow: true, Quick: true, Ops: together, Deadline: 12 * time.Second, Reach: oracle.Harmless,
		Plan: crash(ledger.AfterRead, ledger.Stop, 0),
		Play: func(e *Episode) {
			go func() {
				if e.AwaitStrike() {
					e.showsAndGoesOn(e.ServerPid())
				}
			}()
			e.Run(e.Ops)
		},
		Check: notKilled,
	},
	{
		ID: "A11", Title: "SIGSTOP, then 1 MiB of arguments (the pipe is full), then SIGCONT", Slow: true, Quick: true, Ops: 8, Deadline: 12 * time.Second, Reach: oracle.Harmless,
		Args: map[string]any{"payload": strings.Repeat("a", 1<<20)},
		Play: func(e *Episode) {
			e.Run(e.Ops[:2])
			pid := e.ServerPid()
			inject.Signal(pid, syscall.SIGSTOP)
			e.Struck(0, "SIGSTOP")
			go e.showsAndGoesOn(pid)
			e.Run(e.Ops[2:])
		},
		// What the server does not take stays with the client, as in a pipe.
		Check: both(notKilled, memoryWithin(80<<20)),
	},
	{
		ID: "A12", Title: "SIGSTOP for 3 s, then SIGCONT", Slow: true, Quick: true, Deadline: 20 * time.Second, Reach: oracle.Harmless,
		Plan: crash(ledger.AfterRead, ledger.Stop, 0),
		Play: func(e *Episode) {
			go func() {
				if e.AwaitStrike() {
					pid := e.ServerPid()
					e.Sleep(3 * time.Second)
					inject.Signal(pid, syscall.SIGCONT)
				}
			}()
			e.Run(e.Ops)
		},
		Check: notKilled,
	},
	{
		ID: "A13", Title: "a CPU-bound tool that blocks the event loop (20 s; quick 4 s)", Slow: true, Quick: true,
		Deadline: 40 * time.Second, Reach: oracle.Harmless, Ops: 6, AtOnce: 3,
		Play: func(e *Episode) {
			e.Ops[1].Args = map[string]any{"burn_ms": int(e.Long(20*time.Second, 4*time.Second).Milliseconds())}
			go func() {
				if e.Await(e.Deadline, wrote(ledger.Begin, e.Ops[1].ID)) {
					e.Struck(0, "event loop blocked")
				}
			}()
			e.Run(e.Ops)
		},
		Check: notKilled,
	},
	{
		ID: "A14", Title: "an asynchronous tool with progress, longer than the deadline (60 s; quick 6 s)", Slow: true,
		Deadline: 90 * time.Second, Reach: oracle.Harmless, Ops: 3, AtOnce: 3,
		Play: func(e *Episode) {
			for _, op := range e.Ops {
				op.Args = map[string]any{"work_ms": int(e.Long(60*time.Second, 6*time.Second).Milliseconds()), "progress_ms": 1000}
			}
			go func() {
				if e.Await(e.Deadline, wrote(ledger.Begin, e.Ops[1].ID)) {
					e.Struck(0, "long work")
				}
			}()
			e.Run(e.Ops)
		},
		Check: notKilled,
	},
	{
		ID: "A15", Title: "a tool that never answers, beyond the deadline", Slow: true, Quick: true, Deadline: 4 * time.Second,
		Plan: one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Hang}), Reach: oracle.Hopeless, Alone: true,
		Check: notKilled,
	},
	{
		ID: "A16", Title: "slow start (20 s; quick 4 s)", Slow: true, Quick: true, Deadline: 40 * time.Second, Reach: oracle.Unsent,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AtStart, Do: ledger.Sleep, N: 20_000}}},
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			if e.Quick {
				p.Faults[0].N = 4000
			}
		},
		Check: func(e *Episode, s *oracle.Score) {
			if s.Starts > 1 {
				e.Miss("started twice though only slow")
			}
		},
	},
	{
		ID: "A17", Title: "command missing", Reach: oracle.Hopeless, Quick: true,
		Command: func(e *Episode, _ []string) []string {
			e.Struck(0, "no such command")
			return []string{filepath.Join(e.Dir, "no-such-server")}
		},
		Check: func(e *Episode, s *oracle.Score) {
			if s.Verdicts[oracle.Clean] != s.Ops {
				e.Miss("not every call was refused cleanly")
			}
		},
	},
	{
		ID: "A18", Title: "killed for lack of memory (cgroup)", Needs: needMemoryCgroup,
		Plan: crash(ledger.AfterCommit, ledger.ExhaustMem, 0),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) { p.Faults[0].Text = memoryCgroup() },
	},
	{
		ID: "A19", Title: "segmentation fault", Quick: true,
		Plan: crash(ledger.AfterCommit, ledger.Segfault, 0),
		Check: func(e *Episode, s *oracle.Score) {
			if e.System.Ours && !e.Said("SIGSEGV", "segmentation") {
				e.Miss("the cause is not named to the caller")
			}
		},
	},
	{
		ID: "A20", Title: "closes stdin and lives on", Slow: true, Quick: true,
		Plan: one(ledger.Fault{At: ledger.AfterReply, Do: ledger.CloseStdin}),
		Play: fourThenRest,
	},
	{
		ID: "A21", Title: "closes stdout and lives on", Slow: true, Quick: true,
		Plan: one(ledger.Fault{At: ledger.AfterReply, Do: ledger.CloseStdout}),
	},
	{
		ID: "A22", Title: "a wrapper dies and leaves the server behind", Slow: true, Quick: true,
		Command: func(e *Episode, cmd []string) []string {
			script := ledger.Marker + "=" + e.Dir + ` sleep 600 & "$@"; exit 1`
			return append([]string{"sh", "-c", script, "wrapper"}, cmd...)
		},
		Play: func(e *Episode) {
			e.Run(e.Ops[:4])
			wrapper := inject.Parent(e.ServerPid())
			e.Struck(e.ServerPid(), "SIGKILL to the wrapper")
			inject.Signal(wrapper, syscall.SIGKILL)
			e.Run(e.Ops[4:])
		},
	},
	{
		ID: "A23", Title: "ignores the end of stdin and SIGTERM", Slow: true, Quick: true, Reach: oracle.Harmless,
		Plan: ledger.Plan{Stubborn: true},
		Play: func(e *Episode) {
			e.Struck(0, "stubborn")
			e.Run(e.Ops)
		},
	},
	{
		ID: "A24", Title: "200 children of its own", Slow: true, Quick: true, Reach: oracle.Harmless,
		Plan: one(ledger.Fault{At: ledger.AfterRead, Do: ledger.Fork, N: 200}),
	},
	{
		ID: "A25", Title: "no more file descriptors in the server", Quick: true, Reach: oracle.Hopeless,
		Plan:  one(ledger.Fault{At: ledger.AfterReply, Do: ledger.ExhaustFds}),
		Check: notKilled,
	},
	{
		ID: "A26", Title: "200 MB on stderr without a newline", Slow: true, Reach: oracle.Harmless, Ops: 200,
		Plan: one(ledger.Fault{At: ledger.AfterRead, Do: ledger.Flood, N: 200 << 20}),
		Play: func(e *Episode) {
			e.Run(e.Ops[:2])
			before := inject.RSS(e.Proc.Pid())
			e.Run(e.Ops[2:])
			if grown := inject.RSS(e.Proc.Pid()) - before; grown > 16<<20 {
				e.Miss("memory grew by more than 16 MiB")
			}
		},
	},
	{
		ID: "A27", Title: "stopped for good with a full pipe: what was read is answered in time", Timed: true, Quick: true, Ops: 3, AtOnce: 1,
		Deadline: 3 * time.Second, Reach: oracle.Hopeless,
		Args: map[string]any{"payload": strings.Repeat("a", 1<<20)},
		Play: func(e *Episode) {
			e.Run(e.Ops[:2])
			pid := e.ServerPid()
			inject.Signal(pid, syscall.SIGSTOP)
			e.Struck(pid, "SIGSTOP")
			e.Run(e.Ops[2:])
		},
		Check: func(e *Episode, s *oracle.Score) {
			if s.Latest > lateBy {
				e.Miss("answered more than %v after the deadline", lateBy)
			}
			notKilled(e, s)
		},
	},
	{
		ID: "A28", Title: "every other call ends the server, alone", Slow: true, Quick: true, Ops: 16, AtOnce: 1, Reach: oracle.Hopeless,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterCommit, Op: ledger.Any, Every: 2, Times: -1, Do: ledger.Exit, N: 1}}},
		Check: func(e *Episode, s *oracle.Score) {
			for i, op := range e.Ops {
				switch took := op.Answered - op.Invoked; {
				case i%2 == 0 && op.Outcome != driver.OK:
					e.Miss("a good call was refused because others end the server")
				case i%2 == 0 && took > time.Second:
					e.Miss("a good call waited for more than 1 s because others end the server")
				case i%2 == 1 && e.Received(op.ID) != 1:
					e.Miss("a call with arguments of its own was refused or sent twice")
				}
			}
		},
	},
	{
		ID: "A29", Title: "the same call is alone at two deaths: refused for 60 s, then tried once (quick: refused)", Slow: true, Quick: true, Ops: 8, AtOnce: 1, Reach: oracle.Hopeless,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterRead, Op: 3, Times: 2, Do: ledger.Exit, N: 1}}},
		Play: func(e *Episode) {
			again := func() *driver.Op { op := *e.Ops[3]; return &op }
			e.Run([]*driver.Op{e.Ops[0], e.Ops[3], e.Ops[1], again(), e.Ops[2]})
			// From here on by hand: the book cannot tell calls with the same name apart.
			refused := again()
			e.Clients[0].Do(e.ctx, refused)
			if n := e.Received(refused.ID); e.System.Ours && (refused.Outcome != driver.Failed || n != 2) {
				e.Miss("not refused after two deaths: %s, sent %d times", refused.Outcome, n)
			}
			e.Run(e.Ops[4:])
			for _, op := range append(e.Ops[:3:3], e.Ops[4:]...) {
				if op.Outcome != driver.OK {
					e.Miss("another call suffered")
				}
			}
			if e.Quick {
				return
			}
			e.Sleep(61 * time.Second)
			tried := again()
			e.Clients[0].Do(e.ctx, tried)
			if tried.Outcome != driver.OK {
				e.Miss("not tried again after 60 s: %s", tried.Text)
			}
		},
	},
}

// firstThenRest runs one operation alone, then all the others together.
func firstThenRest(e *Episode) {
	e.Run(e.Ops[:1])
	e.Run(e.Ops[1:])
}

// fourThenRest runs operation 3 last of four, one by one, before the others.
func fourThenRest(e *Episode) {
	for i := range 4 {
		e.Run(e.Ops[i : i+1])
	}
	e.Run(e.Ops[4:])
}

// allOK asks that every single operation came out well.
func allOK(otherwise string) func(*Episode, *oracle.Score) {
	return func(e *Episode, s *oracle.Score) {
		if s.Verdicts[oracle.Correct] != s.Ops {
			e.Miss("%s", otherwise)
		}
	}
}

// notKilled asks that the one server that was started is still the same.
func notKilled(e *Episode, s *oracle.Score) {
	if s.Starts > 1 {
		e.Miss("false kill of a living server")
	}
}

func both(a, b func(*Episode, *oracle.Score)) func(*Episode, *oracle.Score) {
	return func(e *Episode, s *oracle.Score) { a(e, s); b(e, s) }
}

// showsAndGoesOn asks that the user is told of a stopped server within two seconds of
// something waiting for it, and then lets it go on.
func (e *Episode) showsAndGoesOn(pid int) {
	begin := time.Now()
	if strings.HasPrefix(e.System.Name, "mcpmend") && !e.AwaitShown("server unresponsive", 2*time.Second+lateBy) {
		e.Miss("that the server does not answer is not shown within 2 s")
	}
	e.Sleep(time.Until(begin.Add(2500 * time.Millisecond)))
	inject.Signal(pid, syscall.SIGCONT)
}

// lateBy is how much later than promised something may come on a busy machine.
const lateBy = 250 * time.Millisecond

// The memory cgroup of version 1 that this machine may offer.
const cgroupRoot = "/sys/fs/cgroup/memory"

func needMemoryCgroup() string {
	dir := filepath.Join(cgroupRoot, fmt.Sprintf("faults-%d", os.Getpid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "no memory cgroup to be had: " + err.Error()
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte("67108864"), 0); err != nil {
		return "no memory limit can be set: " + err.Error()
	}
	return ""
}

func memoryCgroup() string { return filepath.Join(cgroupRoot, fmt.Sprintf("faults-%d", os.Getpid())) }
