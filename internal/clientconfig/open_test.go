package clientconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileThatIsTooLargeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxSize+1); err != nil {
		t.Fatal(err)
	}
	wantUnreadable(t, path, "larger than 16 MiB")
}

func TestAFolderIsNotRead(t *testing.T) {
	wantUnreadable(t, t.TempDir(), "not a regular file")
}

func TestALinkToNowhereIsAProblem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.Symlink("gone", path); err != nil {
		t.Skip(err)
	}
	wantUnreadable(t, path, "no such file")
}

func wantUnreadable(t *testing.T, path, detail string) {
	t.Helper()
	f := Open(path, ByID("cursor"), "", ByID("cursor").Files[0])
	if len(f.Problems) != 1 || f.Problems[0].Kind != Unreadable || !strings.Contains(f.Problems[0].Detail, detail) {
		t.Errorf("problems are %v, want one %s with %q", f.Problems, Unreadable, detail)
	}
	if f.Servers != nil || f.Bytes() != nil {
		t.Errorf("servers %v and bytes %q of a file that was not read", f.Servers, f.Bytes())
	}
}

// A value must not reach a log through an error. The canary stands wherever a
// mistake could make a parser quote it.
func TestProblemsDoNotQuoteValues(t *testing.T) {
	const canary = "ghp_canary"
	for _, data := range []string{
		`{"mcpServers":{"a":{"env":{"T":` + canary + `}}}}`,
		"{\"mcpServers\":{\"a\":{\"env\":{\"T\":\"\x01" + canary + "\"}}}}",
		`{"mcpServers":{"a":{"env":{"T":"\q` + canary + `"}}}}`,
		`{"mcpServers":{"a":{"args":"` + canary + `","command":7,"url":["` + canary + `"],"env":"` + canary + `"}}}`,
		`{"mcpServers":{"a":"` + canary + `"}}`,
		"mcp_servers.a.env.T = " + canary + "\n",
		"mcp_servers.a.env.T = \"" + canary + "\n",
		"[mcp_servers.a]\nargs = \"" + canary + "\"\nenv = 3\n",
		"extensions:\n  a:\n    envs: {T: *" + canary + "}\n",
		"extensions:\n  a:\n    envs: {T: !<" + canary + "\n",
		"extensions:\n  a: " + canary + "\n  b:\n    args: " + canary + "\n",
	} {
		for _, format := range formats {
			for _, p := range fileOf(format, data).Problems {
				if strings.Contains(p.String(), canary) {
					t.Errorf("%s: %q: the problem %s quotes a value", format, data, p)
				}
			}
		}
	}
}
