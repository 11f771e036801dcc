package mcpmend_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend"
	"github.com/mcpmend/mcpmend/arguments"
)

var (
	readOnly = &mcp.ToolAnnotations{ReadOnlyHint: true}
	no       = false
	adding   = &mcp.ToolAnnotations{DestructiveHint: &no}
)

const searchSchema = `{
	"type": "object",
	"properties": {
		"query": {"type": "string"},
		"limit": {"type": "integer", "maximum": 100},
		"sort_by": {"enum": ["date", "relevance"]}
	},
	"required": ["query"],
	"additionalProperties": false
}`

// A probe is a tool that writes down what it was called with.
type probe struct {
	mu   sync.Mutex
	args []string
}

func (p *probe) handle(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.args = append(p.args, string(req.Params.Arguments))
	return say("done"), nil
}

func (p *probe) calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.args
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func newServer(options mcpmend.MiddlewareOptions) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s.AddReceivingMiddleware(mcpmend.Middleware(options))
	return s
}

// addSearch adds a tool whose schema is searchSchema and that go-sdk does not check.
func addSearch(s *mcp.Server, name string, annotations *mcp.ToolAnnotations) *probe {
	p := &probe{}
	s.AddTool(&mcp.Tool{Name: name, Annotations: annotations, InputSchema: json.RawMessage(searchSchema)}, p.handle)
	return p
}

// join connects a new client to a server, in memory.
func join(t testing.TB, s *mcp.Server, version string) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), there, nil); err != nil {
		t.Fatalf("connecting the server: %v", err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting the client: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func callRaw(t testing.TB, s *mcp.ClientSession, name, args string) *mcp.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("calling %s with %s: %v", name, args, err)
	}
	return r
}

