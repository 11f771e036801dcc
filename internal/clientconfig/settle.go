package clientconfig

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Refused returns the problem for which the client reads nothing of the file, or nil if
// it reads it. What a client refuses for an entry is in the table, under "refuses".
func (f *File) Refused() *Problem {
	for i := range f.Problems {
		if p := &f.Problems[i]; f.RefusedFor(*p) {
			return p
		}
	}
	return nil
}

// RefusedFor reports whether the client reads nothing of the file because of a problem.
func (f *File) RefusedFor(p Problem) bool {
	if p.Kind == WrongName { // without it there is neither a command nor a URL
		s := f.Server(p.Server)
		return f.Client.refuses(NoCommand) && s != nil && !p.isRemark(s)
	}
	return f.Client.refuses(p.Kind)
}

// refuses reports whether the client loses its whole file over a problem.
func (c *Client) refuses(k Kind) bool {
	switch k {
	case Unreadable, Unparsable, WrongRoot, Empty, Comment, TrailingComma, ByteOrderMark:
		return true
	}
	return slices.Contains(c.Refuses, k)
}

// Ignores reports whether the client passes over an entry: there is a problem with it, or
// with the file. A name that it does not know beside a command or a URL costs that part
// alone.
func (f *File) Ignores(s *Server) bool {
	return slices.ContainsFunc(f.Problems, func(p Problem) bool {
		return f.RefusedFor(p) || p.Server == s.Name.Text && p.Server != "" && !p.isRemark(s)
	})
}

// isRemark reports whether the client uses the entry in spite of a problem with it.
func (p *Problem) isRemark(s *Server) bool {
	return p.Kind == WrongName && (s.Command.Text != "" || s.URL.Text != "")
}

// Settle returns the file with the entries that pick names in the form that the client
// reads, as far as they are not. Others for which the client would refuse the whole file
// are converted with them. It fails with [ErrEdit] if the client would still refuse the
// file, or pass over one of the picked: a half of it would do harm, since the client
// could work without. clear is as in [File.Convert].
func (f *File) Settle(pick func(name string) bool) (g *File, clear bool, err error) {
	g, clear = f, true
	for _, s := range f.Servers {
		wrong := slices.ContainsFunc(g.Problems, func(p Problem) bool {
			return p.Server == s.Name.Text && p.Server != "" && (pick(p.Server) && p.Kind != CommandHoldsArgs || g.RefusedFor(p))
		})
		if !wrong {
			continue
		}
		var certain bool
		if g, certain, err = g.Convert(s.Path); err != nil {
			return nil, false, err
		}
		clear = clear && certain
	}
	if p := g.Refused(); p != nil {
		return nil, false, f.refusal(p.Path, "%s would refuse the whole file: %s", f.Client.Name, p.Kind)
	}
	for _, s := range g.Servers {
		if pick(s.Name.Text) && g.Ignores(s) && !slices.ContainsFunc(g.Problems, func(p Problem) bool { return p.Server == s.Name.Text && p.Kind == CommandHoldsArgs }) {
			return nil, false, f.refusal(s.Path, "%s would ignore the entry", f.Client.Name)
		}
	}
	return g, clear, nil
}

