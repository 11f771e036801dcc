package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcpmend/mcpmend/bench/internal/interleave"
)

func TestCopiersPassEveryByteAndTheFloorWholeMessages(t *testing.T) {
	text := "{}\n" + strings.Repeat("x", 300<<10) + "\n\n" + `{"a":1}` + "\n"
	for name, read := range map[string]func(io.Reader) io.Reader{
		"at once":     func(r io.Reader) io.Reader { return r },
		"in halves":   iotest.HalfReader,
		"byte wise":   iotest.OneByteReader,
		"with an EOF": iotest.DataErrReader,
	} {
		for kind, copy := range map[string]copier{"copy": copyBytes, "floor": copyMessages} {
			var out lineWriter
			if err := copy(&out, read(strings.NewReader(text))); err != nil || out.String() != text {
				t.Errorf("%s, %s: %d bytes of %d, %v", kind, name, out.Len(), len(text), err)
			}
			if kind == "floor" && out.torn {
				t.Errorf("%s, %s: a write ended inside a message", kind, name)
			}
		}
	}
}

// lineWriter notes a write that does not end with a line.
type lineWriter struct {
	strings.Builder
	torn bool
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.torn = w.torn || p[len(p)-1] != '\n'
	return w.Builder.Write(p)
}

func TestEveryRequestHasAnIDOfItsOwn(t *testing.T) {
	r := newRequest(100)
	seen := map[string]bool{}
	for range 3 {
		m := string(r.fresh())
		if seen[m] || !strings.HasSuffix(m, "}}}") {
			t.Errorf("request %s: seen before, or damaged", m)
		}
		seen[m] = true
	}
}

func TestAQuickRunMissesAGoalOnlyBeyondDoubt(t *testing.T) {
	at := func(low, median float64) *report {
		ok := interleave.Estimate{Median: 1, Low: 1, High: 1}
		return &report{Cases: []*result{{Transport: "http", Size: "100 B", Ratios: map[string]interleave.Estimate{
			"mcpmend/itself": ok, "latency of both": ok, "mcpmend/bridge": ok,
			"mcpmend/floor": {Median: median, Low: low, High: median + 1},
		}}}}
	}
	for _, c := range []struct {
		quick       bool
		low, median float64
		missed      int
	}{
		{false, 1.2, 1.4, 0}, {false, 1.2, 1.6, 1}, {true, 1.2, 1.6, 0}, {true, 1.6, 1.8, 1},
	} {
		r := at(c.low, c.median)
		r.Quick = c.quick
		r.judge()
		if len(r.Missed) != c.missed {
			t.Errorf("quick %t, %.1f (from %.1f) × floor: missed %v, want %d", c.quick, c.median, c.low, r.Missed, c.missed)
		}
	}
}

func TestARunThatDiffersFromItselfIsVoid(t *testing.T) {
	r := &report{Cases: []*result{{Ratios: map[string]interleave.Estimate{
		"mcpmend/itself":  {Median: 1.11},
		"latency of both": {Median: 1},
	}}}}
	r.judge()
	if !r.Void {
		t.Errorf("a factor of 1.11 to itself: not void, %v", r.Missed)
	}
}
