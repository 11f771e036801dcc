package machine

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Programs knows where programs are on this machine, wherever a client may look
// for them. The zero value is this machine and this user. It may be used by
// several goroutines at once.
type Programs struct {
	// Home is the user's home folder; "" asks the operating system.
	Home string
	// OS is the operating system; "" is the one we run on.
	OS OS
	// Getenv looks up a variable; nil is os.Getenv.
	Getenv func(string) string
	// Shell is the user's login shell; "" is the variable SHELL, else /bin/sh.
	Shell string
	// Root stands before absolute folders such as /opt/homebrew; "" is the real root.
	Root string
	// Timeout bounds the login shell; 0 is three seconds.
	Timeout time.Duration

	once  sync.Once
	turn  chan struct{} // holds one token: whoever has it may ask, or read the answer
	asked bool
	path  string
	err   error
}

// Found is a program in one place.
type Found struct {
	Path string
	// From is whose place that is, such as "login shell", "nvm" or "homebrew".
	From string
	// Version is that of the installation, as far as its path or the files beside it
	// tell; "" if they do not.
	Version string
}

// Find returns where a program is, the best place first: as the login shell finds
// it, then in the folders of version managers, the chosen version before newer
// ones before older ones, then where installers put things. Nothing but the login
// shell is started.
func (p *Programs) Find(ctx context.Context, name string) []Found {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:`) {
		return nil
	}
	var found []Found
	seen := make(map[string]bool)
	add := func(file, from string) {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			real = file
		}
		// Shims are one program under many names: only the same name in the same place
		// is the same thing.
		if key := real + "\x00" + filepath.Base(file); !seen[key] {
			seen[key] = true
			found = append(found, Found{Path: file, From: from, Version: installedVersion(file)})
		}
	}
	look := func(folder, from string) {
		if file, err := p.search().look(filepath.Join(folder, name)); err == nil {
			add(file, from)
		}
	}
	if path, err := p.LoginPath(ctx); err == nil {
		for _, folder := range p.OS.Folders(path) {
			if filepath.IsAbs(folder) {
				look(folder, "login shell")
			}
		}
	}
	for _, place := range programPlaces {
		if !slices.Contains(strings.Fields(place.systems), string(p.OS.orOurs())) {
			continue
		}
		for _, folder := range p.folders(place) {
			look(folder, place.from)
		}
	}
	return found
}

// A programPlace is a folder, or one for each version, that programs are put in.
type programPlace struct {
	from    string
	systems string
	// dir begins with a variable, ${NAME} or with a value for when it is not set,
	// with ~, or at the root. A * stands for a version.
	dir string
}

const (
	unixes  = "linux darwin freebsd openbsd netbsd"
	windows = "windows"
)

// programPlaces is in the order of trust: managers with a chosen version first.
var programPlaces = []programPlace{
	{"nvm", unixes, "${NVM_DIR:-~/.nvm}/versions/node/*/bin"},
	{"nvm", unixes, "${XDG_CONFIG_HOME:-~/.config}/nvm/versions/node/*/bin"},
	{"fnm", unixes, "${FNM_DIR:-~/.local/share/fnm}/aliases/default/bin"},
	{"fnm", unixes, "${FNM_DIR:-~/.local/share/fnm}/node-versions/*/installation/bin"},
	{"fnm", "darwin", "~/Library/Application Support/fnm/aliases/default/bin"},
	{"fnm", "darwin", "~/Library/Application Support/fnm/node-versions/*/installation/bin"},
	{"fnm", unixes, "~/.fnm/node-versions/*/installation/bin"},
	{"volta", unixes, "${VOLTA_HOME:-~/.volta}/bin"},
	{"mise", unixes, "${MISE_DATA_DIR:-~/.local/share/mise}/shims"},
	{"mise", unixes, "${MISE_DATA_DIR:-~/.local/share/mise}/installs/node/*/bin"},
	{"asdf", unixes, "${ASDF_DATA_DIR:-~/.asdf}/shims"},
	{"asdf", unixes, "${ASDF_DATA_DIR:-~/.asdf}/installs/nodejs/*/bin"},
	{"n", unixes, "${N_PREFIX:-~/n}/bin"},
	{"pyenv", unixes, "${PYENV_ROOT:-~/.pyenv}/shims"},
	{"pyenv", unixes, "${PYENV_ROOT:-~/.pyenv}/versions/*/bin"},
	{"rbenv", unixes, "${RBENV_ROOT:-~/.rbenv}/shims"},
	{"uv", unixes, "${UV_TOOL_BIN_DIR}"},
	{"uv", unixes, "${UV_INSTALL_DIR}"},
	{"pipx", unixes, "${PIPX_BIN_DIR}"},
	{"user", unixes, "${XDG_BIN_HOME:-~/.local/bin}"},
	{"user", unixes, "~/bin"},
	{"cargo", unixes, "${CARGO_HOME:-~/.cargo}/bin"},
	{"bun", unixes, "${BUN_INSTALL:-~/.bun}/bin"},
	{"deno", unixes, "${DENO_INSTALL:-~/.deno}/bin"},
	{"pnpm", "linux", "${PNPM_HOME:-~/.local/share/pnpm}"},
	{"pnpm", "darwin", "${PNPM_HOME:-~/Library/pnpm}"},
	{"npm", unixes, "~/.npm-global/bin"},
	{"go", unixes, "${GOPATH:-~/go}/bin"},
	{"homebrew", "darwin", "${HOMEBREW_PREFIX:-/opt/homebrew}/bin"},
	{"homebrew", "linux", "${HOMEBREW_PREFIX:-/home/linuxbrew/.linuxbrew}/bin"},
	{"system", unixes, "/usr/local/bin"},
	{"macports", "darwin", "/opt/local/bin"},
	{"docker", "darwin", "~/.docker/bin"},
	{"docker", "darwin", "/Applications/Docker.app/Contents/Resources/bin"},
	{"orbstack", "darwin", "~/.orbstack/bin"},
	{"nix", unixes, "~/.nix-profile/bin"},
	{"nix", unixes, "/run/current-system/sw/bin"},
	{"snap", "linux", "/snap/bin"},
	{"system", unixes, "/usr/bin"},
	{"system", unixes, "/bin"},

	{"nvm", windows, "${NVM_SYMLINK}"},
	{"nvm", windows, "${NVM_HOME}/*"},
	{"fnm", windows, "${APPDATA}/fnm/node-versions/*/installation"},
	{"volta", windows, "${LOCALAPPDATA}/Volta/bin"},
	{"nodejs", windows, "${ProgramFiles}/nodejs"},
	{"npm", windows, "${APPDATA}/npm"},
	{"uv", windows, "~/.local/bin"},
	{"cargo", windows, "~/.cargo/bin"},
	{"bun", windows, "~/.bun/bin"},
	{"deno", windows, "~/.deno/bin"},
	{"scoop", windows, "${SCOOP:-~/scoop}/shims"},
	{"winget", windows, "${LOCALAPPDATA}/Microsoft/WinGet/Links"},
	{"chocolatey", windows, "${ProgramData}/chocolatey/bin"},
	{"python", windows, "${LOCALAPPDATA}/Programs/Python/*"},
	{"python", windows, "${LOCALAPPDATA}/Programs/Python/*/Scripts"},
	{"docker", windows, "${ProgramFiles}/Docker/Docker/resources/bin"},
}

// folders are those that a place stands for here, best version first.
func (p *Programs) folders(place programPlace) []string {
	dir := place.dir
	if strings.HasPrefix(dir, "${") {
		inner, rest, _ := strings.Cut(dir[2:], "}")
		name, otherwise, _ := strings.Cut(inner, ":-")
		value := p.getenv(name)
		switch {
		case value != "" && filepath.IsAbs(value):
			dir = value + rest
		case otherwise == "":
			return nil
		default:
			dir = located(otherwise, p.home(), p.Root) + rest
		}
	} else {
		dir = located(dir, p.home(), p.Root)
	}
	if dir == "" || !filepath.IsAbs(dir) {
		return nil
	}
	base, below, versions := strings.Cut(filepath.FromSlash(dir), "*")
	if !versions {
		return []string{filepath.FromSlash(dir)}
	}
	var out []string
	for _, v := range p.versions(place.from, filepath.Clean(base)) {
		out = append(out, filepath.Join(base, v, below))
	}
	return out
}

// located is a path that begins with ~ or at the root, on this machine; "" without a
// home folder.
func located(path, home, root string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return filepath.Join(root+"/", filepath.FromSlash(path))
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, filepath.FromSlash(rest))
}

// maxVersions is more than anybody has installed.
const maxVersions = 200

// versions lists the folders in base that are called like a version: the one that
// was chosen, then from the newest to the oldest.
func (p *Programs) versions(from, base string) []string {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries[:min(len(entries), maxVersions)] {
		// "latest" and "20" beside "20.11.0" are links to it.
		if e.Type()&fs.ModeSymlink == 0 && versionOf(e.Name()) != "" {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return -compareVersions(versionOf(a), versionOf(b)) })
	if from == "nvm" && !p.OS.IsWindows() {
		chosen := nvmDefault(filepath.Join(base, "..", "..", "alias"), names)
		if i := slices.Index(names, chosen); i > 0 {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, chosen)
		}
	}
	return names
}

// nvmDefault follows nvm's alias "default" to one of the installed versions, which
// are given newest first; "" if it leads nowhere.
func nvmDefault(aliases string, installed []string) string {
	alias := "default"
	for range 5 { // an alias may name an alias: default, lts/*, lts/iron, v20.11.0
		switch alias {
		case "node", "stable", "current":
			if len(installed) > 0 {
				return installed[0]
			}
			return ""
		}
		if v := versionOf(alias); v != "" {
			for _, name := range installed {
				if have := versionOf(name); have == v || strings.HasPrefix(have, v+".") {
					return name
				}
			}
			return ""
		}
		if !filepath.IsLocal(alias) {
			return ""
		}
		data, err := ReadPlain(filepath.Join(aliases, filepath.FromSlash(alias)), 4<<10)
		if err != nil {
			return ""
		}
		alias = strings.TrimSpace(string(data))
	}
	return ""
}

func (p *Programs) search() Search { return Search{OS: p.OS} }

func (p *Programs) getenv(name string) string {
	if p.Getenv != nil {
		return p.Getenv(name)
	}
	return os.Getenv(name)
}

func (p *Programs) home() string { return homeOr(p.Home) }

// homeOr is a home folder, or that of this process.
func homeOr(home string) string {
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	return home
}

var (
	wholeVersion = pattern(`^(?:v|node-v|Python|python-)?(\d+(?:\.\d+){0,3})$`)
	nodeDefine   = pattern(`(?m)^#define NODE_(MAJOR|MINOR|PATCH)_VERSION (\d+)`)
)

