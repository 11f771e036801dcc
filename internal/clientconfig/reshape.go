package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// The edits in this file move names and brackets around values and leave the
// values as they are written. Each is checked like [File.Set]: what comes out has
// to mean what was asked for and nothing else, or it is refused with [ErrEdit].

var errTaken = errors.New("the name is taken")

// Rename returns the file with another name for the member at a path. Its value
// keeps its bytes.
func (f *File) Rename(path Path, name string) (*File, error) {
	if len(path) == 0 {
		return nil, f.refusal(path, "that is the whole file")
	}
	last := len(path) - 1
	return f.edit(path, func(d *document) ([]splice, error) {
		parent := d.root.find(path[:last])
		m := parent.member(path[last])
		switch {
		case m == nil || parent.kind != object:
			return nil, errors.New("there is no such name")
		case parent.borrowed || m.value.borrowed:
			return nil, errors.New("the value is shared with another entry")
		case count(parent, path[last]) > 1:
			return nil, errors.New("the name is there twice")
		case parent.member(name) != nil:
			return nil, errTaken
		case m.end < m.start:
			return nil, errLayout
		}
		var splices []splice
		for _, at := range append([]child{{m.start, m.end}}, m.again...) {
			splices = append(splices, splice{at.start, at.end, d.nameLike(at, name)})
		}
		return splices, nil
	}, func(before any) (any, error) {
		parent, ok := at(before, path[:last]).(map[string]any)
		if !ok {
			return nil, errors.New("there is no such name")
		}
		parent[name] = parent[path[last]]
		delete(parent, path[last])
		return before, nil
	})
}

// nameLike writes a name as the format does, with quotes where the old one has
// them.
func (d *document) nameLike(old child, name string) string {
	quoted := d.data[old.start] == '"'
	switch {
	case d.format == TOML && !quoted:
		return keyTOML(name)
	case d.format == TOML:
		return quoteTOML(name)
	case d.format == YAML && !quoted:
		return d.scalarYAML(name)
	}
	return quoteJSON(name)
}

// at follows a path through a meaning.
func at(in any, path Path) any {
	for _, name := range path {
		switch v := in.(type) {
		case map[string]any:
			in = v[name]
		case []any:
			i, ok := index(name)
			if !ok || i >= len(v) {
				return nil
			}
			in = v[i]
		default:
			return nil
		}
	}
	return in
}

// SkipsComments reports whether the client takes comments out of this file before it
// reads the rest as strict JSON.
func (f *File) SkipsComments() bool {
	return slices.ContainsFunc(f.Places, func(p Place) bool { return p.NoTrailingComma })
}

// Strict returns the file as strict JSON: without trailing commas and, unless the
// client skips them, comments. A line that holds nothing else goes with its comment.
func (f *File) Strict() (*File, error) {
	return f.edit(nil, func(d *document) ([]splice, error) {
		if d.format != JSON && d.format != JSONC {
			return nil, errors.New("it is not JSON")
		}
		cuts := d.trailingCommas(d.root)
		if f.SkipsComments() {
			return joined(cuts), nil
		}
		for i := 0; i < len(d.data); {
			switch d.data[i] {
			case '"':
				for i++; i < len(d.data) && d.data[i] != '"'; i++ {
					if d.data[i] == '\\' {
						i++
					}
				}
				i++
			case '/':
				n := max(commentLen(d.data[i:]), 1)
				cuts = append(cuts, d.cutComment(i, i+n))
				i += n
			default:
				i++
			}
		}
		return joined(cuts), nil
	}, same)
}

// Unmarked returns the file without the byte order mark at its beginning.
func (f *File) Unmarked() (*File, error) {
	return f.edit(nil, func(d *document) ([]splice, error) {
		if !bytes.HasPrefix(d.data, []byte(byteOrderMark)) {
			return nil, errors.New("there is no byte order mark")
		}
		return []splice{{0, len(byteOrderMark), ""}}, nil
	}, same)
}

func same(before any) (any, error) { return before, nil }

func (d *document) trailingCommas(n *node) []splice {
	if n == nil {
		return nil
	}
	var cuts []splice
	if note, ok := n.note.(jsonNote); ok && note.trailingComma {
		end := d.behindComma(lastChild(n).end)
		cuts = append(cuts, splice{end - 1, end, ""})
	}
	for _, m := range n.members {
		cuts = append(cuts, d.trailingCommas(m.value)...)
	}
	for _, e := range n.elements {
		cuts = append(cuts, d.trailingCommas(e)...)
	}
	return cuts
}

