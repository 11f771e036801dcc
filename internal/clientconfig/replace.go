package clientconfig

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Replace returns the file with another server in the entry of that name, or with
// one more if there is none. It takes of s what [File.Add] takes and leaves every
// other member of the entry as it is written: how long to wait, which tools need
// no question, and what we have never heard of.
func (f *File) Replace(s *Server) (*File, error) {
	old := f.Server(s.Name.Text)
	if old == nil {
		return f.Add(s)
	}
	sameAddress := old.URL.Text != "" && old.URL.Text == s.URL.Text && (s.Transport == Unknown || s.Transport == old.Transport)
	entry, err := f.Client.entry(s)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrEdit, f.Path, err)
	}
	var gone []Path
	for _, name := range f.replaced(old, sameAddress) {
		if t, known := f.Client.Entry.transport(old.Type.Text); name == f.Client.Entry.Type && known && t == s.speaks() {
			continue // perhaps in another spelling, or where it could be left out
		}
		below := Path(strings.Split(name, "."))
		want, ok := entry.find(below)
		if !ok {
			gone = append(gone, old.Path.then(below...))
			continue
		}
		if f, err = f.become(old.Path.then(below...), want); err != nil {
			return nil, err
		}
	}
	for _, path := range gone { // last, since a table of TOML goes with its last key
		n := f.doc.root.find(path)
		if n == nil || n.isNothing() && !slices.Contains(signIn, path[len(path)-1]) {
			continue
		}
		if f, err = f.Remove(path); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// signIn are members by which clients sign in at an address. They are meant for
// that one: another must not get its secrets.
var signIn = []string{
	"auth", "oauth", "requiresOAuth", "headersHelper", "http_headers_helper", "apiKey",
	"authProviderType", "targetAudience", "targetServiceAccount", // Gemini CLI
	"scopes", "oauth_resource", // Codex
}

// replaced are the names of an entry that say what is run or reached, and how.
func (f *File) replaced(old *Server, sameAddress bool) []string {
	e := &f.Client.Entry
	names := []string{e.Command, e.Args, e.Env, e.EnvFrom, e.EnvFile, e.Cwd, e.Headers, e.HeadersFrom, e.BearerFrom}
	if !sameAddress {
		for _, u := range e.URLs {
			names = append(names, u.Name)
		}
		names = append(append(names, signIn...), e.Type)
	}
	if old.Disabled { // who asks for a server wants to use it
		names = append(names, e.Enabled, e.Disabled)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	for _, p := range f.Problems { // meant to be one of these, and misspelt
		if p.Kind == WrongName && p.Server == old.Name.Text && slices.Contains(names, p.Want) {
			names = append(names, p.Have)
		}
	}
	return names
}

// find follows a path through an object that is to be written.
func (o Object) find(path Path) (any, bool) {
	for _, m := range o {
		if m.Name != path[0] {
			continue
		}
		if len(path) == 1 {
			return m.Value, true
		}
		inner, ok := m.Value.(Object)
		if !ok {
			return nil, false
		}
		return inner.find(path[1:])
	}
	return nil, false
}

// isNothing reports whether a value says no more than its absence would.
func (n *node) isNothing() bool {
	return n == nil || n.kind == null || n.kind >= list && len(n.elements) == 0 && len(n.members) == 0
}

// become is Set in the smallest steps: members and elements that stay the same
// keep their bytes and the comments beside them.
func (f *File) become(path Path, value any) (*File, error) {
	value, err := normal(value)
	if err != nil {
		return nil, err
	}
	n := f.doc.root.find(path)
	if n != nil && reflect.DeepEqual(plain(n), plainValue(value)) {
		return f, nil
	}
	switch v := value.(type) {
	case Object:
		if n == nil || n.kind != object {
			break
		}
		return f.becomeObject(path, n, v)
	case []any:
		if n.isNothing() && len(v) == 0 {
			return f, nil
		}
		if n == nil || n.kind != list || len(v) == 0 {
			break
		}
		return f.becomeList(path, n, v)
	}
	return f.Set(path, value)
}

func (f *File) becomeObject(path Path, n *node, want Object) (*File, error) {
	var err error
	for _, m := range want {
		if f, err = f.become(path.then(m.Name), m.Value); err != nil {
			return nil, err
		}
	}
	for _, m := range n.members {
		if _, ok := want.find(Path{m.name}); ok || f.doc.root.find(path.then(m.name)) == nil {
			continue
		}
		if f, err = f.Remove(path.then(m.name)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *File) becomeList(path Path, n *node, want []any) (*File, error) {
	var err error
	for i, value := range want {
		if f, err = f.become(path.then(strconv.Itoa(i)), value); err != nil {
			return nil, err
		}
	}
	for i := len(n.elements) - 1; i >= len(want); i-- {
		if f, err = f.Remove(path.then(strconv.Itoa(i))); err != nil {
			return nil, err
		}
	}
	return f, nil
}
