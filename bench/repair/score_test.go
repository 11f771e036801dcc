package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/bench/internal/toolset"
)

func TestTheSetOfItsOwnPassesTheGate(t *testing.T) {
	s, cases := ownSet(1, true)
	if len(cases) < 1000 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, policy := range []string{"balanced", "strict", lossless} {
		r, err := s.score("own", cases, policy)
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK || r.Totals[repaired] == 0 || r.Totals[refused] == 0 || r.Totals[passed] == 0 {
			t.Errorf("%s: %v, failing %v", policy, r.Totals, r.Failures)
		}
	}
}

// A scorer that cannot see a failure is worth nothing.
func TestEveryFailureIsSeen(t *testing.T) {
	s := &scorer{cache: arguments.NewCache(0)}
	base := toolset.Case{Tool: "t", ToolCalled: "t", Risk: "write", InputSchema: []byte(`{"properties":{"n":{"type":"integer"}},"additionalProperties":false}`)}
	for _, tc := range []struct{ args, verdict, expected, want string }{
		{`{"n":"1"}`, "repair", `{"n":1}`, repaired},
		{`{"n":"1"}`, "repair", `{"n":2}`, wrong},
		{`{"n":"x"}`, "repair", `{"n":1}`, missed},
		{`{"n":"1"}`, "must_not_repair", ``, unsafe},
		{`{"n":1}`, "must_not_repair", ``, unsafe},
		{`{"n":"x"}`, "must_not_repair", ``, refused},
		{`{"n":1}`, "pass_through", ``, passed},
		{`{"n":"1"}`, "pass_through", ``, changed},
		{`{"n":"x"}`, "pass_through", ``, rejected},
	} {
		c := base
		c.Arguments, c.Verdict, c.Expected = []byte(tc.args), tc.verdict, []byte(tc.expected)
		got, err := s.outcome(c, "balanced")
		if err != nil || got != tc.want {
			t.Errorf("%s, labelled %s %s: %q, %v, want %q", tc.args, tc.verdict, tc.expected, got, err, tc.want)
		}
		r, err := s.score("test", []toolset.Case{c}, "balanced")
		if err != nil || r.OK == isFailure(tc.want) {
			t.Errorf("%s, labelled %s: gate is %v", tc.args, tc.verdict, r.OK)
		}
		var out bytes.Buffer
		if err := printTable(&out, []report{r}); err != nil || isFailure(tc.want) != strings.Contains(out.String(), "FAILED") {
			t.Errorf("table, %v:\n%s", err, out.String())
		}
	}
}
