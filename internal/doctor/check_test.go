package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// ward is a home folder with files in it, and a doctor for it. Servers are not
// really started; probe says what would be seen.
func ward(t *testing.T, files map[string]string, probe func(context.Context, Start) Sighting) *Doctor {
	t.Helper()
	root := t.TempDir()
	home, project := filepath.Join(root, "home"), filepath.Join(root, "project")
	for _, dir := range []string{home, project} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		name = strings.NewReplacer("~", home, "PROJECT", project).Replace(name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &Doctor{
		System:    clientconfig.System{OS: "linux", Home: home, Project: project, Root: root, Getenv: trusting},
		Environ:   []string{"HOME=" + home, "PATH=/usr/bin:/bin"},
		Probe:     probe,
		Store:     &clientconfig.Store{Dir: filepath.Join(root, "state")},
		Approvals: &Approvals{File: filepath.Join(root, "approved.json")},
	}
}

func healthy(context.Context, Start) Sighting {
	return Sighting{
		Steps: []Step{{Stage: AtStart, OK: true}, {Stage: AtPure, OK: true}, {Stage: AtHandshake, OK: true}, {Stage: AtTools, OK: true}},
		Info:  &Info{Name: "test", Tools: []string{"echo"}},
		Tools: []Tool{{Name: "echo", InputSchema: []byte(`{"type":"object"}`), Definition: []byte(`{"name":"echo","inputSchema":{"type":"object"}}`)}},
	}
}

func dying(code int, stderr ...string) func(context.Context, Start) Sighting {
	return func(context.Context, Start) Sighting {
		return Sighting{
			Steps: []Step{{Stage: AtStart}},
			Fault: &fault.Fault{Kind: fault.ServerCrashed, Evidence: fault.Evidence{Exited: true, ExitCode: code, Stderr: stderr, Moment: fault.AtHandshake}},
		}
	}
}

// summary is a report in lines that can be compared.
func summary(r *Report) []string {
	var lines []string
	for _, c := range r.Cases {
		line := fmt.Sprintf("%s %s %s", c.Client, c.Name, c.State)
		if c.Cause != nil {
			line += " " + c.Cause.ID
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTheLowestRungThatBreaksIsTheCause(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		probe func(context.Context, Start) Sighting
		want  []string
	}{
		{"a strict file with a comma too many hides everything in it",
			map[string]string{"~/.claude.json": `{"mcpServers": {"a": {"command": "true"}, "b": {"url": "http://localhost"},}}`},
			healthy, []string{"claude-code  unreadable parse.trailing_comma"}},
		{"a URL without a type is skipped, the other entry is not",
			map[string]string{"~/.claude.json": `{"mcpServers": {"a": {"command": "true"}, "b": {"url": "http://localhost"}}}`},
			healthy, []string{"claude-code a healthy", "claude-code b skipped shape.missing_type"}},
		{"a misspelt command is said once",
			map[string]string{"~/.cursor/mcp.json": `{"mcpServers": {"a": {"comand": "true"}}}`},
			healthy, []string{"cursor a skipped shape.wrong_name"}},
		{"servers where the client does not look",
			map[string]string{"~/.claude/settings.json": `{"mcpServers": {"a": {"command": "true"}}}`},
			healthy, []string{"claude-code a misplaced file.misplaced"}},
		{"a server that says which variable it misses",
			map[string]string{"~/.claude.json": `{"mcpServers": {"a": {"command": "true"}}}`},
			dying(1, "Error: GITHUB_PERSONAL_ACCESS_TOKEN environment variable is required"),
			[]string{"claude-code a dead start.missing_env_var"}},
		{"the entry refers to the variable that the server misses",
			map[string]string{"~/.claude.json": `{"mcpServers": {"a": {"command": "true", "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GH_PAT}"}}}}`},
			dying(1, "Error: GITHUB_PERSONAL_ACCESS_TOKEN environment variable is required"),
			[]string{"claude-code a dead variables.unset"}},
		{"a part under another client's name explains what is missing",
			map[string]string{"~/.config/opencode/opencode.json": `{"mcp": {"a": {"type": "local", "command": ["true"], "env": {"KEY": "v"}}}}`},
			dying(1, "Error: KEY environment variable is required"),
			[]string{"opencode a dead shape.wrong_name"}},
		{"a working folder under another client's name explains why nothing is found in it",
			map[string]string{"~/.warp/.mcp.json": `{"mcpServers": {"a": {"command": "./run.sh", "cwd": "/srv"}}}`},
			healthy, []string{"warp a dead shape.wrong_name"}},
		{"a whole line where the program belongs",
			map[string]string{"~/.junie/mcp/mcp.json": `{"mcpServers": {"a": {"command": "/bin/sh -x"}}}`},
			healthy, []string{"junie a dead shape.command_holds_args"}},
		{"switched off is not broken",
			map[string]string{"~/.codex/config.toml": "[mcp_servers.a]\ncommand = \"/nowhere\"\nenabled = false\n"},
			healthy, []string{"codex a disabled"}},
		{"the narrower scope wins",
			map[string]string{
				"~/.cursor/mcp.json":       `{"mcpServers": {"a": {"command": "/nowhere"}}}`,
				"PROJECT/.cursor/mcp.json": `{"mcpServers": {"a": {"url": "http://localhost:1/mcp"}}}`,
			},
			healthy, []string{"cursor a shadowed shape.shadowed", "cursor a pending"}},
		{"a command of a project is not started before somebody agreed",
			map[string]string{"PROJECT/.cursor/mcp.json": `{"mcpServers": {"a": {"command": "true"}}}`},
			func(context.Context, Start) Sighting { panic("started") },
			[]string{"cursor a pending"}},
		{"two clients read one file and only one of them is here",
			map[string]string{
				"~/.copilot/mcp-config.json": `{"mcpServers": {}}`,
				"PROJECT/.mcp.json":          `{"mcpServers": {"a": {"type": "http", "url": "http://localhost:1/mcp"}}}`,
			},
			healthy, []string{"copilot-cli a pending"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := ward(t, test.files, test.probe)
			if diff := cmp.Diff(test.want, summary(d.Check(t.Context(), Which{}, nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOneServerThatHangsHoldsNobodyUp(t *testing.T) {
	var entries []string
	for i := range 20 {
		entries = append(entries, fmt.Sprintf(`"s%d": {"type": "http", "url": "http://localhost:%d/mcp"}`, i, 1000+i))
	}
	files := map[string]string{"~/.claude.json": `{"mcpServers": {` + strings.Join(entries, ",") + `}}`}
	synctest.Test(t, func(t *testing.T) {
		d := ward(t, files, func(ctx context.Context, s Start) Sighting {
			if strings.Contains(s.URL, ":1003/") {
				time.Sleep(s.Timeout)
				return Sighting{Steps: []Step{{Stage: AtStart}}, Fault: &fault.Fault{Evidence: fault.Evidence{Text: "no answer", Moment: fault.AtHandshake}}}
			}
			time.Sleep(time.Second)
			return healthy(ctx, s)
		})
		began := time.Now()
		var last time.Duration
		r := d.Check(t.Context(), Which{}, func(c *Case) {
			if c.State == Healthy {
				last = time.Since(began)
			}
		})
		if late := last - time.Second; late > time.Second {
			t.Errorf("the last healthy server was told %v after the time that each needs", late)
		}
		if late := r.Took - defaultTimeout; late > time.Second {
			t.Errorf("ended %v after the time that the hanging one has", late)
		}
	})
}

func TestEntriesThatStartTheSameProgramTakeTurns(t *testing.T) {
	entry := `{"mcpServers": {"a": {"command": "true", "args": ["x"]}}}`
	var running, most atomic.Int32
	d := ward(t, map[string]string{"~/.claude.json": entry, "~/.cursor/mcp.json": entry, "~/.lmstudio/mcp.json": entry},
		func(ctx context.Context, s Start) Sighting {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			return healthy(ctx, s)
		})
	if r := d.Check(t.Context(), Which{}, nil); len(r.Cases) != 3 {
		t.Fatalf("%d cases: %v", len(r.Cases), summary(r))
	}
	if most.Load() != 1 {
		t.Errorf("%d at once", most.Load())
	}
}

func TestOnlyWhatWasAskedForIsStarted(t *testing.T) {
	var mu sync.Mutex
	var started []string
	d := ward(t, map[string]string{
		"~/.claude.json":     `{"mcpServers": {"a": {"type": "http", "url": "http://a/"}, "b": {"type": "http", "url": "http://b/"}}}`,
		"~/.cursor/mcp.json": `{"mcpServers": {"a": {"url": "http://c/"}}}`,
	}, func(ctx context.Context, s Start) Sighting {
		mu.Lock()
		defer mu.Unlock()
		started = append(started, s.URL)
		return healthy(ctx, s)
	})
	d.Check(t.Context(), Which{Servers: []string{"a"}, Clients: []string{"claude-code"}}, nil)
	if want := []string{"http://a/"}; !slices.Equal(started, want) {
		t.Errorf("started %v, want %v", started, want)
	}
	d.Static, started = true, nil
	d.Check(t.Context(), Which{}, nil)
	if len(started) > 0 {
		t.Errorf("static, and started %v", started)
	}
}

// A server may write anything that it was given to anywhere, and so may a path or
// a program be made of it.
func TestNothingSecretThatAServerIsGivenIsShown(t *testing.T) {
	for _, text := range []string{
		`{"command": "true", "args": ["${DB_PASSWORD}", "--password", "canary in clear"]}`,
		`{"command": "/nowhere/${DB_PASSWORD}"}`,
		`{"command": "node", "args": ["/nowhere/${DB_PASSWORD}/server.js"]}`,
		`{"type": "http", "url": "http://localhost/${DB_PASSWORD}/mcp", "headers": {"Authorization": "Bearer ${DB_PASSWORD}"}}`,
	} {
		d := ward(t, map[string]string{"~/.claude.json": servers(text)}, func(ctx context.Context, s Start) Sighting {
			said := "I was given " + strings.Join(s.Command, " ") + s.URL + strings.Join(s.Header, " ")
			saw := dying(1, said)(ctx, s)
			saw.Fault.Text, saw.Noise, saw.Info = said, []string{said}, &Info{Name: said}
			return saw
		})
		d.Environ = append(d.Environ, "DB_PASSWORD=canaryhorse")
		for _, c := range d.Check(t.Context(), Which{}, nil).Cases {
			shown, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if c.Cause == nil || strings.Contains(string(shown), "canary") {
				t.Errorf("%s is shown as %s", text, shown)
			}
		}
	}
}

func TestAllOfWhatIsApprovedIsShown(t *testing.T) {
	d := ward(t, map[string]string{
		"PROJECT/.mcp.json": servers(`{"command": "npx", "args": ["-y", "x\n\ny", "a b"], "env": {"NODE_OPTIONS": "--require ./evil.js", "API_KEY": "canary"}}`),
	}, nil)
	d.Probe = func(context.Context, Start) Sighting { panic("started") }
	if err := os.WriteFile(filepath.Join(d.System.Home, "npx"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.Environ = []string{"PATH=" + d.System.Home + ":/bin"}
	const want = `"NODE_OPTIONS=--require ./evil.js" API_KEY=[hidden] npx -y "x\n\ny" "a b"`
	if c := d.only(t, "s"); c.State != Pending || c.Runs != want {
		t.Errorf("%s, to be approved: %s\nwant %s", c.State, c.Runs, want)
	}
}

func TestWithoutAProbeNothingIsStarted(t *testing.T) {
	c := (&Doctor{}).Test(t.Context(), Start{Command: []string{"true"}})
	if c.State != Unchecked || c.Runs != "true" {
		t.Errorf("got %+v", c)
	}
}

// trusting is an environment in which Gemini CLI trusts every folder.
func trusting(name string) string {
	if name == "GEMINI_CLI_TRUST_WORKSPACE" {
		return "true"
	}
	return ""
}
