package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/faults/system"
)

// print writes the report: the table, the totals, what was asked for beyond
// the verdicts and not reached, what was not run, and one line with it all.
func (b *bench) print(w io.Writer) {
	b.printTable(w)
	fmt.Fprintln(w)
	b.printTotals(w)
	b.printMissed(w)
	b.printBad(w)
	b.printPending(w)
	fmt.Fprintln(w)
	fmt.Fprintln(w, b.summary())
}

const titleWidth = 52

func (b *bench) printTable(w io.Writer) {
	widths := map[string]int{}
	for _, s := range b.systems {
		widths[s.Name] = len(s.Name)
		for _, r := range b.rows {
			widths[s.Name] = max(widths[s.Name], utf8.RuneCountInString(r.cells[s.Name].String()))
		}
	}
	fmt.Fprintf(w, "%-4s %-*s", "", titleWidth, "shares in percent; what must never happen in calls")
	for _, s := range b.systems {
		fmt.Fprintf(w, "  %-*s", widths[s.Name], s.Name)
	}
	fmt.Fprintln(w)
	for _, r := range b.rows {
		if len(r.cells) == 0 || r.skipped() {
			continue
		}
		fmt.Fprintf(w, "%-4s %-*s", r.ID, titleWidth, shorten(r.Title, titleWidth))
		for _, s := range b.systems {
			text := r.cells[s.Name].String()
			fmt.Fprintf(w, "  %s%s", text, strings.Repeat(" ", widths[s.Name]-utf8.RuneCountInString(text)))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "ok: done once   no: cleanly not done   ?: honestly unknown   *: asked for more, see below")
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-1] + "…"
}

// skipped reports whether no system ran the row.
func (r *row) skipped() bool {
	for _, c := range r.cells {
		if c.score != nil {
			return false
		}
	}
	return true
}

// String is the cell of the table: shares of what may happen, counts of what
// may not.
func (c *cell) String() string {
	switch {
	case c == nil:
		return ""
	case c.score == nil || c.score.Episodes == 0 && c.score.Void == "":
		return "–"
	case c.score.Void != "":
		return "VOID"
	}
	s := c.score
	var parts []string
	share := func(name string, v oracle.Verdict) {
		if n := s.Verdicts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, int(math.Round(100*float64(n)/float64(s.Ops)))))
		}
	}
	share("ok", oracle.Correct)
	share("no", oracle.Clean)
	share("?", oracle.Honest)
	for _, bad := range []struct {
		name string
		n    int
	}{
		{"PHANTOM", s.Verdicts[oracle.Phantom]}, {"MISREPORTED", s.Verdicts[oracle.Misreported]},
		{"TWICE", s.Verdicts[oracle.Duplicate]}, {"HUNG", s.Verdicts[oracle.Hung]},
		{"CROSSED", s.CrossTalk}, {"LEAKED", s.Leaked},
		{"UNSAFE", s.Unsafe}, {"SECRETS", s.Secrets},
	} {
		if bad.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", bad.name, bad.n))
		}
	}
	if len(s.Missed) > 0 {
		parts = append(parts, "*")
	}
	if c.cut {
		parts = append(parts, "(cut short)")
	}
	return strings.Join(parts, " ")
}

// total adds up all rows of a system.
func (b *bench) total(name string) *oracle.Score {
	t := oracle.NewScore()
	for _, r := range b.rows {
		if c := r.cells[name]; c != nil && c.score != nil {
			t.Add(c.score)
		}
	}
	return t
}

// exits is how long it took to notice and to repair the end of a process.
func (b *bench) exits(name string) (ttd, ttr []time.Duration, timed bool) {
	for _, r := range b.rows {
		if c := r.cells[name]; r.ID == clock && c != nil && c.score != nil {
			return c.score.TTD, c.score.TTR, true
		}
	}
	return nil, nil, false
}

