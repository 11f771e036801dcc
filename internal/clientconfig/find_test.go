package clientconfig

import (
	"os"
	"path/filepath"
	"testing"
)

// Who opens a terminal is at home, and types the bare command there.
func TestAtHomeAFileIsTheUsersAndNotAProjects(t *testing.T) {
	for _, c := range Clients() {
		home := t.TempDir()
		s := System{OS: "linux", Home: home, Project: home, Root: t.TempDir(), Getenv: func(string) string { return "" }}
		user := make(map[string]bool)
		for _, p := range c.Files {
			if path := s.Path(p); p.Scope == "user" && p.Format == JSON && path != "" {
				user[path] = true
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(`{"`+p.Key[0]+`": {"a": {"command": "a"}}}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, f := range s.Find(c) {
			for _, server := range f.Servers {
				if user[f.Path] && server.Scope != "user" {
					t.Errorf("%s: %s has a server of scope %q", c.ID, f.Path, server.Scope)
				}
			}
			if user[f.Path] && len(f.Servers) > 1 {
				t.Errorf("%s: %s is read %d times", c.ID, f.Path, len(f.Servers))
			}
		}
	}
}
