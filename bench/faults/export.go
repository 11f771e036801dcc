package main

import (
	"fmt"
	"html"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// write leaves the report in the files that were asked for.
func (b *bench) write() error {
	if err := b.Write(b.export()); err != nil {
		return err
	}
	if b.svgFile != "" {
		return os.WriteFile(b.svgFile, []byte(b.picture()), 0o644)
	}
	return nil
}

// exportedScore is a score with its times summed up.
type exportedScore struct {
	*oracle.Score
	TTD *exportedTimes `json:"ttd_ms,omitempty"`
	TTR *exportedTimes `json:"ttr_ms,omitempty"`
	Cut bool           `json:"cut_short,omitempty"`
}

type exportedTimes struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func exportTimes(d []time.Duration) *exportedTimes {
	if len(d) == 0 {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return &exportedTimes{len(d), ms(p(d, 50)), ms(p(d, 99)), ms(p(d, 100))}
}

func exportScore(s *oracle.Score, cut bool) *exportedScore {
	return &exportedScore{s, exportTimes(s.TTD), exportTimes(s.TTR), cut}
}

func (b *bench) export() map[string]any {
	var rows []map[string]any
	for _, r := range b.rows {
		row := map[string]any{"id": r.ID, "title": r.Title}
		if r.Pending != "" {
			row["not_run"] = r.Pending
		}
		scores, reasons := map[string]*exportedScore{}, map[string]string{}
		for name, c := range r.cells {
			if c.score == nil {
				reasons[name] = c.none
				continue
			}
			scores[name] = exportScore(c.score, c.cut)
		}
		row["systems"], row["none"] = scores, reasons
		rows = append(rows, row)
	}
	totals := map[string]*exportedScore{}
	for _, s := range b.systems {
		t := b.total(s.Name)
		t.TTD, t.TTR, _ = b.exits(s.Name)
		totals[s.Name] = exportScore(t, false)
	}
	return map[string]any{
		"seed": b.seed, "quick": b.Quick, "calls": b.calls, "took_s": time.Since(b.begun).Seconds(),
		"machine": fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		"rows":    rows, "totals": totals, "absent": b.absent, "void": b.void(), "summary": b.summary(),
	}
}

// The look of each verdict: the good ones calm, the others not. Labels say the
// same in words.
var looks = map[oracle.Verdict]struct{ fill, label string }{
	oracle.Correct:     {"#2f7d5b", "done once"},
	oracle.Clean:       {"#8fb8a5", "cleanly not done"},
	oracle.Honest:      {"#c9c4b5", "honestly unknown"},
	oracle.Phantom:     {"#5b1a8b", "phantom"},
	oracle.Misreported: {"#d9822b", "misreported"},
	oracle.Duplicate:   {"#c22f2f", "ran twice"},
	oracle.Hung:        {"#3a3a3a", "hung"},
}

// picture draws the outcomes of all faulted rows, one bar per system.
func (b *bench) picture() string {
	const left, width, bar, gap, top = 150, 620, 26, 16, 54
	var svg strings.Builder
	height := top + len(b.systems)*(bar+gap) + 64
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif" font-size="13">`+"\n", left+width+170, height)
	fmt.Fprintf(&svg, `<rect width="100%%" height="100%%" fill="#fff"/><text x="16" y="28" font-size="16" font-weight="600">What became of the calls when the server failed</text>`+"\n")
	y := top
	for _, s := range b.systems {
		t := b.total(s.Name)
		fmt.Fprintf(&svg, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-10, y+18, html.EscapeString(s.Name))
		x := float64(left)
		var wrong []string
		for _, v := range oracle.Verdicts {
			n := t.Verdicts[v]
			if n == 0 {
				continue
			}
			w := float64(width) * float64(n) / float64(t.Ops)
			fmt.Fprintf(&svg, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s: %d of %d</title></rect>`+"\n", x, y, max(w, 1), bar, looks[v].fill, looks[v].label, n, t.Ops)
			x += w
			if v == oracle.Phantom || v == oracle.Misreported || v == oracle.Duplicate || v == oracle.Hung {
				wrong = append(wrong, fmt.Sprintf("%s %s", thousands(n), looks[v].label))
			}
		}
		note := "nothing wrong"
		if len(wrong) > 0 {
			note = strings.Join(wrong, ", ")
		}
		fmt.Fprintf(&svg, `<text x="%d" y="%d" font-size="11" fill="#444">%s calls; %s</text>`+"\n", left, y+bar+12, thousands(t.Ops), note)
		y += bar + gap
	}
	x := 16
	for _, v := range oracle.Verdicts {
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d" font-size="12">%s</text>`+"\n", x, y+20, looks[v].fill, x+17, y+30, looks[v].label)
		x += 34 + 8*len(looks[v].label)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}
