package main

import (
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// say is a plan in which this text stands in for the reply of operation 3.
func say(text string) ledger.Plan {
	return one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Say, Text: text})
}

// saySome is the same for every fourth operation.
func saySome(text string) ledger.Plan {
	return some(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Say, Text: text})
}

// variants gives each episode another text.
func variants(texts ...string) func(*Episode, *ledger.Plan, []inject.Rule) {
	return func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
		p.Faults = say(texts[e.Variant(len(texts))]).Faults
	}
}

// someVariants does it to every fourth operation.
func someVariants(texts ...string) func(*Episode, *ledger.Plan, []inject.Rule) {
	return func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
		p.Faults = saySome(texts[e.Variant(len(texts))]).Faults
	}
}

// framingFaults is part B: a server whose standard output is not what it should be.
var framingFaults = []Scenario{
	{
		ID: "B01", Title: "plain text on stdout, at start and between replies", Bulk: true, Ops: 96, Hits: 96, Quick: true, Reach: oracle.Harmless,
		Plan: ledger.Plan{Faults: []ledger.Fault{
			{At: ledger.AtStart, Do: ledger.Say, Text: "Server listening on stdio\n"},
			{At: ledger.AfterCommit, Op: ledger.Any, Every: 4, Times: -1, Do: ledger.Say, Text: "Connected to database\n{{reply}}\n"},
		}},
	},
	{
		ID: "B02", Title: "JSON log lines on stdout", Bulk: true, Ops: 96, Hits: 96, Quick: true, Reach: oracle.Harmless,
		Plan: saySome(`{"level":"info","msg":"connected","id":{{id}}}` + "\n{{reply}}\n"),
	},
	{
		ID: "B03", Title: "CRLF, blank lines, a byte order mark, two messages on a line", Bulk: true, Variants: 4, Ops: 96, Hits: 96, Quick: true, Reach: oracle.Harmless,
		Vary: someVariants(
			"{{reply}}\r\n", "\n\n  \n{{reply}}\n\n", "\ufeff{{reply}}\n",
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`+"{{reply}}\n"),
	},
	{
		ID: "B04", Title: "half a reply, a newline, then the whole", Bulk: true, Ops: 96, Hits: 96, Quick: true, Reach: oracle.Harmless,
		Plan: saySome("{{half}}\n{{reply}}\n"),
	},
	{
		ID: "B05", Title: "log text glued before the reply on its line", Slow: true, Quick: true, Alone: true,
		Plan: say("2026-11-14 INFO done {{reply}}\n"), Reach: oracle.Partial, Deadline: 6 * time.Second,
		Check: endsByTimeout,
	},
	{
		ID: "B06", Title: "a line of 17 MiB", Slow: true, Alone: true, Reach: oracle.Hopeless, Ops: 8, AtOnce: 4, Deadline: 20 * time.Second,
		Plan:  one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Say, N: 17 << 20, Text: `{"jsonrpc":"2.0","id":{{id}},"result":{"content":[{"type":"text","text":"{{op}} done {{big}}"}]}}` + "\n"}),
		Check: memoryWithin(80 << 20),
	},
	{
		ID: "B07", Title: "JSON nested 100 000 deep", Slow: true, Alone: true, Reach: oracle.Hopeless,
		Plan: one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Say, N: 100_000, Text: `{"jsonrpc":"2.0","id":{{id}},"result":{"content":[],"x":{{deep}}}}` + "\n"}),
		// Whoever relays bytes may pass it on; then it is the client that fails.
	},
	{
		ID: "B08", Title: "invalid UTF-8, a lone surrogate, NUL", Bulk: true, Variants: 2, Ops: 200, Hits: 50, Quick: true, Alone: true, Reach: oracle.Hopeless, Deadline: 6 * time.Second,
		Vary: someVariants(
			`{"jsonrpc":"2.0","id":{{id}},"result":{"content":[{"type":"text","text":"{{op}} done {{bad utf-8}}"}]}}`+"\n",
			`{"jsonrpc":"2.0","id":{{id}},"result":{"content":[{"type":"text","text":"{{op}} done \ud800"}]}}`+"\n"),
	},
	{
		ID: "B09", Title: "the same reply twice", Bulk: true, Ops: 96, Hits: 96, Quick: true, Reach: oracle.Harmless,
		Plan: saySome("{{reply}}\n{{reply}}\n"),
	},
	{
		ID: "B10", Variants: 3, Title: "a reply with a strange id and none with the right one", Slow: true, Quick: true, Alone: true, Reach: oracle.Hopeless, Deadline: 6 * time.Second,
		Vary: variants(
			`{"jsonrpc":"2.0","id":987654321,"result":{{result}}}`+"\n",
			`{"jsonrpc":"2.0","id":null,"result":{{result}}}`+"\n",
			`{"jsonrpc":"2.0","id":"a stranger","result":{{result}}}`+"\n"),
		Check: endsByTimeout,
	},
	{
		ID: "B11", Title: "100 replies out of order", Bulk: true, Hits: 100, Quick: true, Reach: oracle.Harmless, Ops: 100, AtOnce: 100,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterCommit, Op: ledger.Any, Times: -1, Hold: 100, Do: ledger.Shuffle}}},
	},
	{
		ID: "B12", Title: "a reply after the call was taken back", Quick: true, Reach: oracle.Hopeless, Ops: 10, AtOnce: 10,
		Plan: one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Sleep, N: 300}),
		Play: func(e *Episode) {
			back := make(chan struct{})
			e.Ops[3].CancelWhen = back
			go func() { e.AwaitStrike(); close(back) }()
			e.Run(e.Ops)
			e.Await(time.Second, wrote(ledger.Reply, e.Ops[3].ID))
			// The late reply must not disturb whoever comes next.
			more := []*driver.Op{e.op(20, ledger.Plain), e.op(21, ledger.Destructive)}
			e.Run(more)
		},
		Check: func(e *Episode, s *oracle.Score) {
			if s.Verdicts[oracle.Correct] < s.Ops-1 {
				e.Miss("a late reply disturbed another call")
			}
		},
	},
	{
		ID: "B13", Title: "20 000 notifications in one go", Quick: true, Reach: oracle.Harmless, Ops: 40,
		Plan: one(ledger.Fault{At: ledger.AfterRead, Do: ledger.Notify, N: 20_000}),
	},
	{
		ID: "B14", Title: "the server sends a request of its own", Bulk: true, Ops: 96, Hits: 96, Quick: true, Reach: oracle.Harmless, Eras: []string{"modern", "legacy"},
		Plan: some(ledger.Fault{At: ledger.AfterRead, Do: ledger.Ask}),
	},
	{
		ID: "B15", Variants: 2, Title: "duplicate and miscased members in a reply", Slow: true, Quick: true, Alone: true, Reach: oracle.Hopeless, Deadline: 6 * time.Second,
		Vary: variants(
			`{"jsonrpc":"2.0","id":{{id}},"Result":{"content":[{"type":"text","text":"forged done"}]},"result":{{result}}}`+"\n",
			`{"jsonrpc":"2.0","ID":{{id}},"id":987654,"result":{{result}}}`+"\n"),
		Check: func(e *Episode, s *oracle.Score) {
			if e.Said("forged") {
				e.Miss("a miscased member was taken for the real one")
			}
		},
	},
	{
		ID: "B16", Variants: 4, Title: "log lines with \"error\" or \"result\" during a call of 4 s", Slow: true, Quick: true, Reach: oracle.Harmless, Ops: 1,
		Args: map[string]any{"work_ms": 4000}, // alone: then it is easily taken for the reply
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			line := []string{
				`{"level":"error","error":"cache miss","result":null}`, `{"error":{"code":-32603,"message":"retrying"}}`,
				`{"msg":"done","result":{"content":[]}}`, `[error] {"result": broken`,
			}[e.Variant(4)]
			p.Faults = []ledger.Fault{{At: ledger.AfterRead, Do: ledger.Print, Text: line + "\n"}}
		},
	},
	{
		ID: "B17", Variants: 2, Title: "answers to notifications, with id null", Slow: true, Quick: true, Reach: oracle.Harmless, Ops: 1,
		Args: map[string]any{"work_ms": 4000}, // alone: then it is easily taken for the reply
		Vary: func(e *Episode, p *ledger.Plan, _ []inject.Rule) {
			line := []string{
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"method not found: notifications/initialized"}}`,
				`{"jsonrpc":"2.0","id":null,"result":{}}`,
			}[e.Variant(2)]
			p.Faults = []ledger.Fault{
				{At: ledger.AfterRead, Do: ledger.Print, Text: line + "\n"},
				{At: ledger.AtStart, Times: -1, Do: ledger.Say, Text: line + "\n"},
			}
		},
	},
	{
		ID: "B18", Title: "ids come back as 3.0", Slow: true, Quick: true, Reach: oracle.Harmless,
		Plan: ledger.Plan{FloatIDs: true},
		Play: func(e *Episode) {
			e.Struck(0, "fractions for ids")
			e.Run(e.Ops)
		},
		Check: allOK("an id was not taken by its value"),
	},
}

// endsByTimeout asks that output that is not MCP ended no call: one that got no other
// answer ends as unknown when the time that the user set for it is over.
func endsByTimeout(e *Episode, _ *oracle.Score) {
	op := e.Ops[3]
	if took := op.Answered - op.Invoked; took < e.Deadline-lateBy || took > e.Deadline+driver.Grace || op.Outcome != driver.Unknown {
		e.Miss("not unknown at the end of its time: %s after %v", op.Outcome, took.Round(100*time.Millisecond))
	}
}

// memoryWithin asks that the system's memory stayed below a limit to the end.
func memoryWithin(limit int) func(*Episode, *oracle.Score) {
	return func(e *Episode, s *oracle.Score) {
		if e.peak > limit {
			e.Miss("memory above %d MiB", limit>>20)
		}
	}
}
