package upstream

import (
	"bytes"
	"encoding/base64"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpmend/mcpmend/internal/wire"
)

// Headers of MCP over HTTP, in the spelling of http.Header.
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerParam     = "Mcp-Param-"
	headerLastEvent = "Last-Event-Id"
)

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
	// Some servers look only at the first type.
	acceptBoth = typeEvents + ", " + typeJSON
)

// ownHeader is the configured header as it may be sent. A header that names an
// idempotency key makes net/http repeat a POST by itself when a connection
// breaks, and a tool would run twice.
func ownHeader(configured http.Header) http.Header {
	h := make(http.Header, len(configured))
	for name, values := range configured {
		switch name = http.CanonicalHeaderKey(name); name {
		case "Idempotency-Key", "X-Idempotency-Key":
		default:
			h[name] = append(h[name], values...)
		}
	}
	return h
}

var ourName = []string{"mcpmend"}

func (p *httpPlace) baseHeader() http.Header {
	h := make(http.Header, len(p.header)+8)
	maps.Copy(h, p.header)
	if h["User-Agent"] == nil {
		h["User-Agent"] = ourName
	}
	return h
}

// letter is what the outside of a message says about it. It is read once, in one
// pass, because arguments can be large.
type letter struct {
	version string // the protocol version it is sent under
	method  string
	name    string // of what it is about; meaningful if named
	named   bool
}

// read finds out what the headers of a message depend on. The version is the one
// it names itself, else the one that was agreed on; before initialize nothing was.
func (l *httpLink) read(m *wire.Message) letter {
	out := letter{method: m.Method()}
	nameKey := nameKeyOf(out.method)
	wire.EachMember(m.Params(), func(key string, value []byte) {
		switch {
		case key == "_meta":
			own, _ := wire.Member(value, wire.MetaVersion)
			out.version, _ = wire.StringValue(own)
		case key == nameKey && key != "":
			out.name, out.named = wire.StringValue(value)
		}
	})
	if out.version == "" && out.method != wire.MethodInitialize {
		l.mu.Lock()
		out.version = l.version
		l.mu.Unlock()
	}
	return out
}

// nameKeyOf is the member of params that names what a request is about.
func nameKeyOf(method string) string {
	switch {
	case method == wire.MethodCall || method == "prompts/get":
		return "name"
	case method == "resources/read":
		return "uri"
	case strings.HasPrefix(method, "tasks/"):
		return "taskId"
	}
	return ""
}

func (o letter) modern() bool { return wire.EraOf(o.version) == wire.Modern }

// Values of headers that never change.
var (
	justJSON   = []string{typeJSON}
	justEvents = []string{typeEvents}
	eitherType = []string{acceptBoth}
)

// headers are those of a POST with this message. given are the Mcp-Param-* headers
// that came with it. session is the one they name, "" for none.
func (l *httpLink) headers(m *wire.Message, outside letter, given http.Header) (h http.Header, session string) {
	h = l.place.baseHeader()
	h["Content-Type"] = justJSON
	h["Accept"] = eitherType
	if outside.modern() {
		l.stamp(h, outside.version, "")
		l.place.describe(h, m, outside, given)
		return h, ""
	}
	if outside.method != wire.MethodInitialize {
		l.mu.Lock()
		session = l.session
		l.mu.Unlock()
	}
	l.stamp(h, outside.version, session)
	return h, session
}

func (l *httpLink) stamp(h http.Header, version, session string) {
	// A version that is no header value is left to the server to miss.
	if visible(version) {
		h[headerVersion] = []string{version}
	}
	if session != "" {
		h[headerSession] = []string{session}
	}
}

// describe adds what a modern request says about itself in headers, for those on
// the way who do not read bodies.
func (p *httpPlace) describe(h http.Header, m *wire.Message, outside letter, given http.Header) {
	h[headerMethod] = []string{headerValue(outside.method)}
	if outside.named {
		h[headerName] = []string{headerValue(outside.name)}
	}
	passed := false
	for key, values := range given {
		if key = http.CanonicalHeaderKey(key); strings.HasPrefix(key, headerParam) {
			h[key] = values
			passed = true
		}
	}
	if outside.named && !passed && outside.method == wire.MethodCall {
		p.params.apply(h, outside.name, m)
	}
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// headerValue is s as the modern protocol puts it into a header: as it is where
// that is safe, otherwise marked and encoded.
func headerValue(s string) string {
	plain := s == strings.Trim(s, " \t") &&
		!(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= 0x20 && s[i] <= 0x7e
	}
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// paramHeaders knows which arguments of which tools a server wants to see in
// headers. It learns from the tool lists that pass by.
type paramHeaders struct {
	mu    sync.RWMutex
	tools map[string][]paramHeader
}

type paramHeader struct {
	path   []string
	header string // canonical, with the prefix
}

const annotation = "x-mcp-header"

// learn takes in the result of a tools/list.
func (p *paramHeaders) learn(result []byte) {
	p.mu.RLock()
	known := len(p.tools)
	p.mu.RUnlock()
	if known == 0 && !bytes.Contains(result, []byte(annotation)) {
		return
	}
	list, _ := wire.Member(result, "tools")
	wire.EachElement(list, func(tool []byte) {
		raw, _ := wire.Member(tool, "name")
		name, ok := wire.StringValue(raw)
		if !ok {
			return
		}
		var found []paramHeader
		if bytes.Contains(tool, []byte(annotation)) {
			schema, _ := wire.Member(tool, "inputSchema")
			found = annotated(schema, nil, 0)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(found) == 0 {
			delete(p.tools, name)
			return
		}
		if p.tools == nil {
			p.tools = make(map[string][]paramHeader)
		}
		p.tools[name] = found
	})
}

// maxSchemaDepth bounds the walk through a schema; arguments nest less.
const maxSchemaDepth = 32

// annotated finds the properties of a schema that carry a usable annotation.
func annotated(schema []byte, path []string, depth int) []paramHeader {
	if depth == maxSchemaDepth {
		return nil
	}
	var out []paramHeader
	properties, _ := wire.Member(schema, "properties")
	wire.EachMember(properties, func(key string, property []byte) {
		here := append(slices.Clone(path), key)
		if raw, ok := wire.Member(property, annotation); ok {
			if name, ok := wire.StringValue(raw); ok && token(name) {
				out = append(out, paramHeader{path: here, header: http.CanonicalHeaderKey(headerParam + name)})
			}
		}
		out = append(out, annotated(property, here, depth+1)...)
	})
	return out
}

// token reports whether a name may be part of a header's name.
func token(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return name != ""
}

// apply adds the headers that a call of the tool should have.
func (p *paramHeaders) apply(h http.Header, tool string, m *wire.Message) {
	p.mu.RLock()
	wanted := p.tools[tool]
	p.mu.RUnlock()
	if len(wanted) == 0 {
		return
	}
	arguments, _ := wire.Member(m.Params(), "arguments")
	for _, w := range wanted {
		raw, ok := wire.Member(arguments, w.path...)
		if !ok {
			continue
		}
		if value, ok := primitive(raw); ok {
			h[w.header] = []string{headerValue(value)}
		}
	}
}

// primitive is the text of a string, a boolean or an integer that every JSON
// library reads the same. Other values have no header.
func primitive(raw []byte) (string, bool) {
	if s, ok := wire.StringValue(raw); ok {
		return s, true
	}
	switch text := string(raw); text {
	case "true", "false":
		return text, true
	default:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53-1 {
			return "", false
		}
		return strconv.FormatInt(int64(n), 10), true
	}
}
