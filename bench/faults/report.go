package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

func (b *bench) print(w io.Writer) {
	for _, r := range b.rows {
		for _, s := range b.systems {
			c := r.cells[s.Name]
			if c == nil {
				continue
			}
			fmt.Fprintf(w, "%s %-8s %+v\n", r.ID, s.Name, describe(c))
			if c.score != nil {
				for _, bad := range c.score.Bad {
					fmt.Fprintln(w, "      ", bad)
				}
			}
		}
	}
	fmt.Fprintln(w, since(b.begun))
}

func describe(c *cell) string {
	if c.score == nil {
		return c.none
	}
	s := c.score
	var parts []string
	for _, v := range oracle.Verdicts {
		if n := s.Verdicts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", v, n))
		}
	}
	parts = append(parts, fmt.Sprintf("faulted=%d healed=%d/%d frames=%d/%d leaked=%d blast=%d repeats=%d starts=%d ep=%d TTD=%v TTR=%v void=%q miss=%v",
		s.Faulted, s.Healed, s.Healable, s.Frames, s.Ops, s.Leaked, s.Blast, s.Permitted, s.Starts, s.Episodes, p(s.TTD, 99), p(s.TTR, 99), s.Void, s.Missed))
	return strings.Join(parts, " ")
}

// p is the nth percentile of some durations.
func p(d []time.Duration, n int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, len(d)*n/100)].Round(10 * time.Microsecond)
}

func (b *bench) write() error  { return nil }
func (b *bench) exitCode() int { return 0 }
