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
	"copy":        func(args []string) error { return between(args, copyBytes) },        // copy COMMAND ARGS…
	"copy-http":   func(args []string) error { return betweenHTTP(args[0], copyBytes) }, // copy-http URL
	"floor":       func(args []string) error { return between(args, copyMessages) },
	"floor-http":  func(args []string) error { return betweenHTTP(args[0], copyMessages) },
	"bridge":      bridge,
	"bridge-http": bridgeHTTP,
}

// A copier is all that a gateway does here in one direction.
type copier func(dst io.Writer, src io.Reader) error

// copyBytes passes on what it has, and knows nothing of messages.
func copyBytes(dst io.Writer, src io.Reader) error {
	held := buffers.Get().(*[]byte)
	defer buffers.Put(held)
	for {
		n, err := src.Read(*held)
		if n > 0 {
			if _, err := dst.Write((*held)[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return eofIsFine(err)
		}
	}
}

// copyMessages finds where messages end, holds each until it is whole, and passes
// on whole ones: the least that a gateway must do whose pipe has several clients.
func copyMessages(dst io.Writer, src io.Reader) error {
	held := buffers.Get().(*[]byte)
	defer buffers.Put(held)
	fill := 0
	for {
		if fill == len(*held) {
			*held = append(*held, make([]byte, len(*held))...)
		}
		n, err := src.Read((*held)[fill:])
		if end := bytes.LastIndexByte((*held)[fill:fill+n], '\n'); end >= 0 {
			end += fill + 1
			if _, err := dst.Write((*held)[:end]); err != nil {
				return err
			}
			fill = copy(*held, (*held)[end:fill+n])
		} else {
			fill += n
		}
		if err != nil {
			return eofIsFine(err)
		}
	}
}

// buffers keep what they have grown to: the second large message costs no memory.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

func eofIsFine(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// between stands between stdio and a process.
func between(argv []string, copy copier) error {
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
		_ = copy(inWrite, os.Stdin)
		inWrite.Close()
	}()
	err = copy(os.Stdout, outRead)
	return errors.Join(err, cmd.Wait())
}

// betweenHTTP stands in front of a server on HTTP: it sends each request on, and
// passes the answer back as it comes.
func betweenHTTP(url string, copy copier) error {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	return serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, url, r.Body)
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
		_ = copy(flushing{w}, res.Body)
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
