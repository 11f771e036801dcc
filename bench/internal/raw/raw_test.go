package raw

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A server whose answers are streams that stay open a little after the reply.
func lingering(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m envelope
		if json.Unmarshal(body, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: 1\ndata:\n\nevent: message\ndata: {\"method\":\"notifications/x\",\ndata: \"jsonrpc\":\"2.0\"}\n\n")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
		w.(http.Flusher).Flush()
		fmt.Fprint(w, strings.Repeat(": still here\n", 1000))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAnAnswerThatEndsLateDoesNotHarmTheNextCallWithItsID(t *testing.T) {
	c := HTTP(lingering(t).URL)
	defer c.Close()
	for i := range 200 {
		reply, err := c.Call(t.Context(), `7`, "ping", `{}`)
		if want := `{"jsonrpc":"2.0","id":7,"result":{}}`; err != nil || string(reply) != want {
			t.Fatalf("call %d: %s, %v; want %s", i, reply, err, want)
		}
	}
	seen := c.Seen()
	if want := "{\"method\":\"notifications/x\",\n\"jsonrpc\":\"2.0\"}"; len(seen) != 200 || string(seen[0]) != want {
		t.Errorf("%d other messages, the first %q; want 200 of %q", len(seen), seen[:min(1, len(seen))], want)
	}
}

func TestAServersRequestIsAnsweredAndNoted(t *testing.T) {
	fromServer, toClient := io.Pipe()
	fromClient, toServer := io.Pipe()
	c := Stdio(toServer, fromServer, toClient.Close)
	defer c.Close()
	c.Answer = func(method string, _ []byte) string { return `{"for":"` + method + `"}` }

	heard := make(chan string, 2)
	go func() {
		buf := make([]byte, 1<<10)
		for range 2 {
			n, err := fromClient.Read(buf)
			if err != nil {
				return
			}
			heard <- string(buf[:n])
			if n > 0 && strings.Contains(string(buf[:n]), `"tools/call"`) {
				fmt.Fprintln(toClient, `{"jsonrpc":"2.0","id":"a","method":"roots/list"}`)
			}
		}
		fmt.Fprintln(toClient, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}()
	if _, err := c.Call(t.Context(), `1`, "tools/call", `{}`); err != nil {
		t.Fatal(err)
	}
	got := []string{<-heard, <-heard}
	want := []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}` + "\n",
		`{"jsonrpc":"2.0","id":"a","result":{"for":"roots/list"}}` + "\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the server heard %q, want %q", got, want)
	}
	if seen := c.Seen(); len(seen) != 1 || !strings.Contains(string(seen[0]), "roots/list") {
		t.Errorf("noted %q, want the server's request", seen)
	}
}

func TestAnIDIsComparedByValueOnlyWhenAsked(t *testing.T) {
	for _, byValue := range []bool{true, false} {
		fromServer, toClient := io.Pipe()
		c := Stdio(io.Discard, fromServer, toClient.Close)
		c.ByValue = byValue
		call := c.Start(`3`, "ping", `{}`)
		fmt.Fprintln(toClient, `{"jsonrpc":"2.0","id":3.0,"result":{}}`)
		toClient.Close()
		if reply, err := call.Reply(t.Context()); (err == nil) != byValue {
			t.Errorf("by value %t: got %s, %v", byValue, reply, err)
		}
	}
}
