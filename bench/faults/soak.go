package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/faults/system"
)

// soakRate is how many calls a second a soak makes; one of them meets a fault.
const soakRate = 50

// runSoak puts each system through random faults, one a second, and watches
// what it holds on to.
func (b *bench) runSoak(ctx context.Context) (int, error) {
	code := exitOK
	for _, sys := range b.systems {
		if sys.Trust != oracle.TrustNone || b.systemNames == "" && !strings.HasPrefix(sys.Name, "mcpmend") {
			continue
		}
		s := &soak{bench: b, system: sys}
		score, err := b.play(ctx, s.scenario(), sys, 0)
		if err != nil {
			return 0, err
		}
		s.print(score)
		if sys.Ours && score.Void != "" {
			return exitVoid, nil
		}
		if strings.HasPrefix(sys.Name, "mcpmend") && len(score.Zeros()) > 0 {
			return exitZeros, nil
		}
		if strings.HasPrefix(sys.Name, "mcpmend") && len(score.Missed) > 0 {
			code = exitMissed
		}
	}
	return code, nil
}

type soak struct {
	bench   *bench
	system  *system.System
	samples []sample
}

// sample is what the system holds at one moment.
type sample struct {
	at                  time.Duration
	files, threads, rss int
}

// scenario is a row of its own: as many operations as the time allows, and a
// plan that strikes one in each second's worth of them.
func (s *soak) scenario() Scenario {
	seconds := int(s.bench.soak / time.Second)
	sc := Scenario{
		ID: "SOAK", Title: "random faults", Deadline: 10 * time.Second, Reach: oracle.Hopeless, Ops: seconds * soakRate, Slow: true,
		Flags: []string{"--hung-after", "10s"}, // or the first SIGSTOP would be the whole soak
		Play:  s.play,
		Check: s.check,
	}
	r := rand.New(rand.NewPCG(uint64(s.bench.seed), 0))
	for i := range seconds {
		f := survivableFaults[r.IntN(len(survivableFaults))]
		if i%soakDeadly == soakDeadly/2 {
			f = deadlyFaults[r.IntN(len(deadlyFaults))]
		}
		f.Op = i*soakRate + r.IntN(soakRate)
		if f.At == ledger.MidReply {
			f.N = 1 + r.IntN(80)
		}
		sc.Plan.Faults = append(sc.Plan.Faults, f)
	}
	return sc.withDefaults()
}

// A process that has just begun shows little of what grows with time: one fault in
// twenty, three in a minute, ends it.
const soakDeadly = 20

var deadlyFaults = []ledger.Fault{
	{At: ledger.AfterRead, Do: ledger.Exit, N: 1},
	{At: ledger.AfterCommit, Do: ledger.Kill},
	{At: ledger.MidReply, Do: ledger.Kill},
	{At: ledger.AfterReply, Do: ledger.Exit},
	{At: ledger.AfterCommit, Do: ledger.Stop},
}

var survivableFaults = []ledger.Fault{
	{At: ledger.AfterCommit, Do: ledger.Hang},
	{At: ledger.AfterCommit, Do: ledger.Say, Text: "noise\n{{reply}}\n"},
	{At: ledger.AfterCommit, Do: ledger.Say, Text: "{{half}}\n{{reply}}\n"},
	{At: ledger.AfterCommit, Do: ledger.Say, Text: "{{reply}}\n{{reply}}\n"},
	{At: ledger.AfterCommit, Do: ledger.Say, Text: `{"jsonrpc":"2.0","id":987654,"result":{}}` + "\n{{reply}}\n"},
	{At: ledger.AfterRead, Do: ledger.Notify, N: 500},
	{At: ledger.AfterRead, Do: ledger.Flood, N: 1 << 20},
	{At: ledger.AfterRead, Do: ledger.Sleep, N: 700},
	{At: ledger.AfterRead, Do: ledger.Ask},
}

func (s *soak) play(e *Episode) {
	watching, stop := context.WithCancel(e.ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.watch(watching, e) })
	begin := time.Now()
	// An open loop: a call is made when its time has come, whatever became of
	// those before it.
	var calls sync.WaitGroup
	for i, op := range e.Ops {
		due := begin.Add(time.Duration(i) * time.Second / soakRate)
		e.Sleep(time.Until(due))
		if e.ctx.Err() != nil {
			break
		}
		e.all = append(e.all, op)
		calls.Go(func() { e.Clients[0].Do(e.ctx, op) })
	}
	calls.Wait()
	stop()
	wg.Wait()
}

// watch takes a sample every so often.
func (s *soak) watch(ctx context.Context, e *Episode) {
	begin := time.Now()
	every := max(s.bench.soak/60, time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			pid := e.Proc.Pid()
			s.samples = append(s.samples, sample{
				at: time.Since(begin), files: inject.Files(pid), threads: inject.Threads(pid), rss: inject.RSS(pid),
			})
		case <-ctx.Done():
			return
		}
	}
}

// check compares the second quarter with the last: the first may still grow.
func (s *soak) check(e *Episode, score *oracle.Score) {
	n := len(s.samples)
	if n < 8 {
		return
	}
	files := func(x sample) int { return x.files }
	rss := func(x sample) int { return x.rss }
	before, after := s.samples[n/4:n/2], s.samples[3*n/4:]
	if d := least(after, files) - least(before, files); d > 2 {
		e.Miss("file descriptors grew by %d", d)
	}
	if d := least(after, rss) - least(before, rss); d > 10<<20 {
		e.Miss("memory grew by %d MiB", d>>20)
	}
}

// least is the lowest value, because what is in use for a call comes and goes.
func least(samples []sample, of func(sample) int) int {
	n := of(samples[0])
	for _, x := range samples {
		n = min(n, of(x))
	}
	return n
}

func (s *soak) print(score *oracle.Score) {
	fmt.Printf("soak of %s: %v, a fault a second, seed %d\n", s.system.Name, s.bench.soak, s.bench.seed)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "at\tfiles\tthreads\tRSS MiB\t")
	step := max(len(s.samples)/10, 1)
	for i, x := range s.samples {
		if i%step == 0 || i == len(s.samples)-1 {
			fmt.Fprintf(t, "%v\t%d\t%d\t%.1f\t\n", x.at.Round(time.Second), x.files, x.threads, float64(x.rss)/(1<<20))
		}
	}
	t.Flush()
	for _, v := range oracle.Verdicts {
		fmt.Printf("%s %s, ", thousands(score.Verdicts[v]), v)
	}
	fmt.Printf("cross-talk %d, leaked %d, server starts %d, strikes %d\n", score.CrossTalk, score.Leaked, score.Starts, score.Strikes)
	for m := range score.Missed {
		fmt.Println("*", m)
	}
	for _, bad := range score.Bad {
		fmt.Println("!", bad)
	}
	if score.Void != "" {
		fmt.Println("void:", score.Void)
	}
}
