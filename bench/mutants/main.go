// Command mutants asks whether the tests would notice if the code were wrong.
//
//	go run ./bench/mutants [--target doctor|path] [--n N] [--seed N] [--only TEXT] [--quick] [--json FILE]
//
// It changes one place at a time: negates a condition, drops a statement, swaps a
// constant, returns early. Which places is chosen by the seed. Each mutant is built and
// tested through an overlay, so the tree itself is never changed; the cheapest tests run
// first, and the first red one kills it. What survives is listed, and has to be killed by
// a better test or accepted with a reason in accepted.txt.
//
// A mutant that hangs is killed by time-out, as the tests of the tree take a sixth of the
// limit at most. One that does not compile says nothing and is replaced by the next one.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/mcpmend/mcpmend/bench/internal/program"
)

var (
	targetName = flag.String("target", "doctor", "what to change: "+targetNames())
	count      = flag.Int("n", 0, "how many mutants; 0 is as many as the goal of the target needs")
	seed       = flag.Uint64("seed", 1, "chooses the mutants")
	only       = flag.String("only", "", "try only those of the chosen mutants whose ID contains this `text`")
	jobs       = flag.Int("jobs", 2, "mutants at a time")
	list       = flag.Bool("list", false, "print all mutants of the target that there could be, and stop")
)

// quickGoal is what a handful of mutants and the cheapest tests have to reach.
const quickGoal = 0.5

func main() {
	o := program.Flags("one mutant of each group, and only the cheapest tests")
	o.Main("mutants", func(ctx context.Context) (any, program.Verdict, error) { return run(ctx, o.Quick) })
}

// figures are what a run comes to.
type figures struct {
	Target   string   `json:"target"`
	Seed     uint64   `json:"seed"`
	Killed   int      `json:"killed"`
	Survived int      `json:"survived"`
	Accepted int      `json:"survived_with_a_reason"`
	Same     int      `json:"equivalent"` // of those, which no test can kill
	Broken   int      `json:"not_compiling"`
	Share    float64  `json:"share_killed"` // of those that are not equivalent
	Goal     float64  `json:"goal"`
	Outdated []string `json:"outdated_reasons"`
	Mutants  []result `json:"mutants"`
}

func run(ctx context.Context, quick bool) (any, program.Verdict, error) {
	t, ok := targets[*targetName]
	if !ok {
		return nil, program.Failed, fmt.Errorf("no target %q; there are %s", *targetName, targetNames())
	}
	reasons, err := parseAccepted(acceptedText)
	if err != nil {
		return nil, program.Failed, err
	}
	root, err := treeRoot(ctx)
	if err != nil {
		return nil, program.Failed, err
	}
	n, goal := cmp.Or(*count, t.n), t.goal
	if quick {
		n, goal = cmp.Or(*count, len(t.groups)), quickGoal
		for i := range t.groups {
			t.groups[i].stages = t.groups[i].stages[:1]
		}
	}
	all, err := sequences(root, t, n, *seed)
	if err != nil {
		return nil, program.Failed, err
	}
	if *list {
		for _, s := range all {
			for _, m := range s.order {
				fmt.Printf("%s:%d: %s %s -> %s\n", m.File, m.Line, m.Operator, m.Before, m.After)
			}
		}
		return nil, program.Reached, nil
	}
	results, err := tryAll(ctx, root, all)
	f := sum(results, reasons)
	f.Target, f.Seed, f.Goal, f.Outdated = *targetName, *seed, goal, outdated(reasons, all, results)
	if err != nil {
		return f, program.Failed, err
	}
	return f, f.print(t.reasons && !quick, all), nil
}

func treeRoot(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/mcpmend/mcpmend").Output()
	if err != nil {
		return "", fmt.Errorf("finding the tree: %w", err)
	}
	return strings.TrimSpace(string(mod)), nil
}

