package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
)

const ourselves = "/opt/mcpmend/bin/mcpmend"

func (d *Doctor) readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.System.Home, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (d *Doctor) only(t *testing.T, name string) *Case {
	t.Helper()
	r := d.Check(t.Context(), Which{Servers: []string{name}}, nil)
	if len(r.Cases) != 1 {
		t.Fatalf("cases: %v", summary(r))
	}
	return r.Cases[0]
}

func TestAServerGoesBehindMcpmendAndComesOutAsItWas(t *testing.T) {
	for _, test := range []struct{ file, before, has string }{
		{".claude.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"true\", \"args\": [\"-x\", \"a b\"], \"env\": {\"K\": \"v\"}}\n  }\n}\n",
			`{"command": "/opt/mcpmend/bin/mcpmend", "args": ["run", "--", "true", "-x", "a b"], "env": {"K": "v"}}`},
		{".claude.json", `{"mcpServers": {"a": {"command": "true", "args": [], "env": {"MODEL_KEY": "v"}}}}`,
			`"args": ["run", "--pass-env", "MODEL_KEY", "--", "true"]`},
		{".claude.json", `{"mcpServers": {"a": {"type": "http", "url": "http://localhost:1/mcp"}}}`,
			`"args": ["run", "http://localhost:1/mcp"]`},
		{".codex/config.toml", "# mine\n[mcp_servers.a]\ncommand = \"true\" # keep\nargs = [\"-x\"]\n",
			"command = \"/opt/mcpmend/bin/mcpmend\" # keep\nargs = [\"run\", \"--\", \"true\", \"-x\"]\n"},
		{".config/opencode/opencode.json", "{\n  // mine\n  \"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"true\", \"-x\"]}}\n}\n",
			`"command": ["/opt/mcpmend/bin/mcpmend", "run", "--", "true", "-x"]`},
		{".config/goose/config.yaml", "extensions:\n  a: # mine\n    name: a\n    type: stdio\n    cmd: env\n    args:\n      - -x\n    enabled: true\n    envs: {}\n",
			"cmd: /opt/mcpmend/bin/mcpmend"},
	} {
		t.Run(test.file, func(t *testing.T) {
			d := ward(t, map[string]string{"~/" + test.file: test.before}, func(ctx context.Context, s Start) Sighting {
				saw := healthy(ctx, s)
				if s.URL != "" {
					saw.Transport = clientconfig.HTTP
				}
				return saw
			})
			// It has to be there, or nothing would be started in its place.
			d.System.Root = ""
			d.Self = ourselves
			d.Withheld = func(name string) bool { return name == "MODEL_KEY" }
			o := WrapOptions{Program: programFile(t, d)}
			w := d.Wrap(t.Context(), d.only(t, "a"), o)
			if !w.Done || w.Undo == "" || w.Tools != 1 {
				t.Fatalf("not wrapped: %+v", w)
			}
			got := d.readFile(t, test.file)
			if want := strings.ReplaceAll(test.has, ourselves, o.Program); !strings.Contains(got, want) {
				t.Errorf("no %s in\n%s", want, got)
			}
			if again := d.Wrap(t.Context(), d.only(t, "a"), o); again.Done || again.Reason != "is behind mcpmend already" {
				t.Errorf("wrapped twice: %+v", again)
			}
			if w := d.Unwrap(t.Context(), d.only(t, "a"), o); !w.Done {
				t.Fatalf("not unwrapped: %+v", w)
			}
			back := clientconfig.Open(filepath.Join(d.System.Home, test.file), d.only(t, "a").file.Client, "", d.only(t, "a").file.Places...).Server("a")
			was := d.only(t, "a").server
			if back.Command.Text != was.Command.Text || back.URL.Text != was.URL.Text || back.Transport != was.Transport {
				t.Errorf("came out as %+v", back)
			}
			if !strings.Contains(test.before, "http") && d.readFile(t, test.file) != test.before {
				t.Errorf("came out as\n%s\nwas\n%s", d.readFile(t, test.file), test.before)
			}
		})
	}
}

// programFile is one that can be found where the entry says.
func programFile(t *testing.T, d *Doctor) string {
	t.Helper()
	file := filepath.Join(d.System.Home, "mcpmend")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnEntryStaysAsItIsIfTheServerIsAnotherOneBehindMcpmend(t *testing.T) {
	before := `{"mcpServers": {"a": {"command": "true"}}}`
	for _, test := range []struct {
		name   string
		behind func(context.Context, Start) Sighting
		want   string
	}{
		{"other tools", func(ctx context.Context, s Start) Sighting {
			saw := healthy(ctx, s)
			saw.Tools[0].Definition = []byte(`{"name":"other"}`)
			return saw
		}, "has other tools behind mcpmend than before, so nothing was changed"},
		{"does not start", dying(1, "no"), "does not start behind mcpmend, so nothing was changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := ward(t, map[string]string{"~/.claude.json": before}, func(ctx context.Context, s Start) Sighting {
				if len(s.Command) > 1 {
					return test.behind(ctx, s)
				}
				return healthy(ctx, s)
			})
			w := d.Wrap(t.Context(), d.only(t, "a"), WrapOptions{Program: programFile(t, d)})
			if w.Done || w.Reason != test.want {
				t.Errorf("got %+v", w)
			}
			if got := d.readFile(t, ".claude.json"); got != before {
				t.Errorf("the file is now\n%s", got)
			}
		})
	}
}

