package upstream

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/wire"
)

func TestHeaderValuesAreEncodedOnlyWhereTheyMustBe(t *testing.T) {
	for value, want := range map[string]string{
		"us-west1":            "us-west1",
		"":                    "",
		"in the middle":       "in the middle",
		"file:///a%20b?c=d#e": "file:///a%20b?c=d#e",
		" leading":            "=?base64?IGxlYWRpbmc=?=",
		"tab\t":               "=?base64?dGFiCQ==?=",
		"日本":                  "=?base64?5pel5pys?=",
		"line\nbreak":         "=?base64?bGluZQpicmVhaw==?=",
		"=?base64?SGk=?=":     "=?base64?PT9iYXNlNjQ/U0drPT89?=",
		"=?base64?":           "=?base64?",
	} {
		if got := headerValue(value); got != want {
			t.Errorf("headerValue(%q) = %q, want %q", value, got, want)
		}
	}
}

const webTools = `{"tools":[
	{"name":"query","inputSchema":{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"count":{"type":"integer","x-mcp-header":"COUNT"},
		"dry":{"type":"boolean","x-mcp-header":"Dry-Run"},
		"bad":{"type":"string","x-mcp-header":"not a token"},
		"empty":{"type":"string","x-mcp-header":""},
		"free":{"type":"string"},
		"deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Deep"}}}
	}}},
	{"name":"plain","inputSchema":{"type":"object","properties":{"region":{"type":"string"}}}}
]}`

func TestAModernRequestDescribesItselfInHeaders(t *testing.T) {
	seen := make(chan webRequest, 1)
	c := webStateless(t, func(w http.ResponseWriter, r *http.Request) {
		req := webRead(r)
		if req.Method == "tools/list" {
			webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, webTools)
			return
		}
		seen <- req
		webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
	})
	described := func(raw string, given http.Header) map[string]string {
		t.Helper()
		if o := c.start(raw, given).wait(); o.Fault != nil {
			t.Fatal(o.Fault)
		}
		got := make(map[string]string)
		for name, values := range (<-seen).Header {
			if strings.HasPrefix(name, "Mcp-") {
				got[name] = strings.Join(values, "|")
			}
		}
		if got[headerVersion] != "2026-07-28" {
			t.Errorf("%s: version %q", raw, got[headerVersion])
		}
		delete(got, headerVersion)
		return got
	}
	call := webModern(1, "tools/call", `"name":"query","arguments":{"region":"a b","count":42.0,"dry":false,"free":"x","bad":"x","deep":{"er":"日本"}}`)
	for _, test := range []struct {
		raw   string
		list  bool
		given http.Header
		want  map[string]string
	}{
		{raw: call, want: map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "query"}},
		{raw: call, list: true, want: map[string]string{
			"Mcp-Method": "tools/call", "Mcp-Name": "query", "Mcp-Param-Region": "a b", "Mcp-Param-Count": "42",
			"Mcp-Param-Dry-Run": "false", "Mcp-Param-Deep": "=?base64?5pel5pys?=",
		}},
		{raw: call, given: http.Header{"Mcp-Param-Region": {"=?base64?SGVsbG8?="}, "Mcp-Param-Unknown": {"1", "2"}, "Authorization": {"x"}}, want: map[string]string{
			"Mcp-Method": "tools/call", "Mcp-Name": "query", "Mcp-Param-Region": "=?base64?SGVsbG8?=", "Mcp-Param-Unknown": "1|2",
		}},
		{raw: webModern(1, "tools/call", `"name":"query","arguments":{"region":null,"count":1.5,"dry":"yes"}`), want: map[string]string{
			"Mcp-Method": "tools/call", "Mcp-Name": "query", "Mcp-Param-Dry-Run": "yes",
		}},
		{raw: webModern(1, "tools/call", `"name":"plain","arguments":{"region":"x"}`), want: map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "plain"}},
		{raw: webModern(1, "prompts/get", `"name":"p"`), want: map[string]string{"Mcp-Method": "prompts/get", "Mcp-Name": "p"}},
		{raw: webModern(1, "resources/read", `"uri":"file:///a%20b?c"`), want: map[string]string{"Mcp-Method": "resources/read", "Mcp-Name": "file:///a%20b?c"}},
		{raw: webModern(1, "tasks/get", `"taskId":"t1"`), want: map[string]string{"Mcp-Method": "tasks/get", "Mcp-Name": "t1"}},
		{raw: webModern(1, "prompts/list", ``), want: map[string]string{"Mcp-Method": "prompts/list"}},
	} {
		if test.list {
			if o := c.do(webModern(0, "tools/list", "")); o.Fault != nil {
				t.Fatal(o.Fault)
			}
		}
		if diff := cmp.Diff(test.want, described(test.raw, test.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.raw, diff)
		}
	}
}

func TestAnSDKServerAcceptsOurHeaders(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "query", InputSchema: map[string]any{"type": "object", "properties": map[string]any{
		"region": map[string]any{"type": "string", "x-mcp-header": "Region"},
	}}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ran"}}}, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	c := webDial(t, wire.Modern, Spec{URL: webServe(t, h).URL})
	call := webModern(1, "tools/call", `"name":"query","arguments":{"region":" 日本"}`)
	o := c.do(call)
	if code, _ := wire.ErrorOf(&o.Reply); code != wire.CodeHeaderMismatch || o.Status != http.StatusBadRequest {
		t.Fatalf("before the list was seen: %v %d %s", o.Fault, o.Status, &o.Reply)
	}
	c.do(webModern(2, "tools/list", ""))
	if got := c.do(call).text(t); got != "ran" {
		t.Errorf("got %q", got)
	}
}

func TestALegacyRequestSaysVersionAndSession(t *testing.T) {
	seen := make(chan webRequest, 1)
	s := newWebLegacy(t, func(w http.ResponseWriter, r *http.Request, req webRequest) {
		seen <- req
		webJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID)
	})
	c := webDial(t, wire.Legacy, Spec{URL: s.URL, Header: http.Header{
		"authorization": {"Bearer x"}, "Idempotency-Key": {"k"}, "x-idempotency-key": {"k"}, "accept": {"nothing"},
	}})
	c.greet()
	c.do(webTool(1, "x", "{}"))
	got := (<-seen).Header
	for name, want := range map[string]string{
		headerVersion: "2025-11-25", headerSession: "s1", "Authorization": "Bearer x", "Content-Type": "application/json",
		"Accept": "text/event-stream, application/json", headerMethod: "", "Idempotency-Key": "", "X-Idempotency-Key": "", "Accept-Encoding": "",
	} {
		if got.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Get(name), want)
		}
	}
	first := s.initiated[0].Header
	if first.Get(headerVersion) != "" || first.Get(headerSession) != "" {
		t.Errorf("initialize came with %q and %q, want neither", first.Get(headerVersion), first.Get(headerSession))
	}
}

func FuzzHeaderValue(f *testing.F) {
	f.Add(" x")
	f.Fuzz(func(t *testing.T, s string) {
		v := headerValue(s)
		for i := range len(v) {
			if v[i] < 0x20 || v[i] > 0x7e {
				t.Fatalf("headerValue(%q) = %q", s, v)
			}
		}
		if v == s {
			return
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(v, encodedPrefix), encodedSuffix))
		if err != nil || string(raw) != s {
			t.Fatalf("headerValue(%q) = %q decodes to %q", s, v, raw)
		}
	})
}
