package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// endpointTimeout is how long a server of the old kind may take to name the
// address for messages.
const endpointTimeout = 10 * time.Second

// sseLink is a conversation over the transport of 2024-11-05: one stream from the
// server for everything it says, and a POST for everything that is said to it.
// The session is the stream; when it breaks, both are gone.
type sseLink struct {
	duplex
	place    *httpPlace
	endpoint *url.URL
	ctx      context.Context
	end      context.CancelFunc
	crew     crew
	out      outbox

	closeOnce sync.Once

	// ways guards the rest. It is never held together with the lock of duplex.
	ways     sync.Mutex
	greeting <-chan struct{} // closed when notifications/initialized has been delivered
	posts    map[*flight]*sending
}

// sending is how far a request has got on its way to the server.
type sending struct {
	journey journey
	begun   bool // guarded by ways
	stop    context.CancelFunc
}

// fallBack tries whether the server speaks the old transport, when it did not
// understand initialize, and if so leaves the request and all that follow to it.
func (x *exchange) fallBack() bool {
	l := x.link
	old := l.place.dialOld(l, x.ctx)
	l.place.oldStyle.Store(old != nil)
	if old == nil {
		return false
	}
	l.mu.Lock()
	closing := l.closing
	if !closing {
		l.old.Store(old)
	}
	l.mu.Unlock()
	if closing {
		old.close()
		return false
	}
	old.send(x.f)
	return true
}

// dialOld opens the stream and waits for the address that comes with it. nil means
// that the server is not of that kind. The link lives as long as outer, which it
// works for; the attempt ends with patience.
func (p *httpPlace) dialOld(outer *httpLink, patience context.Context) *sseLink {
	l := &sseLink{place: p, posts: make(map[*flight]*sending)}
	l.ctx, l.end = context.WithCancel(outer.ctx)
	l.crew.init()
	l.out = outbox{start: l.crew.start, deliver: l.deliver}
	l.duplex.self, l.duplex.write = outer, l.write
	l.duplex.hear = func(_ link, m wire.Message, f *flight) { outer.hear(m, f) }
	late := time.AfterFunc(endpointTimeout, l.end)
	impatient := context.AfterFunc(patience, l.end)

	h := p.baseHeader()
	h["Accept"] = justEvents
	resp, err := p.do(l.ctx, new(journey), http.MethodGet, p.url, h, nil)
	if err != nil {
		l.end()
		return nil
	}
	events := wire.NewEventReader(resp.Body, p.limit)
	if isStream(resp) {
		l.endpoint = p.endpoint(events)
	}
	if late.Stop() && impatient() && l.endpoint != nil && l.crew.start(func() { l.read(resp.Body, events) }) {
		return l
	}
	l.end()
	_ = resp.Body.Close()
	return nil
}

// endpoint reads the address for messages, which is the first thing a server of
// this kind says. It has to be at the same origin: our credentials go there.
func (p *httpPlace) endpoint(events *wire.EventReader) *url.URL {
	e, err := events.Next()
	if err != nil || e.Type != "endpoint" {
		return nil
	}
	u, err := p.url.Parse(string(bytes.TrimSpace(e.Data)))
	if err != nil || !sameOrigin(u, p.url) {
		return nil
	}
	return u
}

func (l *sseLink) read(body io.ReadCloser, events *wire.EventReader) {
	defer body.Close()
	var err error
	for err == nil {
		var e wire.Event
		if e, err = events.Next(); err == nil && e.Type != "endpoint" && len(bytes.TrimSpace(e.Data)) > 0 {
			l.event(&e)
		}
		if errors.Is(err, wire.ErrTooLong) {
			err = nil // whose reply it was cannot be told; the others go on
		}
	}
	l.end()
	text := "the server ended the event stream"
	if !errors.Is(err, io.EOF) {
		text = "the event stream broke: " + l.place.hide.Text(err.Error())
	}
	why := fault.Fault{Evidence: fault.Evidence{Text: text, Errno: errnoName(err), Moment: fault.AtCall}, Cause: err}
	l.fail(why, l.delivered)
}

func (l *sseLink) event(e *wire.Event) {
	m, err := e.Message()
	if err != nil {
		// The reader of lines knows how to find out whose reply it was meant to be.
		line := append(wire.OneLine(e.Data), '\n')
		_, _ = wire.NewLineReader(bytes.NewReader(line), l.place.limit, l.garbled).Next()
		return
	}
	m.Raw = wire.OneLine(m.Raw)
	l.arrived(m)
}

func (l *sseLink) arrived(m wire.Message) {
	if m.Kind == wire.Response {
		l.forgetPost(l.find(m.ID()))
	}
	l.incoming(m)
}

// inspect gives up what waits for a reply that was spoilt, and forgets what was
// settled without passing through here.
func (l *sseLink) inspect(now time.Time) {
	l.giveUpSpoilt(now)
	l.ways.Lock()
	defer l.ways.Unlock()
	for f := range l.posts {
		if f.settled.Load() {
			delete(l.posts, f)
		}
	}
}

func (l *sseLink) forgetPost(f *flight) {
	l.ways.Lock()
	delete(l.posts, f)
	l.ways.Unlock()
}

