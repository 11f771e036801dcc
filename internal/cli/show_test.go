package cli

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// The flag belongs to the scripts' half of these tests, which is another package.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// The reports are made by hand: what is tested is how they are shown.
var (
	noToken = doctor.Finding{
		ID: "start.missing_env_var", Stage: doctor.AtStart, Kind: "missing_env_var", Severity: doctor.Broken,
		Evidence:    []string{"exit 1", "stderr: GITHUB_PERSONAL_ACCESS_TOKEN environment variable is required"},
		Explanation: "GITHUB_PERSONAL_ACCESS_TOKEN is not set for this client.", Confidence: 0.97,
		Fixes: []doctor.Fix{
			{Name: "reference", Class: doctor.Ask, Does: "refer to GITHUB_PERSONAL_ACCESS_TOKEN, which is in ./.env", Edits: []doctor.Edit{{}}},
			{Name: "set_it", Class: doctor.Never, Does: "make a token and set the variable", Run: "export GITHUB_PERSONAL_ACCESS_TOKEN=..."},
		},
		Help: "https://github.com/settings/tokens",
	}
	wrongPort = doctor.Finding{
		ID: "tools.connection_refused", Stage: doctor.AtTools, Kind: "connection_refused", Severity: doctor.Broken,
		Evidence:    []string{"connect ECONNREFUSED 127.0.0.1:5432", "compose.yaml publishes service db on 54320"},
		Explanation: "Nothing listens on 127.0.0.1:5432.", Confidence: 0.9,
		Fixes: []doctor.Fix{{Name: "compose_port", Class: doctor.Auto, Does: "5432 becomes 54320", Edits: []doctor.Edit{{}}}},
	}
	noise = doctor.Finding{
		ID: "pure.stdout_pollution", Stage: doctor.AtPure, Kind: "stdout_pollution", Severity: doctor.Warning,
		Evidence:    []string{"stdout: \x1b[2J\x1b[31mlistening\x1b[0m on \u202eport 3000"},
		Explanation: "The server writes lines to standard output that are no messages.", Confidence: 1,
	}
	signIn = doctor.Finding{
		ID: "handshake.auth_failed", Stage: doctor.AtHandshake, Kind: "auth_failed", Severity: doctor.Broken,
		Evidence: []string{"HTTP 401"}, Explanation: "The server wants somebody to sign in.", Confidence: 1,
		Fixes: []doctor.Fix{{Name: "sign_in", Class: doctor.Never, Does: "sign in with /mcp in Claude Code"}},
	}
)

func at(file string, line int) doctor.Place {
	return doctor.Place{File: filepath.FromSlash(file), Line: line, Column: 5}
}

func well(name, client string, tools int) *doctor.Case {
	return &doctor.Case{Name: name, Client: client, Scope: "user", At: at("/home/me/."+client+".json", 3), State: doctor.Healthy, Reached: doctor.AtSchemas,
		Info: &doctor.Info{Name: name, Version: "1.0", Protocol: "2025-11-25", Transport: "stdio", Tools: make([]string, tools)}, Took: 320 * time.Millisecond}
}

func ill(name, client, scope, file string, line int, state doctor.State, cause doctor.Finding) *doctor.Case {
	c := &doctor.Case{Name: name, Client: client, Scope: scope, At: at(file, line), State: state, Cause: &cause, Took: 200 * time.Millisecond}
	cause.At = c.At
	return c
}

