package clientconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ErrEdit is wrapped by every refusal to edit. The file is then as it was.
var ErrEdit = errors.New("cannot edit")

// A Member is a named part of an [Object].
type Member struct {
	Name  string
	Value any
}

// An Object is a value with named parts, written in this order.
type Object []Member

// Set returns the file with another value at a path, or with a new one there: a
// member is added behind the others, an element of a list at its end, and
// objects that are missing on the way are made.
//
// A value is a string, a bool, an int, an [Object], a []string, or a []any of
// these. Where the value that is there can keep its kind of quotes, it does.
//
// Only the bytes of that value change, or lines of its own are added. If that
// cannot be done the error wraps [ErrEdit]; this is so for a file that could not
// be parsed, for a value borrowed by a YAML alias, and for a text that is spread
// over several lines of YAML.
func (f *File) Set(path Path, value any) (*File, error) {
	value, err := normal(value)
	if err != nil {
		return nil, err
	}
	path, value = f.startList(path, value)
	if len(path) == 0 {
		return nil, f.refusal(path, "that is the whole file")
	}
	return f.edit(path, func(d *document) ([]splice, error) { return d.set(path, value) },
		func(before any) (any, error) { return with(before, path, value) })
}

// startList turns the first entry of a list that is not there into the list: on
// its own a path cannot tell a position from a name.
func (f *File) startList(path Path, value any) (Path, any) {
	if f.doc == nil {
		return path, value
	}
	for _, p := range f.Places {
		key := f.key(p)
		if !p.List || len(path) <= len(key) || !slices.Equal(path[:len(key)], key) || path[len(key)] != "0" {
			continue
		}
		if n := f.doc.root.find(key); n == nil || n.kind == null {
			return key, []any{wrap(path[len(key)+1:], value)}
		}
	}
	return path, value
}

// Remove returns the file without the member or element at a path. Comments
// above it stay, since they may speak of more than one thing.
func (f *File) Remove(path Path) (*File, error) {
	if len(path) == 0 {
		return nil, f.refusal(path, "that is the whole file")
	}
	return f.edit(path, func(d *document) ([]splice, error) { return d.remove(path) },
		func(before any) (any, error) { return without(before, path) })
}

func (f *File) refusal(path Path, format string, args ...any) error {
	return fmt.Errorf("%w %s in %s: %s", ErrEdit, path, f.Path, fmt.Sprintf(format, args...))
}

// edit splices, and then makes sure that the new bytes mean what was asked for
// and nothing else.
func (f *File) edit(path Path, change func(*document) ([]splice, error), mean func(any) (any, error)) (*File, error) {
	refuse := func(format string, args ...any) (*File, error) { return nil, f.refusal(path, format, args...) }
	if f.doc == nil || slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Kind == Unparsable || p.Kind == Unreadable }) {
		return refuse("the file could not be read")
	}
	splices, err := change(f.doc)
	if err != nil {
		return refuse("%v", err)
	}
	want, err := mean(plain(f.doc.root))
	if err != nil {
		return refuse("%v", err)
	}
	data := apply(f.doc.data, splices)
	doc, err := parse(f.doc.format, data)
	if err != nil {
		return refuse("the result would not be %s", f.doc.format)
	}
	got := plain(doc.root)
	if doc.format == TOML { // a table goes with its last key
		got, want = prune(got), prune(want)
	}
	if !reflect.DeepEqual(got, want) {
		return refuse("something else would change with it")
	}
	g := &File{Path: f.Path, Client: f.Client, Places: f.Places, Ignored: f.Ignored, Untrusted: f.Untrusted, project: f.project, onDisk: f.onDisk}
	g.parse(data)
	if slices.ContainsFunc(g.Problems, func(p Problem) bool { return p.Kind == ByteOrderMark }) {
		return refuse("%s could not read the result: the byte order mark has to go first", f.Client.Name)
	}
	return g, nil
}

// A splice puts text in the place of some bytes.
type splice struct {
	start, end int
	text       string
}

func apply(data []byte, splices []splice) []byte {
	sortSplices(splices)
	out := make([]byte, 0, len(data))
	at := 0
	for _, s := range splices {
		out = append(append(out, data[at:max(at, s.start)]...), s.text...)
		at = max(at, s.end)
	}
	return append(out, data[at:]...)
}

func sortSplices(splices []splice) {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.start - b.start })
}

func (d *document) set(path Path, value any) ([]splice, error) {
	n := d.root
	for i := 0; i < len(path) && n != nil; i++ {
		next := n.step(path[i])
		if next == nil || next.kind == null && i < len(path)-1 {
			// Objects that are missing become part of the value.
			value, path = wrap(path[i+1:], value), path[:i+1]
		}
		if n.borrowed || next != nil && next.borrowed {
			return nil, errors.New("the value is shared with another entry")
		}
		n = next
	}
	if d.root == nil {
		value, path = wrap(path, value), nil
	}
	switch d.format {
	case TOML:
		return d.setTOML(path, value)
	case YAML:
		return d.setYAML(path, value)
	}
	return d.setJSON(path, value)
}

