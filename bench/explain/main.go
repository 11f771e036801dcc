// Command explain measures the errors of package arguments: what they cost in
// tokens, how often they hold the hint that is needed, and whether the examples
// they show are valid, over the calls of a set that must not be mended.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/bench/internal/toolset"
	"github.com/tiktoken-go/tokenizer"
)

func main() {
	var o options
	flag.StringVar(&o.tools, "tools", "../shared/data/repair/tools.jsonl", "tools, one JSON object per line")
	flag.StringVar(&o.cases, "cases", "../shared/data/repair/cases.jsonl", "cases, one JSON object per line")
	flag.StringVar(&o.catalogs, "catalogs", "", "tool names by project (default: catalogs.json beside the tools)")
	flag.StringVar(&o.show, "show", "", "print the texts for cases of this kind")
	flag.BoolVar(&o.quick, "quick", false, "every tenth case")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.Parse()
	ok, err := o.run(os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "explain: error: %v\n", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

type options struct {
	tools, cases, catalogs, show string
	quick, json                  bool
}

// level is the measure of one form of the errors.
type level struct {
	Name   string         `json:"name"`
	Errors int            `json:"errors"`
	Mean   float64        `json:"tokens_mean"`
	P50    int            `json:"tokens_p50"`
	P95    int            `json:"tokens_p95"`
	Max    int            `json:"tokens_max"`
	Hints  int            `json:"hints_present"`
	Misses map[string]int `json:"hints_missed_by_kind,omitempty"`

	tokens []int
	missed []string
}

type result struct {
	Levels          []*level `json:"levels"`
	Tools           int      `json:"tools"`
	Examples        int      `json:"examples"`
	InvalidExamples int      `json:"invalid_examples"`
	Unstable        int      `json:"unstable"` // errors that differ between two runs
	OK              bool     `json:"ok"`
}

func (o options) run(w io.Writer) (bool, error) {
	tools, err := toolset.Lines[toolset.Tool](o.tools)
	if err != nil {
		return false, err
	}
	cases, err := toolset.Lines[toolset.Case](o.cases)
	if err != nil {
		return false, err
	}
	if o.catalogs == "" {
		o.catalogs = filepath.Join(filepath.Dir(o.tools), "catalogs.json")
	}
	data, err := os.ReadFile(o.catalogs)
	if err != nil {
		return false, err
	}
	var catalogs map[string][]string
	if err := json.Unmarshal(data, &catalogs); err != nil {
		return false, err
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return false, err
	}
	byID := map[string]toolset.Tool{}
	for _, t := range tools {
		byID[t.ID] = t
	}
	cache := arguments.NewCache(0)
	res := result{Levels: []*level{{Name: "compact"}, {Name: "second time"}, {Name: "full"}}, Tools: len(tools)}
	if err := res.examples(tools, cache); err != nil {
		return false, err
	}
	for i, c := range cases {
		// Formats are warnings: such a call is sent, and there is no error.
		if c.Verdict != "must_not_repair" || c.ValidatorMode == "assert_format" || o.quick && i%10 != 0 {
			continue
		}
		tool, ok := byID[c.ToolID]
		if !ok {
			return false, fmt.Errorf("%s: no tool %q in this set", c.ID, c.ToolID)
		}
		schema, err := cache.Compile(tool.InputSchema)
		if err != nil {
			return false, err
		}
		for n, l := range res.Levels {
			say := func() string {
				if c.Group == "toolname" {
					return arguments.ExplainName(c.ToolCalled, catalogs[tool.Project]).Text
				}
				return arguments.Explain(arguments.Failure{Tool: tool.Name, Description: tool.Description, Schema: schema, Arguments: c.Arguments, Repeats: n}).Text
			}
			text := say()
			if say() != text {
				res.Unstable++
			}
			tokens, _, err := codec.Encode(text)
			if err != nil {
				return false, err
			}
			l.add(c, text, len(tokens))
			if n == 0 && o.show == c.Kind {
				fmt.Fprintf(w, "%s (%d tokens)\n%s\n\n", c.ID, len(tokens), text)
			}
		}
	}
	for _, l := range res.Levels {
		l.finish()
	}
	compact := res.Levels[0]
	res.OK = compact.Mean <= 60 && compact.P95 <= 100 && 1000*compact.Hints >= 995*compact.Errors && res.InvalidExamples == 0 && res.Unstable == 0
	if o.json {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		return res.OK, enc.Encode(res)
	}
	return res.OK, res.print(w)
}

// examples makes one for every tool and has it checked.
func (r *result) examples(tools []toolset.Tool, cache *arguments.Cache) error {
	for _, t := range tools {
		schema, err := cache.Compile(t.InputSchema)
		if err != nil {
			return fmt.Errorf("%s: %w", t.ID, err)
		}
		example, ok := schema.Example()
		if !ok {
			continue
		}
		r.Examples++
		if len(schema.Check(example)) > 0 {
			r.InvalidExamples++
		}
	}
	return nil
}

func (l *level) add(c toolset.Case, text string, tokens int) {
	l.Errors++
	l.tokens = append(l.tokens, tokens)
	if hinted(c, text) {
		l.Hints++
		return
	}
	if l.Misses == nil {
		l.Misses = map[string]int{}
	}
	l.Misses[c.Kind]++
	l.missed = append(l.missed, c.ID)
}

func (l *level) finish() {
	if l.Errors == 0 {
		return
	}
	slices.Sort(l.tokens)
	sum := 0
	for _, n := range l.tokens {
		sum += n
	}
	l.Mean = float64(sum) / float64(l.Errors)
	l.P50, l.P95, l.Max = l.tokens[l.Errors/2], l.tokens[l.Errors*95/100], l.tokens[l.Errors-1]
}

func (r *result) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "errors\tcount\ttokens mean\tp50\tp95\tmax\thint present")
	for _, l := range r.Levels {
		fmt.Fprintf(tw, "%s\t%d\t%.1f\t%d\t%d\t%d\t%.2f %%\n", l.Name, l.Errors, l.Mean, l.P50, l.P95, l.Max, 100*float64(l.Hints)/float64(max(l.Errors, 1)))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "examples: %d of %d tools, %d invalid; errors that differ between runs: %d\n", r.Examples, r.Tools, r.InvalidExamples, r.Unstable)
	for _, l := range r.Levels {
		if len(l.missed) > 0 {
			fmt.Fprintf(w, "%s: hint missing in %v, such as %v\n", l.Name, l.Misses, l.missed[:min(len(l.missed), 8)])
		}
	}
	gate := "ok"
	if !r.OK {
		gate = "FAILED"
	}
	_, err := fmt.Fprintf(w, "gate (compact: mean <= 60, p95 <= 100, hint >= 99.5 %%; no invalid example): %s\n", gate)
	return err
}
