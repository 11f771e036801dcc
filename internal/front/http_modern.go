package front

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// What is kept of modern clients. They never say goodbye.
const (
	modernIdle = 15 * time.Minute // longer than a call may wait for its client's answer
	mostModern = 256
)

// client is the session of the modern client that sent a message, in use by the
// caller; nil if there are too many. Modern clients are stateless, so they are told
// apart by who they are and what they say about themselves: each has its own
// conversation with the server, its own memory of what went wrong, and is asked
// only what its own calls lead to.
func (h *HTTP) client(m *wire.Message) *session {
	info, _ := wire.Member(m.Params(), "_meta", wire.MetaClientInfo)
	key := sha256.Sum256(info)
	return h.modern.meet(string(key[:]), func(*session) *catalogue.Session {
		return h.Catalogue.Open(catalogue.Peer{Era: wire.Modern, Several: true, Message: func(msg wire.Message) {
			h.mirrors.notice(&msg)
			msg.Release()
		}})
	})
}

func (h *HTTP) postModern(w http.ResponseWriter, r *http.Request, m wire.Message) {
	if code, text := checkEnvelope(r.Header, &m); code != 0 {
		fail(w, http.StatusBadRequest, requestID(&m), code, text, nil)
		return
	}
	client := h.client(&m)
	if client == nil {
		fail(w, http.StatusServiceUnavailable, requestID(&m), wire.CodeServerTrouble, "too many clients", nil)
		return
	}
	defer h.modern.leave(client)
	session := client.talk.session
	switch m.Kind {
	case wire.Notification:
		// A call is taken back by leaving it. By id it could be somebody else's.
		if m.Method() != wire.MethodCancelled {
			session.Send(m)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	case wire.Response:
		fail(w, http.StatusBadRequest, nil, wire.CodeInvalidRequest, "nothing was asked", nil)
		return
	}
	a := answer{w: w, accept: accepts(r.Header)}
	if m.Method() == wire.MethodListen {
		a.accept.json = false
	}
	if !a.readable() {
		return
	}
	if m.Method() == wire.MethodCall {
		if text := h.mirrors.check(r, session, &m); text != "" {
			fail(w, http.StatusBadRequest, m.ID(), wire.CodeHeaderMismatch, text, nil)
			return
		}
	}
	h.askModern(r, session, m, &a)
}

func (h *HTTP) askModern(r *http.Request, session *catalogue.Session, m wire.Message, a *answer) {
	out := newStream(1)
	method := m.Method()
	call := &catalogue.Call{Msg: m, Header: paramHeaders(r.Header)}
	if a.accept.events {
		call.On = func(m wire.Message) {
			h.mirrors.notice(&m)
			if !out.push(outgoing{msg: m}) {
				m.Release()
			}
		}
	}
	call.Done = func(reply catalogue.Reply) {
		if method == wire.MethodTools {
			h.mirrors.learn(&m, &reply.Msg)
		}
		o := outgoing{msg: reply.Msg, id: m.ID(), reply: true, none: reply.None, status: statusOf(&reply)}
		if !out.push(o) {
			reply.Msg.Release()
		}
	}
	session.Do(call)
	var stop <-chan struct{}
	if method == wire.MethodListen {
		stop = h.stopping
	}
	heard := a.follow(r, out, stop)
	for _, o := range out.leave() {
		o.msg.Release()
	}
	if heard {
		return
	}
	session.Cancel(call, nil) // leaving is how a modern client takes a call back
	if stop == nil || !h.isStopping() {
		panic(http.ErrAbortHandler)
	}
}

// statusOf is the HTTP status for a reply, 0 for the usual one.
func statusOf(r *catalogue.Reply) int {
	if r.Msg.Error() == nil {
		return 0
	}
	switch r.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		// That is between us and the server; the client has shown us what it must.
	default:
		if r.Status >= 400 {
			return r.Status
		}
	}
	switch code, _ := wire.ErrorOf(&r.Msg); code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeHeaderMismatch, wire.CodeMissingCapability, wire.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return 0
}

// checkEnvelope compares what a modern message says about itself with what its
// headers say. Something on the way may have acted on the headers alone. It
// returns 0 when all is well.
func checkEnvelope(header http.Header, m *wire.Message) (code int, text string) {
	if m.Kind == wire.Request {
		if code, text := checkMeta(header.Get(headerVersion), m.Params()); code != 0 {
			return code, text
		}
	}
	if m.Kind == wire.Response {
		return 0, ""
	}
	method := m.Method()
	switch said := header.Get(headerMethod); {
	case said == "":
		return wire.CodeHeaderMismatch, "the Mcp-Method header is missing"
	case said != method:
		return wire.CodeHeaderMismatch, fmt.Sprintf("the Mcp-Method header says %q and the message %q", said, method)
	}
	member := ""
	switch method {
	case wire.MethodCall, "prompts/get":
		member = "name"
	case "resources/read":
		member = "uri"
	default:
		return 0, ""
	}
	said := header.Get(headerName)
	if said == "" {
		return wire.CodeHeaderMismatch, "the Mcp-Name header is missing"
	}
	value, _ := wire.Member(m.Params(), member)
	name, _ := wire.StringValue(value)
	if decoded, ok := decodeHeader(said); said != name && (!ok || decoded != name) {
		return wire.CodeHeaderMismatch, fmt.Sprintf("the Mcp-Name header says %q and the message %q", said, name)
	}
	return 0, ""
}

// checkMeta checks what every modern request must say in its _meta.
func checkMeta(version string, params []byte) (code int, text string) {
	meta, _ := wire.Member(params, "_meta")
	value, _ := wire.Member(meta, wire.MetaVersion)
	said, ok := wire.StringValue(value)
	if !ok {
		return wire.CodeInvalidParams, "params._meta lacks " + wire.MetaVersion
	}
	if version == "" {
		return wire.CodeHeaderMismatch, "the MCP-Protocol-Version header is missing"
	}
	if capabilities, _ := wire.Member(meta, wire.MetaCapabilities); len(capabilities) == 0 || capabilities[0] != '{' {
		return wire.CodeInvalidParams, "params._meta lacks " + wire.MetaCapabilities
	}
	if said != version {
		return wire.CodeHeaderMismatch, fmt.Sprintf("the MCP-Protocol-Version header says %q and the message %q", version, said)
	}
	return 0, ""
}

// decodeHeader is the text of a header value, which is wrapped in base64 where
// HTTP would not carry it. It reports false if the wrapping holds no base64.
func decodeHeader(value string) (string, bool) {
	inner, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	if inner, ok = strings.CutSuffix(inner, "?="); !ok {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(text), err == nil
}

// paramHeaders are the headers that repeat arguments. They are passed on whether
// we know what they mean or not.
func paramHeaders(header http.Header) http.Header {
	var out http.Header
	for name, values := range header {
		if strings.HasPrefix(name, headerParam) {
			if out == nil {
				out = make(http.Header)
			}
			out[name] = values
		}
	}
	return out
}
