package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
	"github.com/mcpmend/mcpmend/bench/faults/standin"
	"github.com/mcpmend/mcpmend/bench/faults/system"
	"github.com/mcpmend/mcpmend/bench/internal/network"
)

// Episode is one life of a system in front of one server, with one scenario's
// faults.
type Episode struct {
	Scenario
	System *system.System
	N      int // number of the episode, from which everything random follows
	Era    string
	Dir    string
	Rand   *rand.Rand
	// Quick asks for shorter waits where a row has long ones.
	Quick bool

	Ops     []*driver.Op
	Proc    *system.Process
	Clients []*driver.Client
	Proxy   *inject.Proxy
	Net     *network.Network
	StandIn *standin.Endpoint

	mu      sync.Mutex // over strikes and missed
	ctx     context.Context
	server  *exec.Cmd // HTTP only
	strikes []oracle.Strike
	missed  []string
	all     []*driver.Op
	peak    int // of the system's memory, in bytes

	told []string // secrets that were seen where they do not belong

	trap   *httptest.Server
	trapMu sync.Mutex
	caught strings.Builder
}

// errNotOffered marks a cell that the system has no transport for.
var errNotOffered = errors.New("not offered")

// play runs the episode from start to leak check and returns its score.
func (b *bench) play(ctx context.Context, sc Scenario, sys *system.System, n int) (*oracle.Score, error) {
	if sc.Relayed && !sys.Relays || sc.Model != nil && !sys.Models {
		return nil, errNotOffered
	}
	if sys.LegacyOnly {
		sc.Eras = legacyOf(sc.Eras)
		if len(sc.Eras) == 0 {
			return nil, errNotOffered
		}
	}
	e := &Episode{Scenario: sc, System: sys, N: n, Quick: b.Quick}
	e.Era = sc.Eras[n%len(sc.Eras)]
	e.Rand = rand.New(rand.NewPCG(uint64(b.seed), stream(fmt.Sprint(sc.ID, n))))
	dir, err := os.MkdirTemp(b.dir, fmt.Sprintf("%s-%d-", sc.ID, n))
	if err != nil {
		return nil, err
	}
	e.Dir = dir
	ctx, stop := context.WithTimeout(ctx, b.soak+4*sc.Deadline+2*time.Minute)
	defer stop()
	e.ctx = ctx
	defer func() {
		e.stopServer()
		inject.Reap(dir, 0)
		if b.keep {
			e.writeJournal()
		} else {
			os.RemoveAll(dir)
		}
	}()

	if err := e.start(b.self); err != nil {
		return nil, err
	}
	e.Play(e)
	return e.finish()
}

// writeJournal leaves what the callers were told beside the book.
func (e *Episode) writeJournal() {
	data, _ := json.MarshalIndent(e.all, "", " ")
	os.WriteFile(filepath.Join(e.Dir, "journal.json"), data, 0o644)
}

func legacyOf(eras []string) []string {
	if slices.Contains(eras, "legacy") {
		return legacyOnly
	}
	return nil
}

// stream numbers a scenario's random sequence.
func stream(id string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, id)
	return h.Sum64()
}

// start brings up the server, the proxy, the system and its clients.
func (e *Episode) start(self string) error {
	plan := e.Plan
	plan.Era, plan.Seed = e.Era, int64(e.N)
	plan.Faults = append([]ledger.Fault(nil), plan.Faults...)
	wire := append([]inject.Rule(nil), e.Wire...)
	if e.Vary != nil {
		e.Vary(e, &plan, wire)
	}
	if err := ledger.WritePlan(e.Dir, plan); err != nil {
		return err
	}
	e.makeOps()

	up := system.Upstream{Deadline: e.Deadline, Secret: e.Secret, Flags: e.Flags}
	if e.Network {
		var err error
		// Without the episode's mark: the machines are not the system's to end.
		if e.Net, err = network.New(e.ctx, os.Environ()); err != nil {
			return err
		}
		up.At = e.Net.AtClient
	}
	command := []string{self, "ledger", "--dir", e.Dir}
	if e.HTTP {
		if err := e.serveHTTP(command, wire, &up); err != nil {
			return err
		}
	} else {
		up.Command = command
		if e.Command != nil {
			up.Command = e.Command(e, command)
		}
	}
	if e.Model != nil {
		e.hireModel(&up)
	}
	proc, err := e.System.Start(e.ctx, e.Dir, up, e.Scenario.Clients > 0)
	if errors.Is(err, system.ErrCannot) {
		return errNotOffered
	}
	if err != nil {
		return err
	}
	e.Proc = proc
	for range max(e.Scenario.Clients, 1) {
		e.connect()
	}
	return nil
}

