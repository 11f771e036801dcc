package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveHTTP speaks in one way only, as servers do, at every path unless it says
// otherwise.
func (p *ills) serveHTTP() {
	l, err := net.Listen("tcp", p.http)
	if err != nil {
		log.Fatal(err)
	}
	handler := p.handler()
	s := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	if p.speak == "tls" {
		// httptest brings a certificate that nobody trusts.
		t := httptest.NewUnstartedServer(handler)
		t.StartTLS()
		s.TLSConfig = &tls.Config{Certificates: t.TLS.Certificates}
		t.Close()
		l = tls.NewListener(l, s.TLSConfig)
	}
	fmt.Fprintln(os.Stderr, "listening", l.Addr())
	log.Fatal(s.Serve(l))
}

func (p *ills) handler() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "patient", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "look", Description: "Looks.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "well"}}}, nil, nil
		})
	one := func(*http.Request) *mcp.Server { return server }
	streamable := mcp.NewStreamableHTTPHandler(one, nil)
	switch p.speak {
	case "sse":
		return mcp.NewSSEHandler(one, nil)
	case "http", "tls":
		// Without the stream for messages of the server's own, which is optional: a
		// GET gets 405, as from most servers of this kind.
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.Header().Set("Allow", "POST, DELETE")
				http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
				return
			}
			streamable.ServeHTTP(w, r)
		})
	case "get400": // as "http", with the wrong answer to a GET
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				http.Error(w, "Bad Request", http.StatusBadRequest)
				return
			}
			streamable.ServeHTTP(w, r)
		})
	case "path": // only there, and HTML elsewhere
		mux := http.NewServeMux()
		mux.Handle("/mcp", streamable)
		return mux
	}
	return http.HandlerFunc(p.turnAway)
}

// turnAway answers every request in the same way.
func (p *ills) turnAway(w http.ResponseWriter, r *http.Request) {
	say := func(status int, kind, text string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
	switch p.speak {
	case "html":
		say(200, "text/html; charset=utf-8", "<!DOCTYPE html><html><head><title>Team portal</title></head><body>Please log in.</body></html>")
	case "401":
		w.Header().Set("WWW-Authenticate", `Bearer realm="OAuth", error="invalid_token", error_description="Missing or invalid access token"`)
		say(401, "application/json", `{"error":"invalid_token","error_description":"Missing or invalid access token"}`)
	case "403":
		say(403, "application/json", `{"error":"insufficient_scope","error_description":"token missing required scope: time:read"}`)
	case "429":
		w.Header().Set("Retry-After", "60")
		say(429, "application/json", `{"error":"Too Many Requests","message":"Rate limit exceeded, retry in 60 seconds"}`)
	case "421":
		say(421, "text/plain", "Invalid Host header")
	case "407":
		w.Header().Set("Proxy-Authenticate", `Basic realm="corporate proxy"`)
		say(407, "text/plain", "Proxy Authentication Required")
	case "500":
		say(500, "text/plain", "Internal Server Error")
	case "hang":
		<-r.Context().Done()
	default:
		say(404, "text/plain", "404 page not found")
	}
}
