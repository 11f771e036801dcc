//lint:file-ignore SA1019 roots are deprecated, and servers will ask for them for years: they must pass

package front

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// The test binary is also the server behind the front: started with this
// variable it is an SDK server on stdio, which answers both eras.
const beServer = "MCPMEND_FRONT_TEST_SERVER"

func TestMain(m *testing.M) {
	if size, err := strconv.Atoi(os.Getenv("FRONT_HOP_SERVER")); err == nil {
		serveHop(size)
		return
	}
	if os.Getenv(beServer) != "" {
		if err := newTestServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type (
	textIn struct {
		Text string `json:"text"`
	}
	countIn struct {
		Count int `json:"count"`
		Size  int `json:"size"`
	}
	nothing struct{}
)

func said(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func newTestServer() *mcp.Server {
	nudged := make(chan struct{}, 100)
	s := mcp.NewServer(&mcp.Implementation{Name: "front-test", Version: "1"}, &mcp.ServerOptions{
		RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { nudged <- struct{}{} },
	})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in textIn) (*mcp.CallToolResult, any, error) {
		return said(in.Text), nil, nil
	})
	// count sends that many progress notifications of that size.
	mcp.AddTool(s, &mcp.Tool{Name: "count"}, func(ctx context.Context, r *mcp.CallToolRequest, in countIn) (*mcp.CallToolResult, any, error) {
		for i := range in.Count {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Message: strings.Repeat("x", in.Size),
			})
		}
		return said("counted"), nil, nil
	})
	// hold says that it has begun, and waits for its call to be cancelled.
	// cancelled returns once hold has been.
	cancelled := make(chan struct{}, 100)
	mcp.AddTool(s, &mcp.Tool{Name: "hold"}, func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		cancelled <- struct{}{}
		return nil, nil, ctx.Err()
	})
	// nap says that it has begun, and takes its time.
	mcp.AddTool(s, &mcp.Tool{Name: "nap"}, func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		time.Sleep(500 * time.Millisecond)
		return said("awake"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "cancelled"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		select {
		case <-cancelled:
			return said("yes"), nil, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	})
	// ask_late waits for a notification of the client before it asks something.
	mcp.AddTool(s, &mcp.Tool{Name: "ask_late"}, func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-nudged
		return ask(ctx, r)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		return ask(ctx, r)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "large"}, func(_ context.Context, _ *mcp.CallToolRequest, in countIn) (*mcp.CallToolResult, any, error) {
		return said(strings.Repeat("y", in.Size)), nil, nil
	})
	// change makes the server announce that its tools have changed.
	mcp.AddTool(s, &mcp.Tool{Name: "change"}, func(_ context.Context, _ *mcp.CallToolRequest, in textIn) (*mcp.CallToolResult, any, error) {
		s.AddTool(regionTool(in.Text), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return said("there"), nil
		})
		return said("ok"), nil, nil
	})
	s.AddTool(regionTool("region"), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return said("there"), nil
	})
	return s
}

func ask(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, any, error) {
	got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "really?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
	if err != nil {
		return nil, nil, err
	}
	return said(got.Action), nil, nil
}

func regionTool(name string) *mcp.Tool {
	return &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Deep-N"}}}}}`)}
}

// site is a front on a real socket, with a real server behind it.
type site struct {
	t     *testing.T
	front *HTTP
	base  string
	url   string
	http  *http.Client
	stop  context.CancelFunc
	done  chan error
}

func serve(t *testing.T, front *HTTP) *site {
	t.Helper()
	server, err := guard.New(guard.Spec{Command: []string{os.Args[0]}, Env: append(os.Environ(), beServer+"=1"), Stderr: os.Stderr}, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front.Catalogue = catalogue.Of(server)
	ctx, cancel := context.WithCancel(context.Background())
	s := &site{
		t: t, front: front, base: "http://" + l.Addr().String(), stop: cancel, done: make(chan error, 1),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: 30 * time.Second},
	}
	s.url = s.base + Path
	go func() { s.done <- front.Serve(ctx, l) }()
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		s.end()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.front.Catalogue.Close(ctx); err != nil {
			t.Errorf("closing the server: %v", err)
		}
	})
	return s
}

// end stops the front and waits for it.
func (s *site) end() {
	s.stop()
	select {
	case err, ok := <-s.done:
		if ok && err != nil {
			s.t.Errorf("Serve: %v", err)
		}
		if ok {
			close(s.done)
		}
	case <-time.After(20 * time.Second):
		s.t.Error("Serve did not return")
	}
}

// do sends a request. headers are names and values in turn; an empty value takes
// a header away.
func (s *site) do(ctx context.Context, method, body string, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (s *site) post(body string, headers ...string) *http.Response {
	s.t.Helper()
	return s.do(s.t.Context(), http.MethodPost, body, headers...)
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

// introduce is a legacy client's handshake. It returns the session's header.
func (s *site) introduce() []string {
	s.t.Helper()
	resp := s.post(hello)
	id := resp.Header.Get(headerSession)
	if got := s.all(resp); len(got) != 1 || got[0].Result() == nil || id == "" {
		s.t.Fatalf("initialize: got %v, session %q", got, id)
	}
	header := []string{headerSession, id, headerVersion, "2025-11-25"}
	if resp := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, header...); resp.StatusCode != http.StatusAccepted {
		s.t.Fatalf("initialized: got status %d, want 202", resp.StatusCode)
	}
	return header
}

// all reads the whole response.
func (s *site) all(resp *http.Response) []*wire.Message {
	s.t.Helper()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		var out []*wire.Message
		events := wire.NewEventReader(resp.Body, 0)
		for {
			m, err := next(events)
			if err != nil {
				return out
			}
			out = append(out, &m)
		}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(body) == 0 {
		return nil
	}
	m, err := wire.Parse(bytes.TrimSpace(body))
	if err != nil {
		s.t.Fatalf("the body is no message: %v: %q", err, body)
	}
	return []*wire.Message{&m}
}

func next(events *wire.EventReader) (wire.Message, error) {
	for {
		e, err := events.Next()
		if err != nil {
			return wire.Message{}, err
		}
		if len(e.Data) > 0 {
			return e.Message()
		}
	}
}

func call(id, tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"progressToken":` + id + `}}}`
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// modernCall is a modern tool call and the headers that go with it.
func modernCall(id, tool, arguments string) (string, []string) {
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{` + modernMeta + `,"progressToken":` + id + `}}}`
	return body, []string{headerVersion, "2026-07-28", headerMethod, "tools/call", headerName, tool}
}

// text is the text of a tool's result.
func text(m *wire.Message) string {
	content, _ := wire.Member(m.Result(), "content")
	out := ""
	wire.EachElement(content, func(item []byte) {
		value, _ := wire.Member(item, "text")
		s, _ := wire.StringValue(value)
		out += s
	})
	return out
}