// wrap puts a value into the objects that a path names.
func wrap(path Path, value any) any {
	for i := len(path) - 1; i >= 0; i-- {
		value = Object{{path[i], value}}
	}
	return value
}

func (d *document) remove(path Path) ([]splice, error) {
	n := d.root.find(path)
	parent := d.root.find(path[:len(path)-1])
	switch {
	case n == nil:
		return nil, errors.New("there is nothing")
	case n.borrowed || parent.borrowed:
		return nil, errors.New("the value is shared with another entry")
	case parent.kind == object && count(parent, path[len(path)-1]) > 1:
		return nil, errors.New("the name is there twice") // removing one would uncover the other
	}
	switch d.format {
	case TOML:
		return d.removeTOML(path)
	case YAML:
		return d.removeYAML(path)
	}
	return d.removeJSON(path)
}

func count(n *node, name string) int {
	found := 0
	for _, m := range n.members {
		if m.name == name {
			found++
		}
	}
	return found
}

// normal checks a value and turns it into the few types the editors know: string,
// bool, json.Number, nil, []any and Object.
func normal(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, bool, json.Number, verbatim:
		return v, nil
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case []string:
		l := make([]any, len(v))
		for i, s := range v {
			l[i] = s
		}
		return l, nil
	case []any:
		l := make([]any, len(v))
		for i := range v {
			var err error
			if l[i], err = normal(v[i]); err != nil {
				return nil, err
			}
		}
		return l, nil
	case Object:
		o := make(Object, len(v))
		for i, m := range v {
			inner, err := normal(m.Value)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(o[:i], func(other Member) bool { return other.Name == m.Name }) {
				return nil, fmt.Errorf("%w: %q is there twice", ErrEdit, m.Name)
			}
			o[i] = Member{m.Name, inner}
		}
		return o, nil
	}
	return nil, fmt.Errorf("%w: a value cannot be a %T", ErrEdit, value)
}

// plain is what a document means, without places: maps, slices and scalars. Of
// members with the same name the last counts.
func plain(n *node) any {
	if n == nil {
		return nil
	}
	switch n.kind {
	case null:
		return nil
	case boolean:
		return strings.EqualFold(n.value, "true")
	case number:
		return json.Number(n.value)
	case text:
		return n.value
	case list:
		l := make([]any, len(n.elements))
		for i, e := range n.elements {
			l[i] = plain(e)
		}
		return l
	}
	m := make(map[string]any, len(n.members))
	for _, member := range n.members {
		m[member.name] = plain(member.value)
	}
	return m
}

func plainValue(value any) any {
	switch v := value.(type) {
	case verbatim:
		return v.plain
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = plainValue(v[i])
		}
		return l
	case Object:
		m := make(map[string]any, len(v))
		for _, member := range v {
			m[member.Name] = plainValue(member.Value)
		}
		return m
	}
	return value
}

// with returns a meaning with another value at a path. It may change its argument.
func with(in any, path Path, value any) (any, error) {
	if len(path) == 0 {
		return plainValue(value), nil
	}
	switch v := in.(type) {
	case nil:
		return plainValue(wrap(path, value)), nil
	case map[string]any:
		inner, err := with(v[path[0]], path[1:], value)
		v[path[0]] = inner
		return v, err
	case []any:
		i, ok := index(path[0])
		if !ok || i > len(v) {
			return nil, fmt.Errorf("the list has no place %q", path[0])
		}
		if i == len(v) {
			v = append(v, nil)
		}
		inner, err := with(v[i], path[1:], value)
		v[i] = inner
		return v, err
	}
	return nil, errors.New("there is a value on the way that has no parts")
}

func without(in any, path Path) (any, error) {
	last := len(path) == 1
	switch v := in.(type) {
	case map[string]any:
		if last {
			delete(v, path[0])
			return v, nil
		}
		inner, err := without(v[path[0]], path[1:])
		v[path[0]] = inner
		return v, err
	case []any:
		i, ok := index(path[0])
		if !ok || i >= len(v) {
			return nil, fmt.Errorf("the list has no place %q", path[0])
		}
		if last {
			return slices.Delete(v, i, i+1), nil
		}
		inner, err := without(v[i], path[1:])
		v[i] = inner
		return v, err
	}
	return nil, errors.New("there is nothing")
}

// prune drops objects without members from objects.
func prune(in any) any {
	switch v := in.(type) {
	case map[string]any:
		for name, value := range v {
			value = prune(value)
			if m, ok := value.(map[string]any); ok && len(m) == 0 {
				delete(v, name)
			}
		}
	case []any:
		for _, e := range v {
			prune(e)
		}
	}
	return in
}
