package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

func TestALegacyClientTalksToAStatefulSDKServer(t *testing.T) {
	webLeaks(t)
	for _, json := range []bool{false, true} {
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return webSDK() }, &mcp.StreamableHTTPOptions{JSONResponse: json})
		c := webDial(t, wire.Legacy, Spec{URL: webServe(t, h).URL})
		c.greet()
		if got := c.do(webTool(7, "echo", `{"text":"hello"}`)).text(t); got != "echo: hello" {
			t.Errorf("JSONResponse %v: got %q", json, got)
		}
		if !c.server.legacy.yes() {
			t.Error("not known as a legacy server")
		}
	}
}

func TestAModernClientTalksToAStatelessSDKServer(t *testing.T) {
	webLeaks(t)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return webSDK() }, &mcp.StreamableHTTPOptions{Stateless: true})
	c := webDial(t, wire.Modern, Spec{URL: webServe(t, h).URL})
	if got := c.do(webModern(`"a b"`, "tools/call", `"name":"echo","arguments":{"text":"hello"}`)).text(t); got != "echo: hello" {
		t.Errorf("got %q", got)
	}
	if !c.server.modern.yes() {
		t.Error("not known as a modern server")
	}
	o := c.do(webModern(2, "no/such/method", ""))
	if code, _ := wire.ErrorOf(&o.Reply); o.Fault != nil || code != wire.CodeMethodNotFound || o.Status != http.StatusNotFound {
		t.Errorf("unknown method: fault %v, code %d, status %d", o.Fault, code, o.Status)
	}
}

func TestProgressComesBeforeTheReplyOfItsCall(t *testing.T) {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return webSDK() }, nil)
	c := webDial(t, wire.Legacy, Spec{URL: webServe(t, h).URL})
	c.greet()
	w := c.start(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{"text":""},"_meta":{"progressToken":"tok"}}}`, nil)
	w.wait()
	if len(w.notes) != 3 {
		t.Errorf("%d notifications before the reply, want 3", len(w.notes))
	}
	if m := w.note(); m.Method() != wire.MethodProgress || !strings.Contains(string(m.Raw), `"tok"`) {
		t.Errorf("got %s", &m)
	}
}

func TestAServersQuestionIsAnsweredInItsCall(t *testing.T) {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return webSDK() }, nil)
	c := webDial(t, wire.Legacy, Spec{URL: webServe(t, h).URL})
	if o := c.do(strings.Replace(webInitialize, `"capabilities":{}`, `"capabilities":{"roots":{}}`, 1)); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	c.session.Send(wire.NewNotification(wire.MethodInitialized, nil))
	w := c.start(webTool(1, "ask", `{"text":""}`), nil)
	question := w.note()
	if question.Method() != "roots/list" {
		t.Fatalf("got %s", &question)
	}
	c.session.Send(wire.NewResult(question.ID(), []byte(`{"roots":[{"uri":"file:///here"}]}`)))
	if got := w.wait().text(t); got != "file:///here" {
		t.Errorf("got %q", got)
	}
}

// A server restarts while a hundred calls are on their way. Each is refused, and
// one new session serves them all.
func TestOneNewSessionForEverybodyWhoLostTheOld(t *testing.T) {
	var alive atomic.Value
	alive.Store("s1")
	release := make(chan struct{})
	var arrived atomic.Int32
	all := make(chan struct{})
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		if r.Header.Get(headerSession) == "s1" {
			if arrived.Add(1) == 100 {
				close(all)
			}
			<-release
		}
		if r.Header.Get(headerSession) != alive.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	var calls []*webCall
	for i := range 100 {
		calls = append(calls, c.start(webTool(i+1, "x", "{}"), nil))
	}
	webAwait(t, all, "the calls to arrive")
	alive.Store("s2")
	close(release)
	for i, w := range calls {
		flt := webDelivery(t, w.wait(), fault.Refused)
		if !errors.Is(flt, errSessionLost) || flt.HTTPStatus != http.StatusNotFound {
			t.Fatalf("call %d: %v", i, flt)
		}
		calls[i] = c.start(webTool(1000+i, "x", "{}"), nil) // what the guard will do
	}
	for _, w := range calls {
		if o := w.wait(); o.Fault != nil {
			t.Fatalf("sent again: %v", o.Fault)
		}
	}
	if n := s.opened(); n != 2 {
		t.Errorf("%d sessions were opened, want 2", n)
	}
}

func TestRecognisesALostSessionInManyWords(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		events bool
		pings  bool // the session answers a ping
		lost   bool // the call was turned away, and a new session is opened
		again  bool // the call was answered, and the next one finds a new session
	}{
		{"typescript", 404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`, false, false, true, false},
		{"python", 404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`, false, false, true, false},
		{"plain", 404, "session not found", false, false, true, false},
		{"empty", 404, "", false, false, true, false},
		{"express example", 400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`, false, false, true, false},
		{"rust", 401, "Unauthorized: Session not found", false, false, true, false},
		{"conflict", 409, "stale Mcp-Session-Id", false, false, true, false},
		{"by its id, and never executed", 404, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"},"id":1}`, false, false, true, false},

		// An error that names the request is its answer: the tool may have run.
		{"in a 200", 200, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":1}`, false, false, false, true},
		{"in an event", 200, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":1}`, true, false, false, true},
		{"by its id, in a 400", 400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"session expired"},"id":1}`, false, false, false, true},
		{"by its id, in a 404", 404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":1}`, false, false, false, true},
		{"a customer that was not found", 404, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"customer not found"},"id":1}`, false, true, false, false},
		{"a session of the tool's own", 200, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":1}`, false, true, false, false},
		{"an unknown method", 404, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}`, false, true, false, false},
		{"a real 401", 401, "invalid_token", false, true, false, false},
		{"a version", 400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Unsupported protocol version"},"id":null}`, false, true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
				if r.Header.Get(headerSession) == "s2" || req.Method == "ping" && test.pings {
					webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
					return
				}
				if req.Method == "ping" {
					http.Error(w, "Bad Request: No valid session ID provided", http.StatusBadRequest)
					return
				}
				if test.events {
					webEvents(w, "data: "+test.body)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			c := webDial(t, wire.Legacy, Spec{URL: s.URL})
			c.greet()
			o := c.do(webTool(1, "x", "{}"))
			if got := o.Fault != nil && errors.Is(o.Fault, errSessionLost); got != test.lost {
				t.Fatalf("lost = %v, want %v: %v %s", got, test.lost, o.Fault, &o.Reply)
			}
			if test.lost {
				flt := webDelivery(t, o, fault.Refused)
				if why, _ := fault.RefusalOf(flt.Evidence); why != fault.SessionLost {
					t.Errorf("understood as %v: %+v", why, flt.Evidence)
				}
			}
			c.do(webTool(2, "x", "{}"))
			if test.again && o.Fault != nil {
				t.Errorf("got %v, want the server's own error", o.Fault)
			}
			want := 1
			if test.lost || test.again {
				want = 2
			}
			if n := s.opened(); n != want {
				t.Errorf("%d sessions were opened, want %d", n, want)
			}
		})
	}
}

