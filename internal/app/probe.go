package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

const (
	probeTimeout = 10 * time.Second
	// probeGrace is what a process gets to leave by itself when it has been seen,
	// and half as much again before it is killed.
	probeGrace = 250 * time.Millisecond
	// firstStart is what a package runner gets that is still fetching the package. To
	// end it then would leave half of it behind, and break the next start, too.
	firstStart = time.Minute
	// Where a list of tools stops being one and becomes a loop.
	mostPages, mostTools = 100, 10_000
)

// Probe starts or dials a server as a client would: it introduces itself, lists
// all tools, calls one if it was told to, and leaves. Nothing of what it started is
// left when it returns, which is at most half a second after its time is up; only a
// package runner that is in the middle of an installation is given a minute, and the
// server its time after that.
//
// A nil Env is ours, less what is ours alone.
func Probe(ctx context.Context, s doctor.Start) doctor.Sighting {
	if s.Timeout <= 0 {
		s.Timeout = probeTimeout
	}
	if s.Env == nil {
		s.Env = upstream.PassedOn(os.Environ())
	}
	p := &prober{start: s, began: time.Now()}
	flt := p.open()
	if flt == nil {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer time.AfterFunc(s.Timeout/2, func() { p.endInTime(ctx, cancel) }).Stop()
		flt = p.climb(ctx)
		p.close()
	}
	p.conclude(flt)
	return p.saw
}

// prober is one probe under way.
type prober struct {
	start   doctor.Start
	server  *upstream.Server
	session *upstream.Session
	// lost is how the connection ended, if it did: the session would make another,
	// and a server that has to be started twice is not well.
	lost atomic.Pointer[fault.Fault]

	began   time.Time
	at      doctor.Stage // the rung being climbed
	since   time.Time
	greeted time.Duration // how long start and handshake took together
	listed  time.Duration
	called  time.Duration
	pages   int
	lastID  int
	saw     doctor.Sighting
}

// open prepares the connection. What cannot even be tried is the fault.
func (p *prober) open() *fault.Fault {
	p.at, p.since = doctor.AtStart, p.began
	header, err := parseHeader(p.start.Header)
	if err != nil {
		return cannotStart(err.Error(), err)
	}
	if flt := p.impossible(); flt != nil {
		return flt
	}
	p.server, err = upstream.New(upstream.Spec{
		Command:   p.start.Command,
		Dir:       p.start.Dir,
		Env:       p.start.Env,
		DieWithUs: true,
		OwnGroup:  true, // the doctor's user is not asked what the server asks
		URL:       p.start.URL,
		Header:    header,
		Grace:     probeGrace,
		// Ours is the time that counts, and it says where it ran out.
		StartTimeout: max(p.start.Timeout, firstStart) + time.Second,
		OnHealth: func(before, after upstream.Health) {
			if after.State == upstream.Dead && before.State != upstream.Dead {
				p.lost.CompareAndSwap(nil, after.Cause)
			}
		},
	})
	if err != nil {
		return cannotStart(err.Error(), err)
	}
	p.session = p.server.Open(upstream.Peer{Era: wire.Legacy, Message: p.hear})
	return nil
}

// impossible finds what nobody has to try, and what the system would blame on the
// program: a working folder that is not there looks like a missing command.
func (p *prober) impossible() *fault.Fault {
	if p.start.URL != "" {
		// The URL is not quoted: a token may be part of it.
		u, err := url.Parse(p.start.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return cannotStart("the URL is not one of http or https", nil)
		}
		return nil
	}
	if p.start.Dir == "" {
		return nil
	}
	info, err := os.Stat(p.start.Dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "chdir", Path: p.start.Dir, Err: errors.New("not a folder")}
	}
	if err != nil {
		return cannotStart("the working folder cannot be used: "+err.Error(), err)
	}
	return nil
}

func cannotStart(text string, err error) *fault.Fault {
	return &fault.Fault{
		Kind:     fault.ConfigInvalid,
		Evidence: fault.Evidence{Text: text, Moment: fault.AtStart},
		Cause:    err,
	}
}

