package doctor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/registry"
)

// A clinic is a home folder with a client's file, and a world that says what
// becomes of a server that is started.
type clinic struct {
	t      *testing.T
	system clientconfig.System
	client *clientconfig.Client
	path   string
	healer
	sources sources
	// world returns what goes wrong with an entry, nil if nothing; wait is the time
	// that it is given.
	world func(s *clientconfig.Server, wait time.Duration) *Finding
	looks int
}

func newClinic(t *testing.T, client, data string) *clinic {
	t.Helper()
	home := t.TempDir()
	c := &clinic{t: t, client: clientconfig.ByID(client), system: clientconfig.System{OS: "linux", Home: home, Project: filepath.Join(home, "project"), Getenv: func(string) string { return "" }}}
	c.path = c.system.Path(c.client.Files[slices.IndexFunc(c.client.Files, func(p clientconfig.Place) bool { return c.system.Path(p) != "" })])
	c.put(c.path, data)
	c.sources = sources{os: "linux", home: home, system: c.system, project: c.system.Project}
	c.world = func(*clientconfig.Server, time.Duration) *Finding { return nil }
	c.healer = healer{
		HealOptions: HealOptions{MaxAttempts: 3}, store: &clientconfig.Store{Dir: filepath.Join(home, "state")}, look: c.look,
		approve: func(*Case, *clientconfig.File, func() bool) bool { return true },
	}
	return c
}

