package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

func TestFallsBackToTheOldTransportOfAnSDKServer(t *testing.T) {
	webLeaks(t)
	var posts atomic.Int32
	h := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return webSDK() }, nil)
	s := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.RawQuery == "" {
			posts.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	if o := c.do(strings.Replace(webInitialize, `"capabilities":{}`, `"capabilities":{"roots":{}}`, 1)); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	c.session.Send(wire.NewNotification(wire.MethodInitialized, nil))
	c.session.Attend()
	if got := c.do(webTool(`"id"`, "echo", `{"text":"hello"}`)).text(t); got != "echo: hello" {
		t.Errorf("got %q", got)
	}
	w := c.start(webTool(2, "ask", `{"text":""}`), nil)
	question := w.note()
	c.session.Send(wire.NewResult(question.ID(), []byte(`{"roots":[{"uri":"file:///here"}]}`)))
	if got := w.wait().text(t); got != "file:///here" {
		t.Errorf("got %q", got)
	}

	second := webOpen(t, c.server, wire.Legacy)
	second.greet()
	if got := second.do(webTool(1, "echo", `{"text":"x"}`)).text(t); got != "echo: x" {
		t.Errorf("got %q", got)
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("%d attempts with the new transport, want 1: the answer is remembered", n)
	}
}

// webOld is a scripted server of the old kind. Each stream is kept until the test
// cuts it.
type webOld struct {
	mu       sync.Mutex
	out      chan string // events for the newest stream
	cut      chan struct{}
	streams  int
	handle   func(w http.ResponseWriter, req webRequest, reply func(string))
	endpoint string
}

func (s *webOld) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet:
		s.mu.Lock()
		s.out, s.cut = make(chan string, 10), make(chan struct{})
		s.streams++
		out, cut := s.out, s.cut
		s.mu.Unlock()
		webEvents(w, "event: endpoint\ndata: "+s.endpoint)
		for {
			select {
			case e := <-out:
				webEvents(w, e)
			case <-cut:
				return
			case <-r.Context().Done():
				return
			}
		}
	case r.URL.Path == "/messages":
		req := webRead(r)
		s.mu.Lock()
		out := s.out
		s.mu.Unlock()
		if req.Method == "initialize" {
			out <- fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05"}}`, req.ID)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		s.handle(w, req, func(e string) { out <- e })
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func TestTheOldTransportKnowsWhatBecameOfACall(t *testing.T) {
	in := make(chan struct{}, 10)
	s := &webOld{endpoint: "/messages?session=1"}
	s.handle = func(w http.ResponseWriter, req webRequest, reply func(string)) {
		switch req.Params.Name {
		case "refused":
			w.WriteHeader(http.StatusForbidden)
		case "lost":
			w.WriteHeader(http.StatusNotFound)
		case "failed":
			w.WriteHeader(http.StatusBadGateway)
		case "inline":
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
		case "garbled":
			w.WriteHeader(http.StatusAccepted)
			reply(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{]}`, req.ID))
		case "good":
			w.WriteHeader(http.StatusAccepted)
			reply(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID))
		default:
			w.WriteHeader(http.StatusAccepted)
			if req.Method == wire.MethodCall {
				in <- struct{}{}
			}
		}
	}
	c := webDial(t, wire.Legacy, Spec{URL: webServe(t, s).URL})
	c.greet()
	silent := c.start(webTool(1, "silent", "{}"), nil)
	webAwait(t, in, "the call")
	for name, want := range map[string]fault.Delivery{
		"refused": fault.Refused, "failed": fault.Silent, "garbled": fault.Partial,
	} {
		webDelivery(t, c.do(webTool(2, name, "{}")), want)
	}
	for _, name := range []string{"good", "inline"} {
		if o := c.do(webTool(3, name, "{}")); o.Fault != nil {
			t.Errorf("%s: %v", name, o.Fault)
		}
	}
	old := c.onlyLink().old.Load()
	for deadline := time.Now().Add(webTimeout); ; runtime.Gosched() {
		old.ways.Lock()
		n := len(old.posts)
		old.ways.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests are remembered, want the one under way", n)
		}
	}
	if len(silent.outcome) != 0 {
		t.Error("the trouble of others has settled a call")
	}

	s.mu.Lock()
	close(s.cut)
	s.mu.Unlock()
	webDelivery(t, silent.wait(), fault.Silent)
	if o := c.do(webTool(4, "good", "{}")); o.Fault != nil { // over a new stream, greeted anew
		t.Errorf("after the stream broke: %v", o.Fault)
	}
	if flt := webDelivery(t, c.do(webTool(5, "lost", "{}")), fault.Refused); !errors.Is(flt, errSessionLost) {
		t.Errorf("lost: %v", flt)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams != 2 {
		t.Errorf("%d streams, want 2", s.streams)
	}
}

func TestAnOldServerIsToldOfACancelledCall(t *testing.T) {
	in, told := make(chan webRequest, 1), make(chan webRequest, 1)
	s := &webOld{endpoint: "messages"}
	s.handle = func(w http.ResponseWriter, req webRequest, reply func(string)) {
		w.WriteHeader(http.StatusAccepted)
		switch req.Method {
		case wire.MethodCall:
			in <- req
		case wire.MethodCancelled:
			told <- req
		}
	}
	c := webDial(t, wire.Legacy, Spec{URL: webServe(t, s).URL + "/sse"})
	c.greet()
	w := c.start(webTool(`"mine"`, "x", "{}"), nil)
	sent := webAwait(t, in, "the call")
	c.session.Cancel(&w.Call, nil)
	webDelivery(t, w.wait(), fault.Cancelled)
	if got := webAwait(t, told, "the notification"); string(got.Params.RequestID) != string(sent.ID) {
		t.Errorf("cancelled %s, sent %s", got.Params.RequestID, sent.ID)
	}
}

func TestMessagesNeverGoToAnotherOrigin(t *testing.T) {
	var stolen atomic.Int32
	thief := webServe(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	s := webServe(t, &webOld{endpoint: thief.URL + "/messages"})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL, Header: http.Header{"Authorization": {"Bearer x"}}})
	webDelivery(t, c.do(webInitialize), fault.Refused)
	if stolen.Load() != 0 {
		t.Error("the message went to another origin")
	}
}

func TestNeitherTransportMeansTheFirstAnswerStands(t *testing.T) {
	s := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, "<html>welcome")
			return
		}
		http.Error(w, "no such page", http.StatusNotFound)
	}))
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	flt := webDelivery(t, c.do(webInitialize), fault.Refused)
	if flt.HTTPStatus != 404 || !strings.Contains(flt.Error(), "no such page") {
		t.Errorf("got %v", flt)
	}
	if err := c.server.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
