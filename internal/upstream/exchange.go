package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// lateTime is how long a stream may go on after the reply: long enough to end in
// an orderly way, so that its connection can be used again, and for the last log
// lines of a call.
const lateTime = time.Second

// exchange is one request over HTTP and everything that belongs to it: the POST,
// its answer, and what is done to go on when the answer breaks off. It runs on a
// goroutine of its own and shares nothing with other exchanges but the
// connection pool, so its trouble stays its own.
type exchange struct {
	link   *httpLink
	f      *flight
	ctx    context.Context
	cancel context.CancelFunc
	body   *payload

	outside  letter
	modern   bool
	greeting <-chan struct{} // what has to be delivered first; nil for nothing
	said     <-chan struct{} // what should be delivered first, if it does not take long

	began   time.Time
	cleared time.Time // when a probe last found the server alive; guarded by the link
	session string    // the one the last POST named
	replied bool
	late    *time.Timer
	listen  *listening // for subscriptions/listen
}

func newExchange(l *httpLink, f *flight) *exchange {
	x := &exchange{link: l, f: f, began: time.Now(), body: newPayload(f.msg.Raw), outside: l.read(&f.msg)}
	x.ctx, x.cancel = context.WithCancel(l.ctx)
	x.modern = x.outside.modern()
	if x.modern && x.outside.method == wire.MethodListen {
		x.listen = new(listening)
	}
	return x
}

func (x *exchange) run() {
	defer x.end()
	if x.greeting != nil {
		// A server may refuse everything that overtakes the client's greeting.
		select {
		case <-x.greeting:
		case <-x.ctx.Done():
			x.fail(x.link.unsent(nil))
			return
		}
	}
	x.awaitTurn()
	if x.outside.method == wire.MethodInitialize && x.link.place.oldStyle.Load() && x.fallBack() {
		return
	}
	flt := x.ask()
	if x.listen != nil {
		flt = x.relisten(flt)
	}
	if flt != nil {
		x.fail(flt)
	}
}

// turnTime is how long a request waits for what the client said before it. Each
// goes its own way over HTTP, and a server that is slow to take a notification is
// no reason to keep everything else from it.
const turnTime = time.Second

// awaitTurn keeps a request from overtaking the notification before it.
func (x *exchange) awaitTurn() {
	if x.said == nil {
		return
	}
	select {
	case <-x.said:
		return
	default:
	}
	patience := time.NewTimer(turnTime)
	defer patience.Stop()
	select {
	case <-x.said:
	case <-patience.C:
	case <-x.ctx.Done():
	}
}

// end forgets the exchange.
func (x *exchange) end() {
	x.cancel()
	if x.late != nil {
		x.late.Stop()
	}
	x.link.mu.Lock()
	delete(x.link.live, x.f)
	if len(x.link.live) == 0 && x.link.quiet != nil {
		close(x.link.quiet)
		x.link.quiet = nil
	}
	x.link.mu.Unlock()
}

func (x *exchange) settle(o Outcome) {
	x.body.takeBack()
	x.f.settle(o)
}

func (x *exchange) fail(flt *fault.Fault) {
	if x.ctx.Err() != nil && flt.Delivery != fault.Refused {
		flt.Moment = fault.AtCall // we gave it up; that says nothing about the server
		flt.Text, flt.Cause = linkClosed().Text, wire.ErrClosed
	}
	x.settle(Outcome{Fault: flt})
}