func (c *clinic) put(path, data string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clinic) content() string {
	c.t.Helper()
	data, err := os.ReadFile(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

func (c *clinic) look(ctx context.Context, f *clientconfig.File, name string, wait time.Duration) *Case {
	c.looks++
	return c.examine(ctx, f, name, wait)
}

// examine is what a doctor does, with the world for a machine.
func (c *clinic) examine(ctx context.Context, f *clientconfig.File, name string, wait time.Duration) *Case {
	var found *Case
	for _, k := range (&Doctor{}).admit([]*clientconfig.File{f}, Which{}) {
		if k.Name == name {
			found = k
			break
		}
	}
	switch {
	case found == nil && name != "":
		return nil
	case found == nil:
		return &Case{Client: f.Client.ID, At: Place{File: f.Path}, State: Healthy, Reached: AtShape, file: f}
	}
	if found.Cause == nil && found.server != nil {
		found.saw = &Sighting{}
		found.Reached, found.State = AtSchemas, Healthy
		if wrong := c.world(found.server, wait); wrong != nil {
			wrong.ID = string(wrong.Stage) + "." + wrong.Kind
			wrong.Severity, wrong.At = Broken, found.At
			found.Cause, found.Reached, found.State = wrong, stages[rung(wrong.Stage)-1], stateOf(wrong)
		}
	}
	for _, finding := range findings(found) {
		finding.Fixes = c.sources.fixes(ctx, found, finding)
	}
	return found
}

// first is the case as the check before the healing sees it.
func (c *clinic) first(name string) *Case {
	c.t.Helper()
	for _, f := range c.system.Find(c.client) {
		if k := c.examine(c.t.Context(), f, name, 0); k != nil && k.Cause != nil {
			return k
		}
	}
	c.t.Fatalf("nothing is wrong with %q", name)
	return nil
}

func (c *clinic) healed(name string) *Healing {
	c.t.Helper()
	return c.heal(c.t.Context(), c.first(name))
}

// tried writes the attempts in a line each.
func tried(h *Healing) []string {
	var all []string
	for _, a := range h.Attempts {
		fix := "-"
		if a.Fix != nil {
			fix = a.Fix.Name
		}
		kept := ""
		if a.Kept {
			kept = " kept"
		}
		all = append(all, strings.TrimSpace(a.Diagnosis.ID+" "+fix+" "+string(a.Result)+kept))
	}
	return all
}

func want(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// needs is a world in which a program is only found by an absolute path.
func needs(path string) func(*clientconfig.Server, time.Duration) *Finding {
	return func(s *clientconfig.Server, _ time.Duration) *Finding {
		if s.Command.Text != path {
			return &Finding{Stage: AtResolve, Kind: "command_not_found"}
		}
		return nil
	}
}

func found(paths ...string) func(context.Context, string) []machine.Found {
	return func(context.Context, string) []machine.Found {
		var all []machine.Found
		for _, p := range paths {
			all = append(all, machine.Found{Path: p})
		}
		return all
	}
}

const misspelt = `{
  // mine
  "mcpServers": {
    "github": {
      "comand": "npx",
      "args": ["-y", "server-github"],
      "env": {"GITHUB_TOKEN": "plain canary words 12345"}
    }
  }
}
`

func TestHealingGoesOnUntilItWorksAndWritesOnce(t *testing.T) {
	c := newClinic(t, "cursor", misspelt)
	c.world = needs("/nvm/npx")
	c.sources.programs = found("/nvm/npx")
	h := c.healed("github")
	want(t, tried(h), []string{"shape.wrong_name rename_field dead kept", "resolve.command_not_found absolute_path healthy kept"})
	if !h.Fixed || len(h.Changes) != 1 || len(h.Undo) != 1 || h.Person != "" || h.Reload == "" {
		t.Errorf("fixed %t, %d changes, person %q, reload %q", h.Fixed, len(h.Changes), h.Person, h.Reload)
	}
	after := strings.NewReplacer(`"comand": "npx"`, `"command": "/nvm/npx"`, `12345"}`, `12345", "PATH": "/nvm:${env:PATH}"}`).Replace(misspelt)
	want(t, c.content(), after)
	shown, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(shown), "canary") || !strings.Contains(string(shown), "/nvm/npx") {
		t.Errorf("the record is %s", shown)
	}
	if !strings.Contains(h.Diffs[0].Text, `+      "command": "/nvm/npx"`) {
		t.Errorf("the diff is\n%s", h.Diffs[0].Text)
	}
	if _, err := c.store.Restore(t.Context(), h.Undo[0]); err != nil {
		t.Fatal(err)
	}
	want(t, c.content(), misspelt)
}

func TestAFixThatDoesNotHelpIsNotWritten(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}}}`)
	c.world = needs("/good/npx")
	c.sources.programs = found("/bad/npx", "/good/npx")
	h := c.healed("a")
	want(t, tried(h), []string{"resolve.command_not_found absolute_path dead", "resolve.command_not_found absolute_path healthy kept"})
	if got := c.content(); strings.Contains(got, "/bad") || !strings.Contains(got, "/good/npx") {
		t.Errorf("the file holds %s", got)
	}
}

func TestNothingIsWrittenIfNothingHelps(t *testing.T) {
	before := `{"mcpServers": {"a": {"command": "npx"}}}`
	c := newClinic(t, "cursor", before)
	c.world = needs("/nowhere")
	c.sources.programs = found("/1/npx", "/2/npx", "/3/npx", "/4/npx")
	c.MaxAttempts = 2
	h := c.healed("a")
	want(t, tried(h), []string{"resolve.command_not_found absolute_path dead", "resolve.command_not_found absolute_path dead"})
	want(t, c.content(), before)
	if h.Fixed || h.Changes != nil || h.Diffs != nil || !strings.Contains(h.Person, "nodejs.org") {
		t.Errorf("got %+v", h)
	}
	if _, err := os.Stat(c.store.Dir); !os.IsNotExist(err) {
		t.Errorf("a folder was made although nothing was written: %v", err)
	}
}

func TestWhatNeedsAPersonIsNotTried(t *testing.T) {
	before := `{"mcpServers": {"a": {"command": "npx"}}}`
	c := newClinic(t, "cursor", before)
	c.sources.names = []string{"TOKEN"}
	c.world = func(s *clientconfig.Server, _ time.Duration) *Finding {
		if v, _ := envOf(s, "TOKEN"); v != "${env:TOKEN}" {
			return &Finding{Stage: AtStart, Kind: "missing_env_var", pieces: fault.Pieces{Variable: "TOKEN"}}
		}
		return nil
	}
	h := c.healed("a")
	want(t, tried(h), []string{"start.missing_env_var - dead"})
	want(t, c.content(), before)
	if c.looks != 0 || h.Fixed || !strings.HasPrefix(h.Person, "agree to this change: hand TOKEN") {
		t.Errorf("%d looks, fixed %t, person %q", c.looks, h.Fixed, h.Person)
	}
	c.Later = true
	if h := c.healed("a"); !strings.HasPrefix(h.Person, "agree to what is asked; or set TOKEN") {
		t.Errorf("person %q, and the change itself is shown later", h.Person)
	}
	c.Later = false
	var asked []string
	c.Allow = func(_ *Case, f Fix) bool { asked = append(asked, f.Name); return true }
	h = c.healed("a")
	want(t, asked, []string{"reference_same_name"})
	want(t, tried(h), []string{"start.missing_env_var reference_same_name healthy kept"})
	if !h.Fixed || !strings.Contains(c.content(), "${env:TOKEN}") {
		t.Errorf("fixed %t: %s", h.Fixed, c.content())
	}
}

func TestOneVariableAfterTheOther(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}}}`)
	c.sources.names = []string{"A_TOKEN", "B_TOKEN"}
	c.Allow = func(*Case, Fix) bool { return true }
	c.world = func(s *clientconfig.Server, _ time.Duration) *Finding {
		for _, name := range c.sources.names {
			if _, ok := envOf(s, name); !ok {
				return &Finding{Stage: AtStart, Kind: "missing_env_var", pieces: fault.Pieces{Variable: name}}
			}
		}
		return nil
	}
	if h := c.healed("a"); !h.Fixed || len(h.Attempts) != 2 {
		t.Errorf("fixed %t: %q", h.Fixed, tried(h))
	}
}

