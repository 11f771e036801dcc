package upstream_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/front"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// These tests are about what one modern client over HTTP may get of another when
// the server behind is legacy: nothing. They go through package front, since how
// clients are told apart is decided there.

// While ALICE's tool asks, BOB has the younger call under way.
func TestAServersQuestionIsNeverPutToAnotherClient(t *testing.T) {
	h := newHouse(t)
	alice, bob := h.client("alice", asks), h.client("bob", asks)
	a := alice.start("ask when told", "")
	h.await("alice's tool to run")
	b := bob.start("wait", "")
	h.await("bob's tool to run")
	h.tell()

	var theirs *exchange
	select {
	case <-a.done:
	case <-b.done:
		theirs = b
		t.Errorf("bob was asked what alice's tool wants to know: %s", b.reply())
	}
	if theirs != nil {
		// What comes of it: bob answers, and alice's tool believes it was alice.
		bob.start("wait", theirs.answer(t, "bob"))
		if got := a.reply(); strings.Contains(got, "bob") {
			t.Errorf("alice's tool was given bob's answer: %s", got)
		}
		return
	}
	// Where it cannot be told whose question it is, the tool may hear so instead.
	if got := a.reply(); strings.Contains(got, "input_required") {
		got = alice.start("ask when told", a.answer(t, "alice")).reply()
		if !strings.Contains(got, "alice was told alice") {
			t.Errorf("alice's tool was not given her answer: %s", got)
		}
	}
	close(h.release)
	if got := b.all(); strings.Contains(got, "PIN of alice") || !strings.Contains(got, "bob waited") {
		t.Errorf("bob got %s", got)
	}
}

// ALICE's call is over, and BOB has the only one under way.
func TestWhatAToolDoesAfterItsCallReachesNoOtherClient(t *testing.T) {
	h := newHouse(t)
	alice, bob := h.client("alice", asks), h.client("bob", asks)
	if got := alice.start("ask afterwards", "").reply(); !strings.Contains(got, "alice goes on") {
		t.Fatalf("alice got %s", got)
	}
	h.await("alice's tool to run")
	b := bob.start("wait", "")
	h.await("bob's tool to run")
	h.tell()
	select {
	case <-h.progress: // the tool has asked, and was answered somehow
		close(h.release)
	case <-b.done:
	}
	if got := b.all(); strings.Contains(got, "alice") || !strings.Contains(got, "bob waited") {
		t.Errorf("bob got %s", got)
	}
}

// ALICE is there first and can be asked. BOB cannot.
func TestAClientIsNotAskedForWhatAnotherOneCan(t *testing.T) {
	h := newHouse(t)
	alice, bob := h.client("alice", asks), h.client("bob", `{}`)
	if got := alice.start("ask", "").reply(); !strings.Contains(got, "PIN of alice") {
		t.Fatalf("alice got %s", got)
	}
	if got := bob.start("ask", "").reply(); strings.Contains(got, "input_required") {
		t.Errorf("bob, who cannot be asked, got %s", got)
	}
}

// BOB is there first and cannot be asked. ALICE can.
func TestAClientIsAskedThoughAnotherOneCannotBe(t *testing.T) {
	h := newHouse(t)
	bob, alice := h.client("bob", `{}`), h.client("alice", asks)
	if got := bob.start("ask", "").reply(); !strings.Contains(got, "bob cannot be asked") {
		t.Fatalf("bob got %s", got)
	}
	if got := alice.start("ask", "").reply(); !strings.Contains(got, "PIN of alice") {
		t.Errorf("alice, who can be asked, got %s", got)
	}
}

// BOB has seen the state that ALICE was given, in a log or over her shoulder.
func TestARequestStateIsWorthNothingToAnotherClient(t *testing.T) {
	h := newHouse(t)
	alice, bob := h.client("alice", asks), h.client("bob", asks)
	a := alice.start("ask", "")
	if got := bob.start("ask", a.answer(t, "bob")).reply(); !strings.Contains(got, `"error"`) {
		t.Errorf("bob got %s", got)
	}
	if got := alice.start("ask", a.answer(t, "alice")).reply(); !strings.Contains(got, "alice was told alice") {
		t.Errorf("alice got %s", got)
	}
}