func words(r *mcp.CallToolResult) string {
	var b strings.Builder
	for i, c := range r.Content {
		if i > 0 {
			b.WriteString("\n")
		}
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func TestAValidCallReachesItsToolByteForByte(t *testing.T) {
	for name, version := range eras {
		t.Run(name, func(t *testing.T) {
			s := newServer(mcpmend.MiddlewareOptions{})
			p := &probe{}
			s.AddTool(&mcp.Tool{Name: "open", InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}}}`)}, p.handle)
			const args = `{"z":"007","id":9007199254740993,"a":[1e2,null]}`
			client := join(t, s, version)
			for range 2 { // the first time the tool is not known yet
				if r := callRaw(t, client, "open", args); r.IsError || r.Meta["mcpmend.dev/arguments"] != nil {
					t.Errorf("got %s with %v, want the tool's own result", words(r), r.Meta)
				}
			}
			if diff := cmp.Diff([]string{args, args}, p.calls()); diff != "" {
				t.Errorf("what the tool saw (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACertainMeaningIsMendedAsFarAsTheAnnotationsAllow(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations *mcp.ToolAnnotations
		policy      arguments.Policy
		args        string
		want        string // what the tool sees, "" if it is not run
		suggested   string
		rule        string
	}{
		{"a number in quotes", readOnly, "", `{"query":"a","limit":"5"}`, `{"query":"a","limit":5}`, "", "number_text"},
		{"a number in quotes, destructive", nil, "", `{"query":"a","limit":"5"}`, `{"query":"a","limit":5}`, "", "number_text"},
		{"a number in quotes, destructive and strict", nil, arguments.Strict, `{"query":"a","limit":"5"}`, "", `{"query":"a","limit":5}`, ""},
		{"a key's spelling, read-only", readOnly, "", `{"query":"a","sortBy":"date"}`, `{"query":"a","sort_by":"date"}`, "", "key_spelling"},
		{"a key's spelling, adding", adding, "", `{"query":"a","sortBy":"date"}`, `{"query":"a","sort_by":"date"}`, "", "key_spelling"},
		{"a key's spelling, destructive", nil, "", `{"query":"a","sortBy":"date"}`, "", `{"query":"a","sort_by":"date"}`, ""},
		{"arguments as text", nil, "", `"{\"query\":\"a\"}"`, `{"query":"a"}`, "", "arguments_text"},
		{"off", readOnly, arguments.Off, `{"query":"a","limit":"5"}`, "", "", ""},
		{"a guess", readOnly, "", `{"query":"a","limit":"5k"}`, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var heard []string
			s := newServer(mcpmend.MiddlewareOptions{
				Policy: test.policy,
				OnMended: func(tool string, changes []arguments.Change) {
					for _, c := range changes {
						heard = append(heard, tool+" "+string(c.Rule))
					}
				},
			})
			p := addSearch(s, "search", test.annotations)
			r := callRaw(t, join(t, s, ""), "search", test.args)
			if got := strings.Join(p.calls(), " "); got != test.want {
				t.Errorf("the tool saw %q, want %q; the client was told: %s", got, test.want, words(r))
			}
			var meta struct {
				Mended    []struct{ Path, Rule string }
				Suggested json.RawMessage `json:"suggested_arguments"`
			}
			remarshal(t, r.Meta["mcpmend.dev/arguments"], &meta)
			if test.want == "" {
				if !r.IsError || !strings.Contains(words(r), "The tool was not run.") {
					t.Errorf("got %q, want an error result that says that the tool was not run", words(r))
				}
				var want, got any
				remarshal(t, json.RawMessage(cmpOr(test.suggested, "null")), &want)
				remarshal(t, meta.Suggested, &got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("suggested arguments (-want +got):\n%s", diff)
				}
				return
			}
			if len(meta.Mended) != 1 || meta.Mended[0].Rule != test.rule {
				t.Errorf("the client was told of %v, want %s", meta.Mended, test.rule)
			}
			if diff := cmp.Diff([]string{"search " + test.rule}, heard); diff != "" {
				t.Errorf("OnMended (-want +got):\n%s", diff)
			}
		})
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func remarshal(t *testing.T, from, to any) {
	t.Helper()
	raw, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}

func TestARefusedCallIsExplained(t *testing.T) {
	s := newServer(mcpmend.MiddlewareOptions{})
	addSearch(s, "search", readOnly)
	r := callRaw(t, join(t, s, ""), "search", `{"limit":"many","sort_by":"dat"}`)
	const want = `Invalid arguments for search (3 problems). The tool was not run.
- limit: got "many" (string), need integer.
- query: missing, need string.
- sort_by: got "dat", need one of "date","relevance". Did you mean "date"?
Call it again with all arguments; keep the other fields.`
	if diff := cmp.Diff(want, words(r)); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	var data struct {
		Tool   string
		Issues []struct{ Field, Expected string }
	}
	remarshal(t, r.Meta["mcpmend.dev/arguments"], &data)
	if data.Tool != "search" || len(data.Issues) != 3 {
		t.Errorf("_meta: got %+v, want the same three problems", data)
	}
}

func TestStructuredContentIsLeftToToolsThatDescribeTheirs(t *testing.T) {
	s := newServer(mcpmend.MiddlewareOptions{})
	addSearch(s, "plain", readOnly)
	mcp.AddTool(s, &mcp.Tool{Name: "structured"}, func(context.Context, *mcp.CallToolRequest, text) (*mcp.CallToolResult, text, error) {
		return nil, text{}, nil
	})
	client := join(t, s, "")
	if r := callRaw(t, client, "plain", `{}`); !r.IsError || r.StructuredContent == nil {
		t.Errorf("without an output schema: got %v, want an error with structured content", r)
	}
	if r := callRaw(t, client, "structured", `{}`); !r.IsError || r.StructuredContent != nil || r.Meta["mcpmend.dev/arguments"] == nil {
		t.Errorf("with an output schema: got %v and %v, want an error without structured content", r.StructuredContent, r.Meta)
	}
}

func TestAnExplanationGrowsWhenTheSameCallComesAgain(t *testing.T) {
	s := newServer(mcpmend.MiddlewareOptions{})
	addSearch(s, "search", readOnly)
	client := join(t, s, "")
	length := func(client *mcp.ClientSession, args string) int {
		return len(words(callRaw(t, client, "search", args)))
	}
	const broken = `{"query":1.5}`
	first := length(client, broken)
	second := length(client, broken)
	third := length(client, broken)
	if first >= second || second >= third {
		t.Errorf("lengths %d, %d, %d: want them to grow", first, second, third)
	}
	if got := length(client, `{"query":2.5}`); got != first {
		t.Errorf("another call: got length %d, want %d", got, first)
	}
	if got := length(join(t, s, ""), broken); got != first {
		t.Errorf("another session: got length %d, want %d", got, first)
	}
	for i := range 1100 { // more than are remembered
		length(client, fmt.Sprintf(`{"query":%d.25}`, i))
	}
	if got := length(client, broken); got != first {
		t.Errorf("after 1100 other failures: got length %d, want it forgotten and %d", got, first)
	}

	full := newServer(mcpmend.MiddlewareOptions{FullErrors: true})
	addSearch(full, "search", readOnly)
	if got := length(join(t, full, ""), broken); got != third {
		t.Errorf("FullErrors: got length %d at once, want %d", got, third)
	}
}

func TestACallIsOnlyRefusedByWhatTheServerListsNow(t *testing.T) {
	s := newServer(mcpmend.MiddlewareOptions{})
	addSearch(s, "search", readOnly)
	client := join(t, s, "")
	if r := callRaw(t, client, "search", `{"query":"a","page":2}`); !r.IsError {
		t.Fatalf("got %s, want the old schema to refuse a page", words(r))
	}
	p := &probe{}
	s.AddTool(&mcp.Tool{Name: "search", InputSchema: json.RawMessage(`{"type":"object","properties":{"page":{"type":"integer"}}}`)}, p.handle)
	if r := callRaw(t, client, "search", `{"query":"a","page":2}`); r.IsError || len(p.calls()) != 1 {
		t.Errorf("got %s, want the new tool to run", words(r))
	}
	s.RemoveTools("search")
	if _, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "search"}); !isInvalidParams(err) {
		t.Errorf("a removed tool: got %v, want the server's own error", err)
	}
}

func isInvalidParams(err error) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && e.Code == jsonrpc.CodeInvalidParams
}

func TestTheServerIsAskedForItsToolsOnlyWhenThereIsNeed(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 2})
	var lists atomic.Int32
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" && req.GetParams().(*mcp.ListToolsParams).Cursor == "" {
				lists.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	s.AddReceivingMiddleware(mcpmend.Middleware(mcpmend.MiddlewareOptions{}))
	for i := range 9 {
		addSearch(s, fmt.Sprintf("search%d", i), readOnly)
	}
	client := join(t, s, "")
	for i := range 9 { // the last one is on the fifth page
		callRaw(t, client, fmt.Sprintf("search%d", i), `{"query":"a"}`)
	}
	if got := lists.Load(); got != 1 {
		t.Errorf("after nine valid calls the list was asked for %d times, want 1", got)
	}
	if r := callRaw(t, client, "search8", `{}`); !r.IsError || lists.Load() != 2 {
		t.Errorf("after a broken one: got %s, and the list %d times; want a refusal and 2", words(r), lists.Load())
	}
}

func TestACallGoesOnUncheckedIfTheToolsCannotBeListed(t *testing.T) {
	for name, trouble := range map[string]func(){
		"an error": func() {},
		"a panic":  func() { panic("no list") },
	} {
		t.Run(name, func(t *testing.T) {
			s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method == "tools/list" {
						trouble()
						return nil, errors.New("not for you")
					}
					return next(ctx, method, req)
				}
			})
			s.AddReceivingMiddleware(mcpmend.Middleware(mcpmend.MiddlewareOptions{OnPanic: func(string, any, []byte) {}}))
			p := addSearch(s, "search", readOnly)
			callRaw(t, join(t, s, ""), "search", `{"limit":"5"}`)
			if diff := cmp.Diff([]string{`{"limit":"5"}`}, p.calls()); diff != "" {
				t.Errorf("what the tool saw (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASchemaThatCannotBeCompiledLeavesItsToolUsable(t *testing.T) {
	s := newServer(mcpmend.MiddlewareOptions{})
	p := &probe{}
	s.AddTool(&mcp.Tool{Name: "odd", InputSchema: json.RawMessage(`{"type":"object","$ref":"https://example.com/elsewhere.json"}`)}, p.handle)
	callRaw(t, join(t, s, ""), "odd", `{"a":1}`)
	if len(p.calls()) != 1 {
		t.Errorf("the tool was called %d times, want once", len(p.calls()))
	}
}

func TestToolNamesAreMendedOnlyWhenAsked(t *testing.T) {
	for _, test := range []struct {
		name        string
		on          bool
		annotations *mcp.ToolAnnotations
		call        string
		run         bool
		says        string // in the error result
	}{
		{"off", false, readOnly, "findFile", false, ""},
		{"on", true, readOnly, "findFile", true, ""},
		{"destructive", true, nil, "findFile", false, "find_file"},
		{"no such tool", true, readOnly, "find_flie", false, "find_file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(mcpmend.MiddlewareOptions{ToolNames: test.on})
			p := addSearch(s, "find_file", test.annotations)
			r, err := join(t, s, "").CallTool(t.Context(), &mcp.CallToolParams{Name: test.call, Arguments: map[string]any{"query": "a"}})
			if ran := len(p.calls()) == 1; ran != test.run {
				t.Errorf("the tool ran: %v, want %v (%v, %v)", ran, test.run, r, err)
			}
			switch {
			case !test.on && !isInvalidParams(err):
				t.Errorf("got %v, want the server's own error", err)
			case test.on && err != nil:
				t.Errorf("got %v, want a result", err)
			case test.says != "" && (!r.IsError || !strings.Contains(words(r), test.says)):
				t.Errorf("got %q, want an error that names %s", words(r), test.says)
			}
		})
	}
}

func TestItWorksOverHTTP(t *testing.T) {
	for name, version := range eras {
		for _, stateless := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stateless %v", name, stateless), func(t *testing.T) {
				s := newServer(mcpmend.MiddlewareOptions{})
				p := addSearch(s, "search", readOnly)
				h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
					&mcp.StreamableHTTPOptions{Stateless: stateless}))
				t.Cleanup(h.Close) // after the client has closed its streams
				client := connect(t, &mcp.StreamableClientTransport{Endpoint: h.URL}, version)
				first := words(callRaw(t, client, "search", `{"limit":"5"}`))
				if !strings.Contains(first, "query: missing") {
					t.Errorf("got %q, want it explained", first)
				}
				second := words(callRaw(t, client, "search", `{"limit":"5"}`))
				if grown := len(second) > len(first); grown == stateless {
					t.Errorf("the second explanation has grown: %v, want %v", grown, !stateless)
				}
				callRaw(t, client, "search", `{"query":"a","limit":"5"}`)
				if diff := cmp.Diff([]string{`{"query":"a","limit":5}`}, p.calls()); diff != "" {
					t.Errorf("what the tool saw (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAPolicyThatDoesNotExistIsRejected(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("got no panic")
		}
	}()
	mcpmend.Middleware(mcpmend.MiddlewareOptions{Policy: "ballanced"})
}

// greeterSchema has a default, as many have.
const greeterSchema = `{"type":"object","properties":{"name":{"type":"string","default":"world"}}}`

// serveGreeter is a go-sdk server over stdio.
func serveGreeter(middleware ...mcp.Middleware) {
	s := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	s.AddReceivingMiddleware(middleware...)
	mcp.AddTool(s, &mcp.Tool{Name: "greet", InputSchema: json.RawMessage(greeterSchema)},
		func(_ context.Context, _ *mcp.CallToolRequest, in struct {
			Name string `json:"name"`
		}) (*mcp.CallToolResult, any, error) {
			return say("hello " + in.Name), nil, nil
		})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// A client that sends "arguments": null kills a go-sdk v1.8.0 server. If the first
// half of this test fails, the SDK has been mended and the second half is all we need.
func TestNullArgumentsEndABareServerAndNotAMendedOne(t *testing.T) {
	start := func(server string) (*mcp.ClientSession, *bytes.Buffer) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MCPMEND_TEST_SERVER="+server)
		stderr := &bytes.Buffer{}
		cmd.Stderr = stderr
		return connect(t, &mcp.CommandTransport{Command: cmd}, ""), stderr
	}
	null := &mcp.CallToolParams{Name: "greet", Arguments: json.RawMessage("null")}

	bare, stderr := start("greeter")
	if r, err := bare.CallTool(t.Context(), null); err == nil {
		t.Errorf("bare: got %s, want the connection to break", words(r))
	}
	_ = bare.Close() // waits for the process, so that all of stderr is there
	if !strings.Contains(stderr.String(), "assignment to entry in nil map") {
		t.Errorf("bare: got stderr %q, want the panic", stderr)
	}

	mended, _ := start("mended greeter")
	for range 2 {
		r, err := mended.CallTool(t.Context(), null)
		if err != nil || words(r) != "hello world" {
			t.Errorf("mended: got %v, %v, want hello world", r, err)
		}
	}
}

func TestNullMeansNoArgumentsWhateverIsMended(t *testing.T) {
	for _, policy := range []arguments.Policy{arguments.Balanced, arguments.Strict, arguments.Off} {
		for name, schema := range map[string]string{
			"checked":   greeterSchema,
			"unchecked": `{"type":"object","$ref":"https://example.com/elsewhere.json"}`,
		} {
			s := newServer(mcpmend.MiddlewareOptions{Policy: policy})
			p := &probe{}
			s.AddTool(&mcp.Tool{Name: "greet", InputSchema: json.RawMessage(schema)}, p.handle)
			r := callRaw(t, join(t, s, ""), "greet", `null`)
			if diff := cmp.Diff([]string{"{}"}, p.calls()); diff != "" {
				t.Errorf("%s, %s: %s\nwhat the tool saw (-want +got):\n%s", policy, name, words(r), diff)
			}
		}
	}
}

func TestAPanicEndsItsOwnCallOnly(t *testing.T) {
	for name, limits := range map[string]map[string]mcpmend.Limit{
		"in place":             nil,
		"in its own goroutine": {"*": {Timeout: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			var tool, stack string
			var value any
			s := newServer(mcpmend.MiddlewareOptions{
				Limits:  limits,
				OnPanic: func(name string, v any, st []byte) { tool, value, stack = name, v, string(st) },
			})
			handler := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("password hunter2") }
			schema := json.RawMessage(`{"type":"object"}`)
			s.AddTool(&mcp.Tool{Name: "crash", InputSchema: schema}, handler)
			s.AddTool(&mcp.Tool{Name: "peek", InputSchema: schema, Annotations: readOnly}, handler)
			p := addSearch(s, "search", nil)
			client := join(t, s, "")

			r := callRaw(t, client, "crash", `{}`)
			want := `The outcome of tool "crash" is unknown: it crashed while running. Do not repeat the call before its effect has been checked.`
			if !r.IsError || words(r) != want {
				t.Errorf("got %q, want %q", words(r), want)
			}
			raw, _ := json.Marshal(r)
			if strings.Contains(string(raw), "hunter2") || strings.Contains(string(raw), ".go:") {
				t.Errorf("the client was told too much: %s", raw)
			}
			wantData := map[string]any{"outcome": "unknown", "safe_to_retry": false, "kind": "tool_failure"}
			if diff := cmp.Diff(wantData, r.Meta["mcpmend.dev/outcome"]); diff != "" {
				t.Errorf("_meta (-want +got):\n%s", diff)
			}
			if tool != "crash" || value != "password hunter2" || !strings.Contains(stack, "middleware_test.go") {
				t.Errorf("OnPanic was told %q, %v and a stack of %d bytes, want all about it", tool, value, len(stack))
			}
			if r := callRaw(t, client, "peek", `{}`); !strings.Contains(words(r), "Calling it again is safe") {
				t.Errorf("a read-only tool: got %q, want it to be safe to call again", words(r))
			}
			callRaw(t, client, "search", `{"query":"a"}`)
			if len(p.calls()) != 1 {
				t.Error("the next call did not reach its tool")
			}
		})
	}
}

func TestAToolOverItsTimeIsAnsweredFor(t *testing.T) {
	const limit = 2 * time.Second
	unknown := func(cause string) string {
		return `The outcome of tool "work" is unknown: ` + cause + `. Do not repeat the call before its effect has been checked.`
	}
	for _, test := range []struct {
		name  string
		tool  mcp.ToolHandler
		want  string
		after time.Duration
	}{
		{"in time", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-time.After(limit - 1)
			return say("done"), nil
		}, "done", limit - 1},
		{"does not listen", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-time.After(time.Minute)
			return say("done"), nil
		}, unknown("it is still running after its time limit of 2s"), limit + 100*time.Millisecond},
		{"stops", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			r := say("wrote 3 of 5 files")
			r.IsError = true
			return r, nil
		}, unknown("it was stopped at its time limit of 2s") + "\nwrote 3 of 5 files", limit},
		{"stops with an error", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, unknown("it was stopped at its time limit of 2s") + "\ncontext deadline exceeded", limit},
		{"was just ready", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return say("done after all"), nil
		}, "done after all", limit},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(mcpmend.MiddlewareOptions{Limits: map[string]mcpmend.Limit{"work": {Timeout: limit}}})
				s.AddTool(&mcp.Tool{Name: "work", InputSchema: json.RawMessage(`{"type":"object"}`)}, test.tool)
				client := join(t, s, "2025-11-25")
				start := time.Now()
				r := callRaw(t, client, "work", `{}`)
				if words(r) != test.want || time.Since(start) != test.after {
					t.Errorf("got %q after %v, want %q after %v", words(r), time.Since(start), test.want, test.after)
				}
				<-time.After(time.Hour) // a tool that was left behind ends in peace
			})
		})
	}
}

func TestCallsOverTheLimitWaitTheirTurnWithinTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(mcpmend.MiddlewareOptions{Limits: map[string]mcpmend.Limit{
			"*":    {Timeout: 10 * time.Second, MaxConcurrent: 2},
			"free": {},
		}})
		var running, most, ran atomic.Int32
		work := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			most.Store(max(most.Load(), running.Add(1)))
			ran.Add(1)
			<-time.After(4 * time.Second)
			running.Add(-1)
			return say("done"), nil
		}
		for _, name := range []string{"work", "free"} {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, work)
		}
		client := join(t, s, "2025-11-25")
		many := func(tool string, n int) map[string]int {
			answers := make(map[string]int)
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					r := callRaw(t, client, tool, `{}`)
					mu.Lock()
					defer mu.Unlock()
					answers[words(r)]++
				})
			}
			wg.Wait()
			return answers
		}

		// Two at a time for four seconds each: the fifth and sixth begin at 8 s and are
		// not done at 10 s, the last two never begin.
		want := map[string]int{
			"done": 4,
			`The outcome of tool "work" is unknown: it is still running after its time limit of 10s. Do not repeat the call before its effect has been checked.`: 2,
			`Tool "work" was not executed. Cause: it takes 2 calls at once, and none of those before this one ended within 10s. Calling it again later is safe.`: 2,
		}
		if diff := cmp.Diff(want, many("work", 8)); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		if most.Load() != 2 || ran.Load() != 6 {
			t.Errorf("%d ran, %d at once, want 6 and 2", ran.Load(), most.Load())
		}
		// The two that were left behind hold their places for another 1.9 s.
		start := time.Now()
		if got := many("work", 1); got["done"] != 1 || time.Since(start) != 5900*time.Millisecond {
			t.Errorf("got %v after %v, want it to have waited for the two left behind", got, time.Since(start))
		}
		most.Store(0)
		if got := many("free", 8); got["done"] != 8 || most.Load() != 8 {
			t.Errorf("without a limit: got %v, %d at once, want 8", got, most.Load())
		}
	})
}

func TestACallThatIsGivenUpWhileItWaitsDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(mcpmend.MiddlewareOptions{Limits: map[string]mcpmend.Limit{"work": {MaxConcurrent: 1}}})
		var ran atomic.Int32
		finish := make(chan struct{})
		s.AddTool(&mcp.Tool{Name: "work", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				ran.Add(1)
				<-finish
				return say("done"), nil
			})
		client := join(t, s, "2025-11-25")
		first := make(chan *mcp.CallToolResult)
		go func() { first <- callRaw(t, client, "work", `{}`) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "work"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		synctest.Wait() // the server has heard of it
		close(finish)
		if r := <-first; words(r) != "done" {
			t.Errorf("the first call: got %s, want done", words(r))
		}
		synctest.Wait()
		if ran.Load() != 1 {
			t.Errorf("%d calls ran, want one", ran.Load())
		}
	})
}

func TestACallThatWasGivenUpBeforeItWasLetInDoesNotRun(t *testing.T) {
	s := newServer(mcpmend.MiddlewareOptions{Limits: map[string]mcpmend.Limit{"search": {MaxConcurrent: 1}}})
	handle := outermost(s)
	p := addSearch(s, "search", readOnly)
	_, there := mcp.NewInMemoryTransports()
	session, err := s.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // there is a place each time
		_, err := handle(ctx, "tools/call", &mcp.CallToolRequest{Session: session, Params: &mcp.CallToolParamsRaw{Name: "search", Arguments: json.RawMessage(`{"query":"a"}`)}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want it cancelled", err)
		}
	}
	if len(p.calls()) > 0 {
		t.Errorf("%d calls ran", len(p.calls()))
	}
}

// outermost is what the server does with a request, for tests that bring their own.
func outermost(s *mcp.Server) (handle mcp.MethodHandler) {
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		handle = next
		return next
	})
	return handle
}

func TestManyClientsAtOnce(t *testing.T) {
	s := newServer(mcpmend.MiddlewareOptions{Limits: map[string]mcpmend.Limit{"*": {Timeout: time.Minute, MaxConcurrent: 3}}})
	p := addSearch(s, "search", readOnly)
	var wg sync.WaitGroup
	for range 8 {
		client := join(t, s, "")
		wg.Go(func() {
			for range 50 {
				for args, want := range map[string]bool{`{"query":"a"}`: true, `{"query":"a","limit":"5"}`: true, `{"limit":5}`: false} {
					r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: json.RawMessage(args)})
					if err != nil || r.IsError == want {
						t.Errorf("%s: got %v, %v", args, r, err)
					}
				}
			}
		})
	}
	wg.Wait()
	if got := len(p.calls()); got != 8*50*2 {
		t.Errorf("the tool ran %d times, want %d", got, 8*50*2)
	}
}

// Bare is the server without the middleware; the difference is what a call costs.
func BenchmarkMiddleware(b *testing.B) {
	for _, bench := range []struct{ name, args string }{
		{"bare", `{"query":"a","limit":5}`},
		{"valid", `{"query":"a","limit":5}`},
		{"mended", `{"query":"a","limit":"5"}`},
		{"refused", `{"query":"a","limit":"many"}`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			if bench.name != "bare" {
				s.AddReceivingMiddleware(mcpmend.Middleware(mcpmend.MiddlewareOptions{}))
			}
			handle := outermost(s)
			for i := range 20 {
				s.AddTool(&mcp.Tool{Name: fmt.Sprintf("search%d", i), Annotations: readOnly, InputSchema: json.RawMessage(searchSchema)},
					func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("done"), nil })
			}
			_, there := mcp.NewInMemoryTransports()
			session, err := s.Connect(b.Context(), there, nil)
			if err != nil {
				b.Fatal(err)
			}
			req := &mcp.CallToolRequest{Session: session, Params: &mcp.CallToolParamsRaw{Name: "search7", Arguments: json.RawMessage(bench.args)}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := handle(b.Context(), "tools/call", req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
