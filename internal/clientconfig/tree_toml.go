package clientconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// In a TOML file a table is not one stretch of text. It may have a header, or
// only headers of tables below it, or dotted keys, or braces. The tree shows all
// of them as objects; the notes remember how each is written.

// maxTOML is the largest TOML file we read. The decoder's time grows with the
// square of the number of keys, and no real file comes near this.
const maxTOML = 256 << 10

// A tomlTable is the note of an object.
type tomlTable struct {
	inline bool        // between braces
	sites  []*tomlSite // its headers; several only for the parent of nothing
}

// A tomlSite is a header and the key-value pairs below it, or the pairs before
// the first header.
type tomlSite struct {
	start int // of the header's line, or of the file
	body  int // behind the header's line
	end   int // behind the line of the last pair
}

// A tomlPair is the note of a member that is written as "key = value".
type tomlPair struct {
	start, end int    // the lines it takes, or between braces the pair itself
	prefix     string // the dotted part before the name, as written
	site       *tomlSite
}

type tomlBuilder struct {
	doc  *document
	skip int
	p    unstable.Parser
	site *tomlSite
}

func (d *document) parseTOML(skip int) error {
	data := d.data[skip:]
	if len(data) > maxTOML {
		return &syntaxError{skip, fmt.Sprintf("larger than %d KiB", maxTOML>>10)}
	}
	if offset := tooDeepTOML(data); offset >= 0 {
		return &syntaxError{skip + offset, "nested too deeply"}
	}
	// The low-level parser does not see keys that are defined twice.
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil {
		return d.tomlSyntaxError(skip, err)
	}
	b := &tomlBuilder{doc: d, skip: skip, site: &tomlSite{start: skip, body: skip, end: skip}}
	d.root = &node{kind: object, start: skip, end: len(d.data), note: &tomlTable{sites: []*tomlSite{b.site}}}
	table := d.root
	b.p.Reset(data)
	for b.p.NextExpression() {
		var err error
		if e := b.p.Expression(); e.Kind == unstable.KeyValue {
			err = b.pair(table, e)
		} else {
			table, err = b.header(e)
		}
		if err != nil {
			return err
		}
	}
	if b.p.Error() != nil {
		return &syntaxError{skip, "not TOML"}
	}
	return nil
}

// tooDeepTOML returns where a line has more dots than a stack can bear if each of
// them is a level, or -1. Brackets are bounded by the parser.
func tooDeepTOML(data []byte) int {
	dots := 0
	for i, c := range data {
		switch c {
		case '.':
			dots++
		case '\n':
			dots = 0
		}
		if dots > 50_000 {
			return i
		}
	}
	return -1
}

func (d *document) tomlSyntaxError(skip int, err error) error {
	var decode *toml.DecodeError
	offset := skip
	if errors.As(err, &decode) {
		row, column := decode.Position()
		if starts := newLiner("", d.data[skip:]).starts; row >= 1 && row <= len(starts) {
			offset = skip + starts[row-1] + max(column-1, 0)
		}
	}
	what := "not TOML"
	if strings.Contains(err.Error(), "already") || strings.Contains(err.Error(), "duplicate") {
		what = "a key or table that is there twice"
	}
	return &syntaxError{min(offset, len(d.data)), what}
}

func (b *tomlBuilder) header(e *unstable.Node) (*node, error) {
	keys, first, last := b.keys(e)
	if len(keys) > maxDepth {
		return nil, &syntaxError{first, "nested too deeply"}
	}
	b.site = &tomlSite{start: b.doc.lineStart(first), body: b.doc.lineEnd(last), end: b.doc.lineEnd(last)}
	n := b.doc.root
	for i, k := range keys {
		final := i == len(keys)-1
		if final && e.Kind == unstable.ArrayTable {
			return b.element(n, k), nil
		}
		n = b.descend(n, k)
		if n == nil {
			return nil, &syntaxError{first, "a table inside something that is no table"}
		}
	}
	if t, ok := n.note.(*tomlTable); ok {
		t.sites = append(t.sites, b.site)
	}
	return n, nil
}

// element adds a table to a list of tables, "[[name]]".
func (b *tomlBuilder) element(parent *node, k tomlKey) *node {
	l := parent.get(k.name)
	if l == nil {
		l = &node{kind: list, start: b.site.start, end: b.site.end}
		parent.members = append(parent.members, member{name: k.name, start: k.start, end: k.end, value: l})
	} else {
		parent.repeat(k)
	}
	n := &node{kind: object, start: b.site.start, end: b.site.end, note: &tomlTable{sites: []*tomlSite{b.site}}}
	l.elements = append(l.elements, n)
	return n
}