func (b *bench) printTotals(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, value func(*system.System, *oracle.Score) string) {
		fmt.Fprintf(t, "%s\t", name)
		for _, s := range b.systems {
			fmt.Fprintf(t, "%s\t", value(s, b.total(s.Name)))
		}
		fmt.Fprintln(t)
	}
	count := func(f func(*oracle.Score) int) func(*system.System, *oracle.Score) string {
		return func(_ *system.System, s *oracle.Score) string { return thousands(f(s)) }
	}
	line("", func(s *system.System, _ *oracle.Score) string { return s.Name })
	line("calls", count(func(s *oracle.Score) int { return s.Ops }))
	line("of them faulted", count(func(s *oracle.Score) int { return s.Faulted }))
	for _, v := range oracle.Verdicts {
		line(string(v), count(func(s *oracle.Score) int { return s.Verdicts[v] }))
	}
	line("cross-talk", count(func(s *oracle.Score) int { return s.CrossTalk }))
	line("leaked processes", count(func(s *oracle.Score) int { return s.Leaked }))
	line("unsafe corrections", count(func(s *oracle.Score) int { return s.Unsafe }))
	line("secrets told", count(func(s *oracle.Score) int { return s.Secrets }))
	line("failed by another's fault", count(func(s *oracle.Score) int { return s.Blast }))
	line("permitted repeats", count(func(s *oracle.Score) int { return s.Permitted }))
	line("repeats of a trusted lie", count(func(s *oracle.Score) int { return s.Lied }))
	line("healed, of what may be", func(_ *system.System, s *oracle.Score) string { return ratio(s.Healed, s.Healable) })
	line("unharmed, of what must be", func(_ *system.System, s *oracle.Score) string { return ratio(s.Unharmed, s.Exposed) })
	line("frames per call", func(_ *system.System, s *oracle.Score) string {
		return fmt.Sprintf("%.2f", float64(s.Frames)/float64(max(s.Ops, 1)))
	})
	line("exit noticed, p50 / p99", func(s *system.System, _ *oracle.Score) string {
		ttd, _, timed := b.exits(s.Name)
		return times(ttd, timed)
	})
	line("exit repaired, p50 / p99", func(s *system.System, _ *oracle.Score) string {
		_, ttr, timed := b.exits(s.Name)
		return times(ttr, timed)
	})
	t.Flush()
}

func times(d []time.Duration, timed bool) string {
	switch {
	case !timed:
		return "–"
	case len(d) == 0:
		return "never"
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e6) }
	return ms(p(d, 50)) + " / " + ms(p(d, 99)) + " ms"
}

