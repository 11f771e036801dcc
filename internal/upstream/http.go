package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/secret"
	"github.com/mcpmend/mcpmend/internal/wire"
)

const (
	// defaultLostAfter is how long TCP may go without an acknowledgement before a
	// connection is lost, about what a Go program of its own would wait.
	defaultLostAfter = 2 * time.Minute
	dialTimeout      = 30 * time.Second
	keepAliveIdle    = 15 * time.Second
	keepAliveEvery   = 5 * time.Second
	byeTimeout       = 2 * time.Second // for telling a server that its session is over
	lastPosts        = 500 * time.Millisecond
	// lingerTime is how long calls of a lost session may go on beside the new one.
	lingerTime   = 30 * time.Second
	maxRedirects = 5
)

// errSessionLost is the cause of a fault when the server no longer knows the
// session. Nothing ran; a new session mends it.
var errSessionLost = errors.New("the server no longer knows the session")

// httpPlace is a server that is reached over HTTP, and what its links share: the
// pool of connections, and what was learned about the server.
type httpPlace struct {
	url    *url.URL
	client *http.Client
	header http.Header // the configured one, sent along with everything
	hide   *secret.Hider
	limit  int
	// lostAfter bounds what expects no reply: a notification, a response.
	lostAfter time.Duration

	// oldStyle: the server was found to speak the transport of 2024-11-05 only.
	oldStyle atomic.Bool
	reached  atomic.Int64 // when the first connection stood, in nanoseconds; 0 if none did
	params   paramHeaders
	sizes    atomic.Int64 // how large the last large event was
}

// keepAlive has a connection probed such that it is lost after so long without an
// acknowledgement, also while it waits for a reply. The kernel counts in seconds.
func keepAlive(lostAfter time.Duration) net.KeepAliveConfig {
	idle := max(time.Second, min(keepAliveIdle, (lostAfter/2).Truncate(time.Second)))
	every := max(time.Second, min(keepAliveEvery, ((lostAfter-idle)/2).Truncate(time.Second)))
	return net.KeepAliveConfig{Enable: true, Idle: idle, Interval: every, Count: max(1, int((lostAfter-idle)/every))}
}

func newHTTPPlace(u *url.URL, spec *Spec) *httpPlace {
	p := &httpPlace{url: u, header: ownHeader(spec.Header), limit: spec.MaxMessage, lostAfter: spec.LostAfter}
	p.hide = secretsOf(u, p.header)
	if p.limit <= 0 {
		p.limit = wire.DefaultLimit
	}
	// Whether the server is there is TCP's to find out, and nobody else's: a server
	// that is busy answers no question, neither ours nor HTTP/2's, and its kernel
	// still acknowledges.
	dialer := &net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: keepAlive(spec.LostAfter),
		Control:         func(_, _ string, c syscall.RawConn) error { return giveUpUnacknowledged(c, spec.LostAfter) },
	}
	p.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := dialer.DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				p.reached.CompareAndSwap(0, time.Now().UnixNano())
				return &countedConn{Conn: c}, nil
			},
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    spec.LostAfter,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    256,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 256 << 10,
			DisableCompression:     true, // a small answer must not be able to become a large one
		},
		CheckRedirect: notFollowed,
	}
	return p
}

var (
	errTooManyRedirects = errors.New("redirected too often")
	errOtherOrigin      = errors.New("redirected to another origin, which is never followed")
)

// redirected is where a response sends the request on to, nil if nowhere. The
// method and the body stay what they were, and so does the origin: a call, its
// arguments and our credentials go to the server that was named and to no other.
func redirected(resp *http.Response) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if resp.Request.Method != http.MethodGet {
			return nil, nil // it would become a GET
		}
	default:
		return nil, nil
	}
	to, err := resp.Location()
	if err != nil {
		return nil, nil
	}
	if !sameOrigin(to, resp.Request.URL) {
		return nil, fmt.Errorf("%w: %s://%s", errOtherOrigin, to.Scheme, to.Host)
	}
	return to, nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// do sends one HTTP request. body may be nil. j notes how far it got.
func (p *httpPlace) do(ctx context.Context, j *journey, method string, to *url.URL, header http.Header, body *payload) (*http.Response, error) {
	return p.doWith(ctx, p.client, j, method, to, header, body)
}

