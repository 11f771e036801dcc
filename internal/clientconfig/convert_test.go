package clientconfig

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// openText reads a text as the file of a client at its first place.
func openText(t *testing.T, client, text string) *File {
	t.Helper()
	c := ByID(client)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Open(path, c, "", c.Files[0])
}

func TestAnEntryOfAnotherClientIsConverted(t *testing.T) {
	for _, test := range []struct{ name, client, before, after string }{
		{"command and args become a list", "opencode",
			`{"mcp": {"a": {"command": "npx", "args": ["-y", "b"], "env": {"K": "v"}}}}`,
			`{"mcp": {"a": {"command": ["npx", "-y", "b"], "environment": {"K": "v"}, "type": "local"}}}`},
		{"a list becomes command and args", "claude-code",
			`{"mcpServers": {"a": {"type": "local", "command": ["npx", "-y", 7], "environment": {"K": 1}}}}`,
			`{"mcpServers": {"a": {"command": "npx", "env": {"K": "1"}, "args": ["-y", "7"]}}}`},
		{"arguments behind a list are not lost", "opencode",
			`{"mcp": {"a": {"type": "local", "command": ["npx"], "args": ["-y", "b"]}}}`,
			`{"mcp": {"a": {"type": "local", "command": ["npx", "-y", "b"]}}}`},
		{"an object becomes command, args and env", "cursor",
			`{"mcpServers": {"a": {"command": {"path": "x", "args": ["y"], "env": {"K": "v"}}}}}`,
			`{"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"K": "v"}}}}`},
		{"a URL and its headers", "windsurf",
			`{"mcpServers": {"a": {"type": "http", "url": "https://x", "http_headers": {"H": "v"}}}}`,
			`{"mcpServers": {"a": {"type": "http", "serverUrl": "https://x", "headers": {"H": "v"}}}}`},
		{"all one level down", "vscode",
			`{"servers": {"a": {"transport": {"type": "streamable-http", "url": "https://x"}}}}`,
			`{"servers": {"a": {"type": "http", "url": "https://x"}}}`},
		{"transportType in Cline", "cline",
			`{"mcpServers": {"a": {"transportType": "http", "url": "https://x"}}}`,
			`{"mcpServers": {"a": {"type": "streamableHttp", "url": "https://x"}}}`},
		{"disabled stays disabled", "codex",
			"[mcp_servers.a]\ncommand = [\"x\", \"y\"]\ndisabled = true\n",
			"[mcp_servers.a]\ncommand = \"x\"\ndisabled = true\nargs = [\"y\"]\nenabled = false\n"},
		{"what Goose cannot do without", "goose",
			"extensions:\n  a:\n    command: x\n    env:\n      K: v\n",
			"extensions:\n  a:\n    cmd: x\n    envs:\n      K: v\n    type: stdio\n    args: []\n    name: a\n    enabled: true\n"},
	} {
		f := openText(t, test.client, test.before)
		g, clear, err := f.Settle(func(string) bool { return true })
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := string(g.Bytes()); got != test.after || !clear {
			t.Errorf("%s: clear %t, got\n%s\nwant\n%s", test.name, clear, got, test.after)
		}
	}
}

func TestWhatNobodyCanKnowIsNotConverted(t *testing.T) {
	for _, test := range []struct{ name, client, before string }{
		{"a quote that does not close", "codex", "[mcp_servers.a]\ncommand = \"x\"\nargs = \"it's\"\n"},
		{"a command and a URL", "codex", "[mcp_servers.a]\ncommand = \"x\"\nurl = \"https://x\"\n"},
		{"an entry that is a text", "opencode", `{"mcp": {"a": "npx -y b"}}`},
		{"the same said twice", "opencode", `{"mcp": {"a": {"command": "x", "env": {"A": "1"}, "environment": {"A": "2"}}}}`},
		{"variables beside a URL", "codex", "[mcp_servers.a]\nurl = \"https://x\"\nenv = {A = \"b\"}\n"},
		{"a part of another kind", "codex", "[mcp_servers.a]\ncommand = \"x\"\ntools = [\"*\"]\n"},
		{"a URL where there are none", "claude-desktop", `{"mcpServers": {"a": {"type": "http", "url": "https://x"}}}`},
		{"a server that is off, where none can be", "cursor", `{"mcpServers": {"a": {"command": ["x"], "disabled": true}}}`},
	} {
		if g, _, err := openText(t, test.client, test.before).Settle(func(string) bool { return true }); !errors.Is(err, ErrEdit) {
			t.Errorf("%s: %v, and became %s", test.name, err, g.Bytes())
		}
	}
}

func TestTwoReadingsAreNotClear(t *testing.T) {
	f := openText(t, "cursor", `{"mcpServers": {"a": {"command": "x", "args": "-c $HOME"}}}`)
	if _, clear, err := f.Settle(func(string) bool { return true }); err != nil || clear {
		t.Errorf("clear %t, %v", clear, err)
	}
}

