package upstream

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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
