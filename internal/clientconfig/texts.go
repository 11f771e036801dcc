package clientconfig

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Text returns the text at a path, and whether there is one.
func (f *File) Text(path Path) (string, bool) {
	if f.doc == nil {
		return "", false
	}
	n := f.doc.root.find(path)
	if n == nil || n.kind != text {
		return "", false
	}
	return n.value, true
}

// SetTexts returns the file with a list of texts at a path. It is like [File.Set],
// but elements that stay keep their bytes, their lines and their comments.
func (f *File) SetTexts(path Path, texts []string) (*File, error) {
	have, ok := f.texts(path)
	if !ok || len(have) == 0 || len(texts) == 0 {
		return f.Set(path, texts)
	}
	first := 0
	for first < len(have) && first < len(texts) && have[first] == texts[first] {
		first++
	}
	behind := 0
	for behind < len(have)-first && behind < len(texts)-first && have[len(have)-1-behind] == texts[len(texts)-1-behind] {
		behind++
	}
	old, now := have[first:len(have)-behind], texts[first:len(texts)-behind]
	g, err := f, error(nil)
	at := func(i int) Path { return path.then(strconv.Itoa(first + i)) }
	for i := 0; i < min(len(old), len(now)) && err == nil; i++ {
		if old[i] != now[i] {
			g, err = g.Set(at(i), now[i])
		}
	}
	for i := len(old) - 1; i >= len(now) && err == nil; i-- {
		g, err = g.Remove(at(i))
	}
	for i := len(old); i < len(now) && err == nil; i++ {
		g, err = g.insert(path, first+i, now[i])
	}
	return g, err
}

func (f *File) texts(path Path) ([]string, bool) {
	if f.doc == nil {
		return nil, false
	}
	n := f.doc.root.find(path)
	if n == nil || n.kind != list {
		return nil, false
	}
	var all []string
	for _, e := range n.elements {
		if e.kind != text {
			return nil, false
		}
		all = append(all, e.value)
	}
	return all, true
}

// insert puts a text before an element of a list, or behind the last one.
func (f *File) insert(path Path, i int, value string) (*File, error) {
	n := f.doc.root.find(path)
	if i >= len(n.elements) {
		return f.Set(path.then(strconv.Itoa(i)), value)
	}
	return f.edit(path, func(d *document) ([]splice, error) { return d.insertBefore(n, i, value) },
		func(before any) (any, error) {
			l, ok := at(before, path).([]any)
			if !ok {
				return nil, errors.New("there is no list")
			}
			parent, name := at(before, path[:len(path)-1]), path[len(path)-1]
			l = slices.Insert(l, i, any(value))
			switch p := parent.(type) {
			case map[string]any:
				p[name] = l
			case []any:
				k, _ := index(name)
				p[k] = l
			}
			return before, nil
		})
}

func (d *document) insertBefore(n *node, i int, value string) ([]splice, error) {
	e := n.elements[i]
	if n.borrowed || e.borrowed {
		return nil, errors.New("the value is shared with another entry")
	}
	written := quoteJSON(value)
	at, comma := e.start, ","
	switch d.format {
	case TOML:
		written = quoteTOML(value)
	case YAML:
		written = d.scalarYAML(value)
		if note := n.note.(yamlNote); !note.flow {
			at, comma, written = d.dash(e.start), "", "- "+written
			if !d.firstOnLine(at) {
				return nil, errLayout
			}
		}
	}
	if d.firstOnLine(at) {
		return []splice{{at, at, written + comma + d.newline() + d.indent(at)}}, nil
	}
	return []splice{{at, at, written + comma + " "}}, nil
}

// Suggestion says in words which single edit would make a file that cannot be
// parsed readable, or "" where none is found. It is a guess for people: nobody
// applies it for them. It never quotes the file.
func (f *File) Suggestion() string {
	i := slices.IndexFunc(f.Problems, func(p Problem) bool { return p.Kind == Unparsable })
	if i < 0 || f.doc == nil || f.doc.format != JSON && f.doc.format != JSONC || len(f.doc.data) > 256<<10 {
		return ""
	}
	_, err := parse(f.doc.format, f.doc.data)
	e, ok := err.(*syntaxError)
	if !ok {
		return ""
	}
	data, lines := f.doc.data, newLiner(f.Path, f.doc.data)
	before := strings.TrimRight(string(data[:e.offset]), " \t\r\n")
	line := func(offset int) string { return strconv.Itoa(lines.at(offset).Line) }
	tries := []struct {
		s     splice
		words string
	}{
		{splice{len(before), len(before), ","}, "put a comma at the end of line " + line(max(len(before)-1, 0))},
		{splice{len(before), len(before), ":"}, "put a colon behind the name in line " + line(max(len(before)-1, 0))},
		{splice{len(data), len(data), "}"}, "put a } at the end of the file"},
		{splice{len(data), len(data), "}}"}, "put }} at the end of the file"},
		{splice{len(data), len(data), "}}}"}, "put }}} at the end of the file"},
		{splice{len(data), len(data), "]}}}"}, "put ]}}} at the end of the file"},
	}
	if e.offset < len(data) {
		tries = append(tries, struct {
			s     splice
			words string
		}{splice{e.offset, e.offset + 1, ""}, "remove the character at line " + line(e.offset) + ", column " + strconv.Itoa(lines.at(e.offset).Column)})
	}
	for _, t := range tries {
		if _, err := parse(f.doc.format, apply(data, []splice{t.s})); err == nil {
			return t.words
		}
	}
	return ""
}

// EachText calls f with every text of the file and the path to it.
func (f *File) EachText(yield func(path Path, text string)) {
	if f.doc == nil || f.doc.root == nil {
		return
	}
	var walk func(n *node, at Path)
	walk = func(n *node, at Path) {
		if n.kind == text {
			yield(at, n.value)
		}
		for _, m := range n.members {
			walk(m.value, at.then(m.name))
		}
		for i, e := range n.elements {
			walk(e, at.then(strconv.Itoa(i)))
		}
	}
	walk(f.doc.root, nil)
}

// Value returns what stands at a path, as maps, slices, texts, truth values and
// numbers of package json; nil if there is nothing.
func (f *File) Value(path Path) any {
	if f.doc == nil {
		return nil
	}
	return plain(f.doc.root.find(path))
}

// Edited reports whether the file holds something else than what was read.
func (f *File) Edited() bool { return f.doc != nil && !bytes.Equal(f.doc.data, f.onDisk) }
