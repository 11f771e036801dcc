package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// write puts a text into a file below a folder.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAnApprovalDependsOnTheProjectsOwnScript(t *testing.T) {
	outside := t.TempDir()
	for _, test := range []struct {
		name, client, entry, file string
		bound                     bool
	}{
		{"a script", "claude-code", `{"command": "node", "args": ["./server.js"]}`, "server.js", true},
		{"a script without its ending", "claude-code", `{"command": "node", "args": ["dist/server"]}`, "dist/server.js", true},
		{"one behind an option", "claude-code", `{"command": "node", "args": ["--import=./hook.mjs", "server.js"]}`, "hook.mjs", true},
		{"one with a reference in its path", "vscode", `{"command": "python3", "args": ["${workspaceFolder}/tools/s.py"]}`, "tools/s.py", true},
		{"one that says itself what runs it", "claude-code", `{"command": "env", "args": ["./serve"]}`, "serve", true},
		{"one behind mcpmend run", "claude-code", `{"command": "mcpmend", "args": ["run", "--", "node", "server.js"]}`, "server.js", true},
		{"the program", "claude-code", `{"command": "./bin/serve"}`, "bin/serve", true},
		{"data", "claude-code", `{"command": "npx", "args": ["-y", "server-sqlite", "./app.db"]}`, "app.db", false},
		{"what is imported", "claude-code", `{"command": "node", "args": ["./server.js"]}`, "lib/code.js", true},
		{"a folder", "claude-code", `{"command": "npx", "args": ["-y", "server-filesystem", "."]}`, "server.js", false},
		{"a script elsewhere", "claude-code", `{"command": "node", "args": ["` + filepath.ToSlash(outside) + `/server.js"]}`, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := &Doctor{System: clientconfig.System{OS: "linux", Home: t.TempDir(), Project: t.TempDir()}}
			around := `{"mcpServers": {"s": ` + test.entry + `}}`
			if test.client == "vscode" {
				around = `{"servers": {"s": ` + test.entry + `}}`
			}
			s, f := entry(t, test.client, "project", around)
			dir, file := d.System.Project, test.file
			if file == "" {
				dir, file = outside, "server.js"
			}
			start := "#!/bin/sh\n"
			if strings.HasSuffix(file, ".db") {
				start = "SQLite format 3"
			}
			write(t, dir, file, start+"one")
			before := d.approvalKey(s, f).hash
			if again := d.approvalKey(s, f).hash; again != before {
				t.Fatalf("two hashes of the same: %s and %s", before, again)
			}
			write(t, dir, file, start+"two")
			if changed := d.approvalKey(s, f).hash != before; changed != test.bound {
				t.Errorf("another content makes another hash: %v, want %v", changed, test.bound)
			}
		})
	}
}

func TestAScriptThatChangedIsAskedAboutAgain(t *testing.T) {
	r := newRoom(t, map[string]string{
		"project/.mcp.json": `{"mcpServers": {"s": {"command": "node", "args": ["server.js", "lib.js"]}}}`,
		"project/server.js": "serve()",
		"project/lib.js":    "lib()",
	})
	look := func() *Case {
		t.Helper()
		cases := r.Check(t.Context(), Which{}, nil).Cases
		if len(cases) != 1 {
			t.Fatalf("%d cases, want one", len(cases))
		}
		return cases[0]
	}
	first := look()
	if first.State != Pending || first.Changed != nil || strings.Contains(first.Runs, "changed") {
		t.Fatalf("got %s, changed %q, runs %q; want it pending, and nothing has changed", first.State, first.Changed, first.Runs)
	}
	if err := r.Approvals.Approve(first.Approve[:12]); err != nil {
		t.Fatal(err)
	}
	if c := look(); c.State != Healthy {
		t.Fatalf("approved and %s", c.State)
	}
	write(t, r.home, "project/server.js", "steal()")
	started := len(r.started)
	c := look()
	if c.State != Pending || len(r.started) != started {
		t.Fatalf("another script runs under the old approval: %s", c.State)
	}
	if diff := cmp.Diff([]string{"server.js"}, c.Changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "node server.js lib.js (server.js has changed since you approved it)"; c.Runs != want {
		t.Errorf("got %q, want %q", c.Runs, want)
	}
	// What was approved once is so again when it is back.
	write(t, r.home, "project/server.js", "serve()")
	if c := look(); c.State != Healthy {
		t.Errorf("the script that was approved is back and %s", c.State)
	}
}

// To wrap and to mend extend an approval to another command line. A person takes
// their time to agree to that.
func TestAScriptThatChangesMeanwhileIsNotStarted(t *testing.T) {
	r := newRoom(t, map[string]string{
		"project/.mcp.json": `{"mcpServers": {"s": {"command": "node", "args": ["server.js"], "envs": {"A": "b"}}}}`,
		"project/server.js": "serve()",
	})
	steal := func() { write(t, r.home, "project/server.js", "steal()") }
	found := r.only(t, "s")
	if err := r.Approvals.Approve(found.Approve); err != nil {
		t.Fatal(err)
	}
	found = r.only(t, "s")
	if found.State != Degraded || len(r.started) != 1 {
		t.Fatalf("approved and %s, started %d times", found.State, len(r.started))
	}
	h := r.Heal(t.Context(), found, HealOptions{Allow: func(*Case, Fix) bool { steal(); return true }})
	if len(r.started) != 1 || h.Fixed {
		t.Errorf("healing has started another script: %+v", r.started[1:])
	}
	steal()
	w := r.Wrap(t.Context(), found, WrapOptions{Program: programFile(t, r.Doctor)})
	if len(r.started) != 1 || w.Done || w.Reason == "" {
		t.Errorf("wrapping has started another script: %+v", w)
	}
	if c := r.only(t, "s"); c.State != Pending {
		t.Errorf("another script is %s, want it to wait for approval", c.State)
	}
}
