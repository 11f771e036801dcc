// Command gosdk is a server of the Go SDK, in both eras, whose tools take their time
// or say much. bench/harm calls it directly and through mcpmend.
//
//	gosdk [-start TIME]             on stdio, silent for TIME at first
//	gosdk -http ADDR [-stateless]   Streamable HTTP at /mcp
//	      -cert FILE -key FILE      with TLS: HTTP/2, or with -h1 HTTP/1.1 only
//
// Tools: wait, big, progress, notes, ask; pid tells the process id.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	addr := flag.String("http", "", "serve Streamable HTTP at this address instead of stdio")
	stateless := flag.Bool("stateless", false, "with -http: no sessions, as 2026-07-28 wants it")
	start := flag.Duration("start", 0, "time before anything is read")
	cert := flag.String("cert", "", "certificate for TLS")
	key := flag.String("key", "", "its key")
	h1 := flag.Bool("h1", false, "no HTTP/2")
	flag.Parse()
	log.SetFlags(0)
	time.Sleep(*start)

	server := newServer()
	if *addr == "" {
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: *stateless}))
	s := &http.Server{Addr: *addr, Handler: mux}
	if *h1 {
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	if *cert == "" {
		log.Fatal(s.ListenAndServe())
	}
	log.Fatal(s.ListenAndServeTLS(*cert, *key))
}

// arguments of all tools.
type arguments struct {
	Key     string
	Seconds float64
	Bytes   int
	Count   int
}

const schema = `{"type":"object","properties":{"key":{"type":"string"},"seconds":{"type":"number"},"bytes":{"type":"integer"},"count":{"type":"integer"}}}`

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"},
		//lint:ignore SA1019 legacy clients still ask for log messages, so somebody has to send them
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}})
	for name, tool := range map[string]func(context.Context, *mcp.CallToolRequest, arguments) (string, error){
		"wait": wait, "big": big, "progress": progress, "notes": notes, "ask": ask, "pid": pid,
	} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var a arguments
				if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
					return nil, err
				}
				text, err := tool(ctx, req, a)
				if err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
			})
	}
	return server
}

func wait(_ context.Context, _ *mcp.CallToolRequest, a arguments) (string, error) {
	time.Sleep(seconds(a))
	return "done " + a.Key, nil
}

func big(_ context.Context, _ *mcp.CallToolRequest, a arguments) (string, error) {
	return strings.Repeat("x", a.Bytes), nil
}

// progress tells of it count times, with a message of so many bytes.
func progress(ctx context.Context, req *mcp.CallToolRequest, a arguments) (string, error) {
	for i := range a.Count {
		time.Sleep(seconds(a) / time.Duration(a.Count))
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(a.Count),
			Message: strings.Repeat("n", a.Bytes),
		})
		if err != nil {
			return "", err
		}
	}
	return "done " + a.Key, nil
}

// notes sends count progress notifications as fast as they are taken: unlike log
// messages they need no level to be set in either era.
func notes(ctx context.Context, req *mcp.CallToolRequest, a arguments) (string, error) {
	a.Seconds = 0
	return progress(ctx, req, a)
}

func ask(ctx context.Context, req *mcp.CallToolRequest, a arguments) (string, error) {
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{
		Message:         "name of " + a.Key + "?",
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprint("answer ", answer.Content["name"]), nil
}

func pid(context.Context, *mcp.CallToolRequest, arguments) (string, error) {
	return strconv.Itoa(os.Getpid()), nil
}

func seconds(a arguments) time.Duration { return time.Duration(a.Seconds * float64(time.Second)) }
