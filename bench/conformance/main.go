// Command conformance runs the official MCP conformance suite twice, directly
// against a server and through mcpmend in front of the same server, and names every
// check that went differently. Being a layer that nobody notices means that there
// are none.
//
//	go run ./bench/conformance [--quick] [--json FILE] [--client-binary COMMAND]
//
// The server is go-sdk's everything server, behind stdio and behind HTTP. The suite
// only speaks HTTP, so a server behind stdio is compared with the same server on HTTP.
//
// The client suite is run with go-sdk's everything client: as it is, and with mcpmend
// between it and the suite's mock servers; and with a client on the library's
// Transport, bench/testclient or the one named by --client-binary.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/program"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

var revisions = []string{"2025-11-25", "2026-07-28"}

func main() {
	// The suite starts one command for each client scenario; this program is its own wrapper.
	if gateway := os.Getenv(gatewayVariable); gateway != "" {
		os.Exit(clientThrough(gateway, os.Getenv(clientVariable), os.Args[len(os.Args)-1]))
	}
	o := program.Flags("only the server suite")
	clientBinary := flag.String("client-binary", "", "another client on mcpmend.Transport, called as COMMAND URL")
	verbose := flag.Bool("v", false, "list the checks that do not pass directly, too")
	o.Main("conformance", func(ctx context.Context) (any, program.Verdict, error) {
		report, err := run(ctx, o.Quick, *clientBinary)
		if err != nil {
			return nil, program.Failed, err
		}
		report.print(*verbose)
		return report, program.If(report.Differences == 0), nil
	})
}

// A report is the outcome of all comparisons.
type report struct {
	Suite       string       `json:"suite"`
	Comparisons []comparison `json:"comparisons"`
	Differences int          `json:"differences"` // those that are faults
	Seconds     float64      `json:"seconds"`
}

// A comparison is one pair of runs.
type comparison struct {
	Side        string       `json:"side"` // server or client
	Revision    string       `json:"revision"`
	Way         string       `json:"way"`
	Checks      int          `json:"checks"`
	Direct      int          `json:"direct"`  // passed directly
	Through     int          `json:"through"` // passed through
	Differences []difference `json:"differences"`

	notPassed []string
}

func run(ctx context.Context, quick bool, clientBinary string) (*report, error) {
	start := time.Now()
	r, err := rig.Open()
	if err != nil {
		return nil, err
	}
	bench, err := assemble(ctx, r)
	if err != nil {
		return nil, err
	}
	if clientBinary != "" {
		bench.onOurs = clientBinary
	}
	rep := &report{Suite: bench.version}
	for _, revision := range revisions {
		if err := bench.serverSide(ctx, rep, revision); err != nil {
			return nil, err
		}
		if quick {
			continue
		}
		if err := bench.clientSide(ctx, rep, revision); err != nil {
			return nil, err
		}
	}
	rep.Seconds = time.Since(start).Seconds()
	return rep, nil
}

func (r *report) add(side, revision, way string, direct, through outcomes) {
	c := comparison{
		Side: side, Revision: revision, Way: way,
		Checks: len(direct), Direct: direct.passes(), Through: through.passes(),
		Differences: compare(direct, through),
	}
	for check, out := range direct {
		if out.Status != passed {
			c.notPassed = append(c.notPassed, check.String()+" "+out.Status)
		}
	}
	for _, d := range c.Differences {
		if !d.Better && d.Explained == "" {
			r.Differences++
		}
	}
	r.Comparisons = append(r.Comparisons, c)
}

func (r *report) print(verbose bool) {
	fmt.Printf("conformance suite %s\n\n", r.Suite)
	fmt.Printf("%-7s %-11s %-28s %7s %7s %8s  %s\n", "side", "revision", "through", "checks", "direct", "through", "differences")
	for _, c := range r.Comparisons {
		fmt.Printf("%-7s %-11s %-28s %7d %7d %8d  %d\n", c.Side, c.Revision, c.Way, c.Checks, c.Direct, c.Through, len(c.Differences))
	}
	for _, c := range r.Comparisons {
		for _, d := range c.Differences {
			note := ""
			if d.Better {
				note = " (better)"
			}
			fmt.Printf("\n%s %s, %s: %s\n    direct %s, through %s%s\n", c.Side, c.Revision, c.Way, d.Check, d.Direct, d.Through, note)
			if d.Explained != "" {
				fmt.Printf("    no fault: %s\n", d.Explained)
			} else if d.Text != "" {
				fmt.Printf("    %s\n", strings.ReplaceAll(d.Text, "\n", "\n    "))
			}
		}
		if verbose && len(c.notPassed) > 0 {
			fmt.Printf("\n%s %s, not passed directly:\n    %s\n", c.Side, c.Revision, strings.Join(c.notPassed, "\n    "))
		}
	}
	fmt.Printf("\nconformance: %d comparisons, %d differences, %.0f s\n", len(r.Comparisons), r.Differences, r.Seconds)
}
