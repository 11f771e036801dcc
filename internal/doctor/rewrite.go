package doctor

import (
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// Rewriting an entry in the words of its client.

// argvOf is the whole command line of an entry.
func argvOf(s *clientconfig.Server) []string {
	if s.Command.Text == "" {
		return nil
	}
	argv := []string{s.Command.Text}
	for _, a := range s.Args {
		argv = append(argv, a.Text)
	}
	return argv
}

// asCommand makes an entry start a command. An entry with a URL loses it.
func asCommand(f *clientconfig.File, s *clientconfig.Server, argv []string) (*clientconfig.File, error) {
	e, err := &f.Client.Entry, error(nil)
	if s.URL.Path != nil {
		if f, err = f.Remove(s.URL.Path); err != nil {
			return nil, err
		}
	}
	if f, err = retype(f, s, clientconfig.Stdio); err != nil {
		return nil, err
	}
	if e.CommandList {
		return f.Set(member(s, e.Command), argv)
	}
	if f, err = f.Set(member(s, e.Command), argv[0]); err != nil {
		return nil, err
	}
	return f.Set(member(s, e.Args), argv[1:])
}

// asURL makes an entry name a URL. An entry with a command loses it.
func asURL(f *clientconfig.File, s *clientconfig.Server, url string, t clientconfig.Transport) (*clientconfig.File, error) {
	e, err := &f.Client.Entry, error(nil)
	for _, part := range []string{e.Args, e.Command} {
		if part == "" || part == e.Args && len(s.Args) == 0 || e.CommandList && part == e.Args {
			continue
		}
		if f, err = f.Remove(member(s, part)); err != nil {
			return nil, err
		}
	}
	field := urlField(e, t)
	if f, err = f.Set(member(s, field), url); err != nil {
		return nil, err
	}
	return retype(f, s, t)
}

// urlField is the name under which this client expects a URL of that transport.
func urlField(e *clientconfig.Entry, t clientconfig.Transport) string {
	for _, u := range e.URLs {
		if u.Transport == t {
			return u.Name
		}
	}
	if len(e.URLs) > 0 {
		return e.URLs[0].Name
	}
	return "url"
}

// retype makes the type of an entry say the transport, where it says one or has to.
func retype(f *clientconfig.File, s *clientconfig.Server, t clientconfig.Transport) (*clientconfig.File, error) {
	e := &f.Client.Entry
	words := e.Types[t]
	needed := e.URLNeedsType && t != clientconfig.Stdio || e.CommandNeedsType && t == clientconfig.Stdio
	if e.Type == "" || len(words) == 0 || s.Type.Path == nil && !needed {
		return f, nil
	}
	if slices.Contains(words, s.Type.Text) {
		return f, nil
	}
	return f.Set(member(s, e.Type), words[0])
}

// member is the path of a part of an entry, by the name its client gives it.
func member(s *clientconfig.Server, name string) clientconfig.Path {
	return append(slices.Clone(s.Path), strings.Split(name, ".")...)
}
