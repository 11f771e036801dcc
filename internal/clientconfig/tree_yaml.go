package clientconfig

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A yamlNote is what editing a value needs to know. The parser says where a value
// begins; where it ends is found here, and end is -1 where that is not certain,
// such as for a text over several lines.
type yamlNote struct {
	style  yaml.Style
	flow   bool // between brackets
	column int  // of the first character, from 0
	// pinned values have an anchor or a tag before them, which an edit must keep.
	pinned bool
}

type yamlBuilder struct {
	doc     *document
	skip    int
	starts  []int // of lines, as YAML counts them
	aliased int   // how deep we are behind aliases
	budget  int
}

// yamlBudget bounds the values that aliases may unfold to.
const yamlBudget = 20_000

func (d *document) parseYAML(skip int) (err error) {
	// The parser reports most of its errors by panicking and catches its own kind
	// only. Nothing in a user's file may take us down.
	defer func() {
		if p := recover(); p != nil {
			err = &syntaxError{skip, "not YAML"}
		}
	}()
	data := d.data[skip:]
	var top yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&top); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return yamlSyntaxError(data, skip)
	}
	if len(top.Content) == 0 {
		return nil
	}
	b := &yamlBuilder{doc: d, skip: skip, starts: yamlLines(data), budget: yamlBudget}
	root, err := b.node(top.Content[0], nil, false, 0)
	if err != nil {
		return err
	}
	if root.kind != null {
		d.root = root
	}
	return nil
}

// yamlSyntaxError finds the line of a mistake. The parser's own error names the
// start of the block around it, and may quote the file. The lines before the
// mistake are good YAML, so it is in the first line with which they are not.
//
// In a huge file only the file is named: finding the line parses it many times.
func yamlSyntaxError(data []byte, skip int) error {
	what := "not YAML; often the indentation, a tab, or a colon in a text without quotes"
	if len(data) > 256<<10 {
		return &syntaxError{skip, what}
	}
	starts := append(yamlLines(data), len(data))
	line := sort.Search(len(starts)-1, func(i int) bool {
		var n yaml.Node
		err := yaml.NewDecoder(bytes.NewReader(data[:starts[i+1]])).Decode(&n)
		return err != nil && !errors.Is(err, io.EOF)
	})
	return &syntaxError{skip + starts[line], what}
}

// yamlLines returns where lines start. YAML has more line breaks than other
// formats, and positions count all of them.
func yamlLines(data []byte) []int {
	starts := []int{0}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		i += size
		switch r {
		case '\r':
			if i < len(data) && data[i] == '\n' {
				i++
			}
			starts = append(starts, i)
		case '\n', '\u0085', '\u2028', '\u2029':
			starts = append(starts, i)
		}
	}
	return starts
}

func (b *yamlBuilder) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(b.starts) {
		return len(b.doc.data)
	}
	i := b.skip + b.starts[n.Line-1]
	for c := 1; c < n.Column && i < len(b.doc.data); c++ {
		_, size := utf8.DecodeRune(b.doc.data[i:])
		i += size
	}
	return i
}

func (b *yamlBuilder) node(y *yaml.Node, path Path, flow bool, depth int) (*node, error) {
	if b.aliased > 0 {
		b.budget--
	}
	if b.budget < 0 || depth > maxDepth {
		return nil, &syntaxError{b.offset(y), "nested too deeply, or aliases that unfold to too much"}
	}
	start := b.offset(y)
	if y.Kind == yaml.AliasNode {
		b.aliased++
		n, err := b.node(y.Alias, path, flow, depth+1)
		b.aliased--
		if err != nil {
			return nil, err
		}
		n.borrow()
		n.start, n.end = start, start+1+len(y.Value)
		return n, nil
	}
	note := yamlNote{style: y.Style, column: y.Column - 1, pinned: y.Anchor != "" || y.Style&yaml.TaggedStyle != 0}
	note.flow = flow || y.Style&yaml.FlowStyle != 0
	n := &node{start: start, end: -1}
	var err error
	switch y.Kind {
	case yaml.ScalarNode:
		n.kind, n.value = yamlScalar(y)
		if !note.pinned {
			n.end = b.scalarEnd(y, start)
		}
	case yaml.SequenceNode:
		n.kind = list
		for i, c := range y.Content {
			child, err := b.node(c, path.then(strconv.Itoa(i)), note.flow, depth+1)
			if err != nil {
				return nil, err
			}
			n.elements = append(n.elements, child)
		}
	case yaml.MappingNode:
		n.kind = object
		err = b.mapping(n, y, path, note.flow, depth)
	default:
		return nil, &syntaxError{start, "not a value"}
	}
	n.note = note
	if note.flow && n.kind >= list && !note.pinned {
		n.end = b.flowEnd(n)
	}
	return n, err
}