func TestAPlanStartsAndWritesNothing(t *testing.T) {
	c := newClinic(t, "cursor", misspelt)
	c.Plan = true
	h := c.healed("github")
	want(t, tried(h), []string{"shape.wrong_name rename_field"})
	want(t, c.content(), misspelt)
	if c.looks != 0 || h.Fixed || !h.Planned || len(h.Diffs) != 1 || !strings.Contains(h.Diffs[0].Text, `+      "command": "npx"`) {
		t.Errorf("%d looks, fixed %t, planned %t, diffs %v", c.looks, h.Fixed, h.Planned, h.Diffs)
	}
	if strings.Contains(h.Diffs[0].Text, "canary") {
		t.Errorf("the diff shows a secret:\n%s", h.Diffs[0].Text)
	}
}

func TestAClientThatWritesInTheMeantimeLosesNothing(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}}}`)
	c.sources.programs = found("/nvm/npx")
	wrote := false
	c.world = func(s *clientconfig.Server, _ time.Duration) *Finding {
		if f := needs("/nvm/npx")(s, 0); f != nil {
			return f
		}
		if !wrote {
			wrote = true
			c.put(c.path, `{"seen": 12, "mcpServers": {"b": {"command": "x"}, "a": {"command": "npx"}}}`)
		}
		return nil
	}
	h := c.healed("a")
	want(t, c.content(), `{"seen": 12, "mcpServers": {"b": {"command": "x"}, "a": {"command": "/nvm/npx", "env": {"PATH": "/nvm:${env:PATH}"}}}}`)
	if !h.Fixed || len(h.Changes) != 1 {
		t.Errorf("fixed %t, %d changes, person %q", h.Fixed, len(h.Changes), h.Person)
	}
}

func TestAnEntryThatChangedInTheMeantimeIsLeftAlone(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}}}`)
	c.sources.programs = found("/nvm/npx")
	now := `{"mcpServers": {"a": {"command": "docker"}}}`
	c.world = func(s *clientconfig.Server, _ time.Duration) *Finding {
		if f := needs("/nvm/npx")(s, 0); f != nil {
			return f
		}
		c.put(c.path, now)
		return nil
	}
	h := c.healed("a")
	want(t, c.content(), now)
	if h.Fixed || h.Changes != nil || h.Person == "" {
		t.Errorf("fixed %t, person %q", h.Fixed, h.Person)
	}
}

