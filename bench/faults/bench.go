package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/faults/system"
	"github.com/mcpmend/mcpmend/bench/internal/program"
)

// bench is one run of the benchmark.
type bench struct {
	*program.Options
	calls       int
	seed        int64
	only        []string
	systemNames string
	mendBinary  string
	npm         bool
	custom      []string
	svgFile     string
	soak        time.Duration
	jobs        int
	keep        bool
	list        bool
	verbose     bool
	interrupted bool

	self    string
	dir     string
	begun   time.Time
	systems []*system.System
	absent  []string // systems that could not be had, with the reason
	rows    []*row
}

// row is a scenario with its score on each system.
type row struct {
	Scenario
	cells map[string]*cell
}

type cell struct {
	score *oracle.Score
	none  string // why there is no score
	cut   bool   // not all episodes were played
	tries int    // how often a timed row was measured
}

// enoughHung unanswered calls in a cell end it.
const enoughHung = 200

// notOffered is why a system is not tested in a row that it has no transport for.
const notOffered = "not offered by this system"

func (b *bench) main(ctx context.Context) (int, error) {
	b.begun = time.Now()
	if b.list {
		b.printList()
		return exitOK, nil
	}
	if b.calls == 0 {
		b.calls = 100_000
		if b.Quick {
			b.calls = 2000
		}
	}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return 0, err
	}
	if b.dir, err = scratch(); err != nil {
		return 0, err
	}
	if !b.keep {
		defer os.RemoveAll(b.dir)
	}
	defer os.Remove(memoryCgroup()) // if a row made one
	if err := b.findSystems(ctx); err != nil {
		return 0, err
	}
	if b.soak > 0 {
		return b.runSoak(ctx)
	}
	b.runMatrix(ctx)
	b.interrupted = ctx.Err() != nil
	b.print(os.Stdout)
	if err := b.write(); err != nil {
		return 0, err
	}
	return b.exitCode(), nil
}