var reports = map[string]*doctor.Report{
	"mixed": {Took: 4200 * time.Millisecond, Cases: []*doctor.Case{
		well("filesystem", "claude-code", 14),
		ill("chatty", "cursor", "user", "/home/me/.cursor/mcp.json", 20, doctor.Degraded, noise),
		ill("github", "claude-code", "user", "/home/me/.claude.json", 41, doctor.Dead, noToken),
		well("memory", "claude-code", 9),
		ill("postgres", "cursor", "project", "/home/me/shop/.cursor/mcp.json", 7, doctor.Dead, wrongPort),
		ill("github", "cursor", "user", "/home/me/.cursor/mcp.json", 4, doctor.Dead, noToken),
		{Name: "old", Client: "cursor", Scope: "user", At: at("/home/me/.cursor/mcp.json", 30), State: doctor.Disabled},
		{Name: "db", Client: "zed", Scope: "user", At: at("/home/me/.config/zed/settings.json", 8), State: doctor.InUse, Cause: &doctor.Finding{Explanation: "A running copy holds /tmp/db.lock."}},
		{Name: "helper", Client: "claude-code", Scope: "project", At: at("/home/me/shop/.mcp.json", 3), State: doctor.Pending, Approve: "5f1c0a", Runs: "npx -y some-helper --token [hidden]"},
		{Client: "windsurf", Scope: "user", At: at("/home/me/.codeium/windsurf/mcp_config.json", 12), State: doctor.Unreadable, Cause: &doctor.Finding{
			ID: "parse.trailing_comma", Stage: doctor.AtParse, Kind: "trailing_comma", Severity: doctor.Broken, Confidence: 1,
			Explanation: "Windsurf allows no trailing comma: this one makes it lose the whole file.",
			Fixes:       []doctor.Fix{{Name: "remove_comma", Class: doctor.Auto, Does: "remove the comma", Edits: []doctor.Edit{{}}}}}},
	}},
	"healthy": {Took: 800 * time.Millisecond, Cases: []*doctor.Case{well("filesystem", "claude-code", 14), well("memory", "claude-code", 1)}},
	"sign-in": {Took: 300 * time.Millisecond, Cases: []*doctor.Case{
		ill("notion", "claude-code", "user", "/home/me/.claude.json", 12, doctor.SignIn, signIn), well("memory", "claude-code", 9)}},
	"in-use": {Took: 300 * time.Millisecond, Cases: []*doctor.Case{well("memory", "claude-code", 9),
		{Name: "db", Client: "zed", Scope: "user", At: at("/home/me/.config/zed/settings.json", 8), State: doctor.InUse, Cause: &doctor.Finding{Explanation: "A running copy holds /tmp/db.lock."}}}},
	"static": {Took: time.Millisecond, Cases: []*doctor.Case{
		{Name: "memory", Client: "claude-code", Scope: "user", At: at("/home/me/.claude.json", 3), State: doctor.Unchecked}}},
}

// looks are the ways in which the same thing is shown.
var looks = []struct {
	name string
	set  func(*screen)
}{
	{"plain", func(*screen) {}},
	{"verbose", func(s *screen) { s.verbose = true }},
	{"narrow", func(s *screen) { s.terminal, s.width = true, 60 }},
	{"ascii", func(s *screen) { s.glyphs = letters }},
	{"colour", func(s *screen) { s.colour = true }},
	{"quiet", func(s *screen) { s.quiet = true }},
}

func TestReportsAreShown(t *testing.T) {
	for name, r := range reports {
		t.Run(name, func(t *testing.T) {
			golden(t, "report-"+name, func(v view) { v.report(r, nil) })
		})
	}
}

func TestExitCodesSayWhatRemains(t *testing.T) {
	of := func(states ...doctor.State) []*doctor.Case {
		var cases []*doctor.Case
		for _, s := range states {
			cases = append(cases, &doctor.Case{State: s})
		}
		return cases
	}
	for _, test := range []struct {
		cases  []*doctor.Case
		failOn doctor.Severity
		want   int
	}{
		{nil, doctor.Broken, OK},
		{of(doctor.Healthy, doctor.Disabled, doctor.InUse, doctor.Unchecked), doctor.Warning, OK},
		{of(doctor.Degraded, doctor.Pending), doctor.Broken, OK},
		{of(doctor.Degraded, doctor.Healthy), doctor.Warning, Failed},
		{of(doctor.Healthy, doctor.SignIn, doctor.SignIn), doctor.Broken, SignIn},
		{of(doctor.Dead, doctor.Unresponsive), doctor.Broken, Unreachable},
		{of(doctor.Dead, doctor.SignIn), doctor.Broken, Failed},
		{of(doctor.Dead, doctor.Skipped, doctor.Dead), doctor.Broken, Failed},
		{of(doctor.Misplaced), doctor.Broken, Failed},
		{of(doctor.Unreadable), doctor.Broken, Failed},
	} {
		if got := exitCode(test.cases, test.failOn); got != test.want {
			var states []doctor.State
			for _, c := range test.cases {
				states = append(states, c.State)
			}
			t.Errorf("%v, fail on %s: %d, want %d", states, test.failOn, got, test.want)
		}
	}
}

