// Command testclient is a client for the conformance suite: an unmodified go-sdk
// client, connected over mcpmend.Transport.
//
//	testclient [-bare] URL
//
// The suite says in the environment which scenario it plays. With -bare the SDK's
// own transport is used, to tell faults of this program from faults of ours.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend"
)

func main() {
	bare := flag.Bool("bare", false, "use the SDK's own transport")
	flag.Parse()
	log.SetFlags(0)
	if flag.NArg() != 1 {
		log.Fatal("usage: testclient [-bare] URL")
	}
	name := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	play, ok := scenarios[name]
	if !ok {
		log.Fatalf("no part in scenario %q", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := run(ctx, flag.Arg(0), *bare, play); err != nil {
		log.Fatalf("%s: %v", name, err)
	}
}

func run(ctx context.Context, url string, bare bool, play scenario) error {
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: url}
	if !bare {
		mending := &mcpmend.Transport{URL: url}
		defer mending.Close()
		transport = mending
	}
	options := &mcp.ClientOptions{}
	if play.elicited != nil {
		options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: play.elicited}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "testclient", Version: "1"}, options)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	if play.steps == nil {
		return nil
	}
	return play.steps(ctx, session)
}

// A scenario is the client's part in one of the suite's plays.
type scenario struct {
	steps    func(context.Context, *mcp.ClientSession) error // nil: connecting is all
	elicited map[string]any                                  // the user's answer to every question; nil: there is no user
}

var scenarios = map[string]scenario{
	"initialize":                          {steps: calls()},
	"tools_call":                          {steps: calls("add_numbers", map[string]any{"a": 5, "b": 3})},
	"elicitation-sep1034-client-defaults": {steps: calls("test_client_elicitation_defaults", nil), elicited: map[string]any{}},
	"sse-retry":                           {steps: calls("test_reconnection", nil)},
	"request-metadata":                    {},
	"json-schema-ref-no-deref":            {steps: calls()},
	"json-schema-2020-12-preservation":    {steps: echoSchema},
	"sep-2322-client-request-state": {
		steps: calls("test_mrtr_echo_state", nil, "test_mrtr_no_state", nil,
			"test_mrtr_unrelated", nil, "test_mrtr_no_result_type", nil),
		elicited: map[string]any{"confirmed": true},
	},
	"http-standard-headers":     {steps: oneOfEach},
	"http-custom-headers":       {steps: callsFromContext},
	"http-invalid-tool-headers": {steps: callEveryTool},
}

// calls lists the tools and calls those named, with their arguments.
func calls(nameAndArguments ...any) func(context.Context, *mcp.ClientSession) error {
	return func(ctx context.Context, s *mcp.ClientSession) error {
		if _, err := s.ListTools(ctx, nil); err != nil {
			return err
		}
		for i := 0; i < len(nameAndArguments); i += 2 {
			if err := call(ctx, s, nameAndArguments[i].(string), nameAndArguments[i+1]); err != nil {
				return err
			}
		}
		return nil
	}
}

func call(ctx context.Context, s *mcp.ClientSession, name string, arguments any) error {
	if arguments == nil {
		arguments = map[string]any{}
	}
	_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	return err
}

// echoSchema sends a tool's schema back as it arrived here.
func echoSchema(ctx context.Context, s *mcp.ClientSession) error {
	list, err := s.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, tool := range list.Tools {
		if tool.Name == "json_schema_2020_12_tool" {
			return call(ctx, s, "json_schema_echo", map[string]any{"schema": tool.InputSchema})
		}
	}
	return fmt.Errorf("json_schema_2020_12_tool is not among the %d tools", len(list.Tools))
}

// oneOfEach makes a request of every kind that has headers of its own.
func oneOfEach(ctx context.Context, s *mcp.ClientSession) error {
	if err := calls("test_headers", nil, "my-hyphenated-tool", nil)(ctx, s); err != nil {
		return err
	}
	resources, err := s.ListResources(ctx, nil)
	if err != nil {
		return err
	}
	for _, r := range resources.Resources {
		if _, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.URI}); err != nil {
			return err
		}
	}
	prompts, err := s.ListPrompts(ctx, nil)
	if err != nil {
		return err
	}
	for _, p := range prompts.Prompts {
		if _, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name}); err != nil {
			return err
		}
	}
	return nil
}

// callsFromContext makes the calls that the suite lists in the environment.
func callsFromContext(ctx context.Context, s *mcp.ClientSession) error {
	var wanted struct {
		ToolCalls []struct {
			Name      string
			Arguments map[string]any
		}
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &wanted); err != nil {
		return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	if _, err := s.ListTools(ctx, nil); err != nil {
		return err
	}
	for _, c := range wanted.ToolCalls {
		if err := call(ctx, s, c.Name, c.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// callEveryTool calls whatever the client lets through.
func callEveryTool(ctx context.Context, s *mcp.ClientSession) error {
	list, err := s.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, tool := range list.Tools {
		if err := call(ctx, s, tool.Name, map[string]any{"region": "north"}); err != nil {
			return err
		}
	}
	return nil
}
