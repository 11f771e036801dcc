package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

func TestSDKClientsOfBothErasWork(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s := serve(t, &HTTP{})
			progress, changed := make(chan string, 10), make(chan struct{}, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					progress <- fmt.Sprint(r.Params.ProgressToken, ":", r.Params.Progress)
				},
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
				},
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url},
				&mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := session.InitializeResult().ServerInfo.Name; got != "front-test" {
				t.Errorf("server name: got %q", got)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) < 5 {
				t.Fatalf("tools: got %v, %v", tools, err)
			}
			params := &mcp.CallToolParams{Name: "count", Arguments: countIn{Count: 5}}
			params.SetProgressToken("mine")
			if _, err := session.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			for n := range 5 { // the SDK tells them in order, but not before the reply
				want := fmt.Sprint("mine:", n+1)
				select {
				case got := <-progress:
					if got != want {
						t.Errorf("progress: got %s, want %s", got, want)
					}
				case <-time.After(10 * time.Second):
					t.Fatalf("no progress %s", want)
				}
			}
			got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "large", Arguments: countIn{Size: 3 << 20}})
			if err != nil || len(got.Content[0].(*mcp.TextContent).Text) != 3<<20 {
				t.Errorf("a large result: %v", err)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "change", Arguments: textIn{"new_" + strings.ReplaceAll(version, "-", "_")}}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changed:
			case <-time.After(10 * time.Second):
				t.Error("the change of the tools was not announced")
			}
			if version < wire.ModernVersion {
				got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
				if err != nil || got.Content[0].(*mcp.TextContent).Text != "accept" {
					t.Errorf("a question of the server: got %+v, %v", got, err)
				}
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nope"}); err == nil {
				t.Error("a tool that does not exist was called")
			}
			// The SDK repeats arguments in headers for the tools it has listed.
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			got, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "region", Arguments: map[string]any{"region": "Zürich"}})
			if err != nil || got.IsError {
				t.Errorf("an argument repeated in a header: got %+v, %v", got, err)
			}
		})
	}
}

