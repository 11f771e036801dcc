package main

import (
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// gatewayFaults is part H: the system itself is what suffers.
var gatewayFaults = []Scenario{
	{
		ID: "H01", Title: "kill -9 of the system with 50 calls in flight", Quick: true, Slow: true, Ops: 50, AtOnce: 50, Reach: oracle.Hopeless,
		Args: map[string]any{"work_ms": 8000},
		Play: func(e *Episode) {
			done := make(chan struct{})
			go func() { e.Run(e.Ops); close(done) }()
			e.AwaitReceived(10)
			e.Struck(e.Proc.Pid(), "SIGKILL to the system")
			e.Proc.Signal(syscall.SIGKILL)
			<-done
		},
		// Children that outlive it by two seconds count as leaked.
	},
	{
		ID: "H02", Title: "SIGTERM with calls in flight", Quick: true, Slow: true, Ops: 8, Reach: oracle.Harmless,
		Args: map[string]any{"work_ms": 700},
		Play: termInCalls,
	},
	{
		ID: "H10", Title: "SIGTERM with calls longer than the drain timeout", Quick: true, Slow: true, Ops: 8, Reach: oracle.Hopeless, Deadline: 20 * time.Second,
		Args: map[string]any{"work_ms": 15_000}, Flags: []string{"--drain-timeout", "1s"},
		Play: termInCalls, Check: answeredAtTheEnd,
	},
	{
		ID: "H11", Title: "SIGTERM with calls longer than the drain timeout, over HTTP", Quick: true, Slow: true, Ops: 8, Clients: 2, Reach: oracle.Hopeless, Deadline: 20 * time.Second,
		Args: map[string]any{"work_ms": 15_000}, Flags: []string{"--drain-timeout", "1s"},
		Play: termInCalls, Check: answeredAtTheEnd,
	},
	{
		ID: "H12", Title: "SIGTERM with calls in flight, over HTTP", Quick: true, Slow: true, Ops: 8, Clients: 2, Reach: oracle.Harmless,
		Args: map[string]any{"work_ms": 700},
		Play: termInCalls,
	},
	{
		ID: "H13", Title: "a client that reads nothing for 4 s: 10 answers of 20 MB and 300 000 notifications (quick: 14 MB, 20 000)", Quick: true, Slow: true, Ops: 11, AtOnce: 11, Reach: oracle.Harmless, Deadline: 60 * time.Second,
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Faults = []ledger.Fault{{At: ledger.AfterRead, Op: 10, Do: ledger.Notify, N: e.notifications()}}
		},
		Play: func(e *Episode) {
			size := 20 << 20
			if e.Quick {
				size = 14 << 20
			}
			for _, op := range e.Ops[:10] {
				op.Args = map[string]any{"size": size}
			}
			resume := e.Clients[0].Pause()
			e.Struck(0, "the client does not read")
			done := make(chan struct{})
			go func() { e.Run(e.Ops); close(done) }()
			e.Sleep(4 * time.Second)
			resume()
			<-done
		},
		Check: func(e *Episode, s *oracle.Score) {
			if got, want := e.Clients[0].Heard(), e.notifications(); e.System.Relays && got != want {
				e.Miss("%d of %d notifications came", got, want)
			}
		},
	},
	{ID: "H03", Title: "disk full for journal, checkpoint or configuration", Pending: "comes with the state store"},
	{ID: "H04", Title: "fsync fails", Pending: "comes with the state store"},
	{
		ID: "H05", Title: "no more file descriptors in the system", Slow: true, Reach: oracle.Hopeless, Deadline: 8 * time.Second,
		Play: func(e *Episode) {
			e.Run(e.Ops[:4])
			restore := inject.LimitFiles(e.Proc.Pid(), inject.Files(e.Proc.Pid()))
			pid := e.ServerPid()
			e.Struck(pid, "no descriptors, and SIGKILL to the server")
			inject.Signal(pid, syscall.SIGKILL)
			e.Run(e.Ops[4:8])
			restore()
			if !e.Probe(10 * time.Second) {
				e.Miss("did not recover once there were descriptors again")
			}
		},
	},
	{ID: "H06", Title: "the clock jumps by an hour", Pending: "the wall clock of this machine cannot be moved for one process; timers are tested in synctest"},
	{ID: "H07", Title: "configuration half-written or edited while running", Pending: "comes with the gateway's configuration"},
	{ID: "H08", Title: "a day of random faults", Pending: "not a row: run with --soak 24h"},
	{
		ID: "H09", Title: "a client that does not read its answers", Quick: true, Slow: true, Clients: 2, Reach: oracle.Harmless, Ops: 40,
		Play: func(e *Episode) {
			hang := e.Clients[0]
			e.Clients = e.Clients[1:]
			for i := range 8 {
				op := e.op(500+i, ledger.ReadOnly)
				op.Args = map[string]any{"size": 4 << 20}
				release, err := driver.Stall(hang, op)
				if err != nil {
					e.Miss("could not stall: %v", err)
					continue
				}
				defer release()
			}
			e.Struck(0, "eight answers of 4 MiB unread")
			e.Run(e.Ops)
		},
		Check: memoryWithin(200 << 20),
	},
}

// notifications is how many row H13 has.
func (e *Episode) notifications() int {
	if e.Quick {
		return 20_000
	}
	return 300_000
}

// termInCalls tells the system to stop while every call is at work.
func termInCalls(e *Episode) {
	done := make(chan struct{})
	go func() { e.Run(e.Ops); close(done) }()
	e.AwaitReceived(len(e.Ops))
	e.Struck(e.Proc.Pid(), "SIGTERM to the system")
	e.Proc.Signal(syscall.SIGTERM)
	<-done
}

// answeredAtTheEnd asks that a system that stops gives every open call an answer, instead
// of an end of the connection.
func answeredAtTheEnd(e *Episode, _ *oracle.Score) {
	for _, op := range e.all {
		if op.Said == nil || op.Outcome != driver.Unknown {
			e.Miss("a call got no answer when the system was told to stop")
		}
		if took := op.Answered - op.Invoked; took > 5*time.Second {
			e.Miss("answered %v after it began, not after the drain timeout", took.Round(time.Second))
		}
	}
}