func TestCasesOfOneFileAreHealedOnTopOfEachOther(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}, "b": {"command": "npx"}}}`)
	c.world, c.sources.programs = needs("/nvm/npx"), found("/nvm/npx")
	a, b := c.first("a"), c.first("b")
	for _, k := range []*Case{a, b} {
		if h := c.heal(t.Context(), k); !h.Fixed {
			t.Errorf("%s: %q %s", k.Name, tried(h), h.Person)
		}
	}
	if got := strings.Count(c.content(), `"command": "/nvm/npx"`); got != 2 {
		t.Errorf("the file holds %s", c.content())
	}
}

func TestWhatWasMendedMeanwhileIsNotMendedAgain(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}}}`)
	c.world, c.sources.programs = needs("/nvm/npx"), found("/other/npx")
	stale := c.first("a")
	now := `{"mcpServers": {"a": {"command": "/nvm/npx"}}}`
	c.put(c.path, now)
	h := c.heal(t.Context(), stale)
	want(t, c.content(), now)
	if c.looks != 1 || len(h.Attempts) != 0 || h.Case.State != Healthy {
		t.Errorf("%d looks, %q, %s", c.looks, tried(h), h.Case.State)
	}
}

func TestAFileIsHealedAsAWhole(t *testing.T) {
	c := newClinic(t, "claude-desktop", "{\n  // mine\n  \"servers\": {\n    \"a\": {\"command\": \"npx\"},\n  }\n}\n")
	h := c.healed("")
	want(t, tried(h), []string{"parse.comment strict_json skipped kept", "shape.wrong_key rename_key healthy kept"})
	want(t, c.content(), "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"npx\"}\n  }\n}\n")
	if !h.Fixed {
		t.Errorf("person %q", h.Person)
	}
}

func TestMovingWritesBothFiles(t *testing.T) {
	c := newClinic(t, "claude-code", `{"numStartups": 3}`)
	wrong := filepath.Join(c.system.Home, ".claude", "settings.json")
	c.put(wrong, `{"theme": "dark", "mcpServers": {"a": {"command": "npx"}}}`)
	c.Allow = func(*Case, Fix) bool { return true }
	h := c.healed("a")
	if !h.Fixed || len(h.Changes) != 2 || len(h.Diffs) != 2 || h.Case.At.File != c.path {
		t.Fatalf("fixed %t, %d changes, %q %s", h.Fixed, len(h.Changes), tried(h), h.Person)
	}
	if got, err := os.ReadFile(wrong); err != nil || strings.Contains(string(got), "npx") || !strings.Contains(string(got), "dark") {
		t.Errorf("%v: the wrong file holds %s", err, got)
	}
	if !strings.Contains(c.content(), `"npx"`) {
		t.Errorf("the right file holds %s", c.content())
	}
}

// slow is a world in which a server needs some time.
func slow(needs time.Duration) func(*clientconfig.Server, time.Duration) *Finding {
	return func(_ *clientconfig.Server, wait time.Duration) *Finding {
		if wait < needs {
			return &Finding{Stage: AtHandshake, Kind: "timeout"}
		}
		return nil
	}
}

