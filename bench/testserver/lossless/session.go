package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// A message is an incoming one, its members as they were written.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	raw    []byte
}

func parse(line []byte) (*message, error) {
	line = bytes.TrimRight(line, "\r\n")
	m := &message{raw: bytes.Clone(line)}
	return m, json.Unmarshal(line, m)
}

// modern says that the request is one of 2026-07-28, where each tells its version.
func (m *message) modern() bool {
	return strings.Contains(string(m.Params), `"io.modelcontextprotocol/protocolVersion"`)
}

// A session is what one client said so far.
type session struct {
	mu    sync.Mutex
	heard [][]byte               // notifications, as they came
	asked map[string]chan []byte // requests of ours, by id
}

func newSession() *session { return &session{asked: map[string]chan []byte{}} }

// take keeps what needs no answer: a notification, or the answer to a
// request of ours. It reports false for a request.
func (s *session) take(m *message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Method != "" && m.ID != nil:
		return false
	case m.Method != "":
		s.heard = append(s.heard, m.raw)
	default:
		if waiting, ok := s.asked[string(m.ID)]; ok {
			delete(s.asked, string(m.ID))
			waiting <- m.raw
		}
	}
	return true
}

// ask sends a request and returns the whole answer.
func (s *session) ask(send func([]byte), id, method, params string) []byte {
	answer := make(chan []byte, 1)
	s.mu.Lock()
	s.asked[id] = answer
	s.mu.Unlock()
	send(fmt.Appendf(nil, `{"vendorEnvelope":[1.0],"jsonrpc":"2.0","method":%q,"id":%s,"params":%s}`, method, id, params))
	return <-answer
}

// serve answers one request.
func (s *session) serve(m *message, send func([]byte)) {
	result, rpcError := s.answer(m, send)
	if rpcError != "" {
		send(fmt.Appendf(nil, `{"error":%s,"jsonrpc":"2.0","id":%s,"vendorEnvelope":null}`, rpcError, m.ID))
		return
	}
	// Members in an order no SDK writes, and one that nobody knows.
	reply := append([]byte(`{"vendorEnvelope":{"n":9007199254740993},"result":`), result...)
	send(fmt.Appendf(reply, `, "id" : %s,"jsonrpc":"2.0"}`, m.ID))
}

func (s *session) answer(m *message, send func([]byte)) (result []byte, rpcError string) {
	switch m.Method {
	case "initialize":
		return initialized(m), ""
	case "server/discover":
		if !m.modern() {
			return nil, `{"code":-32601,"message":"method not found"}`
		}
		return []byte(discovered), ""
	case "ping", "logging/setLevel":
		return []byte(`{}`), ""
	case "tools/list":
		return []byte(tools), ""
	case "tools/call":
		return s.call(m, send)
	case "vendor/echo":
		return echo(m), ""
	case "subscriptions/listen":
		return listen(m, send), ""
	}
	return nil, `{"code":-32601,"message":"method not found","data":{"vendor":1.0}}`
}

func (s *session) call(m *message, send func([]byte)) (result []byte, rpcError string) {
	var p struct {
		Name      string
		Arguments struct {
			Case  string
			Size  int
			Depth int
		}
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		InputResponses json.RawMessage `json:"inputResponses"`
		RequestState   json.RawMessage `json:"requestState"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return nil, fmt.Sprintf(`{"code":-32602,"message":%q}`, err.Error())
	}
	switch p.Name {
	case "say":
		if text, ok := sayings[p.Arguments.Case]; ok {
			return []byte(text), ""
		}
	case "echo":
		return echo(m), ""
	case "large":
		return large(p.Arguments.Size), ""
	case "deep":
		return deep(p.Arguments.Depth), ""
	case "fail":
		return nil, failure
	case "notify":
		for _, text := range notifications(p.Meta.ProgressToken, m.modern()) {
			send([]byte(text))
		}
		return []byte(`{"content":[],"resultType":"complete"}`), ""
	case "ask":
		if !m.modern() {
			return s.askAll(send), ""
		}
		if p.InputResponses == nil {
			return []byte(inputRequired), ""
		}
		return fmt.Appendf(nil, `{"content":[],"resultType":"complete","inputResponses":%s,"requestState":%s}`, p.InputResponses, p.RequestState), ""
	case "heard":
		return s.recall(), ""
	}
	return nil, `{"code":-32602,"message":"unknown tool or case"}`
}

// askAll sends every kind of request to the client, one after another, with ids
// of both types, and returns the answers as they came.
func (s *session) askAll(send func([]byte)) []byte {
	var answers [][]byte
	for _, r := range requests {
		answers = append(answers, resultOf(s.ask(send, r.id, r.method, r.params)))
	}
	return fmt.Appendf(nil, `{"content":[],"answers":[%s]}`, bytes.Join(answers, []byte(",")))
}

// resultOf leaves the id out: it is ours, and a layer between may have had to
// use another one on the way.
func resultOf(answer []byte) []byte {
	var m struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(answer, &m); err != nil {
		return []byte(`"not JSON"`)
	}
	if m.Error != nil {
		return m.Error
	}
	return m.Result
}

func (s *session) recall() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Appendf(nil, `{"content":[],"heard":[%s]}`, bytes.Join(s.heard, []byte(",")))
}
