package ledger

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

type options struct{ dir, http, cert, key string }

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("ledger", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "", "directory of the plan and the book")
	flags.StringVar(&o.http, "http", "", "serve Streamable HTTP at this address instead of stdio")
	flags.StringVar(&o.cert, "cert", "", "certificate, for TLS")
	flags.StringVar(&o.key, "key", "", "its key")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.dir == "" {
		return o, fmt.Errorf("--dir is missing")
	}
	return o, nil
}

// sessions of the legacy era, and what a client may come back for.
type sessions struct {
	mu    sync.Mutex
	live  map[string]*stream
	nexts int
}

// stream keeps the events of a session by id, for clients that resume.
type stream struct {
	mu     sync.Mutex
	events map[string][]byte // event id → the answer that should follow it
}

func (s *server) loseSessions() {
	s.session.mu.Lock()
	clear(s.session.live)
	s.session.mu.Unlock()
}

func (s *server) newSession() string {
	id := "s-" + rand.Text()
	s.session.mu.Lock()
	s.session.live[id] = &stream{events: map[string][]byte{}}
	s.session.mu.Unlock()
	return id
}

func (s *server) sessionOf(r *http.Request) *stream {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return s.session.live[r.Header.Get("Mcp-Session-Id")]
}

func (s *server) serveHTTP(o options) int {
	listener, err := net.Listen("tcp", o.http)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		return 1
	}
	s.write = func([]byte) {}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", s.post)
	mux.HandleFunc("GET /mcp", s.get)
	mux.HandleFunc("DELETE /mcp", s.delete)
	h := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetUnencryptedHTTP2(true)
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			fmt.Fprintln(os.Stderr, "ledger:", err)
			return 1
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	for _, f := range s.points.match(AtStart, nil) {
		s.strike(f, nil)
	}
	s.book.Write(false, Line{Kind: Start, Note: listener.Addr().String()})
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { <-stop; os.Exit(0) }()
	fmt.Fprintln(os.Stderr, "ledger:", h.Serve(listener))
	return 1
}

func (s *server) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := rpc.Parse(body)
	if err != nil {
		send(w, http.StatusBadRequest, rpc.Refuse(nil, -32700, "parse error: %v", err))
		return
	}
	modern := r.Header.Get("MCP-Protocol-Version") >= rpc.Modern
	var session *stream
	switch {
	case modern && s.plan.Era == "legacy":
		// What TypeScript servers of the legacy era say to anything that comes
		// without a session.
		send(w, http.StatusBadRequest, rpc.Refuse(nil, -32000, "Bad Request: No valid session ID provided"))
		return
	case !modern && s.plan.Era == "modern":
		send(w, http.StatusBadRequest, &rpc.Message{ID: m.ID, Error: unsupported(r.Header.Get("MCP-Protocol-Version"))})
		return
	case modern || m.Method == "initialize":
	default:
		if session = s.sessionOf(r); session == nil {
			s.lost(w, m)
			return
		}
	}
	if m.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", s.newSession())
	}
	if !m.IsRequest() {
		if m.IsResponse() {
			s.hear(m)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	c, line, isCall := s.receive(m)
	if isCall {
		s.book.Write(false, line)
	}
	out := &httpReply{server: s, w: w, r: r, session: session, stream: isCall && (s.plan.SSE || c.args.ProgressMS > 0)}
	if a := s.serve(r.Context(), m, c, out.tell); a != nil {
		out.answer(a)
	}
}

// lost answers a request of a session that is not there, in one of the ways
// seen in the field.
func (s *server) lost(w http.ResponseWriter, m *rpc.Message) {
	if m.Method == "tools/call" {
		c, _, _ := s.receive(m)
		if c != nil {
			s.book.Write(false, Line{Kind: Refused, Op: c.op, Tool: c.tool, Note: "no session"})
		}
	}
	switch s.plan.LostSession {
	case 200:
		send(w, 200, rpc.Refuse(m.ID, -32001, "Session not found"))
	case 400:
		send(w, 400, rpc.Refuse(nil, -32000, "Bad Request: No valid session ID provided"))
	case 401:
		http.Error(w, "Unauthorized: Session not found", http.StatusUnauthorized)
	case 409:
		send(w, 409, rpc.Refuse(nil, -32000, "Conflict: session is stale"))
	default:
		send(w, 404, rpc.Refuse(nil, -32001, "Session not found"))
	}
}

func send(w http.ResponseWriter, status int, m *rpc.Message) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(m.Encode())
}

// httpReply writes one answer over HTTP, as JSON or as an event stream.
type httpReply struct {
	server  *server
	w       http.ResponseWriter
	r       *http.Request
	session *stream
	stream  bool
	opened  bool
	event   string // id of the last event sent
}

// open begins the event stream. With resumable streams the first event has an
// id and no data, so that a client can come back even before anything was said.
func (h *httpReply) open() {
	if h.opened {
		return
	}
	h.opened, h.stream = true, true
	h.w.Header().Set("Content-Type", "text/event-stream")
	h.w.Header().Set("Cache-Control", "no-store")
	h.w.WriteHeader(200)
	if h.server.plan.Resumable && h.session != nil {
		h.session.mu.Lock()
		h.server.session.mu.Lock()
		h.server.session.nexts++
		h.event = "e" + strconv.Itoa(h.server.session.nexts)
		h.server.session.mu.Unlock()
		h.session.events[h.event] = nil
		h.session.mu.Unlock()
		fmt.Fprintf(h.w, "id: %s\nretry: 100\ndata: \n\n", h.event)
	}
	http.NewResponseController(h.w).Flush()
}