func ratio(n, of int) string {
	if of == 0 {
		return "–"
	}
	// Never rounded up to a hundred.
	return fmt.Sprintf("%.1f %%", math.Floor(1000*float64(n)/float64(of))/10)
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ours are the systems whose shortcomings are listed one by one.
func (b *bench) ours() []*system.System {
	var mine []*system.System
	for _, s := range b.systems {
		if strings.HasPrefix(s.Name, "mcpmend") {
			mine = append(mine, s)
		}
	}
	return mine
}

func (b *bench) printMissed(w io.Writer) {
	for _, m := range b.missed() {
		fmt.Fprintln(w, "*", m)
	}
	for _, s := range b.ours() {
		for _, r := range b.rows {
			if c := r.cells[s.Name]; c != nil && c.tries > 1 {
				fmt.Fprintf(w, "%s %s: measured %d times because it was late; the last one counts\n", r.ID, s.Name, c.tries)
			}
		}
	}
}

// What mcpmend promises for all rows together. The times are those of the clock.
const (
	leastHealed = 0.99
	noticedIn   = 50 * time.Millisecond
	repairedIn  = 100 * time.Millisecond
)

// missed lists what was asked of mcpmend and not reached. One is enough to fail.
func (b *bench) missed() []string {
	var all []string
	for _, s := range b.ours() {
		for _, r := range b.rows {
			c := r.cells[s.Name]
			if c == nil || c.score == nil {
				continue
			}
			for _, m := range slices.Sorted(keys(c.score.Missed)) {
				all = append(all, fmt.Sprintf("%s %s: %s (%d times in %d episodes)", r.ID, s.Name, m, c.score.Missed[m], c.score.Episodes))
			}
			for _, late := range r.late(c.score) {
				all = append(all, fmt.Sprintf("%s %s: %s", r.ID, s.Name, late))
			}
		}
		if t := b.total(s.Name); float64(t.Healed) < leastHealed*float64(t.Healable) {
			all = append(all, fmt.Sprintf("%s: healed %s, less than %.0f %%", s.Name, ratio(t.Healed, t.Healable), 100*leastHealed))
		}
	}
	return all
}

// late says by what the clock was missed.
func (r *row) late(s *oracle.Score) []string {
	if r.ID != clock {
		return nil
	}
	var late []string
	for _, c := range []struct {
		what  string
		took  []time.Duration
		limit time.Duration
	}{{"noticed", s.TTD, noticedIn}, {"repaired", s.TTR, repairedIn}} {
		if got := p(c.took, 99); got > c.limit || len(c.took) == 0 {
			late = append(late, fmt.Sprintf("p99 of exits %s is %v, above %v", c.what, got.Round(100*time.Microsecond), c.limit))
		}
	}
	return late
}

func (b *bench) printBad(w io.Writer) {
	for _, s := range b.systems {
		for _, r := range b.rows {
			c := r.cells[s.Name]
			if c == nil || c.score == nil {
				continue
			}
			if c.score.Void != "" {
				fmt.Fprintf(w, "void: %s %s: %s\n", r.ID, s.Name, c.score.Void)
			}
			if !strings.HasPrefix(s.Name, "mcpmend") {
				continue
			}
			for _, bad := range c.score.Bad {
				fmt.Fprintf(w, "! %s %s: %s\n", r.ID, s.Name, bad)
			}
		}
	}
}

func (b *bench) printPending(w io.Writer) {
	for _, r := range b.rows {
		if r.Pending != "" {
			fmt.Fprintf(w, "not run: %s %s: %s\n", r.ID, r.Title, r.Pending)
			continue
		}
		for _, s := range b.systems {
			if c := r.cells[s.Name]; c != nil && c.score == nil && c.none != notOffered {
				fmt.Fprintf(w, "not run: %s on %s: %s\n", r.ID, s.Name, c.none)
			}
		}
	}
	fmt.Fprintln(w, "not run: part E (sign-in): its features are not there yet")
	if left := b.leftOut(); left != "" {
		fmt.Fprintf(w, "left out of this run: %s\n", left)
	}
	for _, a := range b.absent {
		fmt.Fprintf(w, "not tested: %s\n", a)
	}
}

// leftOut names the rows that exist and were not asked for.
func (b *bench) leftOut() string {
	var ids []string
	for _, r := range b.rows {
		if r.Pending == "" && len(r.cells) == 0 {
			ids = append(ids, r.ID)
		}
	}
	return strings.Join(ids, " ")
}

// summary is the last line of the report.
func (b *bench) summary() string {
	ran := 0
	for _, r := range b.rows {
		if len(r.cells) > 0 && !r.skipped() {
			ran++
		}
	}
	var parts []string
	for _, s := range b.systems {
		t := b.total(s.Name)
		text := fmt.Sprintf("%s: %s faulted calls, ", s.Name, thousands(t.Faulted))
		if z := t.Zeros(); len(z) == 0 {
			text += fmt.Sprintf("none wrong (95 %% bound %.1g)", bound(t.Faulted))
		} else {
			var bad []string
			for _, name := range slices.Sorted(keys(z)) {
				bad = append(bad, fmt.Sprintf("%d %s", z[name], name))
			}
			text += strings.Join(bad, ", ")
		}
		parts = append(parts, text+", healed "+ratio(t.Healed, t.Healable))
	}
	return fmt.Sprintf("faults: %d rows; %s; seed %d, %v%s", ran, strings.Join(parts, "; "), b.seed, since(b.begun), b.verdict())
}

// bound is the upper end of the 95 % interval (Clopper and Pearson) for a rate
// of which n trials showed nothing.
func bound(n int) float64 {
	if n == 0 {
		return 1
	}
	return 1 - math.Pow(0.05, 1/float64(n))
}

func (b *bench) verdict() string {
	switch b.exitCode() {
	case exitVoid:
		return "; VOID: " + b.void()
	case exitZeros:
		return "; FAILED: mcpmend did what must never happen"
	case exitMissed:
		return fmt.Sprintf("; FAILED: missed %d", len(b.missed()))
	}
	return ""
}

// void says why the run proves nothing, "" when it does.
func (b *bench) void() string {
	if b.interrupted {
		return "interrupted"
	}
	naiveRan := false
	for _, s := range b.systems {
		for _, r := range b.rows {
			c := r.cells[s.Name]
			if c == nil || c.score == nil {
				continue
			}
			if s.Ours && c.score.Void != "" {
				return fmt.Sprintf("%s on %s: %s", r.ID, s.Name, c.score.Void)
			}
			if r.NoFault && s.Ours && c.score.Verdicts[oracle.Correct] != c.score.Ops {
				return fmt.Sprintf("the control without a fault failed on %s", s.Name)
			}
			naiveRan = naiveRan || s.Name == "naive" && r.catchesNaive()
		}
	}
	if naiveRan && b.total("naive").Verdicts[oracle.Duplicate] == 0 {
		return "the proxy that always tries again was not caught running a tool twice"
	}
	return ""
}

// catchesNaive reports whether the row runs tools twice if anything does.
func (r *row) catchesNaive() bool {
	return slices.Contains([]string{"A03", "A04", "C03", "C07", "D05"}, r.ID)
}

// exitCode puts what went wrong before what proves nothing: a row whose fault did not
// strike must not hide a call that ran twice in another.
func (b *bench) exitCode() int {
	if b.interrupted {
		return exitVoid
	}
	for _, s := range b.ours() {
		if len(b.total(s.Name).Zeros()) > 0 {
			return exitZeros
		}
	}
	switch {
	case len(b.missed()) > 0:
		return exitMissed
	case b.void() != "":
		return exitVoid
	}
	return exitOK
}

// p is the nth percentile of some durations.
func p(d []time.Duration, n int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, len(d)*n/100)]
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