func TestTimeGrowsBeforeSomethingElseIsSuspected(t *testing.T) {
	c := newClinic(t, "codex", "[mcp_servers.a]\ncommand = \"npx\"\n")
	c.world = slow(45 * time.Second)
	h := c.healed("a")
	want(t, tried(h), []string{"handshake.timeout startup_timeout unresponsive", "handshake.timeout startup_timeout healthy kept"})
	want(t, c.content(), "[mcp_servers.a]\ncommand = \"npx\"\nstartup_timeout_sec = 60\n")

	c = newClinic(t, "codex", "[mcp_servers.a]\ncommand = \"npx\"\n")
	c.world = slow(time.Hour)
	if h = c.healed("a"); h.Fixed || !strings.Contains(h.Person, "not installed") || strings.Contains(c.content(), "timeout") {
		t.Errorf("fixed %t, person %q: %s", h.Fixed, h.Person, c.content())
	}
}

func TestASlowFirstStartNeedsNoChange(t *testing.T) {
	before := `{"mcpServers": {"a": {"command": "npx"}}}`
	c := newClinic(t, "cursor", before)
	warm := false
	c.world = func(s *clientconfig.Server, wait time.Duration) *Finding {
		if !warm && wait < 30*time.Second {
			return &Finding{Stage: AtHandshake, Kind: "timeout"}
		}
		warm = true // the package is there now
		return nil
	}
	h := c.healed("a")
	want(t, tried(h), []string{"handshake.timeout wait_longer healthy kept"})
	want(t, c.content(), before)

	c = newClinic(t, "cursor", before)
	c.world = slow(20 * time.Second) // every time, and the client has no field for it
	if h = c.healed("a"); h.Fixed || !strings.Contains(h.Person, "needs up to 30 s") || len(h.Attempts) != 1 {
		t.Errorf("fixed %t, person %q: %q", h.Fixed, h.Person, tried(h))
	}
}

// In Claude Code, "timeout" bounds calls: a start of 35 s fails with 60000 in it, and
// one of 5 s succeeds with 2000. So nothing is written there; how long it waits is a
// variable of its own.
func TestMoreTimeToStartIsNotWrittenWhereItMeansCalls(t *testing.T) {
	before := `{"mcpServers": {"a": {"command": "npx"}}}`
	c := newClinic(t, "claude-code", before)
	c.world = slow(20 * time.Second)
	h := c.healed("a")
	want(t, tried(h), []string{"handshake.timeout wait_longer healthy kept"})
	if h.Fixed || h.Person != "" || h.Case.State != Healthy { // nothing had to be fixed
		t.Errorf("fixed %t, person %q, %s", h.Fixed, h.Person, h.Case.State)
	}
	want(t, c.content(), before)

	c = newClinic(t, "claude-code", before)
	c.world = slow(45 * time.Second)
	if h = c.healed("a"); h.Fixed || !strings.Contains(h.Person, "MCP_TIMEOUT=60000") {
		t.Errorf("fixed %t, person %q: %q", h.Fixed, h.Person, tried(h))
	}
	want(t, c.content(), before)

	// In opencode it does mean the start, and 30 s are the default.
	c = newClinic(t, "opencode", `{"mcp": {"a": {"type": "local", "command": ["npx"]}}}`)
	c.world = slow(45 * time.Second)
	h = c.healed("a")
	want(t, tried(h), []string{"handshake.timeout wait_longer unresponsive", "handshake.timeout startup_timeout healthy kept"})
	if !strings.Contains(c.content(), `"timeout": 60000`) {
		t.Error(c.content())
	}
}

