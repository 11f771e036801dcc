// Command small is a server with one tool, for measuring what stands in front of
// it: blob returns as many bytes of text as its argument says.
//
//	small                  on stdio, both eras
//	small -http ADDR       Streamable HTTP with sessions, at /mcp
//	small -http ADDR -stateless
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const largest = 64 << 20

func main() {
	addr := flag.String("http", "", "serve Streamable HTTP at this address instead of stdio")
	stateless := flag.Bool("stateless", false, "with -http: no sessions, as 2026-07-28 wants it")
	flag.Parse()
	log.SetFlags(0)

	server := mcp.NewServer(&mcp.Implementation{Name: "small", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{
		Name:        "blob",
		Description: "Returns text of the given size.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, blob)
	if *addr == "" {
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: *stateless})
	http.Handle("/mcp", handler)
	log.Fatal(http.ListenAndServe(*addr, nil))
}

// texts holds the result of each size once: the server's own work should be the
// smallest part of what is measured.
var texts sync.Map // int → *mcp.CallToolResult

func blob(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Size int }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	if args.Size < 0 || args.Size > largest {
		return nil, fmt.Errorf("size %d is not between 0 and %d", args.Size, largest)
	}
	text, ok := texts.Load(args.Size)
	if !ok {
		text, _ = texts.LoadOrStore(args.Size, strings.Repeat("x", args.Size))
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text.(string)}}}, nil
}
