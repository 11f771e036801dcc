package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var systems = []string{"linux", "darwin", "windows"}

func TestEveryClientIsInTheTableOnEverySystem(t *testing.T) {
	for _, id := range []string{
		"claude-desktop", "claude-code", "cursor", "vscode", "copilot-cli", "windsurf", "zed", "cline", "continue",
		"codex", "gemini-cli", "goose", "lm-studio", "junie", "kiro", "opencode", "warp", "librechat",
	} {
		c := ByID(id)
		if c == nil {
			t.Errorf("%s is not in the table", id)
			continue
		}
		for _, system := range systems {
			s := System{OS: system, Home: "/home/ada", Project: "/src/app", Getenv: func(string) string { return "" }}
			if !slices.ContainsFunc(c.Files, func(p Place) bool { return s.Path(p) != "" }) {
				t.Errorf("%s has no file on %s", id, system)
			}
		}
	}
}

// A typing mistake in the table must not wait for a user to find it.
func TestTheTableIsWellFormed(t *testing.T) {
	scopes := []string{"user", "project", "local", "system", "remote", "cli"}
	parts := []string{"command", "args", "env", "envFile", "cwd", "url", "headers"}
	seen := make(map[string]bool)
	for _, c := range Clients() {
		if seen[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		seen[c.ID] = true
		bad := func(format string, args ...any) { t.Helper(); t.Errorf(c.ID+": "+format, args...) }
		if c.Name == "" || c.Entry.Command == "" || c.Reload == "" {
			bad("name, command and reload must be filled: %+v", c)
		}
		if !slices.Contains([]string{"", "all", "few", "no-secrets", "sdk"}, c.Inherits) {
			bad("inherits %q", c.Inherits)
		}
		rows := make(map[string]bool)
		for i, p := range slices.Concat(c.Files, c.Ignored) {
			ignored := i >= len(c.Files)
			row := p.OS + " " + p.Path + " " + p.Key.String()
			switch {
			case rows[row]:
				bad("row %s is there twice", row)
			case p.OS != "" && !slices.Contains(systems, p.OS):
				bad("row %s: unknown system", row)
			case !ignored && !slices.Contains(scopes, p.Scope):
				bad("row %s: unknown scope %q", row, p.Scope)
			case !slices.Contains([]Format{JSON, JSONC, TOML, YAML}, p.Format):
				bad("row %s: unknown format %q", row, p.Format)
			case p.Strict && p.Format != JSON:
				bad("row %s: only json can be strict", row)
			case p.NoTrailingComma && p.Format != JSONC:
				bad("row %s: this is for jsonc; strict says it for json", row)
			case len(p.Key) == 0 || p.Path == "" || strings.Contains(p.Path, `\`):
				bad("row %s: no key, no path, or backslashes", row)
			case ignored != (p.Instead != ""):
				bad("row %s: an ignored place, and no other, says what to use instead", row)
			}
			rows[row] = true
		}
		for _, form := range c.Variables.Forms {
			if !knownForm(form) {
				bad("unknown form %q", form)
			}
		}
		for _, part := range c.Variables.In {
			if !slices.Contains(parts, part) {
				bad("variables in unknown part %q", part)
			}
		}
		if (len(c.Variables.Forms) > 0) != (len(c.Variables.In) > 0) {
			bad("variables need forms and parts")
		}
		if (c.Entry.Type != "") != (len(c.Entry.Types) > 0) {
			bad("a type needs its spellings")
		}
		if (c.Entry.Timeout != "") != (c.Entry.TimeoutUnit != "") {
			bad("a timeout needs its unit")
		}
	}
}

func TestPathsAreThoseTheClientsRead(t *testing.T) {
	env := map[string]string{}
	for _, test := range []struct {
		client, system, scope string
		set                   map[string]string
		want                  []string
	}{
		{"claude-desktop", "darwin", "user", env, []string{"/home/ada/Library/Application Support/Claude/claude_desktop_config.json"}},
		{"claude-desktop", "windows", "user", map[string]string{"APPDATA": "/appdata", "LOCALAPPDATA": "/local"}, []string{
			"/appdata/Claude/claude_desktop_config.json",
			"/local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"}},
		{"claude-desktop", "windows", "user", env, []string{
			"/home/ada/AppData/Roaming/Claude/claude_desktop_config.json",
			"/home/ada/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"}},
		{"claude-code", "linux", "user", env, []string{"/home/ada/.claude.json"}},
		{"claude-code", "linux", "user", map[string]string{"CLAUDE_CONFIG_DIR": "/cfg"}, []string{"/cfg/.claude.json"}},
		{"claude-code", "windows", "project", env, []string{"/src/app/.mcp.json"}},
		{"cursor", "darwin", "user", env, []string{"/home/ada/.cursor/mcp.json"}},
		{"vscode", "linux", "user", env, []string{"/home/ada/.config/Code/User/mcp.json", "/home/ada/.config/Code - Insiders/User/mcp.json"}},
		{"vscode", "linux", "project", env, []string{"/src/app/.vscode/mcp.json"}},
		{"copilot-cli", "linux", "user", map[string]string{"COPILOT_HOME": "/cop"}, []string{"/cop/mcp-config.json"}},
		{"zed", "darwin", "user", env, []string{"/home/ada/.config/zed/settings.json"}},
		{"zed", "linux", "user", map[string]string{"XDG_CONFIG_HOME": "/xdg"}, []string{"/xdg/zed/settings.json"}},
		{"zed", "windows", "user", map[string]string{"APPDATA": "/appdata"}, []string{"/appdata/Zed/settings.json"}},
		{"codex", "linux", "user", env, []string{"/home/ada/.codex/config.toml"}},
		{"codex", "linux", "user", map[string]string{"CODEX_HOME": "/cx"}, []string{"/cx/config.toml"}},
		{"gemini-cli", "linux", "system", env, []string{"/fakeroot/etc/gemini-cli/settings.json"}},
		{"gemini-cli", "windows", "system", env, []string{"C:/ProgramData/gemini-cli/settings.json"}},
		{"goose", "windows", "user", map[string]string{"APPDATA": "/appdata"}, []string{"/appdata/Block/goose/config/config.yaml"}},
		{"opencode", "darwin", "project", env, []string{"/src/app/opencode.json", "/src/app/opencode.jsonc", "/src/app/.opencode/opencode.jsonc"}},
		{"librechat", "linux", "project", env, []string{"/src/app/librechat.yaml"}},
		{"librechat", "linux", "project", map[string]string{"CONFIG_PATH": "/etc/lc.yaml"}, []string{"/etc/lc.yaml"}},
		{"warp", "linux", "user", env, []string{"/home/ada/.warp/.mcp.json"}},
	} {
		s := System{OS: test.system, Home: "/home/ada", Project: "/src/app", Root: "/fakeroot", Getenv: func(name string) string { return test.set[name] }}
		var got []string
		for _, p := range ByID(test.client).Files {
			if name := s.Path(p); name != "" && p.Scope == test.scope {
				got = append(got, filepath.ToSlash(name))
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s, %s, %s, %v (-want +got):\n%s", test.client, test.system, test.scope, test.set, diff)
		}
	}
}

func TestWithoutAProjectThereAreNoProjectFiles(t *testing.T) {
	s := System{OS: "linux", Home: "/home/ada", Getenv: func(string) string { return "" }}
	for _, p := range ByID("cursor").Files {
		if got := s.Path(p); (got == "") != (p.Scope == "project") {
			t.Errorf("Path of the %s file is %q", p.Scope, got)
		}
	}
}

func TestVariablesAreSeenAsTheClientSeesThem(t *testing.T) {
	type ref struct {
		Text, Name, Default string
		Source              Source
		Expanded            bool
	}
	for _, test := range []struct {
		client, part, value string
		want                []ref
	}{
		{"claude-code", "env", "Bearer ${TOKEN} ${HOST:-localhost}", []ref{
			{"${TOKEN}", "TOKEN", "", Environment, true}, {"${HOST:-localhost}", "HOST", "localhost", Environment, true}}},
		{"claude-code", "cwd", "${HERE}", []ref{{"${HERE}", "HERE", "", Environment, false}}},
		{"claude-code", "env", "${env:TOKEN}", []ref{{"${env:TOKEN}", "TOKEN", "", Environment, false}}},
		{"cursor", "args", "${workspaceFolder}/x", []ref{{"${workspaceFolder}", "workspaceFolder", "", Builtin, true}}},
		{"cursor", "env", "${TOKEN}", []ref{{"${TOKEN}", "TOKEN", "", Environment, false}}},
		{"vscode", "headers", "Bearer ${input:key}", []ref{{"${input:key}", "key", "", Asked, true}}},
		{"gemini-cli", "env", "$TOKEN-${OTHER}%WIN%", []ref{
			{"$TOKEN", "TOKEN", "", Environment, true}, {"${OTHER}", "OTHER", "", Environment, true}, {"%WIN%", "WIN", "", Environment, true}}},
		{"codex", "env", "${TOKEN}", []ref{{"${TOKEN}", "TOKEN", "", Environment, false}}},
		{"codex", "env", "pa$sword%20x%y", nil},
		{"codex", "env", "$TOKEN", []ref{{"$TOKEN", "TOKEN", "", Environment, false}}},
		{"opencode", "headers", "{env:KEY}", []ref{{"{env:KEY}", "KEY", "", Environment, true}}},
		{"continue", "env", "${{ secrets.KEY }}", []ref{{"${{ secrets.KEY }}", "KEY", "", Secret, true}}},
		{"librechat", "headers", "{{LIBRECHAT_USER_ID}}", []ref{{"{{LIBRECHAT_USER_ID}}", "LIBRECHAT_USER_ID", "", Builtin, true}}},
		{"zed", "env", "a$", nil},
	} {
		var got []ref
		for _, r := range ByID(test.client).References(test.part, test.value) {
			if test.value[r.Start:r.Start+len(r.Text)] != r.Text {
				t.Errorf("%q: %q is not at %d", test.value, r.Text, r.Start)
			}
			got = append(got, ref{r.Text, r.Name, r.Default, r.Source, r.Expanded})
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s, %s, %q (-want +got):\n%s", test.client, test.part, test.value, diff)
		}
	}
}

func TestAReferenceIsSpeltAsTheClientReadsIt(t *testing.T) {
	plain := Reference{Name: "TOKEN"}
	for _, test := range []struct {
		client, part string
		r            Reference
		want         string
	}{
		{"claude-code", "env", plain, "${TOKEN}"},
		{"claude-code", "env", Reference{Name: "HOST", Default: "x", HasDefault: true}, "${HOST:-x}"},
		{"claude-code", "cwd", plain, ""},
		{"cursor", "env", plain, "${env:TOKEN}"},
		{"cursor", "env", Reference{Name: "HOST", Default: "x", HasDefault: true}, ""},
		{"gemini-cli", "env", plain, "$TOKEN"},
		{"continue", "env", plain, ""},
		{"continue", "env", Reference{Name: "TOKEN", Source: Secret}, "${{ secrets.TOKEN }}"},
		{"codex", "env", plain, ""},
	} {
		if got := ByID(test.client).Refer(test.part, test.r); got != test.want {
			t.Errorf("%s, %s, %+v: %q, want %q", test.client, test.part, test.r, got, test.want)
		}
	}
}

func knownForm(form string) bool {
	for _, f := range forms {
		if f.form == form {
			return true
		}
	}
	return false
}
