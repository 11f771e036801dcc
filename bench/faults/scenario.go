package main

import (
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/faults/standin"
)

// Scenario is one row of the matrix: a fault, and how it is brought about.
type Scenario struct {
	ID    string
	Title string
	// Pending says why the row is not run; it is listed all the same.
	Pending string

	// HTTP puts the server behind a URL; otherwise it is a child process.
	HTTP bool
	// Eras of the server, one after the other; by default legacy over stdio, and
	// legacy and modern over HTTP.
	Eras []string
	// Speaks is the era of the clients where it is not the server's.
	Speaks func(e *Episode) string
	// Plan is what the server does wrong, Wire what the network does (HTTP).
	Plan ledger.Plan
	Wire []inject.Rule
	// Vary changes both for each episode, from the seed.
	Vary func(e *Episode, p *ledger.Plan, wire []inject.Rule)

	// TLS "bad" serves HTTPS with a certificate that must not be accepted, "h2"
	// serves HTTP/2, which breaks as H2 says.
	TLS string
	H2  inject.H2
	// Network puts system and server on machines of their own, with a router
	// between them that can drop packets. There is no proxy then.
	Network bool
	// Flags are added to mcpmend's command line.
	Flags []string
	// Secret is a bearer token that the system shall send to its server only.
	Secret string
	// Model is what the stand-in for a model's API says to a question. Rows with
	// it are for systems that can ask a model.
	Model func(e *Episode, q standin.Question) standin.Answer
	// Variants is how many ways Vary knows.
	Variants int

	// Ops is how many operations an episode has, AtOnce how many run together,
	// Tools which tools they use in turn, Args what else they ask of them.
	Ops      int
	AtOnce   int
	Tools    []string
	Args     map[string]any
	Deadline time.Duration
	// Relayed rows are for systems that speak the modern era to their clients.
	Relayed bool
	// Clients above 0 connects so many over HTTP, to systems that can.
	Clients int
	// Command replaces the server's command line.
	Command func(e *Episode, ledger []string) []string

	// Reach and Alone tell the oracle what could have been done about it.
	Reach oracle.Reach
	Alone bool
	// NoFault is the control: nothing may go wrong, and nothing strikes.
	NoFault bool
	// Bulk rows are cheap and carry the many calls of a full run; Hits is how
	// many operations the fault meets in one episode.
	Bulk bool
	Hits int
	// Slow rows mostly wait; Timed rows measure and have the machine to themselves;
	// Quick rows are part of the quick run.
	Slow  bool
	Timed bool
	Quick bool

	// Play runs the operations; by default all of them, at once.
	Play func(e *Episode)
	// Check looks at what the verdicts do not show.
	Check func(e *Episode, s *oracle.Score)
	// Needs says what this machine lacks for the row, "" when nothing.
	Needs func() string
}

// withDefaults fills in what a row does not care about.
func (s Scenario) withDefaults() Scenario {
	if s.Ops == 0 {
		s.Ops = 12
	}
	if s.AtOnce == 0 {
		s.AtOnce = 8
	}
	if s.Tools == nil {
		s.Tools = ledger.Tools
	}
	if s.Deadline == 0 {
		s.Deadline = 10 * time.Second
	}
	if s.Eras == nil {
		s.Eras = []string{"legacy"}
		if s.HTTP {
			s.Eras = []string{"legacy", "modern"}
		}
	}
	if s.Hits == 0 {
		s.Hits = together
	}
	if s.Play == nil {
		s.Play = func(e *Episode) { e.Run(e.Ops) }
	}
	return s
}

// matrix is the whole benchmark, in the order of the report.
func matrix() []Scenario {
	var all []Scenario
	for _, part := range [][]Scenario{control, processFaults, framingFaults, httpFaults, protocolFaults, fleetFaults, modelFaults, gatewayFaults} {
		for _, s := range part {
			all = append(all, s.withDefaults())
		}
	}
	return all
}

// control must show nothing at all; the clock is where detection and recovery
// are timed, because the other rows have to share the machine.
var control = []Scenario{
	{ID: "Z00", Title: "no fault at all (control)", NoFault: true, Quick: true, Ops: 40, Reach: oracle.Harmless},
	{
		ID: clock, Title: "exit after the effect, alone on the machine (clock)", Timed: true, Quick: true, Variants: 30, Ops: 6, AtOnce: 1,
		Plan: one(ledger.Fault{At: ledger.AfterCommit, Do: ledger.Exit, N: 1}),
	},
}

const clock = "Z01"