func (b *yamlBuilder) mapping(n *node, y *yaml.Node, path Path, flow bool, depth int) error {
	seen := make(map[string]int)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
			continue
		}
		if key.Kind != yaml.ScalarNode {
			continue // a list or an object as a name; no client has any
		}
		at := path.then(key.Value)
		value, err := b.node(y.Content[i+1], at, flow, depth+1)
		if err != nil {
			return err
		}
		start := b.offset(key)
		if first, twice := seen[key.Value]; twice {
			b.doc.spots = append(b.doc.spots, spot{DuplicateKey, n.members[first].start, at, key.Value})
		}
		seen[key.Value] = len(n.members)
		n.members = append(n.members, member{name: key.Value, start: start, end: b.scalarEnd(key, start), value: value})
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Tag == "!!merge" {
			if err := b.merge(n, y.Content[i+1], path, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// merge adds the members that "<<" brings in, which never replace own ones.
func (b *yamlBuilder) merge(n *node, from *yaml.Node, path Path, depth int) error {
	sources := []*yaml.Node{from}
	if from.Kind == yaml.SequenceNode {
		sources = from.Content
	}
	for _, s := range sources {
		src, err := b.node(s, path, true, depth+1)
		if err != nil {
			return err
		}
		for _, m := range src.members {
			if n.member(m.name) == nil {
				m.value.borrow()
				m.start, m.end = b.offset(s), b.offset(s)
				n.members = append(n.members, m)
			}
		}
	}
	return nil
}

func (n *node) borrow() {
	if n.borrowed {
		return
	}
	n.borrowed = true
	for _, m := range n.members {
		m.value.borrow()
	}
	for _, e := range n.elements {
		e.borrow()
	}
}

func yamlScalar(y *yaml.Node) (kind, string) {
	switch y.ShortTag() {
	case "!!null":
		return null, "null"
	case "!!bool":
		return boolean, y.Value
	case "!!int", "!!float":
		return number, y.Value
	}
	return text, y.Value
}

// scalarEnd returns where a scalar ends, or -1.
func (b *yamlBuilder) scalarEnd(y *yaml.Node, start int) int {
	data := b.doc.data
	if start >= len(data) {
		return start
	}
	switch {
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return -1
	case y.Style&yaml.DoubleQuotedStyle != 0:
		for i := start + 1; i < len(data); i++ {
			switch data[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case y.Style&yaml.SingleQuotedStyle != 0:
		for i := start + 1; i < len(data); i++ {
			if data[i] != '\'' {
				continue
			}
			if i+1 < len(data) && data[i+1] == '\'' {
				i++
				continue
			}
			return i + 1
		}
	case bytes.HasPrefix(data[start:], []byte(y.Value)):
		return start + len(y.Value) // without quotes there are no escapes
	}
	return -1
}

// flowEnd finds the closing bracket behind the last child.
func (b *yamlBuilder) flowEnd(n *node) int {
	at := n.start + 1
	for _, e := range n.elements {
		at = yamlMax(at, e.end, e.borrowed)
	}
	for _, m := range n.members {
		at = yamlMax(at, m.value.end, m.value.borrowed)
	}
	if at < 0 {
		return -1
	}
	at = b.doc.skipTOMLComma(at) // the same white space and comments
	if at < len(b.doc.data) && (b.doc.data[at] == ']' || b.doc.data[at] == '}') {
		return at + 1
	}
	return -1
}

// yamlMax is the larger of two ends, or -1 once one of them is not known.
func yamlMax(a, b int, borrowed bool) int {
	if a < 0 || b < 0 || borrowed {
		return -1
	}
	return max(a, b)
}
