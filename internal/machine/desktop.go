package machine

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Desktop knows the environment of a program that the desktop starts: a click, not
// a command. It is not that of a terminal, whose shell has read the user's start
// files. It may be used by several goroutines at once.
//
// Whoever starts such programs is asked: systemd's user manager on Linux, launchd
// on macOS, the user's profile on Windows. They speak for the user that we run as,
// so they are asked only if Home is that user's.
//
// Where nobody can be asked it is a guess from what we have ourselves, and it can be
// wrong in two ways. A variable that is kept and not there makes a dead server look
// healthy, and nobody will ever learn why. One that is left out and is there makes a
// healthy server look as if it missed a variable, which is then named with the
// reason, and no file is changed for it unasked. So what a person has set is left
// out, unless a file that logins read sets it; what makes the session, the language
// or the network work is kept, since without it every server would look broken for
// a reason of ours.
type Desktop struct {
	// Own is the environment that we were started with, as NAME=value.
	Own []string
	// Home is the user's home folder; "" asks the operating system.
	Home string
	// OS is the operating system; "" is the one we run on.
	OS OS
	// Root stands before absolute folders such as /etc; "" is the real root.
	Root string
	// Timeout bounds the asking; 0 is half a second.
	Timeout time.Duration

	// asks is the program to ask in place of the system's, for tests.
	asks string

	once sync.Once
	list []string
}

// Environ is what such a program has, as NAME=value. It is found out once.
func (d *Desktop) Environ() []string {
	d.once.Do(func() {
		if d.list = d.ask(); d.list == nil {
			d.list = d.Guess()
		}
	})
	return slices.Clone(d.list)
}

const desktopLimit = 500 * time.Millisecond

// ask returns nil if there is nobody who knows.
func (d *Desktop) ask() []string {
	if d.OS.orOurs() != OS(runtime.GOOS) || d.asks == "" && !d.isOurs() {
		return nil
	}
	limit := d.Timeout
	if limit <= 0 {
		limit = desktopLimit
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	switch d.OS.orOurs() {
	case "linux":
		return d.askSystemd(ctx)
	case "darwin":
		return d.askLaunchd(ctx)
	case windows:
		return profileEnviron()
	}
	return nil
}

func (d *Desktop) isOurs() bool {
	home := d.home()
	u, err := user.Current()
	return err == nil && u.HomeDir != "" && (home == "" || filepath.Clean(home) == filepath.Clean(u.HomeDir))
}

// askSystemd asks the manager that GNOME, Plasma and others hand the environment of
// the session to. One that knows of no display has not been told, or there is no
// session: it runs on servers, too.
func (d *Desktop) askSystemd(ctx context.Context) []string {
	folder := d.getenv("XDG_RUNTIME_DIR")
	if folder == "" { // a client with a short list for its servers has started us
		folder = filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	}
	if _, err := os.Stat(filepath.Join(folder, "systemd", "private")); err != nil {
		return nil
	}
	answer := d.run(ctx, []string{"/usr/bin/systemctl", "/bin/systemctl", "/run/current-system/sw/bin/systemctl"},
		[]string{"XDG_RUNTIME_DIR=" + folder, "DBUS_SESSION_BUS_ADDRESS=" + d.getenv("DBUS_SESSION_BUS_ADDRESS"), "LC_ALL=C"},
		"--user", "show-environment")
	var list []string
	shown := false
	for line := range strings.Lines(string(answer)) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "=")
		if !ok || name == "" {
			continue
		}
		shown = shown || name == "DISPLAY" || name == "WAYLAND_DISPLAY"
		list = append(list, name+"="+dollarUnquoted(value))
	}
	if !shown {
		return nil
	}
	return list
}

// dollarUnquoted undoes $'…', in which systemctl writes what is special to a shell.
func dollarUnquoted(value string) string {
	inner, ok := strings.CutPrefix(value, "$'")
	if !ok || !strings.HasSuffix(inner, "'") {
		return value
	}
	// The same as in Go, but for the quote itself.
	inner = strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `\'`, "'")
	plain, err := strconv.Unquote(`"` + strings.ReplaceAll(inner, `"`, `\"`) + `"`)
	if err != nil {
		return inner
	}
	return plain
}

