package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/registry"
)

// only is the case of a ward that has one.
func only(t *testing.T, d *Doctor) *Case {
	t.Helper()
	r := d.Check(t.Context(), Which{}, nil)
	if len(r.Cases) != 1 {
		t.Fatalf("%d cases: %v", len(r.Cases), summary(r))
	}
	return r.Cases[0]
}

// A server may say no more than that it was not let in. If it is known to need a
// variable which the terminal has and the client does not give it, that is why.
func TestAServerThatDoesNotNameItsVariableIsKnownToNeedIt(t *testing.T) {
	npx := filepath.Join(t.TempDir(), "npx")
	if err := os.WriteFile(npx, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	const name, canary = "GITHUB_PERSONAL_ACCESS_TOKEN", "hunter2hunter2"
	for _, test := range []struct {
		file, client, env string
		want              string // "" if nothing is said
		fix               string
	}{
		{"~/.lmstudio/mcp.json", "lm-studio", "", name + " is set in this terminal, but LM Studio is started by the desktop and does not get it.", "set_variable"},
		{"~/.gemini/settings.json", "gemini-cli", "", name + " is set in this terminal, but Gemini CLI keeps what looks like a secret from its servers.", "reference_same_name"},
		{"~/.lmstudio/mcp.json", "lm-studio", `, "env": {"` + name + `": "of its own"}`, "", "sign_in"},
		{"~/.cursor/mcp.json", "cursor", "", "", "sign_in"},
	} {
		text := servers(`{"command": "` + npx + `", "args": ["-y", "@modelcontextprotocol/server-github"]` + test.env + `}`)
		d := ward(t, map[string]string{test.file: text}, dying(1, "Request failed with status code 401 Unauthorized"))
		d.Environ = append(d.Environ, name+"="+canary)
		d.Registry = &registry.Registry{Dir: t.TempDir()}
		c := only(t, d)
		if c.Cause == nil || c.Cause.ID != "start.auth_failed" || len(c.Cause.Fixes) == 0 {
			t.Fatalf("%s: %+v, want start.auth_failed with fixes", test.client, c.Cause)
		}
		said := strings.Contains(c.Cause.Explanation, "terminal")
		if said != (test.want != "") || !strings.Contains(c.Cause.Explanation, test.want) || strings.Contains(c.Cause.Explanation, canary) {
			t.Errorf("%s: %q, want %q in it", test.client, c.Cause.Explanation, test.want)
		}
		if c.Cause.Fixes[0].Name != test.fix {
			t.Errorf("%s: the best fix is %s, want %s", test.client, c.Cause.Fixes[0].Name, test.fix)
		}
	}
}

// silent is a server that has said nothing when its time was over.
func silent(_ context.Context, s Start) Sighting {
	return Sighting{
		Steps: []Step{{Stage: AtStart, OK: true}, {Stage: AtPure, OK: true}, {Stage: AtHandshake}},
		Fault: &fault.Fault{Kind: fault.Timeout, Evidence: fault.Evidence{
			Text: "timed out: no answer to initialize within " + s.Timeout.String(), Moment: fault.AtHandshake}},
	}
}

func TestAServerIsNotCalledDeadBeforeItsClientWouldDoSo(t *testing.T) {
	const claude, codex, cursor = "~/.claude.json", "~/.codex/config.toml", "~/.cursor/mcp.json"
	entry := servers(`{"command": "true"}`)
	for _, test := range []struct {
		file, text string
		environ    string
		timeout    time.Duration
		want       string // "" if the client has given up, too, or nobody knows
	}{
		{claude, entry, "", 0, "No answer in 10 s. Claude Code waits 30 s, so the server may only be slow."},
		{claude, entry, "", 30 * time.Second, ""},
		{claude, entry, "MCP_TIMEOUT=60000", 30 * time.Second, "No answer in 30 s. Claude Code waits 60 s, so the server may only be slow."},
		{claude, entry, "MCP_TIMEOUT=5000", 0, ""},
		{claude, entry, "MCP_TIMEOUT=soon", 0, "No answer in 10 s. Claude Code waits 30 s, so the server may only be slow."},
		{codex, "[mcp_servers.s]\ncommand = \"true\"\n", "", 0, ""},
		{codex, "[mcp_servers.s]\ncommand = \"true\"\nstartup_timeout_sec = 90\n", "", 0, "No answer in 60 s. Codex waits 90 s, so the server may only be slow."},
		{cursor, entry, "", 0, ""},
	} {
		d := ward(t, map[string]string{test.file: test.text}, silent)
		d.Timeout = test.timeout
		if test.environ != "" {
			d.Environ = append(d.Environ, test.environ)
		}
		c := only(t, d)
		if c.State != Unresponsive || c.Cause.ID != "handshake.timeout" {
			t.Fatalf("%s: %s %s", test.file, c.State, c.Cause.ID)
		}
		undecided := strings.Contains(c.Cause.Explanation, "waits")
		if undecided != (test.want != "") || undecided && c.Cause.Explanation != test.want {
			t.Errorf("%s %s %s: %q, want %q", test.file, test.environ, test.timeout, c.Cause.Explanation, test.want)
		}
		if undecided && c.Cause.Confidence > 0.5 {
			t.Errorf("%s: sure by %g of what is not known", test.file, c.Cause.Confidence)
		}
	}
}

func TestAServerThatAnswersTooLateForItsClientIsCalledSlow(t *testing.T) {
	late := func(ctx context.Context, s Start) Sighting {
		saw := healthy(ctx, s)
		saw.Steps[0].Took, saw.Steps[2].Took, saw.Steps[3].Took = 3*time.Second, 9*time.Second, time.Minute
		return saw
	}
	for text, want := range map[string]string{
		"[mcp_servers.s]\ncommand = \"true\"\n":                           "Codex waits 10 s for a server to start and would have given up.",
		"[mcp_servers.s]\ncommand = \"true\"\nstartup_timeout_sec = 12\n": "",
		"[mcp_servers.s]\ncommand = \"true\"\nstartup_timeout_sec = 11\n": "Codex waits 11 s for a server to start and would have given up.",
	} {
		c := only(t, ward(t, map[string]string{"~/.codex/config.toml": text}, late))
		if want == "" {
			if c.State != Healthy {
				t.Errorf("%s: %s, want it healthy: the time of the tools does not count", text, c.State)
			}
			continue
		}
		if c.State != Degraded || c.Cause.ID != "handshake.slow" || c.Cause.Explanation != want {
			t.Errorf("%s: %s %+v, want %q", text, c.State, c.Cause, want)
		}
	}
}

// The shell is a real one.
func TestAClientThatAsksTheLoginShellFindsWhatIsThere(t *testing.T) {
	d := ward(t, map[string]string{
		"~/.config/Code/User/mcp.json": `{"servers": {"s": {"command": "only-there"}}}`,
		"~/.profile":                   "PATH=$HOME/tools:$PATH; export PATH\n",
		"~/tools/only-there":           "#!/bin/sh\n",
	}, nil)
	home := d.System.Home
	if err := os.Chmod(filepath.Join(home, "tools", "only-there"), 0o755); err != nil {
		t.Fatal(err)
	}
	var path string
	d.Probe = func(ctx context.Context, s Start) Sighting {
		path, _ = (&environ{list: s.Env}).lookup("PATH")
		return healthy(ctx, s)
	}
	d.Programs = &machine.Programs{Home: home, Shell: "/bin/sh", Getenv: func(string) string { return "" }, Timeout: 20 * time.Second}
	if c := only(t, d); c.State != Healthy || !strings.HasPrefix(path, home+"/tools:") {
		t.Errorf("%s with the PATH %q: %+v, want it started with that of the login shell", c.State, path, c.Cause)
	}
	for _, id := range []string{"lm-studio", "claude-code"} {
		d.As = clientconfig.ByID(id)
		if c := only(t, d); c.State != Dead || c.Cause.ID != "resolve.command_not_found" {
			t.Errorf("in %s, which does not ask: %s, want it not found", id, c.State)
		}
	}
	// A client that has started us says nothing about a terminal.
	d.Served = true
	for id, want := range map[string]State{"lm-studio": Dead, "claude-code": Healthy} {
		d.As = clientconfig.ByID(id)
		if c := only(t, d); c.State != want {
			t.Errorf("in %s, seen from another client: %s, want %s", id, c.State, want)
		}
	}
}
