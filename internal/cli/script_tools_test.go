package cli_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write what was seen into the files of testdata")

// exits runs a command and wants one exit code: exits CODE PROGRAM ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// What differs from run to run, and what stands for it.
var unsettled = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d+(\.\d+)? m?s( {2,}|\b)`), "0.2 s$2"},
	{regexp.MustCompile(`0\.2 s {2,}`), "0.2 s   "},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "2026-11-15 12:00:00"},
	{regexp.MustCompile(`\b(undo|undid|by|history|Undone:) ([0-9a-f]{6})\b`), "$1 c3f1a0"},
	{regexp.MustCompile(`(undo c3f1a0) ([0-9a-f]{6})\b`), "$1 5b07d2"},
	{regexp.MustCompile(`(Redo: mcpmend undo) [0-9a-f]{6}\b`), "$1 5b07d2"},
	{regexp.MustCompile(`(?m)^[0-9a-f]{6}  `), "c3f1a0  "},
	{regexp.MustCompile(`"[^"]*cli\.test[^"]*"|"[^"]*/bin/mcpmend"`), `"/usr/local/bin/mcpmend"`},
	{regexp.MustCompile(`--approve [0-9a-f]+`), "--approve 5f1c0a9d27be"},
	{regexp.MustCompile(`(?m)^\| mcpmend \| .*$`), "| mcpmend | (devel) |"},
	{regexp.MustCompile(`(?m)^\| system \| .*\n(\| runtimes \| .*\n)?`), "| system | linux/amd64 |\n| runtimes | node v20.20.2, npm 11.19.1, Python 3.11.7 |\n"},
	{regexp.MustCompile(`\| [\d.]+m?s `), "| 20ms "},
}

// settle writes a file without what differs from run to run: settle FROM TO. What
// scripts compare with "cmp" can then be updated.
func settle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: settle FROM TO")
	}
	text := ts.ReadFile(args[0])
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "/work")
	for _, u := range unsettled {
		text = u.pattern.ReplaceAllString(text, u.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// strictSchema is the published schema, but it refuses fields that are not in it:
// a field that nobody documented is found here.
var strictSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := os.ReadFile(schemaPath)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	forbidStrangers(doc)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
})

// schemaPath is absolute, since scripts run elsewhere.
var schemaPath = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir + "/schema.json"
}()

func forbidStrangers(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, member := range v {
			forbidStrangers(member)
		}
	case []any:
		for _, element := range v {
			forbidStrangers(element)
		}
	}
}

// validates holds a file against the schema: validates FILE COMMAND. The schema
// knows the JSON of every command.
func validates(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: validates FILE COMMAND")
	}
	text := ts.ReadFile(args[0])
	schema, err := strictSchema()
	ts.Check(err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	ts.Check(err)
	err = schema.Validate(value)
	var head struct{ Command string }
	if err == nil {
		err = json.Unmarshal([]byte(text), &head)
	}
	if err == nil && head.Command != args[1] {
		err = fmt.Errorf("it is the answer of %q", head.Command)
	}
	if neg != (err != nil) {
		ts.Fatalf("%v\n%s", err, text)
	}
}

// hides looks for secrets in what the last command wrote: hides WORD.
func hides(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hides WORD")
	}
	for _, file := range []string{"stdout", "stderr"} {
		for line := range strings.Lines(ts.ReadFile(file)) {
			if strings.Contains(line, args[0]) {
				ts.Fatalf("%s shows %q: %s", file, args[0], line)
			}
		}
	}
}

// pastes gives every line for a person to a shell that has another mcpmend, which
// does nothing, and writes down what that was asked to do: pastes FROM TO.
func pastes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pastes FROM TO")
	}
	shell, err := exec.LookPath("bash")
	ts.Check(err)
	dir := ts.MkAbs("pasted")
	ts.Check(os.MkdirAll(dir, 0o755))
	var out strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		_, command, found := strings.Cut(line, "mcpmend ")
		if !found {
			continue
		}
		c := exec.Command(shell, "-c", `mcpmend() { for word; do printf '[%q] ' "$word"; done; echo; }`+"\n mcpmend "+command)
		c.Dir, c.Env = dir, append(os.Environ(), "LC_ALL=C")
		asked, err := c.CombinedOutput()
		if err != nil {
			fmt.Fprintf(&out, "%v: ", err)
		}
		out.WriteString(approveHash.ReplaceAllString(strings.TrimSpace(string(asked))+"\n", "[5f1c0a]"))
	}
	left, err := os.ReadDir(dir)
	ts.Check(err)
	for _, file := range left {
		ts.Fatalf("what was pasted has made %s:\n%s", file.Name(), out.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(out.String()), 0o644))
}

var approveHash = regexp.MustCompile(`\[[0-9a-f]{12,}\]`)

// approval takes the hash of a pending command out of the JSON of a check, into
// $APPROVE: approval FILE.
func approval(ts *testscript.TestScript, neg bool, args []string) {
	var answer struct{ Cases []struct{ Approve string } }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &answer))
	if neg || len(answer.Cases) != 1 || answer.Cases[0].Approve == "" {
		ts.Fatalf("there is nothing to approve")
	}
	ts.Setenv("APPROVE", answer.Cases[0].Approve)
}

// serveRegistry is a registry whose list is a file, and behind it a server that wants
// somebody to sign in: registry LIST FILES... It sets $MCPMEND_REGISTRY, and writes
// its address in place of http://REGISTRY into all of the files.
func serveRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: registry LIST FILES...")
	}
	list := ts.MkAbs(args[0])
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, list) })
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mail"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	ts.Setenv("MCPMEND_REGISTRY", s.URL)
	for _, file := range args {
		text := strings.ReplaceAll(ts.ReadFile(file), "http://REGISTRY", s.URL)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}

// args prints its arguments, one on each line.
func args() {
	for _, arg := range os.Args[1:] {
		fmt.Println(arg)
	}
}

// archived returns a file of an archive.
func archived(t *testing.T, archive, name string) string {
	t.Helper()
	a, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("%s has no %s", archive, name)
	return ""
}

const twoServers = `{
  "mcpServers": {
    "memory": { "command": "demo" },
    "weather": { "url": "http://127.0.0.1:1/mcp" }
  }
}
`

// homeWith returns a home whose Claude Code has these servers. It is where the
// program stands, too, so no other project's files are found.
func homeWith(t *testing.T, text string) (home, file string) {
	t.Helper()
	home = t.TempDir()
	file = filepath.Join(home, ".claude.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	return home, file
}