func (p *httpPlace) doWith(ctx context.Context, client *http.Client, j *journey, method string, to *url.URL, header http.Header, body *payload) (*http.Response, error) {
	for range maxRedirects + 1 {
		req := &http.Request{
			Method: method, URL: to, Header: header, Host: header.Get("Host"),
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		}
		if body != nil {
			// There is no GetBody on purpose: with it net/http sends a request again that
			// the server may have run, over HTTP/2 without a limit.
			req.ContentLength = int64(body.size())
			req.Body = body.reader()
		}
		resp, err := client.Do(req.WithContext(j.trace(ctx)))
		if err != nil {
			return nil, err
		}
		next, err := redirected(resp)
		if err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		if next == nil {
			return resp, nil
		}
		_, _ = readAtMost(resp.Body, 4<<10) // so that the connection can be used again
		_ = resp.Body.Close()
		to = next
	}
	return nil, errTooManyRedirects
}

// notFollowed leaves redirects to doWith.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// payload is a request's body that can be taken back. The HTTP transport may still
// be reading it when the answer is complete, and from then on the bytes may
// belong to somebody else.
type payload struct {
	mu    sync.Mutex
	bytes []byte
	n     int
}

func newPayload(b []byte) *payload { return &payload{bytes: b, n: len(b)} }

func (p *payload) size() int { return p.n }

func (p *payload) takeBack() {
	p.mu.Lock()
	p.bytes = nil
	p.mu.Unlock()
}

func (p *payload) reader() io.ReadCloser { return &payloadReader{from: p} }

type payloadReader struct {
	from *payload
	off  int
}

func (r *payloadReader) Read(dst []byte) (int, error) {
	r.from.mu.Lock()
	defer r.from.mu.Unlock()
	switch {
	case r.off == r.from.n:
		return 0, io.EOF
	case r.from.bytes == nil:
		return 0, context.Canceled
	}
	n := copy(dst, r.from.bytes[r.off:])
	r.off += n
	return n, nil
}

func (r *payloadReader) Close() error { return nil }

// httpLink is a conversation over Streamable HTTP: one legacy session, or what
// all clients of a modern server share. Each request is an exchange of its own
// with a goroutine of its own; an idle link has none.
type httpLink struct {
	place *httpPlace
	ear   receiver        // guarded by mu
	ctx   context.Context // ends when the link does
	end   context.CancelFunc
	crew  crew
	out   outbox

	// old is set when the server turned out to speak the old transport. From then
	// on it does the work.
	old atomic.Pointer[sseLink]

	mu        sync.Mutex
	version   string
	session   string
	lost      bool // the server has forgotten the session
	down      *fault.Fault
	closing   bool
	attending bool
	aside     chan struct{}   // closed when the stream for what belongs to no call is over; nil before it is open
	probing   bool            // a question whether the server lives is under way
	askedAt   time.Time       // when the last one was asked
	greeting  <-chan struct{} // closed when notifications/initialized has been delivered
	said      <-chan struct{} // closed when the last thing that was posted has been delivered
	live      map[*flight]*exchange
	quiet     chan struct{} // closed when live is empty; nil while nobody waits for that
}

func (p *httpPlace) dial(hear receiver) *httpLink {
	l := &httpLink{place: p, ear: hear, live: make(map[*flight]*exchange)}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.crew.init()
	l.out = outbox{start: l.crew.start, deliver: l.deliver}
	return l
}

func (l *httpLink) send(f *flight) {
	if old := l.old.Load(); old != nil {
		old.send(f)
		return
	}
	x := newExchange(l, f)
	l.mu.Lock()
	down, settled := l.down, f.settled.Load()
	if down == nil && !settled {
		x.greeting, x.said = l.greeting, l.said
		l.live[f] = x
	}
	l.mu.Unlock()
	switch {
	case settled: // given up before it was sent
		x.cancel()
	case down != nil || !l.crew.start(x.run):
		x.end()
		f.fail(l.unsent(down))
	}
}

// unsent is the fault of a request that found the link down.
func (l *httpLink) unsent(down *fault.Fault) *fault.Fault {
	if down == nil {
		down = linkClosed()
	}
	one := *down
	one.Delivery = fault.Unsent
	return &one
}

func linkClosed() *fault.Fault {
	return &fault.Fault{Evidence: fault.Evidence{Text: "the connection was closed", Moment: fault.AtCall}, Cause: wire.ErrClosed}
}

func (l *httpLink) abandon(f *flight, note *wire.Message) {
	if old := l.old.Load(); old != nil {
		old.abandon(f, note)
		return
	}
	// Settling under the lock and sending under the same lock exclude each other,
	// so a call is never both given up and sent afterwards.
	l.mu.Lock()
	x := l.live[f]
	won := f.settled.CompareAndSwap(false, true)
	l.mu.Unlock()
	if x != nil {
		if !x.modern && f.left.Load() && x.outside.method != wire.MethodInitialize {
			_ = l.post(cancelNote(f.msg.ID(), note))
		}
		x.body.takeBack()
		x.cancel() // in the modern era this is what tells the server
	}
	if won { // and it says nothing about the server's health
		f.done(Outcome{Fault: &fault.Fault{Delivery: fault.Cancelled}})
	}
}

