package clientconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errLayout = errors.New("it is written in a way that we do not edit")

// setTOML replaces or adds one value; only the last step of the path may be new.
func (d *document) setTOML(path Path, value any) ([]splice, error) {
	if len(path) == 0 {
		return nil, errLayout
	}
	parentPath, name := path[:len(path)-1], path[len(path)-1]
	parent := d.root.find(parentPath)
	if old := parent.step(name); old != nil {
		return d.replaceTOML(parent, path, old, value)
	}
	switch table, _ := parent.note.(*tomlTable); {
	case parent.kind == list && name == strconv.Itoa(len(parent.elements)):
		return d.appendTOML(parent, value)
	case parent.kind != object || table == nil:
		return nil, errors.New("there is a value on the way that has no such part")
	case table.inline:
		return d.insertInline(parent, keyTOML(name)+" = "+writeTOML(value)), nil
	case len(table.sites) > 0:
		return d.insertInTable(parent, table, path, value)
	}
	return d.insertInImplied(parent, path, value)
}

func (d *document) replaceTOML(parent *node, path Path, old *node, value any) ([]splice, error) {
	inPair := parent.kind == list && len(parent.elements) > 0 && !isSpread(parent.elements[0])
	if m := parent.member(path[len(path)-1]); m != nil {
		_, inPair = m.note.(*tomlPair)
	}
	if inPair {
		written := writeTOML(value)
		if s, ok := value.(string); ok && old.kind == text && d.data[old.start] == '\'' && isLiteralTOML(s) {
			written = "'" + s + "'"
		}
		return []splice{{old.start, old.end, written}}, nil
	}
	o, isObject := value.(Object)
	if table, _ := old.note.(*tomlTable); table == nil || !isObject || len(table.sites) == 0 {
		return nil, errLayout
	}
	header, err := d.headerTOML(path)
	if err != nil {
		return nil, err
	}
	cut := spansTOML(old)
	for i := range cut[1:] {
		cut[i+1] = d.withBlankLine(cut[i+1])
	}
	at := cut[0].start
	return append(cut, splice{at, at, d.writeTable(header, o)}), nil
}

// isSpread reports whether a node is a table with a header, rather than a value.
func isSpread(n *node) bool {
	table, ok := n.note.(*tomlTable)
	return ok && !table.inline
}

// insertInTable adds a key below a header, or a table of its own behind it.
func (d *document) insertInTable(parent *node, table *tomlTable, path Path, value any) ([]splice, error) {
	if o, ok := value.(Object); ok {
		return d.insertTable(parent, path, o)
	}
	site := table.sites[len(table.sites)-1]
	indent := ""
	if n := len(parent.members); n > 0 {
		if p, ok := parent.members[n-1].note.(*tomlPair); ok {
			indent = d.indent(p.start)
		}
	}
	return []splice{d.insertLine(site.end, indent+keyTOML(path[len(path)-1])+" = "+writeTOML(value))}, nil
}

// insertLine adds a line at the start of another, or at the end of the file.
func (d *document) insertLine(at int, line string) splice {
	nl := d.newline()
	if at > 0 && d.data[at-1] != '\n' && !d.firstOnLine(at) {
		return splice{at, at, nl + line}
	}
	return splice{at, at, line + nl}
}