func TestServersUnderAnotherKeyAreSeen(t *testing.T) {
	for _, test := range []struct{ client, text, have string }{
		{"codex", "[mcp.servers.x]\ncommand = \"y\"\n", "mcp.servers"},
		{"codex", "[mcp_server.x]\ncommand = \"y\"\n", "mcp_server"},
		{"codex", "[mcp-servers.x]\ncommand = \"y\"\n", "mcp-servers"},
		{"codex", "[mcp_servers.a]\ncommand = \"b\"\n\n[mcp_server.x]\ncommand = \"y\"\n", "mcp_server"},
		{"vscode", `{"servers": {"a": {"command": "b"}}, "mcpServers": {"x": {"command": "y"}}}`, "mcpServers"},
		{"claude-code", `{"mcp": {"servers": {"x": {"command": "y"}}}}`, "mcp.servers"},
		{"vscode", `{"servers": {"x": {"command": "y"}}, "mcpServers": {"x": {"command": "y"}}}`, ""}, // meant for two clients
		{"opencode", `{"mcp": {"servers": {"x": {"type": "local", "command": ["y"]}}}}`, ""},
	} {
		f := openText(t, test.client, test.text)
		i := slices.IndexFunc(f.Problems, func(p Problem) bool { return p.Kind == WrongKey })
		if i < 0 != (test.have == "") || i >= 0 && f.Problems[i].Have != test.have {
			t.Errorf("%s %s: %v, want %q", test.client, test.text, f.Problems, test.have)
			continue
		}
		if i < 0 {
			continue
		}
		g, names, err := f.Gather(f.Problems[i].Path)
		if err != nil || !slices.Equal(names, []string{"x"}) || g.Server("x") == nil || len(g.Problems) > 0 {
			t.Errorf("%s %s: gathered %q, %v", test.client, test.text, names, err)
		}
	}
}

func TestAnEntryThatIsATextIsAServerWithAProblem(t *testing.T) {
	f := openText(t, "claude-code", `{"mcpServers": {"a": "npx -y b", "_note": "mine"}}`)
	if len(f.Servers) != 1 || f.Servers[0].Name.Text != "a" || !f.Ignores(f.Servers[0]) {
		t.Errorf("%v %v", f.Servers, f.Problems)
	}
}

// What was seen with the clients that run here, and stands in the sources of the others.
func TestOneEntryCostsTheWholeFileWhereTheClientIsStrict(t *testing.T) {
	for _, test := range []struct {
		client, text string
		refused      bool
	}{
		{"codex", "[mcp_servers.a]\ncommand = \"x\"\nargs = \"y\"\n", true},
		{"codex", "[mcp_servers.a]\ncommand = \"x\"\ntools = [\"*\"]\n", true},
		{"codex", "[mcp_servers.a]\nserverUrl = \"https://x\"\n", true},
		{"codex", "[mcp_servers.a]\nurl = \"https://x\"\nenv = {}\n", true},
		{"codex", "[mcp_servers.a]\ncommand = \"x\"\nheaders = {A = \"b\"}\ntype = \"nonsense\"\n", false},
		{"opencode", `{"mcp": {"a": {"command": ["x"]}}}`, true},
		{"opencode", `{"mcp": {"a": {"type": "local", "command": ["x"], "timeout": "5"}}}`, true},
		{"opencode", `{"mcp": {"a": {"enabled": false}}}`, false},
		{"opencode", `{"mcp": {"a": {"type": "local", "command": ["x"], "env": {}}}}`, false},
		{"cline", `{"mcpServers": {"a": {"command": "x", "args": "y"}}}`, true},
		{"librechat", "mcp_servers:\n  a:\n    command: x\n    args: []\n", true},
		{"librechat", "mcpServers:\n  a:\n    command: x\n", true},
		{"claude-code", `{"mcpServers": {"a": {"command": "x", "args": "y"}}}`, false},
		{"copilot-cli", `{"mcpServers": {"a": "x"}}`, false},
		{"goose", "extensions:\n  a:\n    cmd: x\n", false},
	} {
		if p := openText(t, test.client, test.text).Refused(); (p != nil) != test.refused {
			t.Errorf("%s: %s: %v, want refused %t", test.client, test.text, p, test.refused)
		}
	}
}

func TestNothingIsWrittenThatTheClientWouldNewlyRefuse(t *testing.T) {
	store := &Store{Dir: t.TempDir()}
	f := openText(t, "codex", "[mcpServers.a]\ncommand = \"x\"\nargs = \"it's\"\n")
	before := string(f.Bytes())
	half, err := f.Rename(Path{"mcpServers"}, "mcp_servers")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Save(t.Context(), half); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "whole file") {
		t.Errorf("saved: %v", err)
	}
	if now, err := os.ReadFile(f.Path); err != nil || string(now) != before {
		t.Errorf("the file is %s, %v", now, err)
	}
}

func TestServersInAFolderThatIsNotTrustedAreMarked(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(home, ".gemini"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".gemini", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	servers := `{"mcpServers": {"a": {"command": "x"}}SETTING}`
	for _, test := range []struct {
		name, trust, setting, variable string
		untrusted                      bool
	}{
		{"nobody was asked", `{}`, "", "", true},
		{"trusted", `{"PROJECT": "TRUST_FOLDER"}`, "", "", false},
		{"its parent is trusted by it", `{"PROJECT/sub": "TRUST_PARENT"}`, "", "", false},
		{"not trusted", `{"PROJECT": "DO_NOT_TRUST"}`, "", "", true},
		{"the longer rule counts", `{"PROJECT": "DO_NOT_TRUST", "/": "TRUST_FOLDER"}`, "", "", true},
		{"a sibling", `{"PROJECT2": "TRUST_FOLDER"}`, "", "", true},
		{"switched off", `{}`, `, "security": {"folderTrust": {"enabled": false}}`, "", false},
		{"by a variable", `{}`, "", "true", false},
	} {
		write("trustedFolders.json", strings.ReplaceAll(test.trust, "PROJECT", project))
		write("settings.json", strings.ReplaceAll(servers, "SETTING", test.setting))
		s := System{OS: "linux", Home: home, Project: project, Root: home, Getenv: func(name string) string {
			if name == "GEMINI_CLI_TRUST_WORKSPACE" {
				return test.variable
			}
			return ""
		}}
		files := s.Find(ByID("gemini-cli"))
		if len(files) != 1 || files[0].Untrusted != test.untrusted {
			t.Errorf("%s: untrusted %t, want %t", test.name, !test.untrusted, test.untrusted)
		}
	}
}
