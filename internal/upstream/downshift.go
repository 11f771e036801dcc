package upstream

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// downshift is the dialect for modern clients on a legacy server. We introduce
// ourselves in the words of the first request; a question the server asks in the
// middle of a call ends that call with "input required" towards the client, while
// the call itself stays open behind us until the client comes back with answers.
type downshift struct {
	session *Session
	link    link
	about   []byte // the server's initialize result

	mu        sync.Mutex
	listeners map[*Call]struct{}
	holds     map[*Call]*hold // by the request that opened the call
	level     string
	opened    uint64 // how many calls there have been
}

// hold is a call that stays open at the server over several rounds of a client.
type hold struct {
	down   *downshift
	first  *Call // the request that opened it
	number uint64

	mu      sync.Mutex
	call    *Call          // the client's present request; nil while it has to answer first
	asked   []wire.Message // questions of the server not yet put to the client
	current wire.Message   // the one the client is answering
	outcome *Outcome       // came while no request of the client was there to take it
	expiry  *time.Timer
}

const (
	statePrefix = "mcpmend-"
	holdTime    = 10 * time.Minute
	mostHeld    = 1024 // calls of one client that wait for its answers
)

// held are the calls whose client has to answer first, by request state. They belong
// to the session: a client may come back after the server is gone, and has to be
// told that.
type held struct {
	mu sync.Mutex
	by map[string]*hold
}

// add files a call, and reports false if there are too many.
func (t *held) add(state string, h *hold) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.by) >= mostHeld {
		return false
	}
	if t.by == nil {
		t.by = make(map[string]*hold)
	}
	t.by[state] = h
	return true
}

// take hands out the call that a request goes on with; nil if there is none.
func (t *held) take(state string, c *Call) *hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.by[state]
	if h == nil || c != nil && !h.continuedBy(c) {
		return nil
	}
	delete(t.by, state)
	return h
}

// continuedBy reports whether a request asks for the same as the one that opened the
// call.
func (h *hold) continuedBy(c *Call) bool {
	first := &h.first.Msg
	if c.Msg.Method() != first.Method() {
		return false
	}
	key := nameKeyOf(first.Method())
	was, _ := wire.Member(first.Params(), key)
	is, _ := wire.Member(c.Msg.Params(), key)
	return bytes.Equal(was, is)
}

// downshift introduces us to a legacy server. probed is the link over which its
// era was asked, nil if that was known. late is the question if it is still
// unanswered: should the server turn out to be slow and not silent, it is modern
// after all.
func (s *Session) downshift(probed link, late <-chan Outcome) (dialect, *fault.Fault) {
	d := &downshift{session: s, listeners: make(map[*Call]struct{}), holds: make(map[*Call]*hold)}
	if probed != nil && probed.trouble() == nil && s.server.demote(probed, d.hear, s.peer.Several) {
		d.link = probed
	} else {
		late = nil
		if probed != nil && probed.trouble() != nil {
			// The question killed it. Never two at once: wait until it is gone.
			s.server.drop(probed)
			<-probed.closed()
		}
		l, flt := s.server.dial(d.hear)
		if flt != nil {
			return nil, flt
		}
		l.adopt(d.hear, s.peer.Several) // the tokens of several clients are kept apart
		d.link = l
	}
	d.link.speak("")
	hello := s.helloFromFirst()
	_, reply := s.begin(d.link, wire.MethodInitialize, hello)
	limit, stop := after(s.server.spec.StartTimeout)
	defer stop()
	for {
		select {
		case o := <-late:
			late = nil
			if isDiscovery(o) {
				s.server.modern.learn(true)
				s.server.promote(d.link)
				return &stateless{session: s}, nil
			}
		case o := <-reply:
			if o.Fault != nil || o.Reply.Result() == nil {
				s.server.drop(d.link)
				return nil, s.giveUp(nil, o)
			}
			s.server.legacy.learn(true)
			s.server.modern.learn(false)
			d.about = bytes.Clone(o.Reply.Result())
			version, _ := wire.Member(d.about, "protocolVersion")
			text, _ := wire.StringValue(version)
			d.link.speak(text)
			d.link.settled()
			_ = d.link.post(wire.NewNotification(wire.MethodInitialized, nil))
			d.link.attend()
			return d, nil
		case <-limit:
			s.server.drop(d.link)
			return nil, s.giveUp(nil, tooSlow(wire.MethodInitialize, s.server.spec.StartTimeout))
		}
	}
}

