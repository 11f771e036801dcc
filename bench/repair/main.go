// Command repair scores the decisions of package arguments against sets of
// broken, tempting and valid calls whose only acceptable outcome is known.
//
// It prints how many broken calls were mended into exactly what was meant, how
// many were mended wrongly, how many that must not be touched were, and how many
// valid ones came out changed or refused, and fails below the gate. The rules and
// the labels of the generated cases come from the same hands, so they show that
// the rules are consistent. Printed apart are the wild cases, taken from public
// reports; the valid calls of the tools, as they are and with every value of
// theirs broken in turn (derived.go); and a set this program makes by itself,
// which needs no files (own.go).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/bench/internal/program"
	"github.com/mcpmend/mcpmend/bench/internal/toolset"
)

func main() {
	o := options{Options: program.Flags("every tenth case")}
	flag.StringVar(&o.tools, "tools", "../shared/data/repair/tools.jsonl", "tools, one JSON object per line")
	flag.StringVar(&o.cases, "cases", "../shared/data/repair/cases.jsonl", "cases, one JSON object per line")
	flag.StringVar(&o.catalogs, "catalogs", "", "tool names by project (default: catalogs.json beside the tools)")
	flag.StringVar(&o.wild, "wild", "", "cases that bring their own tools (default: wild.jsonl beside the tools, if it is there)")
	flag.StringVar(&o.calls, "calls", "", "valid calls, scored and used by --cost (default: calls.jsonl beside the tools, if it is there)")
	flag.StringVar(&o.policy, "policy", "", "balanced, strict or lossless (default: the first two)")
	flag.BoolVar(&o.own, "own", false, "score only the set made by this program, which needs no files")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the set made by this program")
	flag.BoolVar(&o.cost, "cost", false, "measure time beside bare validation instead of scoring")
	o.Main("repair", func(context.Context) (any, program.Verdict, error) {
		if o.cost {
			return o.runCost(os.Stdout)
		}
		reports, err := o.run()
		if err != nil {
			return nil, program.Failed, err
		}
		ok := !slices.ContainsFunc(reports, func(r report) bool { return !r.OK })
		return reports, program.If(ok), printTable(os.Stdout, reports)
	})
}

type options struct {
	*program.Options
	tools, cases, catalogs, wild, calls, policy string
	own, cost                                   bool
	seed                                        uint64
}

// report is the score of one set under one policy.
type report struct {
	Set      string                    `json:"set"`
	Policy   string                    `json:"policy"`
	Cases    int                       `json:"cases"`
	Totals   map[string]int            `json:"totals"`
	Kinds    map[string]map[string]int `json:"kinds"`
	Failures []string                  `json:"failures,omitempty"` // ids
	OK       bool                      `json:"ok"`
}

func (o options) run() ([]report, error) {
	var reports []report
	policies := []string{string(arguments.Balanced), string(arguments.Strict)}
	if o.policy != "" {
		policies = []string{o.policy}
	}
	score := func(set string, s *scorer, cases []toolset.Case, policy string) error {
		r, err := s.score(set, cases, policy)
		reports = append(reports, r)
		return err
	}
	if !o.own {
		s, cases, wild, err := o.load()
		if err != nil {
			return nil, err
		}
		calls, err := o.validCalls(s)
		if err != nil {
			return nil, err
		}
		if o.Quick {
			cases, calls = everyTenth(cases), everyTenth(calls)
		}
		for _, p := range policies {
			if err := score("generated", s, cases, p); err != nil {
				return nil, err
			}
		}
		if len(calls) > 0 {
			if err := score("valid calls", s, calls, policies[0]); err != nil {
				return nil, err
			}
			var derived []toolset.Case
			for i, c := range calls {
				if i%3 != 0 && !o.Quick {
					continue // of about three for each tool, one is enough
				}
				engine, err := compileBare(s.tools[c.ToolID].InputSchema)
				if err != nil {
					return nil, err
				}
				derived = append(derived, breakAll(engine, c)...)
			}
			for _, p := range policies {
				if err := score("derived", s, derived, p); err != nil {
					return nil, err
				}
			}
		}
		// Reports of the wild know no policy: the rules are scored.
		if len(wild) > 0 {
			if err := score("wild", s, wild, lossless); err != nil {
				return nil, err
			}
		}
	}
	s, cases := ownSet(o.seed, o.Quick)
	for _, p := range policies {
		if err := score("own", s, cases, p); err != nil {
			return nil, err
		}
	}
	return reports, nil
}

// beside is a file as given, or of that name beside the tools.
func (o options) beside(given, name string) string {
	if given != "" {
		return given
	}
	return filepath.Join(filepath.Dir(o.tools), name)
}

