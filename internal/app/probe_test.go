package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// rungs writes steps as "start ok", in order.
func rungs(steps []doctor.Step) []string {
	var out []string
	for _, s := range steps {
		word := " ok"
		if !s.OK {
			word = " broken"
		}
		out = append(out, string(s.Stage)+word)
	}
	return out
}

// webServer is a real server of two tools over HTTP.
func webServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "3"}, nil)
	for _, name := range []string{"a", "b"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	return s
}

func TestFindsOutWhichHTTPAServerSpeaks(t *testing.T) {
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return webServer() }, nil)
	sse := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return webServer() }, nil)
	for _, test := range []struct {
		name    string
		handler http.Handler
		says    clientconfig.Transport
		want    clientconfig.Transport
	}{
		{"streamable", streamable, clientconfig.HTTP, clientconfig.HTTP},
		{"streamable, entry says sse", streamable, clientconfig.SSE, clientconfig.HTTP},
		{"sse, entry says nothing", sse, clientconfig.Unknown, clientconfig.SSE},
		{"sse, entry says http", sse, clientconfig.HTTP, clientconfig.SSE},
	} {
		t.Run(test.name, func(t *testing.T) {
			place := httptest.NewServer(test.handler)
			defer place.Close()
			saw := Probe(t.Context(), doctor.Start{URL: place.URL + "/x", Transport: test.says})
			if saw.Fault != nil {
				t.Fatal(saw.Fault)
			}
			if saw.Transport != test.want || len(saw.Tools) != 2 || saw.Info.Name != "web" {
				t.Errorf("transport %q, tools %v, info %+v; want %q", saw.Transport, saw.Tools, saw.Info, test.want)
			}
			if diff := cmp.Diff([]string{"start ok", "handshake ok", "tools ok"}, rungs(saw.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSaysWhatAnHTTPServerRefusedWith(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://example.invalid/meta"`)
		http.Error(w, "your token "+r.Header.Get("Authorization")+" is not good", http.StatusUnauthorized)
	}))
	defer locked.Close()
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	release := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer mute.Close()
	defer close(release)
	for _, test := range []struct {
		name, url string
		rungs     []string
		kind      fault.Kind
		status    int
	}{
		{"nobody there", closed.URL, []string{"start broken"}, fault.ConnectionRefused, 0},
		{"sign-in", locked.URL, []string{"start ok", "handshake broken"}, fault.AuthFailed, 401},
		{"another site", site.URL, []string{"start ok", "handshake broken"}, fault.WrongEndpoint, 404},
		{"mute", mute.URL, []string{"start ok", "handshake broken"}, fault.Timeout, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			began := time.Now()
			saw := Probe(t.Context(), doctor.Start{URL: test.url, Header: []string{"Authorization: Bearer canary-12345"}, Timeout: time.Second})
			if took := time.Since(began); took > 5*time.Second { // untold it would be 10
				t.Errorf("took %v, want about a second at most", took)
			}
			if saw.Fault == nil || saw.Fault.Kind != test.kind || saw.Fault.HTTPStatus != test.status {
				t.Fatalf("fault %+v, want %s with status %d", saw.Fault, test.kind, test.status)
			}
			if diff := cmp.Diff(test.rungs, rungs(saw.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if test.status == 401 && !strings.Contains(saw.Fault.Challenge, "resource_metadata") {
				t.Errorf("challenge %q, want what the server sent", saw.Fault.Challenge)
			}
			if strings.Contains(fmt.Sprintf("%+v %v", saw, saw.Fault), "canary") {
				t.Errorf("a secret is shown: %v", saw.Fault)
			}
		})
	}
}
