package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func unreadable(_ context.Context, t *treatment) []Fix {
	p, _ := t.problem()
	run := ""
	if !t.os.IsWindows() && strings.Contains(p.Detail, "permission") {
		run = "chmod u+r " + t.quote(t.c.At.File)
	}
	return []Fix{never("by_hand", run, "make %s a plain file that you may read: %s", t.c.At.File, p.Detail)}
}

func unparsable(_ context.Context, t *treatment) []Fix {
	p, _ := t.problem()
	does := fmt.Sprintf("correct %s:%d:%d: %s", t.c.At.File, p.At.Line, p.At.Column, p.Detail)
	if t.file != nil {
		if s := t.file.Suggestion(); s != "" {
			does += "; perhaps " + s
		}
	}
	return []Fix{never("by_hand", "", "%s", does)}
}

func strictJSON(_ context.Context, t *treatment) []Fix {
	if t.file == nil {
		return nil
	}
	what := "comments and trailing commas"
	if t.file.SkipsComments() {
		what = "trailing commas"
	}
	does := fmt.Sprintf("remove %s, which %s cannot read", what, t.client.Name)
	edit := t.editFile(nil, func(f *clientconfig.File) (*clientconfig.File, error) { return f.Strict() })
	return t.fix("strict_json", Auto, does, edit)
}

func byteOrderMark(_ context.Context, t *treatment) []Fix {
	if t.file == nil {
		return nil
	}
	edit := t.editFile(nil, func(f *clientconfig.File) (*clientconfig.File, error) { return f.Unmarked() })
	return t.fix("remove_mark", Auto, fmt.Sprintf("remove the byte order mark, which %s cannot read", t.client.Name), edit)
}

func emptyFile(_ context.Context, t *treatment) []Fix {
	if t.file == nil {
		return nil
	}
	edit := t.editFile(nil, func(f *clientconfig.File) (*clientconfig.File, error) { return f.Braces() })
	return t.fix("write_braces", Auto, "write {} into the empty file", edit)
}

func duplicateKey(_ context.Context, t *treatment) []Fix {
	p, _ := t.problem()
	does := fmt.Sprintf("keep one of the two members %q: the first is at %s", p.Have, t.where())
	if t.file != nil {
		if s := t.file.Server(p.Have); s != nil {
			does += fmt.Sprintf(", the last, which counts, at line %d", s.At.Line)
		}
	}
	return []Fix{never("by_hand", "", "%s", does)}
}

func wrongRoot(_ context.Context, t *treatment) []Fix {
	p, _ := t.problem()
	return []Fix{never("by_hand", "", "write an object at %s: %s", t.where(), p.Detail)}
}

// misplaced moves one server, or all of a file, to the file that the client reads.
func misplaced(_ context.Context, t *treatment) []Fix {
	if t.file == nil || !t.file.Ignored {
		return nil
	}
	place, path, ok := t.rightPlace()
	if !ok {
		return []Fix{never("by_hand", "", "move the servers to a file that %s reads", t.client.Name)}
	}
	var names []string
	for _, s := range t.file.Servers {
		if t.c.Name == "" || s.Name.Text == t.c.Name {
			names = append(names, s.Name.Text)
		}
	}
	wrong, client, project := t.file, t.client, t.project
	open := func() *clientconfig.File {
		if f := clientconfig.Open(path, client, project, place); f.Bytes() != nil {
			return f
		}
		return clientconfig.New(path, client, project, place)
	}
	add := Edit{File: path, Path: place.Key, open: open, apply: func(f *clientconfig.File) (*clientconfig.File, error) {
		var err error
		for _, name := range names {
			if f, err = f.Adopt(wrong, name); err != nil {
				return nil, err
			}
		}
		f, _, err = f.Settle(func(name string) bool { return slices.Contains(names, name) })
		return f, err
	}}
	remove := t.editFile(t.file.ServerPath(names[0])[:1], func(f *clientconfig.File) (*clientconfig.File, error) {
		var err error
		for _, name := range names {
			if f, err = f.Remove(f.ServerPath(name)); err != nil {
				return nil, err
			}
		}
		return f, nil
	})
	if _, err := add.apply(open()); err != nil {
		return []Fix{never("by_hand", "", "move %s to %s by hand: a server of that name is there, or the file cannot be edited", list(names), path)}
	}
	return t.fix("move_entry", Ask, fmt.Sprintf("move %s to %s, which %s reads", list(names), path, t.client.Name), add, remove)
}

// rightPlace is the file for what stands in one that is ignored: of the same
// project, or else the user's own.
func (t *treatment) rightPlace() (clientconfig.Place, string, bool) {
	scope := "user"
	if t.project != "" && isBelow(t.project, t.file.Path) {
		scope = "project"
	}
	for _, p := range t.client.Files {
		if path := t.system.Path(p); p.Scope == scope && path != "" && !strings.Contains(path, "*") {
			return p, path, true
		}
	}
	return clientconfig.Place{}, "", false
}

// list writes names for people.
func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