// Everybody uses the same ids, and everybody's tool asks the same at the same time.
func TestClientsAtOnceAreAskedOnlyForThemselves(t *testing.T) {
	h := newHouse(t)
	names := []string{"alice", "bob", "carol"}
	for round := range 20 {
		calls := make(map[string]*exchange)
		for _, name := range names {
			calls[name] = h.client(name, asks).start("ask when told", "")
		}
		for range names {
			h.await("all three tools to run")
		}
		for range names {
			h.tell()
		}
		for _, name := range names {
			if got := calls[name].all(); !strings.Contains(got, "PIN of "+name) {
				t.Fatalf("round %d: %s got %s", round, name, got)
			}
		}
		for _, name := range names {
			got := h.client(name, asks).start("ask when told", calls[name].answer(t, name)).all()
			if !strings.Contains(got, name+" was told "+name) {
				t.Fatalf("round %d: %s got %s", round, name, got)
			}
		}
	}
}

const asks = `{"elicitation":{}}`

// patience is how long something may take that should happen at once.
const patience = 10 * time.Second

// house is a front with a legacy server on stdio behind it. All processes of the
// server are played by the same test, so it does not matter how many there are.
type house struct {
	t    *testing.T
	url  string
	told chan struct{} // takes one for each tool that waits to be told to ask
	// release is closed when tools that wait may end, or the test has.
	release  chan struct{}
	progress chan struct{} // one for every tool that runs, and for what it does afterwards
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, told: make(chan struct{}), release: make(chan struct{}), progress: make(chan struct{}, 1000)}
	puppets := upstream.NewPuppets(t)
	go puppets.Each(func(p *upstream.Puppet) {
		(&tools{house: h, puppet: p, answers: make(map[string]chan wire.Message)}).serve()
	})
	server, err := guard.New(guard.Spec{Command: puppets.Command, Env: puppets.Env}, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	door := &front.HTTP{Catalogue: catalogue.Of(server)}
	site := httptest.NewServer(door)
	h.url = site.URL + front.Path
	t.Cleanup(func() {
		site.CloseClientConnections()
		door.Close()
		site.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := door.Catalogue.Close(ctx); err != nil {
			t.Errorf("closing the server: %v", err)
		}
	})
	return h
}

func (h *house) await(what string) {
	h.t.Helper()
	select {
	case <-h.progress:
	case <-time.After(patience):
		h.t.Fatalf("waited in vain for %s", what)
	}
}

// tell has one tool ask that waits for it.
func (h *house) tell() {
	h.t.Helper()
	select {
	case h.told <- struct{}{}:
	case <-time.After(patience):
		h.t.Fatal("no tool waits to be told")
	}
}

// guest is a modern client over HTTP.
type guest struct {
	house              *house
	name, capabilities string
}

func (h *house) client(name, capabilities string) *guest { return &guest{h, name, capabilities} }

// exchange is one request of a client and all that came back.
type exchange struct {
	t    *testing.T
	done chan struct{}
	body []byte
}

