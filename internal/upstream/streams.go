package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

const (
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
	// longestRetry is how long a server may ask us to stay away from a stream.
	longestRetry = 5 * time.Minute
	// stableTime is how long a stream has to hold for its next break to count as the
	// first one.
	stableTime = 10 * time.Second
	// fruitless is how often a stream may break in a row without having brought
	// anything before we stop.
	fruitless = 5
)

// pause is the wait before the n-th attempt in a row, counted from 0. All of it is
// jitter, so that the clients of a server that restarts do not come back at once.
func pause(n int) time.Duration {
	most := longestPause
	if n < 7 {
		most = firstPause << n
	}
	return rand.N(most)
}

// wait waits, and reports false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// stream is one sequence of events over however many connections it takes.
type stream struct {
	lastID  string
	retry   time.Duration // what the server asked for
	events  int           // on all connections
	atLeast time.Duration // what a refusal asked for, this once

	// Ids seen on the connections before this one and on this one. A server that
	// replays more than it was asked for must not be heard twice; one that gives
	// all its events the same id must be heard all the same.
	before, now []string

	sizes *atomic.Int64 // how large events of this server have been; may be nil
}

const rememberedIDs = 256

// read takes the messages from one connection until it ends, and returns how: the
// error of the connection, or that of take.
func (s *stream) read(body io.Reader, limit int, take func(wire.Message) error, garbled func(data []byte, err error) error) error {
	s.before, s.now = append(s.before, s.now...), nil
	s.before = s.before[max(0, len(s.before)-rememberedIDs):]
	events := wire.NewEventReader(body, limit)
	if s.sizes != nil {
		events.Expect(int(s.sizes.Load()))
		defer func() { s.sizes.Store(int64(events.Larger())) }()
	}
	for {
		e, err := events.Next()
		if errors.Is(err, wire.ErrTooLong) {
			err = garbled(nil, err)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		s.events++
		if e.Retry > 0 {
			s.retry = min(e.Retry, longestRetry)
		}
		if e.HasID {
			s.lastID = e.ID
			if e.ID != "" && slices.Contains(s.before, e.ID) {
				continue
			}
			if len(s.now) < rememberedIDs {
				s.now = append(s.now, e.ID)
			}
		}
		if len(bytes.TrimSpace(e.Data)) == 0 {
			continue // it only says where the stream stands
		}
		m, err := e.Message()
		switch {
		case err == nil:
			err = take(m)
		case bytes.HasPrefix(bytes.TrimSpace(e.Data), []byte{'['}):
			err = eachOf(e.Data, take, garbled)
		case e.Type == "" || e.Type == "message":
			err = garbled(e.Data, err)
		default:
			err = nil // an event of some other kind
		}
		if err != nil {
			return err
		}
	}
}

// eachOf takes the messages of an event that holds a batch.
func eachOf(data []byte, take func(wire.Message) error, garbled func([]byte, error) error) error {
	messages, err := parseAll(data)
	if err != nil {
		return garbled(data, err)
	}
	for _, m := range messages {
		if err := take(m); err != nil {
			return err
		}
	}
	return nil
}

// follow reads an answer that comes as a stream, over several connections if the
// server lets us come back for the rest.
func (x *exchange) follow(resp *http.Response) *fault.Fault {
	s := &stream{sizes: &x.link.place.sizes}
	flt := x.readStream(s, resp)
	for tries := 0; flt != nil && x.resumable(s, flt) && tries < fruitless; tries++ {
		before := s.events
		if !wait(x.ctx, s.pause(tries)) {
			break
		}
		var final bool
		if flt, final = x.resume(s, flt); final {
			break
		}
		if s.events > before {
			tries = -1
		}
	}
	return flt
}

// pause is the wait before the n-th attempt in a row to go on. It is never shorter
// than the server asked for.
func (s *stream) pause(n int) time.Duration {
	least := max(s.retry, s.atLeast)
	s.atLeast = 0
	if least > 0 && n == 0 {
		return least
	}
	return least + pause(n)
}

// resumable: in the legacy era a server that numbers its events keeps them for
// whoever comes back.
func (x *exchange) resumable(s *stream, flt *fault.Fault) bool {
	return !x.modern && s.lastID != "" && flt.Delivery == fault.Started && x.ctx.Err() == nil && !x.f.settled.Load()
}

// resume opens the rest of a stream. It returns the fault that stands if that
// fails, and whether trying again is pointless.
func (x *exchange) resume(s *stream, was *fault.Fault) (flt *fault.Fault, final bool) {
	resp, err := x.link.open(x.ctx, s.lastID)
	if err != nil {
		return was, false
	}
	defer resp.Body.Close()
	switch {
	case isStream(resp):
		flt := x.readStream(s, resp)
		return flt, flt == nil
	case resp.StatusCode == http.StatusNotFound && x.session != "":
		x.link.lose(resp.StatusCode, "")
		return was, true
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		s.atLeast = min(retryAfter(resp.Header, time.Now()), longestRetry)
		return was, false
	}
	return was, true
}

// errFinal ends the reading of a stream for the reason in the fault.
type errFinal struct{ flt *fault.Fault }

func (e errFinal) Error() string { return e.flt.Error() }

// readStream reads one connection's worth of a call's answer.
func (x *exchange) readStream(s *stream, resp *http.Response) *fault.Fault {
	p := x.link.place
	err := s.read(resp.Body, p.limit, func(m wire.Message) error {
		if m.Kind == wire.Response && m.HasID() && !sameID(m.ID(), x.f.msg.ID()) {
			m.Release() // somebody else's; ours may still come
			return nil
		}
		if flt := x.heard(m, resp.StatusCode); flt != nil {
			return errFinal{flt}
		}
		if x.replied && x.late == nil {
			x.late = time.AfterFunc(lateTime, x.cancel)
		}
		return nil
	}, func(data []byte, err error) error {
		if x.replied || data != nil && !looksLikeReply(data) {
			return nil
		}
		return errFinal{p.broken(resp, "the reply could not be read", data, err)}
	})
	if x.replied {
		return nil
	}
	var final errFinal
	if errors.As(err, &final) {
		return final.flt
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	flt := p.broken(resp, "the stream ended before the reply", nil, err)
	flt.Delivery = fault.Started
	return flt
}

// looksLikeReply tells, of something that could not be parsed, whether waiting for
// the reply is still worth while.
func looksLikeReply(data []byte) bool {
	return !bytes.Contains(data, []byte(`"method"`)) &&
		(bytes.Contains(data, []byte(`"result"`)) || bytes.Contains(data, []byte(`"error"`)))
}

func isStream(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && mediaType(resp.Header) == typeEvents
}

// open asks for a stream of events by GET.
func (l *httpLink) open(ctx context.Context, lastID string) (*http.Response, error) {
	l.mu.Lock()
	version, session := l.version, l.session
	l.mu.Unlock()
	h := l.place.baseHeader()
	h["Accept"] = justEvents
	l.stamp(h, version, session)
	if lastID != "" {
		h[headerLastEvent] = []string{lastID}
	}
	return l.place.do(ctx, new(journey), http.MethodGet, l.place.url, h, nil)
}

func (l *httpLink) attend() {
	if l.old.Load() != nil {
		return // the old transport has one stream for everything
	}
	l.mu.Lock()
	start := !l.attending && l.down == nil && wire.EraOf(l.version) == wire.Legacy
	l.attending = l.attending || start
	l.mu.Unlock()
	if start {
		l.crew.start(l.listenAside)
	}
}

// listenAside keeps a stream open for what the server says outside of calls. A
// server need not offer one, and says so in many ways; none of them is trouble.
func (l *httpLink) listenAside() {
	s := new(stream)
	opened := false
	defer func() {
		l.mu.Lock()
		if l.aside != nil {
			close(l.aside)
			l.aside = nil
		}
		l.mu.Unlock()
	}()
	for tries, empty := 0, 0; empty < fruitless; tries++ {
		if tries > 0 && !wait(l.ctx, s.pause(tries-1)) {
			return
		}
		resp, err := l.open(l.ctx, s.lastID)
		if err != nil {
			if l.ctx.Err() != nil {
				return
			}
			continue
		}
		if !isStream(resp) {
			_, _ = readAtMost(resp.Body, 4<<10)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusNotFound && opened {
				l.lose(resp.StatusCode, "") // it offered the stream; what it misses now is the session
			}
			if resp.StatusCode != http.StatusTooManyRequests && (resp.StatusCode < 500 || resp.StatusCode == http.StatusNotImplemented) {
				return
			}
			s.atLeast = min(retryAfter(resp.Header, time.Now()), longestRetry)
			continue
		}
		opened = true
		l.mu.Lock()
		if l.aside == nil {
			l.aside = make(chan struct{})
		}
		l.mu.Unlock()
		since, before := time.Now(), s.events
		_ = s.read(resp.Body, l.place.limit, l.takeAside, func([]byte, error) error { return nil })
		_ = resp.Body.Close()
		if l.ctx.Err() != nil {
			return
		}
		stable := time.Since(since) >= stableTime
		if stable {
			tries = 0
		}
		if empty++; stable || s.events > before {
			empty = 0
		}
	}
}

// takeAside takes a message that arrived outside of any call's answer. Some servers
// send replies there too.
func (l *httpLink) takeAside(m wire.Message) error {
	m.Raw = wire.OneLine(m.Raw)
	if m.Kind != wire.Response {
		l.hear(m, nil)
		awaitRoom(l.ctx, l.clientRoom)
		return nil
	}
	l.mu.Lock()
	var x *exchange
	for f, live := range l.live {
		if m.HasID() && sameID(f.msg.ID(), m.ID()) {
			x = live
		}
	}
	l.mu.Unlock()
	if x == nil {
		m.Release()
		return nil
	}
	x.settle(Outcome{Reply: m, Status: http.StatusOK})
	x.cancel()
	return nil
}

const methodAcknowledged = "notifications/subscriptions/acknowledged"

// listening is what a subscription needs to be opened again.
type listening struct {
	granted []byte // what the server agreed to tell, nil before it did
	since   time.Time
	again   bool // this is not the first stream
}

// pass sees every notification of the stream and reports whether the client should.
func (s *listening) pass(x *exchange, m *wire.Message) bool {
	if m.Method() != methodAcknowledged {
		return true
	}
	s.since = time.Now()
	granted, _ := wire.Member(m.Params(), "notifications")
	s.granted = append([]byte{}, granted...)
	if !s.again {
		return true
	}
	for _, missed := range s.missed(x.f.msg.ID()) {
		x.link.hear(missed, x.f)
	}
	return false
}

// missed are notifications that make up for those nobody heard while the stream
// was down: whatever the client listens for may have changed.
func (s *listening) missed(id []byte) []wire.Message {
	about := wire.Set(nil, id, "_meta", wire.MetaSubscription)
	var out []wire.Message
	for _, kind := range [...]string{"tools", "prompts", "resources"} {
		if on, _ := wire.Member(s.granted, kind+"ListChanged"); string(on) == "true" {
			out = append(out, wire.NewNotification("notifications/"+kind+"/list_changed", about))
		}
	}
	uris, _ := wire.Member(s.granted, "resourceSubscriptions")
	wire.EachElement(uris, func(uri []byte) {
		out = append(out, wire.NewNotification("notifications/resources/updated", wire.Set(about, uri, "uri")))
	})
	return out
}

// relisten opens a subscription again and again for as long as the client wants
// it and the server may come back. It returns the fault that ends it, nil when it
// ended by a reply.
func (x *exchange) relisten(flt *fault.Fault) *fault.Fault {
	s := x.listen
	for tries := 0; flt != nil && s.granted != nil && mayPass(flt); tries++ {
		if !s.since.IsZero() && time.Since(s.since) >= stableTime {
			tries = 0
		}
		s.again, s.since = true, time.Time{}
		if !wait(x.ctx, min(flt.RetryAfter, longestRetry)+pause(tries)) {
			return flt
		}
		flt = x.ask()
	}
	return flt
}

// mayPass reports whether trouble with a stream may be over soon.
func mayPass(flt *fault.Fault) bool {
	return flt.Delivery != fault.Refused || flt.HTTPStatus == http.StatusTooManyRequests
}