// scratch is where episodes keep their books: in memory if possible, because
// the ledger syncs every line, and what must survive here is a process's
// death and not the machine's.
func scratch() (string, error) {
	for _, parent := range []string{"/dev/shm", ""} {
		if dir, err := os.MkdirTemp(parent, "faults-"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "faults-")
}

func (b *bench) selected(s Scenario) bool {
	if len(b.only) > 0 {
		return slices.ContainsFunc(b.only, func(p string) bool { return strings.HasPrefix(s.ID, p) })
	}
	return !b.Quick || s.Quick
}

// plays reports whether a system runs a row. How far annotations are trusted
// makes a difference only in the bulk rows, and in a quick run a few must do.
func (b *bench) plays(s Scenario, sys *system.System) bool {
	if b.Quick && (s.Timed || s.Slow) {
		return sys.Name == "mcpmend" // it is the only one with a promise to keep there
	}
	if sys.Trust == oracle.TrustNone {
		return true
	}
	if b.Quick {
		return slices.Contains([]string{"Z00", "A03", "A04", "C07", "D05"}, s.ID)
	}
	return s.Bulk
}

// job is one episode to be played.
type job struct {
	row *row
	sys *system.System
	n   int
}

// runMatrix plays every selected scenario on every system. Rows that mostly
// wait have workers of their own, so that they do not hold up the others.
func (b *bench) runMatrix(ctx context.Context) {
	var fast, slow, foreign, timed []job
	for _, s := range matrix() {
		r := &row{Scenario: s, cells: map[string]*cell{}}
		b.rows = append(b.rows, r)
		if !b.selected(s) {
			continue
		}
		why := s.Pending
		if why == "" && s.Needs != nil {
			why = s.Needs()
		}
		for _, sys := range b.systems {
			if !b.plays(s, sys) {
				continue
			}
			if why != "" {
				r.cells[sys.Name] = &cell{none: why}
				continue
			}
			r.cells[sys.Name] = &cell{score: oracle.NewScore()}
			for n := range b.episodes(s, sys) {
				switch j := (job{r, sys, n}); {
				case !sys.Ours:
					foreign = append(foreign, j)
				case s.Timed:
					timed = append(timed, j)
				case s.Slow:
					slow = append(slow, j)
				default:
					fast = append(fast, j)
				}
			}
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	work := func(jobs []job, workers int) {
		queue := make(chan job)
		for range workers {
			wg.Go(func() {
				for j := range queue {
					b.playOne(ctx, j, &mu)
				}
			})
		}
		wg.Go(func() {
			defer close(queue)
			for _, j := range jobs {
				select {
				case queue <- j:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	work(fast, b.jobs)
	work(slow, 4*b.jobs)
	wg.Wait()
	// Some of these need a second of processor time just to start; with many of
	// them at once, calls would be late for no fault of theirs.
	work(foreign, max(b.jobs/2, 1))
	wg.Wait()
	work(timed, 1)
	wg.Wait()
	for _, r := range b.rows {
		for _, sys := range b.ours() {
			b.measureAgain(ctx, r, sys, timed, &mu)
		}
	}
}

// tries are for a timed row that is late: other load on the machine can make it so.
const tries = 3

// measureAgain plays a timed row once more while it is late, and nothing but late.
func (b *bench) measureAgain(ctx context.Context, r *row, sys *system.System, timed []job, mu *sync.Mutex) {
	c := r.cells[sys.Name]
	if !r.Timed || c == nil || c.score == nil {
		return
	}
	for c.tries = 1; c.tries < tries && ctx.Err() == nil; c.tries++ {
		if len(c.score.Missed) == 0 && len(r.late(c.score)) == 0 || len(c.score.Zeros()) > 0 || c.score.Void != "" {
			return
		}
		c.score = oracle.NewScore()
		for _, j := range timed {
			if j.row == r && j.sys == sys {
				b.playOne(ctx, j, mu)
			}
		}
	}
}

func (b *bench) playOne(ctx context.Context, j job, mu *sync.Mutex) {
	c := j.row.cells[j.sys.Name]
	mu.Lock()
	// A system that leaves everyone waiting need not be asked for hours.
	skip := c.score == nil || c.score.Verdicts[oracle.Hung] >= enoughHung
	if skip && c.score != nil {
		c.cut = true
	}
	mu.Unlock()
	if skip {
		return
	}
	begin := time.Now()
	s, err := b.play(ctx, j.row.Scenario, j.sys, j.n)
	mu.Lock()
	defer mu.Unlock()
	if b.verbose {
		fmt.Fprintf(os.Stderr, "%v %s %s episode %d took %v\n", since(b.begun), j.row.ID, j.sys.Name, j.n, since(begin))
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errNotOffered):
		c.none, c.score = notOffered, nil
	case err != nil && !j.sys.Ours:
		c.none, c.score = "did not start: "+err.Error(), nil
	case err != nil:
		c.score.Void = fmt.Sprintf("episode %d: %v", j.n, err)
	default:
		c.score.Add(s)
	}
}

// episodes is how often a scenario is played on a system: bulk rows share the
// calls that were asked for, the others need few, and so do foreign systems.
func (b *bench) episodes(s Scenario, sys *system.System) int {
	if !s.Bulk || !sys.Ours {
		return len(s.Eras) * max(s.Variants, 1)
	}
	rows := 0
	for _, o := range matrix() {
		if o.Bulk && b.selected(o) {
			rows++
		}
	}
	calls := b.calls
	if sys.Name != "mcpmend" {
		calls /= 5 // the promise is mcpmend's; the others stand beside it
	}
	n := calls / rows / s.Hits
	return max(n/len(s.Eras), s.Variants, 1) * len(s.Eras)
}

func (b *bench) printList() {
	for _, s := range matrix() {
		fmt.Printf("%s  %s", s.ID, s.Title)
		if s.Pending != "" {
			fmt.Printf(" (pending: %s)", s.Pending)
		}
		fmt.Println()
	}
}