// start calls a tool. more holds further members of the params.
func (g *guest) start(tool, more string) *exchange {
	g.house.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"who":%q}%s,"_meta":{
		"progressToken":1,
		"io.modelcontextprotocol/logLevel":"debug",
		"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":%s,
		"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"}}}}`, tool, g.name, more, g.capabilities, g.name)
	r, err := http.NewRequestWithContext(g.house.t.Context(), http.MethodPost, g.house.url, strings.NewReader(body))
	if err != nil {
		g.house.t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {"tools/call"},
		"Mcp-Name":             {tool},
	}
	x := &exchange{t: g.house.t, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			x.body = []byte(err.Error())
			return
		}
		defer resp.Body.Close()
		x.body, _ = io.ReadAll(resp.Body)
	}()
	return x
}

// all is everything that came back.
func (x *exchange) all() string {
	select {
	case <-x.done:
		return string(x.body)
	case <-time.After(patience):
		return "nothing"
	}
}

// reply is the last of it.
func (x *exchange) reply() string {
	lines := strings.Split(strings.TrimSpace(x.all()), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "data: ")
}

// answer is what the next request has to say to answer the question in this one.
func (x *exchange) answer(t *testing.T, pin string) string {
	t.Helper()
	m, err := wire.Parse([]byte(x.reply()))
	if err != nil {
		t.Errorf("%q: %v", x.reply(), err)
		return ""
	}
	state, _ := wire.Member(m.Result(), "requestState")
	requests, _ := wire.Member(m.Result(), "inputRequests")
	responses := []byte("{}")
	wire.EachMember(requests, func(key string, _ []byte) {
		responses = wire.Set(responses, fmt.Appendf(nil, `{"action":"accept","content":{"pin":%q}}`, pin), key)
	})
	if len(state) == 0 {
		t.Errorf("no question in %s", &m)
		return ""
	}
	return fmt.Sprintf(`,"requestState":%s,"inputResponses":%s`, state, responses)
}

// tools is one process of the server.
type tools struct {
	house   *house
	puppet  *upstream.Puppet
	askable bool // its client says that it can be asked

	mu      sync.Mutex
	asked   int
	answers map[string]chan wire.Message
}

func (s *tools) serve() {
	for line := range s.puppet.Heard {
		m, err := wire.Parse([]byte(line))
		if err != nil {
			continue
		}
		switch {
		case m.Kind == wire.Response:
			s.mu.Lock()
			answer := s.answers[string(m.ID())]
			s.mu.Unlock()
			if answer != nil {
				answer <- m
			}
		case m.Method() == wire.MethodInitialize:
			_, s.askable = wire.Member(m.Params(), "capabilities", "elicitation")
			s.result(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case m.Method() == wire.MethodTools:
			var list []string
			for _, name := range []string{"ask", "ask when told", "ask afterwards", "wait"} {
				list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
			}
			s.result(m, `{"tools":[`+strings.Join(list, ",")+`]}`)
		case m.Method() == wire.MethodCall:
			go s.run(m)
		case m.Kind == wire.Request && m.Method() == wire.MethodDiscover:
			s.puppet.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID()))
		case m.Kind == wire.Request:
			s.result(m, `{}`)
		}
	}
}

// run is a tool at work.
func (s *tools) run(m wire.Message) {
	raw, _ := wire.Member(m.Params(), "arguments", "who")
	who, _ := wire.StringValue(raw)
	raw, _ = wire.Member(m.Params(), "name")
	name, _ := wire.StringValue(raw)
	select {
	case s.house.progress <- struct{}{}:
	default: // nobody counts
	}
	switch name {
	case "wait":
		s.until(s.house.release)
		s.say(m, who+" waited")
	case "ask afterwards":
		s.say(m, who+" goes on")
		s.until(s.house.told)
		s.puppet.Say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"secret of %s"}}`, who))
		s.ask(who)
		s.house.progress <- struct{}{}
	case "ask when told":
		s.until(s.house.told)
		s.say(m, s.ask(who))
	default:
		s.say(m, s.ask(who))
	}
}

// ask asks the client for its PIN and says what the tool believes to know then.
func (s *tools) ask(who string) string {
	if !s.askable {
		return who + " cannot be asked"
	}
	answer := make(chan wire.Message, 1)
	s.mu.Lock()
	s.asked++
	id := fmt.Sprint(s.asked)
	s.answers[id] = answer
	s.mu.Unlock()
	s.puppet.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"PIN of %s?","requestedSchema":{"type":"object","properties":{}}}}`, id, who))
	select {
	case m := <-answer:
		raw, ok := wire.Member(m.Result(), "content", "pin")
		if pin, _ := wire.StringValue(raw); ok {
			return who + " was told " + pin
		}
		return who + " was told nothing: " + string(bytes.TrimSpace(m.Raw))
	case <-s.house.t.Context().Done():
		return "the test is over"
	}
}

func (s *tools) until(c <-chan struct{}) {
	select {
	case <-c:
	case <-s.house.t.Context().Done():
	}
}

func (s *tools) say(m wire.Message, text string) {
	s.result(m, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

func (s *tools) result(m wire.Message, result string) {
	s.puppet.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID(), result))
}
