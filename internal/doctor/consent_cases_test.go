//go:build unix

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// A consentCase is a command of a project, and a file of which it depends what is run.
// In that file MARK stands for what it writes into a ledger when it runs.
type consentCase struct {
	name    string
	command []string
	env     map[string]string
	envFile string
	cwd     string
	files   map[string]string // below the project
	links   map[string]string // symbolic links
	change  string            // the file that changes; "" is the entry itself
	inert   bool              // it only leads to other code, so it writes nothing
	needs   []string          // programs, beside a shell
	alone   bool              // too slow to be put behind every wrapper
}

// What writes MARK into the ledger, in some languages.
const (
	inShell  = "echo MARK >> \"$LEDGER\"\n"
	inNode   = "require('fs').appendFileSync(process.env.LEDGER, 'MARK\\n')\n"
	inPython = "import os\nopen(os.environ['LEDGER'], 'a').write('MARK\\n')\n"
	inPerl   = "open(my $f, '>>', $ENV{LEDGER}); print $f \"MARK\\n\"; close $f; 1;\n"
	inMake   = "all:\n\t@echo MARK >> \"$(LEDGER)\"\n"
	inJava   = "import java.nio.file.*;\npublic class Server { public static void main(String[] a) throws Exception { " +
		"Files.writeString(Path.of(System.getenv(\"LEDGER\")), \"MARK\\n\", StandardOpenOption.CREATE, StandardOpenOption.APPEND); } }\n"
)