// Gather returns the file with the servers at a path, where the client does not look for
// them, put where it does, and their names. A key that nobody has taken is renamed;
// otherwise each entry moves, with its comments where the format is JSON.
func (f *File) Gather(from Path) (g *File, names []string, err error) {
	place, ok := f.placeFor(from)
	n := f.doc.root.find(from)
	if !ok || n == nil || n.kind < list {
		return nil, nil, f.refusal(from, "there are no servers")
	}
	entries, err := namedEntries(n)
	if err != nil {
		return nil, nil, f.refusal(from, "%v", err)
	}
	for _, e := range entries {
		names = append(names, e.name)
	}
	key := f.key(place)
	there := f.doc.root.find(key)
	if place.List == (n.kind == list) && (there == nil || there.kind == null) && len(from) == 1 && len(key) == 1 {
		if g, err = f.Rename(from, key[0]); err == nil {
			g, err = g.typed(names)
		}
		return g, names, err
	}
	if f.doc.format == YAML && strings.Contains(string(f.doc.data[n.start:f.behind(from)]), "#") {
		return nil, nil, f.refusal(from, "its comments would be lost")
	}
	if slices.Equal(from, key) {
		g, err = f.Set(key, container(place, entries)) // meant for this client, so the types are, too
		return g, names, err
	}
	g = f
	for i, e := range entries {
		at := key.then(e.name)
		if place.List {
			have := 0
			if there != nil {
				have = len(there.elements)
			}
			at = key.then(strconv.Itoa(have + i))
		}
		if g.Server(e.name) != nil || g.doc.root.find(at) != nil {
			return nil, nil, f.refusal(at, "there is a server of that name already")
		}
		var value any = e.in(place)
		if isJSON := f.doc.format == JSON || f.doc.format == JSONC; isJSON && n.kind == object {
			value = g.copyOf(f, e.value)
		}
		if g, err = g.Set(at, value); err != nil {
			return nil, nil, err
		}
	}
	if g, err = g.Remove(from); err != nil {
		return nil, nil, err
	}
	for i := len(from) - 1; i > 0; i-- {
		if above := g.doc.root.find(from[:i]); above != nil && above.isNothing() {
			if g, err = g.Remove(from[:i]); err != nil {
				return nil, nil, err
			}
		}
	}
	g, err = g.typed(names)
	return g, names, err
}

// typed gives a type to URLs that come from another client and have none, if this one
// would take them for the older HTTP.
func (f *File) typed(names []string) (*File, error) {
	g := f
	for _, s := range f.Servers {
		if f.Client.Entry.Untyped == Unknown || !slices.Contains(names, s.Name.Text) || s.URL.Path == nil || s.Type.Path != nil {
			continue
		}
		var err error
		if g, _, err = g.Convert(s.Path); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// behind is where the next key at the top of the file begins, or its end.
func (f *File) behind(path Path) int {
	after := len(f.doc.data)
	start := f.doc.root.member(path[0]).start
	for _, m := range f.doc.root.members {
		if m.start > start {
			after = min(after, m.start)
		}
	}
	return after
}

// placeFor is the place that servers at a path were meant for: the one that has its key
// at the top, as they have.
func (f *File) placeFor(Path) (Place, bool) {
	for _, p := range f.Places {
		if len(p.Key) == 1 {
			return p, true
		}
	}
	return Place{}, false
}

type namedEntry struct {
	name  string
	value *node
}

// namedEntries are the entries of an object or a list.
func namedEntries(n *node) (all []namedEntry, err error) {
	for _, m := range n.members {
		if n.member(m.name).start != m.start {
			return nil, errors.New("a name is there twice")
		}
		all = append(all, namedEntry{m.name, m.value})
	}
	for _, e := range n.elements {
		name := e.get("name")
		if name == nil || name.kind != text || name.value == "" {
			return nil, errors.New("an entry has no name")
		}
		if slices.ContainsFunc(all, func(o namedEntry) bool { return o.name == name.value }) {
			return nil, errors.New("a name is there twice")
		}
		all = append(all, namedEntry{name.value, e})
	}
	return all, nil
}

// in is the entry as it stands at a place: with its name in a list, and without elsewhere.
func (e namedEntry) in(p Place) any {
	o, ok := e.value.meaning().(Object)
	if !ok {
		return e.value.meaning()
	}
	o = slices.DeleteFunc(o, func(m Member) bool { return m.Name == "name" })
	if p.List {
		o = append(Object{{"name", e.name}}, o...)
	}
	return o
}

func container(p Place, entries []namedEntry) any {
	var l []any
	o := Object{}
	for _, e := range entries {
		l = append(l, e.in(p))
		o = append(o, Member{e.name, e.in(p)})
	}
	if p.List {
		return l
	}
	return o
}