// helloFromFirst makes the params of an initialize from what the first waiting
// request says about its client.
func (s *Session) helloFromFirst() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hello == nil {
		info, capabilities := []byte(`{"name":"mcpmend","version":"0"}`), []byte("{}")
		for _, w := range s.waiting {
			if w.call == nil {
				continue
			}
			if v, ok := wire.Member(w.call.Msg.Params(), "_meta", wire.MetaClientInfo); ok {
				info = v
			}
			if v, ok := wire.Member(w.call.Msg.Params(), "_meta", wire.MetaCapabilities); ok {
				capabilities = v
			}
			break
		}
		// Roots are asked for outside of calls, where a modern client cannot be asked.
		capabilities = wire.Remove(capabilities, "roots")
		s.hello = fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"clientInfo":%s}`, wire.LegacyVersion, capabilities, info)
	}
	return s.hello
}

func (d *downshift) usable() bool      { return d.link.trouble() == nil }
func (d *downshift) over() link        { return d.link }
func (d *downshift) probe() string     { return wire.MethodPing }
func (d *downshift) ownParams() []byte { return nil }
func (d *downshift) attend()           {}

func (d *downshift) close() {
	d.session.server.drop(d.link)
	d.mu.Lock()
	listeners := d.listeners
	d.listeners = nil
	d.mu.Unlock()
	for c := range listeners {
		c.finish(Outcome{Fault: &fault.Fault{
			Delivery: fault.Started,
			Evidence: fault.Evidence{Text: "the server is gone", Moment: fault.WhenIdle},
		}})
	}
}

func (d *downshift) send(m wire.Message) { _ = d.link.post(m) }

func (d *downshift) call(c *Call) {
	params := c.Msg.Params()
	switch method := c.Msg.Method(); method {
	case wire.MethodDiscover:
		c.finish(Outcome{Reply: wire.NewResult(c.Msg.ID(), d.description())})
	case wire.MethodListen:
		d.listen(c)
	case wire.MethodInitialize, wire.MethodPing, "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		c.finish(Outcome{Reply: wire.NewError(c.Msg.ID(), wire.CodeMethodNotFound, "method not found: "+method, nil)})
	default:
		if raw, ok := wire.Member(params, "requestState"); ok {
			if state, _ := wire.StringValue(raw); strings.HasPrefix(state, statePrefix) {
				d.resume(c, state)
				return
			}
		}
		d.setLevel(params)
		d.open(c)
	}
}

// open sends a request to the server. From then on the server's call belongs to
// the hold, whichever of the client's requests is the present one.
func (d *downshift) open(c *Call) {
	h := &hold{down: d, first: c, call: c}
	d.mu.Lock()
	d.opened++
	h.number = d.opened
	d.holds[c] = h
	d.mu.Unlock()
	// Modern clients know nothing of each other, so their ids may be the same.
	msg := legacyRequest(c.Msg)
	msg = msg.WithID(fmt.Appendf(nil, `"mcpmend-%d"`, ownIDs.Add(1)))
	d.session.fly(d.link, c, msg, h.hear, h.settled)
}

// legacyRequest is a modern request without what only a modern server understands,
// and which over HTTP would make it a request of the wrong version.
func legacyRequest(m wire.Message) wire.Message {
	params := m.Params()
	for _, key := range []string{wire.MetaVersion, wire.MetaCapabilities, wire.MetaClientInfo, wire.MetaLogLevel} {
		params = wire.Remove(params, "_meta", key)
	}
	if meta, ok := wire.Member(params, "_meta"); ok && string(bytes.TrimSpace(meta)) == "{}" {
		params = wire.Remove(params, "_meta")
	}
	if params == nil {
		return m
	}
	return m.WithParams(params)
}

// description is the server's initialize result as a discover result.
func (d *downshift) description() []byte {
	out := []byte("{}")
	if info, ok := wire.Member(d.about, "serverInfo"); ok {
		out = wire.Set(out, info, "_meta", wire.MetaServerInfo)
	}
	for _, key := range []string{"instructions", "capabilities"} {
		if v, ok := wire.Member(d.about, key); ok {
			out = wire.Set(out, v, key)
		}
	}
	return wire.Prepend(out, fmt.Appendf(nil, `"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":[%q]`, wire.ModernVersion))
}

// setLevel passes on the log level of a request, when it changes.
func (d *downshift) setLevel(params []byte) {
	raw, ok := wire.Member(params, "_meta", wire.MetaLogLevel)
	if !ok {
		return
	}
	if _, ok := wire.Member(d.about, "capabilities", "logging"); !ok {
		return
	}
	d.mu.Lock()
	same := d.level == string(raw)
	d.level = string(raw)
	d.mu.Unlock()
	if !same {
		d.session.begin(d.link, "logging/setLevel", wire.Set(nil, raw, "level"))
	}
}

// listen keeps a subscription open. It never gets a reply; it hears.
func (d *downshift) listen(c *Call) {
	filter, ok := wire.Member(c.Msg.Params(), "notifications")
	if !ok {
		filter = []byte("{}")
	}
	d.mu.Lock()
	if d.listeners == nil {
		d.mu.Unlock()
		c.finish(Outcome{Fault: sessionEnded()})
		return
	}
	d.listeners[c] = struct{}{}
	d.mu.Unlock()
	f := &flight{link: d, call: c, msg: c.Msg, on: c.On, peer: d.session.peer.Message, done: c.finish}
	c.flight.Store(f)
	params := wire.Set(wire.Set(nil, filter, "notifications"), c.Msg.ID(), "_meta", wire.MetaSubscription)
	f.hear(wire.NewNotification("notifications/subscriptions/acknowledged", params))
	uris, _ := wire.Member(filter, "resourceSubscriptions")
	wire.EachElement(uris, func(uri []byte) {
		d.session.begin(d.link, "resources/subscribe", wire.Set(nil, uri, "uri"))
	})
}

// hear takes what the server says outside of replies.
func (d *downshift) hear(_ link, m wire.Message, f *flight) {
	switch {
	case m.Kind == wire.Request:
		d.asked(m, f)
	case m.Method() == wire.MethodCancelled:
		// It no longer wants an answer. The client knows the question under another
		// name, and its answer will be one that nobody waits for.
		m.Release()
	case standsAlone(m.Method()):
		d.announce(m)
	case f != nil:
		f.hear(m)
	default:
		m.Release()
	}
}

// announce passes a change on to everybody who listens for it.
func (d *downshift) announce(m wire.Message) {
	d.mu.Lock()
	var ears []*flight
	for c := range d.listeners {
		if listensFor(c.Msg.Params(), &m) {
			ears = append(ears, c.flight.Load())
		}
	}
	d.mu.Unlock()
	for _, f := range ears {
		if f != nil {
			f.hear(m.WithParams(wire.Set(m.Params(), f.msg.ID(), "_meta", wire.MetaSubscription)))
		}
	}
}

func listensFor(params []byte, m *wire.Message) bool {
	kinds := map[string]string{
		"notifications/tools/list_changed":     "toolsListChanged",
		"notifications/prompts/list_changed":   "promptsListChanged",
		"notifications/resources/list_changed": "resourcesListChanged",
	}
	if kind, ok := kinds[m.Method()]; ok {
		v, _ := wire.Member(params, "notifications", kind)
		return string(v) == "true"
	}
	uri, _ := wire.Member(m.Params(), "uri")
	uris, _ := wire.Member(params, "notifications", "resourceSubscriptions")
	found := false
	wire.EachElement(uris, func(have []byte) { found = found || bytes.Equal(have, uri) })
	return found
}

// asked takes a question of the server. It can only be put to a client that has
// a call under way.
func (d *downshift) asked(m wire.Message, f *flight) {
	if m.Method() == wire.MethodPing {
		_ = d.link.post(wire.NewResult(m.ID(), []byte("{}")))
		return
	}
	h := d.holdOf(f)
	if h == nil || !h.offers(m.Method()) {
		_ = d.link.post(notAsked(&m))
		return
	}
	h.mu.Lock()
	h.asked = append(h.asked, m)
	h.mu.Unlock()
	h.putToClient()
}

// holdOf finds the hold of a flight. Only requests that may be answered with
// "input required" can be held. A question of which it cannot be told whose call
// led to it is put to nobody.
func (d *downshift) holdOf(f *flight) *hold {
	if f == nil || f.call == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.holds[f.call]; h != nil && h.mayAsk() {
		return h
	}
	return nil
}

// offers reports whether the client has said that it can be asked this.
func (h *hold) offers(method string) bool {
	h.mu.Lock()
	c := h.call
	h.mu.Unlock()
	if c == nil {
		c = h.first // it is answering another question
	}
	capabilities, _ := wire.Member(c.Msg.Params(), "_meta", wire.MetaCapabilities)
	return offered(capabilities, method)
}

// mayAsk reports whether the request is of a kind that may be answered so.
func (h *hold) mayAsk() bool {
	switch h.first.Msg.Method() {
	case wire.MethodCall, "prompts/get", "resources/read":
		return true
	}
	return false
}

// abandon ends a subscription. It is what cancelling a listening call comes to.
func (d *downshift) abandon(f *flight, _ *wire.Message) {
	d.mu.Lock()
	delete(d.listeners, f.call)
	d.mu.Unlock()
	f.fail(&fault.Fault{Delivery: fault.Cancelled})
}

// hear passes on what belongs to the call, to whoever waits for it now.
func (h *hold) hear(m wire.Message) {
	h.mu.Lock()
	c := h.call
	h.mu.Unlock()
	switch {
	case c == nil:
		m.Release()
	case c.On != nil:
		c.On(m)
	default:
		h.down.session.peer.Message(m)
	}
}

// settled takes the outcome of the server's call.
func (h *hold) settled(o Outcome) {
	h.mu.Lock()
	c := h.call
	if c == nil {
		h.outcome = &o
	}
	h.mu.Unlock()
	if c != nil {
		h.end(c, o)
	}
}

func (h *hold) end(c *Call, o Outcome) {
	h.down.mu.Lock()
	delete(h.down.holds, h.first)
	h.down.mu.Unlock()
	if result := o.Reply.Result(); o.Fault == nil && result != nil {
		o.Reply = o.Reply.WithResult(completed(c.Msg.Method(), result))
	}
	c.finish(o)
}

// completed adds what a modern result must say and a legacy server does not.
func completed(method string, result []byte) []byte {
	if len(result) == 0 || result[0] != '{' {
		return result
	}
	if _, ok := wire.Member(result, "resultType"); ok {
		return result
	}
	members := `"resultType":"complete"`
	if strings.HasSuffix(method, "/list") || method == "resources/read" {
		if _, ok := wire.Member(result, "ttlMs"); !ok {
			members += `,"ttlMs":0`
		}
		if _, ok := wire.Member(result, "cacheScope"); !ok {
			members += `,"cacheScope":"private"`
		}
	}
	return wire.Prepend(result, []byte(members))
}

// putToClient ends the client's present request with the server's next question.
func (h *hold) putToClient() {
	h.mu.Lock()
	c := h.call
	if c == nil || len(h.asked) == 0 {
		h.mu.Unlock()
		return
	}
	h.current, h.asked = h.asked[0], h.asked[1:]
	h.call = nil
	state := statePrefix + rand.Text()
	h.expiry = time.AfterFunc(holdTime, func() { h.expire(state) })
	params := h.current.Params()
	method := h.current.Method()
	h.mu.Unlock()

	if !h.down.session.held.add(state, h) {
		h.expire(state)
		c.finish(Outcome{Fault: &fault.Fault{
			Delivery: fault.Started,
			Evidence: fault.Evidence{Text: "too many calls wait for answers of this client", Moment: fault.AtCall},
		}})
		return
	}
	request := wire.Set(nil, wire.AppendString(nil, method), "method")
	if params != nil {
		request = wire.Set(request, params, "params")
	}
	result := wire.Set(nil, wire.AppendString(nil, state), "requestState")
	result = wire.Set(result, request, "inputRequests", inputKey)
	result = wire.Set(result, []byte(`"input_required"`), "resultType")
	c.finish(Outcome{Reply: wire.NewResult(c.Msg.ID(), result)})
}

// inputKey names the one question we put to a client at a time.
const inputKey = "input"

// resume takes the client's answer and lets the server's call go on.
func (d *downshift) resume(c *Call, state string) {
	h := d.session.held.take(state, c)
	if h == nil {
		c.finish(Outcome{Reply: wire.NewError(c.Msg.ID(), wire.CodeInvalidParams, "unknown or expired requestState", nil)})
		return
	}
	answer, answered := wire.Member(c.Msg.Params(), "inputResponses", inputKey)
	h.mu.Lock()
	h.expiry.Stop()
	h.call = c
	asked, outcome := h.current, h.outcome
	h.outcome = nil
	h.mu.Unlock()
	if f := h.first.flight.Load(); f != nil {
		c.flight.Store(f)
	}
	if outcome != nil {
		h.end(c, *outcome)
		return
	}
	// Over the link that asked, whatever has become of it: nobody else wants to know.
	if answered {
		_ = h.down.link.post(wire.NewResult(asked.ID(), answer))
	} else {
		_ = h.down.link.post(wire.NewError(asked.ID(), wire.CodeInvalidParams, "the client gave no answer", nil))
	}
	h.putToClient()
}

// expire gives up a call whose client did not come back.
func (h *hold) expire(state string) {
	h.down.session.held.take(state, nil)
	h.down.mu.Lock()
	delete(h.down.holds, h.first)
	h.down.mu.Unlock()
	if f := h.first.flight.Load(); f != nil {
		f.link.abandon(f, nil)
	}
}
