package clientconfig

import (
	"fmt"
	"slices"
	"strings"
)

// Add returns the file with one more server, in the names of its client. Of s it
// takes the texts of name, command, arguments, environment, working folder, URL
// and headers, and the transport; places and paths do not matter. It refuses with
// [ErrEdit] what this client cannot express, and a name that is taken.
func (f *File) Add(s *Server) (*File, error) {
	if s.Name.Text == "" || f.Server(s.Name.Text) != nil {
		return nil, fmt.Errorf("%w %s: a server needs a name that is not taken", ErrEdit, f.Path)
	}
	entry, err := f.Client.entry(s)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrEdit, f.Path, err)
	}
	entry = f.Client.complete(entry, s, func(string) bool { return false })
	if len(f.Places) > 0 && f.Places[0].List {
		entry = append(Object{{"name", s.Name.Text}}, entry...)
	}
	return f.Set(f.ServerPath(s.Name.Text), entry)
}

// entry spells a server as the client does.
func (c *Client) entry(s *Server) (Object, error) {
	e := &c.Entry
	var o Object
	cannot := func(what string) (Object, error) {
		return nil, fmt.Errorf("%s has no way to give a server %s", c.Name, what)
	}
	if err := c.entryType(s, &o); err != nil {
		return nil, err
	}
	switch command := append([]string{s.Command.Text}, texts(s.Args)...); {
	case s.URL.Text != "":
		name := e.urlName(s.Transport)
		if name == "" {
			return cannot("a URL with this transport")
		}
		o = append(o, Member{name, s.URL.Text})
	case s.Command.Text == "":
		return nil, fmt.Errorf("a server needs a command or a URL")
	case e.CommandList:
		o = append(o, Member{e.Command, command})
	default:
		o = append(o, Member{e.Command, command[0]}, Member{e.Args, command[1:]})
	}
	for _, part := range []struct {
		what, name string
		value      any
		absent     bool
	}{
		{"an environment", e.Env, pairs(s.Env), len(s.Env) == 0},
		{"variables by name", e.EnvFrom, texts(s.EnvFrom), len(s.EnvFrom) == 0},
		{"a file of variables", e.EnvFile, s.EnvFile.Text, s.EnvFile.Text == ""},
		{"a working folder", e.Cwd, s.Cwd.Text, s.Cwd.Text == ""},
		{"headers", e.Headers, pairs(s.Headers), len(s.Headers) == 0},
		{"headers from variables", e.HeadersFrom, pairs(s.HeadersFrom), len(s.HeadersFrom) == 0},
	} {
		switch {
		case part.absent:
		case part.name == "":
			return cannot(part.what)
		default:
			path := Path(strings.Split(part.name, "."))
			o = append(o, Member{path[0], wrap(path[1:], part.value)})
		}
	}
	return o, nil
}

// entryType adds the type where the client has or needs one.
func (c *Client) entryType(s *Server, o *Object) error {
	e, transport := &c.Entry, s.speaks()
	if e.Type == "" || transport == Stdio && !e.CommandNeedsType {
		return nil
	}
	if slices.ContainsFunc(e.URLs, func(u URLName) bool { return u.Transport == transport }) {
		return nil // the name of the URL says it
	}
	names := e.Types[transport]
	if len(names) == 0 {
		return fmt.Errorf("%s does not know the transport %s", c.Name, transport)
	}
	*o = append(*o, Member{e.Type, names[0]})
	return nil
}

// speaks is the transport to write down; Streamable HTTP is the usual one of a URL.
func (s *Server) speaks() Transport {
	switch {
	case s.URL.Text == "":
		return Stdio
	case s.Transport == Unknown:
		return HTTP
	}
	return s.Transport
}

// urlName is the field for a URL, or "".
func (e *Entry) urlName(transport Transport) string {
	for _, u := range e.URLs {
		if u.Transport == Unknown || transport == Unknown || u.Transport == transport {
			return u.Name
		}
	}
	return ""
}

func texts(values []Value) []string {
	l := make([]string, len(values))
	for i, v := range values {
		l[i] = v.Text
	}
	return l
}

func pairs(all []Pair) Object {
	var o Object
	for _, p := range all {
		o = append(o, Member{p.Name.Text, p.Value.Text})
	}
	return o
}
