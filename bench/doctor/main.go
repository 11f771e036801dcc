// Command doctor shows mcpmend machines with something wrong on them and judges
// what it says and does: the cause, the healing, what it left alone. What a set-up
// looks like and how it is judged stands in README.md.
package main

import (
	"cmp"
	"context"
	"embed"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/program"
)

//go:embed testdata/*.txtar
var testdata embed.FS

func main() {
	o := options{Options: program.Flags("one set-up of each sort, and no other clients")}
	flag.StringVar(&o.only, "only", "", "set-ups whose name holds one of these, separated by commas")
	flag.BoolVar(&o.verbose, "v", false, "print what mcpmend said")
	flag.BoolVar(&o.list, "list", false, "name the set-ups and stop")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the secrets; 0 takes a new one")
	flag.IntVar(&o.parallel, "parallel", 4, "set-ups at a time")
	flag.StringVar(&o.with, "with", "", "other clients to ask: claude, gemini, opencode, codex, or all; \"none\" for none (default: all, none with --quick)")
	flag.StringVar(&o.update, "update", "", "write what heal made of the files into the set-ups in this folder; read the difference before you keep it")
	o.Main("doctor", func(ctx context.Context) (any, program.Verdict, error) {
		r, err := o.run(ctx, os.Stdout)
		switch {
		case err != nil || r == nil: // r is nil for --list
			return nil, program.Reached, err
		case r.Void:
			return r, program.Void, nil
		}
		return r, program.If(r.OK), nil
	})
}

type options struct {
	*program.Options
	verbose, list      bool
	only, with, update string
	seed               uint64
	parallel           int
}

// result is a whole run.
type result struct {
	Seed     uint64     `json:"seed"`
	Verdicts []*verdict `json:"setups"`
	Feats    []feat     `json:"feats,omitempty"`
	Totals   totals     `json:"totals"`
	OK       bool       `json:"ok"`
	Void     bool       `json:"void"`
}

func (o options) run(ctx context.Context, out io.Writer) (*result, error) {
	all, err := loadSetups(testdata)
	if err != nil {
		return nil, err
	}
	chosen := o.choose(all)
	if o.list {
		for _, s := range chosen {
			fmt.Fprintf(out, "%-36s %s\n", s.Name, strings.Join(s.About, " "))
		}
		return nil, nil
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no set-up is called like %q", o.only)
	}
	for o.seed == 0 {
		o.seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "doctor")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	t, err := newTools(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer t.release()
	others, err := o.others(ctx)
	if err != nil {
		return nil, err
	}
	r := &result{Seed: o.seed}
	r.Verdicts = o.examineAll(ctx, t, chosen, dir, others)
	if o.only == "" {
		// These measure time, so nothing else runs beside them.
		r.Feats = feats(ctx, t, dir, rand.New(rand.NewPCG(o.seed, 0)))
	}
	r.count()
	if o.update != "" {
		if err := update(o.update, r.Verdicts); err != nil {
			return nil, err
		}
	}
	return r, r.print(out, o.verbose)
}

func (o options) choose(all []*setup) []*setup {
	return slices.DeleteFunc(slices.Clone(all), func(s *setup) bool {
		if o.only != "" {
			return !slices.ContainsFunc(strings.Split(o.only, ","), func(part string) bool { return strings.Contains(s.Name, part) })
		}
		return o.Quick && !s.Quick
	})
}

func (o options) examineAll(ctx context.Context, t *tools, setups []*setup, dir string, others []otherTool) []*verdict {
	verdicts := make([]*verdict, len(setups))
	slots := make(chan struct{}, max(o.parallel, 1))
	var wg sync.WaitGroup
	// The slow ones first, so that the others pass the time.
	order := make([]int, len(setups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(setups[b].Slow), len(setups[a].Slow)) })
	for _, i := range order {
		s := setups[i]
		heals := s.Slow == "" || !o.Quick
		waits := s.Slow != "" && heals // and needs no room
		if !waits {
			slots <- struct{}{}
		}
		wg.Go(func() {
			if !waits {
				defer func() { <-slots }()
			}
			// Secrets depend on the seed and the set-up, not on who comes first.
			random := rand.New(rand.NewPCG(o.seed, uint64(i)+1))
			verdicts[i] = examine(ctx, t, s, filepath.Join(dir, fmt.Sprint(i)), random, others, heals)
			progress("%d of %d: %s", i+1, len(setups), s.Name)
		})
	}
	wg.Wait()
	progress("")
	return verdicts
}

// progress overwrites one line of a terminal; in a log it would be noise.
func progress(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r%-60s\r", fmt.Sprintf(format, args...))
	}
}

// update puts what heal wrote into the set-ups.
func update(dir string, verdicts []*verdict) error {
	for _, v := range verdicts {
		if len(v.update) == 0 {
			continue
		}
		name := filepath.Join(dir, v.Name+".txtar")
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, updated(data, v.update), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// feat is a promise that no set-up shows.
type feat struct {
	Name string  `json:"name"`
	OK   bool    `json:"ok"`
	Text string  `json:"text"`
	Secs float64 `json:"seconds"`
}

func timed(name string, f func() (string, error)) feat {
	start := time.Now()
	text, err := f()
	r := feat{Name: name, OK: err == nil, Text: text, Secs: time.Since(start).Seconds()}
	if err != nil {
		r.Text = strings.TrimSpace(text + " " + err.Error())
	}
	return r
}
