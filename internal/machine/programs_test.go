package machine

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plant writes files below a folder; a name that ends in * is executable, one that
// ends in / is a folder.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		mode := fs.FileMode(0o644)
		name, ok := strings.CutSuffix(name, "*")
		if ok {
			mode = 0o755
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// found is Find without the login shell, with paths relative to the home folder.
func found(t *testing.T, p *Programs, name string) []Found {
	t.Helper()
	p.Shell = "/nonexistent/shell"
	all := p.Find(t.Context(), name)
	for i := range all {
		for _, root := range []string{p.Home, p.Root} {
			if rel, err := filepath.Rel(root, all[i].Path); err == nil && filepath.IsLocal(rel) {
				all[i].Path = filepath.ToSlash(rel)
			}
		}
	}
	return all
}

func machine(t *testing.T, goos OS, files map[string]string, vars map[string]string) *Programs {
	t.Helper()
	if runtime.GOOS == "windows" && goos != "windows" {
		t.Skip("its paths are not those of this system")
	}
	p := &Programs{OS: goos, Home: t.TempDir(), Root: t.TempDir(), Getenv: env(vars)}
	for name, content := range files {
		root := p.Home
		if rest, ok := strings.CutPrefix(name, "/"); ok {
			root, name = p.Root, rest
		}
		plant(t, root, map[string]string{name: content})
	}
	return p
}

// Claude Desktop took the oldest version that nvm has.
func TestOfManyVersionsTheChosenAndThenTheNewestComeFirst(t *testing.T) {
	files := map[string]string{
		".nvm/versions/node/v9.11.2/bin/npx*":   "",
		".nvm/versions/node/v10.24.1/bin/npx*":  "",
		".nvm/versions/node/v20.11.0/bin/npx*":  "",
		".nvm/versions/node/v20.9.0/bin/npx*":   "",
		".nvm/versions/node/v22.1.0/bin/npx*":   "",
		".nvm/versions/node/v23.0.0/bin/node*":  "", // without npx
		".nvm/versions/node/.tmp/bin/npx*":      "",
		".nvm/alias/lts/iron":                   "v20.11.0\n",
		".nvm/versions/node/system-old/bin/npx": "",
	}
	for alias, want := range map[string][]string{
		"":              {"22.1.0", "20.11.0", "20.9.0", "10.24.1", "9.11.2"},
		"20":            {"20.11.0", "22.1.0", "20.9.0", "10.24.1", "9.11.2"},
		"v20.9.0":       {"20.9.0", "22.1.0", "20.11.0", "10.24.1", "9.11.2"},
		"lts/iron":      {"20.11.0", "22.1.0", "20.9.0", "10.24.1", "9.11.2"},
		"node":          {"22.1.0", "20.11.0", "20.9.0", "10.24.1", "9.11.2"}, // v23 is the newest and has no npx
		"18":            {"22.1.0", "20.11.0", "20.9.0", "10.24.1", "9.11.2"}, // not installed
		"default":       {"22.1.0", "20.11.0", "20.9.0", "10.24.1", "9.11.2"}, // names itself
		"../../../etc/": {"22.1.0", "20.11.0", "20.9.0", "10.24.1", "9.11.2"},
	} {
		t.Run(alias, func(t *testing.T) {
			p := machine(t, "linux", files, nil)
			if alias != "" {
				plant(t, p.Home, map[string]string{".nvm/alias/default": alias + "\n"})
			}
			var got []string
			for _, f := range found(t, p, "npx") {
				if f.From != "nvm" || f.Path != ".nvm/versions/node/v"+f.Version+"/bin/npx" {
					t.Errorf("found %+v", f)
				}
				got = append(got, f.Version)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProgramsAreFoundWhereTheirInstallersPutThem(t *testing.T) {
	for _, test := range []struct {
		goos  OS
		files map[string]string
		vars  map[string]string
		name  string
		want  []Found
	}{
		{"linux", map[string]string{".local/share/fnm/node-versions/v20.1.0/installation/bin/npx*": ""}, nil, "npx",
			[]Found{{".local/share/fnm/node-versions/v20.1.0/installation/bin/npx", "fnm", "20.1.0"}}},
		{"linux", map[string]string{".volta/bin/npx*": ""}, nil, "npx", []Found{{".volta/bin/npx", "volta", ""}}},
		{"linux", map[string]string{".asdf/shims/npx*": "", ".asdf/installs/nodejs/18.0.0/bin/npx*": ""}, nil, "npx",
			[]Found{{".asdf/shims/npx", "asdf", ""}, {".asdf/installs/nodejs/18.0.0/bin/npx", "asdf", "18.0.0"}}},
		{"linux", map[string]string{".local/share/mise/shims/uvx*": ""}, nil, "uvx", []Found{{".local/share/mise/shims/uvx", "mise", ""}}},
		{"linux", map[string]string{"n/bin/node*": "", "n/include/node/node_version.h": "#define NODE_MAJOR_VERSION 21\n#define NODE_MINOR_VERSION 7\n#define NODE_PATCH_VERSION 3\n"}, nil, "node",
			[]Found{{"n/bin/node", "n", "21.7.3"}}},
		{"linux", map[string]string{".pyenv/shims/python3*": "", ".pyenv/versions/3.12.1/bin/python3*": ""}, nil, "python3",
			[]Found{{".pyenv/shims/python3", "pyenv", ""}, {".pyenv/versions/3.12.1/bin/python3", "pyenv", "3.12.1"}}},
		{"linux", map[string]string{".local/bin/uvx*": "", ".cargo/bin/uvx*": ""}, nil, "uvx",
			[]Found{{".local/bin/uvx", "user", ""}, {".cargo/bin/uvx", "cargo", ""}}},
		{"linux", map[string]string{".bun/bin/bunx*": ""}, nil, "bunx", []Found{{".bun/bin/bunx", "bun", ""}}},
		{"linux", map[string]string{".deno/bin/deno*": ""}, nil, "deno", []Found{{".deno/bin/deno", "deno", ""}}},
		{"linux", map[string]string{"/snap/bin/node*": "", "/home/linuxbrew/.linuxbrew/bin/node*": ""}, nil, "node",
			[]Found{{"home/linuxbrew/.linuxbrew/bin/node", "homebrew", ""}, {"snap/bin/node", "snap", ""}}},
		{"darwin", map[string]string{"/opt/homebrew/bin/npx*": "", "/usr/local/bin/npx*": "", "/snap/bin/npx*": ""}, nil, "npx",
			[]Found{{"opt/homebrew/bin/npx", "homebrew", ""}, {"usr/local/bin/npx", "system", ""}}},
		{"linux", map[string]string{"/opt/homebrew/bin/npx*": "", ".local/bin/npx": ""}, nil, "npx", nil}, // another system's place; not executable
		{"linux", map[string]string{".local/bin/npx*": ""}, nil, "../bin/npx", nil},
		{"linux", map[string]string{".local/bin/npx*": ""}, nil, "", nil},
		{"windows", map[string]string{"AppData/npm/npx": "", "AppData/npm/npx.cmd": "", "Programs/nodejs/npx.cmd": "", "scoop/shims/npx.exe": ""},
			map[string]string{"APPDATA": "HOME/AppData", "ProgramFiles": "HOME/Programs"}, "npx",
			[]Found{{"Programs/nodejs/npx.cmd", "nodejs", ""}, {"AppData/npm/npx.cmd", "npm", ""}, {"scoop/shims/npx.exe", "scoop", ""}}},
		{"linux", map[string]string{"elsewhere/versions/node/v18.2.0/bin/npx*": "", ".nvm/versions/node/v16.0.0/bin/npx*": ""},
			map[string]string{"NVM_DIR": "HOME/elsewhere"}, "npx",
			[]Found{{"elsewhere/versions/node/v18.2.0/bin/npx", "nvm", "18.2.0"}}},
		{"linux", map[string]string{"elsewhere/bin/npx*": ""}, map[string]string{"N_PREFIX": "elsewhere"}, "npx", nil}, // relative: not a place
	} {
		p := machine(t, test.goos, test.files, nil)
		p.Getenv = func(name string) string { return strings.Replace(test.vars[name], "HOME", p.Home, 1) }
		if diff := cmp.Diff(test.want, found(t, p, test.name)); diff != "" {
			t.Errorf("%s on %s with %v:\n%s", test.name, test.goos, test.files, diff)
		}
	}
}

func TestTheSameFileIsFoundOnce(t *testing.T) {
	p := machine(t, "linux", map[string]string{".cargo/bin/uvx*": ""}, nil)
	plant(t, p.Home, map[string]string{".local/bin/": ""})
	if err := os.Symlink(filepath.Join(p.Home, ".cargo/bin/uvx"), filepath.Join(p.Home, ".local/bin/uvx")); err != nil {
		t.Fatal(err)
	}
	if got := found(t, p, "uvx"); len(got) != 1 || got[0].From != "user" {
		t.Errorf("found %+v", got)
	}
}
