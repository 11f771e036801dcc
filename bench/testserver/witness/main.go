// Command witness is a server that writes down how it was started and who spoke to
// it, for telling what a client has understood of its configuration.
//
//	witness [JOURNAL [ARGUMENT...]]
//
// It serves stdio and adds a line of JSON to JOURNAL, if it has one, at its start and
// at every greeting (initialize, or server/discover), see [testimony].
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/bench/testserver/witness/testimony"
)

func main() {
	log.SetFlags(0)
	journal := os.DevNull
	if len(os.Args) > 1 {
		journal = os.Args[1]
	}
	seen := start()
	if err := note(journal, seen); err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "witness", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{
		Name:        "arguments",
		Description: "Returns the arguments the server was started with.",
		InputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(seen.Args, " ")}}}, nil
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" || method == "server/discover" {
				said := seen
				said.Greeting = method
				if err := note(journal, said); err != nil {
					return nil, err
				}
			}
			return next(ctx, method, req)
		}
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

func start() testimony.Line {
	line := testimony.Line{PID: os.Getpid(), Args: os.Args[min(2, len(os.Args)):], Env: map[string]string{}}
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, testimony.Prefix) {
			line.Env[name] = value
		}
	}
	// The parent may be gone already; then the line says so by having none.
	line.Parent, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	line.Dir, _ = os.Getwd()
	return line
}

// note adds a line with one write, since several witnesses may share a journal.
func note(journal string, line testimony.Line) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
