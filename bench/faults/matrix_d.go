package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

var modernOnly = []string{"modern"}

// protocolFaults is part D: what is offered, taken back, asked for and changed.
var protocolFaults = []Scenario{
	{
		ID: "D01", Title: "a tool is gone after a restart", Quick: true, Reach: oracle.Hopeless,
		Plan: ledger.Plan{ToolsLater: "removed", Faults: one(ledger.Fault{At: ledger.AfterReply, Do: ledger.Exit}).Faults},
		Play: func(e *Episode) {
			fourThenRest(e)
			e.Run([]*driver.Op{e.op(50, ledger.Destructive)})
		},
		Check: func(e *Episode, s *oracle.Score) {
			for _, op := range e.all[4:] {
				if op.Tool == ledger.Destructive && op.Outcome == driver.OK {
					e.Miss("a tool that is gone was answered for")
				}
			}
		},
	},
	{
		ID: "D02", Title: "a schema changes across a restart while calls wait", Quick: true, Reach: oracle.Hopeless,
		Plan: ledger.Plan{ToolsLater: "changed", Faults: []ledger.Fault{{At: ledger.BeforeRead, Op: 1, Do: ledger.Kill}}},
		Play: firstThenRest,
		Check: func(e *Episode, s *oracle.Score) {
			// Those that were waiting when the server went had been meant for the old tool.
			waiting := e.all[1 : 1+min(e.AtOnce, len(e.all)-1)]
			for _, op := range waiting {
				if e.System.Ours && e.Received(op.ID) > 0 {
					e.Miss("a waiting call was sent to a changed tool")
				}
			}
		},
	},
	{ID: "D03", Title: "an annotation flips", Pending: "comes with pinning"},
	{ID: "D04", Title: "a description changes (rug pull)", Pending: "comes with pinning"},
	{
		ID: "D05", Title: "a tool that lies about being read-only, crash after the effect", Bulk: true, Quick: true,
		Tools: []string{ledger.Lying}, Plan: crash(ledger.AfterCommit, ledger.Exit, 1),
	},
	{
		ID: "D06", Title: "the list is empty, has 5 000 tools, or its pages break off", Slow: true, Variants: 3, Reach: oracle.Hopeless,
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Tools = []string{"empty", "many", "bad-cursor"}[e.Variant(3)]
		},
		Play: func(e *Episode) {
			ctx, stop := context.WithTimeout(e.ctx, e.Deadline)
			defer stop()
			if _, err := e.Clients[0].Ask(ctx, "tools/list", map[string]any{}); err != nil {
				e.Miss("tools/list was not answered")
			}
			e.Run(e.Ops)
		},
	},
	{
		ID: "D07", Title: "taken back before it is sent, during the work, and as the reply comes", Quick: true, Bulk: true, Ops: 120, Hits: 30, Reach: oracle.Hopeless, Alone: true,
		Args: map[string]any{"work_ms": 20},
		Play: func(e *Episode) {
			for ops := range slices.Chunk(e.Ops, 12) {
				e.takeBack(ops)
			}
		},
		Check: func(e *Episode, s *oracle.Score) {
			for _, op := range e.Ops {
				if !op.Cancelled && op.CancelWhen == nil && op.Outcome != driver.OK {
					e.Miss("another call suffered")
				}
			}
		},
	},
	{
		ID: "D08", Title: "the client goes away in the middle of its calls", Quick: true, Slow: true, Reach: oracle.Hopeless, Ops: 6,
		Args: map[string]any{"work_ms": 1500},
		Play: func(e *Episode) {
			done := make(chan struct{})
			go func() { e.Run(e.Ops); close(done) }()
			e.AwaitReceived(len(e.Ops))
			e.Struck(0, "client gone")
			if took := e.Proc.Stop(); took > 5*time.Second {
				e.Miss("did not end with its client")
			}
			<-done
		},
	},
	{
		ID: "D09", Title: "the continuation of a call is lost after the effect (MRTR)", Quick: true, Bulk: true, Relayed: true, Eras: modernOnly, Reach: oracle.Hopeless,
		Args: map[string]any{"ask": true},
		Plan: crash(ledger.AfterCommit, ledger.Exit, 1),
	},
	{
		ID: "D10", Title: "the server sheds load five times (MRTR)", Quick: true, Slow: true, Relayed: true, Eras: modernOnly, Reach: oracle.Hopeless, Ops: 4,
		Play: func(e *Episode) {
			e.Ops[1].Args = map[string]any{"shed": 5}
			e.Run(e.Ops)
		},
		Check: func(e *Episode, s *oracle.Score) {
			if e.Received(e.Ops[1].ID) > 4 {
				e.Miss("sent again more than three times")
			}
		},
	},
	{
		ID: "D12", Title: "a client opens its stream a second time", Quick: true, Clients: 1, Eras: legacyOnly, Reach: oracle.Harmless,
		Play: func(e *Episode) {
			ctx, stop := context.WithTimeout(e.ctx, e.Deadline)
			defer stop()
			first, ended, err := driver.Listen(ctx, e.Clients[0])
			if err != nil || first != http.StatusOK {
				e.Miss("no stream: %d %v", first, err)
				return
			}
			e.Struck(0, "a second GET")
			second, open, err := driver.Listen(ctx, e.Clients[0])
			if err != nil || second != http.StatusOK {
				e.Miss("no second stream: %d %v", second, err)
				return
			}
			select {
			case <-ended:
			case <-open:
				e.Miss("the second stream ended, not the first")
			case <-ctx.Done():
				e.Miss("the second stream does not replace the first")
			}
			e.Run(e.Ops)
		},
	},
	{ID: "D11", Title: "the gateway restarts while a task runs", Pending: "comes with tasks and the state store"},
}

func wrote(kind ledger.Kind, op string) func([]ledger.Line) bool {
	return func(lines []ledger.Line) bool {
		for _, l := range lines {
			if l.Kind == kind && l.Op == op {
				return true
			}
		}
		return false
	}
}

// takeBack runs operations and takes three of them back: before it is sent, during the
// work, and as the reply comes.
func (e *Episode) takeBack(ops []*driver.Op) {
	now, during, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ops[2].CancelWhen, ops[3].CancelWhen, ops[4].CancelWhen = now, during, late
	close(now)
	e.StruckOp(ops[2], "taken back at once")
	var wg sync.WaitGroup
	for when, op := range map[chan struct{}]*driver.Op{during: ops[3], late: ops[4]} {
		wg.Go(func() {
			kind := ledger.Begin
			if when == late {
				kind = ledger.Commit
			}
			e.Await(e.Deadline, wrote(kind, op.ID))
			e.StruckOp(op, "taken back at "+string(kind))
			close(when)
		})
	}
	e.Run(ops)
	wg.Wait()
}
