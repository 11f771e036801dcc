package front

import (
	"bytes"
	"context"
	"maps"
	"math"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// mirrors knows which arguments of which tools must be repeated in headers. A
// tool says so in its schema; a server behind stdio never sees the headers, so
// nobody but us can check that they say the same.
//
// It learns from the tool lists that pass by. Only if a tool is called before
// any list was seen does it ask for one, once.
type mirrors struct {
	mu     sync.Mutex
	known  bool
	asking chan struct{} // non-nil while somebody asks
	byTool map[string][]mirror
}

// mirror is one argument and the header that repeats it.
type mirror struct {
	path   []string
	header string
}

const (
	askPatience = 5 * time.Second
	askPages    = 20
)

var (
	annotation  = []byte(`"x-mcp-header"`)
	listChanged = "notifications/tools/list_changed"
)

// notice looks at a message of the server for word that the tools have changed.
func (k *mirrors) notice(m *wire.Message) {
	if m.Method() == listChanged {
		k.mu.Lock()
		k.known, k.byTool = false, nil
		k.mu.Unlock()
	}
}

// learn takes in a tool list. One that was asked for with a cursor adds to what
// is known; one without replaces it.
func (k *mirrors) learn(request, reply *wire.Message) {
	result := reply.Result()
	if result == nil {
		return
	}
	_, more := wire.Member(request.Params(), "cursor")
	found := mirrorsIn(result)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !more {
		k.known, k.byTool = true, found
		return
	}
	if k.byTool == nil {
		k.byTool = found
		return
	}
	maps.Copy(k.byTool, found)
}

// mirrorsIn finds the annotations in the result of tools/list. Most lists have
// none, and finding that out is cheap.
func mirrorsIn(result []byte) map[string][]mirror {
	if !bytes.Contains(result, annotation) {
		return nil
	}
	out := make(map[string][]mirror)
	tools, _ := wire.Member(result, "tools")
	wire.EachElement(tools, func(tool []byte) {
		if !bytes.Contains(tool, annotation) {
			return
		}
		value, _ := wire.Member(tool, "name")
		name, _ := wire.StringValue(value)
		schema, _ := wire.Member(tool, "inputSchema")
		if list := appendMirrors(nil, schema, nil); len(list) > 0 {
			out[name] = list
		}
	})
	return out
}

func appendMirrors(list []mirror, schema []byte, path []string) []mirror {
	properties, _ := wire.Member(schema, "properties")
	wire.EachMember(properties, func(key string, property []byte) {
		if !bytes.Contains(property, annotation) {
			return
		}
		at := append(slices.Clone(path), key)
		value, _ := wire.Member(property, "x-mcp-header")
		if name, _ := wire.StringValue(value); name != "" {
			list = append(list, mirror{at, textproto.CanonicalMIMEHeaderKey(headerParam + name)})
		}
		list = appendMirrors(list, property, at)
	})
	return list
}

// check says what is wrong with the headers of a tool call, "" if nothing is.
func (k *mirrors) check(r *http.Request, session *catalogue.Session, m *wire.Message) string {
	value, _ := wire.Member(m.Params(), "name")
	name, _ := wire.StringValue(value)
	list := k.of(r.Context(), session, m, name)
	if len(list) == 0 {
		return ""
	}
	arguments, _ := wire.Member(m.Params(), "arguments")
	for _, one := range list {
		if text := one.check(r.Header, arguments); text != "" {
			return text
		}
	}
	return ""
}

func (one *mirror) check(header http.Header, arguments []byte) string {
	said := header[one.header]
	value, ok := wire.Member(arguments, one.path...)
	if !ok || string(value) == "null" {
		if len(said) > 0 {
			return one.header + " repeats an argument that is not there"
		}
		return ""
	}
	if len(said) != 1 {
		return one.header + " must repeat the argument " + strings.Join(one.path, ".") + " once"
	}
	text, ok := decodeHeader(said[0])
	if !ok {
		return one.header + " is not valid base64"
	}
	if !mirrored(text, value) {
		return one.header + " and the argument " + strings.Join(one.path, ".") + " differ"
	}
	return ""
}

// mirrored reports whether a header says the same as a JSON value.
func mirrored(text string, value []byte) bool {
	switch value[0] {
	case '"':
		s, _ := wire.StringValue(value)
		return s == text
	case '{', '[':
		return false
	}
	if text == string(value) {
		return true
	}
	// 1.0 and 1 are one integer.
	a, err1 := strconv.ParseFloat(text, 64)
	b, err2 := strconv.ParseFloat(string(value), 64)
	return err1 == nil && err2 == nil && a == b && a == math.Trunc(a) && math.Abs(a) < 1<<53
}

// of is what is known about a tool. If nothing is known about any, the server is
// asked; whoever comes meanwhile waits for that answer.
func (k *mirrors) of(ctx context.Context, session *catalogue.Session, m *wire.Message, tool string) []mirror {
	k.mu.Lock()
	wait, first := k.asking, false
	if !k.known && wait == nil {
		wait, first = make(chan struct{}), true
		k.asking = wait
	}
	known := k.known
	k.mu.Unlock()
	if first {
		k.ask(ctx, session, m)
	} else if !known {
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byTool[tool]
}

// ask fetches the list in the name of the client whose call needs it. A server
// that gives none, or not in time, is taken for one without annotations: asking
// again before each call would be worse. One that cannot be reached is not.
func (k *mirrors) ask(ctx context.Context, session *catalogue.Session, m *wire.Message) {
	limited, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	meta, _ := wire.Member(m.Params(), "_meta")
	params := wire.Set(nil, wire.Remove(meta, "progressToken"), "_meta")
	found := make(map[string][]mirror)
	reached := true
	for range askPages {
		reply := askOnce(limited, session, wire.NewRequest([]byte(`"mcpmend-tools"`), wire.MethodTools, params))
		if code, _ := wire.ErrorOf(&reply); code == wire.CodeServerTrouble {
			reached = false
		}
		result := reply.Result()
		maps.Copy(found, mirrorsIn(result))
		cursor, more := wire.Member(result, "nextCursor")
		if !more || string(cursor) == "null" {
			break
		}
		params = wire.Set(params, cursor, "cursor")
		reply.Release()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.asking)
	k.asking = nil
	if !k.known && reached && ctx.Err() == nil {
		k.known, k.byTool = true, found
	}
}

// askOnce waits for the reply to a request of our own; it is empty if none came.
func askOnce(ctx context.Context, session *catalogue.Session, m wire.Message) wire.Message {
	got := make(chan catalogue.Reply, 1)
	call := &catalogue.Call{
		Msg:  m,
		On:   func(m wire.Message) { m.Release() },
		Done: func(r catalogue.Reply) { got <- r },
	}
	session.Do(call)
	select {
	case r := <-got:
		return r.Msg
	case <-ctx.Done():
		session.Cancel(call, nil)
		return wire.Message{}
	}
}
