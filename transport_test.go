//lint:file-ignore SA1019 roots are deprecated, and servers will ask for them for years: they must pass

package mcpmend_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend"
)

// TestMain turns the test binary into a real MCP server when it is started as one.
func TestMain(m *testing.M) {
	switch os.Getenv("MCPMEND_TEST_SERVER") {
	case "1":
		serve()
	case "greeter":
		serveGreeter()
	case "mended greeter":
		serveGreeter(mcpmend.Middleware(mcpmend.MiddlewareOptions{}))
	default:
		os.Exit(m.Run())
	}
}

type text struct {
	Text string `json:"text"`
}

// serve is a go-sdk server over stdio, of both eras, with a tool that answers,
// one that dies in the middle of a call, one that asks the client back and one
// that talks on stdout where it should not.
func serve() {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	reply := func(format string, args ...any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return reply("%s", in.Text)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "about to die")
		os.Exit(3)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "babble"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Println("loading the model, please wait")
		fmt.Println(`{"level":"info","msg":"ready"}`)
		return reply("done")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		res, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return reply("%d roots", len(res.Roots))
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// testServer is a transport to this test binary as a server.
func testServer(t *testing.T) *mcpmend.Transport {
	t.Helper()
	tr := &mcpmend.Transport{
		Command: []string{os.Args[0]},
		Env:     append(os.Environ(), "MCPMEND_TEST_SERVER=1"),
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("closing the transport: %v", err)
		}
	})
	return tr
}

// eras are the protocol versions a client can insist on; "" lets it negotiate.
var eras = map[string]string{"negotiated": "", "legacy": "2025-11-25", "modern": "2026-07-28"}

func connect(t *testing.T, tr mcp.Transport, version string) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	c.AddRoots(&mcp.Root{URI: "file:///a"}, &mcp.Root{URI: "file:///b"})
	s, err := c.Connect(t.Context(), tr, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func call(t *testing.T, s *mcp.ClientSession, name string, args any) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String(), nil
}

func TestAnUnmodifiedClientWorksOverIt(t *testing.T) {
	for name, version := range eras {
		t.Run(name, func(t *testing.T) {
			s := connect(t, testServer(t), version)
			if got, err := call(t, s, "echo", text{"hello"}); got != "hello" || err != nil {
				t.Errorf("echo: got %q, %v, want hello", got, err)
			}
			tools, err := s.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 5 {
				t.Errorf("tools: got %v, %v, want 5 of them", tools, err)
			}
			if got := s.InitializeResult().ServerInfo.Name; got != "test" {
				t.Errorf("server: got name %q, want the server's own", got)
			}
		})
	}
}

func TestStrayLinesOnStdoutHurtNobody(t *testing.T) {
	s := connect(t, testServer(t), "")
	for range 2 {
		if got, err := call(t, s, "babble", struct{}{}); got != "done" || err != nil {
			t.Errorf("babble: got %q, %v, want done", got, err)
		}
	}
}

func TestTheServerCanAskTheClient(t *testing.T) {
	s := connect(t, testServer(t), "2025-11-25")
	if got, err := call(t, s, "ask", struct{}{}); got != "2 roots" || err != nil {
		t.Errorf("ask: got %q, %v, want 2 roots", got, err)
	}
}

func TestADeadServerIsAnUnknownOutcomeAndTheNextCallWorks(t *testing.T) {
	for name, version := range eras {
		t.Run(name, func(t *testing.T) {
			s := connect(t, testServer(t), version)
			_, err := call(t, s, "die", struct{}{})
			var failed *mcpmend.CallError
			if !errors.As(err, &failed) {
				t.Fatalf("die: got %v, want a CallError", err)
			}
			if failed.Outcome != mcpmend.Unknown || failed.Fault.ExitCode != 3 {
				t.Errorf("die: got outcome %s, exit code %d, want unknown and 3", failed.Outcome, failed.Fault.ExitCode)
			}
			if len(failed.Fault.Stderr) == 0 || failed.Fault.Stderr[0] != "about to die" {
				t.Errorf("die: got stderr %q, want the server's last words", failed.Fault.Stderr)
			}
			if got, err := call(t, s, "echo", text{"again"}); got != "again" || err != nil {
				t.Errorf("echo after the death: got %q, %v, want again", got, err)
			}
		})
	}
}

func TestACancelledCallIsGivenUpAtTheServerToo(t *testing.T) {
	s := connect(t, testServer(t), "2025-11-25")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("wait: got %v, want the deadline", err)
	}
	if got, err := call(t, s, "echo", text{"still here"}); got != "still here" || err != nil {
		t.Errorf("echo: got %q, %v", got, err)
	}
}

func TestACommandThatDoesNotExistIsNamed(t *testing.T) {
	tr := &mcpmend.Transport{Command: []string{"no-such-command-here"}}
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	_, err := c.Connect(t.Context(), tr, nil)
	var failed *mcpmend.CallError
	if !errors.As(err, &failed) || failed.Outcome != mcpmend.NotExecuted || failed.Fault.Errno != "ENOENT" {
		t.Errorf("got %v, want a CallError that says not executed and ENOENT", err)
	}
}
