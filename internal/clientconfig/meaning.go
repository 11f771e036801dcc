package clientconfig

import (
	"encoding/json"
	"reflect"
)

// meaning returns a value as [File.Set] takes it, in the order of the file.
func (n *node) meaning() any {
	switch n.kind {
	case object:
		o := Object{}
		for _, m := range n.members {
			if n.member(m.name).start == m.start {
				o = append(o, Member{m.name, m.value.meaning()})
			}
		}
		return o
	case list:
		l := []any{}
		for _, e := range n.elements {
			l = append(l, e.meaning())
		}
		return l
	case number:
		return json.Number(n.value)
	}
	return plain(n)
}

// sameMeaning compares two values; nil is one that is not there.
func sameMeaning(a, b *node) bool {
	return (a == nil) == (b == nil) && reflect.DeepEqual(plain(a), plain(b))
}

// differences returns where two documents differ: the shortest paths below which
// everything else is the same. Lists are compared as a whole.
func differences(a, b *node, at Path) []Path {
	if sameMeaning(a, b) {
		return nil
	}
	if a == nil || b == nil || a.kind != object || b.kind != object {
		return []Path{at}
	}
	var found []Path
	for _, m := range a.members {
		if a.member(m.name).start != m.start {
			continue // a later one of the same name counts
		}
		found = append(found, differences(m.value, b.get(m.name), at.then(m.name))...)
	}
	for _, m := range b.members {
		if a.get(m.name) == nil && b.member(m.name).start == m.start {
			found = append(found, at.then(m.name))
		}
	}
	return found
}
