package clientconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestListsOfServersThatAreSwitchedOff(t *testing.T) {
	servers := `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`
	for _, test := range []struct {
		client string
		files  map[string]string // PROJECT in a content is the project's folder
		off    []string
	}{
		{"claude-code", map[string]string{"project/.mcp.json": servers}, nil},
		{"claude-code", map[string]string{"project/.mcp.json": servers, "project/.claude/settings.local.json": `{"disabledMcpjsonServers": ["b", "c", 1]}`}, []string{"b"}},
		{"claude-code", map[string]string{"project/.mcp.json": servers, "home/.claude/settings.json": `{"disabledMcpjsonServers": ["a"]}`, "project/.claude/settings.json": `{"disabledMcpjsonServers": ["b"]}`}, []string{"a", "b"}},
		// That list is about the project's servers and no others.
		{"claude-code", map[string]string{"home/.claude.json": servers, "project/.claude/settings.json": `{"disabledMcpjsonServers": ["b"]}`}, nil},
		{"claude-code", map[string]string{"project/.mcp.json": servers, "home/.claude.json": `{"projects": {"PROJECT": {"disabledMcpServers": ["a"]}, "/other": {"disabledMcpServers": ["b"]}}}`}, []string{"a"}},
		{"claude-code", map[string]string{"project/.mcp.json": servers, "project/.claude/settings.json": `{"disabledMcpjsonServers": "b"}`}, nil},
		{"claude-code", map[string]string{"project/.mcp.json": servers, "project/.claude/settings.json": `{"disabledMcpjsonServers": ["b"`}, nil},
		{"gemini-cli", map[string]string{"home/.gemini/settings.json": `{"mcp": {"excluded": ["a"]}, "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`}, []string{"a"}},
	} {
		root := t.TempDir()
		s := System{OS: "linux", Home: filepath.Join(root, "home"), Project: filepath.Join(root, "project"), Root: t.TempDir(), Getenv: func(string) string { return "" }}
		for name, content := range test.files {
			name = filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(strings.ReplaceAll(content, "PROJECT", s.Project)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var off []string
		for _, f := range s.Find(ByID(test.client)) {
			for _, server := range f.Servers {
				if server.Off {
					off = append(off, server.Name.Text)
				}
			}
		}
		if !slices.Equal(off, test.off) {
			t.Errorf("%s, %v: off are %q, want %q", test.client, test.files, off, test.off)
		}
	}
}