// connect adds a client. A system that cannot shake hands because its server
// is broken will be asked all the same: how it answers then is the point.
func (e *Episode) connect() *driver.Client {
	era := e.Era
	if e.Speaks != nil {
		era = e.Speaks(e)
	}
	c := e.Proc.Client(era == "modern")
	if e.Scenario.Clients > 0 {
		c.Name = fmt.Sprint("client ", len(e.Clients))
	}
	ctx, stop := context.WithTimeout(e.ctx, e.Deadline)
	defer stop()
	if c.Connect(ctx) == nil {
		reply, _ := c.Ask(ctx, "tools/list", map[string]any{})
		// A hub gathers its servers' tools in the background.
		for c.Prefix != "" && ctx.Err() == nil && (reply == nil || !strings.Contains(string(reply.Result), c.Prefix)) {
			e.Sleep(50 * time.Millisecond)
			reply, _ = c.Ask(ctx, "tools/list", map[string]any{})
		}
	}
	e.Clients = append(e.Clients, c)
	return c
}

func (e *Episode) makeOps() {
	tools := append([]string(nil), e.Tools...)
	e.Rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	for i := range e.Scenario.Ops {
		e.Ops = append(e.Ops, e.op(i, tools[i%len(tools)]))
	}
}

func (e *Episode) op(i int, tool string) *driver.Op {
	return &driver.Op{ID: fmt.Sprintf("%s.%d.%d", e.ID, e.N, i), Index: i, Tool: tool, Args: e.Args, Deadline: e.Deadline}
}

// serveHTTP starts the server and the proxy before it, and sets the URL.
func (e *Episode) serveHTTP(command []string, wire []inject.Rule, up *system.Upstream) error {
	scheme := "http"
	var files inject.CertFiles
	if e.TLS != "" {
		scheme = "https"
		flaw := inject.NoFlaw
		if e.TLS == "bad" {
			flaw = []inject.Flaw{inject.Expired, inject.OtherHost}[e.Variant(2)]
		}
		var err error
		if files, err = inject.Certificate(e.Dir, flaw); err != nil {
			return err
		}
		up.Env = append(up.Env, "SSL_CERT_FILE="+files.CA, "NODE_EXTRA_CA_CERTS="+files.CA)
	}
	if e.TLS == "bad" {
		command = append(command, "--cert", files.Cert, "--key", files.Key)
	}
	addr, err := e.startServer(command)
	if err != nil {
		return err
	}
	switch {
	case e.Network:
		up.URL = "http://" + addr + "/mcp"
		return nil
	case e.TLS == "bad":
		e.Proxy, err = inject.NewRawProxy(addr)
	case e.TLS == "h2":
		e.Proxy, err = inject.NewH2Proxy(addr, files, e.H2)
	default:
		e.Proxy, err = inject.NewProxy(addr, wire)
	}
	if err != nil {
		return err
	}
	up.URL = scheme + "://" + e.Proxy.Addr() + "/mcp"
	return nil
}

