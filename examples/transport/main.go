// Command transport starts an MCP server, keeps it working, and calls its first tool
// with arguments that models like to get wrong:
//
//	go run ./examples/transport COMMAND [ARGUMENTS…]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: transport COMMAND [ARGUMENTS…]")
	}
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(command []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	transport := &mcpmend.Transport{Command: command, Stderr: os.Stderr}
	defer transport.Close()

	client := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close()

	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	if len(tools.Tools) == 0 {
		return errors.New("the server has no tools")
	}
	for _, args := range []string{`{"query":"bread"}`, `{"query":"bread","limit":"1"}`, `{"qurey":"bread"}`, `null`} {
		call(ctx, session, tools.Tools[0].Name, args)
	}
	return nil
}

func call(ctx context.Context, session *mcp.ClientSession, tool, args string) {
	fmt.Printf("> %s %s\n", tool, args)
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	var failed *mcpmend.CallError
	switch {
	case errors.As(err, &failed) && failed.Outcome == mcpmend.NotExecuted:
		fmt.Println("not executed, so it is safe to try again:", err)
	case err != nil:
		fmt.Println(err)
	default:
		for _, c := range result.Content {
			if text, ok := c.(*mcp.TextContent); ok {
				fmt.Println(text.Text)
			}
		}
	}
}