func (h *httpReply) tell(m *rpc.Message) {
	h.open()
	fmt.Fprintf(h.w, "data: %s\n\n", m.Encode())
	http.NewResponseController(h.w).Flush()
}

func (h *httpReply) answer(a *answer) {
	if h.stream {
		h.open()
	}
	body := a.msg.Encode()
	if h.event != "" {
		h.session.mu.Lock()
		h.session.events[h.event] = body
		h.session.mu.Unlock()
	}
	for _, f := range a.spoil {
		if h.spoil(f, a, body) {
			return
		}
	}
	var cut []Fault
	if a.call != nil {
		cut = h.server.points.match(MidReply, a.call)
	}
	switch {
	case h.opened:
		fmt.Fprintf(h.w, "data: %s\n\n", body)
	case len(cut) > 0:
		// The header promises more than will come.
		h.w.Header().Set("Content-Type", "application/json")
		h.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		h.w.Write(body[:min(cut[0].N, len(body))])
	default:
		send(h.w, 200, a.msg)
	}
	http.NewResponseController(h.w).Flush()
	if len(cut) > 0 {
		h.cut(cut[0].Do == Kill)
		return
	}
	if a.call != nil {
		h.server.book.Write(false, Line{Kind: Reply, Op: a.call.op, Tool: a.call.tool})
		for _, f := range h.server.points.match(AfterReply, a.call) {
			h.server.strike(f, a.call)
		}
	}
}

// spoil does to the answer what the fault says and reports whether that was all.
func (h *httpReply) spoil(f Fault, a *answer, body []byte) bool {
	switch f.Do {
	case Respond:
		for k, v := range f.Header {
			if k == "Retry-After" {
				v = h.retryAfter(v, a.call)
			}
			h.w.Header().Set(k, v)
		}
		h.w.WriteHeader(f.N)
		h.w.Write(expand(f, a, body))
	case Drop:
		h.cut(f.N == 1)
	case Bomb:
		h.bomb(f.Text == "gzip")
	case Say: // inside an event stream
		h.open()
		h.w.Write(expand(f, a, body))
	}
	return true
}

// retryAfter writes down until when the client is to wait, which for a date is
// not a whole number of seconds from now.
func (h *httpReply) retryAfter(v string, c *call) string {
	until := time.Now().Add(time.Second)
	if v == "date" {
		until = time.Now().Add(2500 * time.Millisecond).Truncate(time.Second)
		v = until.UTC().Format(http.TimeFormat)
	}
	h.server.book.Write(false, Line{Kind: Refused, Op: c.op, Tool: c.tool, Note: time.Until(until).String()})
	return v
}

// cut ends the connection under the answer, with a reset or an ordinary close.
func (h *httpReply) cut(reset bool) {
	conn, _, err := http.NewResponseController(h.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// bomb answers without end, until the client has had enough.
func (h *httpReply) bomb(zipped bool) {
	h.w.Header().Set("Content-Type", "application/json")
	var out io.Writer = h.w
	if zipped && strings.Contains(h.r.Header.Get("Accept-Encoding"), "gzip") {
		h.w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(h.w)
		defer z.Close()
		out = z
	}
	ctx, stop := context.WithTimeout(h.r.Context(), 20*time.Second)
	defer stop()
	io.WriteString(out, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`)
	filler := []byte(strings.Repeat("x", 1<<20))
	for total := 0; ctx.Err() == nil; total += len(filler) {
		if _, err := out.Write(filler); err != nil {
			return
		}
		// Enough to be felt; after that it need not take the whole machine.
		if total > 128<<20 {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// get serves a client that comes back for the rest of a broken stream. There
// is no other stream to be had here, which the protocol allows.
func (s *server) get(w http.ResponseWriter, r *http.Request) {
	session, last := s.sessionOf(r), r.Header.Get("Last-Event-ID")
	if session == nil || last == "" {
		http.Error(w, "no stream here", http.StatusMethodNotAllowed)
		return
	}
	session.mu.Lock()
	body, known := session.events[last]
	session.mu.Unlock()
	if !known || body == nil {
		http.Error(w, "unknown event", http.StatusNotFound)
		return
	}
	s.book.Write(false, Line{Kind: Init, Note: "resume " + last})
	w.Header().Set("Content-Type", "text/event-stream")
	if s.plan.Replay {
		// A server that repeats itself, and mixes in an answer of another stream.
		fmt.Fprintf(w, "id: %s-0\ndata: {\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}\n\n", last)
		fmt.Fprintf(w, "id: %s-1\ndata: %s\n\n", last, body)
	}
	fmt.Fprintf(w, "id: %s-2\ndata: %s\n\n", last, body)
}

func (s *server) delete(w http.ResponseWriter, r *http.Request) {
	s.session.mu.Lock()
	delete(s.session.live, r.Header.Get("Mcp-Session-Id"))
	s.session.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