func TestOneFolderOfTheCacheIsRemoved(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"]}}}`)
	broken := filepath.Join(c.system.Home, ".npm", "_npx", "705d23756ff7dacc")
	c.put(filepath.Join(broken, "node_modules", "half"), "")
	c.put(filepath.Join(c.system.Home, ".npm", "_npx", "e54cca0e4081644e", "whole"), "")
	c.sources.usedBy = workedIn
	c.world = func(s *clientconfig.Server, _ time.Duration) *Finding {
		if _, err := os.Stat(broken); err == nil {
			return &Finding{Stage: AtStart, Kind: "package_cache_corrupt"}
		}
		return nil
	}
	k := c.first("a")
	k.saw.Fault = &fault.Fault{Evidence: fault.Evidence{Stderr: []string{"Error: Cannot find module '" + broken + "/node_modules/x.js'"}}}
	k.Cause.Fixes = c.sources.fixes(t.Context(), k, k.Cause)
	if _, known := workedIn(broken); !known {
		c.Allow = func(*Case, Fix) bool { return true }
	}
	held := *c
	held.Hold, held.Allow = true, func(*Case, Fix) bool { return false }
	held.heal(t.Context(), k)
	if _, err := os.Stat(broken); err != nil {
		t.Fatalf("removed unasked by somebody who was to change nothing: %v", err)
	}
	h := c.heal(t.Context(), k)
	if !h.Fixed || len(h.Changes) != 0 {
		t.Errorf("fixed %t: %q", h.Fixed, tried(h))
	}
	if got := filesIn(filepath.Join(c.system.Home, ".npm", "_npx", "e54cca0e4081644e")); len(got) != 1 {
		t.Errorf("another folder was touched: %q", got)
	}
}

func TestOnlyFoldersOfNpxAreRemoved(t *testing.T) {
	home := t.TempDir()
	link := filepath.Join(home, "_npx", "705d23756ff7dacc")
	target := filepath.Join(home, "mine")
	for _, dir := range []string{filepath.Dir(link), target} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	other := filepath.Join(t.TempDir(), "_npx")
	if err := os.MkdirAll(filepath.Join(other, "705d23756ff7dacc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(other), filepath.Join(home, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{filepath.Join(home, "elsewhere", "_npx", "705d23756ff7dacc"), link, target, filepath.Join(home, "_npx", ".."), filepath.Join(home, "_npx")} {
		if err := removeNpxFolder(home, folder); err == nil {
			t.Errorf("%s was removed", folder)
		}
	}
	for _, kept := range []string{target, filepath.Join(other, "705d23756ff7dacc")} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
}

func TestACommandThatNobodyApprovedIsNotStarted(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}}}`)
	c.world, c.sources.programs = needs("/nvm/npx"), found("/nvm/npx")
	c.approve = func(_ *Case, _ *clientconfig.File, agreed func() bool) bool { return agreed() }
	h := c.healed("a")
	if c.looks != 0 || h.Fixed || !strings.HasPrefix(h.Person, "agree to this change") {
		t.Errorf("%d looks, person %q", c.looks, h.Person)
	}
	c.Allow = func(*Case, Fix) bool { return true }
	if h = c.healed("a"); !h.Fixed {
		t.Errorf("person %q", h.Person)
	}
}

func TestAWarningIsMendedWithoutHarm(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx", "args": ["x"], "envs": {"A": "b"}}}}`)
	h := c.heal(t.Context(), c.examine(t.Context(), c.system.Find(c.client)[0], "a", 0))
	if want(t, tried(h), []string{"shape.wrong_name rename_field healthy kept"}); !strings.Contains(c.content(), `"env": {"A"`) {
		t.Errorf("the file holds %s", c.content())
	}
}

func TestWithoutAStoreNothingIsSaidToBeFixed(t *testing.T) {
	before := `{"mcpServers": {"a": {"command": "npx"}}}`
	c := newClinic(t, "cursor", before)
	c.world, c.sources.programs, c.store = needs("/nvm/npx"), found("/nvm/npx"), nil
	if h := c.healed("a"); h.Fixed || h.Person == "" || c.content() != before {
		t.Errorf("fixed %t, person %q: %s", h.Fixed, h.Person, c.content())
	}
}

