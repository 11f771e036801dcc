package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplacingAnEntryKeepsWhatNobodyAskedToChange(t *testing.T) {
	local := func(command string, args ...string) *Server {
		s := &Server{Name: v("s"), Command: v(command)}
		for _, a := range args {
			s.Args = append(s.Args, v(a))
		}
		return s
	}
	withEnv := func(s *Server, name, value string) *Server {
		s.Env = append(s.Env, Pair{v(name), v(value)})
		return s
	}
	remote := func(url string) *Server { return &Server{Name: v("s"), URL: v(url)} }
	for _, test := range []struct {
		name, client  string
		before, after string
		server        *Server
	}{
		{
			"keys that are unknown or not asked about", "claude-code",
			`{
  "mcpServers": {
    "s": {
      "type": "stdio",
      "command": "npx",
      "x-team": "search", // ours
      "args": [
        "-y",
        "old", // pinned
        "--fast"
      ],
      "timeout": 5000
    }
  }
}
`,
			`{
  "mcpServers": {
    "s": {
      "type": "stdio",
      "command": "npx",
      "x-team": "search", // ours
      "args": [
        "-y",
        "new" // pinned
      ],
      "timeout": 5000
    }
  }
}
`, local("npx", "-y", "new"),
		},
		{
			"one variable of several", "claude-code",
			`{"mcpServers": {"s": {"command": "npx", "args": [], "env": {"A": "1", "B": "2", "C": "3"}, "note": 1}}}`,
			`{"mcpServers": {"s": {"command": "npx", "args": [], "env": {"A": "1", "C": "4"}, "note": 1}}}`,
			withEnv(withEnv(local("npx"), "A", "1"), "C", "4"),
		},
		{
			"a variable that was there under another client's name", "claude-code",
			`{"mcpServers": {"s": {"command": "npx", "environment": {"A": "1"}, "note": 1}}}`,
			`{"mcpServers": {"s": {"command": "npx", "note": 1, "env": {"B": "2"}}}}`,
			withEnv(local("npx"), "B", "2"),
		},
		{
			"a server that was switched off", "windsurf",
			`{"mcpServers": {"s": {"command": "npx", "disabled": true, "alwaysAllow": ["read"]}}}`,
			`{"mcpServers": {"s": {"command": "uvx", "alwaysAllow": ["read"]}}}`, local("uvx"),
		},
		{
			"a table of TOML with comments", "codex",
			"# mine\n[mcp_servers.s]\n# the best\nurl = \"https://old.example/mcp\"\ntool_timeout_sec = 9\n\n[mcp_servers.s.x]\ny = 1\n",
			"# mine\n[mcp_servers.s]\n# the best\ntool_timeout_sec = 9\ncommand = \"npx\"\nargs = [\"-y\", \"new\"]\n\n[mcp_servers.s.x]\ny = 1\n",
			local("npx", "-y", "new"),
		},
		{
			"a list of YAML", "goose",
			"extensions:\n  s:\n    type: stdio\n    enabled: true\n    cmd: npx\n    args:\n      - -y # yes\n      - old\n    bundled: false\n",
			"extensions:\n  s:\n    type: stdio\n    enabled: true\n    cmd: npx\n    args:\n      - -y # yes\n      - new\n    bundled: false\n",
			local("npx", "-y", "new"),
		},
		{
			"the same address", "gemini-cli",
			`{"mcpServers": {"s": {"url": "https://example.com/mcp", "headers": {"A": "b"}, "oauth": {"enabled": true}, "trust": false}}}`,
			`{"mcpServers": {"s": {"url": "https://example.com/mcp", "oauth": {"enabled": true}, "trust": false}}}`,
			remote("https://example.com/mcp"),
		},
		{
			"a program in place of an address", "claude-code",
			`{"mcpServers": {"s": {"type": "http", "url": "https://example.com/mcp", "headers": {"A": "b"}, "note": 1}}}`,
			`{"mcpServers": {"s": {"note": 1, "command": "npx"}}}`, local("npx"),
		},
		{
			// What signs in at one address must not be sent to another.
			"another address", "claude-code",
			`{"mcpServers": {"s": {"type": "http", "url": "https://example.com/mcp", "headersHelper": "print-token", "oauth": {}, "note": 1}}}`,
			`{"mcpServers": {"s": {"type": "http", "url": "https://other.example/mcp", "note": 1}}}`,
			remote("https://other.example/mcp"),
		},
		{
			"another address, with tokens of a service account", "gemini-cli",
			`{"mcpServers": {"s": {"url": "https://example.com/mcp", "authProviderType": "service_account_impersonation", "targetAudience": "a", "targetServiceAccount": "b", "trust": false}}}`,
			`{"mcpServers": {"s": {"trust": false, "httpUrl": "https://other.example/mcp"}}}`,
			remote("https://other.example/mcp"),
		},
		{"no entry of that name", "claude-code", `{"mcpServers": {}}`, "{\"mcpServers\": {\n  \"s\": {\n    \"command\": \"npx\",\n    \"args\": []\n  }\n}}", local("npx")},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := ByID(test.client)
			place := c.Files[0]
			f := New("f", c, "/p", place)
			f.parse([]byte(test.before))
			g, err := f.Replace(test.server)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(test.after, "\n"), strings.Split(string(g.Bytes()), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := g.Replace(test.server)
			if err != nil || string(again.Bytes()) != string(g.Bytes()) {
				t.Errorf("done twice: %v, and the file is\n%s", err, again.Bytes())
			}
		})
	}
}

// The files of the reading tests are the ones people have. Who asks for what is
// there already changes nothing.
func TestReplacingAServerByItselfChangesNothing(t *testing.T) {
	paths, err := filepath.Glob("testdata/read/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, path := range paths {
		for _, f := range readArchive(t, path).unpack(t).Find() {
			for _, s := range f.Servers {
				wrong := slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Server == s.Name.Text })
				older := f.Client.Entry.CommandPath != "" && len(s.Command.Path) > len(s.Path)+1
				bearer := slices.ContainsFunc(s.HeadersFrom, func(p Pair) bool { return p.Name.Path.String() == p.Value.Path.String() })
				if wrong || s.Disabled || older || bearer || f.Server(s.Name.Text) != s || s.Command.Text+s.URL.Text == "" {
					continue // is asked to become something else
				}
				g, err := f.Replace(s)
				if err != nil || string(g.Bytes()) != string(f.Bytes()) {
					t.Errorf("%s: %v; the file is now\n%s", s.At, err, g.Bytes())
				}
				same++
			}
		}
	}
	if same < 50 {
		t.Errorf("only %d servers were tried", same)
	}
}
