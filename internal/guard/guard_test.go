package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// TestMain turns the test binary into a small legacy server when it is started as
// one. It answers by hand, so that it can also misbehave by hand.
func TestMain(m *testing.M) {
	if how := os.Getenv("GUARD_TEST_SERVER"); how != "" {
		serve(how)
		return
	}
	os.Exit(m.Run())
}

// serve understands initialize, tools/list, and tools/call of:
//
//	echo  answers
//	die   exits in the middle of the call
//	steps takes 600 ms, and reports progress to whoever asks for it
//
// how "typed" gives echo a schema and has it say what it got.
// how "changed" lists other definitions when started a second time; the file named
// by GUARD_TEST_FILE tells whether it was.
func serve(how string) {
	again := false
	if file := os.Getenv("GUARD_TEST_FILE"); file != "" {
		_, err := os.Stat(file)
		again = err == nil
		_ = os.WriteFile(file, nil, 0o600)
	}
	schema := `{"type":"object"}`
	if how == "typed" {
		schema = `{"type":"object","properties":{"n":{"type":"integer"},"other":{"type":"number"}},"required":["n"]}`
	}
	if how == "changed" && again {
		schema = `{"type":"object","required":["x"]}`
	}
	out := json.NewEncoder(os.Stdout)
	r := wire.NewLineReader(os.Stdin, 0, nil)
	for {
		m, err := r.Next()
		if err != nil {
			return
		}
		reply := func(result string) {
			_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(m.ID()), "result": json.RawMessage(result)})
		}
		switch m.Method() {
		case "initialize":
			if how == "dies greeting" {
				os.Exit(7)
			}
			reply(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}`)
		case "tools/list":
			reply(fmt.Sprintf(`{"tools":[{"name":"die","inputSchema":%s},{"name":"die_idem","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"echo","inputSchema":%[1]s,"annotations":{"readOnlyHint":true}}]}`, schema))
		case "tools/call":
			name, _ := wire.Member(m.Params(), "name")
			if strings.HasPrefix(string(name), `"die`) && !(again && string(name) == `"die_idem"`) {
				fmt.Fprintln(os.Stderr, "panic: out of cheese")
				if string(name) == `"die_telling"` {
					fmt.Fprintln(os.Stderr, "token was", os.Getenv("API_TOKEN"))
				}
				os.Exit(2)
			}
			if how == "typed" {
				args, _ := wire.Member(m.Params(), "arguments")
				switch string(args) {
				case `{"n":13}`:
					_ = out.Encode(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(m.ID()), "error": map[string]any{"code": -32602, "message": "Invalid arguments: n is unlucky"}})
					continue
				case `{"n":14}`:
					reply(`{"isError":true,"content":[{"type":"text","text":"Input validation error: Invalid arguments for tool echo: n must be below 10"}]}`)
					continue
				}
				if strings.Contains(string(args), "many") {
					reply(`{"isError":true,"content":[{"type":"text","text":"n is not a number"}]}`)
					break
				}
				reply(`{"content":[{"type":"text","text":` + string(wire.AppendString(nil, string(args))) + `}]}`)
				break
			}
			if string(name) == `"steps"` {
				for range 10 {
					<-time.After(60 * time.Millisecond)
					if token, ok := wire.Member(m.Params(), "_meta", "progressToken"); ok {
						fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`+"\n", token)
					}
				}
			}
			reply(`{"content":[{"type":"text","text":"fine"}]}`)
		}
	}
}

// client drives one session by hand.
type client struct {
	t       testing.TB
	server  *Server
	session *Session
	heard   chan wire.Message
	id      int
}

func newClient(t testing.TB, how string, o Options, env ...string) *client {
	t.Helper()
	c := &client{t: t, heard: make(chan wire.Message, 100)}
	server, err := New(Spec{
		Command: []string{os.Args[0]},
		Env:     append(append(os.Environ(), "GUARD_TEST_SERVER="+how, "GUARD_TEST_FILE="+t.TempDir()+"/started"), env...),
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	c.server = server
	c.session = server.Open(Peer{Era: wire.Legacy, Message: func(m wire.Message) { c.heard <- m }})
	t.Cleanup(func() {
		c.session.Close()
		if err := server.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c
}

func (c *client) do(method, params string) Reply {
	c.t.Helper()
	c.id++
	got := make(chan Reply, 2)
	m := wire.NewRequest(fmt.Appendf(nil, "%d", c.id), method, []byte(params))
	c.session.Do(&Call{Msg: m, Done: func(r Reply) { got <- r }})
	select {
	case r := <-got:
		select {
		case twice := <-got:
			c.t.Errorf("%s was settled twice, the second time with %s", method, twice.Msg.Raw)
		default:
		}
		return r
	case <-time.After(20 * time.Second):
		c.t.Fatalf("%s %s was never settled", method, params)
		return Reply{}
	}
}

func (c *client) greet() {
	c.t.Helper()
	if r := c.do("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`); r.Fault != nil {
		c.t.Fatalf("initialize: %v", r.Fault)
	}
	c.session.Send(wire.NewNotification(wire.MethodInitialized, nil))
	if r := c.do("tools/list", `{}`); r.Fault != nil {
		c.t.Fatalf("tools/list: %v", r.Fault)
	}
}

// verdict reads our own data out of a reply.
func verdict(t *testing.T, r Reply) report {
	t.Helper()
	raw, ok := wire.Member(r.Msg.Result(), "_meta", MetaOutcome)
	if !ok {
		t.Fatalf("no %s in %s", MetaOutcome, r.Msg.Raw)
	}
	var out report
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestACallThatDiedIsUnknownAndNotRepeated(t *testing.T) {
	c := newClient(t, "plain", Options{})
	c.greet()
	r := c.do("tools/call", `{"name":"die","arguments":{}}`)
	v := verdict(t, r)
	if v.Outcome != fault.OutcomeUnknown || v.SafeToRetry || v.Attempts != 1 {
		t.Errorf("got %+v, want unknown, not safe, one attempt", v)
	}
	if v.VerifyWith != "die_idem" && v.VerifyWith != "echo" {
		t.Errorf("verify_with is %q, want a read-only tool", v.VerifyWith)
	}
	text := string(r.Msg.Raw)
	for _, want := range []string{"out of cheese", "unknown", "Do not repeat"} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer does not say %q: %s", want, text)
		}
	}
	if r := c.do("tools/call", `{"name":"echo","arguments":{}}`); r.Fault != nil {
		t.Errorf("the call after the crash: %v", r.Fault)
	}
}

func TestATrustedReadOnlyCallIsSentAgain(t *testing.T) {
	var events []string
	c := newClient(t, "plain", Options{
		Policy:  fault.Policy{Trust: fault.TrustReadOnly},
		OnEvent: func(e Event) { events = append(events, e.What) },
	})
	c.greet()
	r := c.do("tools/call", `{"name":"die_idem","arguments":{}}`)
	if r.Fault != nil {
		t.Fatalf("got %v, want the server's answer", r.Fault)
	}
	if v := verdict(t, r); v.Outcome != fault.Executed || v.Attempts != 2 || len(v.Errors) != 1 {
		t.Errorf("got %+v, want executed at the second attempt, the first error kept", v)
	}
}

func TestAWaitingCallIsNotSentToAChangedTool(t *testing.T) {
	c := newClient(t, "changed", Options{})
	c.greet()
	c.do("tools/call", `{"name":"die","arguments":{}}`)
	r := c.do("tools/call", `{"name":"echo","arguments":{}}`)
	if v := verdict(t, r); v.Outcome != fault.NotExecuted || v.Kind != fault.StaleTools {
		t.Errorf("got %+v, want not executed because the tool has changed", v)
	}
	select {
	case m := <-c.heard:
		if m.Method() != "notifications/tools/list_changed" {
			t.Errorf("heard %s, want list_changed", m.Raw)
		}
	case <-time.After(5 * time.Second):
		t.Error("the client was not told that the list has changed")
	}
}

func TestAStatefulServerSaysThatItsMemoryIsGone(t *testing.T) {
	c := newClient(t, "plain", Options{Stateful: true})
	c.greet()
	c.do("tools/call", `{"name":"die","arguments":{}}`)
	// The restart happens with this call; what it would meet is a server without
	// its memory.
	r := c.do("tools/call", `{"name":"echo","arguments":{}}`)
	if v := verdict(t, r); v.Outcome != fault.NotExecuted {
		t.Errorf("got %+v, want not executed", v)
	}
	if !strings.Contains(string(r.Msg.Raw), "memory is gone") {
		t.Errorf("the answer does not say why: %s", r.Msg.Raw)
	}
	if r := c.do("tools/call", `{"name":"echo","arguments":{}}`); r.Fault != nil {
		t.Errorf("the second call after the restart: %v", r.Fault)
	}
}

func TestAMissingCommandIsRefusedAtOnceAndNamed(t *testing.T) {
	server, err := New(Spec{Command: []string{"no-such-command"}, Env: os.Environ()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, server: server, session: server.Open(Peer{Era: wire.Legacy, Message: func(wire.Message) {}})}
	for range 3 {
		begin := time.Now()
		r := c.do("initialize", `{}`)
		if r.Fault == nil || r.Fault.Kind != fault.CommandNotFound || r.Outcome != fault.NotExecuted {
			t.Fatalf("got %+v, want command_not_found", r)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("took %v to say so", took)
		}
	}
	if got := server.Health(); got.State != "dead" || got.Detail != "parked" {
		t.Errorf("health is %s (%s), want dead (parked)", got.State, got.Detail)
	}
}

func TestACallThatTakesTooLongIsGivenUpInTime(t *testing.T) {
	server, err := New(Spec{Command: []string{"sleep", "1000"}, Env: os.Environ()}, Options{MaxCall: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(t.Context()) })
	c := &client{t: t, server: server, session: server.Open(Peer{Era: wire.Legacy, Message: func(wire.Message) {}})}
	begin := time.Now()
	r := c.do("tools/call", `{"name":"x"}`)
	if took := time.Since(begin); took > 5*time.Second { // a start may take a minute
		t.Errorf("took %v, want 200 ms and a little", took)
	}
	if r.Fault == nil || r.Fault.Kind != fault.Timeout {
		t.Errorf("got %+v, want a time-out", r.Fault)
	}
}

// A refusal is what hundreds of clients get, many times, while a server is down.
func BenchmarkRefusal(b *testing.B) {
	server, err := New(Spec{Command: []string{"no-such-command"}, Env: os.Environ()}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	c := &client{t: b, server: server, session: server.Open(Peer{Era: wire.Legacy, Message: func(wire.Message) {}})}
	c.do("initialize", `{}`)
	m := wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"x","arguments":{}}`))
	b.ReportAllocs()
	for b.Loop() {
		done := false
		c.session.Do(&Call{Msg: m, Done: func(Reply) { done = true }})
		if !done {
			b.Fatal("the refusal was not immediate")
		}
	}
}

func BenchmarkHealth(b *testing.B) {
	server, err := New(Spec{Command: []string{"x"}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_ = server.Health()
	}
}

func TestArgumentsAreMendedBeforeAnythingRuns(t *testing.T) {
	c := newClient(t, "typed", Options{})
	c.greet()
	r := c.do("tools/call", `{"name":"echo","arguments":{"n":"42","other":1.0}}`)
	if r.Fault != nil || strings.Contains(string(r.Msg.Raw), "isError") {
		t.Fatalf("got %s, want the server's answer", r.Msg.Raw)
	}
	if !strings.Contains(string(r.Msg.Raw), `{\"n\":42,\"other\":1.0}`) {
		t.Errorf("the server did not get 42 and the other bytes untouched: %s", r.Msg.Raw)
	}
	if meta, ok := wire.Member(r.Msg.Result(), "_meta", MetaArguments); !ok || !strings.Contains(string(meta), "number_text") {
		t.Errorf("the answer does not say what was changed: %s", r.Msg.Raw)
	}
	valid := `{"name":"echo","arguments":{ "n" : 42 , "other":9007199254740993}}`
	if r := c.do("tools/call", valid); !strings.Contains(string(r.Msg.Raw), `{ \"n\" : 42 , \"other\":9007199254740993}`) {
		t.Errorf("a valid call was changed on the way: %s", r.Msg.Raw)
	}
}

func TestArgumentsThatCannotBeMendedAreExplainedAndGrow(t *testing.T) {
	c := newClient(t, "typed", Options{})
	c.greet()
	var sizes []int
	for range 3 {
		r := c.do("tools/call", `{"name":"echo","arguments":{"n":"many"}}`)
		text, _ := wire.Member(r.Msg.Result(), "content")
		if r.Fault != nil || !strings.Contains(string(r.Msg.Raw), `"isError":true`) || !strings.Contains(string(text), "not run") {
			t.Fatalf("got %s, want an explained refusal", r.Msg.Raw)
		}
		sizes = append(sizes, len(text))
	}
	if sizes[1] <= sizes[0] || sizes[2] < sizes[1] {
		t.Errorf("the explanation does not grow: %v", sizes)
	}
}

func TestAReadOnlyToolGetsWhatCannotBeMendedAndItsErrorIsEnriched(t *testing.T) {
	c := newClient(t, "typed", Options{Policy: fault.Policy{Trust: fault.TrustReadOnly}})
	c.greet()
	r := c.do("tools/call", `{"name":"echo","arguments":{"n":"many"}}`)
	content, _ := wire.Member(r.Msg.Result(), "content")
	n := 0
	wire.EachElement(content, func([]byte) { n++ })
	if n != 2 || !strings.Contains(string(content), "n is not a number") {
		t.Errorf("got %s, want the server's own error and ours behind it", r.Msg.Raw)
	}
}

func TestAModelsProposalIsUsedOnlyIfItFits(t *testing.T) {
	for proposal, want := range map[string]string{
		`{"n":7}`:       `{\"n\":7}`,
		`{"n":"seven"}`: "not run",
		`garbage`:       "not run",
	} {
		c := newClient(t, "typed", Options{Arguments: ArgumentOptions{
			Advise: func(context.Context, Advice) ([]byte, error) { return []byte(proposal), nil },
		}})
		c.greet()
		if r := c.do("tools/call", `{"name":"echo","arguments":{"n":"seven"}}`); !strings.Contains(string(r.Msg.Raw), want) {
			t.Errorf("proposal %s: got %s, want %s in it", proposal, r.Msg.Raw, want)
		}
	}
}

func TestACorrectionThatFailsTooKeepsBothErrorsAndClaimsNothing(t *testing.T) {
	asked := 0
	c := newClient(t, "typed", Options{
		Policy: fault.Policy{Trust: fault.TrustReadOnly},
		Arguments: ArgumentOptions{Advise: func(_ context.Context, a Advice) ([]byte, error) {
			asked++
			return a.Arguments, nil
		}},
	})
	c.greet()
	for args, want := range map[string]string{`{"n":13}`: "n is unlucky", `{"n":14}`: "must be below 10"} {
		asked = 0
		r := c.do("tools/call", `{"name":"echo","arguments":`+args+`}`)
		raw, ok := wire.Member(r.Msg.Result(), "_meta", MetaOutcome)
		if !ok {
			raw, _ = wire.Member(r.Msg.Error(), "data", MetaOutcome)
		}
		var v report
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%s: %v in %s", args, err, r.Msg.Raw)
		}
		if v.Outcome != "" || v.Attempts != 2 || len(v.Errors) != 1 || !strings.Contains(v.Errors[0], want) {
			t.Errorf("%s: got %+v, want two attempts, the first error kept, and no word on whether it ran", args, v)
		}
		if asked != 1 || !strings.Contains(string(r.Msg.Raw), want) {
			t.Errorf("%s: asked %d times, got %s; want one question and the server's error", args, asked, r.Msg.Raw)
		}
	}
}

func TestAnErrorOfTheServerIsCorrectedOnlyWhereNothingRan(t *testing.T) {
	asked := 0
	c := newClient(t, "typed", Options{Arguments: ArgumentOptions{
		Advise: func(context.Context, Advice) ([]byte, error) { asked++; return []byte(`{"n":7}`), nil },
	}})
	c.greet()
	r := c.do("tools/call", `{"name":"echo","arguments":{"n":13}}`)
	if !strings.Contains(string(r.Msg.Raw), `{\"n\":7}`) {
		t.Fatalf("refused before it ran: got %s, want the corrected call's answer", r.Msg.Raw)
	}
	if v := verdict(t, r); v.Attempts != 2 || len(v.Errors) != 1 {
		t.Errorf("got %+v, want two attempts and the first error kept", v)
	}
	r = c.do("tools/call", `{"name":"echo","arguments":{"n":14}}`)
	if text := string(r.Msg.Raw); !strings.Contains(text, "must be below 10") || !strings.Contains(text, "suggested_arguments") {
		t.Errorf("may have run: got %s, want the server's error and a suggestion", r.Msg.Raw)
	}
	if asked != 2 {
		t.Errorf("the model was asked %d times, want twice", asked)
	}
}

// A call between two attempts has nothing under way that could be taken back. It
// must be settled all the same when its time is up.
func TestEveryCallSettlesInTimeWhileTheServerKeepsDying(t *testing.T) {
	const limit = 700 * time.Millisecond
	server, err := New(Spec{Command: []string{"sh", "-c", "read x; exit 1"}, Env: os.Environ()}, Options{MaxCall: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(t.Context()) })
	session := server.Open(Peer{Era: wire.Legacy, Message: func(wire.Message) {}})
	defer session.Close()
	const calls = 40
	done := make(chan time.Duration, calls)
	for i := range calls {
		begin := time.Now()
		m := wire.NewRequest(fmt.Appendf(nil, "%d", i), "tools/call", []byte(`{"name":"x"}`))
		session.Do(&Call{Msg: m, Done: func(Reply) { done <- time.Since(begin) }})
	}
	for n := range calls {
		select {
		case took := <-done:
			if took > limit+time.Second {
				t.Errorf("a call was settled after %v, its limit is %v", took, limit)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%d of %d calls were never settled", calls-n, calls)
		}
	}
}

func TestAServerThatDiesInTheHandshakeIsNotWaitedForThroughItsPause(t *testing.T) {
	c := newClient(t, "dies greeting", Options{})
	for range 3 { // the first one starts it a few times, the others find it paused
		r := c.do("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		if r.Fault == nil || !strings.Contains(string(r.Msg.Raw), "exit code 7") {
			t.Errorf("got %s, want the cause", r.Msg.Raw)
		}
	}
}

func TestASecretOfTheServerIsNotInTheAnswer(t *testing.T) {
	c := newClient(t, "plain", Options{}, "API_TOKEN=s3cr3t-canary-value")
	c.greet()
	r := c.do("tools/call", `{"name":"die_telling","arguments":{}}`)
	if text := string(r.Msg.Raw); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "[API_TOKEN]") {
		t.Errorf("got %s, want the token's name in place of its value", text)
	}
}

func TestClosingASessionEndsItsCallsOnce(t *testing.T) {
	server, err := New(Spec{Command: []string{"sleep", "1000"}, Env: os.Environ()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(t.Context()) })
	session := server.Open(Peer{Era: wire.Legacy, Message: func(wire.Message) {}})
	done := make(chan Reply, 2)
	session.Do(&Call{Msg: wire.NewRequest([]byte("1"), "initialize", []byte("{}")), Done: func(Reply) {}})
	session.Do(&Call{Msg: wire.NewRequest([]byte("2"), "tools/call", []byte(`{"name":"x"}`)), Done: func(r Reply) { done <- r }})
	begin := time.Now()
	session.Close()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	select {
	case r := <-done:
		if r.Outcome != fault.NotExecuted {
			t.Errorf("outcome is %q, want not executed", r.Outcome)
		}
	case <-time.After(2 * time.Second):
		t.Error("the call was not settled when its session ended")
	}
}

func TestTheClientsOwnModelCanBeAsked(t *testing.T) {
	c := newClient(t, "typed", Options{Arguments: ArgumentOptions{
		AdviseBy: func(sample func(context.Context, string) (string, error)) func(context.Context, Advice) ([]byte, error) {
			return func(ctx context.Context, q Advice) ([]byte, error) {
				text, err := sample(ctx, "what was meant by "+string(q.Arguments))
				return []byte(text), err
			}
		},
	}})
	if r := c.do("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}`); r.Fault != nil {
		t.Fatal(r.Fault)
	}
	c.session.Send(wire.NewNotification(wire.MethodInitialized, nil))
	c.do("tools/list", `{}`)
	go func() {
		asked := <-c.heard
		if asked.Method() != "sampling/createMessage" {
			t.Errorf("the client was asked %s", asked.Raw)
		}
		c.session.Send(wire.NewResult(asked.ID(), []byte(`{"role":"assistant","model":"m","content":{"type":"text","text":"{\"n\":8}"}}`)))
	}()
	if r := c.do("tools/call", `{"name":"echo","arguments":{"n":"eight"}}`); !strings.Contains(string(r.Msg.Raw), `{\"n\":8}`) {
		t.Errorf("got %s, want the answer to the corrected call", r.Msg.Raw)
	}
}
