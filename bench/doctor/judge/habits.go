package judge

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A habit is how one client reads its file and what it gives to a server, on Linux.
type habit struct {
	// files are the places it reads, in the order in which they win.
	files []place
	// desktop: it is not started from a terminal and has what the desktop has. asks: it
	// starts the login shell to get what a terminal has.
	desktop, asks bool
	// hands says which variables of its own a server gets; nil is all of them.
	hands func(name string) bool
	// refers finds references to variables: the name is the first group that is not
	// empty. nil: what stands in the file is handed on. unset is kept if kept is set.
	refers *regexp.Regexp
	kept   bool
	// entry makes a start of an entry.
	entry func(e entry, s *start) error
	// waits is how long it waits for a server, half a minute if nothing is known.
	waits time.Duration
}

// A place is a file and where in it the servers are. "{project}" is the project's folder.
type place struct {
	scope, path, format string
	key                 []string
	list                bool // of servers with a name, not an object
}

// Transports.
const (
	streamable = "streamable HTTP"
	sse        = "SSE"
)

// desktopPath is what a session of GNOME has on Debian and Ubuntu.
const desktopPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/games:/snap/bin"

var (
	shellStyle  = regexp.MustCompile(`\$\{(\w+)(?::-([^}]*))?\}`)
	editorStyle = regexp.MustCompile(`\$\{env:(\w+)\}`)
)

// few are the variables that the SDK of TypeScript hands to a server by itself, which
// these clients leave as it is.
func few(name string) bool {
	return slices.Contains([]string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}, name)
}

// session matches what a desktop session has of itself.
var session = regexp.MustCompile(`^(HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|DISPLAY|WAYLAND_DISPLAY|DBUS_\w+|(?i:\w+_proxy))=`)

// desktop is what the session has: of what the user sets, only what ~/.profile does.
// What ~/.bashrc sets is for terminals.
func (m Machine) desktop() []string {
	profile, _ := os.ReadFile(filepath.Join(m.Home, ".profile"))
	return slices.DeleteFunc(slices.Clone(m.Env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		set := regexp.MustCompile(`(?m)^(export )?` + regexp.QuoteMeta(name) + `=`)
		return !session.MatchString(v) && !set.Match(profile)
	})
}

// loginPath is the PATH that the user's shell has when it is started as such clients do.
func (m Machine) loginPath() string {
	shell := exec.Command(variable(m.Env, "SHELL"), "-i", "-l", "-c", `printf '\n%s' "$PATH"`)
	shell.Dir, shell.Env = m.Home, append(m.desktop(), "PATH="+desktopPath)
	said, err := shell.Output()
	if err != nil {
		return desktopPath
	}
	return string(said[bytes.LastIndexByte(said, '\n')+1:]) // start files may say something, too
}

func servers(path, format string, key ...string) place {
	return place{scope: "user", path: path, format: format, key: key}
}

func ofProject(path, format string, key ...string) place {
	return place{scope: "project", path: path, format: format, key: key}
}

