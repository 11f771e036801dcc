package upstream

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

func TestResumesTheAnswerOfAnSDKServer(t *testing.T) {
	var ran atomic.Int32
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	resumed := make(chan struct{})
	mcp.AddTool(s, &mcp.Tool{Name: "slow"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		ran.Add(1)
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 20 * time.Millisecond})
		<-resumed
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	once := make(chan struct{}, 1)
	url := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
			select {
			case once <- struct{}{}:
				close(resumed)
			default:
			}
		}
		h.ServeHTTP(w, r)
	})).URL
	c := webDial(t, wire.Legacy, Spec{URL: url})
	c.greet()
	if got := c.do(webTool(1, "slow", "{}")).text(t); got != "done" || ran.Load() != 1 {
		t.Errorf("got %q, ran %d times", got, ran.Load())
	}
}

func TestGoesOnWithAStreamWhereItBroke(t *testing.T) {
	type request struct {
		at     time.Time
		lastID string
	}
	var closed atomic.Value
	gets := make(chan request, 10)
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		if r.Method == http.MethodPost {
			webEvents(w, "id: e1\nretry: 400\ndata:",
				`id: e2`+"\n"+`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"n":1}}`)
			closed.Store(time.Now())
			return
		}
		got := request{time.Now(), r.Header.Get("Last-Event-ID")}
		gets <- got
		switch got.lastID {
		case "e2": // it replays more than it was asked for, and breaks again
			webEvents(w, "id: e2\ndata: "+`{"jsonrpc":"2.0","method":"notifications/message","params":{"n":1}}`,
				"id: e3\ndata: "+`{"jsonrpc":"2.0","method":"notifications/message","params":{"n":2}}`)
		case "e3":
			webEvents(w, "id: e4\ndata: "+`{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	w := c.start(webTool(1, "x", "{}"), nil)
	if o := w.wait(); o.Fault != nil {
		t.Fatal(o.Fault)
	}
	first := <-gets
	if early := first.at.Sub(closed.Load().(time.Time)); first.lastID != "e2" || early < 400*time.Millisecond {
		t.Errorf("came back after %v with %q, want not before 400ms and with e2", early, first.lastID)
	}
	if second := <-gets; second.lastID != "e3" {
		t.Errorf("came back with %q, want e3", second.lastID)
	}
	if len(w.notes) != 2 {
		t.Errorf("%d notifications, want 2: none lost, none twice", len(w.notes))
	}
}

func TestGivesUpAStreamThatCannotGoOn(t *testing.T) {
	for name, test := range map[string]struct {
		post string
		get  func(w http.ResponseWriter)
		gets int32
	}{
		"no ids":        {": hello", nil, 0},
		"not offered":   {"id: e1\ndata:", func(w http.ResponseWriter) { w.WriteHeader(405) }, 1},
		"never a reply": {"id: e1\nretry: 1\ndata:", func(w http.ResponseWriter) { webEvents(w, ": hello") }, fruitless},
	} {
		t.Run(name, func(t *testing.T) {
			var gets atomic.Int32
			s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
				if r.Method == http.MethodPost {
					webEvents(w, test.post)
					return
				}
				gets.Add(1)
				test.get(w)
			})
			c := webDial(t, wire.Legacy, Spec{URL: s.URL})
			c.greet()
			webDelivery(t, c.do(webTool(1, "x", "{}")), fault.Started)
			if n := gets.Load(); n != test.gets {
				t.Errorf("came back %d times, want %d", n, test.gets)
			}
		})
	}
}

func TestAModernAnswerIsNotResumed(t *testing.T) {
	var gets atomic.Int32
	c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			gets.Add(1)
		}
		webEvents(w, "id: e1\ndata:")
	})
	webDelivery(t, c.do(webModern(1, "tools/call", `"name":"x"`)), fault.Started)
	if gets.Load() != 0 {
		t.Error("came back for more")
	}
}

func TestHearsWhatAServerSaysOutsideOfCalls(t *testing.T) {
	webLeaks(t)
	gets := make(chan string, 10)
	cut := make(chan struct{})
	var n atomic.Int32
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		gets <- r.Header.Get(headerSession) + " " + r.Header.Get("Last-Event-ID")
		switch n.Add(1) {
		case 1:
			webEvents(w, "id: a\nretry: 5\ndata: "+`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			<-cut
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			webEvents(w, "id: a\ndata: "+`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
				"id: b\ndata: "+`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
			<-r.Context().Done()
		}
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	c.session.Attend()
	c.session.Attend()
	if m := webHear(t, c.heard); m.Method() != "notifications/tools/list_changed" {
		t.Errorf("heard %s", &m)
	}
	close(cut)
	if m := webHear(t, c.heard); m.Method() != "notifications/prompts/list_changed" {
		t.Errorf("heard %s, want what came after the break and only that", &m)
	}
	for _, want := range []string{"s1 ", "s1 a", "s1 a"} {
		if got := <-gets; got != want {
			t.Errorf("opened with session and last id %q, want %q", got, want)
		}
	}
}

func TestAServerNeedNotOfferAStream(t *testing.T) {
	for _, status := range []int{400, 401, 404, 405, 406, 501, 200, 204} {
		var gets atomic.Int32
		s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
			if r.Method == http.MethodGet {
				gets.Add(1)
				w.WriteHeader(status)
				return
			}
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
		})
		c := webDial(t, wire.Legacy, Spec{URL: s.URL})
		c.greet()
		c.session.Attend()
		l := c.onlyLink()
		for deadline := time.Now().Add(webTimeout); ; { // until the listener has gone home
			l.crew.mu.Lock()
			n := l.crew.n
			l.crew.mu.Unlock()
			if n == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d: still trying", status)
			}
		}
		if o := c.do(webTool(1, "x", "{}")); o.Fault != nil || gets.Load() != 1 || s.opened() != 1 {
			t.Errorf("%d: %v after %d attempts and %d sessions", status, o.Fault, gets.Load(), s.opened())
		}
	}
}

