package doctor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
)

const canary = "ghp_c4n4ryC4N4RYc4n4ryC4N4RYc4n4ry123456"

// A clinicRoom is a home with files in it and a doctor who notes what is started.
type clinicRoom struct {
	*Doctor
	home    string
	started []Start
	saw     Sighting
}

func newRoom(t *testing.T, files map[string]string) *clinicRoom {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Programs that are found, and would fail the test if they ran.
	bin := filepath.Join(home, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"npx", "uvx", "docker", "node"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexit 99\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	room := &clinicRoom{home: home, saw: Sighting{
		Steps: []Step{{Stage: AtStart, OK: true}, {Stage: AtHandshake, OK: true}, {Stage: AtTools, OK: true}},
		Info:  &Info{Name: "example", Tools: []string{"echo"}},
		Tools: []Tool{{Name: "echo", InputSchema: []byte(`{"type":"object"}`)}},
	}}
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + home, "PATH=" + bin, "GITHUB_TOKEN=" + canary}
	room.Doctor = &Doctor{
		System: clientconfig.System{OS: "linux", Home: home, Root: filepath.Join(home, "root"), Project: project, Getenv: func(name string) string {
			for _, e := range environ {
				if v, ok := strings.CutPrefix(e, name+"="); ok {
					return v
				}
			}
			return ""
		}},
		Environ:   environ,
		Registry:  new(registry.Registry),
		Store:     &clientconfig.Store{Dir: filepath.Join(home, "state")},
		Approvals: &Approvals{File: filepath.Join(home, "state", "approved.json")},
		Probe: func(_ context.Context, s Start) Sighting {
			room.started = append(room.started, s)
			return room.saw
		},
	}
	return room
}

func (r *clinicRoom) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.home, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func allow(string) bool { return true }

func TestAServerIsTriedInEachClientAndWrittenInItsSpelling(t *testing.T) {
	r := newRoom(t, map[string]string{
		".claude.json":                   "{\n  \"mcpServers\": {}\n}\n",
		".cursor/mcp.json":               "{\n  \"mcpServers\": {}\n}\n",
		".codex/config.toml":             "model = \"x\"\n",
		".config/opencode/opencode.json": "{}\n",
	})
	c := r.Configure(t.Context(), ConfigureRequest{
		Name: "gh", Package: "npm:@example/github", Env: []string{"MODE=fast"}, Secrets: []string{"GITHUB_TOKEN"}, Allow: allow,
	})
	for name, want := range map[string]string{
		".claude.json":                   `"GITHUB_TOKEN": "${GITHUB_TOKEN}"`,
		".cursor/mcp.json":               `"GITHUB_TOKEN": "${env:GITHUB_TOKEN}"`,
		".codex/config.toml":             `env_vars = ["GITHUB_TOKEN"]`,
		".config/opencode/opencode.json": `"GITHUB_TOKEN": "{env:GITHUB_TOKEN}"`,
	} {
		if got := r.read(t, name); !strings.Contains(got, want) {
			t.Errorf("%s does not hold %s:\n%s", name, want, got)
		}
	}
	if len(r.started) != 4 {
		t.Errorf("%d servers were started, want one in each client", len(r.started))
	}
	for _, p := range c.Clients {
		if p.Status != Written || p.Undo == "" || p.Diff == nil || p.Case == nil || p.Case.State != Healthy {
			t.Errorf("%s: got status %s (%s), undo %q, want it written after it was seen healthy", p.Client, p.Status, p.Why, p.Undo)
		}
	}
	noCanary(t, c)
}

func TestADryRunDoesNothing(t *testing.T) {
	before := "{\n  \"mcpServers\": {}\n}\n"
	r := newRoom(t, map[string]string{".claude.json": before})
	asked := false
	c := r.Configure(t.Context(), ConfigureRequest{
		Name: "x", Package: "example", Clients: []string{"claude-code"}, DryRun: true,
		Allow: func(string) bool { asked = true; return true },
	})
	if got := r.read(t, ".claude.json"); got != before || len(r.started) > 0 || asked || !c.Planned {
		t.Errorf("file %q, started %d, asked %v, planned %v; want nothing done and nobody asked", got, len(r.started), asked, c.Planned)
	}
	if _, err := os.Stat(filepath.Join(r.home, "state")); err == nil {
		t.Error("a dry run made our state folder")
	}
	if p := c.Clients[0]; p.Status != Intended || !strings.Contains(p.Diff.Text, `+      "command": "npx"`) {
		t.Errorf("got %s and the diff\n%s\nwant a plan that shows the entry", p.Status, p.Diff.Text)
	}
}