// insertInImplied adds to a table that has no header of its own: dotted keys get
// one more, a table that is only named by tables below it gets a header.
func (d *document) insertInImplied(parent *node, path Path, value any) ([]splice, error) {
	for i := len(parent.members) - 1; i >= 0; i-- {
		if p, ok := parent.members[i].note.(*tomlPair); ok && p.site != nil {
			line := d.indent(p.start) + p.prefix + keyTOML(path[len(path)-1]) + " = " + writeTOML(value)
			return []splice{d.insertLine(p.end, line)}, nil
		}
	}
	if o, ok := value.(Object); ok {
		return d.insertTable(parent, path, o)
	}
	cut := spansTOML(parent)
	if len(cut) == 0 {
		return nil, errLayout
	}
	header, err := d.headerTOML(path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	at := cut[0].start
	return []splice{{at, at, d.writeTable(header, Object{{path[len(path)-1], value}}) + d.newline()}}, nil
}

// insertTable adds a table behind the last one below the same parent.
func (d *document) insertTable(parent *node, path Path, o Object) ([]splice, error) {
	header, err := d.headerTOML(path)
	if err != nil {
		return nil, err
	}
	at := len(d.data)
	if parent != d.root {
		at = 0
		for _, s := range spansTOML(parent) {
			at = max(at, s.end)
		}
		at = d.behindRemarks(at)
	}
	nl := d.newline()
	block := d.writeTable(header, o)
	switch before := string(d.data[:at]); {
	case strings.TrimPrefix(before, byteOrderMark) == "" || strings.HasSuffix(before, nl+nl):
	case strings.HasSuffix(before, "\n"):
		block = nl + block
	default:
		block = nl + nl + block
	}
	return []splice{{at, at, block}}, nil
}

// behindRemarks skips comment lines that follow a table closely. If a header
// follows them just as closely they speak of that one.
func (d *document) behindRemarks(at int) int {
	for i := at; ; i = d.lineEnd(i) {
		line := strings.TrimSpace(string(d.data[i:d.lineEnd(i)]))
		switch {
		case line == "":
			return i
		case line[0] != '#':
			return at
		}
	}
}

// headerTOML writes a path as the name of a table. A path through a list of tables
// has none.
func (d *document) headerTOML(path Path) (string, error) {
	keys := make([]string, len(path))
	for i, name := range path {
		if n := d.root.find(path[:i]); n != nil && n.kind == list {
			return "", errLayout
		}
		keys[i] = keyTOML(name)
	}
	return strings.Join(keys, "."), nil
}

func (d *document) writeTable(header string, o Object) string {
	nl := d.newline()
	text := "[" + header + "]" + nl
	below := ""
	for _, m := range o {
		if inner, ok := m.Value.(Object); ok {
			below += nl + d.writeTable(header+"."+keyTOML(m.Name), inner)
		} else {
			text += keyTOML(m.Name) + " = " + writeTOML(m.Value) + nl
		}
	}
	return text + below
}

// spansTOML returns the lines that make up a table, in order.
func spansTOML(n *node) []splice {
	var spans []splice
	if table, ok := n.note.(*tomlTable); ok {
		for _, s := range table.sites {
			spans = append(spans, splice{s.start, s.end, ""})
		}
	}
	for _, m := range n.members {
		if p, ok := m.note.(*tomlPair); ok {
			spans = append(spans, splice{p.start, p.end, ""})
		} else {
			spans = append(spans, spansTOML(m.value)...)
		}
	}
	for _, e := range n.elements {
		spans = append(spans, spansTOML(e)...)
	}
	sortSplices(spans)
	return spans
}

// insertInline adds a pair to an inline table.
func (d *document) insertInline(parent *node, pair string) []splice {
	end := -1
	for _, c := range inlinePairs(parent) {
		end = max(end, c.end)
	}
	if end < 0 {
		return []splice{{parent.start, parent.end, "{ " + pair + " }"}}
	}
	return []splice{{end, end, ", " + pair}}
}

// inlinePairs returns the pairs of an inline table, those of dotted keys included.
func inlinePairs(n *node) []child {
	var all []child
	for _, m := range n.members {
		if p, ok := m.note.(*tomlPair); ok {
			all = append(all, child{p.start, p.end})
		} else {
			all = append(all, inlinePairs(m.value)...)
		}
	}
	return all
}

// appendTOML adds an element to a list.
func (d *document) appendTOML(l *node, value any) ([]splice, error) {
	if len(l.elements) == 0 {
		if l.end <= l.start {
			return nil, errLayout
		}
		return []splice{{l.start + 1, l.start + 1, writeTOML(value)}}, nil
	}
	last := l.elements[len(l.elements)-1]
	if isSpread(last) {
		return nil, errLayout
	}
	if !d.firstOnLine(last.start) {
		return []splice{{last.end, last.end, ", " + writeTOML(value)}}, nil
	}
	line := d.newline() + d.indent(last.start) + writeTOML(value)
	if comma := d.skipTOML(last.end); d.data[comma] == ',' {
		at := d.restOfLineTOML(comma+1, l.end-1)
		return []splice{{at, at, line + ","}}, nil
	}
	at := d.restOfLineTOML(last.end, l.end-1)
	return []splice{{last.end, last.end, ","}, {at, at, line}}, nil
}

// restOfLineTOML is restOfLine with the other kind of comment.
func (d *document) restOfLineTOML(at, limit int) int {
	end := d.lineEnd(at)
	rest := strings.TrimSpace(string(d.data[at:end]))
	if end > limit || rest != "" && rest[0] != '#' {
		return at
	}
	return at + len(strings.TrimRight(string(d.data[at:end]), "\r\n"))
}

func (d *document) removeTOML(path Path) ([]splice, error) {
	parent := d.root.find(path[:len(path)-1])
	name := path[len(path)-1]
	if parent.kind == list {
		i, _ := index(name)
		if isSpread(parent.elements[i]) {
			return nil, errLayout
		}
		return d.cutFromList(children(parent), i, parent), nil
	}
	m := parent.member(name)
	switch p, isPair := m.note.(*tomlPair); {
	case isPair && p.site == nil:
		pairs := inlinePairs(parent)
		for i, c := range pairs {
			if c.start == p.start {
				return d.cutFromList(pairs, i, parent), nil
			}
		}
		return nil, errLayout
	case isPair:
		return []splice{{p.start, p.end, ""}}, nil
	}
	cut := spansTOML(m.value)
	if len(cut) == 0 || m.value.kind == object && m.value.note.(*tomlTable).inline {
		return nil, errLayout
	}
	for i := range cut {
		cut[i] = d.withBlankLine(cut[i])
	}
	return cut, nil
}

// withBlankLine takes one of two blank lines along that would meet.
func (d *document) withBlankLine(s splice) splice {
	nl := d.newline()
	before, after := string(d.data[:s.start]), string(d.data[s.end:])
	blankBefore := strings.TrimPrefix(before, byteOrderMark) == "" || strings.HasSuffix(before, "\n"+nl)
	switch {
	case blankBefore && strings.HasPrefix(after, nl):
		s.end += len(nl)
	case after == "" && strings.HasSuffix(before, "\n"+nl):
		s.start -= len(nl)
	}
	return s
}

// cutFromList removes an element between brackets or braces with its comma, and
// with its line if nothing else stands there.
func (d *document) cutFromList(all []child, i int, parent *node) []splice {
	c := all[i]
	end := c.end
	comma := d.skipTOML(c.end)
	hasComma := comma < len(d.data) && d.data[comma] == ','
	if hasComma {
		end = comma + 1
	}
	var cut []splice
	if rest := d.restOfLineTOML(end, parent.end-1); d.firstOnLine(c.start) && d.lineEnd(end) < parent.end && (rest != end || d.data[end] == '\n' || d.data[end] == '\r') {
		cut = append(cut, splice{d.lineStart(c.start), d.lineEnd(end), ""})
	} else {
		for hasComma && end < len(d.data) && (d.data[end] == ' ' || d.data[end] == '\t') {
			end++
		}
		cut = append(cut, splice{c.start, end, ""})
	}
	if !hasComma && i > 0 {
		comma := d.skipTOML(all[i-1].end)
		cut[0].start = min(cut[0].start, c.start)
		cut = append(cut, splice{comma, comma + 1, ""})
		if cut[0].start == c.start { // on one line: take the space along, too
			for cut[0].start > comma+1 && (d.data[cut[0].start-1] == ' ' || d.data[cut[0].start-1] == '\t') {
				cut[0].start--
			}
		}
	}
	return cut
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func keyTOML(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return quoteTOML(name)
}

// isLiteralTOML reports whether a text may stand between single quotes.
func isLiteralTOML(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == '\'' || r < ' ' || r == 0x7f || r == utf8.RuneError })
}

func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// writeTOML writes a value on one line.
func writeTOML(value any) string {
	switch v := value.(type) {
	case string:
		return quoteTOML(v)
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return string(v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = writeTOML(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Object:
		if len(v) == 0 {
			return "{}"
		}
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = keyTOML(m.Name) + " = " + writeTOML(m.Value)
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return `""` // TOML has no null; what is written is compared with what was asked for
}