func TestEndsItsSessionWhenItCloses(t *testing.T) {
	webLeaks(t)
	s := newWebLegacy(t, nil)
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	if err := c.server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.ended(); len(got) != 1 || got[0] != "s1" {
		t.Errorf("deleted sessions: %q, want s1", got)
	}
}

func TestClosingIsBoundedWhenTheServerHangs(t *testing.T) {
	webLeaks(t)
	stuck := make(chan struct{})
	in := make(chan struct{}, 10)
	s := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if req := webRead(r); req.Method == "initialize" {
			w.Header().Set(headerSession, "s1")
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25"}}`, req.ID)
			return
		}
		in <- struct{}{}
		<-stuck
	}))
	t.Cleanup(func() { close(stuck) })
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	if o := c.do(webInitialize); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	w := c.start(webTool(1, "x", "{}"), nil)
	webAwait(t, in, "the call")
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), webTimeout)
	defer cancel()
	if err := c.server.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("closing took %v", took)
	}
	webDelivery(t, w.wait(), fault.Silent)
}

func TestTheGreetingIsNotOvertaken(t *testing.T) {
	called := make(chan struct{})
	overtaken := make(chan bool, 1)
	s := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch req := webRead(r); req.Method {
		case "initialize":
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25"}}`, req.ID)
		case "notifications/initialized":
			select {
			case <-called:
				overtaken <- true
			case <-time.After(100 * time.Millisecond):
				overtaken <- false
			}
		default:
			close(called)
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
		}
	}))
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	c.do(webTool(1, "x", "{}"))
	if webAwait(t, overtaken, "the greeting") {
		t.Error("the call arrived before the greeting was taken")
	}
}

func TestALegacyServerIsToldOfACancelledCall(t *testing.T) {
	in, told := make(chan struct{}), make(chan webRequest, 1)
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		if req.Method == "notifications/cancelled" {
			told <- req
			w.WriteHeader(http.StatusAccepted)
			return
		}
		close(in)
		<-r.Context().Done()
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	w := c.start(webTool(`"my id"`, "x", "{}"), nil)
	webAwait(t, in, "the call")
	note := wire.NewNotification(wire.MethodCancelled, []byte(`{"requestId":"my id","reason":"bored"}`))
	c.session.Cancel(&w.Call, &note)
	webDelivery(t, w.wait(), fault.Cancelled)
	if req := webAwait(t, told, "the notification"); string(req.Params.RequestID) != `"my id"` || req.Header.Get(headerSession) != "s1" {
		t.Errorf("told %+v", req)
	}
}

