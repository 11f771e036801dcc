// Command hostile is a stdio server that writes, when asked to, what no server
// should: text that is no JSON-RPC, lines without end, replies nobody waits for.
// After each it answers as if nothing had happened.
//
// Tools:
//
//	emit {"what": KIND}   writes one thing of the table below, then its proper reply
//	hold                  is answered only by release, so that a call is open meanwhile
//	held                  tells how many calls are held
//	release               answers every held call, then itself
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
)

// A request as it came; only what is needed.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Name            string
		Arguments       struct{ What string }
	}
}

// server writes by hand: an encoder would refuse most of it.
type server struct {
	out  *bufio.Writer
	held []json.RawMessage // ids of open calls
}

func main() {
	log.SetFlags(0)
	s := &server{out: bufio.NewWriterSize(os.Stdout, 1<<20)}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			log.Fatalf("not JSON-RPC: %.200q", line)
		}
		if r.ID != nil && r.Method != "" {
			s.serve(&r)
		}
		if err := s.out.Flush(); err != nil {
			return
		}
	}
}

func (s *server) serve(r *request) {
	switch r.Method {
	case "initialize":
		s.line(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"hostile","version":"1"}}}`,
			r.ID, r.Params.ProtocolVersion)
	case "ping":
		s.line(`{"jsonrpc":"2.0","id":%s,"result":{}}`, r.ID)
	case "tools/list":
		s.line(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, strings.Join([]string{
			`{"name":"emit","inputSchema":{"type":"object","properties":{"what":{"type":"string"}}}}`,
			`{"name":"hold","inputSchema":{"type":"object"}}`,
			`{"name":"held","inputSchema":{"type":"object"}}`,
			`{"name":"release","inputSchema":{"type":"object"}}`,
		}, ","))
	case "tools/call":
		s.call(r)
	default:
		s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, r.ID)
	}
}

func (s *server) call(r *request) {
	switch r.Params.Name {
	case "hold":
		s.held = append(s.held, r.ID)
		return
	case "held":
		s.reply(r.ID, fmt.Sprintf("%d held", len(s.held)))
		return
	case "release":
		for _, id := range s.held {
			s.reply(id, "held and released")
		}
		s.held = nil
	case "emit":
		emit, ok := kinds[r.Params.Arguments.What]
		if !ok {
			s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such kind"}}`, r.ID)
			return
		}
		emit(s, r.ID)
	}
	s.reply(r.ID, r.Params.Name+" "+r.Params.Arguments.What)
}

func (s *server) reply(id json.RawMessage, text string) {
	s.line(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
}

func (s *server) line(format string, args ...any) {
	fmt.Fprintf(s.out, format, args...)
	s.out.WriteByte('\n')
}
