package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// uplift is the dialect for a legacy client on a modern server. The client's
// introduction goes along with every request; what the server wants to know in
// the middle of a call is asked of the client as a request; the lists it watches
// are watched through one subscription.
type uplift struct {
	session *Session
	link    link
	about   []byte // the server's description of itself

	mu     sync.Mutex
	level  []byte   // the log level the client set, as written; nil if it did not
	uris   []string // resources the client watches
	listen *Call    // the subscription under way
}

// Limits of what one call may ask of the client before it counts as a loop.
const (
	mostRounds    = 10
	mostRefusals  = 3
	refusalsPause = 250 * time.Millisecond
)

func (s *Session) uplift(l link, o Outcome) *uplift {
	if o.Fault != nil || o.Reply.Result() == nil {
		return nil
	}
	u := &uplift{session: s, link: l, about: bytes.Clone(o.Reply.Result())}
	s.mu.Lock()
	greeted := s.greeted
	s.mu.Unlock()
	if greeted {
		u.subscribe()
	}
	return u
}

// introduction is the server's description of itself as an initialize result.
func (u *uplift) introduction() []byte {
	version := wire.LegacyVersion
	if asked, ok := wire.Member(u.session.hello, "protocolVersion"); ok {
		text, _ := wire.StringValue(asked)
		if slices.Contains([]string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}, text) {
			version = text
		}
	}
	info, ok := wire.Member(u.about, "_meta", wire.MetaServerInfo)
	if !ok {
		info = []byte(`{"name":"unknown","version":"0"}`)
	}
	out := wire.Set(nil, info, "serverInfo")
	if instructions, ok := wire.Member(u.about, "instructions"); ok {
		out = wire.Set(out, instructions, "instructions")
	}
	capabilities, ok := wire.Member(u.about, "capabilities")
	if !ok {
		capabilities = []byte("{}")
	}
	out = wire.Set(out, capabilities, "capabilities")
	return wire.Set(out, wire.AppendString(nil, version), "protocolVersion")
}

func (u *uplift) usable() bool      { return u.link.trouble() == nil }
func (u *uplift) over() link        { return u.link }
func (u *uplift) probe() string     { return wire.MethodDiscover }
func (u *uplift) ownParams() []byte { return modernParams(nil, u.meta()) }
func (u *uplift) attend()           {}

func (u *uplift) call(c *Call) {
	switch c.Msg.Method() {
	case wire.MethodPing:
	case "logging/setLevel":
		level, _ := wire.Member(c.Msg.Params(), "level")
		u.mu.Lock()
		u.level = bytes.Clone(level)
		u.mu.Unlock()
	case "resources/subscribe":
		u.watch(c.Msg.Params(), true)
	case "resources/unsubscribe":
		u.watch(c.Msg.Params(), false)
	default:
		(&rounds{uplift: u, call: c}).next(c.Msg.Params())
		return
	}
	c.finish(Outcome{Reply: wire.NewResult(c.Msg.ID(), []byte("{}"))})
}

func (u *uplift) send(m wire.Message) {
	if m.Method() == wire.MethodInitialized {
		u.subscribe()
	}
	// Nothing else a legacy client announces has a meaning in the modern era.
}

func (u *uplift) close() {
	u.mu.Lock()
	listen := u.listen
	u.listen = nil
	u.mu.Unlock()
	if listen != nil {
		u.session.Cancel(listen, nil)
	}
	u.session.orphan(u.link)
}

// meta is what each request says about the client.
func (u *uplift) meta() []byte {
	meta := modernMeta(u.session.hello)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.level != nil {
		meta = wire.Set(meta, u.level, wire.MetaLogLevel)
	}
	return meta
}

func (u *uplift) watch(params []byte, on bool) {
	raw, _ := wire.Member(params, "uri")
	uri, _ := wire.StringValue(raw)
	u.mu.Lock()
	u.uris = slices.DeleteFunc(u.uris, func(have string) bool { return have == uri })
	if on {
		u.uris = append(u.uris, uri)
	}
	u.mu.Unlock()
	u.subscribe()
}

// subscribe opens the subscription with what the client watches now, in place of
// the one before.
func (u *uplift) subscribe() {
	has := func(path ...string) bool {
		v, _ := wire.Member(u.about, append([]string{"capabilities"}, path...)...)
		return string(v) == "true"
	}
	u.mu.Lock()
	old := u.listen
	wanted := map[string]any{}
	if has("tools", "listChanged") {
		wanted["toolsListChanged"] = true
	}
	if has("prompts", "listChanged") {
		wanted["promptsListChanged"] = true
	}
	if has("resources", "listChanged") {
		wanted["resourcesListChanged"] = true
	}
	if len(u.uris) > 0 {
		wanted["resourceSubscriptions"] = slices.Clone(u.uris)
	}
	var c *Call
	if len(wanted) > 0 {
		filter, _ := json.Marshal(wanted)
		id := fmt.Appendf(nil, `"mcpmend-%d"`, ownIDs.Add(1))
		params := wire.Set(nil, filter, "notifications")
		c = &Call{
			Msg:  wire.NewRequest(id, wire.MethodListen, params),
			On:   u.announced,
			Done: func(Outcome) {}, // the link went, or the server ended it; the next handshake asks again
		}
	}
	u.listen = c
	u.mu.Unlock()
	if c != nil {
		u.session.fly(u.link, c, c.Msg.WithParams(modernParams(c.Msg.Params(), u.meta())), c.On, c.finish)
	}
	if old != nil {
		u.session.Cancel(old, nil)
	}
}

