package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// pasted heals what stands in a file and returns what was said of it and what is in it.
func pasted(t *testing.T, name, text string) (*Case, *Healing, string) {
	t.Helper()
	d := ward(t, map[string]string{name: text}, healthy)
	cases := d.Check(t.Context(), Which{}, nil).Cases
	if len(cases) == 0 {
		t.Fatalf("%s: nothing was found in\n%s", name, text)
	}
	c := cases[0]
	h := d.Heal(t.Context(), c, HealOptions{Allow: func(*Case, Fix) bool { return true }})
	now, err := os.ReadFile(filepath.Join(d.System.Home, strings.TrimPrefix(name, "~/")))
	if err != nil {
		t.Fatal(err)
	}
	return c, h, string(now)
}

func TestAClientThatRefusesItsFileIsSaidToRefuseIt(t *testing.T) {
	c, h, now := pasted(t, "~/.codex/config.toml", "[mcp_servers.good]\ncommand = \"sh\"\n\n[mcp_servers.bad]\ncommand = \"sh\"\nargs = \"-c true\"\n")
	if c.State != Unreadable || !strings.Contains(c.Cause.Explanation, `Codex refuses the whole file because of the entry "bad"`) {
		t.Errorf("%s %+v", c.State, c.Cause)
	}
	if !h.Fixed || !strings.Contains(now, `args = ["-c", "true"]`) {
		t.Errorf("fixed %t\n%s", h.Fixed, now)
	}
}

func TestHalfOfAChangeIsNotWritten(t *testing.T) {
	for _, test := range []struct{ name, file, text string }{
		{"one of two entries that Codex refuses", "~/.codex/config.toml", "[mcp_servers.a]\ncommand = \"sh\"\nargs = \"-c true\"\n\n[mcp_servers.b]\ncommand = \"sh\"\nargs = \"it's\"\n"},
		{"a key over what cannot be converted", "~/.config/opencode/opencode.json", `{"mcpServers": {"a": {"command": "sh"}, "b": {"command": "sh", "args": "it's"}}}`},
		{"a name in an entry that stays ignored", "~/.claude.json", `{"mcpServers": {"a": {"comand": "sh", "env": {"A": null}}}}`},
	} {
		c, h, now := pasted(t, test.file, test.text)
		if h.Fixed || len(h.Changes) > 0 || now != test.text || c.Cause == nil || h.Person == "" {
			t.Errorf("%s: fixed %t, person %q, and became\n%s", test.name, h.Fixed, h.Person, now)
		}
		for _, a := range h.Attempts {
			if a.Kept {
				t.Errorf("%s: %s counts as kept", test.name, a.Fix.Name)
			}
		}
	}
}

func TestEntriesThatTheClientDoesNotSeeAreFindings(t *testing.T) {
	for _, test := range []struct{ file, text, id string }{
		{"~/.claude.json", `{"mcpServers": {"a": "npx -y b"}}`, "shape.wrong_shape"},
		{"~/.codex/config.toml", "[mcp_servers.good]\ncommand = \"sh\"\n\n[mcp-servers.a]\ncommand = \"sh\"\n", "shape.wrong_key"},
		{"~/.codex/config.toml", "[mcp.servers.a]\ncommand = \"sh\"\n", "shape.wrong_key"},
		{"~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", `{"mcpServers": {"a": {"transportType": "http", "url": "http://127.0.0.1:9/mcp"}}}`, "shape.wrong_name"},
	} {
		d := ward(t, map[string]string{test.file: test.text}, healthy)
		found := false
		for _, c := range d.Check(context.Background(), Which{}, nil).Cases {
			for _, f := range findings(c) {
				found = found || f.ID == test.id
			}
		}
		if !found {
			t.Errorf("%s: nothing is said of\n%s", test.file, test.text)
		}
	}
}

func TestAServerInAFolderThatIsNotTrustedIsDisabledAndNotStarted(t *testing.T) {
	started := false
	probe := func(ctx context.Context, s Start) Sighting {
		started = true
		return healthy(ctx, s)
	}
	d := ward(t, map[string]string{"~/.gemini/settings.json": `{"mcpServers": {"a": {"command": "sh"}, "b": {"command": ["sh"]}}}`}, probe)
	d.System.Getenv = func(string) string { return "" }
	for _, c := range d.Check(t.Context(), Which{}, nil).Cases {
		want := map[string]State{"a": Disabled, "b": Skipped}[c.Name] // what is wrong is said all the same
		if c.State != want || c.Name == "a" && !strings.Contains(c.Untrusted, "Gemini CLI does not trust this folder") {
			t.Errorf("%s is %s, want %s; %q", c.Name, c.State, want, c.Untrusted)
		}
	}
	if started {
		t.Error("it was started")
	}
}

// No fix should come so far; if one does, nothing of it is written.
func TestAFileThatIsRefusedInTheEndIsNotWritten(t *testing.T) {
	d := ward(t, map[string]string{"~/.codex/config.toml": "[mcpServers.a]\ncommand = \"sh\"\nargs = \"it's\"\n"}, healthy)
	f := d.System.Find(clientconfig.ByID("codex"))[0]
	rename := Fix{Edits: []Edit{{File: f.Path, apply: func(f *clientconfig.File) (*clientconfig.File, error) {
		return f.Rename(clientconfig.Path{"mcpServers"}, "mcp_servers")
	}}}}
	w, err := newWorkspace(f).with(rename)
	if err != nil || !stillRefused(&Case{}, w) {
		t.Errorf("the file would be written, %v", err)
	}
	if stillRefused(&Case{}, newWorkspace(f)) {
		t.Error("a file without edits counts as refused")
	}
}
