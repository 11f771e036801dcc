package doctor

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// siteOf is a system of which only some files are known.
func siteOf(goos machine.OS, env []string, dir string, files map[string]string) site {
	tree := make(fstest.MapFS)
	key := func(name string) string {
		return strings.TrimPrefix(strings.ToLower(strings.NewReplacer(`\`, "/", ":", "").Replace(name)), "/")
	}
	for name, content := range files {
		mode := fs.FileMode(0o755)
		if strings.HasSuffix(name, "!") { // not executable
			name, mode = strings.TrimSuffix(name, "!"), 0o644
		}
		tree[key(name)] = &fstest.MapFile{Data: []byte(content), Mode: mode}
	}
	return site{
		environ: environ{os: goos, list: env}, dir: dir,
		stat: func(name string) (fs.FileInfo, error) { return tree.Stat(key(name)) },
		open: func(name string) (io.ReadCloser, error) { return tree.Open(key(name)) },
	}
}

// command is the entry of a client that runs a command line.
func command(t *testing.T, client string, argv []string, cwd string) *clientconfig.Server {
	t.Helper()
	e := map[string]any{"command": argv[0], "args": argv[1:]}
	if cwd != "" {
		e["working_directory"] = cwd
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": e}})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := entry(t, client, "user", string(text))
	return s
}

func TestSeesWithoutStartingThatACommandCannotRun(t *testing.T) {
	unix := map[string]string{
		"/usr/bin/node": "\x7fELF", "/usr/bin/env": "\x7fELF", "/usr/bin/npx": "#!/usr/bin/env node\n", "/usr/bin/docker": "\x7fELF",
		"/usr/bin/python3": "\x7fELF", "/usr/bin/uv": "\x7fELF", "/usr/bin/java": "\x7fELF",
		"/opt/tool!": "text", "/opt/script": "#!/usr/bin/env -S ruby -w\n", "/opt/gone": "#!/opt/none/python\n", "/opt/fine": "#!/usr/bin/python3\n",
		"/app/server.js!": "", "/app/build/index.js!": "", "/app/run.sh": "#!/usr/bin/node\n",
	}
	windows := map[string]string{
		`C:\nodejs\npx.cmd`: "", `C:\nodejs\npx`: "", `C:\nodejs\node.exe`: "", `C:\Windows\cmd.exe`: "", `C:\uv\uvx.exe`: "",
	}
	path := []string{"PATH=/usr/local/bin:/usr/bin"}
	for _, test := range []struct {
		name  string
		argv  []string
		cwd   string
		want  string // id and severity, "" for nothing
		piece string // of what was found, for the fixes
	}{
		{"a program", []string{"node", "server.js"}, "", "", ""},
		{"no program", []string{"uvx", "x"}, "", "resolve.command_not_found error", "uvx"},
		{"no file", []string{"/opt/none"}, "", "resolve.command_not_found error", "/opt/none"},
		{"home as ~", []string{"~/bin/tool"}, "", "resolve.command_not_found error", "~/bin/tool"},
		{"not executable", []string{"/opt/tool"}, "", "resolve.permission_denied error", "/opt/tool"},
		{"a folder", []string{"/opt"}, "", "resolve.permission_denied error", "/opt"},
		{"script without its interpreter", []string{"/opt/script"}, "", "resolve.command_not_found error", "ruby"},
		{"interpreter at a path", []string{"/opt/gone"}, "", "resolve.command_not_found error", "/opt/none/python"},
		{"script with it", []string{"/opt/fine"}, "", "", ""},
		{"relative to its folder", []string{"./run.sh"}, "/app", "", ""},
		{"no working folder", []string{"node", "server.js"}, "/none", "resolve.cwd_missing error", "/none"},
		{"a file for a working folder", []string{"node"}, "/opt/tool", "resolve.cwd_missing error", "/opt/tool"},
		{"no script", []string{"node", "--no-warnings", "dist/index.js"}, "", "resolve.script_missing error", "/app/dist/index.js"},
		{"script without its ending", []string{"node", "build/index"}, "", "", ""},
		{"script behind an option", []string{"node", "-r", "dotenv/config", "server.js"}, "", "", ""},
		{"no script but a module", []string{"python3", "-m", "server"}, "", "", ""},
		{"no archive", []string{"java", "-Xmx1g", "-jar", "/x/server.jar", "--stdio"}, "", "resolve.script_missing error", "/x/server.jar"},
		{"python script", []string{"python3", "/x/server.py", "y.py"}, "", "resolve.script_missing error", "/x/server.py"},
		{"uv's folder", []string{"uv", "--directory", "/x/project", "run", "server"}, "", "resolve.script_missing error", "/x/project"},
		{"uv's folder that is there", []string{"uv", "--directory", "/app", "run", "server"}, "", "", ""},
		{"npx", []string{"npx", "-y", "pkg"}, "", "", ""},
		{"npx that asks", []string{"npx", "@scope/pkg@1", "-y"}, "", "resolve.npx_without_yes warn", "@scope/pkg@1"},
		{"npx that runs what is there", []string{"npx", "--no-install", "pkg"}, "", "", ""},
		{"capitals", []string{"npx", "-y", "@Scope/Pkg@1.0.0-RC1"}, "", "resolve.package_not_found error", "@Scope/Pkg@1.0.0-RC1"},
		{"capitals of a version", []string{"npx", "-y", "@scope/pkg@1.0.0-RC1"}, "", "", ""},
		{"capitals of a repository", []string{"npx", "-y", "Owner/Repo"}, "", "", ""},
		{"capitals behind -p", []string{"npx", "-y", "-p", "PKG", "tool"}, "", "resolve.package_not_found error", "PKG"},
		{"docker", []string{"docker", "run", "--rm", "-i", "-e", "A", "image", "-d"}, "", "", ""},
		{"docker in one word", []string{"docker", "run", "-it", "--name", "x", "image"}, "", "", ""},
		{"docker in the background", []string{"docker", "run", "-d", "-i", "image"}, "", "resolve.docker_detached error", "docker"},
		{"docker, both", []string{"docker", "run", "-di", "image"}, "", "resolve.docker_detached error", "docker"},
		{"docker without input", []string{"docker", "run", "--rm", "-e", "I=i", "image", "-i"}, "", "resolve.docker_not_interactive error", "docker"},
		{"docker with a value in the word", []string{"docker", "run", "-eAd=i", "-i", "image"}, "", "", ""},
		{"docker compose", []string{"docker", "compose", "up"}, "", "", ""},
		{"docker compose run", []string{"docker", "compose", "run", "--rm", "server"}, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := command(t, "warp", test.argv, test.cwd)
			dir := test.cwd
			if dir == "" {
				dir = "/app"
			}
			check(t, resolve(siteOf("linux", path, dir, unix), s, test.argv), test.want, test.piece)
		})
	}
	for _, test := range []struct {
		name, client string
		argv         []string
		want, piece  string
	}{
		{"a batch file", "claude-desktop", []string{"npx", "-y", "pkg"}, "resolve.windows_shim error", "npx"},
		{"with its ending", "claude-desktop", []string{`C:\nodejs\npx.cmd`, "-y", "pkg"}, "resolve.windows_shim error", `C:\nodejs\npx.cmd`},
		{"for a client that knows", "cursor", []string{"npx", "-y", "pkg"}, "", ""},
		{"through cmd", "claude-desktop", []string{"cmd", "/c", "npx", "-y", "pkg"}, "", ""},
		{"through cmd, asking", "claude-desktop", []string{"cmd", "/c", "npx", "pkg"}, "resolve.npx_without_yes warn", "pkg"},
		{"a program", "claude-desktop", []string{"uvx", "pkg"}, "", ""},
		{"none", "claude-desktop", []string{"pnpm", "dlx", "pkg"}, "resolve.command_not_found error", "pnpm"},
		{"no script", "claude-desktop", []string{"node", `C:\x\server.js`}, "resolve.script_missing error", `C:\x\server.js`},
	} {
		t.Run("windows, "+test.name, func(t *testing.T) {
			s := command(t, test.client, test.argv, "")
			check(t, resolve(siteOf("windows", []string{`Path=C:\nodejs;C:\Windows;C:\uv\`}, `C:\Users\u`, windows), s, test.argv), test.want, test.piece)
		})
	}
}

func check(t *testing.T, found []Finding, want, piece string) {
	t.Helper()
	var got []string
	for _, f := range found {
		got = append(got, f.ID+" "+string(f.Severity))
		p := f.pieces
		if piece != p.Command && piece != p.Path && piece != p.Package {
			t.Errorf("pieces %+v, want %q among them", p, piece)
		}
		if f.At.Line == 0 || f.Explanation == "" {
			t.Errorf("no place or no words: %+v", f)
		}
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestFindsARealProgramInTheClientsPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes there")
	}
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	d := &Doctor{System: clientconfig.System{OS: "linux"}}
	for _, test := range []struct {
		name, path string
		want       []string
	}{
		{"tool", dir + ":/bin", nil},
		{"tool", "/nowhere:/bin", []string{"resolve.command_not_found error"}},
		{"plain", dir + ":/bin", []string{"resolve.permission_denied error"}},
	} {
		found := d.resolve(command(t, "claude-code", []string{test.name}, ""), Start{Command: []string{test.name}, Env: []string{"PATH=" + test.path}})
		if diff := cmp.Diff(test.want, ids(found)); diff != "" {
			t.Errorf("%s in %s (-want +got):\n%s", test.name, test.path, diff)
		}
		if len(found) == 1 && strings.Contains(found[0].ID, "not_found") && found[0].Evidence[0] != "PATH: /nowhere:/bin" {
			t.Errorf("evidence %q, want the PATH", found[0].Evidence)
		}
	}
}