// cutComment takes a comment with its line if it stands alone there, and otherwise
// with the space before it.
func (d *document) cutComment(start, end int) splice {
	if bytes.HasPrefix(d.data[start:], []byte("//")) {
		end = start + len(bytes.TrimRight(d.data[start:end], "\r\n"))
	}
	behind := end
	for behind < len(d.data) && strings.IndexByte(" \t\r", d.data[behind]) >= 0 {
		behind++
	}
	endsLine := behind == len(d.data) || d.data[behind] == '\n'
	if endsLine && d.firstOnLine(start) && !bytes.HasPrefix(d.data[d.lineStart(start):], []byte(byteOrderMark)) {
		return splice{d.lineStart(start), min(behind+1, len(d.data)), ""}
	}
	for endsLine && start > 0 && (d.data[start-1] == ' ' || d.data[start-1] == '\t') {
		start--
	}
	return splice{start, end, ""}
}

// joined drops what lies inside another cut.
func joined(cuts []splice) []splice {
	sortSplices(cuts)
	var out []splice
	for _, c := range cuts {
		if n := len(out); n > 0 && c.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, c.end)
			continue
		}
		out = append(out, c)
	}
	return out
}

// Braces returns an empty JSON file with an empty object in it.
func (f *File) Braces() (*File, error) {
	return f.edit(nil, func(d *document) ([]splice, error) {
		if d.format != JSON && d.format != JSONC || d.root != nil {
			return nil, errors.New("it is not an empty JSON file")
		}
		at := 0
		if bytes.HasPrefix(d.data, []byte(byteOrderMark)) {
			at = len(byteOrderMark)
		}
		if bytes.IndexByte(d.data, '\n') >= 0 {
			return []splice{{at, at, "{}"}}, nil
		}
		return []splice{{at, len(d.data), "{}" + d.newline()}}, nil
	}, func(any) (any, error) { return map[string]any{}, nil })
}

// Wrap returns the file with everything that stands at its top put below a key.
func (f *File) Wrap(key string) (*File, error) {
	return f.edit(Path{key}, func(d *document) ([]splice, error) {
		if d.root == nil || d.root.kind != object || len(d.root.members) == 0 {
			return nil, errors.New("there is nothing to put below it")
		}
		switch d.format {
		case TOML:
			return d.wrapTOML(key), nil
		case YAML:
			return d.wrapYAML(key)
		}
		return d.wrapJSON(key), nil
	}, func(before any) (any, error) { return map[string]any{key: before}, nil })
}

func (d *document) wrapJSON(key string) []splice {
	root, unit, nl := d.root, d.unit(), d.newline()
	if !d.isBroken(root) {
		return []splice{{root.start, root.start, "{" + quoteJSON(key) + ": "}, {root.end, root.end, "}"}}
	}
	first := root.members[0].start
	open, end := d.restOfLine(root.start+1, root.end-1), root.end-1
	splices := []splice{{open, open, nl + unit + quoteJSON(key) + ": {"}}
	if !d.firstOnLine(first) { // the first member shares the line of the brace
		splices = append(splices, splice{first, first, nl + unit + unit})
	}
	splices = append(splices, d.indentLines(open, end, unit)...)
	if d.firstOnLine(end) {
		return append(splices, splice{end, end, unit + "}" + nl})
	}
	return append(splices, splice{end, end, "}"})
}

// indentLines moves the lines that begin between two offsets further in, but for
// blank ones and the one that the end stands on.
func (d *document) indentLines(from, to int, unit string) []splice {
	var splices []splice
	for at := d.lineEnd(from); at < to; at = d.lineEnd(at) {
		blank := len(bytes.TrimSpace(d.data[at:d.lineEnd(at)])) == 0
		if !blank && (d.lineStart(to) != at || !d.firstOnLine(to)) {
			splices = append(splices, splice{at, at, unit})
		}
	}
	return splices
}

// outdentLines moves the lines that begin between two offsets out, as far as they
// are in.
func (d *document) outdentLines(from, to int, by string) []splice {
	var splices []splice
	for at := d.lineEnd(from); at < to; at = d.lineEnd(at) {
		if bytes.HasPrefix(d.data[at:], []byte(by)) {
			splices = append(splices, splice{at, at + len(by), ""})
		}
	}
	return splices
}