func TestTheDoorIsShutForStrangers(t *testing.T) {
	s := serve(t, &HTTP{Token: "s3cret", AllowedHosts: []string{"mcp.example.com", "other.example.com:8443"}, AllowedOrigins: []string{"https://app.example.com"}})
	const token = "Bearer s3cret"
	for _, c := range []struct {
		name    string
		method  string
		headers []string
		want    int
	}{
		{"as it should be", "POST", []string{"Authorization", token}, 200},
		{"localhost", "POST", []string{"Authorization", token, "Host", "localhost:1234"}, 200},
		{"IPv6 loopback", "POST", []string{"Authorization", token, "Host", "[::1]:1234"}, 200},
		{"an allowed host", "POST", []string{"Authorization", token, "Host", "MCP.example.com:99"}, 200},
		{"an allowed host and port", "POST", []string{"Authorization", token, "Host", "other.example.com:8443"}, 200},
		{"an allowed host on another port", "POST", []string{"Authorization", token, "Host", "other.example.com:8444"}, 403},
		{"a name that points here", "POST", []string{"Authorization", token, "Host", "evil.example.com"}, 403},
		{"a name that begins like loopback", "POST", []string{"Authorization", token, "Host", "127.0.0.1.evil.example.com"}, 403},
		{"a name that begins like localhost", "POST", []string{"Authorization", token, "Host", "localhost.evil.example.com"}, 403},
		{"the unspecified address", "POST", []string{"Authorization", token, "Host", "0.0.0.0:1234"}, 403},
		{"a foreign origin", "POST", []string{"Authorization", token, "Origin", "https://evil.example.com"}, 403},
		{"an origin that begins like loopback", "POST", []string{"Authorization", token, "Origin", "http://127.0.0.1.evil.example.com"}, 403},
		{"an opaque origin", "POST", []string{"Authorization", token, "Origin", "null"}, 403},
		{"a loopback origin", "POST", []string{"Authorization", token, "Origin", "http://127.0.0.1:6274"}, 200},
		{"an allowed origin", "POST", []string{"Authorization", token, "Origin", "https://app.example.com"}, 200},
		{"the allowed origin without TLS", "POST", []string{"Authorization", token, "Origin", "http://app.example.com"}, 403},
		{"no token", "POST", nil, 401},
		{"a wrong token", "POST", []string{"Authorization", "Bearer s3cres"}, 401},
		{"the beginning of the token", "POST", []string{"Authorization", "Bearer s3c"}, 401},
		{"the token in another scheme", "POST", []string{"Authorization", "Basic s3cret"}, 401},
		{"a simple form", "POST", []string{"Authorization", token, "Content-Type", "text/plain"}, 415},
		{"a form", "POST", []string{"Authorization", token, "Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"no type", "POST", []string{"Authorization", token, "Content-Type", ""}, 415},
		{"a type with a charset", "POST", []string{"Authorization", token, "Content-Type", "application/json; charset=utf-8"}, 200},
		{"a link", "GET", []string{"Authorization", token, "Accept", "text/html,*/*;q=0.8"}, 405},
		{"a preflight", "OPTIONS", []string{"Authorization", token, "Origin", "http://localhost"}, 405},
		{"put", "PUT", []string{"Authorization", token}, 405},
		{"no token on delete", "DELETE", nil, 401},
		{"no token on get", "GET", []string{"Accept", "text/event-stream"}, 401},
		{"nothing we could answer in", "POST", []string{"Authorization", token, "Accept", "text/html"}, 406},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t
			resp := s.do(t.Context(), c.method, hello, c.headers...)
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.want {
				t.Errorf("got status %d, want %d; %s", resp.StatusCode, c.want, body)
			}
			if c.want == 401 && !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("no challenge: %v", resp.Header)
			}
			if c.want != 200 && strings.Contains(string(body), "s3cret") {
				t.Errorf("the token is told: %s", body)
			}
			if c.want != 200 && resp.Header.Get(headerSession) != "" {
				t.Error("a session was opened")
			}
		})
	}
	resp, err := s.http.Get(s.base + "/other")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("another path: got status %d, want 401", resp.StatusCode)
	}
}

func TestALegacySessionLivesFromInitializeToDelete(t *testing.T) {
	s := serve(t, &HTTP{})
	expect := func(what string, resp *http.Response, status int, id string) {
		t.Helper()
		got := s.all(resp)
		if resp.StatusCode != status {
			t.Errorf("%s: got status %d, want %d; %v", what, resp.StatusCode, status, got)
		}
		if status >= 400 && (len(got) != 1 || got[0].Error() == nil || string(got[0].ID()) != id) {
			t.Errorf("%s: got %v, want an error with id %q", what, got, id)
		}
	}
	list := `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`
	expect("no session", s.post(list), 400, `"x"`)
	expect("unknown session", s.post(list, headerSession, "0123"), 404, "")
	expect("GET without a session", s.do(t.Context(), "GET", "", "Accept", "text/event-stream"), 400, "")
	expect("GET of an unknown session", s.do(t.Context(), "GET", "", "Accept", "text/event-stream", headerSession, "0123"), 404, "")
	expect("DELETE without a session", s.do(t.Context(), "DELETE", ""), 400, "")
	expect("DELETE of an unknown session", s.do(t.Context(), "DELETE", "", headerSession, "0123"), 404, "")

	one, two := s.introduce(), s.introduce()
	if one[1] == two[1] || len(one[1]) != 32 {
		t.Errorf("session ids %q and %q", one[1], two[1])
	}
	expect("one", s.post(list, one...), 200, "")
	expect("a version that is none", s.post(list, headerSession, one[1], headerVersion, "1.0"), 400, `"x"`)
	expect("DELETE", s.do(t.Context(), "DELETE", "", one...), 204, "")
	expect("ended", s.post(list, one...), 404, "")
	expect("the other", s.post(list, two...), 200, "")
}

