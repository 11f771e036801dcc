package doctor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// Edits are made twice: on a copy, to see whether they help, and again if the
// client has written its file in the meantime. So each one finds its place by the
// server's name, and makes sure that what it is about to replace is still what the
// finding was about.

var errOtherNow = errors.New("the entry has changed in the meantime")

// editServer is an edit of the case's entry. path is for people.
func (t *treatment) editServer(path clientconfig.Path, apply func(*clientconfig.File, *clientconfig.Server) (*clientconfig.File, error)) Edit {
	name := t.c.Name
	return Edit{File: t.file.Path, Path: path, apply: func(f *clientconfig.File) (*clientconfig.File, error) {
		s := f.Server(name)
		if s == nil {
			return nil, errOtherNow
		}
		return apply(f, s)
	}}
}

// editFile is an edit of the file as a whole.
func (t *treatment) editFile(path clientconfig.Path, apply func(*clientconfig.File) (*clientconfig.File, error)) Edit {
	return Edit{File: t.file.Path, Path: path, apply: apply}
}

// setLine writes another command line.
func (t *treatment) setLine(words ...string) Edit {
	was := argvOf(t.server)
	path := argsPath(t.server)
	if words[0] != was[0] {
		path = t.server.Command.Path
	}
	return t.editServer(path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if !slices.Equal(argvOf(s), was) {
			return nil, errOtherNow
		}
		return setArgv(f, s, words)
	})
}

// setEnv sets a variable of the entry; was is what it holds now, "" if it is not
// there.
func (t *treatment) setEnv(name, was, value string) Edit {
	path := envPath(t.server, name)
	return t.editServer(path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if s.Client.Entry.Env == "" {
			return nil, fmt.Errorf("%w: %s has no place for variables", clientconfig.ErrEdit, s.Client.Name)
		}
		if now, _ := envOf(s, name); now != was {
			return nil, errOtherNow
		}
		return f.Set(envPath(s, name), value)
	})
}

func envPath(s *clientconfig.Server, name string) clientconfig.Path {
	for _, p := range s.Env {
		if p.Name.Text == name {
			return p.Value.Path
		}
	}
	if len(s.Env) > 0 {
		p := s.Env[0].Value.Path
		return append(slices.Clone(p[:len(p)-1]), name)
	}
	return append(under(s.Path, s.Client.Entry.Env), name)
}

// envOf is what the entry says of a variable.
func envOf(s *clientconfig.Server, name string) (string, bool) {
	if s == nil {
		return "", false
	}
	for _, p := range s.Env {
		if p.Name.Text == name {
			return p.Value.Text, true
		}
	}
	return "", false
}

// setValue replaces a text of the entry.
func (t *treatment) setValue(v clientconfig.Value, text string) Edit {
	return t.editServer(v.Path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if now, ok := f.Text(v.Path); !ok || now != v.Text || !slices.Equal(v.Path[:len(s.Path)], s.Path) {
			return nil, errOtherNow
		}
		return f.Set(v.Path, text)
	})
}

// rename gives a member of the file another name.
func (t *treatment) rename(path clientconfig.Path, name string) Edit {
	return t.editFile(path, func(f *clientconfig.File) (*clientconfig.File, error) { return f.Rename(path, name) })
}

// A part is a value of an entry and what kind of part it is, as
// [clientconfig.Client.References] names them.
type part struct {
	kind string
	name string // of a variable or header
	clientconfig.Value
}

// parts are all values of an entry in which a variable, a host or a port may stand.
func parts(s *clientconfig.Server) []part {
	if s == nil {
		return nil
	}
	var all []part
	add := func(kind, name string, v clientconfig.Value) {
		if v.Path != nil {
			all = append(all, part{kind, name, v})
		}
	}
	add("command", "", s.Command)
	for _, a := range s.Args {
		add("args", "", a)
	}
	for _, p := range s.Env {
		add("env", p.Name.Text, p.Value)
	}
	add("cwd", "", s.Cwd)
	add("url", "", s.URL)
	for _, p := range s.Headers {
		add("headers", p.Name.Text, p.Value)
	}
	return all
}

// quote writes a word for a shell, for people to paste.
func (s *sources) quote(word string) string { return quoteOn(s.os, word) }

// typed is a line of some program about a server, for people to paste.
func (s *sources) typed(program, name string, flags ...string) string {
	return typedOn(s.os, program, []string{name}, flags...)
}
