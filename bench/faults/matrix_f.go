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
		ID: "F01", Title: "500 callers of a dead server (30 s; quick 3 s)", Timed: true, Quick: true, Reach: oracle.Hopeless, Ops: 500, AtOnce: 500, Deadline: 15 * time.Second,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AtStart, Times: -1, Do: ledger.Exit, N: 1}}},
		Play: func(e *Episode) {
			// The first round may wait for a start that could still succeed.
			e.Run(e.Ops)
			begin, until := ledger.Now(), time.Now().Add(e.Long(30*time.Second, 3*time.Second))
			cpu := inject.CPU(e.Proc.Pid())
			took := e.hammer(500, until)
			if spent := inject.CPU(e.Proc.Pid()) - cpu; spent > (ledger.Now()-begin)/20 {
				e.Miss("uses more than 5 %% of a processor to refuse")
			}
			if slow := p(took, 99); slow > 5*time.Millisecond {
				e.Miss("p99 of refusals above 5 ms")
			}
		},
		Check: func(e *Episode, s *oracle.Score) {
			if s.Starts > 8 {
				e.Miss("more than 8 starts of a hopeless server")
			}
		},
	},
	{
		ID: "F02", Title: "a herd of 500 waits for a server that dies above 20 calls at once", Slow: true, Quick: true, Ops: 500, AtOnce: 500, Deadline: 20 * time.Second, Reach: oracle.Hopeless,
		Args: map[string]any{"work_ms": 5},
		Plan: ledger.Plan{Ceiling: 20, Faults: []ledger.Fault{{At: ledger.AtStart, Do: ledger.Sleep, N: 1500}}},
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