var habits = map[string]*habit{
	"claude-desktop": {
		files: []place{servers("~/.config/Claude/claude_desktop_config.json", "json", "mcpServers")}, desktop: true,
		hands: few, entry: plain(nil),
	},
	"claude-code": {
		files: []place{
			{scope: "local", path: "~/.claude.json", format: "json", key: []string{"projects", "{project}", "mcpServers"}},
			ofProject(".mcp.json", "json", "mcpServers"),
			servers("~/.claude.json", "json", "mcpServers"),
		},
		refers: shellStyle, kept: true,
		// Seen: it turns to SSE when a server does not take the other.
		entry: plain(map[string][]string{"http": {streamable, sse}, "streamable-http": {streamable, sse}, "sse": {sse}}),
	},
	"cursor": {
		files:   []place{ofProject(".cursor/mcp.json", "json", "mcpServers"), servers("~/.cursor/mcp.json", "json", "mcpServers")},
		desktop: true, asks: true, refers: editorStyle,
		entry: plain(map[string][]string{"": {streamable, sse}, "http": {streamable, sse}, "streamableHttp": {streamable, sse}, "sse": {sse}}),
	},
	"vscode": {
		files:   []place{ofProject(".vscode/mcp.json", "jsonc", "servers"), servers("~/.config/Code/User/mcp.json", "jsonc", "servers")},
		desktop: true, asks: true, refers: editorStyle,
		entry: plain(map[string][]string{"": {streamable, sse}, "http": {streamable, sse}, "sse": {sse}}),
	},
	"copilot-cli": {
		files: []place{ofProject(".mcp.json", "jsonc", "mcpServers"), servers("~/.copilot/mcp-config.json", "jsonc", "mcpServers")},
		entry: plain(map[string][]string{"http": {streamable}, "sse": {sse}}),
	},
	"windsurf": {
		files:   []place{servers("~/.codeium/windsurf/mcp_config.json", "json", "mcpServers")},
		desktop: true, refers: editorStyle,
		entry: named(names{command: "command", args: "args", env: "env", url: "serverUrl"}, map[string][]string{"": {streamable, sse}}),
	},
	"zed": {
		files:   []place{ofProject(".zed/settings.json", "jsonc", "context_servers"), servers("~/.config/zed/settings.json", "jsonc", "context_servers")},
		desktop: true, asks: true,
		entry: plain(map[string][]string{"": {streamable}}),
	},
	"cline": {
		files:   []place{servers("~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "json", "mcpServers")},
		desktop: true, asks: true, hands: few,
		entry: plain(map[string][]string{"": {sse}, "sse": {sse}, "streamableHttp": {streamable}}),
	},
	"continue": {
		files:   []place{{scope: "user", path: "~/.continue/config.yaml", format: "yaml", key: []string{"mcpServers"}, list: true}},
		desktop: true, asks: true, hands: few,
		entry: plain(map[string][]string{"sse": {sse}, "streamable-http": {streamable}}),
	},
	"codex": {
		files: []place{ofProject(".codex/config.toml", "toml", "mcp_servers"), servers("~/.codex/config.toml", "toml", "mcp_servers")},
		hands: func(name string) bool {
			return slices.Contains([]string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}, name)
		},
		waits: 10 * time.Second,
		entry: codex,
	},
	"gemini-cli": {
		files: []place{ofProject(".gemini/settings.json", "commented", "mcpServers"), servers("~/.gemini/settings.json", "commented", "mcpServers")},
		hands: func(name string) bool {
			return !regexp.MustCompile(`(?i)TOKEN|SECRET|KEY|AUTH|PASSWORD|CREDENTIAL`).MatchString(name)
		},
		refers: regexp.MustCompile(`\$\{(\w+)\}|\$(\w+)`),
		entry:  gemini,
	},
	"goose": {
		files: []place{servers("~/.config/goose/config.yaml", "yaml", "extensions")},
		entry: goose,
	},
	"lm-studio": {
		files: []place{servers("~/.lmstudio/mcp.json", "json", "mcpServers")}, desktop: true,
		entry: plain(map[string][]string{"": {streamable}}),
	},
	"junie": {
		files:   []place{ofProject(".junie/mcp/mcp.json", "json", "mcpServers"), servers("~/.junie/mcp/mcp.json", "json", "mcpServers")},
		desktop: true,
		entry:   plain(map[string][]string{"": {streamable}}),
	},
	"kiro": {
		files:   []place{ofProject(".kiro/settings/mcp.json", "json", "mcpServers"), servers("~/.kiro/settings/mcp.json", "json", "mcpServers")},
		desktop: true, asks: true, refers: shellStyle,
		entry: plain(map[string][]string{"": {streamable, sse}}),
	},
	"opencode": {
		files:  []place{ofProject("opencode.json", "jsonc", "mcp"), servers("~/.config/opencode/opencode.json", "jsonc", "mcp")},
		refers: regexp.MustCompile(`\{env:(\w+)\}`),
		entry:  opencode,
	},
	"warp": {
		files:   []place{ofProject(".warp/.mcp.json", "json", "mcpServers"), servers("~/.warp/.mcp.json", "json", "mcpServers")},
		desktop: true,
		entry:   named(names{command: "command", args: "args", env: "env", cwd: "working_directory", url: "url"}, map[string][]string{"": {streamable, sse}}),
	},
	"librechat": {
		files:  []place{ofProject("librechat.yaml", "yaml", "mcpServers")},
		refers: shellStyle, kept: true, hands: few,
		entry: plain(map[string][]string{"": {sse}, "sse": {sse}, "streamable-http": {streamable}, "http": {streamable}}),
	},
}

// names are those of the parts of an entry.
type names struct{ command, args, env, cwd, url string }

// plain is the entry that most clients have. transports are what a type means for a
// URL; a type that is not there makes the client skip the entry.
func plain(transports map[string][]string) func(entry, *start) error {
	return named(names{command: "command", args: "args", env: "env", cwd: "cwd", url: "url"}, transports)
}

func named(n names, transports map[string][]string) func(entry, *start) error {
	return func(e entry, s *start) error {
		if url, err := e.text(n.url); err != nil || url != "" {
			if err != nil {
				return err
			}
			if e[n.command] != nil {
				return errors.New("a command and a URL: nobody knows which is meant")
			}
			if err := e.headers("headers", s); err != nil {
				return err
			}
			kind, err := e.text("type")
			if err != nil {
				return err
			}
			s.url, s.transports = url, transports[kind]
			if s.transports == nil {
				return fmt.Errorf("the client passes over a URL of type %q", kind)
			}
			return nil
		}
		if kind, err := e.text("type"); err != nil || !slices.Contains([]string{"", "stdio", "local"}, kind) {
			return errors.Join(err, fmt.Errorf("the client passes over a command of type %q", kind))
		}
		return e.command(n, s)
	}
}

// command reads the parts of an entry that start a program.
func (e entry) command(n names, s *start) error {
	program, err := e.text(n.command)
	if err == nil && program == "" {
		err = fmt.Errorf("no %s", n.command)
	}
	args, err2 := e.list(n.args)
	s.dir, _ = e.text(n.cwd)
	s.argv = append([]string{program}, args...)
	return errors.Join(err, err2, e.variables(n.env, s))
}

func codex(e entry, s *start) error {
	if url, err := e.text("url"); err != nil || url != "" {
		s.url, s.transports = url, []string{streamable}
		if err := e.headers("http_headers", s); err != nil {
			return err
		}
		bearer, err2 := e.text("bearer_token_env_var")
		if bearer != "" {
			token := variable(s.env, bearer)
			if token == "" {
				return errors.New("the variable of bearer_token_env_var is not set")
			}
			s.header.Set("Authorization", "Bearer "+token)
		}
		return errors.Join(err, err2)
	}
	if seconds, ok := e["startup_timeout_sec"].(int64); ok {
		s.waits = time.Duration(seconds) * time.Second
	}
	names, err := e.list("env_vars")
	if err != nil {
		return err
	}
	for _, name := range names {
		// s.env is still all that codex itself has.
		s.handed = append(s.handed, name+"="+variable(s.env, name))
	}
	return e.command(plainNames, s)
}

var plainNames = names{command: "command", args: "args", env: "env", cwd: "cwd"}

func gemini(e entry, s *start) error {
	for _, of := range []struct {
		name       string
		transports []string
	}{{"httpUrl", []string{streamable}}, {"url", []string{streamable, sse}}} {
		url, err := e.text(of.name)
		if err != nil {
			return err
		}
		if url == "" {
			continue
		}
		s.url, s.transports = url, of.transports
		if kind, _ := e.text("type"); kind == "sse" {
			s.transports = []string{sse}
		}
		return e.headers("headers", s)
	}
	return e.command(plainNames, s)
}

func goose(e entry, s *start) error {
	if on, ok := e["enabled"].(bool); ok && !on {
		return errors.New("it is switched off")
	}
	kind, err := e.text("type")
	if err != nil {
		return err
	}
	switch kind {
	case "stdio":
		return e.command(names{command: "cmd", args: "args", env: "envs"}, s)
	case "sse":
		s.transports = []string{sse}
	case "streamable_http":
		s.transports = []string{streamable}
	default:
		return fmt.Errorf("goose starts nothing of type %q", kind)
	}
	s.url, err = e.text("uri")
	if err == nil && s.url == "" {
		err = errors.New("no uri")
	}
	return errors.Join(err, e.headers("headers", s))
}

func opencode(e entry, s *start) error {
	kind, err := e.text("type")
	if err != nil {
		return err
	}
	switch kind {
	case "remote":
		s.transports = []string{streamable, sse}
		s.url, err = e.text("url")
		return errors.Join(err, e.headers("headers", s))
	case "local":
		s.argv, err = e.list("command")
		if err == nil && len(s.argv) == 0 {
			err = errors.New("no command")
		}
		s.dir, _ = e.text("cwd")
		return errors.Join(err, e.variables("environment", s))
	}
	return fmt.Errorf("opencode passes over a server of type %q", kind)
}

// start is the entry with its variables replaced, in the client's environment.
func (h *habit) start(m Machine, e entry) (*start, error) {
	s := &start{header: http.Header{}, waits: h.waits}
	if s.waits == 0 {
		s.waits = 30 * time.Second
	}
	own := m.Env
	switch {
	case h.asks:
		own = append(own[:len(own):len(own)], "PATH="+m.loginPath())
	case h.desktop:
		own = append(m.desktop(), "PATH="+desktopPath)
	}
	// Not the variables of the program that is judged.
	own = slices.DeleteFunc(slices.Clone(own), func(v string) bool { return strings.HasPrefix(v, "MCPMEND_") })
	s.env = own
	if err := h.entry(h.replace(e, own).(entry), s); err != nil {
		return nil, err
	}
	if h.hands != nil {
		s.env = slices.DeleteFunc(slices.Clone(own), func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return !h.hands(name)
		})
	}
	s.env = slices.Concat(s.env, s.handed, s.set)
	works := m.Project
	if h.desktop && !e.ofProject() {
		works = m.Home
	}
	if !filepath.IsAbs(s.dir) {
		s.dir = filepath.Join(works, s.dir)
	}
	return s, nil
}

// replace puts values in the place of references, as the client does.
func (h *habit) replace(v any, env []string) any {
	if h.refers == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return h.refers.ReplaceAllStringFunc(v, func(text string) string {
			m := h.refers.FindStringSubmatch(text)
			name, otherwise := m[1], ""
			if h.refers == shellStyle {
				otherwise = m[2]
			} else if name == "" {
				name = m[2]
			}
			if value := variable(env, name); value != "" {
				return value
			}
			if h.kept && !strings.Contains(text, ":-") {
				return text
			}
			return otherwise
		})
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = h.replace(v[i], env)
		}
		return out
	case map[string]any:
		return h.replaceAll(v, env)
	case entry:
		return entry(h.replaceAll(v, env))
	}
	return v
}

func (h *habit) replaceAll(v map[string]any, env []string) map[string]any {
	out := make(map[string]any, len(v))
	for name, value := range v {
		out[name] = h.replace(value, env)
	}
	return out
}
