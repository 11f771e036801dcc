// Command parity asks servers the same questions directly and through mcpmend, and
// compares the answers byte for byte.
//
//	go run ./bench/parity [--quick] [--only lossless,hostile] [--json FILE]
//
// Parts:
//
//	lossless    a server whose messages are legal and easily damaged
//	everything  every tool of the reference server that has one of each kind
//	servers     the reference servers filesystem, memory and sequential-thinking
//	inspector   MCP Inspector's command line
//	hostile     a server that writes what no server should
//	cycles      start and stop, a thousand times: nothing is left behind
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/program"
)

// A part is one question, asked in several ways.
type part struct {
	name string
	run  func(context.Context, *world) ([]finding, error)
}

var parts = []part{
	{"lossless", lossless},
	{"everything", everything},
	{"servers", servers},
	{"inspector", inspector},
	{"hostile", hostile},
	{"cycles", cycles},
}

// A finding is the result of one part in one way.
type finding struct {
	Part     string   `json:"part"`
	Way      string   `json:"way"`
	Compared int      `json:"compared"` // answers, kinds of junk, or cycles
	Note     string   `json:"note,omitempty"`
	Wrong    []string `json:"wrong,omitempty"`
}

func main() {
	o := program.Flags("fewer cycles and no lines of 1 GiB; under a minute")
	only := flag.String("only", "", "the parts to run, separated by commas")
	o.Main("parity", func(ctx context.Context) (any, program.Verdict, error) {
		found, err := run(ctx, o.Quick, *only)
		wrong := 0
		for _, f := range found {
			wrong += len(f.Wrong)
		}
		return found, program.If(wrong == 0 && len(found) > 0), err
	})
}

// run prints each finding as it comes, and their sum.
func run(ctx context.Context, quick bool, only string) (found []finding, err error) {
	start := time.Now()
	w, err := newWorld(ctx, quick)
	if err != nil {
		return nil, err
	}
	wrong := 0
	for _, p := range parts {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		results, err := p.run(ctx, w)
		if err != nil {
			return found, fmt.Errorf("%s: %w", p.name, err)
		}
		for _, f := range results {
			f.Part = p.name
			found = append(found, f)
			wrong += len(f.Wrong)
			f.print()
		}
	}
	fmt.Printf("\nparity: %d comparisons, %d wrong, %.0f s\n", len(found), wrong, time.Since(start).Seconds())
	return found, nil
}

// shown is how many differences of one finding are printed.
const shown = 5

func (f finding) print() {
	fmt.Printf("%-10s  %-44s %5d compared, %d wrong", f.Part, f.Way, f.Compared, len(f.Wrong))
	if f.Note != "" {
		fmt.Printf("  (%s)", f.Note)
	}
	fmt.Println()
	for i, text := range f.Wrong {
		if i == shown {
			fmt.Printf("    and %d more\n", len(f.Wrong)-i)
			break
		}
		fmt.Printf("    %s\n", strings.ReplaceAll(text, "\n", "\n    "))
	}
}