func TestHealingsAreShown(t *testing.T) {
	change := doctor.Diff{File: filepath.FromSlash("/home/me/shop/.cursor/mcp.json"),
		Text: "--- " + filepath.FromSlash("/home/me/shop/.cursor/mcp.json") + "\n+++ " + filepath.FromSlash("/home/me/shop/.cursor/mcp.json") +
			"\n@@ -7,1 +7,1 @@\n-      \"PORT\": \"5432\"\n+      \"PORT\": \"54320\"\n"}
	attempt := doctor.Attempt{Number: 1, Fix: &wrongPort.Fixes[0], Diagnosis: doctor.Diagnosis{ID: wrongPort.ID, Kind: wrongPort.Kind, Explanation: wrongPort.Explanation}}
	kept := attempt
	kept.Result, kept.Kept = doctor.Healthy, true
	failed := attempt
	failed.Result = doctor.Dead
	asked := doctor.Attempt{Number: 1, Fix: &noToken.Fixes[0], Diagnosis: doctor.Diagnosis{Explanation: noToken.Explanation}}
	sick := ill("postgres", "cursor", "project", change.File, 7, doctor.Dead, wrongPort)
	for name, healings := range map[string][]*doctor.Healing{
		"done": {
			{Server: "postgres", Client: "cursor", File: change.File, Fixed: true, Attempts: []doctor.Attempt{kept}, Diffs: []doctor.Diff{change},
				Undo: []string{"c3f1"}, Reload: "toggle the server in Cursor's settings", Case: well("postgres", "cursor", 8)},
			{Server: "github", Client: "claude-code", File: filepath.FromSlash("/home/me/.claude.json"), Attempts: []doctor.Attempt{failed},
				Person: "Make a token and set GITHUB_PERSONAL_ACCESS_TOKEN.", Case: sick},
		},
		"plan": {
			{Server: "postgres", Client: "cursor", File: change.File, Planned: true, Attempts: []doctor.Attempt{attempt}, Diffs: []doctor.Diff{change}, Case: sick},
			{Server: "github", Client: "claude-code", File: filepath.FromSlash("/home/me/.claude.json"), Planned: true, Attempts: []doctor.Attempt{asked}, Case: sick},
		},
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "heal-"+name, func(v view) {
				for _, h := range healings {
					v.healing(h, 3, nil)
				}
				v.healed(reports["healthy"], healings, name == "plan", healFlags{}, nil)
			})
		})
	}
	if code := healCode([]*doctor.Healing{{Planned: true, Attempts: []doctor.Attempt{attempt}, Case: sick}}, true); code != Pending {
		t.Errorf("a plan with changes: exit code %d", code)
	}
	if code := healCode([]*doctor.Healing{{Planned: true, Attempts: []doctor.Attempt{{Number: 1}}, Case: sick}}, true); code != Unreachable {
		t.Errorf("a plan without changes for a dead server: exit code %d", code)
	}
	if code := healCode([]*doctor.Healing{{Fixed: true, Case: sick}}, false); code != OK {
		t.Errorf("all healed: exit code %d", code)
	}
}

func TestTheLadderIsShown(t *testing.T) {
	c := ill("github", "claude-code", "user", "/home/me/.claude.json", 41, doctor.Dead, noToken)
	c.Runs = "npx -y @modelcontextprotocol/server-github"
	c.Ladder = []doctor.Step{{Stage: doctor.AtFile, OK: true}, {Stage: doctor.AtParse, OK: true}, {Stage: doctor.AtResolve, OK: true, Note: "/usr/bin/npx"},
		{Stage: doctor.AtStart, Note: "exit 1", Took: 1200 * time.Millisecond}}
	golden(t, "ladder-dead", func(v view) { v.ladder(c, false) })
	loose := &doctor.Case{Runs: "http://127.0.0.1:3000/mcp", State: doctor.Healthy, Reached: doctor.AtTools, Took: 40 * time.Millisecond,
		Info:   &doctor.Info{Name: "demo", Version: "1.2", Protocol: "2025-11-25", Transport: "http", Tools: []string{"add", "echo"}},
		Ladder: []doctor.Step{{Stage: doctor.AtStart, OK: true, Took: 3 * time.Millisecond}, {Stage: doctor.AtHandshake, OK: true, Took: 20 * time.Millisecond}, {Stage: doctor.AtTools, OK: true, Note: "2 tools", Took: 4 * time.Millisecond}}}
	golden(t, "ladder-healthy", func(v view) { v.ladder(loose, false) })
}

