package clientconfig

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesAreReadAsTheirClientsReadThem(t *testing.T) {
	archives(t, "read/*.txtar", func(t *testing.T, a *archive) string {
		s := a.unpack(t)
		var clients []*Client
		if id := a.setting("client"); id != "" {
			clients = append(clients, ByID(id))
		}
		var b strings.Builder
		for _, f := range s.Find(clients...) {
			dump(&b, f)
		}
		dir := filepath.ToSlash(filepath.Dir(s.Home))
		return strings.NewReplacer(dir+"/", "", Path{dir}.String()[1:], "<dir>").Replace(filepath.ToSlash(b.String()))
	})
}

// dump writes all that a File says, one line for each value.
func dump(b *strings.Builder, f *File) {
	fmt.Fprintf(b, "%s: %s", f.Client.ID, f.Path)
	if f.Ignored {
		b.WriteString(" (ignored)")
	}
	b.WriteString("\n")
	for _, s := range f.Servers {
		fmt.Fprintf(b, "  %d:%d %s server %q", s.At.Line, s.At.Column, s.Scope, s.Name.Text)
		if s.Transport != Unknown {
			fmt.Fprintf(b, " by %s", s.Transport)
		}
		if s.Disabled {
			b.WriteString(" disabled")
		}
		fmt.Fprintf(b, " at %s\n", s.Path)
		line := func(what string, v Value) {
			if v.Path == nil {
				return
			}
			rel := v.Path[len(s.Path):]
			fmt.Fprintf(b, "    %d:%d %s %q at %s\n", v.At.Line, v.At.Column, what, v.Text, rel)
		}
		line("command", s.Command)
		for _, v := range s.Args {
			line("arg", v)
		}
		pairs := func(what string, pairs []Pair) {
			for _, p := range pairs {
				line(what+" "+p.Name.Text, p.Value)
			}
		}
		pairs("env", s.Env)
		for _, v := range s.EnvFrom {
			line("env from", v)
		}
		line("env file", s.EnvFile)
		line("cwd", s.Cwd)
		line("url", s.URL)
		pairs("header", s.Headers)
		pairs("header from", s.HeadersFrom)
		line("type", s.Type)
		line("timeout", s.Timeout)
		pairs("other", s.Other)
	}
	for _, p := range f.Problems {
		fmt.Fprintf(b, "  %d:%d %s", p.At.Line, p.At.Column, p.Kind)
		if p.Server != "" {
			fmt.Fprintf(b, " in %q", p.Server)
		}
		if p.Have != "" {
			fmt.Fprintf(b, " have %q", p.Have)
		}
		if p.Want != "" {
			fmt.Fprintf(b, " want %q", p.Want)
		}
		if len(p.Path) > 0 {
			fmt.Fprintf(b, " at %s", p.Path)
		}
		if p.Detail != "" {
			fmt.Fprintf(b, ": %s", p.Detail)
		}
		b.WriteString("\n")
	}
}
