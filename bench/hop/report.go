package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/interleave"
)

// Goals, as the project set them.
const (
	goalOverFloor   = 1.5      // CPU of mcpmend / CPU of the floor
	goalOverBridge  = 1.0 / 8  // CPU of mcpmend / CPU of the bridge, on stdio at 100 B
	goalAddedMicros = 25.0     // median latency added on stdio, at 100 B
	goalSession     = 20 << 10 // memory of one idle client session
	goalResident    = 15e6     // memory of one mcpmend run
)

// A report is the outcome of a run.
type report struct {
	Cases   []*result `json:"cases"`
	Memory  *memory   `json:"memory,omitempty"`
	Load    string    `json:"load"` // average of the last minute; others at work make a run void
	Quick   bool      `json:"quick"`
	Void    bool      `json:"void"`
	Missed  []string  `json:"missed"`
	Seconds float64   `json:"seconds"`
}

// A result is one transport with one size.
type result struct {
	Transport string                         `json:"transport"`
	Size      string                         `json:"size"`
	Bare      latency                        `json:"bareSDK"` // microseconds
	Ways      map[string]way                 `json:"ways"`
	Ratios    map[string]interleave.Estimate `json:"ratios"`
}

// A way is how the calls went.
type way struct {
	Latency latency             `json:"latency"`         // microseconds
	CPU     interleave.Estimate `json:"cpu"`             // of the gateway, microseconds per call
	Added   interleave.Estimate `json:"added,omitempty"` // to the median of direct, microseconds
	// AddedMin and AddedP99 are differences of the pooled figures.
	AddedMin float64 `json:"addedMin"`
	AddedP99 float64 `json:"addedP99"`
}

