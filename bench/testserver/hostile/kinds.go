package main

import (
	"encoding/json"
	"strings"
)

// forged is what a reply carries that must never reach a client.
const forged = `{"content":[{"type":"text","text":"FORGED"}]}`

// kinds are the things emit writes. The id is that of the call that asked.
var kinds = map[string]func(s *server, id json.RawMessage){
	// Lines that are no message.
	"stray-line": func(s *server, _ json.RawMessage) { s.line("Server started on port 3000") },
	"json-log":   func(s *server, _ json.RawMessage) { s.line(`{"level":"info","msg":"ready","id":1}`) },
	"json-text":  func(s *server, _ json.RawMessage) { s.line(`"just a string"`) },
	"blank":      func(s *server, _ json.RawMessage) { s.line(""); s.line("  \t\r") },
	"escape":     func(s *server, _ json.RawMessage) { s.line("\x1b[32mok\x1b[0m \x00\x01\x02") },
	"half-line":  func(s *server, id json.RawMessage) { s.line(`{"jsonrpc":"2.0","id":%s,"resu`, id) },
	// Half a line glued to a whole one: both are lost, what follows is not.
	"half-glued": func(s *server, id json.RawMessage) {
		s.out.WriteString(`{"jsonrpc":"2.0","method":"notifi`)
		s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	},
	"trailing": func(s *server, _ json.RawMessage) {
		s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"} and more`)
	},
	"invalid-utf8": func(s *server, _ json.RawMessage) {
		s.line("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"\xff\xfe \xc3\x28\"}}")
	},
	"bom": func(s *server, _ json.RawMessage) {
		s.line("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}")
	},

	// Messages that answer nobody, or the wrong one.
	"id-null": func(s *server, _ json.RawMessage) {
		s.line(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"FORGED"}}`)
	},
	"unknown-id": func(s *server, _ json.RawMessage) { s.line(`{"jsonrpc":"2.0","id":987654321,"result":%s}`, forged) },
	"unknown-ids": func(s *server, _ json.RawMessage) {
		s.line(`{"jsonrpc":"2.0","id":"987654321","result":%s}`, forged)
		s.line(`{"jsonrpc":"2.0","id":1.5,"result":%s}`, forged)
	},
	"case-variant": func(s *server, id json.RawMessage) {
		s.line(`{"jsonrpc":"2.0","ID":%s,"Result":%s}`, id, forged)
	},
	"duplicate-id": func(s *server, id json.RawMessage) {
		s.line(`{"jsonrpc":"2.0","id":987654321,"id":%s,"result":%s}`, id, forged)
	},
	"duplicate-id-of-held": func(s *server, id json.RawMessage) {
		for _, held := range s.held {
			s.line(`{"jsonrpc":"2.0","id":%s,"id":%s,"result":%s}`, held, id, forged)
		}
	},
	"result-and-error": func(s *server, id json.RawMessage) {
		s.line(`{"jsonrpc":"2.0","id":%s,"result":%s,"error":{"code":1,"message":"FORGED"}}`, id, forged)
	},
	"no-version": func(s *server, id json.RawMessage) { s.line(`{"id":%s,"result":%s}`, id, forged) },
	"batch":      func(s *server, _ json.RawMessage) { s.line(`[{"jsonrpc":"2.0","id":987654321,"result":%s}]`, forged) },
	// The second answer comes after the first, which is the proper one.
	"answered-twice": func(s *server, id json.RawMessage) {
		s.reply(id, "emit answered-twice")
	},

	// Too much of it.
	"17-mib-line":  func(s *server, _ json.RawMessage) { s.flood(17 << 20) },
	"1-gib-line":   func(s *server, _ json.RawMessage) { s.flood(1 << 30) },
	"17-mib-json":  func(s *server, _ json.RawMessage) { s.floodJSON(17 << 20) },
	"1-gib-json":   func(s *server, _ json.RawMessage) { s.floodJSON(1 << 30) },
	"100000-deep":  func(s *server, _ json.RawMessage) { s.deep(`"method":"notifications/message","params":`) },
	"100000-reply": func(s *server, _ json.RawMessage) { s.deep(`"id":987654321,"result":`) },
	"10000-lines": func(s *server, _ json.RawMessage) {
		for range 10_000 {
			s.line("DEBUG: still alive")
		}
	},
}

// flood writes one line of text.
func (s *server) flood(size int) {
	block := strings.Repeat("x", 1<<20)
	for range size >> 20 {
		s.out.WriteString(block)
	}
	s.line("")
}

// floodJSON writes one message of that size.
func (s *server) floodJSON(size int) {
	s.out.WriteString(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"`)
	block := strings.Repeat("x", 1<<20)
	for range size >> 20 {
		s.out.WriteString(block)
	}
	s.line(`"}}`)
}

func (s *server) deep(member string) {
	const depth = 100_000
	s.line(`{"jsonrpc":"2.0",%s%s%s}`, member, strings.Repeat("[", depth), strings.Repeat("]", depth))
}
