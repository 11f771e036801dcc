// Package rpc reads and writes JSON-RPC messages by hand, for every part of
// the benchmark that speaks MCP. No SDK stands in between, so a defect of one
// cannot hide a defect of the system under test.
package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Message is one JSON-RPC message: a request, a notification or a response.
type Message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error
}

// Error is the error member of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// Versions of the protocol on either side of the 2026-07-28 divide.
const (
	Legacy = "2025-11-25"
	Modern = "2026-07-28"
)

// Keys of the metadata that every modern request carries.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// IsRequest reports whether m asks for an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && len(m.ID) > 0 }

// IsResponse reports whether m is an answer.
func (m *Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// Parse reads one message. Member names are matched exactly: encoding/json
// would take "Result" for "result", which is one of the faults we inject.
func Parse(data []byte) (*Message, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	m := &Message{ID: members["id"], Params: members["params"], Result: members["result"]}
	if bytes.Equal(m.ID, []byte("null")) {
		m.ID = nil
	}
	if raw, ok := members["method"]; ok {
		if err := json.Unmarshal(raw, &m.Method); err != nil {
			return nil, err
		}
	}
	if raw, ok := members["error"]; ok {
		m.Error = new(Error)
		if err := json.Unmarshal(raw, m.Error); err != nil {
			return nil, err
		}
	}
	if m.Method == "" && m.Result == nil && m.Error == nil {
		return nil, fmt.Errorf("neither a method nor a result nor an error")
	}
	return m, nil
}

// Encode writes m as one line without the newline.
func (m *Message) Encode() []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0"`)
	if len(m.ID) > 0 {
		b.WriteString(`,"id":`)
		b.Write(m.ID)
	}
	if m.Method != "" {
		b.WriteString(`,"method":`)
		b.WriteString(strconv.Quote(m.Method))
	}
	if len(m.Params) > 0 {
		b.WriteString(`,"params":`)
		b.Write(m.Params)
	}
	if m.Result != nil {
		b.WriteString(`,"result":`)
		b.Write(m.Result)
	}
	if m.Error != nil {
		b.WriteString(`,"error":`)
		b.Write(JSON(m.Error))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Answer is a successful response to the request with this id.
func Answer(id json.RawMessage, result any) *Message {
	return &Message{ID: id, Result: JSON(result)}
}

// Refuse is an error response to the request with this id.
func Refuse(id json.RawMessage, code int, format string, args ...any) *Message {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return &Message{ID: id, Error: &Error{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// JSON encodes a value that is known to be encodable.
func JSON(v any) json.RawMessage {
	if raw, ok := v.(json.RawMessage); ok {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
