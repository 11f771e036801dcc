package doctor

import (
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// Rewriting an entry in the words of its client.

// argvOf is the whole command line of an entry, nil if it has none.
func argvOf(s *clientconfig.Server) []string {
	if s.Command.Text == "" && s.Command.Path == nil {
		return nil
	}
	argv := []string{s.Command.Text}
	for _, a := range s.Args {
		argv = append(argv, a.Text)
	}
	return argv
}

// setArgv writes another command line, touching the words that differ alone.
// Arguments that are all gone leave an empty list: not every client takes an entry
// without one.
func setArgv(f *clientconfig.File, s *clientconfig.Server, argv []string) (*clientconfig.File, error) {
	e, was, err := &s.Client.Entry, argvOf(s), error(nil)
	if e.CommandList {
		return f.SetTexts(argsPath(s), argv)
	}
	if len(was) == 0 || argv[0] != was[0] {
		path := s.Command.Path
		if path == nil {
			path = under(s.Path, e.Command)
		}
		if f, err = f.Set(path, argv[0]); err != nil {
			return nil, err
		}
	}
	if len(was) > 0 && slices.Equal(argv[1:], was[1:]) {
		return f, nil
	}
	return f.SetTexts(argsPath(s), argv[1:])
}

// argsPath is where the arguments stand, or would.
func argsPath(s *clientconfig.Server) clientconfig.Path {
	parent := func(p clientconfig.Path) clientconfig.Path { return slices.Clone(p[:len(p)-1]) }
	e := &s.Client.Entry
	switch {
	case len(s.Args) > 0:
		return parent(s.Args[0].Path)
	case e.CommandList && s.Command.Path != nil:
		return parent(s.Command.Path)
	case e.CommandList:
		return under(s.Path, e.Command)
	case e.CommandPath != "" && len(s.Command.Path) > len(s.Path)+1: // an object of an older file
		return append(parent(s.Command.Path), e.Args)
	}
	return under(s.Path, e.Args)
}

// under is a part of an entry by its name, which may have dots.
func under(path clientconfig.Path, name string) clientconfig.Path {
	return append(slices.Clone(path), strings.Split(name, ".")...)
}

// asCommand makes an entry start a command. An entry with a URL loses it.
func asCommand(f *clientconfig.File, s *clientconfig.Server, argv []string) (*clientconfig.File, error) {
	var err error
	if s.URL.Path != nil {
		if f, err = f.Remove(s.URL.Path); err != nil {
			return nil, err
		}
	}
	if f, err = retype(f, s, clientconfig.Stdio); err != nil {
		return nil, err
	}
	return setArgv(f, s, argv)
}

// asURL makes an entry name a URL. An entry with a command loses it.
func asURL(f *clientconfig.File, s *clientconfig.Server, url string, t clientconfig.Transport) (*clientconfig.File, error) {
	e, err := &f.Client.Entry, error(nil)
	for _, part := range []string{e.Args, e.Command} {
		if part == "" || part == e.Args && len(s.Args) == 0 || e.CommandList && part == e.Args {
			continue
		}
		if f, err = f.Remove(under(s.Path, part)); err != nil {
			return nil, err
		}
	}
	field := urlField(e, t)
	if f, err = f.Set(under(s.Path, field), url); err != nil {
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
	return f.Set(under(s.Path, e.Type), words[0])
}