// hear answers what a server asks of its client: we have nothing to offer, and it
// must not wait for us.
func (p *prober) hear(m wire.Message) {
	if m.Kind == wire.Request {
		reply := wire.NewError(m.ID(), wire.CodeMethodNotFound, "method not found: "+m.Method(), nil)
		if m.Method() == wire.MethodPing {
			reply = wire.NewResult(m.ID(), []byte("{}"))
		}
		p.session.Send(reply)
	}
	m.Release()
}

// climb goes up rung by rung and returns why it could not go on.
func (p *prober) climb(ctx context.Context) *fault.Fault {
	p.at = doctor.AtHandshake
	reply, flt := p.ask(ctx, wire.MethodInitialize, fmt.Appendf(nil,
		`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"mcpmend","version":"0"}}`, wire.LegacyVersion))
	p.greeted = time.Since(p.began)
	if flt != nil {
		return flt
	}
	p.introduced(reply)
	p.session.Send(wire.NewNotification(wire.MethodInitialized, nil))

	p.at, p.since = doctor.AtTools, time.Now()
	flt = p.list(ctx)
	p.listed = time.Since(p.since)
	if flt != nil || p.start.Call == nil {
		return flt
	}
	p.at, p.since = doctor.AtCall, time.Now()
	flt = p.call(ctx)
	p.called = time.Since(p.since)
	return flt
}

// ask sends a request and waits for its result. An error that the server answers
// with is a fault here: a client could not go on either.
func (p *prober) ask(ctx context.Context, method string, params []byte) ([]byte, *fault.Fault) {
	got := make(chan upstream.Outcome, 1)
	p.lastID++
	call := &upstream.Call{
		Msg:  wire.NewRequest(strconv.AppendInt(nil, int64(p.lastID), 10), method, params),
		Done: func(o upstream.Outcome) { got <- o },
	}
	p.session.Do(call)
	select {
	case o := <-got:
		if lost := p.lost.Load(); lost != nil && method != wire.MethodInitialize {
			return nil, lost
		}
		return p.result(o)
	case <-ctx.Done():
		return nil, p.outOfTime(ctx, method)
	}
}

func (p *prober) result(o upstream.Outcome) ([]byte, *fault.Fault) {
	if o.Fault != nil {
		return nil, o.Fault
	}
	if o.Reply.Error() != nil {
		code, text := wire.ErrorOf(&o.Reply)
		return nil, &fault.Fault{
			Delivery: fault.Answered,
			Evidence: fault.Evidence{Text: text, RPCCode: code, HTTPStatus: o.Status, Moment: p.moment()},
		}
	}
	return bytes.Clone(o.Reply.Result()), nil
}

func (p *prober) moment() fault.Moment {
	if p.at == doctor.AtHandshake {
		return fault.AtHandshake
	}
	return fault.AtCall
}

func (p *prober) outOfTime(ctx context.Context, method string) *fault.Fault {
	flt := &fault.Fault{
		Delivery: fault.Silent,
		Evidence: fault.Evidence{Text: "timed out: no answer to " + method + " within " + p.waited().String(), Moment: p.moment()},
		Cause:    context.Cause(ctx),
	}
	if len(p.start.Command) > 0 {
		flt.Command = p.start.Command[0]
	}
	if !errors.Is(flt.Cause, context.DeadlineExceeded) {
		flt.Delivery, flt.Text = fault.Cancelled, "given up while waiting for the answer to "+method
	}
	return flt
}

// endInTime is called at half time and ends the probe when the other half is over. If
// a package runner is still at work then, the server has its time when that is done:
// what was fetched in the last second would else be called silent.
func (p *prober) endInTime(ctx context.Context, cancel context.CancelCauseFunc) {
	pause := func(d time.Duration) (over bool) {
		select {
		case <-ctx.Done():
			return true
		case <-time.After(d):
			return false
		}
	}
	left := p.start.Timeout / 2
	for p.isInstalling() {
		if left = p.start.Timeout; time.Since(p.began) > firstStart {
			left = 0
			break
		}
		if pause(500 * time.Millisecond) {
			return
		}
	}
	if !pause(left) {
		cancel(context.DeadlineExceeded)
	}
}

