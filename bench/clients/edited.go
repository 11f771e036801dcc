package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// The files of people: odd spaces, comments where the client reads them, keys we have
// never heard of. Each has the servers keep, drop and change, the entry of drop on
// lines of its own.
var (
	//go:embed testdata/claude.json
	claudeFile string
	//go:embed testdata/gemini.jsonc
	geminiFile string
	//go:embed testdata/opencode.jsonc
	opencodeFile string
	//go:embed testdata/copilot.jsonc
	copilotFile string
	//go:embed testdata/codex.toml
	codexFile string

	handMade = map[string]string{"claude": claudeFile, "gemini": geminiFile, "opencode": opencodeFile, "copilot": copilotFile, "codex": codexFile}
)

// editedFiles changes such a file three times, looks at the lines that differ, and
// asks the client.
func editedFiles(ctx context.Context, w *world, c *realclient.Client) (*finding, error) {
	f := &finding{}
	for _, v := range []struct {
		name      string
		crlf, bom bool
	}{
		{"LF", false, false},
		{"CRLF", true, false},
		{"CRLF and a byte order mark", true, true},
	} {
		place := clientconfig.ByID(c.Config).Files[0]
		if v.bom && place.NoBOM || w.quick && (!v.crlf || v.bom == place.NoBOM) {
			continue
		}
		h, err := w.home(c)
		if err != nil {
			return nil, err
		}
		content := strings.NewReplacer("WITNESS_PROGRAM", w.witness, "JOURNALS", filepath.Join(h.dir, "journals")).Replace(handMade[c.ID])
		if v.crlf {
			content = strings.ReplaceAll(content, "\n", "\r\n")
		}
		if v.bom {
			content = "\ufeff" + content
		}
		if err := h.edit(ctx, f, place, []byte(content), v.name); err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return f, nil
}

func (h *home) edit(ctx context.Context, f *finding, place clientconfig.Place, content []byte, what string) error {
	path := h.system.Path(place)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o640); err != nil {
		return err
	}
	added := h.local("added", []string{"one", "two words"}, "TOKEN=c")
	for _, step := range []struct {
		name string
		do   func(*clientconfig.File) (*clientconfig.File, error)
		fine func(old, new []string) bool
	}{
		{"set", func(file *clientconfig.File) (*clientconfig.File, error) {
			args := file.Server("change").Args
			i := slices.IndexFunc(args, func(v clientconfig.Value) bool { return v.Text == "old" })
			return file.Set(args[i].Path, "brand new")
		}, func(old, new []string) bool { return len(old) == 1 && len(new) == 1 }},
		{"add", func(file *clientconfig.File) (*clientconfig.File, error) { return file.Add(added) },
			func(old, new []string) bool { // the line before may need a comma
				return len(new) > 0 && (len(old) == 0 || len(old) == 1 && strings.Replace(new[0], ",", "", 1) == strings.Replace(old[0], ",", "", 1))
			}},
		{"remove", func(file *clientconfig.File) (*clientconfig.File, error) { return file.Remove(file.ServerPath("drop")) },
			func(old, new []string) bool { // lines of that entry and no others
				return len(new) == 0 && len(old) > 0 && slices.IndexFunc(old, func(l string) bool {
					return strings.Contains(l, "keep") || strings.Contains(l, "change") || strings.Contains(l, "added")
				}) < 0
			}},
	} {
		file := clientconfig.Open(path, h.client(), h.setup.Project, place)
		changed, err := step.do(file)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		old, new := difference(file.Bytes(), changed.Bytes())
		f.check(step.fine(old, new), "%s, %s: the lines %q became %q", what, step.name, old, new)
		if _, err := h.store.Save(ctx, changed); err != nil {
			return err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f.check(info.Mode().Perm() == 0o640, "%s: the mode is now %o", what, info.Mode().Perm())
	h.want = []*clientconfig.Server{h.local("keep", []string{"a"}), h.local("change", []string{"brand new", "last"}, "A=b"), added}
	h.gone = []string{"drop"}
	written, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := h.understood(ctx, f, what); err != nil {
		return err
	}
	if after, err := os.ReadFile(path); err != nil {
		return err
	} else if !bytes.Equal(after, written) {
		f.note("rewrites its own file when it starts")
	}
	return nil
}

// difference returns the lines between the first and the last that differ.
func difference(a, b []byte) (old, new []string) {
	old, new = strings.SplitAfter(string(a), "\n"), strings.SplitAfter(string(b), "\n")
	for len(old) > 0 && len(new) > 0 && old[0] == new[0] {
		old, new = old[1:], new[1:]
	}
	for len(old) > 0 && len(new) > 0 && old[len(old)-1] == new[len(new)-1] {
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	return old, new
}