// Trap starts another origin, and returns its URL. Whatever is sent there is kept.
func (e *Episode) Trap() string {
	e.trap = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.trapMu.Lock()
		defer e.trapMu.Unlock()
		fmt.Fprintln(&e.caught, r.Method, r.URL, r.Header)
		http.Error(w, "not here", http.StatusTeapot)
	}))
	return e.trap.URL + "/mcp"
}

// trapped is all that was sent to the other origin.
func (e *Episode) trapped() string {
	e.trapMu.Lock()
	defer e.trapMu.Unlock()
	return e.caught.String()
}

// Received counts how often the server read op.
func (e *Episode) Received(op string) int {
	n := 0
	for _, l := range e.Book() {
		if l.Kind == ledger.Recv && l.Op == op {
			n++
		}
	}
	return n
}

// Early reports whether op came again before the time that a refusal asked for.
func (e *Episode) Early(op string) bool {
	var until time.Duration
	for _, l := range e.Book() {
		switch {
		case l.Op != op:
		case l.Kind == ledger.Refused:
			if wait, err := time.ParseDuration(l.Note); err == nil {
				until = l.At + wait
			}
		case l.Kind == ledger.Recv && l.At < until:
			return true
		}
	}
	return false
}

// startServer runs the ledger over HTTP and waits until it listens.
func (e *Episode) startServer(command []string) (string, error) {
	before := e.Book()
	address := "127.0.0.1:0"
	if e.Network {
		address = network.ServerAddress
	}
	command = append(command, "--http", address)
	if e.Network {
		command = e.Net.AtServer(command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), ledger.Marker+"="+e.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(e.Dir, "server"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return "", err
	}
	e.server = cmd
	var addr string
	_, err = ledger.Await(e.ctx, e.Dir, func(lines []ledger.Line) bool {
		for _, l := range lines[len(before):] {
			if l.Kind == ledger.Start {
				addr = l.Note
			}
		}
		return addr != ""
	})
	return addr, err
}

func (e *Episode) stopServer() {
	if e.trap != nil {
		e.trap.Close()
		e.trap = nil
	}
	if e.Proxy != nil {
		e.Proxy.Stop()
	}
	if e.StandIn != nil {
		e.StandIn.Close()
	}
	if e.server != nil {
		e.server.Process.Kill()
		e.server.Wait()
		e.server = nil
	}
	if e.Net != nil {
		e.Net.Close()
	}
}

// Run performs operations, AtOnce at a time, and enters them for judgement.
func (e *Episode) Run(ops []*driver.Op) {
	e.all = append(e.all, ops...)
	driver.Run(e.ctx, e.Clients, ops, e.AtOnce)
}

// Probe runs fresh operations one after the other until one succeeds or the
// time is over, so that recovery can be timed. They are judged like any other.
func (e *Episode) Probe(within time.Duration) bool {
	for begin := time.Now(); time.Since(begin) < within; time.Sleep(10 * time.Millisecond) {
		op := e.op(1000+len(e.all), ledger.Plain)
		e.Run([]*driver.Op{op})
		if op.Outcome == driver.OK {
			return true
		}
	}
	return false
}

// Book reads what the server wrote so far.
func (e *Episode) Book() []ledger.Line {
	lines, _ := ledger.ReadBook(e.Dir)
	return lines
}

// Await waits for the book to say something, up to a limit.
func (e *Episode) Await(limit time.Duration, ready func([]ledger.Line) bool) bool {
	ctx, stop := context.WithTimeout(e.ctx, limit)
	defer stop()
	_, err := ledger.Await(ctx, e.Dir, ready)
	return err == nil
}

// AwaitStrike waits until a fault in the server has struck.
func (e *Episode) AwaitStrike() bool {
	return e.Await(e.Deadline, func(l []ledger.Line) bool { return ledger.Count(l, ledger.Fired) > 0 })
}

// AwaitReceived waits until the server has read so many calls.
func (e *Episode) AwaitReceived(n int) bool {
	return e.Await(e.Deadline, func(l []ledger.Line) bool { return ledger.Count(l, ledger.Recv) >= n })
}

// AwaitShown waits until the system has told its user something on stderr.
func (e *Episode) AwaitShown(text string, limit time.Duration) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.After(limit)
	for {
		said, _ := os.ReadFile(filepath.Join(e.Dir, "stderr"))
		if strings.Contains(string(said), text) {
			return true
		}
		select {
		case <-tick.C:
		case <-over:
			return false
		case <-e.ctx.Done():
			return false
		}
	}
}