// isInstalling reports whether a package runner has not come to start the server
// yet. Where we cannot see that, it is believed to be installing until it has said
// something.
func (p *prober) isInstalling() bool {
	if len(p.start.Command) == 0 || !slices.Contains([]string{"npx", "uvx", "bunx", "pnpx"}, programName(p.start.Command[0])) {
		return false
	}
	seen := p.server.Seen()
	return isAlone(seen.PID, len(seen.Stderr) == 0)
}

// waited is how long the server had, in round numbers.
func (p *prober) waited() time.Duration {
	return max(p.start.Timeout, time.Since(p.began).Round(time.Second))
}

// introduced takes what the server says of itself.
func (p *prober) introduced(result []byte) {
	var hello struct {
		ProtocolVersion string
		ServerInfo      struct{ Name, Version string }
	}
	_ = json.Unmarshal(result, &hello) // a server that mixes up types has still introduced itself
	if p.server.Seen().Modern {
		p.lost.Store(nil)                          // a modern server may end at a word that it does not know
		hello.ProtocolVersion = wire.ModernVersion // what we told ourselves was only the bridge's word
	}
	p.saw.Info = &doctor.Info{
		Name: hello.ServerInfo.Name, Version: hello.ServerInfo.Version,
		Protocol: hello.ProtocolVersion, Tools: []string{},
	}
	p.saw.Transport = p.spoken()
	p.saw.Info.Transport = string(p.saw.Transport)
}

// spoken is the transport that brought the server's first answer.
func (p *prober) spoken() clientconfig.Transport {
	switch {
	case p.start.URL == "":
		return clientconfig.Stdio
	case p.server.Seen().Old:
		return clientconfig.SSE
	}
	return clientconfig.HTTP
}

// list collects the tools of all pages.
func (p *prober) list(ctx context.Context) *fault.Fault {
	var cursor []byte
	for p.pages < mostPages && len(p.saw.Tools) < mostTools {
		params := []byte(nil)
		if cursor != nil {
			params = wire.Set(nil, cursor, "cursor")
		}
		result, flt := p.ask(ctx, wire.MethodTools, params)
		if flt != nil && flt.RPCCode == wire.CodeMethodNotFound && p.pages == 0 {
			return nil // it has other things to offer than tools
		}
		if flt != nil {
			return flt
		}
		p.pages++
		p.collect(result)
		next, ok := wire.Member(result, "nextCursor")
		if !ok || string(next) == "null" || string(next) == `""` || bytes.Equal(next, cursor) {
			break
		}
		cursor = next
	}
	return nil
}

func (p *prober) collect(result []byte) {
	tools, _ := wire.Member(result, "tools")
	wire.EachElement(tools, func(definition []byte) {
		t := doctor.Tool{Definition: bytes.Clone(definition)}
		name, _ := wire.Member(t.Definition, "name")
		t.Name, _ = wire.StringValue(name)
		t.InputSchema, _ = wire.Member(t.Definition, "inputSchema")
		t.OutputSchema, _ = wire.Member(t.Definition, "outputSchema")
		p.saw.Tools = append(p.saw.Tools, t)
		p.saw.Info.Tools = append(p.saw.Info.Tools, t.Name)
	})
}

func (p *prober) call(ctx context.Context) *fault.Fault {
	arguments := p.start.Call.Arguments
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	if wire.Valid(arguments) != nil {
		return &fault.Fault{
			Kind:     fault.InvalidArguments,
			Evidence: fault.Evidence{Text: "the arguments are not JSON", Moment: fault.AtCall},
		}
	}
	params := wire.Set(wire.Set(nil, arguments, "arguments"), wire.AppendString(nil, p.start.Call.Tool), "name")
	result, flt := p.ask(ctx, wire.MethodCall, params)
	if flt != nil {
		return flt
	}
	failed, _ := wire.Member(result, "isError")
	p.saw.Result, p.saw.ToolError = result, string(failed) == "true"
	return nil
}

// close ends everything that was started and waits for it.
func (p *prober) close() {
	p.session.Close()
	grace, cancel := context.WithTimeout(context.Background(), 2*probeGrace)
	defer cancel()
	if p.server.Close(grace) != nil {
		// An HTTP server that does not take the goodbye: closing again skips it.
		grace, cancel := context.WithTimeout(context.Background(), 2*probeGrace)
		defer cancel()
		_ = p.server.Close(grace)
	}
}

