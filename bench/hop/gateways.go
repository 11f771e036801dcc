package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gateways are what mcpmend is compared with. Each runs in a process of its own,
// which is this program again.
var gateways = map[string]func(args []string) error{
	"floor":       floor,      // floor COMMAND ARGS…
	"floor-http":  floorHTTP,  // floor-http URL
	"bridge":      bridge,     // bridge COMMAND ARGS…
	"bridge-http": bridgeHTTP, // bridge-http URL
}

// floor is the least a stdio gateway can do: it reads, looks for the end of each
// message, and writes.
func floor(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	// os.Pipe, not StdinPipe: no goroutine or copy of the library's comes in between.
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout = inRead, outWrite
	if err := cmd.Start(); err != nil {
		return err
	}
	inRead.Close()
	outWrite.Close()
	go func() {
		_, _ = copyMessages(inWrite, os.Stdin)
		inWrite.Close()
	}()
	_, err = copyMessages(os.Stdout, outRead)
	return errors.Join(err, cmd.Wait())
}

// copyMessages copies src to dst and counts the messages, which end at newlines. It
// passes on what it has, whole or not: who holds a message until it is complete
// has done more than the least.
func copyMessages(dst io.Writer, src io.Reader) (messages int, err error) {
	buf := chunks.Get().(*[64 << 10]byte)
	defer chunks.Put(buf)
	for {
		n, err := src.Read(buf[:])
		messages += bytes.Count(buf[:n], []byte{'\n'})
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return messages, err
			}
		}
		if err == io.EOF {
			return messages, nil
		}
		if err != nil {
			return messages, err
		}
	}
}

var chunks = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// floorHTTP is the least an HTTP gateway can do: it sends each request on, and
// passes the answer back as it comes.
func floorHTTP(args []string) error {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	return serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, args[0], r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		out.ContentLength = r.ContentLength
		out.Header = r.Header
		res, err := transport.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		for name, values := range res.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(res.StatusCode)
		_, _ = copyMessages(flushing{w}, res.Body)
	}))
}

// flushing sends at once, as a gateway must.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

// bridge is how gateways are usually built: a typed client and a typed server.
func bridge(argv []string) error {
	server, err := bridged(&mcp.CommandTransport{Command: exec.Command(argv[0], argv[1:]...)})
	if err != nil {
		return err
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

func bridgeHTTP(args []string) error {
	server, err := bridged(&mcp.StreamableClientTransport{Endpoint: args[0]})
	if err != nil {
		return err
	}
	return serve(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

func bridged(upstream mcp.Transport) (*mcp.Server, error) {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "bridge", Version: "1"}, nil)
	session, err := client.Connect(ctx, upstream, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, err
	}
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "bridge", Version: "1"}, nil)
	for _, tool := range list.Tools {
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return session.CallTool(ctx, &mcp.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
		})
	}
	return server, nil
}

func serve(handler http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	fmt.Fprintf(os.Stderr, "hop: listening on http://%s/mcp\n", l.Addr())
	return http.Serve(l, mux)
}
