// Command middleware is a small MCP server on stdio whose calls are checked, mended
// or explained before a tool runs. Try it with the client beside it:
//
//	go build -o notes ./examples/middleware
//	go run ./examples/transport ./notes
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend"
)

var notes = []string{"buy bread", "call Ada", "bread recipe: flour, water, salt"}

type search struct {
	Query string `json:"query" jsonschema:"a word that the notes must contain"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many notes at most"`
}

func find(_ context.Context, _ *mcp.CallToolRequest, in search) (*mcp.CallToolResult, any, error) {
	var found []string
	for _, note := range notes {
		if strings.Contains(note, in.Query) && (in.Limit == 0 || len(found) < in.Limit) {
			found = append(found, note)
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(found, "\n")}}}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "search_notes",
		Description: "Find notes by a word.",
		// It is mended more freely because it says that it changes nothing.
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, find)

	server.AddReceivingMiddleware(mcpmend.Middleware(mcpmend.MiddlewareOptions{
		Limits: map[string]mcpmend.Limit{"*": {Timeout: 30 * time.Second, MaxConcurrent: 8}},
		OnPanic: func(tool string, value any, stack []byte) {
			fmt.Fprintf(os.Stderr, "%s panicked: %v\n%s", tool, value, stack)
		},
	}))
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
