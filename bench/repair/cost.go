package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/bench/internal/program"
	"github.com/mcpmend/mcpmend/bench/internal/toolset"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// costRow compares what we spend on a set of calls with what the bare engine
// does: reading the same bytes and validating them, nothing else.
type costRow struct {
	Calls string `json:"calls"`
	Count int    `json:"count"`
	// EngineUS is validation alone, of values read beforehand.
	EngineUS float64 `json:"engine_us"`
	BareUS   float64 `json:"bare_us"`
	OursUS   float64 `json:"ours_us"`
	Ratio    float64 `json:"ratio"`
	Limit    float64 `json:"limit"`
	OK       bool    `json:"ok"`
}

// work is one call, ready for both.
type work struct {
	bare   *jsonschema.Schema
	schema *arguments.Schema
	call   arguments.Call
	value  any
}

func (o options) runCost(w io.Writer) (any, program.Verdict, error) {
	s, cases, _, err := o.load()
	if err != nil {
		return nil, program.Failed, err
	}
	valid, err := o.validCalls(s)
	if err != nil {
		return nil, program.Failed, err
	}
	prepare := preparer{scorer: s, bare: map[string]*jsonschema.Schema{}}
	var sound, broken []work
	for _, c := range valid {
		if err := prepare.add(&sound, c.ToolID, c.Arguments); err != nil {
			return nil, program.Failed, err
		}
	}
	for _, c := range cases {
		if c.Verdict == "pass_through" || c.Group == "toolname" {
			continue
		}
		if err := prepare.add(&broken, c.ToolID, c.Arguments); err != nil {
			return nil, program.Failed, err
		}
	}
	blocks := 15
	if o.Quick {
		blocks = 3
	}
	rows := []costRow{compare("valid", sound, blocks, 2), compare("broken, with repair", broken, blocks, 5)}
	ok := !slices.ContainsFunc(rows, func(r costRow) bool { return !r.OK })
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "calls\tcount\tvalidate only\tread and validate\tours\tratio\tlimit\tgate")
	for _, r := range rows {
		gate := "ok"
		if !r.OK {
			gate = "FAILED"
		}
		fmt.Fprintf(tw, "%s\t%d\t%.1f µs\t%.1f µs\t%.1f µs\t%.2f\t%.0f\t%s\n", r.Calls, r.Count, r.EngineUS, r.BareUS, r.OursUS, r.Ratio, r.Limit, gate)
	}
	if err := tw.Flush(); err != nil {
		return rows, program.Failed, err
	}
	_, err = fmt.Fprintf(w, "repair: %.2f times the bare engine for valid calls, %.2f for broken ones; %s\n",
		rows[0].Ratio, rows[1].Ratio, map[bool]string{true: "ok", false: "FAILED"}[ok])
	return rows, program.If(ok), err
}

type preparer struct {
	*scorer
	bare map[string]*jsonschema.Schema
}

func (p preparer) add(list *[]work, toolID string, args []byte) error {
	tool, ok := p.tools[toolID]
	if !ok {
		return fmt.Errorf("no tool %q in this set", toolID)
	}
	schema, err := p.cache.Compile(tool.InputSchema)
	if err != nil {
		return err
	}
	bare := p.bare[toolID]
	if bare == nil {
		if bare, err = compileBare(tool.InputSchema); err != nil {
			return err
		}
		p.bare[toolID] = bare
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return err
	}
	*list = append(*list, work{bare, schema, arguments.Call{Tool: tool.Name, Arguments: args, Risk: toolset.RiskOf(tool.Risk)}, value})
	return nil
}

// compileBare compiles a schema for the engine as it comes.
func compileBare(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("bench:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("bench:///schema.json")
}

// compare runs both over the same calls in turn, block by block, so that a busy
// machine is busy for both, and takes the median of the processor time.
func compare(name string, list []work, blocks int, limit float64) costRow {
	var engine, bare, ours []float64
	for i := range blocks + 1 {
		e := measure(list, func(w work) { _ = w.bare.Validate(w.value) })
		b := measure(list, func(w work) {
			if v, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.call.Arguments)); err == nil {
				_ = w.bare.Validate(v)
			}
		})
		o := measure(list, func(w work) { w.schema.Repair(w.call) })
		if i > 0 { // the first one warms up
			engine, bare, ours = append(engine, e), append(bare, b), append(ours, o)
		}
	}
	row := costRow{Calls: name, Count: len(list), EngineUS: median(engine), BareUS: median(bare), OursUS: median(ours), Limit: limit}
	row.Ratio = row.OursUS / row.BareUS
	row.OK = row.Ratio <= limit
	return row
}

// measure returns microseconds of processor time per call, garbage included.
func measure(list []work, f func(work)) float64 {
	runtime.GC()
	start := processorTime()
	for _, w := range list {
		f(w)
	}
	return float64(processorTime()-start) / float64(time.Microsecond) / float64(len(list))
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