func TestHoldingWritesNothingAndKeepsTheDraft(t *testing.T) {
	before := `{"mcpServers": {"a": {"command": "npx"}}}`
	c := newClinic(t, "cursor", before)
	c.world, c.sources.programs = needs("/nvm/npx"), found("/nvm/npx")
	c.Hold = true
	h := c.healed("a")
	want(t, c.content(), before)
	if h.Fixed || len(h.Drafts) != 1 || h.Person != "" || h.Case.State != Healthy {
		t.Fatalf("fixed %t, %d drafts, person %q", h.Fixed, len(h.Drafts), h.Person)
	}
	d := Doctor{Store: c.store}
	if _, err := d.Write(t.Context(), h.Drafts[0]); err != nil || !strings.Contains(c.content(), "/nvm/npx") {
		t.Errorf("%v: the file holds %s", err, c.content())
	}
}

func TestAPreviewShowsAFileThatIsNotThereYet(t *testing.T) {
	c := newClinic(t, "vscode", `{}`)
	c.put(filepath.Join(c.system.Project, ".vscode", "settings.json"), `{"mcp": {"servers": {"a": {"command": "npx"}}}}`)
	k := c.first("a")
	drafts := (&Doctor{}).Preview(k, k.Cause.Fixes[0])
	if len(drafts) != 2 || filepath.Base(drafts[0].Diff.File) != "mcp.json" || !strings.Contains(drafts[0].Diff.Text, `+    "a": {`) {
		t.Errorf("%d drafts of %q", len(drafts), k.Cause.Fixes[0].Name)
	}
}

func TestAPlanLeavesOutWhatWasRefused(t *testing.T) {
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx"}}}`)
	c.sources.names = []string{"TOKEN"}
	c.world = func(*clientconfig.Server, time.Duration) *Finding {
		return &Finding{Stage: AtStart, Kind: "missing_env_var", pieces: fault.Pieces{Variable: "TOKEN"}}
	}
	c.Plan, c.Allow = true, func(*Case, Fix) bool { return false }
	if h := c.healed("a"); len(h.Diffs) != 0 || h.Attempts[0].Fix != nil {
		t.Errorf("the plan is %q", tried(h))
	}
}

func TestAnEntryMayAskForMoreTime(t *testing.T) {
	for _, test := range []struct {
		client, timeout string
		want            time.Duration
	}{
		{"codex", "30", 30 * time.Second},
		{"opencode", "30000", 30 * time.Second},
		{"codex", "3600", time.Minute},
		{"codex", "9223372036854775807", time.Minute},
		{"codex", "-1", 0},
		{"codex", "soon", 0},
		{"codex", "", 0},
	} {
		s := &clientconfig.Server{Client: clientconfig.ByID(test.client), Timeout: clientconfig.Value{Text: test.timeout}}
		if got := ownTime(s); got != test.want {
			t.Errorf("%s %q: got %s, want %s", test.client, test.timeout, got, test.want)
		}
	}
}

// The registry knows names that people set by mistake, however unlike they are, and
// that a flag stands in for a variable.
func TestAVariableUnderAMistakenNameIsRenamed(t *testing.T) {
	refused := func(s *clientconfig.Server, _ time.Duration) *Finding {
		if _, there := envOf(s, "BILLING_SECRET"); there {
			return nil
		}
		return &Finding{Stage: AtHandshake, Kind: "auth_failed"}
	}
	known := registry.Variable{Name: "BILLING_SECRET", Required: true, Secret: true, Mistaken: []string{"STRIPE_KEY"}, Or: []string{"--billing-secret"}}
	c := newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx", "env": {"STRIPE_KEY": "x"}}}}`)
	c.world, c.sources.variables = refused, []registry.Variable{known}
	c.Allow = func(*Case, Fix) bool { return true }
	want(t, tried(c.healed("a")), []string{"handshake.auth_failed rename_variable healthy kept"})

	c = newClinic(t, "cursor", `{"mcpServers": {"a": {"command": "npx", "args": ["--billing-secret=x"], "env": {"STRIPE_KEY": "x"}}}}`)
	c.world, c.sources.variables = refused, []registry.Variable{known}
	c.Allow = func(*Case, Fix) bool { return true }
	if h := c.healed("a"); h.Fixed || h.Attempts[0].Fix != nil {
		t.Errorf("tried %q", tried(h))
	}
}