// golden compares what is shown, in every look, with a file of testdata/show.
func golden(t *testing.T, name string, show func(view)) {
	t.Helper()
	if filepath.Separator != '/' {
		t.Skip("the files have paths of Unix in them")
	}
	var got txtar.Archive
	for _, look := range looks {
		var out bytes.Buffer
		s := &screen{out: &out, err: &out, glyphs: signs}
		look.set(s)
		show(view{s, "/home/me", "/home/me/shop", selection{}})
		got.Files = append(got.Files, txtar.File{Name: look.name, Data: out.Bytes()})
	}
	path := filepath.Join("testdata", "show", name+".txtar")
	if updating() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is missing; run the test with -update and read what it wrote", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
		t.Errorf("%s: -want +got:\n%s", path, diff)
	}
}

func TestPathsAreNamedAsAPersonWould(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("paths of Unix")
	}
	v := view{&screen{}, "/home/me", "/home/me/shop", selection{}}
	for path, want := range map[string]string{
		"/home/me/shop/.mcp.json": ".mcp.json",
		"/home/me/.claude.json":   "~/.claude.json",
		"/home/me/shop":           "~/shop",
		"/home/me":                "/home/me",
		"/etc/x.json":             "/etc/x.json",
		"/home/mean/x.json":       "/home/mean/x.json",
	} {
		if got := v.path(path); got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}

func TestAServerThatWasOnlySlowIsNotCountedAsIll(t *testing.T) {
	for _, test := range []struct {
		fixed, slow, all int
		want             string
	}{
		{1, 0, 2, "Healed 1 of 2."},
		{0, 1, 1, "Nothing to heal: it works, and only needed more time."},
		{0, 3, 3, "Nothing to heal: all 3 work, and only needed more time."},
		{1, 1, 3, "Healed 1 of 2. One more works, and only needed more time."},
		{0, 2, 3, "Healed 0 of 1. 2 more work, and only needed more time."},
	} {
		if got := healedWords(test.fixed, test.slow, test.all); got != test.want {
			t.Errorf("%d fixed, %d slow of %d: got %q, want %q", test.fixed, test.slow, test.all, got, test.want)
		}
	}
}

func TestTheNewestChangeThatStandsIsUndone(t *testing.T) {
	done := func(id, undoes string) clientconfig.Change {
		return clientconfig.Change{ID: id, Undoes: undoes, Done: true}
	}
	for _, test := range []struct {
		name    string
		history []clientconfig.Change // newest first
		want    string
	}{
		{"nothing", nil, ""},
		{"the last", []clientconfig.Change{done("b", ""), done("a", "")}, "b"},
		{"undone", []clientconfig.Change{done("u", "b"), done("b", ""), done("a", "")}, "a"},
		{"redone", []clientconfig.Change{done("r", "u"), done("u", "b"), done("b", ""), done("a", "")}, "b"},
		{"interrupted", []clientconfig.Change{{ID: "x"}, done("a", "")}, "a"},
		{"all undone", []clientconfig.Change{done("u", "a"), done("a", "")}, ""},
	} {
		got := ""
		if c := lastStanding(test.history); c != nil {
			got = c.ID
		}
		if got != test.want {
			t.Errorf("%s: would undo %q, want %q", test.name, got, test.want)
		}
	}
}

func TestHelpThatAFixHasNamedIsNotSaidAgain(t *testing.T) {
	var out strings.Builder
	v := view{screen: &screen{out: &out, glyphs: signs}}
	v.finding(&doctor.Case{}, doctor.Finding{Help: "https://x.example/install",
		Fixes: []doctor.Fix{{Class: doctor.Never, Does: "install it: https://x.example/install"}}}, "cause", false)
	if got := strings.Count(out.String(), "https://x.example/install"); got != 1 {
		t.Errorf("the address stands there %d times, want once:\n%s", got, out.String())
	}
}