type latency struct {
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func latencyOf(all []time.Duration) latency {
	all = slices.Clone(all)
	slices.Sort(all)
	at := func(q float64) float64 { return micros(all[min(len(all)-1, int(q*float64(len(all))))]) }
	return latency{Min: at(0), P50: at(0.5), P99: at(0.99)}
}

func summarize(transport, size string, ways []*series, bare []time.Duration) *result {
	r := &result{Transport: transport, Size: size, Bare: latencyOf(bare), Ways: map[string]way{}}
	base := latencyOf(ways[direct].all)
	for i, s := range ways {
		l := latencyOf(s.all)
		r.Ways[wayNames[i]] = way{
			Latency: l, CPU: interleave.Median(s.cpu),
			Added:    interleave.Difference(s.p50, ways[direct].p50),
			AddedMin: l.Min - base.Min, AddedP99: l.P99 - base.P99,
		}
	}
	cpu := func(i int) []float64 { return ways[i].cpu }
	r.Ratios = map[string]interleave.Estimate{
		"mcpmend/copy":     interleave.Ratio(cpu(mcpmendWay), cpu(copyWay)),
		"mcpmend/floor":    interleave.Ratio(cpu(mcpmendWay), cpu(floorWay)),
		"mcpmend/bridge":   interleave.Ratio(cpu(mcpmendWay), cpu(bridgeWay)),
		"mcpmend/itself":   interleave.Ratio(cpu(mcpmendAgain), cpu(mcpmendWay)),
		"latency of both":  interleave.Ratio(ways[mcpmendAgain].p50, ways[mcpmendWay].p50),
		"latency to floor": interleave.Ratio(ways[mcpmendWay].p50, ways[floorWay].p50),
	}
	return r
}

// void says why a case cannot be believed, or "".
func (r *result) void() string {
	for _, self := range []string{"mcpmend/itself", "latency of both"} {
		if got := r.Ratios[self]; interleave.Void(got) {
			return fmt.Sprintf("mcpmend differs from itself by a factor of %.2f (%s)", got.Median, self)
		}
	}
	return ""
}

// judged is the figure that a goal is held against: the median, or in a quick run,
// which cannot see as sharply, the end of the interval that favours us.
func (r *report) judged(e interleave.Estimate) float64 {
	if r.Quick {
		return e.Low
	}
	return e.Median
}

// judge looks for goals that were missed, and whether the run can be believed.
func (r *report) judge() {
	miss := func(format string, args ...any) { r.Missed = append(r.Missed, fmt.Sprintf(format, args...)) }
	for _, c := range r.Cases {
		where := c.Transport + ", " + c.Size
		if why := c.void(); why != "" {
			r.Void = true
			miss("%s: void, %s", where, why)
			continue
		}
		if got := r.judged(c.Ratios["mcpmend/floor"]); got > goalOverFloor {
			miss("%s: CPU %.2f × the floor, goal %.1f", where, got, goalOverFloor)
		}
		// Two HTTP messages cost so much in net/http that even the floor is far above
		// an eighth of the bridge, and large results take their time anyway.
		if c.Size != sizes[0].name || c.Transport != stdioTransport.name {
			continue
		}
		if got := r.judged(c.Ratios["mcpmend/bridge"]); got > goalOverBridge {
			miss("%s: CPU 1/%.1f of the bridge, goal 1/%.0f", where, 1/got, 1/goalOverBridge)
		}
		if got := r.judged(c.Ways["mcpmend"].Added); got > goalAddedMicros {
			miss("%s: %.1f µs added at the median, goal %.0f", where, got, goalAddedMicros)
		}
	}
	if m := r.Memory; m != nil {
		if m.Session.Bytes > goalSession {
			miss("%.1f KiB for each idle session, goal %d", m.Session.Bytes/1024, goalSession>>10)
		}
		if float64(m.Resident) > goalResident {
			miss("%.1f MB for one mcpmend run, goal %.0f", float64(m.Resident)/1e6, goalResident/1e6)
		}
	}
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%d processors, load average %s at the start\n\n", runtime.NumCPU(), r.Load)
	for _, c := range r.Cases {
		fmt.Fprintf(w, "%s, %s results (bare go-sdk client: min %.0f, p50 %.0f, p99 %.0f µs)\n",
			c.Transport, c.Size, c.Bare.Min, c.Bare.P50, c.Bare.P99)
		fmt.Fprintf(w, "  %-14s %9s %9s %9s   %-26s %9s %9s   %s\n", "", "min µs", "p50", "p99", "added p50 [95 %]", "added min", "added p99", "CPU µs/call [95 %]")
		for _, name := range wayNames {
			v := c.Ways[name]
			added, cpu := "", ""
			if name != wayNames[direct] {
				added = fmt.Sprintf("%.1f [%.1f, %.1f]", v.Added.Median, v.Added.Low, v.Added.High)
				cpu = fmt.Sprintf("%.1f [%.1f, %.1f]", v.CPU.Median, v.CPU.Low, v.CPU.High)
			}
			fmt.Fprintf(w, "  %-14s %9.1f %9.1f %9.1f   %-26s %9.1f %9.1f   %s\n",
				name, v.Latency.Min, v.Latency.P50, v.Latency.P99, added, v.AddedMin, v.AddedP99, cpu)
		}
		floor, bridge, self := c.Ratios["mcpmend/floor"], c.Ratios["mcpmend/bridge"], c.Ratios["mcpmend/itself"]
		if why := c.void(); why != "" {
			fmt.Fprintf(w, "  VOID: %s\n", why)
		}
		fmt.Fprintf(w, "  CPU: %.2f × copy, %.2f × floor [%.2f, %.2f], 1/%.1f of the bridge [1/%.1f, 1/%.1f]; itself %.2f [%.2f, %.2f]\n\n",
			c.Ratios["mcpmend/copy"].Median, floor.Median, floor.Low, floor.High, 1/bridge.Median, 1/bridge.Low, 1/bridge.High, self.Median, self.Low, self.High)
	}
	if r.Memory != nil {
		r.Memory.print(w)
	}
	for _, text := range r.Missed {
		fmt.Fprintln(w, "missed:", text)
	}
	fmt.Fprintln(w, r.lastLine())
}

// loadAverage is that of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// lastLine has the figures one remembers.
func (r *report) lastLine() string {
	var parts []string
	for _, c := range r.Cases {
		parts = append(parts, fmt.Sprintf("%s %s %.2f×floor 1/%.0f×bridge %+.0f µs",
			c.Transport, c.Size, c.Ratios["mcpmend/floor"].Median, 1/c.Ratios["mcpmend/bridge"].Median, c.Ways["mcpmend"].Added.Median))
	}
	if m := r.Memory; m != nil {
		parts = append(parts, fmt.Sprintf("session %.1f KiB, run %.1f MB", m.Session.Bytes/1024, float64(m.Resident)/1e6))
	}
	verdict := fmt.Sprintf("%d goals missed", len(r.Missed))
	if r.Void {
		verdict = "VOID"
	}
	return fmt.Sprintf("hop: %s; %s; %.0f s", strings.Join(parts, "; "), verdict, r.Seconds)
}