// cancelNote is what tells a legacy server that a reply is no longer wanted.
func cancelNote(id []byte, note *wire.Message) wire.Message {
	var params []byte
	if note != nil {
		params = note.Params()
	}
	return wire.NewNotification(wire.MethodCancelled, wire.Set(params, id, "requestId"))
}

func (l *httpLink) post(m wire.Message) error {
	if old := l.old.Load(); old != nil {
		return old.post(m)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return l.down
	}
	done, err := l.out.put(m)
	if err == nil && m.Method() == wire.MethodInitialized {
		l.greeting = done
	}
	if err == nil {
		l.said = done
	}
	return err
}

// deliver posts what expects no reply. A failure is nobody's to hear of: such a
// message is delivered at most once.
func (l *httpLink) deliver(m wire.Message) {
	ctx, cancel := context.WithTimeout(l.ctx, l.place.lostAfter)
	defer cancel()
	header, session := l.headers(&m, l.read(&m), nil)
	body := newPayload(m.Raw)
	resp, err := l.place.do(ctx, new(journey), http.MethodPost, l.place.url, header, body)
	body.takeBack()
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = readAtMost(resp.Body, 4<<10)
	if session != "" && resp.StatusCode == http.StatusNotFound {
		l.lose(resp.StatusCode, "")
	}
}

func (l *httpLink) speak(version string) {
	l.mu.Lock()
	l.version = version
	l.mu.Unlock()
}

// adopt gives the link to another listener. Whether it is shared changes nothing:
// every request is an exchange of its own.
func (l *httpLink) adopt(hear receiver, _ bool) {
	l.mu.Lock()
	l.ear = hear
	l.mu.Unlock()
}

func (l *httpLink) settled() {}

// hear passes on what the server says outside of replies.
func (l *httpLink) hear(m wire.Message, f *flight) {
	l.mu.Lock()
	ear := l.ear
	l.mu.Unlock()
	ear.take(l, m, f)
}

// clientRoom asks whether the client has room for what belongs to no call.
func (l *httpLink) clientRoom() <-chan struct{} {
	l.mu.Lock()
	room := l.ear.room
	l.mu.Unlock()
	if room == nil {
		return nil
	}
	return room()
}

// awaitRoom waits until there is room for more. Every exchange has a connection of
// its own, so nobody else waits with it.
func awaitRoom(ctx context.Context, room func() <-chan struct{}) {
	if full := room(); full != nil {
		select {
		case <-full:
		case <-ctx.Done():
		}
	}
}

func (l *httpLink) room() <-chan struct{} {
	if old := l.old.Load(); old != nil {
		return old.out.room()
	}
	return l.out.room()
}

// left changes nothing: exchanges share no stream.
func (l *httpLink) left(*Session) {}

// admit takes the session that the server opened with its reply to initialize.
func (l *httpLink) admit(session string) {
	if !visible(session) {
		return
	}
	l.mu.Lock()
	l.session = session
	l.mu.Unlock()
}

// visible reports whether a session id is one by the standard: printable ASCII
// without a space. Anything else could not be sent back.
func visible(session string) bool {
	for i := range len(session) {
		if session[i] < 0x21 || session[i] > 0x7e {
			return false
		}
	}
	return session != ""
}

// lose notes that the server has forgotten the session. New requests are refused
// from now on; those under way are left to find out for themselves. words are an
// excerpt of the server's own.
func (l *httpLink) lose(status int, words string) *fault.Fault {
	flt := &fault.Fault{
		Delivery: fault.Refused,
		Evidence: fault.Evidence{Text: errSessionLost.Error(), HTTPStatus: status, HadSession: true, Moment: fault.AtCall},
		Cause:    errSessionLost,
	}
	if words != "" {
		flt.Text += ": " + words
	}
	l.mu.Lock()
	l.lost = true
	if l.down == nil {
		down := *flt
		l.down = &down
	}
	l.mu.Unlock()
	return flt
}

