//go:build unix

package clientconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever wrote a project can put a link into it that leads anywhere.
func TestNothingIsWrittenThroughALinkOutOfAProject(t *testing.T) {
	const before = `{"mcpServers": {"a": {"command": "npx"}}}`
	place := func(scope string) Place {
		for _, p := range ByID("cursor").Files {
			if p.Scope == scope {
				return p
			}
		}
		t.Fatalf("no file of scope %s", scope)
		return Place{}
	}
	for _, test := range []struct {
		name, scope string
		link        func(project, outside string) error // .cursor/mcp.json
		refused     bool
	}{
		{"a file outside", "project", func(p, o string) error {
			return errors.Join(os.Mkdir(p+"/.cursor", 0o755), os.Symlink(o+"/mcp.json", p+"/.cursor/mcp.json"))
		}, true},
		{"a relative link", "project", func(p, o string) error {
			return errors.Join(os.Mkdir(p+"/.cursor", 0o755), os.Symlink("../../outside/mcp.json", p+"/.cursor/mcp.json"))
		}, true},
		{"a folder outside", "project", func(p, o string) error { return os.Symlink(o, p+"/.cursor") }, true},
		{"a link over a link", "project", func(p, o string) error {
			return errors.Join(os.Symlink(o, p+"/folder"), os.Symlink("folder", p+"/.cursor"))
		}, true},
		{"a link inside", "project", func(p, o string) error {
			return errors.Join(os.Mkdir(p+"/real", 0o755), os.WriteFile(p+"/real/mcp.json", []byte(before), 0o600), os.Symlink("real", p+"/.cursor"))
		}, false},
		{"a link of the user's own", "user", func(p, o string) error { return os.Symlink(o, p+"/.cursor") }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			project, outside := filepath.Join(root, "project"), filepath.Join(root, "outside")
			if err := errors.Join(os.Mkdir(project, 0o755), os.Mkdir(outside, 0o755)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(outside, "mcp.json"), before)
			if err := test.link(project, outside); err != nil {
				t.Fatal(err)
			}
			store := &Store{Dir: filepath.Join(root, "state")}
			f := Open(filepath.Join(project, ".cursor", "mcp.json"), ByID("cursor"), project, place(test.scope))
			f, err := f.Set(Path{"mcpServers", "a", "command"}, "uvx")
			if err != nil {
				t.Fatal(err)
			}
			_, err = store.Save(t.Context(), f)
			if errors.Is(err, ErrRefused) != test.refused || (f.MayReplace() != nil) != test.refused || (f.LeavesProject() != "") != test.refused {
				t.Errorf("saving gives %v, a plan says %v, leads to %q", err, f.MayReplace(), f.LeavesProject())
			}
			if same := content(t, filepath.Join(outside, "mcp.json")) == before; test.refused && !same {
				t.Error("the file outside was written")
			}
		})
	}
}

// A file of a project is replaced by a link after it was written, and then undone.
func TestNothingIsRestoredThroughALinkOutOfAProject(t *testing.T) {
	root := t.TempDir()
	project := filepath.Join(root, "project")
	file, outside := filepath.Join(project, ".cursor", "mcp.json"), filepath.Join(root, "outside.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, file, sample)
	var place Place
	for _, p := range ByID("cursor").Files {
		if p.Scope == "project" {
			place = p
		}
	}
	f, err := Open(file, ByID("cursor"), project, place).Set(Path{"mcpServers", "a", "command"}, "uvx")
	if err != nil {
		t.Fatal(err)
	}
	store := &Store{Dir: filepath.Join(root, "state")}
	c, err := store.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	after := content(t, file)
	put(t, outside, after)
	if err := errors.Join(os.Remove(file), os.Symlink(outside, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(t.Context(), c.ID); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "outside of the project") {
		t.Errorf("got %v, want it refused", err)
	}
	if content(t, outside) != after {
		t.Error("the file outside was written")
	}
}

func TestANewFileOfAProjectIsNotMadeThroughALink(t *testing.T) {
	root := t.TempDir()
	project, outside := filepath.Join(root, "project"), filepath.Join(root, "outside")
	if err := errors.Join(os.Mkdir(project, 0o755), os.Mkdir(outside, 0o755), os.Symlink(outside, project+"/.kiro")); err != nil {
		t.Fatal(err)
	}
	for _, p := range ByID("kiro").Files {
		if p.Scope != "project" {
			continue
		}
		f, err := New(filepath.Join(project, filepath.FromSlash(p.Path)), ByID("kiro"), project, p).Set(append(p.Key[:len(p.Key):len(p.Key)], "a", "command"), "npx")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&Store{Dir: filepath.Join(root, "state")}).Save(t.Context(), f); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v, want it refused", p.Path, err)
		}
	}
	if made, _ := os.ReadDir(outside); len(made) > 0 {
		t.Errorf("%s was made outside of the project", made[0].Name())
	}
}