func TestAnSDKClientLearnsThatItsSessionIsGone(t *testing.T) {
	s := serve(t, &HTTP{})
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url, DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	s.do(t.Context(), "DELETE", "", headerSession, session.ID())
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: textIn{"x"}})
	if !errors.Is(err, mcp.ErrSessionMissing) {
		t.Errorf("got %v, want ErrSessionMissing", err)
	}
}

func TestTheAnswerSuitsWhatTheClientReads(t *testing.T) {
	s := serve(t, &HTTP{})
	session := s.introduce()
	for _, c := range []struct{ accept, tool, arguments, want string }{
		{"application/json, text/event-stream", "echo", `{"text":"x"}`, "application/json"},
		{"text/event-stream, application/json", "echo", `{"text":"x"}`, "text/event-stream"},
		{"text/event-stream", "echo", `{"text":"x"}`, "text/event-stream"},
		{"application/json", "echo", `{"text":"x"}`, "application/json"},
		{"*/*", "echo", `{"text":"x"}`, "application/json"},
		{"", "echo", `{"text":"x"}`, "application/json"},
		{"application/json, text/event-stream", "count", `{"count":2,"size":0}`, "text/event-stream"},
		{"application/json", "count", `{"count":2,"size":0}`, "application/json"},
	} {
		resp := s.post(call("7", c.tool, c.arguments), append([]string{"Accept", c.accept}, session...)...)
		if got := resp.Header.Get("Content-Type"); got != c.want {
			t.Errorf("%q, %s: got %s, want %s", c.accept, c.tool, got, c.want)
		}
		got := s.all(resp)
		if len(got) == 0 || string(got[len(got)-1].ID()) != "7" || got[len(got)-1].Result() == nil {
			t.Errorf("%q, %s: got %v", c.accept, c.tool, got)
		}
	}
}