func TestSomeServersAreNotPutBehindMcpmend(t *testing.T) {
	for _, test := range []struct{ entry, want string }{
		{`{"type": "http", "url": "http://localhost:1/", "headers": {"Authorization": "Bearer x"}}`, "command line"},
		{`{"comand": "true"}`, "mend it first"},
	} {
		d := ward(t, map[string]string{"~/.claude.json": `{"mcpServers": {"a": ` + test.entry + `}}`}, healthy)
		if w := d.Wrap(t.Context(), d.only(t, "a"), WrapOptions{Program: ourselves}); w.Done || !strings.Contains(w.Reason, test.want) {
			t.Errorf("%s: got %+v", test.entry, w)
		}
	}
}

// Who is refused hears what is true of the entry: only a client that was given no
// token signs in by itself.
func TestWhatIsNotAcceptedIsNotPutBehindMcpmend(t *testing.T) {
	refused := func(context.Context, Start) Sighting {
		return Sighting{Steps: []Step{{Stage: AtHandshake}}, Fault: &fault.Fault{Evidence: fault.Evidence{HTTPStatus: 401, Text: "HTTP 401", Challenge: "Bearer"}}}
	}
	for _, test := range []struct {
		entry, want string
		probe       func(context.Context, Start) Sighting
	}{
		{`{"type": "http", "url": "http://localhost:1/"}`, "the client signs in to it itself, which mcpmend cannot do yet", refused},
		{`{"type": "http", "url": "http://localhost:1/", "headers": {"Authorization": "Bearer x"}}`,
			"its headers would have to stand on a command line, where others can read them", refused},
		{`{"command": "true", "env": {"GITHUB_TOKEN": "x"}}`, "its credentials are not accepted; renew them first",
			dying(1, "Error: 401 Unauthorized: Bad credentials")},
	} {
		d := ward(t, map[string]string{"~/.claude.json": `{"mcpServers": {"a": ` + test.entry + `}}`}, test.probe)
		c := d.only(t, "a")
		if w := d.Wrap(t.Context(), c, WrapOptions{Program: ourselves}); c.State != SignIn || w.Done || w.Reason != test.want {
			t.Errorf("%s is %s: got %q, want %q", test.entry, c.State, w.Reason, test.want)
		}
	}
}

func TestAProgramInACacheIsNotWrittenIntoAnEntry(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name   string
		stable bool
	}{
		{"bin/mcpmend", true},
		{".npm/_npx/abc/node_modules/.bin/mcpmend", false},
		{"go-build123/b001/exe/mcpmend", false},
	} {
		file := filepath.Join(dir, test.name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := StableProgram(file); (err == nil) != test.stable {
			t.Errorf("%s: got %q, %v", test.name, got, err)
		}
	}
}

func TestACommandThatCameInTheMeantimeIsNotWrapped(t *testing.T) {
	const file = "PROJECT/.mcp.json"
	started := ""
	d := ward(t, map[string]string{file: servers(`{"command": "true"}`)}, func(ctx context.Context, s Start) Sighting {
		started += strings.Join(s.Command, " ") + ";"
		return healthy(ctx, s)
	})
	if err := d.Approvals.Approve(d.only(t, "s").Approve); err != nil {
		t.Fatal(err)
	}
	c := d.only(t, "s")
	evil := servers(`{"command": "false"}`)
	if err := os.WriteFile(filepath.Join(d.System.Project, ".mcp.json"), []byte(evil), 0o644); err != nil {
		t.Fatal(err)
	}
	w := d.Wrap(t.Context(), c, WrapOptions{Program: programFile(t, d)})
	if w.Done || w.Reason == "" || started != "true;" {
		t.Errorf("started %s, %+v", started, w)
	}
}

func TestAKeyThatTheRegistryNamesIsPassedOn(t *testing.T) {
	_, f := entry(t, "claude-code", "user", `{"mcpServers": {"s": {"command": "npx", "args": ["-y", "x"], "env": {"GROQ_API_KEY": "${G}", "MODE": "1"}}}}`)
	withheld := func(name string) bool { return strings.HasSuffix(name, "_API_KEY") }
	known := []registry.Variable{{Name: "PERPLEXITY_API_KEY"}, {Name: "GROQ_API_KEY"}, {Name: "LEVEL"}}
	want := "mcpmend run --pass-env GROQ_API_KEY --pass-env PERPLEXITY_API_KEY -- npx -y x"
	if got := strings.Join(behind("mcpmend", f.Servers[0], withheld, known), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Takes(&registry.Registry{}, []string{"npx", "-y", "@notionhq/notion-mcp-server@2"}); !slices.Contains(got, "NOTION_TOKEN") {
		t.Errorf("the registry names %v for notion", got)
	}
	if got := Takes(&registry.Registry{}, []string{"./server"}); got != nil {
		t.Errorf("the registry names %v for a program of nobody's", got)
	}
}