func TestClosingTheStreamCancelsAModernCall(t *testing.T) {
	in, gone := make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		webRead(r)
		webEvents(w, ": hello")
		close(in)
		<-r.Context().Done()
		close(gone)
	})
	w := c.start(webModern(1, "tools/call", `"name":"x"`), nil)
	webAwait(t, in, "the call")
	c.session.Cancel(&w.Call, nil)
	webDelivery(t, w.wait(), fault.Cancelled)
	webAwait(t, gone, "the stream to be closed")
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1: nothing else is said", n)
	}
	if err := c.server.Close(t.Context()); err != nil { // now nobody is left who could
		t.Fatal(err)
	}
	if len(w.outcome) != 0 {
		t.Error("the call settled twice")
	}
}

func TestPrettyPrintedAndBatchedAnswersAreUnderstood(t *testing.T) {
	for name, body := range map[string]string{
		"pretty": "\ufeff{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"result\": {\"big\": 9007199254740993}\n}\n",
		"batch":  `[{"jsonrpc":"2.0","method":"notifications/progress","params":{}}, {"jsonrpc":"2.0","id":1,"result":{"big": 9007199254740993}}]`,
	} {
		for _, events := range []bool{false, true} {
			c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
				if !events {
					webJSON(w, "%s", body)
					return
				}
				if name == "pretty" {
					webEvents(w, "event: ping\ndata: x", "data: "+strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(body, "\ufeff")), "\n", "\ndata: "))
				} else {
					webEvents(w, "data: "+strings.Trim(strings.Replace(body, ", {", "\n\ndata: {", 1), "[]"))
				}
			})
			w := c.start(webModern(1, "tools/list", ""), nil)
			o := w.wait()
			if o.Fault != nil || !strings.Contains(string(o.Reply.Raw), "9007199254740993") || strings.ContainsAny(string(o.Reply.Raw), "\r\n") {
				t.Errorf("%s, events %v: %v %s", name, events, o.Fault, &o.Reply)
			}
			if name == "batch" && len(w.notes) != 1 {
				t.Errorf("events %v: %d notifications, want 1", events, len(w.notes))
			}
		}
	}
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := webRead(r)
		webEvents(w, fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := webDial(t, wire.Modern, Spec{URL: s.URL})
	c.server.modern.learn(true)
	for i := range 50 {
		if o := c.do(webModern(i, "tools/list", "")); o.Fault != nil {
			t.Fatal(o.Fault)
		}
	}
	// A stream is read to its end after the reply was passed on, so the next call
	// may need a second connection; it never needs fifty.
	if n := conns.Load(); n > 10 {
		t.Errorf("%d connections for 50 calls in a row", n)
	}
}

func TestRedirectsAreFollowedWithoutSecrets(t *testing.T) {
	type visit struct {
		body   webRequest
		query  string
		method string
	}
	visits := make(chan visit, 10)
	target := func(w http.ResponseWriter, r *http.Request) {
		v := visit{webRead(r), r.URL.RawQuery, r.Method}
		visits <- v
		webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, v.body.ID)
	}
	other := webServe(t, http.HandlerFunc(target))
	var to string
	var status int
	var hops atomic.Int32
	origin := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			target(w, r)
		case "/loop":
			hops.Add(1)
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		default:
			http.Redirect(w, r, to, status)
		}
	}))
	dial := func(url string) *webClient {
		c := webDial(t, wire.Modern, Spec{URL: url, Header: http.Header{
			"Authorization": {"Bearer " + webSecret}, "X-Api-Key": {webSecret}, "Cookie": {"a=" + webSecret},
		}})
		c.server.modern.learn(true)
		return c
	}
	call := webModern(1, "tools/call", `"name":"x"`)

	for _, status = range []int{http.StatusTemporaryRedirect, 308} {
		to = "/here"
		if o := dial(origin.URL + "/?key=" + webSecret).do(call); o.Fault != nil {
			t.Fatal(o.Fault)
		}
		v := <-visits
		if v.body.Params.Name != "x" || v.method != "POST" || v.body.Header.Get("Authorization") == "" || v.body.Header.Get("X-Api-Key") == "" {
			t.Errorf("%d, same origin: %+v", status, v)
		}

		to = other.URL + "/there"
		if flt := webDelivery(t, dial(origin.URL+"/?key="+webSecret).do(call), fault.Refused); !errors.Is(flt, errOtherOrigin) {
			t.Errorf("%d, other origin: %v", status, flt)
		}
		if len(visits) != 0 {
			t.Errorf("%d: the call went to another origin: %+v", status, <-visits)
		}
	}

	to = "/here"
	for status, want := range map[int]fault.Delivery{301: fault.Refused, 302: fault.Silent, 303: fault.Silent} {
		h := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }))
		webDelivery(t, dial(h.URL).do(call), want)
	}
	if flt := webDelivery(t, dial(origin.URL+"/loop").do(call), fault.Refused); !errors.Is(flt, errTooManyRedirects) || hops.Load() != maxRedirects+1 {
		t.Errorf("loop: %v after %d hops", flt, hops.Load())
	}

	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(secure.Close)
	c := dial(secure.URL)
	c.server.http.client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	if flt := webDelivery(t, c.do(call), fault.Refused); !errors.Is(flt, errOtherOrigin) {
		t.Errorf("downgrade: %v", flt)
	}
	if len(visits) != 0 {
		t.Errorf("an unwanted visit: %+v", <-visits)
	}
}

