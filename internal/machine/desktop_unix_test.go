//go:build unix

package machine

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asked is a desktop whose manager is a real program with this script.
func asked(t *testing.T, script string, own ...string) *Desktop {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"run/systemd/private": "", "manager": "#!/bin/sh\n" + script})
	if err := os.Chmod(filepath.Join(dir, "manager"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Desktop{
		Own: append(own, "XDG_RUNTIME_DIR="+filepath.Join(dir, "run")), Home: dir, Root: dir,
		Timeout: 20 * time.Second, asks: filepath.Join(dir, "manager"),
	}
}

func names(list []string) []string {
	var out []string
	for _, v := range list {
		name, _, _ := strings.Cut(v, "=")
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func TestTheManagerOfTheSessionSaysWhatItsProgramsGet(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("systemd is of Linux")
	}
	d := asked(t, `[ "$*" = "--user show-environment" ] && [ -d "$XDG_RUNTIME_DIR" ] || exit 1
cat <<'END'
PATH=/home/u/.local/bin:/usr/bin
DISPLAY=:0
GREETING=$'it\'s "two words"\n\\ and \t'
SHARED=from the manager
END
`, "MY_TOKEN=hunter2", "SHARED=from the shell")
	want := []string{"PATH=/home/u/.local/bin:/usr/bin", "DISPLAY=:0", "GREETING=it's \"two words\"\n\\ and \t", "SHARED=from the manager"}
	if diff := cmp.Diff(want, d.Environ()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestAManagerThatDoesNotKnowTheSessionIsNotBelieved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("systemd is of Linux")
	}
	for name, script := range map[string]string{
		"no display": "echo PATH=/usr/bin; echo MY_TOKEN=theirs",
		"fails":      "echo DISPLAY=:0; exit 1",
		"hangs":      "echo DISPLAY=:0; exec sleep 600",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := asked(t, script, "MY_TOKEN=hunter2", "LANG=C")
			if name == "hangs" {
				d.Timeout = 50 * time.Millisecond
			}
			began := time.Now()
			if diff := cmp.Diff([]string{"LANG", "PATH", "XDG_RUNTIME_DIR"}, names(d.Environ())); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// Whoever examines another home, as most tests do, must not be answered for this one.
func TestTheManagerSpeaksForItsOwnUser(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	another := t.TempDir()
	for _, test := range []struct {
		variable, home string
		want           bool
	}{
		{u.HomeDir, "", true},
		{"", "", true}, // nobody says anything else
		{another, "", false},
		{another, u.HomeDir, true},
		{another, u.HomeDir + "/", true},
		{u.HomeDir, another, false},
	} {
		t.Setenv("HOME", test.variable)
		if got := (&Desktop{Home: test.home}).isOurs(); got != test.want {
			t.Errorf("asked for the home %q, with HOME=%s: %v, want %v", test.home, test.variable, got, test.want)
		}
	}
}

func TestLaunchdIsAskedForEachVariable(t *testing.T) {
	d := asked(t, `[ "$1" = getenv ] || exit 1
case $2 in FOR_APPS) echo value;; PATH) echo /opt/bin:/usr/bin;; esac
`, "HOME=/Users/u", "MY_TOKEN=hunter2", "FOR_APPS=value", "PATH=/Users/u/.nvm/bin")
	d.OS = "darwin"
	got := d.askLaunchd(t.Context())
	if diff := cmp.Diff([]string{"FOR_APPS", "HOME", "PATH", "PATH"}, names(got)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if i := slices.Index(got, "PATH=/opt/bin:/usr/bin"); i < slices.Index(got, "PATH="+OS("darwin").GUIPath()) {
		t.Errorf("launchd's PATH does not count: %v", got)
	}
	d.asks = filepath.Join(d.Home, "nobody")
	if diff := cmp.Diff(d.Guess(), d.askLaunchd(t.Context())); diff != "" {
		t.Errorf("without launchctl, beside the guess (-want +got):\n%s", diff)
	}
}

// A Desktop that is told of no home looks at that of this process.
func TestTheHomeNeedNotBeTold(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	plant(t, home, map[string]string{".profile": "export FROM_PROFILE=1\n"})
	d := &Desktop{Own: []string{"FROM_PROFILE=1"}, Root: t.TempDir(), OS: "linux"}
	if diff := cmp.Diff([]string{"FROM_PROFILE", "PATH"}, names(d.Guess())); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestWhatALoginSetsIsLikelyToBeThere(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	plant(t, home, map[string]string{
		".profile":                     "umask 022\nexport FROM_PROFILE=1\nif true; then\n\tINDENTED=1; export INDENTED\nfi\n",
		".pam_environment":             "FROM_PAM DEFAULT=1\n",
		".config/environment.d/a.conf": "FROM_ENVIRONMENT_D=1\n",
		".bashrc":                      "export ONLY_IN_BASHRC=1\n",
	})
	plant(t, root, map[string]string{"etc/environment": "FROM_ETC=\"1\"\n# COMMENTED=1\n"})
	own := []string{
		"FROM_PROFILE=1", "INDENTED=1", "FROM_PAM=1", "FROM_ENVIRONMENT_D=1", "FROM_ETC=1", "ONLY_IN_BASHRC=1", "COMMENTED=1",
		"LANG=C", "HTTPS_PROXY=p", "no_proxy=n", "SSH_AUTH_SOCK=s", "DBUS_SESSION_BUS_ADDRESS=b", "WAYLAND_DISPLAY=w",
		"NODE_EXTRA_CA_CERTS=c", "PATH=/home/u/.nvm/bin", "SHLVL=1", "VIRTUAL_ENV=/v", "TERM_PROGRAM=vscode", "XDG=1",
	}
	d := &Desktop{Own: own, Home: home, Root: root, OS: "linux"}
	want := []string{
		"DBUS_SESSION_BUS_ADDRESS", "FROM_ENVIRONMENT_D", "FROM_ETC", "FROM_PAM", "FROM_PROFILE", "HTTPS_PROXY", "INDENTED", "LANG",
		"NODE_EXTRA_CA_CERTS", "PATH", "SSH_AUTH_SOCK", "WAYLAND_DISPLAY", "no_proxy",
	}
	got := d.Guess()
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("on Linux (-want +got):\n%s", diff)
	}
	if !slices.Contains(got, "PATH="+OS("linux").GUIPath()) {
		t.Errorf("not the PATH of the desktop: %v", got)
	}
	d.OS = "darwin" // whose apps know nothing of such files, and of no language
	if diff := cmp.Diff([]string{"HTTPS_PROXY", "PATH", "SSH_AUTH_SOCK", "no_proxy"}, names(d.Guess())); diff != "" {
		t.Errorf("on macOS (-want +got):\n%s", diff)
	}
	d.OS = "windows"
	if diff := cmp.Diff(own, d.Guess()); diff != "" {
		t.Errorf("on Windows (-want +got):\n%s", diff)
	}
}
