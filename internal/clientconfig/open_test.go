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
	wantUnreadable(t, path, "")
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

// The parsers below us have inputs that cost them minutes or the stack. Each of
// these must come back as a problem.
func TestHostileFilesAreProblems(t *testing.T) {
	for _, test := range []struct {
		name   string
		format Format
		data   string
	}{
		{"deep JSON", JSON, strings.Repeat("[", 8<<20)},
		{"deep objects", JSONC, strings.Repeat(`{"a":`, 2<<20)},
		{"deep YAML", YAML, strings.Repeat("- ", 8<<20)},
		{"deep flow YAML", YAML, strings.Repeat("[", 5000)},
		{"aliases of aliases", YAML, "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"},
		{"an alias of itself", YAML, "a: &a\n  b: *a\n"},
		{"dots", TOML, strings.Repeat("a.", 100_000) + "b = 1\n"},
		{"a list of lists", TOML, "a = " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)},
		{"many keys", TOML, strings.Repeat("#\n", maxTOML)},
		{"UTF-16", JSON, "\xff\xfe{\x00}\x00"},
		{"not UTF-8", JSON, "{\"a\": \"\xff\"}"},
		{"NUL", YAML, "a: \x00"},
	} {
		f := fileOf(test.format, test.data)
		if len(f.Problems) != 1 || f.Problems[0].Kind != Unparsable {
			t.Errorf("%s: problems are %v, want one %s", test.name, f.Problems, Unparsable)
		}
	}
}