// ask posts the request and reads the answer. It returns nil when the call is
// settled or somebody else sees to it.
func (x *exchange) ask() *fault.Fault {
	l := x.link
	header, session := l.headers(&x.f.msg, x.outside, x.f.header)
	x.session = session
	j := &journey{left: &x.f.left}
	resp, err := l.place.do(x.ctx, j, http.MethodPost, l.place.url, header, x.body)
	if err != nil {
		return l.place.undelivered(j, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return x.refused(resp)
	}
	if x.outside.method == wire.MethodInitialize {
		l.admit(resp.Header.Get(headerSession))
	}
	if mediaType(resp.Header) == typeEvents {
		x.f.started.Store(true)
		return x.follow(resp)
	}
	return x.whole(resp)
}

// whole reads an answer that is one body.
func (x *exchange) whole(resp *http.Response) *fault.Fault {
	p := x.link.place
	body, err := readBody(resp, p.limit)
	if err != nil {
		return p.broken(resp, "the reply broke off", body, err)
	}
	if resp.StatusCode == http.StatusAccepted && len(body) == 0 && x.awaitAside() {
		return nil
	}
	messages, err := parseAll(body)
	if err != nil {
		if mediaType(resp.Header) == typeJSON && len(body) > 0 {
			return p.broken(resp, "the reply could not be read", body, err)
		}
		return p.refusal(resp, body)
	}
	for _, m := range messages {
		if flt := x.heard(m, resp.StatusCode); flt != nil {
			return flt
		}
	}
	if !x.replied {
		return p.broken(resp, "the answer holds no reply to the request", body, nil)
	}
	return nil
}

// awaitAside waits for a reply that the server sends over the stream for what belongs
// to no call, as some do. It reports false when there is no such stream, or it is over.
func (x *exchange) awaitAside() bool {
	x.link.mu.Lock()
	aside := x.link.aside
	x.link.mu.Unlock()
	if x.modern || aside == nil {
		return false
	}
	x.f.started.Store(true)
	select {
	case <-x.ctx.Done(): // with the reply, or because it was given up
	case <-aside:
	}
	return x.f.settled.Load()
}

// readBody reads a body whole. The length that the peer promises is believed only
// up to a point, and what comes is kept in pieces until its end is known: a body
// without end takes no more than the limit.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	const trust = 1 << 20
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= int64(limit) {
		b.Grow(int(min(n, trust)) + bytes.MinRead)
	}
	first := min(limit, trust)
	if _, err := b.ReadFrom(io.LimitReader(resp.Body, int64(first))); err != nil || b.Len() < first {
		return b.Bytes(), err
	}
	pieces := [][]byte{b.Bytes()}
	for total := b.Len(); ; {
		piece := make([]byte, min(trust, limit-total)+1)
		n, err := 0, error(nil)
		for n < len(piece) && err == nil {
			var more int
			more, err = resp.Body.Read(piece[n:])
			n += more
		}
		total += n
		pieces = append(pieces, piece[:n])
		switch {
		case total > limit:
			return pieces[0], wire.ErrTooLong
		case errors.Is(err, io.EOF):
			return slices.Concat(pieces...), nil
		case err != nil:
			return slices.Concat(pieces...), err
		}
	}
}

// parseAll reads a body of one message, or of the array that JSON-RPC calls a batch.
func parseAll(body []byte) ([]wire.Message, error) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	m, err := wire.Parse(body)
	if errors.Is(err, wire.ErrUTF8) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
		m, err = wire.Parse(body)
	}
	if err == nil {
		return []wire.Message{m}, nil
	}
	if len(body) == 0 || body[0] != '[' || wire.Valid(body) != nil {
		return nil, err
	}
	var all []wire.Message
	wire.EachElement(body, func(element []byte) {
		var m wire.Message
		if m, err = wire.Parse(element); err == nil {
			all = append(all, m)
		}
	})
	if len(all) == 0 {
		return nil, wire.ErrEnvelope
	}
	return all, nil
}

// heard takes one message of the answer. A fault says that the call cannot be
// answered any more.
func (x *exchange) heard(m wire.Message, status int) *fault.Fault {
	// A message may come pretty-printed and go on over a line-based transport.
	m.Raw = wire.OneLine(m.Raw)
	if m.Kind != wire.Response {
		x.f.started.Store(true)
		x.pass(m)
		return nil
	}
	if x.replied {
		m.Release()
		return nil
	}
	request := x.f.msg.ID()
	switch {
	case sameID(m.ID(), request):
	case !m.HasID():
		if m = withID(m, request); m.Kind != wire.Response {
			return x.strange(&m, status)
		}
	default:
		return x.strange(&m, status)
	}
	return x.answer(m, status)
}

func (x *exchange) strange(m *wire.Message, status int) *fault.Fault {
	return &fault.Fault{
		Delivery: fault.Partial,
		Evidence: fault.Evidence{
			Text:       fmt.Sprintf("the server answered with the id %.40s instead of %.40s", m.ID(), x.f.msg.ID()),
			HTTPStatus: status,
			Moment:     fault.AtCall,
		},
	}
}