func TestOddBodiesAreAnsweredOrRefused(t *testing.T) {
	s := serve(t, &HTTP{MaxMessage: 4 << 10})
	session := s.introduce()
	for _, c := range []struct {
		name, body string
		status     int
		id, code   string
	}{
		{"several lines", "\n{\n\"jsonrpc\": \"2.0\",\r\n \"id\": 12345678901234567890,\n \"method\":\"ping\"\n}\n", 200, "12345678901234567890", ""},
		{"a string id", `{"jsonrpc":"2.0","id":"a\u0062","method":"ping"}`, 200, `"a\u0062"`, ""},
		{"no JSON", `{"jsonrpc":"2.0",`, 400, "", "-32700"},
		{"nothing", ``, 400, "", "-32700"},
		{"no envelope", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, 400, "5", "-32600"},
		{"two ids", `{"jsonrpc":"2.0","id":5,"ID":6,"method":"ping"}`, 400, "5", "-32600"},
		{"a batch", `[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","id":6,"method":"ping"}]`, 400, "", "-32600"},
		{"an empty batch", `[]`, 400, "", "-32600"},
		{"too much", `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"` + strings.Repeat("x", 5<<10) + `"}}`, 413, "", "-32600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t
			resp := s.post(c.body, session...)
			got := s.all(resp)
			if resp.StatusCode != c.status || len(got) != 1 || string(got[0].ID()) != c.id {
				t.Fatalf("got status %d, %v, want %d and id %q", resp.StatusCode, got, c.status, c.id)
			}
			code, _ := wire.Member(got[0].Error(), "code")
			if string(code) != c.code {
				t.Errorf("got code %s, want %s", code, c.code)
			}
		})
	}
	// A body whose length is not announced is bounded too.
	r, _ := http.NewRequest("POST", s.url, io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","x":"`), strings.NewReader(strings.Repeat("x", 100<<10))))
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body of unknown length: got status %d, want 413", resp.StatusCode)
	}
}

func TestABatchOfTheOldRevisionIsAnsweredAsAStream(t *testing.T) {
	s := serve(t, &HTTP{})
	resp := s.post(strings.Replace(hello, "2025-11-25", "2025-03-26", 1))
	s.all(resp)
	session := []string{headerSession, resp.Header.Get(headerSession)}
	got := s.all(s.post("["+call("5", "echo", `{"text":"five"}`)+`,{"jsonrpc":"2.0","method":"notifications/initialized"},`+call(`"6"`, "echo", `{"text":"six"}`)+"]", session...))
	texts := map[string]string{}
	for _, m := range got {
		texts[string(m.ID())] = text(m)
	}
	if diff := cmp.Diff(map[string]string{"5": "five", `"6"`: "six"}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if resp := s.post(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, session...); resp.StatusCode != http.StatusAccepted {
		t.Errorf("a batch without requests: got status %d, want 202", resp.StatusCode)
	}
}

func TestTheSessionStreamCarriesWhatBelongsToNoCall(t *testing.T) {
	s := serve(t, &HTTP{})
	session := s.introduce()
	// Nobody listens yet, so the word is kept.
	s.all(s.post(call("2", "change", `{"text":"another"}`), session...))
	get := append([]string{"Accept", "text/event-stream"}, session...)
	stream := s.do(t.Context(), "GET", "", get...)
	m, err := next(wire.NewEventReader(stream.Body, 0))
	if err != nil || m.Method() != listChanged {
		t.Fatalf("got %v, %v, want the change of the tools", &m, err)
	}
	// A client that comes again knows that its connection is dead. The new one takes
	// its place, and brings what comes from now on.
	second := s.do(t.Context(), "GET", "", get...)
	if _, err := next(wire.NewEventReader(stream.Body, 0)); !errors.Is(err, io.EOF) {
		t.Errorf("the first stream: got %v, want its end", err)
	}
	s.all(s.post(call("3", "change", `{"text":"a third"}`), session...))
	stream = second
	if m, err := next(wire.NewEventReader(stream.Body, 0)); err != nil || m.Method() != listChanged {
		t.Errorf("the second stream: got %v, %v, want the change of the tools", &m, err)
	}
	s.do(t.Context(), "DELETE", "", session...)
	if _, err := next(wire.NewEventReader(stream.Body, 0)); err == nil {
		t.Error("the stream outlived its session")
	}
}

func TestALegacyCallOutlivesItsConnection(t *testing.T) {
	s := serve(t, &HTTP{})
	session := s.introduce()
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	resp := s.do(ctx, "POST", call("2", "ask_late", `{}`), session...)
	if m, err := next(wire.NewEventReader(resp.Body, 0)); err != nil || m.Method() != wire.MethodProgress {
		t.Fatalf("got %v, %v", &m, err)
	}
	hangUp()
	waitFor(t, func() bool { return s.streamsOpen(session[1]) == 0 })
	s.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, session...)
	// The call goes on and asks, on the only stream that is left.
	stream := wire.NewEventReader(s.do(t.Context(), "GET", "", append([]string{"Accept", "text/event-stream"}, session...)...).Body, 0)
	m, err := next(stream)
	if err != nil || m.Kind != wire.Request || m.Method() != "elicitation/create" {
		t.Fatalf("got %v, %v, want the question", &m, err)
	}
	answer := `{"jsonrpc":"2.0","id":` + string(m.ID()) + `,"result":{"action":"decline"}}`
	if resp := s.post(answer, session...); resp.StatusCode != http.StatusAccepted {
		t.Errorf("the answer: got status %d, want 202", resp.StatusCode)
	}
}

// streamsOpen is how many requests and streams use a session.
func (s *site) streamsOpen(id string) int {
	t := &s.front.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id].busy
}

// waitFor waits for something that only the passing of real time brings about.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	limit := time.Now().Add(20 * time.Second)
	for !is() {
		if time.Now().After(limit) {
			t.Fatal("waited in vain")
		}
		runtime.Gosched()
	}
}

func TestALegacyClientTakesACallBackByItsWord(t *testing.T) {
	s := serve(t, &HTTP{})
	session := s.introduce()
	resp := s.post(call("2", "hold", `{}`), session...)
	events := wire.NewEventReader(resp.Body, 0)
	if _, err := next(events); err != nil {
		t.Fatal(err)
	}
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, session...)
	if m, err := next(events); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v, want the end of the stream", &m, err)
	}
	if got := s.all(s.post(call("3", "cancelled", `{}`), session...)); text(got[0]) != "yes" {
		t.Errorf("got %v", got)
	}
}

func TestAModernCallEndsWithItsConnection(t *testing.T) {
	s := serve(t, &HTTP{})
	body, headers := modernCall("1", "hold", `{}`)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	resp := s.do(ctx, "POST", body, headers...)
	if _, err := next(wire.NewEventReader(resp.Body, 0)); err != nil {
		t.Fatal(err)
	}
	hangUp()
	body, headers = modernCall("1", "cancelled", `{}`)
	if got := s.all(s.post(body, headers...)); text(got[0]) != "yes" {
		t.Errorf("got %v", got)
	}
}

func TestModernHeadersMustAgreeWithTheMessage(t *testing.T) {
	s := serve(t, &HTTP{})
	body, good := modernCall("9", "echo", `{"text":"x"}`)
	listen := `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` + modernMeta + `}}}`
	bare := func(meta string) string {
		return `{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{"_meta":{` + meta + `}}}`
	}
	discover := []string{headerMethod, "server/discover"}
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		code       string
	}{
		{"as it should be", body, nil, 200, ""},
		{"white space around the name", body, []string{headerName, "  echo  "}, 200, ""},
		{"the name in base64", body, []string{headerName, "=?base64?ZWNobw==?="}, 200, ""},
		{"the name in bad base64", body, []string{headerName, "=?base64?ZWNobw?="}, 400, "-32020"},
		{"another name", body, []string{headerName, "other"}, 400, "-32020"},
		{"no name", body, []string{headerName, ""}, 400, "-32020"},
		{"another method", body, []string{headerMethod, "tools/list"}, 400, "-32020"},
		{"the method in capitals", body, []string{headerMethod, "TOOLS/CALL"}, 400, "-32020"},
		{"no method", body, []string{headerMethod, ""}, 400, "-32020"},
		{"no version in the header", body, []string{headerVersion, ""}, 400, "-32020"},
		{"another version in the header", body, []string{headerVersion, "2027-01-01"}, 400, "-32020"},
		{"no _meta", `{"jsonrpc":"2.0","id":9,"method":"server/discover"}`, discover, 400, "-32602"},
		{"no version", bare(`"io.modelcontextprotocol/clientCapabilities":{}`), discover, 400, "-32602"},
		{"no capabilities", bare(`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`), discover, 400, "-32602"},
		{"a version nobody speaks", bare(strings.Replace(modernMeta, "2026-07-28", "v999", 1)), append([]string{headerVersion, "v999"}, discover...), 400, "-32022"},
		{"a method of the other era", strings.Replace(bare(modernMeta), "server/discover", "ping", 1), []string{headerMethod, "ping"}, 404, "-32601"},
		{"initialize", strings.Replace(bare(modernMeta), "server/discover", "initialize", 1), []string{headerMethod, "initialize"}, 404, "-32601"},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":9,"result":{}}`, nil, 400, "-32600"},
		{"a batch", "[" + body + "]", nil, 400, "-32600"},
		{"a subscription nobody can hear", listen, []string{headerMethod, "subscriptions/listen", "Accept", "application/json"}, 406, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t
			resp := s.post(c.body, append(append([]string{}, good...), c.headers...)...)
			if resp.StatusCode != c.status {
				t.Errorf("got status %d, want %d", resp.StatusCode, c.status)
			}
			if c.status == 406 {
				return
			}
			got := s.all(resp)
			code, _ := wire.Member(got[0].Error(), "code")
			if string(code) != c.code {
				t.Errorf("got code %q, want %q: %v", code, c.code, got)
			}
			if id := string(got[0].ID()); id != "9" && id != "" {
				t.Errorf("got id %s", id)
			}
			if c.code != "" && resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got type %s", resp.Header.Get("Content-Type"))
			}
		})
	}
	for _, method := range []string{"GET", "DELETE"} {
		if resp := s.do(t.Context(), method, "", "Accept", "text/event-stream", headerVersion, "2026-07-28"); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: got status %d, want 405", method, resp.StatusCode)
		}
	}
}