// wrapTOML puts the key before each name at the top, in headers and in pairs.
func (d *document) wrapTOML(key string) []splice {
	var splices []splice
	for _, m := range d.root.members {
		for _, at := range append([]child{{m.start, m.end}}, m.again...) {
			splices = append(splices, splice{at.start, at.start, keyTOML(key) + "."})
		}
	}
	return splices
}

func (d *document) wrapYAML(key string) ([]splice, error) {
	root := d.root
	if root.note.(yamlNote).flow || root.note.(yamlNote).column != 0 {
		return nil, errLayout
	}
	first := root.members[0].start
	unit := d.unitYAML()
	splices := []splice{{first, first, d.scalarYAML(key) + ":" + d.newline() + unit}}
	return append(splices, d.indentLines(first, len(d.data), unit)...), nil
}

// Unnest returns the file with the members of the object at a path put in its
// place, beside its siblings.
func (f *File) Unnest(path Path) (*File, error) {
	if len(path) < 2 {
		return nil, f.refusal(path, "there is nothing around it")
	}
	last := len(path) - 1
	return f.edit(path, func(d *document) ([]splice, error) {
		outer, inner := d.root.find(path[:last]), d.root.find(path)
		if outer == nil || inner == nil || outer.kind != object || inner.kind != object || len(inner.members) == 0 {
			return nil, errors.New("there is no object")
		}
		if outer.borrowed || inner.borrowed || count(outer, path[last]) > 1 {
			return nil, errors.New("the value is shared or there twice")
		}
		m := outer.member(path[last])
		switch d.format {
		case TOML:
			return d.unnestTOML(m), nil
		case YAML:
			return d.unnestYAML(outer, m)
		}
		return d.unnestJSON(m), nil
	}, func(before any) (any, error) {
		outer, _ := at(before, path[:last]).(map[string]any)
		inner, _ := outer[path[last]].(map[string]any)
		delete(outer, path[last])
		for name, value := range inner {
			if _, taken := outer[name]; taken {
				return nil, errTaken
			}
			outer[name] = value
		}
		return before, nil
	})
}

func (d *document) unnestJSON(m *member) []splice {
	inner := m.value
	open := splice{m.start, inner.start + 1, ""}
	shut := splice{inner.end - 1, inner.end, ""}
	if inner.note.(jsonNote).trailingComma {
		if comma := d.nextByte(inner.end); comma < len(d.data) && d.data[comma] == ',' {
			shut.end = comma + 1
		}
	} else if comma := d.nextByte(inner.end); comma < len(d.data) && d.data[comma] == ',' {
		// The comma behind the brace now belongs to the last member.
		last := lastChild(inner).end
		shut.end = comma + 1
		return append(d.unnestLines(open, shut, inner), splice{last, last, ","})
	}
	return d.unnestLines(open, shut, inner)
}

// unnestLines cuts the two ends of an object, with their lines if nothing else
// stands there, and moves what is between them out.
func (d *document) unnestLines(open, shut splice, inner *node) []splice {
	by := d.unit()
	splices := d.outdentLines(inner.start, shut.start, by)
	whole := func(s splice) splice {
		end := s.end
		for end < len(d.data) && strings.IndexByte(" \t\r", d.data[end]) >= 0 {
			end++
		}
		if d.firstOnLine(s.start) && end < len(d.data) && d.data[end] == '\n' {
			return splice{d.lineStart(s.start), end + 1, ""}
		}
		return s
	}
	open, shut = whole(open), whole(shut)
	keep := splices[:0]
	for _, s := range splices {
		if s.start >= open.end && s.end <= shut.start {
			keep = append(keep, s)
		}
	}
	return append(keep, open, shut)
}

// nextByte skips white space and comments.
func (d *document) nextByte(at int) int {
	for at < len(d.data) {
		switch {
		case strings.IndexByte(" \t\r\n", d.data[at]) >= 0:
			at++
		case d.data[at] == '/' && commentLen(d.data[at:]) > 0:
			at += commentLen(d.data[at:])
		default:
			return at
		}
	}
	return at
}

// unnestTOML takes the name and its dot out of every header and dotted key.
func (d *document) unnestTOML(m *member) []splice {
	var splices []splice
	for _, at := range append([]child{{m.start, m.end}}, m.again...) {
		end := at.end
		for end < len(d.data) && (d.data[end] == ' ' || d.data[end] == '\t') {
			end++
		}
		if end < len(d.data) && d.data[end] == '.' {
			end++
		}
		splices = append(splices, splice{at.start, end, ""})
	}
	return splices
}