// answer settles the call with its reply. An error that names a lost session is an
// answer like any other, since the tool may have run; but the session is looked
// at, so that the next call finds a new one.
func (x *exchange) answer(m wire.Message, status int) *fault.Fault {
	if x.session != "" && m.Error() != nil {
		if _, text := wire.ErrorOf(&m); fault.SessionIsLost(status, text) {
			// A tool may speak of sessions of its own, so the server is asked.
			if lives, confirmed := x.link.sessionLives(x.ctx); !lives {
				x.link.lose(confirmed, text)
			}
		}
	}
	if x.modern && x.outside.method == wire.MethodTools && m.Result() != nil {
		x.link.place.params.learn(m.Result())
	}
	x.replied = true
	x.settle(Outcome{Reply: m, Status: status})
	return nil
}

// pass hands on what is no reply. After the reply it belongs to no call.
func (x *exchange) pass(m wire.Message) {
	if x.listen != nil && !x.listen.pass(x, &m) {
		m.Release()
		return
	}
	if x.f.settled.Load() {
		x.link.hear(m, nil)
		awaitRoom(x.ctx, x.link.clientRoom)
		return
	}
	x.link.hear(m, x.f)
	if x.f.room != nil {
		awaitRoom(x.ctx, x.f.room)
	}
}

// sameID compares ids as they mean. There is one request in an exchange, so a
// server whose JSON library turned the number into a string or rounded it has
// still named the right one.
func sameID(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	s, aText := wire.StringValue(a)
	t, bText := wire.StringValue(b)
	if !aText {
		s = string(a)
	}
	if !bText {
		t = string(b)
	}
	if s == t {
		return true
	}
	if aText && bText {
		return false
	}
	n, err := strconv.ParseFloat(s, 64)
	k, err2 := strconv.ParseFloat(t, 64)
	return err == nil && err2 == nil && n == k
}

// withID is a response with the request's id in place of none.
func withID(m wire.Message, id []byte) wire.Message {
	out, err := wire.Parse(wire.Set(m.Raw, id, "id"))
	if err != nil {
		return wire.Message{}
	}
	return out
}

// refused takes an answer whose status is no success. A JSON-RPC response in it
// that names the request is the reply, whatever the status: only a few codes say
// that nothing ran.
func (x *exchange) refused(resp *http.Response) *fault.Fault {
	p := x.link.place
	body, _ := readAtMost(resp.Body, min(p.limit, 1<<20))
	flt := p.refusal(resp, body)
	flt.HadSession = x.session != ""
	messages, err := parseAll(body)
	isReply := err == nil && len(messages) == 1 && messages[0].Kind == wire.Response
	words, own := string(body), false
	if isReply {
		m := &messages[0]
		flt.RPCCode, words = wire.ErrorOf(m)
		own = sameID(m.ID(), x.f.msg.ID())
		isReply = own || !m.HasID() || m.Error() != nil && string(m.ID()) == `"server-error"`
	}
	if own && !(messages[0].Error() != nil && fault.NeverExecuted(flt.RPCCode)) {
		return x.heard(messages[0], resp.StatusCode)
	}
	if x.session != "" && fault.SessionIsLost(resp.StatusCode, words) {
		unknownMethod := own && flt.RPCCode == wire.CodeMethodNotFound && !fault.SessionIsLost(http.StatusBadRequest, words)
		if !unknownMethod {
			lost := x.link.lose(resp.StatusCode, p.excerpt([]byte(words), mediaType(resp.Header)))
			lost.RPCCode = flt.RPCCode
			return lost
		}
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return flt
	}
	if isReply {
		m := withID(messages[0], x.f.msg.ID())
		if m.Kind == wire.Response {
			return x.heard(m, resp.StatusCode)
		}
	}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		if x.outside.method == wire.MethodInitialize && err != nil && x.fallBack() {
			return nil
		}
	}
	return flt
}

// sessionLives asks the server whether it knows the session, without side effects.
// When that cannot be told the answer is yes. status is that of a no.
func (l *httpLink) sessionLives(ctx context.Context) (yes bool, status int) {
	ctx, cancel := context.WithTimeout(ctx, byeTimeout)
	defer cancel()
	ping := wire.NewRequest([]byte(`"mcpmend-session"`), wire.MethodPing, nil)
	header, _ := l.headers(&ping, l.read(&ping), nil)
	resp, err := l.place.do(ctx, new(journey), http.MethodPost, l.place.url, header, newPayload(ping.Raw))
	if err != nil {
		return true, 0
	}
	defer resp.Body.Close()
	text, _ := readAtMost(resp.Body, 4<<10)
	return !fault.SessionIsLost(resp.StatusCode, string(text)), resp.StatusCode
}