// conclude says how far it went and why no further.
func (p *prober) conclude(flt *fault.Fault) {
	var seen upstream.Seen
	if p.server != nil {
		seen = p.server.Seen()
	}
	p.saw.Noise = seen.Stdout
	if flt != nil {
		p.saw.Fault = explained(flt, seen)
		p.saw.Busy = p.busy(p.saw.Fault.Kind)
	}
	p.saw.Steps = p.steps(seen)
}

// explained is the fault with all that is known, and its cause by name.
func explained(flt *fault.Fault, seen upstream.Seen) *fault.Fault {
	full := *flt
	if len(full.Stderr) == 0 {
		full.Stderr = seen.Stderr
	}
	// We read past noise, so it is not why nothing came in time; the Sighting has it.
	late := errors.Is(full.Cause, context.DeadlineExceeded)
	if len(full.Stdout) == 0 && !late {
		full.Stdout = seen.Stdout
	}
	d := fault.Diagnose(full.Evidence)
	if full.Kind == "" {
		full.Kind = d.Kind
	}
	if full.Kind == fault.Unknown && late {
		full.Kind = fault.Timeout
	}
	if full.Hint == "" && full.Kind == d.Kind {
		full.Hint = d.SuggestedFix
	}
	return &full
}

// steps are the rungs in their order. A server that never ran, or ended before it
// said who it is, broke at the start.
func (p *prober) steps(seen upstream.Seen) []doctor.Step {
	flt := p.saw.Fault
	brokeAt := func(stage doctor.Stage) bool { return flt != nil && p.at == stage }
	if brokeAt(doctor.AtHandshake) && (flt.Exited || flt.Moment == fault.AtStart) {
		p.at = doctor.AtStart
	}
	start := doctor.Step{Stage: doctor.AtStart, OK: !brokeAt(doctor.AtStart), Note: p.place(), Took: p.greeted}
	if !seen.Began.IsZero() && start.OK {
		start.Took = max(0, seen.Began.Sub(p.began))
	}
	steps := []doctor.Step{start}
	if !start.OK {
		return steps
	}
	if p.start.URL == "" {
		pure := doctor.Step{Stage: doctor.AtPure, OK: len(seen.Stdout) == 0}
		if !pure.OK {
			pure.Note = counted(len(seen.Stdout), "line") + " on standard output that are no messages"
		}
		steps = append(steps, pure)
	}
	for _, rung := range []doctor.Step{
		{Stage: doctor.AtHandshake, Note: p.name(), Took: p.greeted - start.Took},
		{Stage: doctor.AtTools, Note: counted(len(p.saw.Tools), "tool"), Took: p.listed},
		{Stage: doctor.AtCall, Note: p.returned(), Took: p.called},
	} {
		if rung.Stage == doctor.AtCall && p.start.Call == nil {
			break
		}
		rung.OK = !brokeAt(rung.Stage)
		if !rung.OK {
			rung.Note = ""
		}
		steps = append(steps, rung)
		if !rung.OK {
			break
		}
	}
	return steps
}

// place is the program or the host, without arguments, path or query: those may
// hold what is secret.
func (p *prober) place() string {
	if p.start.URL != "" {
		if u, err := url.Parse(p.start.URL); err == nil {
			return u.Host
		}
		return ""
	}
	if len(p.start.Command) == 0 {
		return ""
	}
	return filepath.Base(p.start.Command[0])
}

func (p *prober) name() string {
	if p.saw.Info == nil {
		return ""
	}
	words := slices.DeleteFunc([]string{p.saw.Info.Name, p.saw.Info.Version, p.saw.Info.Protocol}, func(s string) bool { return s == "" })
	return fmt.Sprintf("%.120s", strings.Join(words, " "))
}

func (p *prober) returned() string {
	switch {
	case p.saw.ToolError:
		return "the tool says that it failed"
	case p.saw.Result != nil:
		return "the tool answered"
	}
	return ""
}

// counted is a number of things in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