func (c *webClient) onlyLink() *httpLink {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	for l := range c.server.links {
		return l.(*httpLink)
	}
	c.t.Fatal("no link")
	return nil
}

func TestAReplyOnTheWrongStreamIsStillTheReply(t *testing.T) {
	called := make(chan struct{})
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		if r.Method == http.MethodGet {
			webEvents(w, ": hello")
			<-called
			webEvents(w, `data: {"jsonrpc":"2.0","id":1,"result":{}}`)
			<-r.Context().Done()
			return
		}
		webEvents(w, ": hello")
		close(called)
		<-r.Context().Done()
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL})
	c.greet()
	c.session.Attend()
	if o := c.do(webTool(1, "x", "{}")); o.Fault != nil {
		t.Error(o.Fault)
	}
}

func TestALegacyClientHearsAnSDKServer(t *testing.T) {
	sdk := webSDK()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	opened := make(chan struct{}, 10)
	url := webServe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w = &flushNote{w, opened}
		}
		h.ServeHTTP(w, r)
	})).URL
	c := webDial(t, wire.Legacy, Spec{URL: url})
	c.greet()
	c.session.Attend()
	webAwait(t, opened, "the stream")
	sdk.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
	if m := webHear(t, c.heard); m.Method() != "notifications/tools/list_changed" {
		t.Errorf("heard %s", &m)
	}
}

// flushNote tells when the first bytes of a response have left.
type flushNote struct {
	http.ResponseWriter
	flushed chan struct{}
}

func (f *flushNote) Flush() {
	f.ResponseWriter.(http.Flusher).Flush()
	select {
	case f.flushed <- struct{}{}:
	default:
	}
}