func TestWhatWasNeverRunIsNotRunUnasked(t *testing.T) {
	before := `{"mcpServers": {
		"there": {"command": "npx", "args": ["-y", "known"]},
		"steered": {"command": "npx", "args": ["-y", "tuned"], "env": {"NODE_OPTIONS": "--no-warnings", "API_KEY": "${MY_KEY}"}},
		"old": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"]}
	}}`
	for _, test := range []struct {
		name    string
		request ConfigureRequest
		want    string // what has to be agreed to
	}{
		{"a package", ConfigureRequest{Package: "unknown"}, "fetch a package from npm and run it: npx -y unknown"},
		{"a command", ConfigureRequest{Command: []string{"node", "x.js"}}, "run node x.js"},
		{"an address", ConfigureRequest{URL: "https://example.com/mcp"}, "connect to https://example.com/mcp"},
		{"a known package", ConfigureRequest{Package: "known"}, ""},
		{"a known package in the folder of a project", ConfigureRequest{Package: "known", Scope: "project"}, "fetch a package from npm and run it: npx -y known"},
		{"a known package that a variable changes", ConfigureRequest{Package: "known", Env: []string{"NODE_OPTIONS=--require=/x.js"}},
			"fetch a package from npm and run it: NODE_OPTIONS=--require=/x.js npx -y known"},
		{"a known variable of another value", ConfigureRequest{Package: "tuned", Env: []string{"NODE_OPTIONS=--require=/x.js ${HOME}"}},
			"fetch a package from npm and run it: \"NODE_OPTIONS=--require=/x.js ${HOME}\" npx -y tuned"},
		{"a known variable with another secret", ConfigureRequest{Package: "tuned", Env: []string{"API_KEY=${AWS_SECRET_ACCESS_KEY}"}},
			"fetch a package from npm and run it: API_KEY=${AWS_SECRET_ACCESS_KEY} npx -y tuned"},
		{"the same variable", ConfigureRequest{Package: "tuned", Env: []string{"API_KEY=${MY_KEY}"}}, ""},
		{"a known package that is deprecated", ConfigureRequest{Package: "@modelcontextprotocol/server-github"},
			"fetch a package from npm and run it: npx -y @modelcontextprotocol/server-github; " +
				"the registry calls it deprecated: development has moved to github.com/github/github-mcp-server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRoom(t, map[string]string{".claude.json": before})
			test.request.Name, test.request.Clients = "new", []string{"claude-code"}
			c := r.Configure(t.Context(), test.request)
			if c.Refused != "" || c.Needs != test.want {
				t.Fatalf("got %q (refused: %s), want %q", c.Needs, c.Refused, test.want)
			}
			if test.want == "" {
				return
			}
			if got := r.read(t, ".claude.json"); got != before || len(r.started) > 0 || !c.Planned {
				t.Errorf("started %d, planned %v, file %s; want a plan and nothing done", len(r.started), c.Planned, got)
			}
		})
	}
}

func TestAnEntryOfTheSameNameIsNotReplacedUnasked(t *testing.T) {
	before := `{
  "mcpServers": {
    "x": {
      "command": "npx",
      "args": ["-y", "example"],
      "env": {"API_KEY": "` + canary + `"},
      "x-owner": "search"
    }
  }
}
`
	request := ConfigureRequest{Name: "x", Package: "example", Clients: []string{"claude-code"}, Allow: allow}
	r := newRoom(t, map[string]string{".claude.json": before})
	c := r.Configure(t.Context(), request)
	if p := c.Clients[0]; p.Status != Differs || p.Diff == nil || r.read(t, ".claude.json") != before {
		t.Errorf("got %s, want it refused with a diff", p.Status)
	}
	noCanary(t, c)

	request.Replace = true
	c = r.Configure(t.Context(), request)
	if p := c.Clients[0]; p.Status != Written || strings.Contains(r.read(t, ".claude.json"), canary) {
		t.Errorf("got %s (%s), want it replaced", p.Status, p.Why)
	}
	if got := r.read(t, ".claude.json"); !strings.Contains(got, `"x-owner": "search"`) || !slices.Contains(c.Notes, "Claude Code keeps x-owner of the old entry") {
		t.Errorf("a key that nobody asked to change is gone, or not spoken of (%q):\n%s", c.Notes, got)
	}
	noCanary(t, c)

	request.Replace = false
	c = r.Configure(t.Context(), request)
	if p := c.Clients[0]; p.Status != Unchanged || p.Diff != nil {
		t.Errorf("got %s, want the same entry to be left alone", p.Status)
	}
}