func consentCases() []consentCase {
	node, python, perl := []string{"node"}, []string{"python3"}, []string{"perl"}
	return []consentCase{
		{name: "a script", command: words("sh start.sh"), files: map[string]string{"start.sh": inShell}, change: "start.sh"},
		{name: "a script without an ending", command: words("sh start"), files: map[string]string{"start": inShell}, change: "start"},
		{name: "a script that looks like data", command: words("sh start.txt"), files: map[string]string{"start.txt": inShell}, change: "start.txt"},
		{name: "a program", command: words("./bin/serve"), files: map[string]string{"bin/serve": "#!/bin/sh\n" + inShell}, change: "bin/serve"},
		{name: "a link", command: words("sh start.sh"), files: map[string]string{"real/code": inShell}, links: map[string]string{"start.sh": "real/code"}, change: "real/code"},
		{name: "what a shell sources", command: []string{"bash", "-c", ". lib/util"}, files: map[string]string{"lib/util": inShell}, change: "lib/util"},
		{name: "what a script sources", command: words("sh start.sh"), files: map[string]string{"start.sh": ". ./lib/util\n", "lib/util": inShell}, change: "lib/util"},
		{name: "what a script sources beside the project", command: words("sh start.sh"),
			files: map[string]string{"start.sh": "exec sh ../lib/run\n", "../lib/run": inShell}, change: "../lib/run"},
		{name: "what a script runs in the folder above", command: words("sh start.sh"),
			files: map[string]string{"start.sh": "cd ..\nexec sh run\n", "../run": inShell}, change: "../run"},
		{name: "a script that mentions many files", command: words("sh start.sh"),
			files: map[string]string{"start.sh": manyFiles() + "exec sh ../lib/run\n", "../lib/run": inShell}, change: "../lib/run"},
		{name: "code with the name of data", command: words("sh start.sh"), files: map[string]string{"start.sh": ". ./app.db\n", "app.db": inShell}, change: "app.db"},
		{name: "code in the file of a client", command: words("sh start.sh"), files: map[string]string{"start.sh": ". ./opencode.json\n", "opencode.json": inShell}, change: "opencode.json"},
		{name: "BASH_ENV", command: []string{"bash", "-c", "true"}, env: map[string]string{"BASH_ENV": "./rc"}, files: map[string]string{"rc": inShell}, change: "rc"},
		{name: "a folder in the PATH", command: words("mytool"), env: map[string]string{"PATH": "bin:$PATH"},
			files: map[string]string{"bin/mytool": "#!/bin/sh\n" + inShell}, change: "bin/mytool"},
		{name: "a folder beside the project in the PATH", command: words("mytool"), env: map[string]string{"PATH": "../bin:$PATH"},
			files: map[string]string{"../bin/mytool": "#!/bin/sh\n" + inShell}, change: "../bin/mytool"},
		{name: "a variable with the name of a secret", command: []string{"sh", "-c", `eval "$RUN_TOKEN"`}, env: map[string]string{"RUN_TOKEN": strings.TrimSpace(inShell)}},
		{name: "an argument", command: []string{"sh", "-c", inShell}},
		{name: "a file of variables of the entry", command: []string{"sh", "-c", `eval "$RUN_KEY"`}, envFile: "${workspaceFolder}/.env",
			files: map[string]string{".env": "RUN_KEY='" + strings.TrimSpace(inShell) + "'\n"}, change: ".env"},
		{name: "a working folder", command: words("sh start.sh"), cwd: "sub", files: map[string]string{"sub/start.sh": inShell}, change: "sub/start.sh"},
		{name: "make", command: words("make -s"), files: map[string]string{"Makefile": inMake}, change: "Makefile", needs: []string{"make"}},
		{name: "make with a file", command: words("make -sf build.mk"), files: map[string]string{"build.mk": inMake}, change: "build.mk", needs: []string{"make"}},
		{name: "make in another folder", command: words("make -s -C ../build"), files: map[string]string{"../build/Makefile": inMake}, change: "../build/Makefile", needs: []string{"make"}},
		{name: "find -exec", command: words("find . -name run -exec sh {} ;"), files: map[string]string{"deep/er/run": inShell}, change: "deep/er/run"},
		{name: "xargs", command: words("xargs -a list sh"), files: map[string]string{"list": "start\n", "start": inShell}, change: "start"},
		{name: "node", command: words("node server.js"), files: map[string]string{"server.js": inNode}, change: "server.js", needs: node},
		{name: "node without the ending", command: words("node dist/server"), files: map[string]string{"dist/server.js": inNode}, change: "dist/server.js", needs: node},
		{name: "a module of node", command: words("node server.js"), files: map[string]string{"server.js": "require('./lib/a')", "lib/a.js": inNode}, change: "lib/a.js", needs: node},
		{name: "a module of node beside the project", command: words("node server.js"),
			files: map[string]string{"server.js": "require('../shared')", "../shared/index.js": inNode}, change: "../shared/index.js", needs: node},
		{name: "node in a folder", command: words("node ."), files: map[string]string{"index.js": inNode}, change: "index.js", needs: node},
		{name: "node --require", command: words("node -r ./hook.js -e 1"), files: map[string]string{"hook.js": inNode}, change: "hook.js", needs: node},
		{name: "NODE_OPTIONS", command: words("node -e 1"), env: map[string]string{"NODE_OPTIONS": "--require ./hook.js"}, files: map[string]string{"hook.js": inNode}, change: "hook.js", needs: node},
		{name: "NODE_OPTIONS beside the project", command: words("node -e 1"), env: map[string]string{"NODE_OPTIONS": "--require=../hook.js"},
			files: map[string]string{"../hook.js": inNode}, change: "../hook.js", needs: node},
		{name: "node --env-file", command: words("node --env-file=settings server.js"),
			files:  map[string]string{"settings": "RUN=\"require('child_process').execSync('echo MARK >> $LEDGER')\"\n", "server.js": "eval(process.env.RUN)"},
			change: "settings", needs: node},
		{name: "the script of a package", command: words("npm run --silent start"), files: map[string]string{"package.json": `{"scripts": {"start": "echo MARK >> $LEDGER"}}`}, change: "package.json", needs: []string{"npm"}, alone: true},
		{name: "a lock file", command: words("node server.js"),
			files:  map[string]string{"server.js": strings.Replace(inNode, "MARK", "first", 1), "package-lock.json": `{"MARK": 1}`, "node_modules/a/index.js": ""},
			change: "package-lock.json", needs: node, inert: true},
		{name: "packages without a lock file", command: words("node server.js"),
			files: map[string]string{"server.js": "require('dep')", "node_modules/dep/index.js": inNode}, change: "node_modules/dep/index.js", needs: node},
		{name: "a package by its path", command: words("node server.js"),
			files:  map[string]string{"server.js": "require('./node_modules/dep/x.js')", "package-lock.json": "{}", "node_modules/dep/x.js": inNode},
			change: "node_modules/dep/x.js", needs: node},
		{name: "python", command: words("python3 server.py"), files: map[string]string{"server.py": inPython}, change: "server.py", needs: python},
		{name: "a module of python", command: words("python3 server.py"), files: map[string]string{"server.py": "import code_of_ours\n", "code_of_ours.py": inPython}, change: "code_of_ours.py", needs: python},
		{name: "python beside the project", command: words("python3 ../lib/server.py"), files: map[string]string{"../lib/server.py": inPython}, change: "../lib/server.py", needs: python},
		{name: "a module of python beside the project", command: words("python3 ../lib/server.py"),
			files: map[string]string{"../lib/server.py": "import ours\n", "../lib/ours.py": inPython}, change: "../lib/ours.py", needs: python},
		{name: "python -m", command: words("python3 -m pkg"), files: map[string]string{"pkg/__main__.py": inPython}, change: "pkg/__main__.py", needs: python},
		{name: "python -c", command: []string{"python3", "-c", "import ours"}, files: map[string]string{"ours.py": inPython}, change: "ours.py", needs: python},
		{name: "PYTHONPATH", command: []string{"python3", "-c", "1"}, env: map[string]string{"PYTHONPATH": "hook"}, files: map[string]string{"hook/sitecustomize.py": inPython}, change: "hook/sitecustomize.py", needs: python},
		{name: "PYTHONPATH beside the project", command: []string{"python3", "-c", "1"}, env: map[string]string{"PYTHONPATH": "../hook"},
			files: map[string]string{"../hook/sitecustomize.py": inPython}, change: "../hook/sitecustomize.py", needs: python},
		{name: "a file of variables with PYTHONPATH", command: []string{"python3", "-c", "1"}, envFile: ".env",
			files: map[string]string{".env": "PYTHONPATH=./hook\n", "hook/sitecustomize.py": inPython}, change: "hook/sitecustomize.py", needs: python},
		{name: "perl", command: words("perl server.pl"), files: map[string]string{"server.pl": inPerl}, change: "server.pl", needs: perl},
		{name: "a module of perl", command: words("perl -Ilib -MOurs -e1"), files: map[string]string{"lib/Ours.pm": "package Ours;\n" + inPerl}, change: "lib/Ours.pm", needs: perl},
		{name: "java", command: words("java Server.java"), files: map[string]string{"Server.java": inJava}, change: "Server.java", needs: []string{"java"}, alone: true},
	}
}

