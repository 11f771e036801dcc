package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// ErrEnvelope: valid JSON, but not a JSON-RPC 2.0 message we would let pass.
// Two readers could understand it differently, or it is no message at all.
var ErrEnvelope = errors.New("not a JSON-RPC 2.0 message")

// Kind is what sort of message it is.
type Kind uint8

const (
	Invalid Kind = iota
	Request
	Notification
	Response
)

// Span is a half-open range of bytes. The zero Span means absent.
type Span struct{ Start, End int }

// Message is one JSON-RPC message: its bytes and where its parts are.
//
// A Message owns its bytes; nobody else writes to them. Whoever is done with it
// may call Release; forgetting to costs garbage and nothing else.
type Message struct {
	Raw  []byte
	Kind Kind

	id, method, params, result, err Span
	buf                             *buffer
}

// Parse checks raw as one JSON-RPC message. It reads every byte once, copies
// nothing and allocates nothing. On failure the Kind is Invalid and the error
// wraps ErrSyntax, ErrDepth, ErrUTF8 or ErrEnvelope.
func Parse(raw []byte) (Message, error) {
	m, end, err := parse(raw)
	if err == nil && skipSpace(raw, end) != len(raw) {
		err = ErrSyntax
	}
	if err != nil {
		return Message{Raw: raw}, err
	}
	return m, nil
}

// parse reads the message at the head of raw and says where it ends.
func parse(raw []byte) (m Message, end int, err error) {
	m.Raw = raw
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return m, i, notAnObject(raw)
	}
	var version Span
	i = skipSpace(raw, i+1)
	for i < len(raw) && raw[i] != '}' {
		key := Span{Start: i + 1}
		if key.End, i, err = scanKey(raw, i); err != nil {
			return m, i, err
		}
		value := Span{Start: i}
		if i, err = scanValue(raw, i, 1); err != nil {
			return m, i, err
		}
		value.End = i
		if err := m.note(raw[key.Start:key.End-1], value, &version); err != nil {
			return m, i, err
		}
		i = skipSpace(raw, i)
		if i < len(raw) && raw[i] == ',' {
			i = skipSpace(raw, i+1)
			if i < len(raw) && raw[i] == '}' {
				return m, i, ErrSyntax
			}
			continue
		}
		if i >= len(raw) || raw[i] != '}' {
			return m, i, ErrSyntax
		}
	}
	if i >= len(raw) {
		return m, i, ErrSyntax
	}
	return m, i + 1, m.classify(version)
}

// notAnObject tells broken JSON from JSON that is merely something else.
func notAnObject(raw []byte) error {
	if err := Valid(raw); err != nil {
		return err
	}
	return ErrEnvelope
}

// note files one envelope member. A second copy of a member, or one whose name
// differs only in case, is refused: decoders disagree about which one counts.
func (m *Message) note(key []byte, value Span, version *Span) error {
	var slot *Span
	switch string(key) {
	case "jsonrpc":
		slot = version
	case "id":
		slot = &m.id
	case "method":
		slot = &m.method
	case "params":
		slot = &m.params
	case "result":
		slot = &m.result
	case "error":
		slot = &m.err
	default:
		if looksLikeEnvelope(key) {
			return fmt.Errorf("%w: ambiguous member %q", ErrEnvelope, key)
		}
		return nil
	}
	if slot.End != 0 {
		return fmt.Errorf("%w: member %q twice", ErrEnvelope, key)
	}
	*slot = value
	return nil
}

func looksLikeEnvelope(key []byte) bool {
	if len(key) > len("jsonrpc")*len(`\u006a`) { // the longest name, every letter escaped
		return false
	}
	if bytes.IndexByte(key, '\\') >= 0 {
		key = []byte(unquote(string(key)))
	}
	for _, known := range [...]string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if bytes.EqualFold(key, []byte(known)) {
			return true
		}
	}
	return false
}