func TestSecretsAreNotTakenInClear(t *testing.T) {
	r := newRoom(t, map[string]string{".claude.json": "{}"})
	for name, request := range map[string]ConfigureRequest{
		"variable": {Command: []string{"node"}, Env: []string{"GITHUB_TOKEN=" + canary}},
		"argument": {Command: []string{"node", "--token", canary}},
		"header":   {URL: "https://example.com/mcp", Headers: []string{"Authorization: Bearer " + canary}},
	} {
		request.Name, request.Allow = "x", allow
		c := r.Configure(t.Context(), request)
		if c.Refused == "" {
			t.Errorf("%s: a secret was accepted", name)
		}
		noCanary(t, c)
	}
}

func TestAClientThatCannotReferSaysSo(t *testing.T) {
	r := newRoom(t, map[string]string{".config/zed/settings.json": "{}"})
	request := ConfigureRequest{Name: "x", Package: "example", Secrets: []string{"API_KEY"}, Clients: []string{"zed"}, Allow: allow}
	c := r.Configure(t.Context(), request)
	if p := c.Clients[0]; p.Status != Declined || !strings.Contains(p.Why, "in clear") {
		t.Errorf("got %s: %q, want it refused until a person types the value", p.Status, p.Why)
	}
	request.Values = map[string]string{"API_KEY": canary}
	c = r.Configure(t.Context(), request)
	if p := c.Clients[0]; p.Status != Written || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "Zed keeps API_KEY in clear") {
		t.Errorf("got %s (%s) and the notes %q", p.Status, p.Why, c.Notes)
	}
	if !strings.Contains(r.read(t, ".config/zed/settings.json"), canary) {
		t.Error("the value that was typed is not in the file")
	}
	noCanary(t, c)
}

func TestWhatTheRegistryDemandsIsSaid(t *testing.T) {
	r := newRoom(t, map[string]string{".claude.json": "{}"})
	request := ConfigureRequest{Name: "x", Package: "@notionhq/notion-mcp-server", Allow: allow}
	c := r.Configure(t.Context(), request)
	if want := "it needs NOTION_TOKEN (secret), see https://www.notion.so/profile/integrations"; c.Refused != want {
		t.Errorf("got %q, want %q", c.Refused, want)
	}
	request.Secrets = []string{"OPENAPI_MCP_HEADERS"} // does as well
	if c := r.Configure(t.Context(), request); c.Refused != "" || len(c.Notes) != 1 {
		t.Errorf("got %q and the notes %q, want it accepted, with a word on its being deprecated", c.Refused, c.Notes)
	}
}

// A client skips an entry whose arguments are a text: it is not the server without
// arguments, though it reads like it.
func TestABrokenEntryIsNotUnchanged(t *testing.T) {
	r := newRoom(t, map[string]string{".claude.json": `{"mcpServers": {"x": {"command": "example", "args": "--all"}}}`})
	c := r.Configure(t.Context(), ConfigureRequest{Name: "x", Command: []string{"example"}, Allow: allow})
	if p := c.Clients[0]; p.Status != Differs || p.Diff == nil {
		t.Errorf("got %s, %q", p.Status, p.Why)
	}
}

func TestAHeldServerIsWrittenLater(t *testing.T) {
	r := newRoom(t, map[string]string{".claude.json": "{}\n", ".cursor/mcp.json": "{}\n"})
	c := r.Configure(t.Context(), ConfigureRequest{Name: "x", Package: "example", Allow: allow, Hold: true})
	if got := r.read(t, ".claude.json"); got != "{}\n" {
		t.Fatalf("a held server was written: %s", got)
	}
	// Others write in the meantime: beside it, and in its place.
	for name, text := range map[string]string{".claude.json": "{\"a\": 1}\n", ".cursor/mcp.json": "{\"mcpServers\": {\"x\": {}}}\n"} {
		if err := os.WriteFile(filepath.Join(r.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.Keep(t.Context(), c, nil)
	got := map[string]Placed{}
	for _, p := range c.Clients {
		got[p.Client] = p.Status
	}
	if diff := cmp.Diff(map[string]Placed{"claude-code": Written, "cursor": Declined}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := r.read(t, ".claude.json"); !strings.HasPrefix(got, "{\"a\": 1, ") || !strings.Contains(got, `"x"`) {
		t.Errorf("got %s, want what somebody else wrote, and the server", got)
	}
	if got := r.read(t, ".cursor/mcp.json"); got != "{\"mcpServers\": {\"x\": {}}}\n" {
		t.Errorf("what somebody else wrote is gone: %s", got)
	}
}

func noCanary(t *testing.T, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), canary) {
		t.Errorf("a secret is shown: %s", b)
	}
}
