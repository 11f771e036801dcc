package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcpmend/mcpmend/bench/internal/interleave"
)

func TestFloorCopiesEveryByteAndFindsEveryMessage(t *testing.T) {
	text := "{}\n" + strings.Repeat("x", 300<<10) + "\n\n" + `{"a":1}` + "\n" + "half"
	for name, src := range map[string]io.Reader{
		"at once":     strings.NewReader(text),
		"in halves":   iotest.HalfReader(strings.NewReader(text)),
		"byte wise":   iotest.OneByteReader(strings.NewReader(text)),
		"with an EOF": iotest.DataErrReader(strings.NewReader(text)),
	} {
		var out strings.Builder
		messages, err := copyMessages(&out, src)
		if err != nil || messages != 4 || out.String() != text {
			t.Errorf("%s: %d messages and %d bytes, %v; want 4 and %d", name, messages, out.Len(), err, len(text))
		}
	}
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
