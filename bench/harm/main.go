// Command harm measures the promise "never worse than direct": situations in which a
// bare client succeeds, each played directly and through mcpmend in the same run.
//
//	go run ./bench/harm [--quick] [--only ID,...] [--list] [--binary FILE] [--json FILE]
//
// A situation is one function. It is given either the server itself or mcpmend in front
// of it, does not know which, and says whether the client got everything. The goal: what
// succeeds directly succeeds through mcpmend, within 1.1 × the time + 100 ms. A situation
// that fails directly proves nothing here: it is void, and that is said.
//
// Most situations are waits and are played at the same time, both sides at once. Those that
// use the processor are played one after another while the others wait, directly first. One
// that is a little late, or void, is played again with the machine to itself, up to twice,
// since other load can make it so; one that lost something is not.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/program"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == asDebugger {
		if err := debug(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	o := program.Flags("shorter waits where they show the same, and no situation that needs a long one; under 45 s")
	only := flag.String("only", "", "the situations to play, as beginnings of their `ids`, separated by commas")
	list := flag.Bool("list", false, "list the situations")
	binary := flag.String("binary", "", "the mcpmend to measure, a `file`; otherwise it is built from this tree")
	o.Main("harm", func(ctx context.Context) (any, program.Verdict, error) {
		chosen := choose(situations(), *only, o.Quick)
		if *list {
			for _, s := range chosen {
				fmt.Printf("%-22s %s (%s)\n", s.id, s.name, s.server)
			}
			return nil, program.Reached, nil
		}
		if len(chosen) == 0 {
			return nil, program.Failed, errors.New("no such situation; see --list")
		}
		return run(ctx, chosen, o.Quick, *only == "", *binary)
	})
}

// choose keeps the situations that begin with one of the words, and in a quick run those
// that are part of it unless they are named.
func choose(all []situation, only string, quick bool) []situation {
	return slices.DeleteFunc(all, func(s situation) bool {
		if only == "" {
			return quick && s.fullOnly
		}
		return !slices.ContainsFunc(strings.Split(only, ","), func(word string) bool { return strings.HasPrefix(s.id, word) })
	})
}

// figures are what a run comes to.
type figures struct {
	Held    int      `json:"held"`
	Missed  int      `json:"missed"`
	Void    int      `json:"void"`
	Seconds float64  `json:"seconds"`
	Rows    []result `json:"situations"`
}

// enough is how many situations a full run must decide to prove anything.
const enough = 40

func run(ctx context.Context, chosen []situation, quick, all bool, binary string) (*figures, program.Verdict, error) {
	began := time.Now()
	w, err := newWorld(ctx, quick, binary)
	if err != nil {
		return nil, program.Failed, err
	}
	defer w.close()
	fmt.Printf("%-22s %9s %9s\n", "situation", "direct", "through")
	f := &figures{Rows: w.playAll(ctx, chosen)}
	if ctx.Err() != nil {
		return f, program.Failed, ctx.Err()
	}
	f.count(time.Since(began))
	fmt.Printf("\nharm: %d situations: %d held, %d missed, %d void; %.0f s\n", len(f.Rows), f.Held, f.Missed, f.Void, f.Seconds)
	switch {
	case f.Missed > 0:
		return f, program.Missed, nil
	case all && !quick && f.Held < enough, f.Held <= f.Void:
		return f, program.Void, nil
	}
	return f, program.Reached, nil
}

// playAll plays the waits together and, while they wait, the others one by one. What is
// unsure then is played again with the machine to itself. Results are in the order of the
// situations.
func (w *world) playAll(ctx context.Context, chosen []situation) []result {
	results := make([]result, len(chosen))
	first := func(i int, together bool) {
		if results[i] = w.play(ctx, &chosen[i], together); !results[i].unsure() {
			results[i].print()
		}
	}
	var together, alone []int
	for i, s := range chosen {
		if s.alone {
			alone = append(alone, i)
		} else {
			together = append(together, i)
		}
	}
	// The longest first. Starting is what takes the processor, so the next waits until one is open.
	slices.SortStableFunc(together, func(a, b int) int { return cmp.Compare(chosen[b].waits(w.quick), chosen[a].waits(w.quick)) })
	var wg sync.WaitGroup
	for _, i := range together {
		s := &chosen[i]
		s.opened = make(chan struct{}, 2)
		wg.Go(func() { first(i, true) })
		if !s.slowStart {
			s.awaitOpen(ctx)
		}
	}
	for _, i := range alone {
		first(i, false)
	}
	wg.Wait()
	for i := range chosen {
		if !results[i].unsure() {
			continue
		}
		for ctx.Err() == nil && results[i].unsure() && results[i].Tries < tries {
			before := results[i].Tries
			results[i] = w.play(ctx, &chosen[i], false)
			results[i].Tries += before
		}
		results[i].print()
	}
	return results
}

// tries are for one that is late or void.
const tries = 3

// awaitOpen waits until both sides are connected, or have failed to be.
func (s *situation) awaitOpen(ctx context.Context) {
	patience := time.After(20 * time.Second)
	for range 2 {
		select {
		case <-s.opened:
		case <-patience:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (f *figures) count(took time.Duration) {
	f.Seconds = took.Seconds()
	for _, r := range f.Rows {
		switch r.Verdict {
		case held:
			f.Held++
		case void:
			f.Void++
		default:
			f.Missed++
		}
	}
}

// print writes the line of a situation that is decided.
func (r *result) print() {
	through := fmt.Sprintf("%7.2f s", r.Through)
	if r.Verdict == void {
		through = ""
	}
	why := ""
	if r.Why != "" {
		why = fmt.Sprintf("%44s  %s\n", "", r.Why)
	}
	// One write, since several may end at once.
	fmt.Printf("%-22s %7.2f s %9s  %-7s %s (%s)\n%s", r.ID, r.Direct, through, r.Verdict, r.Name, r.Server, why)
}
