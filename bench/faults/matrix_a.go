package main

import (
	"math/rand/v2"

	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
)

// together is how many operations a strike of the bulk rows meets at once.
const together = 8

func once(at ledger.Phase, do ledger.Action, n int) ledger.Plan {
	return ledger.Plan{Faults: []ledger.Fault{{At: at, Op: ledger.Any, Hold: together, Do: do, N: n}}}
}

// processFaults is part A: a server that is a child process, and what becomes of it.
var processFaults = []Scenario{
	{
		ID: "A01", Title: "exit before reading the calls", Bulk: true, Quick: true,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.BeforeRead, Op: 0, Do: ledger.Kill}}},
	},
	{
		ID: "A02", Title: "exit after reading, before the effect", Bulk: true, Quick: true,
		Plan: once(ledger.AfterRead, ledger.Exit, 1),
	},
	{
		ID: "A03", Title: "exit after the effect, before the reply", Bulk: true, Quick: true,
		Plan: once(ledger.AfterCommit, ledger.Exit, 1),
	},
	{
		ID: "A04", Title: "exit in the middle of a reply", Bulk: true, Quick: true,
		Plan: ledger.Plan{Faults: []ledger.Fault{
			{At: ledger.AfterCommit, Op: ledger.Any, Hold: together, Do: ledger.Sleep},
			{At: ledger.MidReply, Op: 5, Do: ledger.Kill},
		}},
		Vary: func(r *rand.Rand, _ int, p *ledger.Plan, _ []inject.Rule) { p.Faults[1].N = 1 + r.IntN(80) },
	},
	{
		ID: "A05", Title: "exit right after a whole reply", Bulk: true, Quick: true,
		Plan: ledger.Plan{Faults: []ledger.Fault{{At: ledger.AfterReply, Op: 5, Do: ledger.Exit, N: 1}}},
	},
}