// announced takes what the subscription brings.
func (u *uplift) announced(m wire.Message) {
	if m.Method() == "notifications/subscriptions/acknowledged" {
		return
	}
	u.session.peer.Message(m.WithParams(wire.Remove(m.Params(), "_meta", wire.MetaSubscription)))
}

// rounds carries one call through as many rounds as the server has questions.
type rounds struct {
	uplift *uplift
	call   *Call

	round, refusals int

	mu      sync.Mutex
	left    int
	answers []byte // object of key → the client's result
	failed  bool
}

func (r *rounds) next(params []byte) {
	u := r.uplift
	msg := r.call.Msg.WithParams(modernParams(params, u.meta()))
	u.session.fly(u.link, r.call, msg, r.call.On, r.heard)
}

// heard looks whether a reply is an answer or another question.
func (r *rounds) heard(o Outcome) {
	result := o.Reply.Result()
	if o.Fault != nil || result == nil || !bytes.Contains(result, []byte(`"input_required"`)) {
		r.call.finish(o)
		return
	}
	if kind, _ := wire.Member(result, "resultType"); string(kind) != `"input_required"` {
		r.call.finish(o)
		return
	}
	if r.round++; r.round > mostRounds {
		r.giveUp("the server keeps asking for input")
		return
	}
	state, _ := wire.Member(result, "requestState")
	r.ask(result, bytes.Clone(state))
}

// ask puts the server's questions to the client. When the last one is answered
// the call goes on.
func (r *rounds) ask(result, state []byte) {
	type input struct {
		key, method string
		params      []byte
	}
	var inputs []input
	requests, _ := wire.Member(result, "inputRequests")
	wire.EachMember(requests, func(key string, request []byte) {
		raw, _ := wire.Member(request, "method")
		method, _ := wire.StringValue(raw)
		params, _ := wire.Member(request, "params")
		inputs = append(inputs, input{key, method, bytes.Clone(params)})
	})
	if len(inputs) == 0 {
		r.later(state)
		return
	}
	r.left, r.answers = len(inputs), []byte("{}")
	s := r.uplift.session
	capabilities, _ := wire.Member(s.hello, "capabilities")
	for _, in := range inputs {
		if !offered(capabilities, in.method) {
			r.giveUp("the server asks for " + in.method + ", which this client does not offer")
			return
		}
	}
	for _, in := range inputs {
		id := s.file(question{link: r.uplift.link, answer: func(reply wire.Message) { r.answered(in.key, state, reply) }})
		m := wire.NewRequest(id, in.method, in.params)
		if r.call.On != nil {
			r.call.On(m)
		} else {
			s.peer.Message(m)
		}
	}
}

func (r *rounds) answered(key string, state []byte, reply wire.Message) {
	result := reply.Result()
	r.mu.Lock()
	if r.failed {
		r.mu.Unlock()
		return
	}
	if result == nil {
		r.failed = true
		r.mu.Unlock()
		_, text := wire.ErrorOf(&reply)
		r.giveUp("the client did not answer the server's question: " + text)
		return
	}
	r.answers = wire.Set(r.answers, result, key)
	r.left--
	done := r.left == 0
	r.mu.Unlock()
	if done && !r.call.gone.Load() {
		r.next(withState(wire.Set(r.call.Msg.Params(), r.answers, "inputResponses"), state))
	}
}

// later tries again after a pause: a server that asks for nothing is busy.
func (r *rounds) later(state []byte) {
	if r.refusals++; r.refusals >= mostRefusals {
		r.giveUp("the server is too busy")
		return
	}
	pause := refusalsPause + rand.N(refusalsPause<<r.refusals)
	time.AfterFunc(pause, func() {
		if !r.call.gone.Load() {
			r.next(withState(r.call.Msg.Params(), state))
		}
	})
}

func withState(params, state []byte) []byte {
	if state == nil {
		return params
	}
	return wire.Set(params, state, "requestState")
}

func (r *rounds) giveUp(why string) {
	r.call.finish(Outcome{Fault: &fault.Fault{
		Delivery: fault.Started, // it asked for something, so it was at work
		Evidence: fault.Evidence{Text: why, Moment: fault.AtCall},
	}})
}
