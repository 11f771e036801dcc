package main

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// fleetFaults is part F: many callers.
var fleetFaults = []Scenario{
	{
		ID: "F01", Title: "500 callers of a dead server (30 s)", Timed: true, // three seconds are too few to measure a share of the processor
		Reach: oracle.Hopeless, Ops: 500, AtOnce: 500, Deadline: 15 * time.Second,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AtStart, Times: -1, Do: ledger.Exit, N: 1}}},
		Play: func(e *Episode) {
			// The first round may wait for a start that could still succeed.
			e.Run(e.Ops)
			begin, until := ledger.Now(), time.Now().Add(e.Long(30*time.Second, 3*time.Second))
			cpu := inject.CPU(e.Proc.Pid())
			took := e.hammer(500, until)
			if used := 100 * (inject.CPU(e.Proc.Pid()) - cpu) / (ledger.Now() - begin); used > 10 {
				e.Miss("uses %d %% of a processor to refuse, more than 10 %%", used)
			}
			if slow := p(took, 99); slow > 5*time.Millisecond {
				e.Miss("p99 of refusals is %v, above 5 ms", slow.Round(100*time.Microsecond))
			}
		},
		Check: func(e *Episode, s *oracle.Score) {
			if s.Starts > 8 {
				e.Miss("more than 8 starts of a hopeless server")
			}
		},
	},
	{
		ID: "F02", Title: "after an outage a herd of 500 waits for a server that dies above 20 calls at once", Slow: true, Quick: true, Ops: 500, AtOnce: 500, Deadline: 20 * time.Second, Reach: oracle.Hopeless,
		Args: map[string]any{"work_ms": 5},
		Plan: ledger.Plan{Ceiling: 20, Faults: []ledger.Fault{{At: ledger.AtStart, Later: true, Do: ledger.Sleep, N: 1500}}},
		Play: func(e *Episode) {
			// A first start is no outage: there whoever waits is let in together.
			e.Run([]*driver.Op{e.op(9000, ledger.Plain)})
			pid := e.ServerPid()
			e.Struck(pid, "SIGKILL")
			inject.Signal(pid, syscall.SIGKILL)
			e.Gone(pid, time.Second)
			if strings.HasPrefix(e.System.Name, "mcpmend") && !e.AwaitShown("server lost", time.Second) {
				e.Miss("the end of the server is not shown within 1 s")
			}
			e.Run(e.Ops)
		},
		Check: func(e *Episode, s *oracle.Score) {
			for _, l := range e.Book() {
				if l.Kind == ledger.Fired && strings.HasPrefix(l.Note, "ceiling") {
					e.Miss("the herd killed the server")
				}
			}
		},
	},
	{ID: "F03", Title: "one bad server among 20", Pending: "comes with many servers behind one gateway; the guard's own benchmark measures the isolation"},
	{
		ID: "F04", Title: "a server that flaps, 1 s up and 1 s down (20 s; quick 6 s)", Slow: true, Reach: oracle.Hopeless, Deadline: 10 * time.Second,
		Play: func(e *Episode) {
			until := time.Now().Add(e.Long(20*time.Second, 6*time.Second))
			var wg sync.WaitGroup
			wg.Go(func() {
				for time.Now().Before(until) {
					e.Sleep(time.Second)
					if pid := e.ServerPid(); inject.State(pid) != 0 {
						e.Struck(pid, "SIGKILL")
						inject.Signal(pid, syscall.SIGKILL)
					}
				}
			})
			e.hammer(4, until)
			wg.Wait()
		},
	},
	{
		ID: "F05", Title: "two clients with the same request ids", Quick: true, Clients: 2, Ops: 60, AtOnce: 30, Reach: oracle.Harmless,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterCommit, Op: ledger.Any, Times: -1, Hold: 16, Do: ledger.Shuffle}}},
		Play: func(e *Episode) {
			for _, c := range e.Clients {
				c.Use(100)
			}
			e.Run(e.Ops)
		},
	},
	crossed("F06", "a legacy server", "legacy"),
	crossed("F07", "a modern server", "modern"),
}

// crossed is a row in which two clients of each era use the same ids and progress tokens
// and are asked the same question before they are served. Each gives its own name for an answer, and
// the tool repeats it: another one's name, or another one's progress, is cross-talk.
func crossed(id, server, era string) Scenario {
	return Scenario{
		ID: id, Title: "two modern and two legacy clients with equal ids, tokens and questions; " + server, Quick: true, Slow: true,
		Relayed: true, Eras: []string{era}, Clients: 4, Reach: oracle.Harmless, Deadline: 30 * time.Second, Ops: 1,
		Speaks: func(e *Episode) string {
			if modernClient(len(e.Clients)) {
				return "modern"
			}
			return "legacy"
		},
		Play: func(e *Episode) {
			e.Struck(0, "equal ids, tokens and questions")
			calls := 20_000
			if e.Quick {
				calls = 800
			}
			for _, c := range e.Clients {
				c.Use(100)
			}
			// A legacy server does not say to which call a question belongs. Of a client
			// that cannot be asked beside its calls it is known only when there is one.
			e.together(0, calls, func(client int) int {
				if era == "legacy" && modernClient(client) {
					return 1
				}
				return 8
			})
			// And with many it must be put to nobody rather than to the wrong one.
			e.together(calls, calls/20, func(int) int { return 8 })
		},
		Check: func(e *Episode, s *oracle.Score) {
			progress := 0
			for _, op := range e.all {
				progress += op.Progress
				unasked := op.Index >= len(e.all)*20/21 && strings.Contains(op.Text, "nobody answered")
				if op.Outcome != driver.OK && !unasked {
					e.Miss("a call among many clients failed")
				}
			}
			if progress < len(e.all)/2 {
				e.Miss("only %d notes of progress came for %d calls", progress, len(e.all))
			}
		},
	}
}

func modernClient(i int) bool { return i%2 == 1 }

// together has all clients make their part of so many calls at the same time, numbered
// from first on, with atOnce calls of each client under way.
func (e *Episode) together(first, calls int, atOnce func(client int) int) {
	part := calls / len(e.Clients)
	var wg sync.WaitGroup
	for k, c := range e.Clients {
		var ops []*driver.Op
		for i := first + k*part; i < first+(k+1)*part; i++ {
			op := e.op(i, e.Tools[i%len(e.Tools)])
			op.Args = map[string]any{"ask": i%4 != 3, "work_ms": 3, "progress_ms": 1}
			ops = append(ops, op)
		}
		e.all = append(e.all, ops...)
		wg.Go(func() { driver.Run(e.ctx, []*driver.Client{c}, ops, atOnce(k)) })
	}
	wg.Wait()
}

// hammer has so many callers ask twice a second each until the time is over,
// and returns how long the answers took.
func (e *Episode) hammer(callers int, until time.Time) []time.Duration {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var ops []*driver.Op
	for i := range callers {
		wg.Go(func() {
			e.Sleep(time.Duration(i) * 500 * time.Millisecond / time.Duration(callers))
			for time.Now().Before(until) {
				mu.Lock()
				op := e.op(10_000+len(ops), e.Tools[len(ops)%len(e.Tools)])
				ops = append(ops, op)
				mu.Unlock()
				e.Clients[i%len(e.Clients)].Do(e.ctx, op)
				e.Sleep(500 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	e.all = append(e.all, ops...)
	var took []time.Duration
	for _, op := range ops {
		took = append(took, op.Answered-op.Invoked)
	}
	return took
}
