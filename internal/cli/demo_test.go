package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// demo is the MCP server of the scripts, with ways to fail that people meet:
//
//	demo                 has the tools add and fail
//	demo -need NAME      ends if the variable is not set
//	demo -noise          says hello on standard output first
//	demo -hang           never answers
//	demo -slow TIME      begins to answer after that
//	demo -leaky          tells all that it was given; with -dies, and ends
func demo() {
	if len(os.Args) > 1 && os.Args[1] == "-leaky" {
		leaky(os.Args[2:])
		return
	}
	for i := 1; i < len(os.Args); i++ {
		switch os.Args[i] {
		case "-need":
			i++
			if os.Getenv(os.Args[i]) == "" {
				fmt.Fprintf(os.Stderr, "Error: %s environment variable is required\n", os.Args[i])
				os.Exit(1)
			}
		case "-noise":
			fmt.Println("Hello from demo!")
		case "-slow":
			i++
			wait, err := time.ParseDuration(os.Args[i])
			if err != nil {
				panic(err)
			}
			<-time.After(wait)
		case "-hang":
			select {}
		}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "demo", Version: "1.0.0"}, nil)
	type numbers struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Adds two numbers."},
		func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(in.A + in.B)}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fail", Description: "Fails."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("out of cheese, API_KEY=canary-1234567 was refused")
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