// tryAll tries mutants of each group until enough of them compile.
func tryAll(ctx context.Context, root string, all []sequence) (results []result, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	j, err := newJudge(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	if err := j.combine(ctx, all); err != nil {
		return nil, err
	}
	for _, s := range all {
		// In waves, so that it depends on the seed alone which mutants are tried.
		for have, next := 0, 0; have < s.want && next < len(s.order); {
			wave := s.order[next:min(len(s.order), next+s.want-have)]
			next += len(wave)
			tried, err := tryWave(ctx, j, s, wave)
			results = append(results, tried...)
			if err != nil {
				return results, err
			}
			for _, r := range tried {
				if r.Compiles {
					have++
				}
			}
		}
	}
	if *only != "" && len(results) == 0 {
		return nil, fmt.Errorf("none of the chosen mutants has %q in its ID", *only)
	}
	return slices.DeleteFunc(results, func(r result) bool { return r.By == notAsked }), nil
}

// notAsked stands for a mutant that --only leaves out, which counts as one of the
// chosen ones all the same.
const notAsked = "not asked for"

func tryWave(ctx context.Context, j *judge, s sequence, wave []mutant) ([]result, error) {
	results := make([]result, len(wave))
	errs := make([]error, len(wave))
	turn := make(chan struct{}, max(1, *jobs))
	var wg sync.WaitGroup
	for i, m := range wave {
		if !strings.Contains(m.ID, *only) {
			results[i] = result{mutant: m, Compiles: true, By: notAsked}
			continue
		}
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			if results[i], errs[i] = j.try(ctx, s.name, m, s.stages); errs[i] == nil {
				fmt.Fprintf(os.Stderr, "%s:%d: %s: %s\n", m.File, m.Line, m.Operator, results[i].outcome())
			}
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

func (r result) outcome() string {
	switch {
	case !r.Compiles:
		return "does not compile"
	case r.Killed:
		return fmt.Sprintf("killed by %s (%.0f s)", r.By, r.Seconds)
	}
	return fmt.Sprintf("SURVIVED (%.0f s): %s -> %s", r.Seconds, r.Before, r.After)
}

func sum(results []result, reasons map[string]string) (f figures) {
	for i := range results {
		r := &results[i]
		switch {
		case !r.Compiles:
			f.Broken++
		case r.Killed:
			f.Killed++
		default:
			f.Survived++
			if r.Reason = reasons[r.ID]; r.Reason != "" {
				f.Accepted++
			}
			if strings.HasPrefix(r.Reason, "equivalent:") {
				f.Same++
			}
		}
	}
	if different := f.Killed + f.Survived - f.Same; different > 0 {
		f.Share = float64(f.Killed) / float64(different)
	}
	f.Mutants = results
	return f
}

func (f figures) print(reasons bool, all []sequence) program.Verdict {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "group\tmutants\tkilled\tsurvived\tnot compiling")
	for _, s := range all {
		own := slices.DeleteFunc(slices.Clone(f.Mutants), func(r result) bool { return r.Group != s.name })
		part := sum(own, nil)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", s.name, part.Killed+part.Survived, part.Killed, part.Survived, part.Broken)
	}
	w.Flush()
	for _, r := range f.Mutants {
		if r.Compiles && !r.Killed {
			fmt.Printf("survived: %s:%d: %s\n  %s\n  becomes: %s\n  reason: %s\n", r.File, r.Line, r.Operator, r.ID, cmp.Or(r.After, "nothing"), cmp.Or(r.Reason, "none"))
		}
	}
	for _, text := range f.Outdated {
		fmt.Printf("outdated in accepted.txt: %s\n", text)
	}
	verdict, v := "ok", program.Reached
	switch {
	case f.Killed+f.Survived == 0:
		verdict, v = "VOID: no mutant compiles", program.Void
	case f.Share < f.Goal:
		verdict, v = "FAILED: too few are noticed", program.Missed
	case reasons && f.Survived > f.Accepted:
		verdict, v = "FAILED: survivors without a reason", program.Missed
	case len(f.Outdated) > 0:
		verdict, v = "FAILED: reasons that are no longer true", program.Missed
	}
	fmt.Printf("mutants: %s, seed %d: %d of %d killed; %d survived, %d of them with a reason, %d equivalent; of the others %.0f %% killed (goal %.0f %%); %d did not compile; %s\n",
		f.Target, f.Seed, f.Killed, f.Killed+f.Survived, f.Survived, f.Accepted, f.Same, 100*f.Share, 100*f.Goal, f.Broken, verdict)
	return v
}
