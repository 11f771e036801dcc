// Command explain measures the errors of package arguments: what they cost in
// tokens, how often they hold the hint that is needed, and whether the examples
// they show are valid, over the calls of a set that must not be mended.
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
	"github.com/tiktoken-go/tokenizer"
)

func main() {
	o := options{Options: program.Flags("every tenth case")}
	flag.StringVar(&o.tools, "tools", "../shared/data/repair/tools.jsonl", "tools, one JSON object per line")
	flag.StringVar(&o.cases, "cases", "../shared/data/repair/cases.jsonl", "cases, one JSON object per line")
	flag.StringVar(&o.catalogs, "catalogs", "", "tool names by project (default: catalogs.json beside the tools)")
	flag.StringVar(&o.show, "show", "", "print the texts for cases of this kind")
	o.Main("explain", func(context.Context) (any, program.Verdict, error) {
		r, err := o.run(os.Stdout)
		if err != nil {
			return nil, program.Failed, err
		}
		return r, program.If(r.OK), r.print(os.Stdout)
	})
}

type options struct {
	*program.Options
	tools, cases, catalogs, show string
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

func (o options) run(w io.Writer) (*result, error) {
	tools, err := toolset.Lines[toolset.Tool](o.tools)
	if err != nil {
		return nil, err
	}
	cases, err := toolset.Lines[toolset.Case](o.cases)
	if err != nil {
		return nil, err
	}
	if o.catalogs == "" {
		o.catalogs = filepath.Join(filepath.Dir(o.tools), "catalogs.json")
	}
	data, err := os.ReadFile(o.catalogs)
	if err != nil {
		return nil, err
	}
	var catalogs map[string][]string
	if err := json.Unmarshal(data, &catalogs); err != nil {
		return nil, err
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	byID := map[string]toolset.Tool{}
	for _, t := range tools {
		byID[t.ID] = t
	}
	cache := arguments.NewCache(0)
	res := &result{Levels: []*level{{Name: "compact"}, {Name: "second time"}, {Name: "full"}}, Tools: len(tools)}
	if err := res.examples(tools, cache); err != nil {
		return nil, err
	}
	for i, c := range cases {
		// Formats are warnings: such a call is sent, and there is no error.
		if c.Verdict != "must_not_repair" || c.ValidatorMode == "assert_format" || o.Quick && i%10 != 0 {
			continue
		}
		tool, ok := byID[c.ToolID]
		if !ok {
			return nil, fmt.Errorf("%s: no tool %q in this set", c.ID, c.ToolID)
		}
		schema, err := cache.Compile(tool.InputSchema)
		if err != nil {
			return nil, err
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
				return nil, err
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
	return res, nil
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
	c := r.Levels[0]
	_, err := fmt.Fprintf(w, "explain: compact errors of %.1f tokens in the mean and %d at p95, hint present in %.2f %%, %d invalid examples; goal of mean <= 60, p95 <= 100, hint >= 99.5 %%, none invalid: %s\n",
		c.Mean, c.P95, 100*float64(c.Hints)/float64(max(c.Errors, 1)), r.InvalidExamples, gate)
	return err
}