// descend steps into a table, making it if a key implies it. In a list of tables
// the last one is meant.
func (b *tomlBuilder) descend(n *node, k tomlKey) *node {
	next := n.get(k.name)
	if next == nil {
		next = &node{kind: object, start: k.start, end: k.end, note: &tomlTable{}}
		n.members = append(n.members, member{name: k.name, start: k.start, end: k.end, value: next})
	} else {
		n.repeat(k)
	}
	if next.kind == list && len(next.elements) > 0 {
		next = next.elements[len(next.elements)-1]
	}
	if next.kind != object {
		return nil
	}
	return next
}

// repeat remembers one more place where the name of a member is written.
func (n *node) repeat(k tomlKey) {
	m := n.member(k.name)
	m.again = append(m.again, child{k.start, k.end})
}

func (b *tomlBuilder) pair(table *node, e *unstable.Node) error {
	keys, first, last := b.keys(e)
	if len(keys) > maxDepth {
		return &syntaxError{first, "nested too deeply"}
	}
	for _, k := range keys[:len(keys)-1] {
		if table = b.descend(table, k); table == nil {
			return &syntaxError{first, "a key inside something that is no table"}
		}
	}
	value, err := b.value(e.Value(), b.valueStart(last), 0)
	if err != nil {
		return err
	}
	k := keys[len(keys)-1]
	p := &tomlPair{
		start: b.doc.lineStart(first), end: b.doc.lineEnd(value.end),
		prefix: string(b.doc.data[first:k.start]), site: b.site,
	}
	if p.start == 0 {
		p.start = b.skip // the byte order mark is nobody's
	}
	b.site.end = p.end
	table.members = append(table.members, member{name: k.name, start: k.start, end: k.end, value: value, note: p})
	return nil
}

type tomlKey struct {
	name       string
	start, end int
}

// keys returns the parts of a dotted key and its bounds.
func (b *tomlBuilder) keys(e *unstable.Node) (keys []tomlKey, first, last int) {
	for it := e.Key(); it.Next(); {
		start := b.skip + int(it.Node().Raw.Offset)
		keys = append(keys, tomlKey{string(it.Node().Data), start, start + int(it.Node().Raw.Length)})
	}
	return keys, keys[0].start, keys[len(keys)-1].end
}

// valueStart finds the value of a key that ends at an offset.
func (b *tomlBuilder) valueStart(keyEnd int) int {
	return b.doc.skipTOML(b.doc.skipTOML(keyEnd) + 1) // over the "="
}

// value makes the node of a value that starts at an offset. The parser does not
// say where lists and inline tables end, so the end is found behind the last
// element.
func (b *tomlBuilder) value(e *unstable.Node, start, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, &syntaxError{start, "nested too deeply"}
	}
	n := &node{kind: number, start: start, end: start + int(e.Raw.Length), value: string(b.p.Raw(e.Raw))}
	switch e.Kind {
	case unstable.String:
		n.kind, n.value = text, string(e.Data)
	case unstable.Bool:
		n.kind = boolean
	case unstable.Array:
		n.kind, n.value = list, ""
		at := start + 1
		for it := e.Children(); it.Next(); {
			child, err := b.value(it.Node(), b.doc.skipTOMLComma(at), depth+1)
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, child)
			at = child.end
		}
		n.end = b.doc.skipTOMLComma(at) + 1
	case unstable.InlineTable:
		n.kind, n.value, n.note = object, "", &tomlTable{inline: true}
		return n, b.inline(n, e, depth)
	}
	return n, nil
}

func (b *tomlBuilder) inline(n *node, e *unstable.Node, depth int) error {
	at := n.start + 1
	for it := e.Children(); it.Next(); {
		keys, first, last := b.keys(it.Node())
		table := n
		for _, k := range keys[:len(keys)-1] {
			if table = b.descend(table, k); table == nil || len(keys) > maxDepth {
				return &syntaxError{first, "a key inside something that is no table"}
			}
		}
		value, err := b.value(it.Node().Value(), b.valueStart(last), depth+1)
		if err != nil {
			return err
		}
		k := keys[len(keys)-1]
		table.members = append(table.members, member{name: k.name, start: k.start, end: k.end, value: value,
			note: &tomlPair{start: first, end: value.end, prefix: string(b.doc.data[first:k.start])}})
		at = value.end
	}
	n.end = b.doc.skipTOMLComma(at) + 1
	return nil
}

// skipTOML skips white space, line ends and comments.
func (d *document) skipTOML(i int) int {
	for i < len(d.data) {
		switch d.data[i] {
		case ' ', '\t', '\r', '\n':
			i++
		case '#':
			i = d.lineEnd(i)
		default:
			return i
		}
	}
	return i
}

func (d *document) skipTOMLComma(i int) int {
	i = d.skipTOML(i)
	if i < len(d.data) && d.data[i] == ',' {
		i = d.skipTOML(i + 1)
	}
	return i
}