// ServerPid is the process of the server's latest instance.
func (e *Episode) ServerPid() int { return ledger.LastPid(e.Book()) }

// Struck records a fault that the scenario itself brought about, at a process
// or, with pid 0, at nothing in particular.
func (e *Episode) Struck(pid int, what string) { e.strike(oracle.Strike{Pid: pid, What: what}) }

// StruckOp records one that concerns a single operation.
func (e *Episode) StruckOp(op *driver.Op, what string) {
	e.strike(oracle.Strike{Op: op.ID, What: what})
}

func (e *Episode) strike(s oracle.Strike) {
	s.At = ledger.Now()
	e.mu.Lock()
	e.strikes = append(e.strikes, s)
	e.mu.Unlock()
}

// Miss records that something the scenario asks for did not come true.
func (e *Episode) Miss(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missed = append(e.missed, fmt.Sprintf(format, args...))
}

// finish stops the system, looks for what it left behind, and judges.
func (e *Episode) finish() (*oracle.Score, error) {
	e.peak = inject.PeakRSS(e.Proc.Pid())
	took := e.Proc.Stop()
	e.stopServer()
	leaked := inject.Reap(e.Dir, 2*time.Second)

	book, err := ledger.ReadBook(e.Dir)
	if err != nil {
		return nil, err
	}
	strikes := e.strikes
	for _, l := range book {
		if l.Kind == ledger.Fired {
			strikes = append(strikes, oracle.Strike{At: l.At, Pid: l.Pid, Op: l.Op, What: l.Note})
		}
	}
	if e.Proxy != nil {
		strikes = append(strikes, e.Proxy.Strikes()...)
	}
	s := oracle.Judge(oracle.Facts{
		Ops: e.all, Book: book, Strikes: strikes, Reach: e.Reach, Trust: e.System.Trust, Alone: e.Alone,
	})
	s.Leaked = leaked
	if took > 9*time.Second {
		e.Miss("slow to stop")
	}
	if s.Unharmed < s.Exposed {
		e.Miss("a fault was felt that must not be")
	}
	if s.Blast > 0 {
		e.Miss("a call failed by another's fault")
	}
	if e.Check != nil {
		e.Check(e, s)
	}
	for _, m := range e.missed {
		s.Missed[m]++
	}
	if len(strikes) == 0 && !e.NoFault {
		s.Void = fmt.Sprintf("episode %d: the fault never struck", e.N)
	}
	return s, nil
}

// Variant picks one of n ways, the next one in each round of the eras.
func (e *Episode) Variant(n int) int { return e.N / len(e.Eras) % n }

// Long is how long a row waits: long in a full run, short in a quick one.
func (e *Episode) Long(full, quick time.Duration) time.Duration {
	if e.Quick {
		return quick
	}
	return full
}

// Sleep waits for the passing of time itself, where that is the fault.
func (e *Episode) Sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-e.ctx.Done():
	}
}

// Gone waits until a process has ended and reports whether it did.
func (e *Episode) Gone(pid int, limit time.Duration) bool {
	ctx, stop := context.WithTimeout(e.ctx, limit)
	defer stop()
	return inject.AwaitState(ctx, pid, "") == nil
}

// Said reports whether any answer holds one of these words.
func (e *Episode) Said(words ...string) bool {
	for _, op := range e.all {
		for _, w := range words {
			if strings.Contains(strings.ToLower(op.Text), strings.ToLower(w)) {
				return true
			}
		}
	}
	return false
}