// delivered tells how far a request got when the stream broke.
func (l *sseLink) delivered(f *flight) fault.Delivery {
	l.ways.Lock()
	defer l.ways.Unlock()
	s := l.posts[f]
	switch {
	case f.started.Load():
		return fault.Started
	case s == nil || !s.begun || s.journey.unsent():
		return fault.Unsent
	}
	return fault.Silent
}

func (l *sseLink) send(f *flight) {
	l.duplex.send(f)
	if f.settled.Load() { // given up in the meantime
		l.forget(f)
		l.forgetPost(f)
	}
}

// write posts one message. Requests go each their own way, because a server may
// hold the answer to the POST until the tool is done; what has no reply goes in
// order.
func (l *sseLink) write(m wire.Message, id []byte, _ *wire.Receipt) error {
	if id == nil {
		l.ways.Lock()
		defer l.ways.Unlock()
		done, err := l.out.put(m)
		if err == nil && m.Method() == wire.MethodInitialized {
			l.greeting = done
		}
		return err
	}
	f := l.find(id)
	if f == nil {
		return nil // the stream broke just now and has settled it
	}
	ctx, stop := context.WithCancel(l.ctx)
	s := &sending{stop: stop}
	s.journey.left = &f.left
	l.ways.Lock()
	l.posts[f] = s
	greeting := l.greeting
	l.ways.Unlock()
	own := m.WithID(id)
	if !l.crew.start(func() { l.request(ctx, f, s, own, greeting) }) {
		l.forgetPost(f)
		stop()
		return wire.ErrClosed
	}
	return nil
}

// request posts one request. The reply comes by the stream; a refusal comes here.
func (l *sseLink) request(ctx context.Context, f *flight, s *sending, m wire.Message, greeting <-chan struct{}) {
	defer s.stop()
	if greeting != nil {
		select {
		case <-greeting:
		case <-ctx.Done():
			return // whoever ended it settles the call
		}
	}
	l.ways.Lock()
	s.begun = true
	l.ways.Unlock()
	resp, err := l.put(ctx, &s.journey, &m)
	if err != nil {
		if ctx.Err() == nil {
			l.reject(f, l.place.undelivered(&s.journey, err))
		}
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		body, _ := readAtMost(resp.Body, min(l.place.limit, 1<<20))
		if m, ok := ownAnswer(body, m.ID()); ok {
			l.arrived(m)
			return
		}
		flt := l.place.refusal(resp, body)
		if resp.StatusCode == http.StatusNotFound {
			flt.Cause = errSessionLost
			defer l.end() // the address was all there was of the session
		}
		l.reject(f, flt)
		return
	}
	// Some servers answer here although they should not.
	if body, err := readBody(resp, l.place.limit); err == nil && mediaType(resp.Header) == typeJSON {
		if messages, err := parseAll(body); err == nil {
			for _, m := range messages {
				m.Raw = wire.OneLine(m.Raw)
				l.arrived(m)
			}
		}
	}
}

// ownAnswer is the response in a body that was refused by its status and still
// answers the request: the tool may have run.
func ownAnswer(body, id []byte) (wire.Message, bool) {
	messages, err := parseAll(body)
	if err != nil || len(messages) != 1 || messages[0].Kind != wire.Response || !sameID(messages[0].ID(), id) {
		return wire.Message{}, false
	}
	m := messages[0]
	if code, _ := wire.ErrorOf(&m); m.Error() != nil && fault.NeverExecuted(code) {
		return wire.Message{}, false
	}
	m.Raw = wire.OneLine(m.Raw)
	return m, true
}

func (l *sseLink) put(ctx context.Context, j *journey, m *wire.Message) (*http.Response, error) {
	h := l.place.baseHeader()
	h["Content-Type"] = justJSON
	return l.place.do(ctx, j, http.MethodPost, l.endpoint, h, newPayload(m.Raw))
}

func (l *sseLink) reject(f *flight, flt *fault.Fault) {
	l.forget(f)
	l.forgetPost(f)
	f.fail(flt)
}

// deliver posts what expects no reply.
func (l *sseLink) deliver(m wire.Message) {
	ctx, cancel := context.WithTimeout(l.ctx, l.place.lostAfter)
	defer cancel()
	own := m.Clone() // the transport may read it longer than it is ours
	if resp, err := l.put(ctx, new(journey), &own); err == nil {
		_, _ = readAtMost(resp.Body, 4<<10)
		_ = resp.Body.Close()
	}
}

func (l *sseLink) abandon(f *flight, note *wire.Message) {
	l.forget(f)
	l.ways.Lock()
	s := l.posts[f]
	delete(l.posts, f)
	tell := s != nil && s.begun && !s.journey.unsent()
	l.ways.Unlock()
	if s != nil {
		s.stop()
	}
	if tell && f.msg.Method() != wire.MethodInitialize {
		_ = l.post(cancelNote(f.key, note))
	}
	f.fail(&fault.Fault{Delivery: fault.Cancelled})
}

func (l *sseLink) close() {
	l.closeOnce.Do(func() {
		go func() {
			select {
			case <-l.out.idle():
			case <-l.ctx.Done():
			case <-time.After(lastPosts):
			}
			l.end()
			l.crew.dismiss()
		}()
	})
}

func (l *sseLink) closed() <-chan struct{} { return l.crew.done }