func (m *Message) classify(version Span) error {
	if string(m.Raw[version.Start:version.End]) != `"2.0"` {
		return fmt.Errorf("%w: no version 2.0", ErrEnvelope)
	}
	id := m.ID()
	if id != nil && id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') && string(id) != "null" {
		return fmt.Errorf("%w: the id is neither string nor number", ErrEnvelope)
	}
	hasID := id != nil && string(id) != "null"
	m.dropNull()
	hasResult, hasError := m.result.End != 0, m.err.End != 0
	switch {
	case m.method.End != 0:
		if m.Raw[m.method.Start] != '"' || hasResult || hasError || id != nil && !hasID {
			return fmt.Errorf("%w: malformed request", ErrEnvelope)
		}
		if m.Kind = Notification; hasID {
			m.Kind = Request
		}
	case hasResult != hasError && (hasID || hasError):
		// An error without an id is legal: the peer could not read ours.
		m.Kind = Response
	default:
		return fmt.Errorf("%w: neither request nor response", ErrEnvelope)
	}
	return nil
}

// dropNull takes a null for absent where the other of result and error says something:
// servers written by hand send both members, as JSON-RPC 1.0 did, and clients read
// them so.
func (m *Message) dropNull() {
	if m.result.End == 0 || m.err.End == 0 {
		return
	}
	if result, err := string(m.at(m.result)), string(m.at(m.err)); err == "null" {
		m.err = Span{}
	} else if result == "null" {
		m.result = Span{}
	}
}

func (m *Message) at(s Span) []byte {
	if s.End == 0 {
		return nil
	}
	return m.Raw[s.Start:s.End:s.End]
}

// ID is the id as written, quotes included, or nil if there is none.
func (m *Message) ID() []byte { return m.at(m.id) }

// HasID reports whether there is an id that a reply can be matched by.
func (m *Message) HasID() bool { return m.id.End != 0 && m.Raw[m.id.Start] != 'n' }

// Params is the value of params as written, or nil.
func (m *Message) Params() []byte { return m.at(m.params) }

// Result is the value of result as written, or nil.
func (m *Message) Result() []byte { return m.at(m.result) }

// Error is the value of error as written, or nil.
func (m *Message) Error() []byte { return m.at(m.err) }

// Method is the decoded method name. The names MCP defines cost no allocation.
func (m *Message) Method() string {
	if m.method.End == 0 {
		return ""
	}
	return decodeString(m.at(m.method))
}

// WithID is the message with its id replaced, or a plain copy where there is none
// to replace. The message itself is unchanged.
func (m *Message) WithID(id []byte) Message {
	return m.splice(m.id, id)
}

// Parts is the message cut around its id, with another id in the middle: written
// one behind the other they are WithID without the copy. A message without an id,
// or a nil id, leaves everything in head.
func (m *Message) Parts(id []byte) (head, middle, tail []byte) {
	if id == nil || m.id.End == 0 {
		return m.Raw, nil, nil
	}
	return m.Raw[:m.id.Start], id, m.Raw[m.id.End:]
}

// WithParams is the message with params replaced, or added where there were none.
func (m *Message) WithParams(params []byte) Message {
	if m.params.End == 0 {
		end := bytes.LastIndexByte(m.Raw, '}')
		raw := make([]byte, 0, len(m.Raw)+len(params)+len(`,"params":`))
		raw = append(raw, m.Raw[:end]...)
		raw = append(raw, `,"params":`...)
		raw = append(raw, params...)
		return reparse(append(raw, m.Raw[end:]...))
	}
	return m.splice(m.params, params)
}

// WithResult is the response with its result replaced, or a plain copy of a
// message that has no result.
func (m *Message) WithResult(result []byte) Message {
	return m.splice(m.result, result)
}

// WithError is the response with its error replaced, or a plain copy of a message
// that has no error.
func (m *Message) WithError(e []byte) Message {
	return m.splice(m.err, e)
}

// splice replaces one envelope member and moves the places of those behind it.
func (m *Message) splice(s Span, value []byte) Message {
	if s.End == 0 {
		return m.Clone()
	}
	out := *m
	out.Raw, out.buf = Splice(m.Raw, s, value), nil
	moved := len(value) - (s.End - s.Start)
	for _, part := range [...]*Span{&out.id, &out.method, &out.params, &out.result, &out.err} {
		switch {
		case part.End == 0:
		case part.Start >= s.End:
			part.Start += moved
			part.End += moved
		case *part == s:
			part.End += moved
		}
	}
	return out
}

// reparse is for bytes put together from checked parts.
func reparse(raw []byte) Message {
	m, _, err := parse(raw)
	if err != nil {
		// Only a caller splicing something that is no JSON value gets here.
		return Message{Raw: raw}
	}
	return m
}

// Clone is a copy whose bytes are its own and not taken from a pool.
func (m *Message) Clone() Message {
	c := *m
	c.Raw, c.buf = bytes.Clone(m.Raw), nil
	return c
}