func TestHeadersMustRepeatTheArgumentsThatAToolMarks(t *testing.T) {
	// Nobody has listed the tools before the first call: the front finds out.
	s := serve(t, &HTTP{})
	for _, c := range []struct {
		name, arguments string
		headers         []string
		ok              bool
	}{
		{"missing", `{"region":"Hello"}`, nil, false},
		{"equal", `{"region":"Hello"}`, []string{"Mcp-Param-Region", "Hello"}, true},
		{"different", `{"region":"Hello"}`, []string{"Mcp-Param-Region", "hello"}, false},
		{"base64", `{"region":"Hello"}`, []string{"mcp-param-region", "=?base64?SGVsbG8=?="}, true},
		{"bad padding", `{"region":"Hello"}`, []string{"Mcp-Param-Region", "=?base64?SGVsbG8?="}, false},
		{"bad characters", `{"region":"Hello"}`, []string{"Mcp-Param-Region", "=?base64?SGVs!!!bG8=?="}, false},
		{"literal without suffix", `{"region":"=?base64?SGVsbG8="}`, []string{"Mcp-Param-Region", "=?base64?SGVsbG8="}, true},
		{"nothing to repeat", `{}`, nil, true},
		{"repeats nothing", `{}`, []string{"Mcp-Param-Region", "Hello"}, false},
		{"null", `{"region":null}`, []string{"Mcp-Param-Region", "null"}, false},
		{"a nested integer", `{"deep":{"n":42}}`, []string{"Mcp-Param-Deep-N", "42"}, true},
		{"a nested integer, written differently", `{"deep":{"n":42.0}}`, []string{"Mcp-Param-Deep-N", "42"}, true},
		{"another nested integer", `{"deep":{"n":42}}`, []string{"Mcp-Param-Deep-N", "43"}, false},
		{"a header nobody asked for", `{}`, []string{"Mcp-Param-Other", "x"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t
			body, headers := modernCall("9", "region", c.arguments)
			resp := s.post(body, append(headers, c.headers...)...)
			got := s.all(resp)
			code, _ := wire.Member(got[0].Error(), "code")
			if c.ok != (code == nil) || !c.ok && (resp.StatusCode != 400 || string(code) != "-32020") {
				t.Errorf("got status %d, %v; want ok %v", resp.StatusCode, got, c.ok)
			}
		})
	}
}