// versionOf is the version that a folder's name stands for, "" if none.
func versionOf(name string) string {
	if m := wholeVersion().FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// installedVersion is the version of the installation that a program belongs to.
// nvm, asdf and Homebrew have it in the path; Node's own archives bring a header
// that says it. Asking the program would mean to run it.
func installedVersion(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		real = file
	}
	// The file's own place comes first: npx is a link into lib/node_modules/npm, and
	// npm has a version of its own.
	for _, f := range []string{file, real} {
		parts := strings.Split(filepath.ToSlash(f), "/")
		for i := len(parts) - 2; i > 0; i-- {
			if v := versionOf(parts[i]); v != "" && strings.Contains(v, ".") {
				return v
			}
		}
	}
	switch strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) {
	case "node", "npx", "npm", "corepack":
		data, err := ReadPlain(filepath.Join(filepath.Dir(file), "..", "include", "node", "node_version.h"), 64<<10)
		if err != nil {
			return ""
		}
		if m := nodeDefine().FindAllStringSubmatch(string(data), -1); len(m) == 3 {
			return m[0][2] + "." + m[1][2] + "." + m[2][2]
		}
	}
	return ""
}

// compareVersions compares dotted numbers; a missing part is zero.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		var x, y int
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		if i < len(bs) {
			y, _ = strconv.Atoi(bs[i])
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}