func (d *document) unnestYAML(outer *node, m *member) ([]splice, error) {
	inner := m.value
	note := inner.note.(yamlNote)
	if note.flow || outer.note.(yamlNote).flow || note.pinned || !d.firstOnLine(m.start) || !d.firstOnLine(inner.start) {
		return nil, errLayout
	}
	by := note.column - d.column(m.start)
	end := d.blockEnd(m.start, d.column(m.start), inner, inner)
	splices := []splice{{d.lineStart(m.start), d.lineEnd(m.start), ""}}
	return append(splices, d.outdentLines(m.start, end, strings.Repeat(" ", by))...), nil
}

// ListToObject returns the file with the list at a path turned into an object: each
// entry stands under what its member "name" says. This is done in JSON alone.
func (f *File) ListToObject(path Path) (*File, error) {
	return f.edit(path, func(d *document) ([]splice, error) {
		l := d.root.find(path)
		if l == nil || l.kind != list || d.format != JSON && d.format != JSONC {
			return nil, errLayout
		}
		splices := []splice{{l.start, l.start + 1, "{"}, {l.end - 1, l.end, "}"}}
		for _, e := range l.elements {
			name := e.get("name")
			if e.kind != object || name == nil || name.kind != text || count(e, "name") != 1 {
				return nil, errors.New("an entry has no name")
			}
			label := splice{e.start, e.start, quoteJSON(name.value) + ": "}
			splices = append(append(splices, label), d.removeChild(e, slices.IndexFunc(e.members, func(m member) bool { return m.name == "name" }))...)
		}
		return splices, nil
	}, func(before any) (any, error) {
		l, ok := at(before, path).([]any)
		if !ok {
			return nil, errors.New("there is no list")
		}
		o := make(map[string]any)
		for _, e := range l {
			entry, _ := e.(map[string]any)
			name, _ := entry["name"].(string)
			if _, taken := o[name]; taken || name == "" {
				return nil, errTaken
			}
			delete(entry, "name")
			o[name] = entry
		}
		if len(path) == 0 {
			return o, nil
		}
		parent := at(before, path[:len(path)-1])
		if m, ok := parent.(map[string]any); ok {
			m[path[len(path)-1]] = o
			return before, nil
		}
		return nil, errors.New("there is no list")
	})
}

// Adopt returns the file with a server of another file of the same client, with
// all its members, also those we have no field for.
func (f *File) Adopt(from *File, name string) (*File, error) {
	s := from.Server(name)
	if s == nil || f.Server(name) != nil || f.Client != from.Client {
		return nil, f.refusal(f.ServerPath(name), "there is no such server, or one of that name already")
	}
	if len(f.Places) == 0 || f.Places[0].List != (len(from.Places) > 0 && from.Places[0].List) {
		return nil, f.refusal(s.Path, "it is written in another way there")
	}
	return f.Set(f.ServerPath(name), f.copyOf(from, from.doc.root.find(s.Path)))
}

// A verbatim is a value of another JSON file as it is written there, line by line
// without the indentation of the first.
type verbatim struct {
	lines []string
	plain any
}

// copyOf is a value of another file as it can be written into this one: in its own
// bytes where the grammar is the same.
func (f *File) copyOf(from *File, n *node) any {
	isJSON := func(d *document) bool { return d.format == JSON || d.format == JSONC }
	text := from.doc.data[n.start:n.end]
	strict := len(f.Places) > 0 && f.Places[0].Strict
	if !isJSON(f.doc) || !isJSON(from.doc) || strict && !json.Valid(text) {
		return n.meaning()
	}
	v := verbatim{lines: strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), plain: plain(n)}
	indent := from.doc.indent(n.start)
	for i := range v.lines[1:] {
		v.lines[i+1] = strings.TrimPrefix(v.lines[i+1], indent)
	}
	return v
}

// Again reads the file once more and returns what is in it now.
func (f *File) Again() *File {
	g := Open(f.Path, f.Client, f.project, f.Places...)
	g.Untrusted = f.Untrusted
	if g.Ignored = f.Ignored; g.Ignored && g.doc != nil {
		g.Problems = f.Problems // that they stand here is still what is wrong
	}
	return g
}
