package main

import (
	"math/rand/v2"

	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// httpFaults is part C: a server behind a URL, in both eras.
var httpFaults = []Scenario{
	{
		ID: "C03", Title: "executed, then the connection breaks before the headers", HTTP: true, Bulk: true, Quick: true,
		Wire:  []inject.Rule{{Op: 2, Do: inject.Reset}, {Op: 5, Do: inject.Close}},
		Reach: oracle.Silent, Alone: true,
	},
	{
		ID: "C07", Title: "executed, then 500, 502, 503 or 504", HTTP: true, Bulk: true, Quick: true,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterCommit, Op: 4, Do: ledger.Respond, Text: "upstream error"}}},
		Vary: func(r *rand.Rand, n int, p *ledger.Plan, _ []inject.Rule) {
			p.Faults[0].N = []int{500, 502, 503, 504}[r.IntN(4)]
		},
		Reach: oracle.Silent, Alone: true,
	},
}
