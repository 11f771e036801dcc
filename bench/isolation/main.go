// Command isolation asks whether one bad server slows the good ones that are
// guarded in the same process.
//
//	go run ./bench/isolation [--quick] [--json FILE]
//
// Twenty servers run behind guards of one process. In half of the blocks one of
// them is bad in turn: it crashes at every call, is stopped by a signal, or cannot
// be started. The other nineteen are called all the while, and the 99th percentile
// of their latency is compared with blocks in which all twenty are well. Blocks of
// both kinds alternate; a third kind repeats the first, and if those two differ the
// run is void. Latency on two cores is noisy in the tail, so a block pools the calls
// of all nineteen.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/interleave"
	"github.com/mcpmend/mcpmend/bench/internal/program"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

const (
	servers = 20
	goal    = 1.10
)

func main() {
	o := program.Flags("fewer and shorter blocks")
	o.Main("isolation", func(ctx context.Context) (any, program.Verdict, error) {
		f, v, err := run(ctx, o.Quick)
		return f, v, err
	})
}

// figures are what a run comes to.
type figures struct {
	P99      interleave.Estimate `json:"p99_ratio"`
	P50      interleave.Estimate `json:"p50_ratio"`
	Self     interleave.Estimate `json:"p99_ratio_to_itself"`
	Calls    int                 `json:"calls"`
	Failures int                 `json:"failures_of_good_servers"`
	Void     bool                `json:"void"`
}

func run(ctx context.Context, quick bool) (f figures, v program.Verdict, err error) {
	r, err := rig.Open()
	if err != nil {
		return f, program.Failed, err
	}
	small, err := r.Go(ctx, rig.Small)
	if err != nil {
		return f, program.Failed, err
	}
	rounds, block := 30, 1500*time.Millisecond
	if quick {
		rounds, block = interleave.MinRounds, 400*time.Millisecond
	}
	f, err = measure(ctx, small, rounds, block)
	if err != nil {
		return f, program.Failed, err
	}
	fmt.Printf("%d calls to %d good servers, %d rounds\n", f.Calls, servers-1, rounds)
	fmt.Printf("p50 with a bad neighbour / without: %.3f (%.3f to %.3f)\n", f.P50.Median, f.P50.Low, f.P50.High)
	fmt.Printf("p99 with a bad neighbour / without: %.3f (%.3f to %.3f)\n", f.P99.Median, f.P99.Low, f.P99.High)
	fmt.Printf("p99 without / without:              %.3f (%.3f to %.3f)\n", f.Self.Median, f.Self.Low, f.Self.High)
	verdict := "ok"
	switch {
	case f.Failures > 0:
		verdict, v = "FAILED: calls to good servers failed", program.Missed
	case f.Void:
		verdict, v = "VOID: the control differs from itself", program.Void
	case f.P99.Low > goal:
		verdict, v = "FAILED: the bad neighbour is felt", program.Missed
	}
	fmt.Printf("isolation: p99 ratio %.3f, p50 ratio %.3f, control %.3f, %d failures; %s\n", f.P99.Median, f.P50.Median, f.Self.Median, f.Failures, verdict)
	return f, v, nil
}

func measure(ctx context.Context, small string, rounds int, block time.Duration) (figures, error) {
	var f figures
	good := make([]*caller, servers-1)
	for i := range good {
		c, err := newCaller(small)
		if err != nil {
			return f, err
		}
		defer c.close(ctx)
		good[i] = c
	}
	twentieth, err := newCaller(small)
	if err != nil {
		return f, err
	}
	defer twentieth.close(ctx)
	bad := []func(time.Duration){ // each is bad in its own way for the length of a block
		func(d time.Duration) { misuse(ctx, []string{"sh", "-c", "read x; exit 3"}, d) },
		func(d time.Duration) { misuse(ctx, []string{"sh", "-c", "kill -STOP $$"}, d) },
		func(d time.Duration) { misuse(ctx, []string{"no-such-command"}, d) },
	}
	var with, without, again [][2]float64
	quiet := func(into *[][2]float64) func() error {
		return func() error {
			p50, p99 := drive(append(slices.Clone(good), twentieth), servers-1, block, &f)
			*into = append(*into, [2]float64{p50, p99})
			return nil
		}
	}
	n := 0
	variants := []func() error{
		quiet(&without),
		func() error {
			done := make(chan struct{})
			go func() {
				defer close(done)
				bad[n%len(bad)](block)
			}()
			n++
			p50, p99 := drive(good, servers-1, block, &f)
			with = append(with, [2]float64{p50, p99})
			<-done
			return nil
		},
		quiet(&again),
	}
	if err := interleave.Rounds(rounds, variants); err != nil {
		return f, err
	}
	f.P50 = interleave.Ratio(column(with, 0), column(without, 0))
	f.P99 = interleave.Ratio(column(with, 1), column(without, 1))
	f.Self = interleave.Ratio(column(again, 1), column(without, 1))
	f.Void = interleave.Void(f.Self)
	return f, nil
}

func column(rows [][2]float64, i int) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r[i])
	}
	return out
}

// drive calls every server in turns at a steady, moderate pace and returns the
// median and the 99th percentile of the first n.
func drive(callers []*caller, n int, d time.Duration, f *figures) (p50, p99 float64) {
	var mu sync.Mutex
	var all []float64
	var wg sync.WaitGroup
	for i, c := range callers {
		wg.Go(func() {
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for until := time.Now().Add(d); time.Now().Before(until); <-pace.C {
				took, ok := c.call()
				mu.Lock()
				if i < n {
					all = append(all, took.Seconds())
					f.Calls++
				}
				if !ok {
					f.Failures++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100]
}

// misuse stands for the bad server and its client, who calls it again and again.
func misuse(ctx context.Context, command []string, d time.Duration) {
	server, err := guard.New(guard.Spec{Command: command, Env: os.Environ()}, guard.Options{MaxCall: d})
	if err != nil {
		return
	}
	session := server.Open(guard.Peer{Era: wire.Legacy, Message: func(wire.Message) {}})
	for until := time.Now().Add(d); time.Now().Before(until); {
		ask(session, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, 1)
		time.Sleep(5 * time.Millisecond)
	}
	session.Close()
	limit, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	_ = server.Close(limit)
}

// caller is a good server and its client.
type caller struct {
	server  *guard.Server
	session *guard.Session
	id      int
}

func newCaller(small string) (*caller, error) {
	server, err := guard.New(guard.Spec{Command: []string{small}, Env: os.Environ()}, guard.Options{})
	if err != nil {
		return nil, err
	}
	c := &caller{server: server, session: server.Open(guard.Peer{Era: wire.Legacy, Message: func(wire.Message) {}})}
	r := ask(c.session, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, 1)
	if r.Fault != nil {
		return nil, r.Fault
	}
	c.session.Send(wire.NewNotification(wire.MethodInitialized, nil))
	return c, nil
}

func (c *caller) call() (time.Duration, bool) {
	c.id++
	begin := time.Now()
	r := ask(c.session, "tools/call", `{"name":"blob","arguments":{"size":100}}`, c.id+1)
	return time.Since(begin), r.Fault == nil
}

func (c *caller) close(ctx context.Context) {
	c.session.Close()
	_ = c.server.Close(ctx)
}

func ask(s *guard.Session, method, params string, id int) guard.Reply {
	got := make(chan guard.Reply, 1)
	s.Do(&guard.Call{
		Msg:  wire.NewRequest([]byte(strconv.Itoa(id)), method, []byte(params)),
		Done: func(r guard.Reply) { got <- r },
	})
	return <-got
}
