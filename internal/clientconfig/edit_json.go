package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// setJSON replaces or adds one value; only the last step of the path may be new.
func (d *document) setJSON(path Path, value any) ([]splice, error) {
	if len(path) == 0 { // an empty file
		at := len(d.data)
		return []splice{{at, at, d.writeJSON(value, "", d.unit(), true) + d.newline()}}, nil
	}
	parent := d.root.find(path[:len(path)-1])
	name := path[len(path)-1]
	if old := parent.step(name); old != nil {
		many := d.isBroken(old)
		if len(old.members) == 0 && len(old.elements) == 0 {
			many = d.isBroken(parent)
		}
		return []splice{{old.start, old.end, d.writeJSON(value, d.indent(old.start), d.unit(), many)}}, nil
	}
	switch {
	case parent.kind == object:
		return d.insertJSON(parent, quoteJSON(name)+": ", value), nil
	case parent.kind == list && name == strconv.Itoa(len(parent.elements)):
		return d.insertJSON(parent, "", value), nil
	}
	return nil, errors.New("there is a value on the way that has no such part")
}

// isBroken reports whether an object or list takes more than one line.
func (d *document) isBroken(n *node) bool { return bytes.IndexByte(d.data[n.start:n.end], '\n') >= 0 }

// insertJSON adds a member or element behind the last one.
func (d *document) insertJSON(parent *node, label string, value any) []splice {
	last := lastChild(parent)
	if last == nil {
		return d.fillJSON(parent, label, value)
	}
	if !d.opensLine(last.start) {
		// Its neighbours share a line, so it joins them.
		comma := ","
		at := last.end
		if parent.note.(jsonNote).trailingComma {
			comma, at = "", d.behindComma(at)
		}
		return []splice{{at, at, comma + " " + label + d.writeJSON(value, "", "", false)}}
	}
	indent := d.indent(last.start)
	line := d.newline() + indent + label + d.writeJSON(value, indent, d.unit(), true)
	if parent.note.(jsonNote).trailingComma {
		at := d.restOfLine(d.behindComma(last.end), parent.end-1)
		return []splice{{at, at, line + ","}}
	}
	at := d.restOfLine(last.end, parent.end-1)
	if at == last.end {
		return []splice{{at, at, "," + line}}
	}
	return []splice{{last.end, last.end, ","}, {at, at, line}}
}

// opensLine is like firstOnLine, but a comment may stand before the value.
func (d *document) opensLine(offset int) bool {
	line := bytes.TrimPrefix(d.data[d.lineStart(offset):offset], []byte(byteOrderMark))
	for line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("/*")); line = bytes.TrimSpace(line) {
		line = line[commentLen(line):]
	}
	return len(line) == 0
}

// fillJSON puts the first member or element into an empty object or list, behind
// the comments that may be in it.
func (d *document) fillJSON(parent *node, label string, value any) []splice {
	outer := d.indent(parent.start)
	nl := d.newline()
	inside := d.data[parent.start+1 : parent.end-1]
	if label == "" && !bytes.Contains(inside, []byte("\n")) && len(bytes.TrimSpace(inside)) == 0 {
		return []splice{{parent.start + 1, parent.end - 1, d.writeJSON(value, outer, d.unit(), false)}}
	}
	indent := outer + d.unit()
	line := nl + indent + label + d.writeJSON(value, indent, d.unit(), true) + nl + outer
	kept := bytes.TrimRight(inside, " \t\r\n")
	return []splice{{parent.start + 1 + len(kept), parent.end - 1, line}}
}

// A child is a member or element with its bounds, the name included.
type child struct{ start, end int }

func children(n *node) []child {
	var all []child
	for _, m := range n.members {
		all = append(all, child{m.start, m.value.end})
	}
	for _, e := range n.elements {
		all = append(all, child{e.start, e.end})
	}
	return all
}