func TestMarkedArgumentsAreLearnedAnewWhenTheToolsChange(t *testing.T) {
	var k mirrors
	reply := func(tool string) *wire.Message {
		m := wire.NewResult([]byte("1"), []byte(`{"tools":[{"name":"plain","inputSchema":{}},{"name":"`+tool+`","inputSchema":{"properties":{"a":{"x-mcp-header":"A"}}}}]}`))
		return &m
	}
	first := wire.NewRequest([]byte("1"), wire.MethodTools, nil)
	second := wire.NewRequest([]byte("1"), wire.MethodTools, []byte(`{"cursor":"2"}`))
	tools := func() (names []string) {
		for name := range k.byTool {
			names = append(names, name)
		}
		return names
	}
	k.learn(&first, reply("one"))
	k.learn(&second, reply("two"))
	if len(tools()) != 2 || !k.known {
		t.Errorf("after two pages: got %v", tools())
	}
	k.learn(&first, reply("three"))
	if diff := cmp.Diff([]string{"three"}, tools()); diff != "" {
		t.Errorf("after a new list (-want +got):\n%s", diff)
	}
	changed := wire.NewNotification(listChanged, nil)
	if k.notice(&changed); k.known || len(tools()) != 0 {
		t.Errorf("after a change: got %v", tools())
	}
}

