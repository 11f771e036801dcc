package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

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
			if strings.HasSuffix(file, ".db") { // what may be executed is no data
				if err := os.Chmod(filepath.Join(dir, file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
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

// A life of one project: look, approve, change.
type projectLife struct {
	*clinicRoom
	t *testing.T
}

func (l projectLife) look() *Case { l.t.Helper(); return l.only(l.t, "s") }

func (l projectLife) is(want State) *Case {
	l.t.Helper()
	c := l.look()
	if c.State != want {
		l.t.Fatalf("%s, want %s: runs %s, changed %q", c.State, want, c.Runs, c.Changed)
	}
	return c
}

func (l projectLife) approve() {
	l.t.Helper()
	if err := l.Approvals.Approve(l.is(Pending).Approve[:12]); err != nil {
		l.t.Fatal(err)
	}
}

func liveWith(t *testing.T, files map[string]string) projectLife {
	return projectLife{newRoom(t, files), t}
}

const nodeServer = `{"mcpServers": {"s": {"command": "node", "args": ["server.js"]}}}`

// Words that cannot be paths, or came before, do not end the search for others.
func TestCodeIsCoveredBehindAnAddressAndARepeatedWord(t *testing.T) {
	for name, line := range map[string]string{
		"an address":      "fetch('https://a.example/x'); require('../lib/run.js')",
		"a repeated word": "x; x; require('../lib/run.js')",
	} {
		t.Run(name, func(t *testing.T) {
			l := liveWith(t, map[string]string{"project/.mcp.json": servers(`{"command": "node", "args": ["-e", "` + line + `"]}`), "lib/run.js": "one"})
			l.approve()
			l.is(Healthy)
			write(t, l.home, "lib/run.js", "two")
			l.is(Pending)
		})
	}
}

func TestWhatACommandLeadsToIsCovered(t *testing.T) {
	node := func(code string) string { return servers(`{"command": "node", "args": ["-e", "` + code + `"]}`) }
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "// lib/a%d.js\n", i)
	}
	for _, test := range []struct {
		name, entry, script string // the script is server.js, HOME stands for the home folder
		change              string
		want                State
	}{
		{"a file that a script mentions", nodeServer, "require('../lib/run.js')", "lib/run.js", Pending},
		{"a whole path behind many others", nodeServer, many.String() + "require('HOME/lib/run.js')", "lib/run.js", Pending},
		{"an interpreter in a variable", servers(`{"command": "npx", "args": ["-y", "x"], "env": {"RUN": "cd .;python3 -m serve"}}`), "", "project/helper.py", Pending},
		{"the rest of the home folder", node("require('../lib.js')"), "", "other.js", Healthy},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := liveWith(t, map[string]string{"project/.mcp.json": test.entry, "lib.js": "", test.change: "one"})
			write(t, l.home, "project/server.js", strings.ReplaceAll(test.script, "HOME", filepath.ToSlash(l.home)))
			l.approve()
			l.is(Healthy)
			write(t, l.home, test.change, "two")
			l.is(test.want)
		})
	}
}

// The folder around a project is covered without those below it, so those are looked at by themselves.
func TestAFolderBesideTheProjectIsCoveredWithTheOneAround(t *testing.T) {
	for _, code := range []string{"require('../a.js'); require('../lib/run.js')", "require('../lib/run.js'); require('../a.js')"} {
		l := liveWith(t, map[string]string{
			"work/shop/.mcp.json": servers(`{"command": "node", "args": ["-e", "` + code + `"]}`),
			"work/a.js":           "", "work/lib/run.js": "require('./o' + 'ther')", "work/lib/other.js": "one", "work/far/b.js": "one",
		})
		l.System.Project = filepath.Join(l.home, "work", "shop")
		l.approve()
		l.is(Healthy)
		write(t, l.home, "work/far/b.js", "two")
		l.is(Healthy)
		write(t, l.home, "work/lib/other.js", "two")
		l.is(Pending)
	}
}

// Packages that were installed are told by their lock files.
func TestWhatIsInstalledIsCoveredByItsLockFile(t *testing.T) {
	l := liveWith(t, map[string]string{
		"project/.mcp.json": nodeServer, "project/server.js": "", "project/.git/HEAD": "one",
		"project/node_modules/a/index.js": "one", "project/node_modules/.package-lock.json": "one",
		"project/.venv/pyvenv.cfg": "one", "project/.venv/lib/python3.12/site-packages/a.py": "one",
		"project/.venv/lib/python3.12/site-packages/a.pth": "one", "project/env/code.js": "one",
	})
	l.approve()
	for file, want := range map[string]State{
		".git/HEAD": Healthy, "node_modules/a/index.js": Healthy, ".venv/lib/python3.12/site-packages/a.py": Healthy,
		"node_modules/.package-lock.json": Pending, ".venv/pyvenv.cfg": Pending, ".venv/lib/python3.12/site-packages/a.pth": Pending, "env/code.js": Pending,
	} {
		write(t, l.home, "project/"+file, "two")
		if c := l.look(); c.State != want {
			t.Errorf("%s has changed and it is %s, want %s", file, c.State, want)
		}
		write(t, l.home, "project/"+file, "one")
		l.is(Healthy)
	}
}