func TestNoGoroutineIsLeftOfManyLinks(t *testing.T) {
	webLeaks(t)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return webSDK() }, nil)
	url := webServe(t, h).URL
	server, err := New(Spec{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		c := webOpen(t, server, wire.Legacy)
		c.greet()
		c.session.Attend()
		c.do(webTool(1, "echo", `{"text":"x"}`))
		c.session.Close()
	}
	if err := server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnIdleLinkHasNoGoroutine(t *testing.T) {
	s := newWebLegacy(t, nil)
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	c.do(webInitialize) // and its session is replaced by another one
	c.server.mu.Lock()
	var links []*httpLink
	for l := range c.server.links {
		links = append(links, l.(*httpLink))
	}
	c.server.mu.Unlock()
	for _, l := range links {
		<-l.out.idle()
		for deadline := time.Now().Add(webTimeout); ; runtime.Gosched() {
			l.crew.mu.Lock()
			n := l.crew.n
			l.crew.mu.Unlock()
			if n == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines of an idle link", n)
			}
		}
	}
}

func TestABodyThatWasTakenBackIsNotReadAnyMore(t *testing.T) {
	p := newPayload([]byte("some bytes"))
	r := p.reader()
	var b [4]byte
	if n, err := r.Read(b[:]); n != 4 || err != nil || string(b[:]) != "some" {
		t.Fatalf("read %d bytes %q: %v", n, b, err)
	}
	p.takeBack()
	for _, r := range []io.Reader{r, p.reader()} {
		if n, err := r.Read(b[:]); n != 0 || err == nil || err == io.EOF {
			t.Errorf("after it was taken back: %d bytes, %v; want an error", n, err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	const reply = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, reply)
	}))
	defer s.Close()
	raw := []byte(webModern(1, "tools/call", `"name":"echo","arguments":{"text":"hello"}`))
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resp, err := http.Post(s.URL, "application/json", strings.NewReader(string(raw)))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				b.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	})
	b.Run("upstream", func(b *testing.B) {
		server, err := New(Spec{URL: s.URL})
		if err != nil {
			b.Fatal(err)
		}
		defer server.Close(context.Background())
		server.modern.learn(true)
		session := server.Open(Peer{Era: wire.Modern, Message: func(wire.Message) {}})
		m, err := wire.Parse(raw)
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan Outcome, 1)
		b.ReportAllocs()
		for b.Loop() {
			session.Do(&Call{Msg: m, Done: func(o Outcome) { done <- o }})
			if o := <-done; o.Fault != nil {
				b.Fatal(o.Fault)
			}
		}
	})
}

// Some servers take every message with 202 and send all replies over the one stream.
func TestAReplyOverTheSessionsOwnStreamIsTheReply(t *testing.T) {
	replies, listens := make(chan string, 10), make(chan struct{})
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusAccepted)
			replies <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, req.ID)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		close(listens)
		for {
			select {
			case reply := <-replies:
				fmt.Fprintf(w, "data: %s\n\n", reply)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	c.session.Attend()
	webAwait(t, listens, "the stream")
	for id := 1; id <= 3; id++ {
		o := c.do(webTool(id, "x", "{}"))
		for o.Fault != nil && id == 1 { // until we, too, know that there is a stream
			o = c.do(webTool(id, "x", "{}"))
		}
		if o.Fault != nil {
			t.Errorf("call %d: %v", id, o.Fault)
		}
	}
}

func TestABatchInAnEventIsTakenApart(t *testing.T) {
	s := newWebLegacy(t, func(w http.ResponseWriter, _ *http.Request, req webRequest) {
		webEvents(w, `data: [{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":`+string(req.ID)+`,"result":{}}]`)
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	call := c.start(webTool(1, "x", "{}"), nil)
	if m := call.note(); m.Method() != "notifications/message" {
		t.Errorf("heard %s", &m)
	}
	if o := call.wait(); o.Fault != nil {
		t.Error(o.Fault)
	}
}
