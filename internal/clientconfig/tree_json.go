package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// A jsonNote is what editing an object or a list needs to know.
type jsonNote struct {
	trailingComma bool
}

func (d *document) parseJSON(skip int) error {
	data := d.data[skip:]
	if offset := tooDeep(data); offset >= 0 {
		return &syntaxError{skip + offset, "nested too deeply"}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		d.spots = append(d.spots, spot{kind: Empty})
		return nil
	}
	// hujson wants a line break behind a comment in the last line; clients do not.
	v, err := hujson.Parse(append(data[:len(data):len(data)], '\n'))
	if err != nil {
		return jsonSyntaxError(data, skip, err)
	}
	b := jsonBuilder{doc: d, skip: skip}
	d.root = b.node(&v, nil)
	return nil
}

// tooDeep returns where nesting passes maxDepth, or -1. The parser recurses and
// a stack overflow cannot be caught.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i += max(commentLen(data[i:])-1, 0)
		}
	}
	return -1
}

// commentLen is the length of the comment at the start of s, or 0.
func commentLen(s []byte) int {
	var end string
	switch {
	case bytes.HasPrefix(s, []byte("//")):
		end = "\n"
	case bytes.HasPrefix(s, []byte("/*")):
		end = "*/"
	default:
		return 0
	}
	if i := bytes.Index(s[2:], []byte(end)); i >= 0 {
		return 2 + i + len(end)
	}
	return len(s)
}

// jsonSyntaxError keeps the place and the kind of the error and drops its text,
// which may quote a literal.
func jsonSyntaxError(data []byte, skip int, err error) error {
	var line, column int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d", &line, &column); scanErr != nil {
		line, column = 1, 1
	}
	starts := newLiner("", data).starts
	offset := len(data)
	if line <= len(starts) {
		offset = min(starts[line-1]+column-1, len(data))
	}
	what := "a character that does not belong here"
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		what = "the file ends too early"
	case strings.Contains(err.Error(), "invalid literal"):
		what = "a word or text that is not JSON"
	case strings.Contains(err.Error(), "after object name"):
		what = "a colon is missing"
	case strings.Contains(err.Error(), "after object value"), strings.Contains(err.Error(), "after array value"):
		what = "a comma or a closing bracket is missing"
	case strings.Contains(err.Error(), "after top-level value"):
		what = "something stands behind the end"
	}
	return &syntaxError{skip + offset, what}
}

type jsonBuilder struct {
	doc  *document
	skip int
}

func (b *jsonBuilder) spot(k Kind, offset int, path Path, name string) {
	b.doc.spots = append(b.doc.spots, spot{k, offset, path, name})
}

// extra looks at the white space and comments that end before an offset.
func (b *jsonBuilder) extra(e hujson.Extra, end int, path Path) {
	if !e.IsStandard() {
		comment := strings.IndexByte(string(e), '/')
		b.spot(Comment, end-len(e)+comment, path, "")
	}
}

func (b *jsonBuilder) node(v *hujson.Value, path Path) *node {
	n := &node{start: b.skip + v.StartOffset, end: b.skip + v.EndOffset}
	b.extra(v.BeforeExtra, n.start, path)
	b.extra(v.AfterExtra, n.end+len(v.AfterExtra), path)
	switch x := v.Value.(type) {
	case hujson.Literal:
		n.kind, n.value = jsonLiteral(x)
	case *hujson.Object:
		n.kind = object
		b.object(n, x, path)
	case *hujson.Array:
		n.kind = list
		for i := range x.Elements {
			at := path
			if x.Elements[i].Value.Kind() == '{' || x.Elements[i].Value.Kind() == '[' {
				at = path.then(strconv.Itoa(i))
			}
			n.elements = append(n.elements, b.node(&x.Elements[i], at))
		}
		trailing := len(x.Elements) > 0 && x.Elements[len(x.Elements)-1].AfterExtra != nil
		b.close(n, trailing, x.AfterExtra, path)
	}
	return n
}

func (b *jsonBuilder) object(n *node, x *hujson.Object, path Path) {
	seen := make(map[string]int)
	for i := range x.Members {
		name, _ := x.Members[i].Name.Value.(hujson.Literal)
		m := member{name: name.String(), start: b.skip + x.Members[i].Name.StartOffset, end: b.skip + x.Members[i].Name.EndOffset}
		at := path.then(m.name)
		b.extra(x.Members[i].Name.BeforeExtra, m.start, at)
		b.extra(x.Members[i].Name.AfterExtra, m.end+len(x.Members[i].Name.AfterExtra), at)
		m.value = b.node(&x.Members[i].Value, at)
		if first, twice := seen[m.name]; twice {
			b.spot(DuplicateKey, n.members[first].start, at, m.name)
		}
		seen[m.name] = i
		n.members = append(n.members, m)
	}
	trailing := len(x.Members) > 0 && x.Members[len(x.Members)-1].Value.AfterExtra != nil
	b.close(n, trailing, x.AfterExtra, path)
}

func (b *jsonBuilder) close(n *node, trailing bool, after hujson.Extra, path Path) {
	n.note = jsonNote{trailing}
	if trailing {
		b.spot(TrailingComma, n.end-1-len(after)-1, path, "")
	}
	b.extra(after, n.end-1, path)
}

func jsonLiteral(l hujson.Literal) (kind, string) {
	switch l.Kind() {
	case '"':
		return text, l.String()
	case 't', 'f':
		return boolean, string(l)
	case '0':
		return number, string(l)
	}
	return null, "null"
}