func lastChild(n *node) *child {
	all := children(n)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// behindComma finds the comma behind a value and returns the offset after it.
func (d *document) behindComma(at int) int {
	for at < len(d.data) {
		switch {
		case d.data[at] == ',':
			return at + 1
		case d.data[at] == '/':
			at += max(commentLen(d.data[at:]), 1)
		default:
			at++
		}
	}
	return at
}

// restOfLine returns the end of the line, without its break, if only white space
// and comments stand there before limit; otherwise the offset itself.
func (d *document) restOfLine(at, limit int) int {
	for i := at; i < limit; {
		switch {
		case d.data[i] == '\n':
			if i > at && d.data[i-1] == '\r' {
				return i - 1
			}
			return i
		case d.data[i] == '/':
			n := commentLen(d.data[i:])
			if bytes.HasPrefix(d.data[i:], []byte("//")) {
				n = len(bytes.TrimRight(d.data[i:i+n], "\r\n"))
			} else if bytes.IndexByte(d.data[i:i+n], '\n') >= 0 {
				return at // it goes on in the next line and may belong there
			}
			i += max(n, 1)
		case strings.IndexByte(" \t\r", d.data[i]) >= 0:
			i++
		default:
			return at
		}
	}
	return at
}

// removeJSON deletes a member or element with its comma, and with its line if
// nothing else stands there.
func (d *document) removeJSON(path Path) ([]splice, error) {
	parent := d.root.find(path[:len(path)-1])
	return d.removeChild(parent, childIndex(parent, path[len(path)-1])), nil
}

func (d *document) removeChild(parent *node, i int) []splice {
	all := children(parent)
	c := all[i]
	if rest := string(d.data[parent.start+1:c.start]) + string(d.data[c.end:parent.end-1]); len(all) == 1 && strings.Trim(rest, " \t\r\n,") == "" {
		return []splice{{parent.start + 1, parent.end - 1, ""}}
	}
	hasComma := i < len(all)-1 || parent.note.(jsonNote).trailingComma
	end := c.end
	if hasComma {
		end = d.behindComma(c.end)
	}
	var cut []splice
	if d.firstOnLine(c.start) {
		rest := d.restOfLine(end, parent.end-1)
		if rest < len(d.data) && (d.data[rest] == '\n' || d.data[rest] == '\r') {
			cut = append(cut, splice{d.lineStart(c.start), d.lineEnd(rest), ""})
		}
	}
	if cut == nil {
		start := c.start
		for hasComma && end < len(d.data) && (d.data[end] == ' ' || d.data[end] == '\t') {
			end++
		}
		for !hasComma && start > parent.start+1 && (d.data[start-1] == ' ' || d.data[start-1] == '\t') {
			start--
		}
		cut = append(cut, splice{start, end, ""})
	}
	if !hasComma && i > 0 {
		comma := d.behindComma(all[i-1].end)
		cut = append(cut, splice{comma - 1, comma, ""})
	}
	return cut
}

// childIndex is the position of a member or element among its siblings.
func childIndex(parent *node, name string) int {
	if parent.kind == list {
		i, _ := index(name)
		return i
	}
	for i := len(parent.members) - 1; i >= 0; i-- {
		if parent.members[i].name == name {
			return i
		}
	}
	return -1
}

// unit is one step of indentation in this file.
func (d *document) unit() string {
	if u := d.unitBelow(d.root); u != "" {
		return u
	}
	return "  "
}

func (d *document) unitBelow(n *node) string {
	if n == nil {
		return ""
	}
	for _, m := range n.members {
		outer, inner := d.indent(n.start), d.indent(m.start)
		if rest, ok := strings.CutPrefix(inner, outer); ok && rest != "" && d.firstOnLine(m.start) {
			return rest
		}
		if u := d.unitBelow(m.value); u != "" {
			return u
		}
	}
	return ""
}

// writeJSON writes a value. With many, objects take a line for each member, as do
// lists that hold objects.
func (d *document) writeJSON(value any, indent, unit string, many bool) string {
	type part struct{ label, value string }
	var parts []part
	brackets := "{}"
	inner := indent + unit
	switch v := value.(type) {
	case Object:
		for _, m := range v {
			parts = append(parts, part{quoteJSON(m.Name) + ": ", d.writeJSON(m.Value, inner, unit, many)})
		}
	case []any:
		brackets = "[]"
		complex := false
		for _, e := range v {
			_, isObject := e.(Object)
			complex = complex || isObject
		}
		many = many && complex
		for _, e := range v {
			parts = append(parts, part{"", d.writeJSON(e, inner, unit, many)})
		}
	case verbatim:
		return strings.Join(v.lines, d.newline()+indent)
	case string:
		return quoteJSON(v)
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	default:
		return "null"
	}
	if len(parts) == 0 {
		return brackets
	}
	open, between, close := brackets[:1], ", ", brackets[1:]
	if many {
		nl := d.newline()
		open, between, close = open+nl+inner, ","+nl+inner, nl+indent+close
	}
	var b strings.Builder
	b.WriteString(open)
	for i, p := range parts {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(p.label + p.value)
	}
	b.WriteString(close)
	return b.String()
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