func (l *httpLink) trouble() *fault.Fault {
	if old := l.old.Load(); old != nil {
		return old.trouble()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *httpLink) closed() <-chan struct{} { return l.crew.done }

// close ends the link: what is under way is given up, what was said last is still
// delivered, the server is told, and then everything stops. Closing a second
// time skips to the end.
func (l *httpLink) close() {
	l.mu.Lock()
	again, lost := l.closing, l.lost
	l.closing = true
	if l.down == nil {
		l.down = linkClosed()
	}
	l.mu.Unlock()
	if again {
		l.end()
		return
	}
	go l.wind(lost)
}

func (l *httpLink) wind(lost bool) {
	if old := l.old.Load(); old != nil {
		old.close()
		<-old.closed()
	} else {
		if lost {
			// A session is often lost for one pod and alive on another, where the
			// other calls go on. They get the time to end by themselves.
			l.linger()
		}
		l.giveUpAll()
		select {
		case <-l.out.idle():
		case <-l.ctx.Done():
		case <-time.After(lastPosts):
		}
		if !lost {
			l.sayGoodbye()
		}
	}
	l.end()
	l.crew.dismiss()
}

// linger waits until no call is under way.
func (l *httpLink) linger() {
	l.mu.Lock()
	if len(l.live) == 0 {
		l.mu.Unlock()
		return
	}
	quiet := make(chan struct{})
	l.quiet = quiet
	l.mu.Unlock()
	select {
	case <-quiet:
	case <-l.ctx.Done():
	case <-time.After(lingerTime):
	}
}

func (l *httpLink) giveUpAll() {
	l.mu.Lock()
	left := make([]*exchange, 0, len(l.live))
	for _, x := range l.live {
		left = append(left, x)
	}
	l.mu.Unlock()
	for _, x := range left {
		x.cancel()
	}
}

// sayGoodbye ends the session on the server, which would otherwise keep it.
func (l *httpLink) sayGoodbye() {
	l.mu.Lock()
	session, version := l.session, l.version
	l.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, byeTimeout)
	defer cancel()
	header := l.place.baseHeader()
	l.stamp(header, version, session)
	if resp, err := l.place.do(ctx, new(journey), http.MethodDelete, l.place.url, header, nil); err == nil {
		_, _ = readAtMost(resp.Body, 4<<10)
		_ = resp.Body.Close()
	}
}

// crew counts the goroutines of a link, so that the end of the last one can be told.
type crew struct {
	mu        sync.Mutex
	n         int
	dismissed bool
	done      chan struct{}
}

func (c *crew) init() { c.done = make(chan struct{}) }

// start runs work on a goroutine of its own unless the crew has been dismissed.
func (c *crew) start(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dismissed {
		return false
	}
	c.n++
	go func() {
		defer c.leave()
		work()
	}()
	return true
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.dismissed {
		close(c.done)
	}
}

// dismiss takes nobody new; done is closed when the last one has left.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dismissed {
		return
	}
	if c.dismissed = true; c.n == 0 {
		close(c.done)
	}
}

// outbox sends messages that expect no reply, one after the other. Its goroutine
// lives as long as there is something to send.
type outbox struct {
	start   func(func()) bool
	deliver func(wire.Message)

	mu     sync.Mutex
	queue  []outgoing
	size   int
	busy   bool
	waiter chan struct{} // closed when idle; nil while nobody asked
	full   chan struct{} // closed when there is room again; nil while nobody asked
}

// room is nil while there is room for more; otherwise it is closed when there is.
func (o *outbox) room() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) < outboxMessages && o.size <= outboxBytes {
		return nil
	}
	if o.full == nil {
		o.full = make(chan struct{})
	}
	return o.full
}

type outgoing struct {
	msg  wire.Message
	done chan struct{}
}

// What may wait for a server that does not take it, before there is no room for more.
const (
	outboxMessages = 1024
	outboxBytes    = 1 << 20
)

// put queues a message and returns a channel that is closed when it has been
// delivered or has failed.
func (o *outbox) put(m wire.Message) (<-chan struct{}, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	item := outgoing{msg: m, done: make(chan struct{})}
	if !o.busy {
		o.busy = true
		if !o.start(o.pump) {
			o.busy = false
			return nil, wire.ErrClosed
		}
	}
	o.queue = append(o.queue, item)
	o.size += len(m.Raw)
	return item.done, nil
}

func (o *outbox) pump() {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			o.queue, o.busy = nil, false
			if o.waiter != nil {
				close(o.waiter)
				o.waiter = nil
			}
			o.mu.Unlock()
			return
		}
		item := o.queue[0]
		o.queue[0] = outgoing{}
		o.queue = o.queue[1:]
		o.size -= len(item.msg.Raw)
		if o.full != nil && len(o.queue) <= outboxMessages/2 && o.size <= outboxBytes/2 {
			close(o.full)
			o.full = nil
		}
		o.mu.Unlock()
		o.deliver(item.msg)
		close(item.done)
		item.msg.Release()
	}
}

// idle returns a channel that is closed when nothing waits.
func (o *outbox) idle() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiter != nil {
		return o.waiter
	}
	w := make(chan struct{})
	if o.busy {
		o.waiter = w
	} else {
		close(w)
	}
	return w
}