// validCalls makes a case of every valid call of the set.
func (o options) validCalls(s *scorer) ([]toolset.Case, error) {
	calls, err := toolset.Lines[toolset.Call](o.beside(o.calls, "calls.jsonl"))
	if os.IsNotExist(err) && o.calls == "" {
		return nil, nil
	}
	cases := make([]toolset.Case, len(calls))
	for i, c := range calls {
		tool := s.tools[c.ToolID]
		cases[i] = toolset.Case{ID: fmt.Sprintf("call-%d", i), Kind: "valid_call", ToolID: c.ToolID, ToolCalled: tool.Name, Risk: tool.Risk, Arguments: c.Arguments, Verdict: "pass_through"}
	}
	return cases, err
}

func (o options) load() (s *scorer, cases, wild []toolset.Case, err error) {
	tools, err := toolset.Lines[toolset.Tool](o.tools)
	if err != nil {
		return nil, nil, nil, err
	}
	s = &scorer{tools: map[string]toolset.Tool{}, cache: arguments.NewCache(0)}
	for _, t := range tools {
		s.tools[t.ID] = t
	}
	catalogs, err := os.ReadFile(o.beside(o.catalogs, "catalogs.json"))
	if err != nil {
		return nil, nil, nil, err
	}
	if err := json.Unmarshal(catalogs, &s.catalogs); err != nil {
		return nil, nil, nil, err
	}
	if cases, err = toolset.Lines[toolset.Case](o.cases); err != nil {
		return nil, nil, nil, err
	}
	wild, err = toolset.Lines[toolset.Case](o.beside(o.wild, "wild.jsonl"))
	if os.IsNotExist(err) && o.wild == "" {
		err = nil
	}
	return s, cases, wild, err
}

func everyTenth(cases []toolset.Case) []toolset.Case {
	var out []toolset.Case
	for i := 0; i < len(cases); i += 10 {
		out = append(out, cases[i])
	}
	return out
}

func (s *scorer) score(set string, cases []toolset.Case, policy string) (report, error) {
	r := report{Set: set, Policy: policy, Cases: len(cases), Totals: map[string]int{}, Kinds: map[string]map[string]int{}}
	for _, c := range cases {
		outcome, err := s.outcome(c, policy)
		if err != nil {
			return r, err
		}
		if c.Kind == "" {
			c.Kind = c.Verdict
		}
		r.Totals[outcome]++
		if r.Kinds[c.Kind] == nil {
			r.Kinds[c.Kind] = map[string]int{}
		}
		r.Kinds[c.Kind][outcome]++
		if isFailure(outcome) {
			r.Failures = append(r.Failures, c.ID)
		}
	}
	t := r.Totals
	// The gate: 99.5 % of what can be mended is, and nothing else goes wrong.
	// Of the few wild cases none may fail.
	r.OK = t[wrong]+t[unsafe]+t[changed]+t[rejected] == 0 && 1000*t[missed] <= 5*(t[repaired]+t[missed])
	if set == "wild" {
		r.OK = len(r.Failures) == 0
	}
	return r, nil
}

func isFailure(outcome string) bool {
	return outcome == missed || outcome == wrong || outcome == unsafe || outcome == changed || outcome == rejected
}

func printTable(w io.Writer, reports []report) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "set\tpolicy\tcases\trepaired\twrong\tunsafe\trefused\tpassed on unmended\tvalid\tchanged\trejected\tgate")
	for _, r := range reports {
		t := r.Totals
		fixable := t[repaired] + t[missed] + t[wrong]
		gate := "ok"
		if !r.OK {
			gate = "FAILED"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d/%d (%.1f %%)\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Set, r.Policy, r.Cases,
			t[repaired], fixable, 100*float64(t[repaired])/float64(max(fixable, 1)), t[wrong], t[unsafe], t[refused], t[forwarded], t[passed], t[changed], t[rejected], gate)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range reports {
		if len(r.Failures) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s, %s: kinds that fail\n", r.Set, r.Policy)
		var kinds []string
		for k, outcomes := range r.Kinds {
			for o := range outcomes {
				if isFailure(o) && !slices.Contains(kinds, k) {
					kinds = append(kinds, k)
				}
			}
		}
		slices.Sort(kinds)
		for _, k := range kinds {
			fmt.Fprintf(w, "  %-36s %v\n", k, r.Kinds[k])
		}
		fmt.Fprintf(w, "  cases: %v\n", r.Failures[:min(len(r.Failures), 20)])
	}
	cases, failures, gate := 0, 0, "ok"
	for _, r := range reports {
		cases, failures = cases+r.Cases, failures+len(r.Failures)
		if !r.OK {
			gate = "FAILED"
		}
	}
	_, err := fmt.Fprintf(w, "\nrepair: %d sets, %d cases, %d failures; %s\n", len(reports), cases, failures, gate)
	return err
}
