package mcpmend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend"
)

// A server whose calls are checked before they run. The first call is mended, the
// second is not: it could only be guessed what is meant.
func ExampleMiddleware() {
	type booking struct {
		Room   string `json:"room"`
		Guests int    `json:"guests"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "hotel", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "book"}, func(_ context.Context, _ *mcp.CallToolRequest, in booking) (*mcp.CallToolResult, any, error) {
		text := fmt.Sprintf("booked %s for %d", in.Room, in.Guests)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	server.AddReceivingMiddleware(mcpmend.Middleware(mcpmend.MiddlewareOptions{}))

	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		log.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	for _, args := range []string{
		`{"room":"attic","guests":"2"}`,
		`{"romm":"attic","guests":"a few"}`,
	} {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(args)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// booked attic for 2
	// Invalid arguments for book (2 problems). The tool was not run.
	// - guests: got "a few" (string), need integer.
	// - room: missing, need string. You sent "romm", which is not a field; rename it?
	// Call it again with all arguments; keep the other fields.
}

// A client whose server dies in the middle of a call. The next call finds it alive.
func ExampleTransport() {
	transport := &mcpmend.Transport{
		Command: []string{os.Args[0]}, // any MCP server; here it is this test
		Env:     append(os.Environ(), "MCPMEND_TEST_SERVER=1"),
	}
	defer transport.Close()

	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "die"})
	var failed *mcpmend.CallError
	if errors.As(err, &failed) {
		fmt.Println(failed.Outcome, failed.Fault.ExitCode, failed.Fault.Stderr)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "here again"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	// Output:
	// unknown 3 [about to die]
	// here again
}

// The README shows this.
func TestTheExamplesWorkTogether(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./examples/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "transport"), filepath.Join(dir, "middleware")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = `> search_notes {"query":"bread"}
buy bread
bread recipe: flour, water, salt
> search_notes {"query":"bread","limit":"1"}
buy bread
> search_notes {"qurey":"bread"}
Invalid arguments for search_notes. The tool was not run.
- query: missing, need string. You sent "qurey", which is not a field; rename it?
Call it again with all arguments; keep the other fields.
> search_notes null
Invalid arguments for search_notes. The tool was not run.
- query: missing, need string.
Call it again with all arguments; keep the other fields.
`
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}
