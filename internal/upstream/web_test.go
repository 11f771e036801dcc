//lint:file-ignore SA1019 roots are deprecated, and servers will ask for them for years: they must pass

package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// webTimeout is how long a test waits for something that should happen at once.
const webTimeout = 10 * time.Second

// webClient is a client of a session whose server is reached over HTTP.
type webClient struct {
	t       *testing.T
	server  *Server
	session *Session
	heard   chan wire.Message // what came outside of calls
}

func webDial(t *testing.T, era wire.Era, spec Spec) *webClient {
	t.Helper()
	server, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), webTimeout)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Errorf("closing the server: %v", err)
		}
	})
	return webOpen(t, server, era)
}

func webOpen(t *testing.T, server *Server, era wire.Era) *webClient {
	c := &webClient{t: t, server: server, heard: make(chan wire.Message, 1000)}
	c.session = server.Open(Peer{Era: era, Message: func(m wire.Message) { c.heard <- m }})
	t.Cleanup(c.session.Close)
	return c
}

// webCall is a call under way.
type webCall struct {
	Call
	t       *testing.T
	notes   chan wire.Message
	outcome chan Outcome
}

func (c *webClient) start(raw string, header http.Header) *webCall {
	c.t.Helper()
	m, err := wire.Parse([]byte(raw))
	if err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	w := &webCall{t: c.t, notes: make(chan wire.Message, 1000), outcome: make(chan Outcome, 2)}
	w.Msg, w.Header = m, header
	w.On = func(m wire.Message) { w.notes <- m }
	w.Done = func(o Outcome) { w.outcome <- o }
	c.session.Do(&w.Call)
	return w
}

func (w *webCall) wait() Outcome {
	w.t.Helper()
	select {
	case o := <-w.outcome:
		return o
	case <-time.After(webTimeout):
		w.t.Fatalf("no outcome of %s", &w.Msg)
		return Outcome{}
	}
}

func (w *webCall) note() wire.Message {
	w.t.Helper()
	return webHear(w.t, w.notes)
}

func webHear(t *testing.T, from <-chan wire.Message) wire.Message {
	t.Helper()
	select {
	case m := <-from:
		return m
	case <-time.After(webTimeout):
		t.Fatal("nothing was heard")
		return wire.Message{}
	}
}

// webAwait waits for a channel of the test's server.
func webAwait[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(webTimeout):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

func (c *webClient) do(raw string) Outcome {
	c.t.Helper()
	return c.start(raw, nil).wait()
}

const webInitialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// greet does what every legacy client does first.
func (c *webClient) greet() {
	c.t.Helper()
	if o := c.do(webInitialize); o.Fault != nil || o.Reply.Result() == nil {
		c.t.Fatalf("initialize: %v %s", o.Fault, &o.Reply)
	}
	c.session.Send(wire.NewNotification(wire.MethodInitialized, nil))
}

func webTool(id any, name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments)
}

const webMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`

func webModern(id any, method, params string) string {
	if params != "" {
		params = "," + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":{%s%s}}`, id, method, webMeta, params)
}

func (o Outcome) text(t *testing.T) string {
	t.Helper()
	if o.Fault != nil {
		t.Fatalf("the call failed (%v): %v", o.Fault.Delivery, o.Fault)
	}
	var result struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(o.Reply.Result(), &result); err != nil || len(result.Content) == 0 {
		t.Fatalf("no text in %s", &o.Reply)
	}
	return result.Content[0].Text
}

// webRequest is a JSON-RPC message as a scripted server reads it.
type webRequest struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		RequestID json.RawMessage `json:"requestId"`
	}
	Header http.Header
}

func webRead(r *http.Request) webRequest {
	var req webRequest
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &req)
	req.Header = r.Header.Clone()
	return req
}

func webJSON(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, format, args...)
}

func webEvents(w http.ResponseWriter, events ...string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for _, e := range events {
		_, _ = io.WriteString(w, e+"\n\n")
	}
	w.(http.Flusher).Flush()
}

// webLegacy is a scripted legacy server. It does the handshake by itself and
// leaves everything else to handle. Sessions are named s1, s2, …
type webLegacy struct {
	*httptest.Server
	mu        sync.Mutex
	sessions  int
	deleted   []string
	initiated []webRequest
}

func newWebLegacy(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, req webRequest)) *webLegacy {
	s := new(webLegacy)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req webRequest
		switch r.Method {
		case http.MethodPost:
			req = webRead(r)
		case http.MethodDelete:
			s.mu.Lock()
			s.deleted = append(s.deleted, r.Header.Get(headerSession))
			s.mu.Unlock()
			return
		}
		switch req.Method {
		case "initialize":
			s.mu.Lock()
			s.sessions++
			s.initiated = append(s.initiated, req)
			w.Header().Set(headerSession, fmt.Sprintf("s%d", s.sessions))
			s.mu.Unlock()
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}}`, req.ID)
		case "notifications/initialized":
			w.WriteHeader(http.StatusAccepted)
		default:
			handle(w, r, req)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *webLegacy) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

func (s *webLegacy) ended() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.deleted...)
}

// webDelivery fails the test unless the outcome is a fault with this delivery.
func webDelivery(t *testing.T, o Outcome, want fault.Delivery) *fault.Fault {
	t.Helper()
	if o.Fault == nil {
		t.Fatalf("got the reply %s, want a fault (%v)", &o.Reply, want)
	}
	if o.Fault.Delivery != want {
		t.Fatalf("delivery = %v (%v), want %v", o.Fault.Delivery, o.Fault, want)
	}
	return o.Fault
}

// webSDK is a real server with a few tools.
func webSDK() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(ctx context.Context, r *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "echo: " + a.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1)})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: roots.Roots[0].URI}}}, nil, nil
	})
	return s
}

func webServe(t *testing.T, h http.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// webLeaks fails the test if goroutines of this package outlive it.
func webLeaks(t *testing.T) {
	t.Cleanup(func() {
		var stacks string
		for deadline := time.Now().Add(webTimeout); time.Now().Before(deadline); runtime.Gosched() {
			buf := make([]byte, 1<<20)
			stacks = ""
			for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
				if strings.Contains(g, "internal/upstream.(*") && !strings.Contains(g, "testing.tRunner") {
					stacks += g + "\n\n"
				}
			}
			if stacks == "" {
				return
			}
		}
		t.Errorf("goroutines are left:\n%s", stacks)
	})
}