// askLaunchd adds to the guess what launchd has for apps, asking for each of our
// variables. That launchctl can also list them all is said in no manual.
func (d *Desktop) askLaunchd(ctx context.Context) []string {
	var mutex sync.Mutex
	var wait sync.WaitGroup
	turns := make(chan struct{}, 8)
	list := d.Guess()
	kept := make(map[string]bool)
	for _, v := range list {
		name, _, _ := strings.Cut(v, "=")
		kept[name] = true
	}
	for _, v := range d.Own {
		name, _, _ := strings.Cut(v, "=")
		if name != "PATH" && kept[name] {
			continue
		}
		wait.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			value := strings.TrimSuffix(string(d.run(ctx, []string{"/bin/launchctl"}, nil, "getenv", name)), "\n")
			if value == "" {
				return // apps do not have it, or nobody answers
			}
			mutex.Lock()
			defer mutex.Unlock()
			list = append(list, name+"="+value) // the last of a name counts
		})
	}
	wait.Wait()
	return list
}

// run asks a program and returns what it printed, nil if it failed. The program is
// the system's own and never one that PATH leads to.
func (d *Desktop) run(ctx context.Context, programs, env []string, args ...string) []byte {
	if d.asks != "" {
		programs = []string{d.asks}
	}
	for _, program := range programs {
		if executable(program, d.OS) != nil {
			continue
		}
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(env, "HOME="+d.home())
		cmd.WaitDelay = 100 * time.Millisecond
		var out bytes.Buffer
		cmd.Stdout = &out
		if cmd.Run() != nil {
			return nil
		}
		return out.Bytes()
	}
	return nil
}

// sessionNames are set by a session, or make language and network work.
var sessionNames = map[OS]func() *regexp.Regexp{
	"darwin": pattern(`^(HOME|USER|LOGNAME|SHELL|TMPDIR|SSH_AUTH_SOCK|__CF_USER_TEXT_ENCODING|XPC_\w+|(?i:(all|ftp|https?|no)_proxy))$`),
	"": pattern(`^(HOME|USER|LOGNAME|SHELL|TMPDIR|TMP|TEMP|TZ|LANG|LANGUAGE|LC_\w+|XDG_\w+` +
		`|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_SESSION_BUS_ADDRESS|SSH_AUTH_SOCK|SSH_AGENT_PID|DESKTOP_SESSION` +
		`|GNOME_\w+|KDE_\w+|GTK_\w+|QT_\w+|(?i:(all|ftp|https?|no)_proxy)` +
		`|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NIX_\w+|LD_LIBRARY_PATH)$`),
}

// Guess is what Environ is where nobody can be asked: what such a program has at
// least, and what files that logins read give it.
func (d *Desktop) Guess() []string {
	if d.OS.IsWindows() {
		return slices.Clone(d.Own) // both begin with the same
	}
	names, ok := sessionNames[d.OS.orOurs()]
	var atLogin map[string]bool
	if !ok {
		names, atLogin = sessionNames[""], d.setAtLogin()
	}
	isSession := names().MatchString
	var list []string
	for _, v := range d.Own {
		name, _, _ := strings.Cut(v, "=")
		if name != "PATH" && (isSession(name) || atLogin[name]) {
			list = append(list, v)
		}
	}
	return append(list, "PATH="+d.OS.GUIPath())
}

// GUIPath is the PATH that an application started from the desktop gets: not the
// one of a terminal, which is why a program may be found in one and not in the
// other. On Windows both are the same, and this is "".
func (o OS) GUIPath() string {
	switch o.orOurs() {
	case windows:
		return ""
	case "darwin":
		return "/usr/bin:/bin:/usr/sbin:/sbin"
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/games:/snap/bin"
}

// loginFiles are read when a person logs in at a display, by some display managers
// at least. What a shell reads when it is interactive is not among them.
var loginFiles = []string{
	"/etc/environment", "/etc/profile", "/etc/profile.d/*.sh", "/etc/environment.d/*.conf",
	"~/.profile", "~/.xprofile", "~/.xsessionrc", "~/.pam_environment", "~/.config/environment.d/*.conf", "~/.config/plasma-workspace/env/*.sh",
}

var assignment = pattern(`(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)(?:=|[ \t]+DEFAULT=)`)

// setAtLogin are the names of variables that such a file sets. Their values are not
// looked at: ours came from there.
func (d *Desktop) setAtLogin() map[string]bool {
	names := make(map[string]bool)
	for _, pattern := range loginFiles {
		files, _ := filepath.Glob(located(pattern, d.home(), d.Root))
		for _, file := range files[:min(len(files), 100)] {
			data, err := ReadPlain(file, maxDotenv)
			if err != nil {
				continue
			}
			for _, m := range assignment().FindAllSubmatch(data, -1) {
				names[string(m[1])] = true
			}
		}
	}
	return names
}

func (d *Desktop) home() string { return homeOr(d.Home) }

func (d *Desktop) getenv(name string) string {
	for i := len(d.Own) - 1; i >= 0; i-- {
		if n, value, _ := strings.Cut(d.Own[i], "="); n == name {
			return value
		}
	}
	return ""
}