func TestASubscriptionIsOpenedAgain(t *testing.T) {
	webLeaks(t)
	sdk := webSDK()
	s := webServe(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: true}))
	c := webDial(t, wire.Modern, Spec{URL: s.URL})
	w := c.start(webModern(`"sub"`, wire.MethodListen, `"notifications":{"toolsListChanged":true}`), nil)
	if m := w.note(); m.Method() != methodAcknowledged {
		t.Fatalf("first came %s", &m)
	}
	tagged := func(m wire.Message) string {
		id, _ := wire.Member(m.Params(), "_meta", wire.MetaSubscription)
		return m.Method() + " " + string(id)
	}
	const changed = `notifications/tools/list_changed "sub"`
	for round := range 3 {
		s.CloseClientConnections()
		// No second acknowledgement; the client is told to look for what it missed.
		if got := tagged(w.note()); got != changed {
			t.Fatalf("round %d: after the break came %s", round, got)
		}
		sdk.AddTool(&mcp.Tool{Name: fmt.Sprint("new", round), InputSchema: map[string]any{"type": "object"}}, nil)
		if got := tagged(w.note()); got != changed {
			t.Fatalf("round %d: after the change came %s", round, got)
		}
	}
	if len(w.outcome) != 0 {
		t.Fatalf("the subscription ended: %v", (<-w.outcome).Fault)
	}
	c.session.Cancel(&w.Call, nil)
	webDelivery(t, w.wait(), fault.Cancelled)
}

func TestASubscriptionEndsByAReplyOrARefusal(t *testing.T) {
	for name, second := range map[string]func(w http.ResponseWriter){
		"reply":   func(w http.ResponseWriter) { webEvents(w, `data: {"jsonrpc":"2.0","id":1,"result":{}}`) },
		"refusal": func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		var posts atomic.Int32
		c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
			switch posts.Add(1) {
			case 1:
				webEvents(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["file:///a"]}}}`)
			case 2:
				w.WriteHeader(http.StatusBadGateway)
			default:
				second(w)
			}
		})
		o := c.do(webModern(1, wire.MethodListen, `"notifications":{}`))
		if name == "reply" && o.Fault != nil || name == "refusal" && (o.Fault == nil || o.Fault.HTTPStatus != 401) {
			t.Errorf("%s: %v", name, o.Fault)
		}
		if n := posts.Load(); n != 3 {
			t.Errorf("%s: %d attempts, want 3", name, n)
		}
	}
}

func TestASubscriptionThatNeverBeganFails(t *testing.T) {
	var posts atomic.Int32
	c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	})
	webDelivery(t, c.do(webModern(1, wire.MethodListen, `"notifications":{}`)), fault.Silent)
	if n := posts.Load(); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

func TestTellsWhatMayHaveBeenMissed(t *testing.T) {
	s := &listening{granted: []byte(`{"promptsListChanged":true,"toolsListChanged":false,"resourceSubscriptions":["file:///a","file:///b"]}`)}
	var got []string
	for _, m := range s.missed([]byte("7")) {
		got = append(got, string(m.Raw))
	}
	want := strings.Join([]string{
		`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///b","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`,
	}, "\n")
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestPausesGrowAndAreBounded(t *testing.T) {
	for n, most := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, longestPause, longestPause} {
		longest := time.Duration(0)
		for range 2000 {
			longest = max(longest, pause(n))
		}
		if longest >= most || longest < most*9/10 {
			t.Errorf("pause(%d) went up to %v, want just below %v", n, longest, most)
		}
	}
	s := stream{retry: time.Second}
	if got := s.pause(0); got != time.Second {
		t.Errorf("the server asked for 1s and we wait %v", got)
	}
	s.atLeast = time.Minute
	if got := s.pause(3); got < time.Minute {
		t.Errorf("a refusal asked for 1m and we wait %v", got)
	}
	if got := s.pause(3); got < time.Second || got > 3*time.Second {
		t.Errorf("the time after that we wait %v", got)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if began := time.Now(); wait(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("waited %v", time.Since(began))
		}
	})
}