// Release gives the message's buffer back. The message must not be used again.
func (m *Message) Release() {
	if m.buf != nil {
		m.buf.release()
	}
	*m = Message{}
}

// String shows the beginning of the message, for tests and panics. Logs use the
// method and the id instead, because parameters may hold secrets.
func (m *Message) String() string {
	const most = 200
	if len(m.Raw) <= most {
		return string(m.Raw)
	}
	return string(m.Raw[:most]) + "…"
}

// ErrorOf decodes the error member of a response.
func ErrorOf(m *Message) (code int, text string) {
	var e struct {
		Code    float64 `json:"code"`
		Message string  `json:"message"`
	}
	if raw := m.Error(); raw != nil {
		_ = json.Unmarshal(raw, &e) // a malformed error is still an error, with code 0
	}
	return int(e.Code), e.Message
}

// NewRequest puts a request together. params may be nil.
func NewRequest(id []byte, method string, params []byte) Message {
	raw := make([]byte, 0, 48+len(id)+len(method)+len(params))
	raw = append(raw, `{"jsonrpc":"2.0"`...)
	if id != nil {
		raw = append(raw, `,"id":`...)
		raw = append(raw, id...)
	}
	raw = append(raw, `,"method":`...)
	raw = AppendString(raw, method)
	if params != nil {
		raw = append(raw, `,"params":`...)
		raw = append(raw, params...)
	}
	return reparse(append(raw, '}'))
}

// NewNotification puts a notification together. params may be nil.
func NewNotification(method string, params []byte) Message {
	return NewRequest(nil, method, params)
}

// NewResult puts a successful response together.
func NewResult(id, result []byte) Message {
	raw := make([]byte, 0, 40+len(id)+len(result))
	raw = append(raw, `{"jsonrpc":"2.0","id":`...)
	raw = append(raw, id...)
	raw = append(raw, `,"result":`...)
	raw = append(raw, result...)
	return reparse(append(raw, '}'))
}

// NewError puts an error response together. data may be nil.
func NewError(id []byte, code int, text string, data []byte) Message {
	raw := append([]byte(nil), `{"jsonrpc":"2.0"`...)
	if id != nil {
		raw = append(raw, `,"id":`...)
		raw = append(raw, id...)
	}
	raw = fmt.Appendf(raw, `,"error":{"code":%d,"message":`, code)
	raw = AppendString(raw, text)
	if data != nil {
		raw = append(raw, `,"data":`...)
		raw = append(raw, data...)
	}
	return reparse(append(raw, "}}"...))
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}

// StringValue decodes a JSON string value. It reports false for any other value.
func StringValue(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return decodeString(raw), true
}

func decodeString(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if known := methodName(inner); known != "" {
		return known
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	return unquote(string(inner))
}

func unquote(inner string) string {
	var s string
	if json.Unmarshal([]byte(`"`+inner+`"`), &s) != nil {
		return inner
	}
	return s
}

// methodName returns a constant for the methods that pass often.
func methodName(b []byte) string {
	switch string(b) {
	case "tools/call":
		return "tools/call"
	case "tools/list":
		return "tools/list"
	case "ping":
		return "ping"
	case "initialize":
		return "initialize"
	case "server/discover":
		return "server/discover"
	case "resources/read":
		return "resources/read"
	case "resources/list":
		return "resources/list"
	case "prompts/get":
		return "prompts/get"
	case "prompts/list":
		return "prompts/list"
	case "notifications/progress":
		return "notifications/progress"
	case "notifications/message":
		return "notifications/message"
	case "notifications/cancelled":
		return "notifications/cancelled"
	case "notifications/initialized":
		return "notifications/initialized"
	}
	return ""
}

// Disown makes Release a matter of somebody else: the bytes stay valid as long as
// the message this one was copied from keeps them.
func (m *Message) Disown() { m.buf = nil }

// IDKey is an id as its value, for telling ids apart: 3 and 3.0 are the same id, 3
// and "3" are not.
func IDKey(id []byte) string {
	if len(id) == 0 || id[0] == '"' {
		return string(id)
	}
	for _, c := range id {
		if c < '0' || c > '9' {
			v, err := strconv.ParseFloat(string(id), 64)
			if err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
				break
			}
			return strconv.FormatInt(int64(v), 10)
		}
	}
	return string(id)
}
