// Package program is what all programs under bench do alike: they take --quick and
// --json FILE, print a table and one last line with their figures, can be interrupted,
// and say by their exit code what the run has shown.
package program

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// A Verdict is what a run has shown, and its exit code.
type Verdict int

// The verdicts.
const (
	Reached Verdict = 0
	Missed  Verdict = 1 // a goal was not reached
	Failed  Verdict = 2 // the run could not be made
	Void    Verdict = 3 // it was made, and proves nothing
)

// If is Reached or Missed.
func If(reached bool) Verdict {
	if reached {
		return Reached
	}
	return Missed
}

// Options are the flags that all programs have.
type Options struct {
	Quick bool
	json  string
}

// Flags adds the flags; quick says what is left out then. Parse them with flag.Parse.
func Flags(quick string) *Options {
	var o Options
	flag.BoolVar(&o.Quick, "quick", false, quick)
	flag.StringVar(&o.json, "json", "", "write the figures to this `file`, too; - is standard output")
	return &o
}

// Main parses the flags, runs the program and exits. What run returns is written as
// JSON if that was asked for, even after an error: what was measured before is worth
// seeing. run prints its own table.
func (o *Options) Main(name string, run func(context.Context) (figures any, v Verdict, err error)) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	figures, v, err := run(ctx)
	stop()
	if figures != nil {
		err = errors.Join(err, o.Write(figures))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", name, err)
		v = Failed
	}
	os.Exit(int(v))
}

// Write writes the figures where --json says, if it says so.
func (o *Options) Write(figures any) error {
	if o.json == "" {
		return nil
	}
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if o.json == "-" {
		_, err = os.Stdout.Write(data)
		return err
	}
	return os.WriteFile(o.json, data, 0o644)
}
