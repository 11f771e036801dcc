// Command faults breaks MCP servers in every way we know and counts what
// becomes of the calls: done, cleanly failed, honestly unknown, or one of the
// things that must never happen. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/system"
	"github.com/mcpmend/mcpmend/bench/internal/program"
)

func main() {
	// The program is also its own server, baseline and control, so that one
	// binary is all there is to run.
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "ledger":
			os.Exit(ledger.Main(os.Args[2:]))
		case "direct":
			os.Exit(system.RunDirect(os.Args[2:]))
		case "naive":
			os.Exit(system.RunNaive(os.Args[2:]))
		}
	}
	os.Exit(run())
}

// Exit codes.
const (
	exitOK     = 0
	exitZeros  = 1 // mcpmend did what must never happen
	exitUsage  = 2
	exitVoid   = 3 // the run proves nothing
	exitMissed = 4 // mcpmend missed something else that a row asks for
)

func run() int {
	b := &bench{Options: program.Flags("a representative run in under 45 seconds")}
	var only, with string
	var suts multi
	flag.IntVar(&b.calls, "calls", 0, "faulted calls of mcpmend to aim for (default 100000; 2000 with --quick); the others get a fifth")
	flag.Int64Var(&b.seed, "seed", 1, "everything random follows from it")
	flag.StringVar(&only, "only", "", "run these scenarios only, such as A03,C05 or B")
	flag.StringVar(&b.systemNames, "systems", "", "run these systems only, such as direct,mcpmend")
	flag.StringVar(&b.mendBinary, "mcpmend", "", "the mcpmend binary (default: built from this repository)")
	flag.StringVar(&with, "with", "", "npm: install and include the pinned proxies that npm offers")
	flag.Var(&suts, "sut", "NAME=command ... of another system; {command} or {url} stands for the server")
	flag.StringVar(&b.svgFile, "svg", "", "draw outcomes per system into this file")
	flag.DurationVar(&b.soak, "soak", 0, "instead of the matrix, a random fault each second for so long")
	flag.IntVar(&b.jobs, "j", 8, "episodes at a time")
	flag.BoolVar(&b.keep, "keep", false, "keep the episodes' directories")
	flag.BoolVar(&b.list, "list", false, "list the scenarios and do nothing")
	flag.BoolVar(&b.verbose, "v", false, "say on stderr what is done")
	flag.Parse()
	b.only, b.npm = splitList(only), with == "npm"
	b.custom = suts

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := b.main(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults: error:", err)
		return exitUsage
	}
	return code
}

type multi []string

func (m *multi) String() string     { return strings.Join(*m, " ") }
func (m *multi) Set(s string) error { *m = append(*m, s); return nil }

func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// since is for progress on stderr.
func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Millisecond) }