func TestWhatIsTooLargeToBeCoveredIsAskedAboutEveryTime(t *testing.T) {
	for _, test := range []struct {
		name string
		grow func(t *testing.T, project string)
	}{
		{"files", func(t *testing.T, project string) {
			for i := range mostFiles + 1 {
				write(t, project, fmt.Sprintf("many/%d.js", i), "")
			}
		}},
		{"bytes", func(t *testing.T, project string) {
			write(t, project, "large.js", "")
			if err := os.Truncate(filepath.Join(project, "large.js"), mostBytes+1); err != nil { // takes no room
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := liveWith(t, map[string]string{"project/.mcp.json": nodeServer, "project/server.js": "serve()"})
			l.approve()
			l.is(Healthy)
			test.grow(t, filepath.Join(l.home, "project"))
			for range 2 {
				if c := l.is(Pending); !strings.Contains(c.Runs, "asked every time") {
					t.Errorf("nobody is told why: %s", c.Runs)
				}
				l.approve()
				l.is(Healthy)
				l.is(Healthy)                                    // to heal is to start several times
				l.Approvals = &Approvals{File: l.Approvals.File} // another process, later
			}
			c := l.is(Pending)
			if err := l.Approvals.ApproveFolder(c.Approve[:12]); err != nil {
				t.Fatal(err)
			}
			l.is(Healthy)
			l.Approvals = &Approvals{File: l.Approvals.File}
			l.is(Healthy)
		})
	}
}

// Somebody who trusts the folder is not asked when something changes in it; the entry
// and what lies outside are another matter.
func TestWhoTrustsAFolderTrustsLaterChanges(t *testing.T) {
	l := liveWith(t, map[string]string{
		"project/.mcp.json": `{"mcpServers": {"s": {"command": "node", "args": ["server.js", "../lib/a.js"]}}}`,
		"project/server.js": "serve()", "lib/a.js": "one",
	})
	c := l.is(Pending)
	if err := l.Approvals.ApproveFolder(strings.Repeat("0", 64)); err == nil {
		t.Error("approved what was never shown")
	}
	if err := l.Approvals.ApproveFolder(c.Approve); err != nil {
		t.Fatal(err)
	}
	l.is(Healthy)
	write(t, l.home, "project/server.js", "other()")
	write(t, l.home, "project/new/file.js", "more()")
	l.is(Healthy)
	write(t, l.home, "lib/a.js", "two")
	l.is(Pending)
	write(t, l.home, "lib/a.js", "one")
	l.is(Healthy)
	write(t, l.home, "project/.mcp.json", `{"mcpServers": {"s": {"command": "node", "args": ["server.js", "../lib/a.js", "-x"]}}}`)
	l.is(Pending)
}

// A server that was approved may write down what it likes to remember, and Python keeps
// byte code; but only while we run it. Nobody else may.
func TestWhatAnApprovedServerMakesIsNotAskedAbout(t *testing.T) {
	l := liveWith(t, map[string]string{"project/.mcp.json": nodeServer, "project/server.js": "", "project/lib.py": "one"})
	project := filepath.Join(l.home, "project")
	source := filepath.Join(project, "lib.py")
	byteCode := func(at time.Time) string {
		head := make([]byte, 16)
		binary.LittleEndian.PutUint32(head[8:], uint32(at.Unix()))
		binary.LittleEndian.PutUint32(head[12:], 3)
		return string(head) + "code"
	}
	info, err := os.Stat(source)
	if err != nil {
		t.Fatal(err)
	}
	made := func() {}
	probe := l.Probe
	l.Probe = func(ctx context.Context, s Start) Sighting { made(); return probe(ctx, s) }
	l.approve()
	made = func() {
		write(t, project, "server.log", "started")
		write(t, project, "__pycache__/lib.cpython-312.pyc", byteCode(info.ModTime()))
	}
	l.is(Healthy)
	made = func() {}
	l.is(Healthy)
	for name, text := range map[string]string{
		"server.log": "evil", "__pycache__/lib.cpython-312.pyc": byteCode(info.ModTime()) + "evil", "__pycache__/other.cpython-312.pyc": byteCode(time.Unix(1, 0)),
	} {
		old, _ := os.ReadFile(filepath.Join(project, name))
		write(t, project, name, text)
		l.is(Pending)
		write(t, project, name, string(old))
		if old == nil {
			os.Remove(filepath.Join(project, name))
		}
		l.is(Healthy)
	}
	// Code that comes while it runs is not what was approved.
	made = func() { write(t, project, "plugin.js", "evil()") }
	l.is(Healthy)
	made = func() {}
	if c := l.is(Pending); !slices.Contains(c.Changed, "plugin.js") {
		t.Errorf("changed: %q", c.Changed)
	}
}

// A project with thousands of entries must not have its files read for each of them.
func TestAProjectIsNotReadForEachOfItsEntries(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.js", "one")
	file := filepath.Join(dir, "a.js")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	var sums fileSums
	before := sums.of(file)
	if _, known := sums.known[file]; !known {
		t.Fatal("a file that has not changed for an hour is read again")
	}
	write(t, dir, "a.js", "two")
	after := sums.of(file)
	if after.hash == before.hash {
		t.Fatal("a change is not seen")
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.js", "six") // of the same size, and so soon that the time is the same
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if sums.of(file).hash == after.hash {
		t.Error("two changes in a row are taken for one")
	}
}

// The secret in the hashes is the owner's alone.
func TestAHashSaysNothingToWhoDoesNotKnowTheKey(t *testing.T) {
	l := liveWith(t, map[string]string{"project/.mcp.json": nodeServer, "project/server.js": ""})
	l.approve()
	l.is(Healthy)
	key := l.Approvals.File + ".key"
	if info, err := os.Stat(key); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v; want it readable by the owner alone", info, err)
	}
	hash := l.approvalKey(l.look().server, l.look().file).hash
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	l.Approvals = &Approvals{File: l.Approvals.File}
	if runtime.GOOS != "windows" {
		l.is(Pending) // a key that others can read is not used
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	l.Approvals = &Approvals{File: l.Approvals.File}
	if c := l.is(Pending); c.Approve == hash {
		t.Error("another key gives the same hash")
	}
}