// manyFiles is more than anybody wants to follow.
func manyFiles() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "# lib/a%d.js\n", i)
	}
	return b.String()
}

func words(line string) []string { return strings.Fields(line) }

// consentWrappers are programs that start another one.
var consentWrappers = []struct {
	name string
	wrap func(line []string) []string
}{
	{"by itself", func(line []string) []string { return line }},
	{"env", before("env")},
	{"env with a variable", before("env", "A=b")},
	{"timeout", before("timeout", "60")},
	{"nice", before("nice", "-n", "1")},
	{"setsid", before("setsid", "-w")},
	{"stdbuf", before("stdbuf", "-o0")},
	{"mcpmend run", before("mcpmend", "run", "--")},
	{"sh with arguments", before("sh", "-c", `"$@"`, "sh")},
	{"a line for bash", func(line []string) []string { return []string{"bash", "-c", shellLine(line)} }},
	{"a shell in a shell", func(line []string) []string {
		return []string{"sh", "-c", shellLine([]string{"sh", "-c", shellLine(line)})}
	}},
}

func before(words ...string) func([]string) []string {
	return func(line []string) []string { return append(slices.Clone(words), line...) }
}

func shellLine(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

// Every launcher by every way in which a file of the project gets to be run, with real
// processes: what has changed is not run before somebody was asked, and what has not
// changed is not asked about again.
func TestAnApprovalCoversWhatWillRun(t *testing.T) {
	var cases, asked atomic.Int32
	t.Run("cases", func(t *testing.T) {
		for i, c := range consentCases() {
			for j, w := range consentWrappers {
				// Not each behind every wrapper: interpreters are slow to start.
				every := 2
				if len(c.needs) > 0 {
					every = 3
				}
				if (c.alone || (i+j)%every != 0) && w.name != "by itself" {
					continue
				}
				t.Run(c.name+"/"+w.name, func(t *testing.T) {
					t.Parallel()
					for _, program := range c.needs {
						if _, err := exec.LookPath(program); err != nil {
							t.Skipf("there is no %s", program)
						}
					}
					cases.Add(1)
					newConsentRoom(t, c, w.wrap(c.command)).play(t)
					if !t.Failed() {
						asked.Add(1)
					}
				})
			}
		}
	})
	if t.Failed() || cases.Load() < 200 {
		t.Errorf("%d cases, %d of them as they should be; want 200 and more", cases.Load(), asked.Load())
	}
}

// A consentRoom is a project with one server, and a doctor that really starts it.
type consentRoom struct {
	*Doctor
	consentCase
	project, ledger string
}

func newConsentRoom(t *testing.T, c consentCase, command []string) *consentRoom {
	t.Helper()
	root := t.TempDir()
	home := filepath.Join(root, "home")
	r := &consentRoom{consentCase: c, project: filepath.Join(home, "repo", "project"), ledger: filepath.Join(root, "ledger")}
	r.command = command
	bin := filepath.Join(home, "tools")
	write(t, bin, "mcpmend", "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n")
	path := bin + ":" + os.Getenv("PATH")
	for _, dir := range []string{r.project, r.project + "/" + c.cwd} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.Doctor = &Doctor{
		System:    clientconfig.System{OS: "linux", Home: home, Project: r.project, Root: filepath.Join(root, "root"), Getenv: func(string) string { return "" }},
		Environ:   []string{"HOME=" + home, "PATH=" + path, "LEDGER=" + r.ledger, "npm_config_update_notifier=false"},
		Approvals: &Approvals{File: filepath.Join(root, "state", "approved")},
		Probe:     startForReal,
	}
	for name, text := range c.files {
		write(t, r.project, name, r.content(name, text, "first"))
	}
	for name, target := range c.links {
		if err := os.Symlink(target, filepath.Join(r.project, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.writeEntry(t, "first")
	return r
}

func (r *consentRoom) content(name, text, mark string) string {
	if name != r.change {
		return text
	}
	return strings.ReplaceAll(text, "MARK", mark)
}

func (r *consentRoom) writeEntry(t *testing.T, mark string) {
	t.Helper()
	say := func(text string) string {
		path, _ := (&environ{os: "linux", list: r.Environ}).lookup("PATH")
		return strings.NewReplacer("MARK", mark, "$PATH", path).Replace(text)
	}
	entry := map[string]any{"type": "stdio", "command": say(r.command[0])}
	var args []string
	for _, a := range r.command[1:] {
		args = append(args, say(a))
	}
	entry["args"] = args
	env := maps.Clone(r.env)
	for name, value := range env {
		env[name] = say(value)
	}
	entry["env"] = env
	if r.envFile != "" {
		entry["envFile"] = r.envFile
	}
	if r.cwd != "" {
		entry["cwd"] = r.cwd
	}
	file, key := ".mcp.json", "mcpServers"
	if r.envFile != "" || r.cwd != "" { // Claude Code knows neither
		file, key = ".vscode/mcp.json", "servers"
	}
	text, err := json.Marshal(map[string]any{key: map[string]any{"s": entry}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.project, file, string(text))
}

// play goes through a life of a project: shown, approved, started twice, changed, and
// approved again.
func (r *consentRoom) play(t *testing.T) {
	look := func() *Case {
		t.Helper()
		cases := r.Check(t.Context(), Which{Clients: []string{"claude-code", "vscode"}}, nil).Cases
		if len(cases) != 1 {
			t.Fatalf("%d cases, want one", len(cases))
		}
		return cases[0]
	}
	ran := func(mark string) int {
		text, _ := os.ReadFile(r.ledger)
		return strings.Count(string(text), mark)
	}
	before := 0
	// again reports whether what writes a mark has run since it was last asked.
	again := func(mark string) bool {
		n := ran(mark)
		more := n > before
		before = n
		return more
	}
	first := look()
	if first.State != Pending || ran("") > 1 {
		t.Fatalf("%s before it was approved: %+v", first.State, first.Cause)
	}
	if err := r.Approvals.Approve(first.Approve); err != nil {
		t.Fatal(err)
	}
	if c := look(); !again("first") {
		t.Fatalf("approved and %s, and it did not run: %+v", c.State, c.Cause)
	}
	if c := look(); c.State == Pending || !again("first") {
		t.Errorf("nothing has changed and it is %s: changed %q", c.State, c.Changed)
	}
	if r.change == "" {
		r.writeEntry(t, "second")
	} else {
		write(t, r.project, r.change, r.content(r.change, r.files[r.change], "second"))
	}
	c := look()
	if c.State != Pending || ran("second") != 0 || again("first") {
		t.Fatalf("%q has changed and it is %s, the new code ran %d times", r.change, c.State, ran("second"))
	}
	if r.change != "" && len(c.Changed) == 0 {
		t.Errorf("%s has changed and nobody is told", r.change)
	}
	if err := r.Approvals.Approve(c.Approve[:12]); err != nil {
		t.Fatal(err)
	}
	if c := look(); c.State == Pending || ran("second") == 0 && !r.inert {
		t.Errorf("approved once more and %s, the new code ran %d times", c.State, ran("second"))
	}
}

// startForReal starts a process and waits for its end.
func startForReal(ctx context.Context, s Start) Sighting {
	at := site{environ: environ{os: "linux", list: s.Env}, dir: s.Dir}
	file, err := at.search().Find(s.Command[0])
	if err == nil {
		c := exec.CommandContext(ctx, file, s.Command[1:]...)
		c.Args[0], c.Dir, c.Env = s.Command[0], s.Dir, s.Env
		var out []byte
		if out, err = c.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		return Sighting{Steps: []Step{{Stage: AtStart}}, Fault: &fault.Fault{Kind: fault.ServerCrashed, Evidence: fault.Evidence{Stderr: []string{err.Error()}}}}
	}
	return healthy(ctx, s)
}
