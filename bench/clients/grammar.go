package main

import (
	"context"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// liberties are what people and editors write that not every client reads. The
// comment of a JSON file stands for #, the comma does not exist in TOML.
var liberties = []struct {
	name       string
	json, toml func(string) string
}{
	{"a comment",
		func(s string) string { return "// mine\n" + s + "/* all */\n" },
		func(s string) string { return "# mine\n" + s + "# all\n" }},
	{"a trailing comma",
		func(s string) string { return strings.ReplaceAll(s, "}}", "},}") },
		nil},
	{"a byte order mark",
		func(s string) string { return "\ufeff" + s },
		func(s string) string { return "\ufeff" + s }},
}

// grammar compares our table with the client: a file in which we see a problem is one
// that it refuses, and one with everything in which we see none is read.
func grammar(ctx context.Context, w *world, c *realclient.Client) (*finding, error) {
	f := &finding{}
	fine := func(s string) string { return s }
	var names []string
	for _, l := range liberties {
		write := l.json
		if c.ID == "codex" {
			write = l.toml
		}
		if write == nil {
			continue
		}
		if h, problems, err := w.plainFile(c, write); err != nil {
			return nil, err
		} else if len(problems) == 0 {
			others := fine
			fine = func(s string) string { return write(others(s)) }
			names = append(names, l.name)
		} else if v, err := h.verdict(ctx); err != nil {
			return nil, err
		} else {
			f.check(v.State == realclient.Absent, "%s: we see %v, and the client says %s %q", l.name, problems, v.State, v.Text)
			f.note("refuses the whole file for %s", l.name)
		}
	}
	h, problems, err := w.plainFile(c, fine)
	if err != nil {
		return nil, err
	}
	v, err := h.verdict(ctx)
	if err != nil {
		return nil, err
	}
	f.check(len(problems) == 0, "together we see a problem: %v", problems)
	f.check(v.State == realclient.OK || v.State == realclient.NotChecked, "%s: we see no problem, and the client says %s %q", strings.Join(names, " and "), v.State, v.Text)
	f.note("reads %s", strings.Join(names, " and "))
	return f, nil
}

// plainFile writes a file with one server, changed by write, and what we say of it.
func (w *world) plainFile(c *realclient.Client, write func(string) string) (*home, []clientconfig.Problem, error) {
	h, err := w.home(c)
	if err != nil {
		return nil, nil, err
	}
	place := h.client().Files[0]
	content := `{"KEY": {"a": {"command": "WITNESS", "args": ["JOURNAL"]}}}` + "\n"
	switch c.ID {
	case "codex":
		content = "[KEY.a]\ncommand = \"WITNESS\"\nargs = [\"JOURNAL\"]\n"
	case "opencode":
		content = `{"KEY": {"a": {"type": "local", "command": ["WITNESS", "JOURNAL"]}}}` + "\n"
	}
	path, err := h.write(place, write(strings.ReplaceAll(content, "KEY", place.Key[0])))
	if err != nil {
		return nil, nil, err
	}
	return h, clientconfig.Open(path, h.client(), h.setup.Project, place).Problems, nil
}

// verdict is what the client says of the server "a".
func (h *home) verdict(ctx context.Context) (realclient.Verdict, error) {
	out := h.c.List(ctx, h.setup)
	return h.c.Verdict(out, "a"), out.Err
}
