package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// endpoint serves both eras on one path. It believes its clients: header checks are
// not what this server is for.
type endpoint struct {
	mu       sync.Mutex
	opened   int
	sessions map[string]*session
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		e.post(w, r)
	case http.MethodGet:
		// The standalone stream of a legacy session. Nothing is ever sent on it.
		if e.lookup(r) == nil {
			http.Error(w, "no such session", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case http.MethodDelete:
		e.mu.Lock()
		delete(e.sessions, r.Header.Get("Mcp-Session-Id"))
		e.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "POST, GET or DELETE", http.StatusMethodNotAllowed)
	}
}

func (e *endpoint) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := parse(body)
	if err != nil {
		http.Error(w, "not JSON-RPC", http.StatusBadRequest)
		return
	}
	s := e.sessionFor(w, r, m)
	if s == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if s.take(m) {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var answer reply
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") && m.streams() {
		answer.stream = w
		w.Header().Set("Content-Type", "text/event-stream")
	}
	s.serve(m, answer.send)
	if answer.stream == nil {
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer.last)
	}
}

// streams says that a request has more than a reply as its answer.
func (m *message) streams() bool {
	return m.Method == "subscriptions/listen" ||
		m.Method == "tools/call" && (bytes.Contains(m.Params, []byte(`"notify"`)) || bytes.Contains(m.Params, []byte(`"ask"`)))
}

func (e *endpoint) sessionFor(w http.ResponseWriter, r *http.Request, m *message) *session {
	if m.Method != "initialize" {
		if m.modern() || r.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
			return newSession() // modern requests share nothing
		}
		return e.lookup(r)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened++
	id := "session-" + strconv.Itoa(e.opened)
	e.sessions[id] = newSession()
	w.Header().Set("Mcp-Session-Id", id)
	return e.sessions[id]
}

func (e *endpoint) lookup(r *http.Request) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[r.Header.Get("Mcp-Session-Id")]
}

// A reply is one JSON body, or events if it has a stream.
type reply struct {
	stream http.ResponseWriter
	last   []byte
}

func (r *reply) send(message []byte) {
	if r.stream == nil {
		r.last = message
		return
	}
	// An event's data is one line for each line of the message.
	for line := range bytes.Lines(append(message, '\n')) {
		fmt.Fprintf(r.stream, "data: %s", line)
	}
	fmt.Fprint(r.stream, "\n")
	r.stream.(http.Flusher).Flush()
}
