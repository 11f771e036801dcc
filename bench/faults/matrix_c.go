package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/internal/network"
)

var legacyOnly = []string{"legacy"}

// httpFaults is part C: a server behind a URL, in both eras.
var httpFaults = []Scenario{
	{
		ID: "C01", Title: "connection refused, later up again", HTTP: true, Slow: true, Quick: true, Reach: oracle.Unsent,
		Play: func(e *Episode) {
			e.Run(e.Ops[:4])
			e.Proxy.Down()
			go func() {
				e.Sleep(time.Second)
				e.Proxy.Up()
			}()
			e.Run(e.Ops[4:])
		},
	},
	{
		ID: "C02", Title: "reset before the request is read", HTTP: true, Bulk: true, Ops: 200, Hits: 50, Quick: true, Reach: oracle.Silent, Alone: true,
		Wire: []inject.Rule{{Op: ledger.Any, Every: 4, Times: -1, Request: true, Do: inject.Reset}},
	},
	{
		ID: "C03", Title: "executed, then the connection breaks before the headers", HTTP: true, Variants: 2, Bulk: true, Ops: 200, Hits: 50, Quick: true, Reach: oracle.Silent, Alone: true,
		Wire: []inject.Rule{{Op: ledger.Any, Every: 4, Times: -1, Do: inject.Reset}},
		Vary: func(e *Episode, _ *ledger.Plan, wire []inject.Rule) {
			wire[0].Do = []inject.Break{inject.Reset, inject.Close}[e.Variant(2)]
		},
	},
	{
		ID: "C04", Title: "a reused idle connection closes as the request is sent", HTTP: true, Bulk: true, Ops: 200, Hits: 50, Quick: true, Reach: oracle.Silent, Alone: true,
		Wire: []inject.Rule{{Op: ledger.Any, Every: 4, Times: -1, Request: true, Do: inject.Close}},
	},
	{
		ID: "C05", Title: "truncated JSON body", HTTP: true, Bulk: true, Ops: 200, Hits: 50, Quick: true, Reach: oracle.Partial, Alone: true,
		Plan: some(ledger.Fault{At: ledger.MidReply, Do: ledger.Drop}),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) { p.Faults[0].N = 1 + e.Rand.IntN(60) },
	},
	{
		ID: "C06", Title: "200 with a login page, or 202 with nothing", HTTP: true, Variants: 2, Bulk: true, Ops: 200, Hits: 50, Quick: true, Reach: oracle.Partial, Alone: true,
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Faults = some([]ledger.Fault{
				{At: ledger.AfterRead, Do: ledger.Respond, N: 200, Text: "<!DOCTYPE html><title>Sign in</title>", Header: map[string]string{"Content-Type": "text/html"}},
				{At: ledger.AfterCommit, Do: ledger.Respond, N: 202},
			}[e.Variant(2)]).Faults
		},
	},
	{
		ID: "C07", Title: "executed, then 500, 502, 503 or 504", HTTP: true, Variants: 4, Bulk: true, Ops: 200, Hits: 50, Quick: true, Reach: oracle.Silent, Alone: true,
		Plan: some(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Respond, Text: "upstream error"}),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Faults[0].N = []int{500, 502, 503, 504}[e.Variant(4)]
		},
	},
	{
		ID: "C08", Title: "429 with Retry-After, in seconds or as a date", HTTP: true, Slow: true, Quick: true, Reach: oracle.Refused, Alone: true, Variants: 2,
		Plan: one(ledger.Fault{At: ledger.AfterRead, Do: ledger.Respond, N: 429, Text: "slow down"}),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Faults[0].Header = map[string]string{"Retry-After": []string{"1", "date"}[e.Variant(2)]}
		},
		Check: func(e *Episode, s *oracle.Score) {
			if e.Early(e.Ops[3].ID) {
				e.Miss("sent again before Retry-After")
			}
		},
	},
	{
		ID: "C09", Title: "the session is gone: 404", HTTP: true, Eras: legacyOnly, Bulk: true, Hits: 9, Quick: true, Reach: oracle.Refused,
		Plan: one(ledger.Fault{At: ledger.AfterReply, Do: ledger.LoseSession}),
		Play: fourThenRest,
		Check: func(e *Episode, s *oracle.Score) {
			if inits := ledger.Count(e.Book(), ledger.Init); e.System.Ours && inits > 2 {
				e.Miss("initialized more than once for all callers")
			}
		},
	},
	{
		ID: "C10", Title: "the session is gone: 400, 401, 409, or 200 with an error", HTTP: true, Variants: 4, Eras: legacyOnly, Bulk: true, Hits: 9, Quick: true, Reach: oracle.Hopeless,
		Plan: one(ledger.Fault{At: ledger.AfterReply, Do: ledger.LoseSession}),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.LostSession = []int{400, 401, 409, 200}[e.Variant(4)]
		},
		Play: fourThenRest,
	},
	{
		ID: "C11", AtOnce: 1, Ops: 8, Title: "every packet is dropped, before the request or before the answer (--lost-after 3s)", HTTP: true, Slow: true, Quick: true, Reach: oracle.Silent, Alone: true,
		Deadline: 15 * time.Second, Variants: 2, Network: true, Needs: needNetwork, Flags: []string{"--lost-after", lostAfter.String()},
		Play: func(e *Episode) {
			lost := e.Ops[3]
			lost.Args = map[string]any{"work_ms": 500}
			e.Run(e.Ops[:3])
			drop := func() {
				if err := e.Net.Pass(e.ctx, false); err != nil {
					e.Miss("packets could not be dropped: %v", err)
				}
				e.StruckOp(lost, "no packet passes")
			}
			if e.Variant(2) == 0 {
				drop()
			} else {
				go func() {
					e.Await(e.Deadline, wrote(ledger.Begin, lost.ID))
					drop()
				}()
			}
			e.Run(e.Ops[3:4])
			if err := e.Net.Pass(e.ctx, true); err != nil {
				e.Miss("packets could not be let through: %v", err)
			}
			e.Run(e.Ops[4:])
		},
		Check: func(e *Episode, s *oracle.Score) {
			// It may take TCP that long to find out, and as long again to be asked.
			if took := e.Ops[3].Answered - e.Ops[3].Invoked; took < lostAfter-lateBy || took > 2*lostAfter+2*time.Second {
				e.Miss("settled after %v, not after --lost-after", took.Round(100*time.Millisecond))
			}
		},
	},
	{
		ID: "C12", Title: "a black hole that heals (8 s; quick 3 s)", HTTP: true, Slow: true, Reach: oracle.Hopeless, Alone: true,
		Deadline: 20 * time.Second, Variants: 2,
		Wire: []inject.Rule{{Op: 3, Do: inject.BlackHole}},
		Vary: func(e *Episode, _ *ledger.Plan, wire []inject.Rule) {
			wire[0].Request, wire[0].For = e.Variant(2) == 0, e.Long(8*time.Second, 3*time.Second)
		},
	},
	{
		ID: "C13", Title: "an answer that comes byte by byte", HTTP: true, Slow: true, Quick: true, Reach: oracle.Harmless, Deadline: 20 * time.Second,
		Plan: ledger.Plan{SSE: true},
		Wire: []inject.Rule{{Op: 3, Do: inject.Drip, For: 15 * time.Millisecond}},
	},
	{
		ID: "C14", Title: "an event stream is dropped, no event ids", HTTP: true, Variants: 2, Bulk: true, Ops: 200, Hits: 50, Quick: true, Reach: oracle.Started, Alone: true,
		Plan: ledger.Plan{SSE: true, Faults: some(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Drop}).Faults},
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) { p.Faults[0].N = e.Variant(2) },
	},
	{
		ID: "C15", Title: "an event stream is dropped and can be resumed", HTTP: true, Eras: legacyOnly, Slow: true, Quick: true, Reach: oracle.Harmless, Alone: true,
		Plan: ledger.Plan{SSE: true, Resumable: true, Faults: one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Drop}).Faults},
	},
	{
		ID: "C16", Title: "resuming brings duplicates and a stranger's answer", HTTP: true, Eras: legacyOnly, Slow: true, Reach: oracle.Harmless, Alone: true,
		Plan: ledger.Plan{SSE: true, Resumable: true, Replay: true, Faults: one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Drop}).Faults},
	},
	{
		ID: "C17", Title: "an answer with a wrong id", HTTP: true, Slow: true, Quick: true, Reach: oracle.Partial, Alone: true,
		Plan: one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Respond, N: 200, Header: map[string]string{"Content-Type": "application/json"},
			Text: `{"jsonrpc":"2.0","id":987654321,"result":{{result}}}`}),
		Check: func(e *Episode, s *oracle.Score) {
			if took := e.Ops[3].Answered - e.Ops[3].Invoked; took <= 0 || took > time.Second {
				e.Miss("not settled at once")
			}
		},
	},
	{
		ID: "C18", Title: "an endless body, plain or as a gzip bomb", HTTP: true, Slow: true, Reach: oracle.Partial, Alone: true, Variants: 2,
		Deadline: 15 * time.Second,
		Plan:     one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Bomb}),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Faults[0].Text = []string{"", "gzip"}[e.Variant(2)]
		},
		Check: memoryWithin(160 << 20),
	},
	{
		ID: "C19", Title: "TLS: an expired certificate, or another host's", HTTP: true, Quick: true, Reach: oracle.Hopeless, TLS: "bad", Variants: 2, Deadline: 5 * time.Second,
		Check: func(e *Episode, s *oracle.Score) {
			if s.Frames > 0 {
				e.Miss("a call went through in spite of the certificate")
			}
			if e.Proxy.Plain() {
				e.Miss("fell back to plain HTTP")
			}
		},
	},
	{ID: "C20", Title: "DNS flips to a private address", HTTP: true, Pending: "needs a resolver of our own and the address policy of sign-in (part E)"},
	{
		ID: "C21", Title: "307 or 308 to another origin", HTTP: true, Quick: true, Reach: oracle.Hopeless, Alone: true, Secret: "canary-7f3a", Variants: 2,
		Plan: one(ledger.Fault{At: ledger.AfterRead, Do: ledger.Respond, Header: map[string]string{}}),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Faults[0].N, p.Faults[0].Header = []int{307, 308}[e.Variant(2)], map[string]string{"Location": e.Trap()}
		},
		Check: func(e *Episode, s *oracle.Score) {
			if strings.Contains(e.trapped(), "canary-7f3a") {
				e.Miss("credentials were sent to another origin")
			}
			if e.trapped() != "" {
				e.Miss("a redirect to another origin was followed")
			}
		},
	},
	{
		ID: "C22", Title: "HTTP/2: GOAWAY names a lower stream, alone or with REFUSED_STREAM", HTTP: true, Variants: 2, TLS: "h2", Bulk: true, Quick: true, Hits: 6, Reach: oracle.Refused,
		// The first few requests are the handshake.
		H2:   inject.H2{GoAway: 6},
		Vary: func(e *Episode, _ *ledger.Plan, _ []inject.Rule) { e.H2.Refuse = e.Variant(2) == 1 },
	},
	{
		ID: "C23", Title: "eras confused: server/discover met by silence or an exit; a client of the other era", Slow: true, Quick: true,
		Reach: oracle.Harmless, Variants: 5, Deadline: 15 * time.Second,
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Discover = []string{"silent", "exit", "silent", "exit", ""}[e.Variant(5)]
			if e.Variant(5) == 4 {
				p.Era = "modern"
			}
		},
		Speaks: func(e *Episode) string {
			return []string{"legacy", "legacy", "modern", "modern", "legacy"}[e.Variant(5)]
		},
		Play: func(e *Episode) {
			e.Struck(0, "a server of another mind")
			e.Run(e.Ops)
		},
	},
	{
		ID: "C24", Title: "HTTP/2: executed, then the stream is reset", HTTP: true, TLS: "h2", Bulk: true, Quick: true, Ops: 200, Hits: 50, Reach: oracle.Silent, Alone: true, Variants: 5,
		Plan: some(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Drop}),
		Vary: func(e *Episode, _ *ledger.Plan, _ []inject.Rule) {
			e.H2.ResetWith = []uint32{inject.ProtocolError, inject.RefusedStream, inject.InternalError, inject.Cancel, inject.EnhanceCalm}[e.Variant(5)]
		},
		Check: sentOnce,
	},
	{
		ID: "C25", Title: "HTTP/2: REFUSED_STREAM without a GOAWAY, nothing ran", HTTP: true, TLS: "h2", Bulk: true, Quick: true, Ops: 200, Hits: 50, Reach: oracle.Silent, Alone: true,
		Plan:  some(ledger.Fault{At: ledger.AfterRead, Do: ledger.Drop}),
		H2:    inject.H2{ResetWith: inject.RefusedStream},
		Check: sentOnce,
	},
	{
		ID: "C26", Title: "executed, then an error with the call's own id under 200, 400, 401, 403, 404 or 429", HTTP: true, Bulk: true, Quick: true, Ops: 200, Hits: 50, Reach: oracle.Hopeless, Alone: true, Variants: 6,
		Plan: some(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Respond, Header: map[string]string{"Content-Type": "application/json"},
			Text: `{"jsonrpc":"2.0","id":{{id}},"error":{"code":-32001,"message":"` + ownWords + ` of {{op}}; the outcome is unknown"}}`}),
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			p.Faults[0].N = []int{404, 400, 401, 403, 429, 200}[e.Variant(6)]
		},
		Check: func(e *Episode, s *oracle.Score) {
			sentOnce(e, s)
			for _, op := range e.struckOps() {
				if !strings.Contains(op.Text, ownWords+" of "+op.ID) {
					e.Miss("the server's own error is not the answer")
				}
			}
		},
	},
	{
		ID: "C27", Title: "the server does nothing at all for 16 s, and answers then", HTTP: true, Slow: true, Quick: true, Reach: oracle.Harmless, Ops: 8, Deadline: 40 * time.Second,
		Play: func(e *Episode) {
			for _, op := range e.Ops[:4] {
				op.Args = map[string]any{"work_ms": 300}
			}
			done := make(chan struct{})
			go func() { e.Run(e.Ops[:4]); close(done) }()
			e.AwaitReceived(4)
			pid := e.ServerPid()
			e.Struck(0, "blocked")
			inject.Signal(pid, syscall.SIGSTOP)
			later := make(chan struct{})
			go func() {
				defer close(later)
				e.Sleep(16 * time.Second)
				inject.Signal(pid, syscall.SIGCONT)
			}()
			// These come when every sign of life has failed for a while.
			e.Sleep(12 * time.Second)
			driver.Run(e.ctx, e.Clients, e.Ops[4:], e.AtOnce)
			<-later
			<-done
			e.all = append(e.all, e.Ops[4:]...)
		},
	},
}

// lostAfter is how long a connection may go without an acknowledgement in row C11.
const lostAfter = 3 * time.Second

// ownWords tempt: a system may think that the call can be made again.
const ownWords = "Session terminated"

// needNetwork says why there can be no network of our own.
func needNetwork() string {
	n, err := network.New(context.Background(), os.Environ())
	if err != nil {
		return "no network namespaces to be had: " + err.Error()
	}
	n.Close()
	return ""
}

// struckOps are the operations that a fault was aimed at.
func (e *Episode) struckOps() []*driver.Op {
	struck := map[string]bool{}
	for _, l := range e.Book() {
		if l.Kind == ledger.Fired {
			struck[l.Op] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(e.all), func(op *driver.Op) bool { return !struck[op.ID] })
}

// sentOnce asks that what is not known was not sent again, unless the tool may run twice.
func sentOnce(e *Episode, _ *oracle.Score) {
	for _, op := range e.struckOps() {
		if n := e.Received(op.ID); n > 1 && e.System.Trust == oracle.TrustNone {
			e.Miss("sent %d times", n)
		}
	}
}
