package main

import (
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

func say(text string, n int) ledger.Plan {
	return ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterCommit, Op: 3, Do: ledger.Say, Text: text, N: n}}}
}

// framingFaults is part B: a server whose standard output is not what it should be.
var framingFaults = []Scenario{
	{
		ID: "B01", Title: "plain text on stdout, at start and between replies", Bulk: true, Quick: true,
		Plan: ledger.Plan{Faults: []ledger.Fault{
			{At: ledger.AtStart, Do: ledger.Say, Text: "Server listening on stdio\n"},
			{At: ledger.AfterCommit, Op: 3, Do: ledger.Say, Text: "Connected to database\n{{reply}}\n"},
		}},
		Reach: oracle.Harmless,
	},
}
