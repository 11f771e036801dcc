package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// What an agent may not agree to in a person's name is found out from what a fix makes
// of an entry, whatever the fix is called.
func TestAFixThatStartsSomethingNewNeedsAPerson(t *testing.T) {
	for _, test := range []struct {
		name, before, after string
		want                bool
	}{
		{"another script", `{"command": "node", "args": ["/x/build/index.js"]}`, `{"command": "node", "args": ["/x/dist/index.js"]}`, true},
		{"another program", `{"command": "nodf"}`, `{"command": "node"}`, true},
		{"another package", `{"command": "npx", "args": ["-y", "@x/Server"]}`, `{"command": "npx", "args": ["-y", "@x/server"]}`, true},
		{"another port", `{"type": "http", "url": "http://localhost:80/mcp"}`, `{"type": "http", "url": "http://localhost:8080/mcp"}`, true},
		{"another host", `{"type": "http", "url": "http://a.example/mcp"}`, `{"type": "http", "url": "http://b.example/mcp"}`, true},
		{"an option with a path", `{"command": "node", "args": ["x.js"]}`, `{"command": "node", "args": ["--require=./y.js", "x.js"]}`, true},
		{"a variable that steers", `{"command": "npx", "args": ["x"]}`, `{"command": "npx", "args": ["x"], "env": {"NODE_OPTIONS": "--require ./y.js"}}`, true},
		{"a variable of the user's", `{"command": "npx", "args": ["x"]}`, `{"command": "npx", "args": ["x"], "env": {"A_TOKEN": "${A_TOKEN}"}}`, true},
		{"another variable of the user's", `{"command": "npx", "args": ["x"], "env": {"A": "${B}"}}`, `{"command": "npx", "args": ["x"], "env": {"A": "${C}"}}`, true},
		{"a variable for a container", `{"command": "docker", "args": ["run", "-i", "x"], "env": {"A_TOKEN": "v"}}`,
			`{"command": "docker", "args": ["run", "-i", "-e", "A_TOKEN", "x"], "env": {"A_TOKEN": "v"}}`, true},

		{"a command and its arguments", `{"command": "npx -y x"}`, `{"command": "npx", "args": ["-y", "x"]}`, false},
		{"arguments in one text", `{"command": "npx", "args": "-y x --name 'a b'"}`, `{"command": "npx", "args": ["-y", "x", "--name", "a b"]}`, false},
		{"the same program by its path", `{"command": "npx", "args": ["x"]}`, `{"command": "/home/u/.nvm/bin/npx", "args": ["x"], "env": {"PATH": "/home/u/.nvm/bin:${PATH}"}}`, false},
		{"a program of that name in the project", `{"command": "npx", "args": ["x"]}`, `{"command": "PROJECT/npx", "args": ["x"]}`, true},
		{"a switch", `{"command": "npx", "args": ["x"]}`, `{"command": "npx", "args": ["-y", "x"]}`, false},
		{"a bound on a version", `{"command": "uvx", "args": ["x"]}`, `{"command": "uvx", "args": ["--with", "mcp<2", "--python", "3.12", "x"]}`, false},
		{"this machine by its number", `{"type": "http", "url": "http://localhost:80/mcp"}`, `{"type": "http", "url": "http://127.0.0.1:80/mcp"}`, false},
		{"this machine by its number of IPv6", `{"type": "http", "url": "http://localhost:80/mcp"}`, `{"type": "http", "url": "http://[::1]:80/mcp"}`, false},
		{"a reference in another spelling", `{"command": "npx", "args": ["x"], "env": {"A": "${env:B}"}}`, `{"command": "npx", "args": ["x"], "env": {"A": "${B}"}}`, false},
		{"a variable under another name", `{"command": "npx", "args": ["x"], "env": {"A": "v"}}`, `{"command": "npx", "args": ["x"], "env": {"B": "v"}}`, false},
		{"behind mcpmend", `{"command": "npx", "args": ["x"]}`, `{"command": "/opt/mcpmend", "args": ["run", "--", "npx", "x"]}`, false},
		{"something else behind mcpmend", `{"command": "npx", "args": ["x"]}`, `{"command": "/opt/mcpmend", "args": ["run", "--", "npx", "other"]}`, true},
		{"through cmd", `{"command": "npx", "args": ["x"]}`, `{"command": "cmd", "args": ["/c", "npx", "x"]}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			project, file := filepath.Join(dir, "project"), filepath.Join(dir, ".claude.json")
			client := clientconfig.ByID("claude-code")
			read := func(path, entry string) *clientconfig.File {
				entry = strings.ReplaceAll(entry, "PROJECT", filepath.ToSlash(project))
				if err := os.WriteFile(path, []byte(servers(entry)), 0o600); err != nil {
					t.Fatal(err)
				}
				return clientconfig.Open(path, client, "", client.Files[0])
			}
			before := read(file, test.before)
			wanted := read(filepath.Join(dir, "after.json"), test.after)
			fix := Fix{Name: "any", Class: Auto, Edits: []Edit{{File: file, apply: func(*clientconfig.File) (*clientconfig.File, error) {
				after := *wanted
				after.Path = file
				return &after, nil
			}}}}
			d := &Doctor{System: clientconfig.System{OS: "linux", Home: dir, Project: project}, Self: "/opt/mcpmend"}
			c := &Case{Name: "s", Client: client.ID, file: before, server: before.Server("s")}
			if got := d.startsNew(c, fix); got != test.want {
				t.Errorf("needs a person: %v, want %v", got, test.want)
			}
		})
	}
}

func TestAnEntryIsMovedToWhereItIsReadByAPersonAlone(t *testing.T) {
	d := ward(t, map[string]string{"~/.claude/settings.json": `{"mcpServers": {"s": {"command": "true"}}}`, "~/.claude.json": `{}`}, healthy)
	c := d.Check(t.Context(), Which{}, nil).Cases[0]
	if c.Cause == nil || len(c.Cause.Fixes) == 0 || c.Cause.Fixes[0].Name != "move_entry" {
		t.Fatalf("got %+v", c)
	}
	if !c.Cause.Fixes[0].NeedsPerson() {
		t.Error("an agent can have something started that its client has never read")
	}
}

func TestTheDiffOfALinkSaysThatItIsNotWritten(t *testing.T) {
	d := ward(t, map[string]string{"~/private.json": `{"mcpServers": {},}`}, nil)
	outside := filepath.Join(d.System.Home, "private.json")
	if err := os.Symlink(outside, filepath.Join(d.System.Project, ".mcp.json")); err != nil {
		t.Skip(err)
	}
	c := d.Check(t.Context(), Which{}, nil).Cases[0]
	h := d.Heal(t.Context(), c, HealOptions{Plan: true})
	if len(h.Diffs) != 1 || !strings.HasPrefix(h.Diffs[0].Text, "# not written: ") || !strings.Contains(h.Diffs[0].Text, outside) || !h.Unwritable {
		t.Errorf("got %+v", h.Diffs)
	}
	h = d.Heal(t.Context(), c, HealOptions{})
	if text, _ := os.ReadFile(outside); h.Fixed || !strings.Contains(h.Person, "outside of the project") || !strings.Contains(string(text), ",}") {
		t.Errorf("fixed %v: %s\n%s", h.Fixed, h.Person, text)
	}
}
