package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// entry reads one server from a file of a client, written for the first place of
// that scope.
func entry(t *testing.T, client, scope, text string) (*clientconfig.Server, *clientconfig.File) {
	t.Helper()
	c := clientconfig.ByID(client)
	if c == nil {
		t.Fatalf("no client %q", client)
	}
	i := slices.IndexFunc(c.Files, func(p clientconfig.Place) bool { return p.Scope == scope })
	if i < 0 {
		t.Fatalf("%s has no file of scope %s", client, scope)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := clientconfig.Open(path, c, "", c.Files[i])
	if len(f.Servers) != 1 {
		t.Fatalf("%d servers in %s: %v", len(f.Servers), text, f.Problems)
	}
	return f.Servers[0], f
}

// ids are findings as "id severity variable".
func ids(found []Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, strings.TrimSpace(f.ID+" "+string(f.Severity)+" "+f.pieces.Variable))
	}
	return out
}

// servers is a file with one server s in it.
func servers(entry string) string { return `{"mcpServers": {"s": ` + entry + `}}` }

func TestVariablesAreReplacedAsTheClientDoesIt(t *testing.T) {
	for _, test := range []struct {
		name, client, text string
		command            []string
		env                []string // beside what is inherited
		url                string
		header             []string
		found              []string
	}{
		{
			name: "what is set", client: "claude-code",
			text:    servers(`{"command": "${TOOL}", "args": ["${NOT_SET:-usual}", "x${WORD}y"], "env": {"A": "${WORD}"}}`),
			command: []string{"tool", "usual", "xwordy"}, env: []string{"A=word"},
		}, {
			name: "kept when unset", client: "claude-code",
			text:    servers(`{"command": "tool", "env": {"A": "${NOT_SET}"}}`),
			command: []string{"tool"}, env: []string{"A=${NOT_SET}"},
			found: []string{"variables.unset warn NOT_SET"},
		}, {
			name: "empty when unset", client: "gemini-cli",
			text:    servers(`{"command": "tool", "env": {"A": "$NOT_SET"}}`),
			command: []string{"tool"}, env: []string{"A="},
			found: []string{"variables.unset warn NOT_SET"},
		}, {
			name: "nothing runs without an argument", client: "claude-code",
			text:    servers(`{"command": "tool", "args": ["${NOT_SET}"]}`),
			command: []string{"tool", "${NOT_SET}"},
			found:   []string{"variables.unset error NOT_SET"},
		}, {
			name: "or an address", client: "claude-code",
			text:  servers(`{"type": "http", "url": "https://${NOT_SET}/mcp", "headers": {"X-Key": "${WORD}"}}`),
			url:   "https://${NOT_SET}/mcp",
			found: []string{"variables.unset error NOT_SET"}, header: []string{"X-Key: word"},
		}, {
			name: "another client's spelling", client: "claude-code",
			text:    servers(`{"command": "tool", "env": {"A": "${env:WORD}"}}`),
			command: []string{"tool"}, env: []string{"A=${env:WORD}"},
			found: []string{"variables.foreign_reference warn WORD"},
		}, {
			name: "in an argument", client: "cursor",
			text:    servers(`{"command": "tool", "args": ["${WORD}", "$WORD"]}`),
			command: []string{"tool", "${WORD}", "$WORD"},
			found:   []string{"variables.foreign_reference error WORD", "variables.foreign_reference warn WORD"},
		}, {
			name: "that a shell will replace", client: "cursor",
			text:    servers(`{"command": "/bin/sh", "args": ["-c", "exec tool ${WORD}"]}`),
			command: []string{"/bin/sh", "-c", "exec tool ${WORD}"},
		}, {
			name: "that the server will replace", client: "claude-desktop",
			text:    servers(`{"command": "npx", "args": ["mcp-remote", "--header", "Authorization: ${AUTH}"], "env": {"AUTH": "Bearer abcdefgh"}}`),
			command: []string{"npx", "mcp-remote", "--header", "Authorization: ${AUTH}"}, env: []string{"AUTH=Bearer abcdefgh"},
		}, {
			name: "what a person is asked for", client: "vscode",
			text:    `{"servers": {"s": {"command": "tool", "env": {"A": "${input:key}"}}}}`,
			command: []string{"tool"}, env: []string{"A=${input:key}"},
			found: []string{"variables.asked warn key"},
		}, {
			name: "the example of a manual", client: "claude-desktop",
			text:    servers(`{"command": "tool", "args": ["/path/to/folder"], "env": {"A": "<your-token>", "B": "YOUR_API_KEY_HERE", "C": "real"}}`),
			command: []string{"tool", "/path/to/folder"}, env: []string{"A=<your-token>", "B=YOUR_API_KEY_HERE", "C=real"},
			found: []string{"variables.placeholder warn", "variables.placeholder warn A", "variables.placeholder warn B"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, f := entry(t, test.client, "user", test.text)
			d := &Doctor{System: clientconfig.System{OS: "linux", Home: "/home/u"}, Environ: []string{"HOME=/home/u", "WORD=word", "TOOL=tool"}}
			st, found := d.start(s, f)
			if diff := cmp.Diff(test.found, ids(found)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.command, st.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if st.URL != test.url {
				t.Errorf("URL %q, want %q", st.URL, test.url)
			}
			if diff := cmp.Diff(test.header, st.Header); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			own := slices.DeleteFunc(st.Env, func(e string) bool { return slices.Contains(d.Environ, e) || strings.HasPrefix(e, "PATH=") })
			if diff := cmp.Diff(test.env, own); diff != "" && len(own)+len(test.env) > 0 {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			for _, f := range found {
				if f.At.Line == 0 || f.Explanation == "" || f.problem == nil || len(f.problem.Path) == 0 {
					t.Errorf("finding without a place or words: %+v", f)
				}
			}
		})
	}
}

func TestAForeignReferenceIsRespeltWhereTheClientCan(t *testing.T) {
	for _, test := range []struct{ client, value, want string }{
		{"claude-code", "${env:WORD}", "${WORD}"},
		{"cursor", "${WORD}", "${env:WORD}"},
		{"cursor", "${WORD:-x}", ""},
		{"gemini-cli", "{env:WORD}", "$WORD"},
		{"claude-desktop", "${WORD}", ""},
	} {
		s, f := entry(t, test.client, "user", servers(`{"command": "tool", "env": {"A": "`+test.value+`"}}`))
		_, found := (&Doctor{System: clientconfig.System{OS: "linux"}, Environ: []string{"WORD=w"}}).start(s, f)
		if len(found) != 1 || found[0].problem.Want != test.want || found[0].entryVariable != "A" {
			t.Errorf("%s in %s: %+v, want %q", test.value, test.client, found, test.want)
		}
	}
}

func TestWhatOnlyTheTerminalHasCannotBeReferredToFromTheDesktop(t *testing.T) {
	s, f := entry(t, "windsurf", "user", servers(`{"command": "tool", "env": {"A": "${env:WORD}"}}`))
	_, found := (&Doctor{System: clientconfig.System{OS: "linux"}, Environ: []string{"WORD=hunter2"}}).start(s, f)
	if diff := cmp.Diff([]string{"variables.unset warn WORD"}, ids(found)); diff != "" {
		t.Fatalf("findings (-want +got):\n%s", diff)
	}
	if want := "WORD is set in this terminal, but Windsurf is started by the desktop and does not get it, so nothing stands in its place."; found[0].Explanation != want {
		t.Errorf("%q, want %q", found[0].Explanation, want)
	}
}

func TestAServerWorksWhereItsClientDoes(t *testing.T) {
	for _, test := range []struct{ client, scope, cwd, want string }{
		{"claude-code", "user", "", "/home/u"}, // not under the influence of a project
		{"claude-desktop", "user", "", "/home/u"},
		{"vscode", "project", "", "/project"},
		{"vscode", "project", "sub", "/project/sub"},
		{"vscode", "project", "${workspaceFolder}/x", "/project/x"},
		{"vscode", "user", "/abs", "/abs"},
	} {
		text := servers(`{"command": "tool", "cwd": "` + test.cwd + `"}`)
		if test.client == "vscode" {
			text = strings.Replace(text, "mcpServers", "servers", 1)
		}
		s, f := entry(t, test.client, test.scope, text)
		st, _ := (&Doctor{System: clientconfig.System{OS: "linux", Home: "/home/u", Project: "/project"}}).start(s, f)
		if filepath.ToSlash(st.Dir) != test.want {
			t.Errorf("%s, %s, cwd %q: works in %q, want %q", test.client, test.scope, test.cwd, st.Dir, test.want)
		}
	}
}

func TestAProjectCannotSteerTheUsersOwnServers(t *testing.T) {
	for _, test := range []struct{ scope, command, args, want string }{
		{"user", "npx", `"-y", "server"`, "/home/u"},
		{"user", "/opt/node/bin/npx", `"-y", "server"`, "/home/u"},
		{"user", "uvx", `"server"`, "/home/u"},
		{"user", "npm", `"run", "server"`, "/home/u"},
		{"user", "deno", `"run", "-A", "npm:server"`, "/home/u"},
		{"user", "python3.12", `"-m", "server"`, "/home/u"},
		{"user", "cmd", `"/c", "npx", "-y", "server"`, "/home/u"},
		{"user", "env", `"A=b", "npx", "-y", "server"`, "/home/u"},
		{"user", "bash", `"-lc", "npx -y server"`, "/home/u"},
		{"user", "/opt/mcpmend", `"run", "--", "npx", "-y", "server"`, "/home/u"},
		{"user", "/opt/mcpmend", `"run", "--"`, "/home/u"},
		{"user", "timeout", `"60", "npx", "-y", "server"`, "/home/u"},
		{"user", "op", `"run", "--", "poetry", "run", "server"`, "/home/u"},
		{"user", "a-wrapper-nobody-knows", `"uv", "run", "./server.py"`, "/home/u"},
		{"user", "uv", `"run", "./server.py"`, "/home/u"},
		{"user", "node", `"server.js"`, "/home/u"},
		{"project", "npx", `"-y", "server"`, "/project"},
		{"local", "npx", `"-y", "server"`, "/project"},
	} {
		s, f := entry(t, "claude-code", "user", servers(`{"command": "`+test.command+`", "args": [`+test.args+`]}`))
		s.Scope = test.scope
		st, _ := (&Doctor{System: clientconfig.System{OS: "linux", Home: "/home/u", Project: "/project"}}).start(s, f)
		if filepath.ToSlash(st.Dir) != test.want {
			t.Errorf("%s %s %s starts in %s, want %s", test.scope, test.command, test.args, st.Dir, test.want)
		}
	}
}

// Which file a relative path is depends on the folder, and the client's is not ours.
func TestARelativePathOfTheUsersOwnDependsOnTheFolder(t *testing.T) {
	for _, test := range []struct{ name, entry, home, want string }{
		{"a script", `{"command": "node", "args": ["server.js"]}`, "", "claude-code s unchecked resolve.depends_on_folder"},
		{"a program", `{"command": "./serve"}`, "", "claude-code s unchecked resolve.depends_on_folder"},
		{"behind a wrapper", `{"command": "timeout", "args": ["5", "../serve.sh"]}`, "", "claude-code s unchecked resolve.depends_on_folder"},
		{"one that is in the home folder", `{"command": "sh", "args": ["server.sh"]}`, "server.sh", "claude-code s healthy"},
		{"an absolute one", `{"command": "/nowhere/serve"}`, "", "claude-code s dead resolve.command_not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{"~/.claude.json": servers(test.entry), "PROJECT/server.js": "", "PROJECT/serve": "", "PROJECT/server.sh": ""}
			if test.home != "" {
				files["~/"+test.home] = ""
			}
			started := 0
			d := ward(t, files, func(ctx context.Context, s Start) Sighting {
				if started++; s.Dir == "" || strings.HasSuffix(s.Dir, "project") {
					t.Errorf("started in %q", s.Dir)
				}
				return healthy(ctx, s)
			})
			r := d.Check(t.Context(), Which{}, nil)
			if diff := cmp.Diff([]string{test.want}, summary(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := strings.HasSuffix(test.want, "healthy"); (started > 0) != want {
				t.Errorf("started %d times", started)
			}
		})
	}
}

func TestVSCodePutsThePathOfAnEntryBehindItsOwn(t *testing.T) {
	for client, want := range map[string]string{"vscode": "/usr/bin:/opt/bin", "cursor": "/opt/bin"} {
		key := clientconfig.ByID(client).Files[0].Key[0]
		s, f := entry(t, client, "user", `{"`+key+`": {"s": {"command": "tool", "env": {"PATH": "/opt/bin"}}}}`)
		st, _ := (&Doctor{System: clientconfig.System{OS: "linux"}, Environ: []string{"PATH=/usr/bin"}}).start(s, f)
		if got, _ := (&environ{list: st.Env}).lookup("PATH"); got != want {
			t.Errorf("%s: PATH is %q, want %q", client, got, want)
		}
	}
}

func TestVariablesComeFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(path, []byte("# a comment\nexport A=one\nB = \"two words\"\n\nnonsense\nC='x'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, f := entry(t, "vscode", "user", `{"servers": {"s": {"command": "tool", "envFile": "`+filepath.ToSlash(path)+`", "env": {"C": "own"}}}}`)
	st, _ := (&Doctor{System: clientconfig.System{OS: "linux"}}).start(s, f)
	want := []string{"A=one", "B=two words", "C=own"}
	got := slices.DeleteFunc(st.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