func TestASubscriptionHearsWhatItAskedFor(t *testing.T) {
	s := serve(t, &HTTP{})
	body := `{"jsonrpc":"2.0","id":"sub-1","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` + modernMeta + `}}}`
	resp := s.post(body, headerVersion, "2026-07-28", headerMethod, "subscriptions/listen")
	events := wire.NewEventReader(resp.Body, 0)
	if m, err := next(events); err != nil || m.Method() != "notifications/subscriptions/acknowledged" {
		t.Fatalf("got %v, %v", &m, err)
	}
	body, headers := modernCall("1", "change", `{"text":"fresh"}`)
	s.all(s.post(body, headers...))
	m, err := next(events)
	if err != nil || m.Method() != listChanged {
		t.Fatalf("got %v, %v", &m, err)
	}
	if id, _ := wire.Member(m.Params(), "_meta", wire.MetaSubscription); string(id) != `"sub-1"` {
		t.Errorf("got subscription %s, want the client's own id", id)
	}
}

// F05 of the fault list: two clients that number their requests alike.
func TestClientsWithTheSameIDsNeverMeet(t *testing.T) {
	const clients, calls = 4, 50
	for name, legacy := range map[string]func(client int) bool{
		"legacy": func(int) bool { return true },
		"modern": func(int) bool { return false },
		"both":   func(client int) bool { return client%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &HTTP{})
			var all sync.WaitGroup
			for i := range clients {
				var session []string
				if legacy(i) {
					session = s.introduce()
				}
				all.Go(func() {
					for n := range calls {
						want := fmt.Sprintf("client %d call %d", i, n)
						arguments := `{"text":"` + want + `"}`
						body, headers := modernCall(strconv.Itoa(n), "echo", arguments)
						if session != nil {
							body, headers = call(strconv.Itoa(n), "echo", arguments), session
						}
						got := s.all(s.post(body, headers...))
						if len(got) != 1 || text(got[0]) != want || string(got[0].ID()) != strconv.Itoa(n) {
							t.Errorf("got %v, want %q under id %d", got, want, n)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func TestAClientThatDoesNotReadHoldsUpNobody(t *testing.T) {
	s := serve(t, &HTTP{})
	// Forty megabytes of progress, and a client that reads none of it.
	body, headers := modernCall("1", "count", `{"count":4000,"size":10000}`)
	stuck := s.post(body, headers...)
	if stuck.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %v", stuck.Header)
	}
	// The same process answers others, all the while and afterwards.
	for range 50 {
		body, headers := modernCall("1", "echo", `{"text":"hi"}`)
		if got := s.all(s.post(body, headers...)); text(got[0]) != "hi" {
			t.Fatalf("got %v", got)
		}
	}
}

func TestWhatIsSaidFasterThanItIsReadEndsTheStream(t *testing.T) {
	s := newStream(1)
	note := wire.NewNotification("notifications/message", []byte(`{"data":"`+strings.Repeat("x", 100<<10)+`"}`))
	pushed := 0
	for s.push(outgoing{msg: note}) {
		pushed++
	}
	if held := pushed * len(note.Raw); held > queueLimit || held < queueLimit/2 {
		t.Errorf("held %d bytes, limit is %d", held, queueLimit)
	}
	batch, _, state := s.take()
	if state != flooded || len(batch) != 0 {
		t.Errorf("got state %d and %d messages; the memory should be free again", state, len(batch))
	}
}

func TestStoppingLetsCallsFinishAndEndsStreams(t *testing.T) {
	s := serve(t, &HTTP{})
	session := s.introduce()
	get := s.do(t.Context(), "GET", "", append([]string{"Accept", "text/event-stream"}, session...)...)
	nap := s.post(call("2", "nap", `{}`), session...)
	events := wire.NewEventReader(nap.Body, 0)
	if _, err := next(events); err != nil {
		t.Fatal(err)
	}
	s.stop()
	if _, err := next(wire.NewEventReader(get.Body, 0)); !errors.Is(err, io.EOF) {
		t.Errorf("the session's stream: got %v, want a clean end", err)
	}
	if m, err := next(events); err != nil || text(&m) != "awake" {
		t.Errorf("the call: got %v, %v", &m, err)
	}
	start := time.Now()
	s.end()
	if took := time.Since(start); took > farewell {
		t.Errorf("stopping took %v", took)
	}
	if n := len(s.front.sessions.byID); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestStoppingAnswersTheCallsThatAreLeft(t *testing.T) {
	s := serve(t, &HTTP{DrainTimeout: 50 * time.Millisecond})
	session := s.introduce()
	body, headers := modernCall("3", "hold", `{}`)
	for name, open := range map[string]*http.Response{
		"legacy": s.post(call("2", "hold", `{}`), session...),
		"modern": s.post(body, headers...),
	} {
		events := wire.NewEventReader(open.Body, 0)
		if _, err := next(events); err != nil { // it has begun
			t.Fatal(err)
		}
		defer func() {
			m, err := next(events)
			if err != nil || !strings.Contains(string(m.Raw), "outcome of tool") || !strings.Contains(string(m.Raw), "unknown") {
				t.Errorf("%s: got %v, %v, want an answer of ours", name, &m, err)
			}
		}()
	}
	s.stop()
}

func TestALegacyClientThatPausesGetsEverything(t *testing.T) {
	s := serve(t, &HTTP{})
	session := s.introduce()
	const messages, size = 4000, 10_000 // forty megabytes, more than any queue of ours
	resp := s.post(strings.Replace(call("2", "count", fmt.Sprintf(`{"count":%d,"size":%d}`, messages, size)),
		`"params":{`, `"params":{"_meta":{"progressToken":1},`, 1), session...)
	<-time.After(500 * time.Millisecond)
	events := wire.NewEventReader(resp.Body, 0)
	for n := range messages {
		m, err := next(events)
		if err != nil || m.Method() != wire.MethodProgress {
			t.Fatalf("message %d: got %v, %v", n, &m, err)
		}
	}
	if m, err := next(events); err != nil || text(&m) != "counted" {
		t.Errorf("the reply: got %v, %v", &m, err)
	}
}

func TestAnIdleSessionIsALittleMemoryAndNothingElse(t *testing.T) {
	server, err := guard.New(guard.Spec{Command: []string{"never-started"}}, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	front := &HTTP{Catalogue: catalogue.Of(server)}
	front.init()
	const n = 20_000
	goroutines, before := runtime.NumGoroutine(), heap()
	for range n {
		s := front.sessions.begin(front.Catalogue)
		s.talk.calls["1"] = nil // a table that was used once keeps its room
		delete(s.talk.calls, "1")
		front.sessions.leave(s)
	}
	each := (heap() - before) / n
	t.Logf("%d bytes each", each)
	if each > 2<<10 {
		t.Errorf("an idle session takes %d bytes", each)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 0 {
		t.Errorf("%d goroutines for %d idle sessions", more, n)
	}
	front.Close()
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
