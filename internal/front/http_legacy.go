package front

import (
	"net/http"
	"strings"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// batchVersion is the one revision that allowed several messages in a body.
const batchVersion = "2025-03-26"

// postLegacy takes the messages of one body: a single one, or a batch.
func (h *HTTP) postLegacy(w http.ResponseWriter, r *http.Request, messages []wire.Message) {
	first := &messages[0]
	if v := r.Header.Get(headerVersion); v != "" && !isDate(v) {
		fail(w, http.StatusBadRequest, first.ID(), wire.CodeInvalidRequest, "unknown protocol version in MCP-Protocol-Version", nil)
		return
	}
	id := r.Header.Get(headerSession)
	if id == "" {
		if first.Kind != wire.Request || first.Method() != wire.MethodInitialize || len(messages) > 1 {
			fail(w, http.StatusBadRequest, requestID(first), wire.CodeInvalidRequest, "the Mcp-Session-Id header is missing", nil)
			return
		}
		h.welcome(w, r, first)
		return
	}
	s := h.sessions.enter(id)
	if s == nil {
		sessionGone(w)
		return
	}
	defer h.sessions.leave(s)
	if len(messages) > 1 && !s.batches.Load() {
		fail(w, http.StatusBadRequest, nil, wire.CodeInvalidRequest, "one message at a time", nil)
		return
	}
	h.relay(w, r, s, messages)
}

// postBatch takes the array that JSON-RPC calls a batch. Only sessions of one
// old revision may send it.
func (h *HTTP) postBatch(w http.ResponseWriter, r *http.Request, body []byte) {
	id := r.Header.Get(headerSession)
	if id == "" || wire.EraOf(r.Header.Get(headerVersion)) == wire.Modern {
		fail(w, http.StatusBadRequest, nil, wire.CodeInvalidRequest, "one message at a time", nil)
		return
	}
	if err := wire.Valid(body); err != nil {
		fail(w, http.StatusBadRequest, nil, wire.CodeParse, err.Error(), nil)
		return
	}
	var messages []wire.Message
	var bad error
	wire.EachElement(body, func(element []byte) {
		m, err := wire.Parse(element)
		if err != nil {
			bad = err
		}
		messages = append(messages, m)
	})
	if bad != nil || len(messages) == 0 {
		fail(w, http.StatusBadRequest, nil, wire.CodeInvalidRequest, wire.ErrEnvelope.Error(), nil)
		return
	}
	h.postLegacy(w, r, messages)
}

// welcome opens a session for a client that introduces itself. The session stays
// only if the server accepted it and the client heard of it.
func (h *HTTP) welcome(w http.ResponseWriter, r *http.Request, hello *wire.Message) {
	a := answer{w: w, accept: accepts(r.Header), retry: true}
	if !a.readable() {
		return
	}
	s := h.sessions.begin(h.Catalogue)
	defer h.sessions.leave(s)
	a.session = s.id
	out := newStream(1)
	welcomed := false
	s.talk.do(s.call(*hello, out, a.accept.events, func(reply *wire.Message) {
		welcomed = reply.Result() != nil
		version, _ := wire.Member(reply.Result(), "protocolVersion")
		if v, _ := wire.StringValue(version); v == batchVersion {
			s.batches.Store(true)
		}
	}))
	heard := a.follow(r, out, h.endOf(s))
	s.divert(out.leave())
	if !heard || !welcomed {
		h.sessions.end(s)
	}
	if !heard {
		panic(http.ErrAbortHandler)
	}
}

// relay passes messages of a known client on and writes the replies.
func (h *HTTP) relay(w http.ResponseWriter, r *http.Request, s *session, messages []wire.Message) {
	requests := 0
	for i := range messages {
		if messages[i].Kind == wire.Request {
			requests++
		}
	}
	a := answer{w: w, accept: accepts(r.Header), retry: true}
	if requests > 0 && !a.readable() {
		return
	}
	if requests > 1 && a.accept.events {
		a.accept.json = false // several replies need a stream
	}
	out := newStream(requests)
	for i := range messages {
		if !awaitRoom(r, s.talk.session) {
			panic(http.ErrAbortHandler)
		}
		if m := messages[i]; m.Kind == wire.Request {
			s.talk.do(s.call(m, out, a.accept.events, nil))
		} else {
			s.talk.send(m)
		}
	}
	if requests == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	// A client that goes away has not taken its call back: it runs on, and what
	// it asks meanwhile is asked on the other stream.
	heard := a.follow(r, out, h.endOf(s))
	s.divert(out.leave())
	if !heard {
		panic(http.ErrAbortHandler)
	}
}

// endOf is how the answers to a session end when we do.
func (h *HTTP) endOf(s *session) ending { return ending{settle: h.settling, giveUp: s.talk.stop} }

// call makes a call whose messages go to out. seen, if any, looks at the reply
// before it is passed on.
func (s *session) call(m wire.Message, out *stream, events bool, seen func(*wire.Message)) *catalogue.Call {
	call := &catalogue.Call{Msg: m, Room: out.Room}
	if events {
		call.On = func(m wire.Message) {
			if !out.push(outgoing{msg: m}) {
				s.divert([]outgoing{{msg: m}})
			}
		}
	}
	call.Done = func(r catalogue.Reply) {
		if seen != nil {
			seen(&r.Msg)
		}
		if !out.push(outgoing{msg: r.Msg, id: m.ID(), reply: true, none: r.None}) {
			r.Msg.Release()
		}
	}
	return call
}

// listen serves the stream for what the server says on its own account.
func (h *HTTP) listen(w http.ResponseWriter, r *http.Request) {
	explicit := false
	for _, v := range r.Header["Accept"] {
		explicit = explicit || strings.Contains(v, "text/event-stream")
	}
	if !explicit || wire.EraOf(r.Header.Get(headerVersion)) == wire.Modern {
		notAllowed(w)
		return
	}
	s := h.known(w, r)
	if s == nil {
		return
	}
	defer h.sessions.leave(s)
	out, first := s.attend()
	defer s.unattend(out)
	if first {
		s.talk.session.Attend()
	}
	a := answer{w: w, accept: accepted{events: true}, retry: true}
	// Said at once, because some proxies hold headers back until a body follows.
	if a.comment() != nil || !a.follow(r, out, ending{stop: h.stopping}) && !h.isStopping() {
		panic(http.ErrAbortHandler)
	}
}

func (h *HTTP) delete(w http.ResponseWriter, r *http.Request) {
	if wire.EraOf(r.Header.Get(headerVersion)) == wire.Modern {
		notAllowed(w)
		return
	}
	s := h.known(w, r)
	if s == nil {
		return
	}
	h.sessions.leave(s)
	h.sessions.end(s)
	w.WriteHeader(http.StatusNoContent)
}

// known enters the session that the request names, or answers why it cannot.
func (h *HTTP) known(w http.ResponseWriter, r *http.Request) *session {
	id := r.Header.Get(headerSession)
	if id == "" {
		fail(w, http.StatusBadRequest, nil, wire.CodeInvalidRequest, "the Mcp-Session-Id header is missing", nil)
		return nil
	}
	s := h.sessions.enter(id)
	if s == nil {
		sessionGone(w)
	}
	return s
}

// sessionGone tells the client to introduce itself anew. It names no id even if
// there is one: clients take an error that does for the answer to that request
// alone, and would go on with a session that is gone.
func sessionGone(w http.ResponseWriter) {
	fail(w, http.StatusNotFound, nil, wire.CodeInvalidRequest, "there is no such session", nil)
}

// readable reports whether the client can read any answer of ours; if not it is
// told so.
func (a *answer) readable() bool {
	if a.accept.json || a.accept.events {
		return true
	}
	refuse(a.w, http.StatusNotAcceptable, "answers are application/json or text/event-stream")
	return false
}

func requestID(m *wire.Message) []byte {
	if m.Kind != wire.Request {
		return nil
	}
	return m.ID()
}

func isDate(version string) bool {
	if len(version) != len(wire.LegacyVersion) {
		return false
	}
	for i := range len(version) {
		if dash := wire.LegacyVersion[i] == '-'; dash != (version[i] == '-') || !dash && (version[i] < '0' || version[i] > '9') {
			return false
		}
	}
	return true
}
