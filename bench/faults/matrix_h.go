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
		Play: func(e *Episode) {
			done := make(chan struct{})
			go func() { e.Run(e.Ops); close(done) }()
			e.AwaitReceived(len(e.Ops))
			e.Struck(e.Proc.Pid(), "SIGTERM to the system")
			e.Proc.Signal(syscall.SIGTERM)
			<-done
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
