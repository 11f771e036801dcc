// Command hop measures what one hop through mcpmend costs, beside what it costs at
// least and what it costs if messages are decoded and encoded again.
//
//	go run ./bench/hop [--quick] [--json FILE] [--only stdio,http,memory]
//
// The same calls go to the same server in five ways:
//
//	direct   nothing in between
//	copy     a plain copy of the bytes
//	floor    a copy that finds the messages and passes on whole ones
//	mcpmend  mcpmend run
//	bridge   a client and a server of go-sdk, back to back
//
// Each gateway is a process of its own, and the CPU time is that of this process
// alone. All ways are measured in short blocks in turns (package interleave), mcpmend
// twice: a run in which it differs from itself by more than 10 % is void.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/program"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

func main() {
	if len(os.Args) > 1 && gateways[os.Args[1]] != nil {
		if err := gateways[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "hop:", err)
			os.Exit(int(program.Failed))
		}
		return
	}
	o := program.Flags("shorter blocks, no 1 MB results and fewer sessions; a goal is missed only if the interval excludes it")
	only := flag.String("only", "stdio,http,memory", "what to measure, separated by commas")
	o.Main("hop", func(ctx context.Context) (any, program.Verdict, error) {
		rep, err := run(ctx, o.Quick, strings.Split(*only, ","))
		rep.print(os.Stdout)
		if rep.Void { // the machine was too restless to say
			return rep, program.Void, err
		}
		return rep, program.If(len(rep.Missed) == 0), err
	})
}

// world holds the programs.
type world struct {
	quick   bool
	self    string // this program, which also is the floor and the bridge
	mcpmend string
	small   string
	plain   string // a server without an SDK, for many sessions
}

func run(ctx context.Context, quick bool, only []string) (*report, error) {
	rep := &report{Quick: quick, Load: loadAverage()}
	start := time.Now()
	defer func() {
		rep.Seconds = time.Since(start).Seconds()
		rep.judge()
	}()
	w, err := assemble(ctx, quick)
	if err != nil {
		return rep, err
	}
	for _, t := range []transport{stdioTransport, httpTransport} {
		if !slices.Contains(only, t.name) {
			continue
		}
		for _, size := range sizes {
			if quick && size.slow {
				continue
			}
			c, err := w.believable(ctx, t, size)
			if err != nil {
				return rep, fmt.Errorf("%s, %s: %w", t.name, size.name, err)
			}
			rep.Cases = append(rep.Cases, c)
		}
	}
	if slices.Contains(only, "memory") {
		rep.Memory, err = w.memory(ctx)
	}
	return rep, err
}

func assemble(ctx context.Context, quick bool) (*world, error) {
	r, err := rig.Open()
	if err != nil {
		return nil, err
	}
	w := &world{quick: quick}
	if w.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if w.small, err = r.Go(ctx, rig.Small); err != nil {
		return nil, err
	}
	if w.plain, err = r.Go(ctx, rig.Lossless); err != nil {
		return nil, err
	}
	w.mcpmend, err = r.Mcpmend(ctx)
	return w, err
}
