package clientconfig

import (
	"bytes"
	"sort"
	"strconv"
	"unicode/utf8"
)

type kind int

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

func (k kind) String() string {
	return [...]string{"null", "a truth value", "a number", "a text", "a list", "an object"}[k]
}

// kinds are the kinds as the table of clients writes them.
var kinds = map[string]kind{"boolean": boolean, "number": number, "text": text, "list": list, "object": object}

// A node is one value of a document, whatever the format.
type node struct {
	kind  kind
	value string // of a scalar; a text is decoded, other scalars are as written
	// start and end are where the value stands in the file. A table of a TOML file
	// that is spread over the file has the place where it first appears.
	start, end int
	members    []member // of an object, in the order of the file
	elements   []*node  // of a list
	// borrowed values stand elsewhere, behind a YAML alias or merge key. Editing
	// one would change the others that borrow it.
	borrowed bool
	// note is what the editor of the format wants to remember.
	note any
	// last finds the members of a large object; it covers the first indexed ones.
	last    map[string]int
	indexed int
}

type member struct {
	name       string
	start, end int // of the name
	value      *node
	note       any
	// again is where else the name is written: each header of a table below a TOML
	// table repeats it.
	again []child
}

// member returns the last member of that name: where a name stands twice, that
// is the one clients see.
func (n *node) member(name string) *member {
	if n == nil {
		return nil
	}
	if len(n.members) > 16 {
		n.index()
		if i, ok := n.last[name]; ok {
			return &n.members[i]
		}
		return nil
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].name == name {
			return &n.members[i]
		}
	}
	return nil
}

// index makes looking up a member cheap, so that a file with a million of them
// does not take a million times a million steps.
func (n *node) index() {
	if n.last == nil {
		n.last = make(map[string]int)
	}
	for ; n.indexed < len(n.members); n.indexed++ {
		n.last[n.members[n.indexed].name] = n.indexed
	}
}

// indexAll leaves nothing to be done by later look-ups, which may come from
// several goroutines.
func (n *node) indexAll() {
	if len(n.members) > 16 {
		n.index()
	}
	for _, m := range n.members {
		m.value.indexAll()
	}
	for _, e := range n.elements {
		e.indexAll()
	}
}

// get returns the value of a member, or nil.
func (n *node) get(name string) *node {
	if m := n.member(name); m != nil {
		return m.value
	}
	return nil
}

// find follows a path and returns nil where it leads nowhere.
func (n *node) find(path Path) *node {
	for _, name := range path {
		n = n.step(name)
	}
	return n
}

func (n *node) step(name string) *node {
	if n == nil {
		return nil
	}
	if n.kind != list {
		return n.get(name)
	}
	if i, ok := index(name); ok && i < len(n.elements) {
		return n.elements[i]
	}
	return nil
}

// index reads a position in a list. "01" is none, so that a path has one spelling.
func index(name string) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == name
}

// A document is a parsed file.
type document struct {
	format Format
	data   []byte // all of it, with the byte order mark if there is one
	root   *node  // nil for a file without content
	// spots are things that the grammar allows here and that a client may not.
	spots []spot
}

type spot struct {
	kind   Kind
	offset int
	path   Path
	name   string // what is repeated, for DuplicateKey
}

// A syntaxError says where a file stops being what it should be.
type syntaxError struct {
	offset int
	what   string // never quotes the file: there may be a secret at that place
}

func (e *syntaxError) Error() string { return e.what }

const (
	byteOrderMark = "\ufeff"
	maxDepth      = 500 // of a document; the deepest real ones have about ten levels
)

// parse reads a document of any format. The error is a *syntaxError.
func parse(format Format, data []byte) (*document, error) {
	doc := &document{format: format, data: data}
	if what := notText(data); what != "" {
		return doc, &syntaxError{0, what}
	}
	skip := 0
	if bytes.HasPrefix(data, []byte(byteOrderMark)) {
		skip = len(byteOrderMark)
	}
	var err error
	switch format {
	case TOML:
		err = doc.parseTOML(skip)
	case YAML:
		err = doc.parseYAML(skip)
	default:
		err = doc.parseJSON(skip)
	}
	if err != nil {
		doc.root = nil
	}
	if doc.root != nil {
		doc.root.indexAll()
	}
	return doc, err
}

// notText recognises what some Windows tools write when they are not told otherwise.
func notText(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return "the file is UTF-16, not UTF-8"
	case bytes.IndexByte(data, 0) >= 0:
		return "the file is not text"
	case !utf8.Valid(data):
		return "the file is not UTF-8"
	}
	return ""
}

// newline is how the lines of the file end: as the first one does.
func (d *document) newline() string {
	if i := bytes.IndexByte(d.data, '\n'); i > 0 && d.data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineStart and lineEnd are the bounds of the line around an offset; lineEnd is
// behind the line break, if there is one.
func (d *document) lineStart(offset int) int {
	return bytes.LastIndexByte(d.data[:offset], '\n') + 1
}

func (d *document) lineEnd(offset int) int {
	if i := bytes.IndexByte(d.data[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(d.data)
}

// indent is the white space at the start of the line around an offset.
func (d *document) indent(offset int) string {
	start := d.lineStart(offset)
	if start == 0 && bytes.HasPrefix(d.data, []byte(byteOrderMark)) {
		start = min(len(byteOrderMark), offset)
	}
	end := start
	for end < len(d.data) && (d.data[end] == ' ' || d.data[end] == '\t') {
		end++
	}
	return string(d.data[start:end])
}

// firstOnLine reports whether only white space stands before an offset on its line.
func (d *document) firstOnLine(offset int) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(d.data[d.lineStart(offset):offset], []byte(byteOrderMark)))) == 0
}

// A liner turns offsets into positions, fastest in rising order. It is for one
// goroutine.
type liner struct {
	file   string
	data   []byte
	starts []int
	// last is the answer before, from where counting goes on in the same line: a
	// file may be one line of megabytes.
	last   Position
	offset int
}

func newLiner(file string, data []byte) *liner {
	l := &liner{file: file, data: data, starts: []int{0}}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

func (l *liner) at(offset int) Position {
	offset = max(0, min(offset, len(l.data)))
	line := sort.SearchInts(l.starts, offset+1)
	start, column := l.starts[line-1], 1
	if line == l.last.Line && offset >= l.offset {
		start, column = l.offset, l.last.Column
	}
	before := l.data[start:offset]
	if start == 0 {
		before = bytes.TrimPrefix(before, []byte(byteOrderMark))
	}
	l.offset, l.last = offset, Position{l.file, line, column + utf8.RuneCount(before)}
	return l.last
}
