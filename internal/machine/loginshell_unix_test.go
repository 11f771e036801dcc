//go:build unix

package machine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// login is a user with these start files and a real shell.
func login(t *testing.T, shell string, files map[string]string) *Programs {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("%s is not installed", shell)
	}
	p := &Programs{Home: t.TempDir(), Shell: path, Getenv: env(nil), Timeout: 20 * time.Second}
	plant(t, p.Home, files)
	return p
}

func TestTheLoginShellSaysItsPath(t *testing.T) {
	const noise = "echo welcome; echo PATH=/wrong; printf 'no newline'; echo to stderr >&2\n"
	for name, test := range map[string]struct {
		shell string
		files map[string]string
	}{
		"sh":           {"sh", map[string]string{".profile": "PATH=/from/rc:$PATH; export PATH\n"}},
		"bash":         {"bash", map[string]string{".bash_profile": ". ~/.bashrc\n", ".bashrc": "export PATH=/from/rc:$PATH\n"}},
		"zsh":          {"zsh", map[string]string{".zshrc": "export PATH=/from/rc:$PATH\n"}},
		"fish":         {"fish", map[string]string{".config/fish/config.fish": "set -gx PATH /from/rc $PATH\n"}},
		"zsh, noise":   {"zsh", map[string]string{".zshenv": noise, ".zprofile": "export PATH=/from/rc:$PATH\n", ".zshrc": "PROMPT='%~ '; read answer\n"}},
		"fish, noise":  {"fish", map[string]string{".config/fish/config.fish": noise + "set -gx PATH /from/rc $PATH; read answer\n"}},
		"noise before": {"bash", map[string]string{".bash_profile": noise + "export PATH=/from/rc:$PATH\n"}},
		"noise after":  {"bash", map[string]string{".bash_profile": "export PATH=/from/rc:$PATH\ntrap 'echo bye; echo PATH=/wrong' EXIT\n"}},
		"much noise":   {"bash", map[string]string{".bash_profile": "head -c 300000 /dev/zero | tr '\\0' x; export PATH=/from/rc:$PATH\n"}},
		"xtrace":       {"bash", map[string]string{".bash_profile": "set -x; export PATH=/from/rc:$PATH\n"}},
		"interactive only": {"bash", map[string]string{".bash_profile": ". ~/.bashrc\n",
			".bashrc": "case $- in *i*) ;; *) return;; esac\nexport PATH=/from/rc:$PATH\n"}},
		"reads stdin":     {"bash", map[string]string{".bash_profile": "read answer; export PATH=/from/rc:$PATH\n"}},
		"PATH is useless": {"bash", map[string]string{".bash_profile": "export PATH=/from/rc:/nowhere\n"}},
		"starts another shell when interactive": {"bash", map[string]string{
			".bash_profile": "export PATH=/from/rc:$PATH\ncase $- in *i*) exec cat;; esac\n"}},
		"leaves something running": {"bash", map[string]string{".bash_profile": "sleep 600 & echo $! >~/left; export PATH=/from/rc:$PATH\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := login(t, test.shell, test.files)
			path, err := p.LoginPath(t.Context())
			if err != nil || !strings.HasPrefix(path, "/from/rc:") || strings.Contains(path, "\n") {
				t.Errorf("LoginPath() = %q, %v", path, err)
			}
			if left, err := os.ReadFile(filepath.Join(p.Home, "left")); err == nil {
				waitUntilGone(t, strings.TrimSpace(string(left)))
			}
		})
	}
}

// waitUntilGone fails if a process is still there after a while.
func waitUntilGone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		t.Fatalf("%q is no process", pid)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		err := syscall.Kill(n, 0)
		if stat, readErr := os.ReadFile("/proc/" + pid + "/stat"); readErr == nil && strings.Contains(string(stat), ") Z ") {
			return // dead, and waiting for whoever adopted it
		}
		if errors.Is(err, syscall.ESRCH) {
			return
		}
	}
	t.Errorf("process %s is still running", pid)
}

func TestAShellThatHangsIsEnded(t *testing.T) {
	p := login(t, "bash", map[string]string{".bash_profile": "echo $$ >>~/pids; sleep 600 & echo $! >>~/pids; wait\n"})
	p.Timeout = 1500 * time.Millisecond
	begin := time.Now()
	path, err := p.LoginPath(t.Context())
	if !errors.Is(err, errNoLoginPath) {
		t.Errorf("LoginPath() = %q, %v", path, err)
	}
	if took := time.Since(begin); took > p.Timeout+5*time.Second {
		t.Errorf("it took %v", took)
	}
	pids, err := os.ReadFile(filepath.Join(p.Home, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		waitUntilGone(t, pid)
	}
}

func TestAShellThatDoesNotAnswerIsAnError(t *testing.T) {
	for name, p := range map[string]*Programs{
		"exits":         login(t, "bash", map[string]string{".bash_profile": "exit 3\n"}),
		"is no shell":   {Shell: "/bin/false", Home: t.TempDir(), Getenv: env(nil)},
		"is not there":  {Shell: "/nonexistent/zsh", Home: t.TempDir(), Getenv: env(nil)},
		"is no path":    {Shell: "bash", Home: t.TempDir(), Getenv: env(nil)},
		"is in $SHELL":  {Home: t.TempDir(), Getenv: env(map[string]string{"SHELL": "/bin/false"})},
		"is a folder":   {Shell: "/bin", Home: t.TempDir(), Getenv: env(nil)},
		"has no folder": {Shell: "/bin/sh", Home: "/nonexistent", Getenv: env(nil)},
	} {
		if path, err := p.LoginPath(t.Context()); !errors.Is(err, errNoLoginPath) {
			t.Errorf("a shell that %s: %q, %v", name, path, err)
		}
		// What is not known from the shell is found all the same.
		p.Root = t.TempDir()
		plant(t, p.Root, map[string]string{"usr/local/bin/npx*": ""})
		if got := p.Find(t.Context(), "npx"); len(got) != 1 {
			t.Errorf("a shell that %s: found %+v", name, got)
		}
	}
}

func TestTheShellIsAskedOnce(t *testing.T) {
	p := login(t, "bash", map[string]string{".bash_profile": "echo x >>~/count\n"})
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := p.LoginPath(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	count, err := os.ReadFile(filepath.Join(p.Home, "count"))
	if err != nil || string(count) != "x\n" {
		t.Errorf("the start file ran %q times, %v", count, err)
	}
}

func TestWhoGivesUpDoesNotSpoilTheAnswer(t *testing.T) {
	p := login(t, "bash", map[string]string{".bash_profile": "export PATH=/from/rc:$PATH\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.LoginPath(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if path, err := p.LoginPath(t.Context()); err != nil || !strings.HasPrefix(path, "/from/rc:") {
		t.Errorf("LoginPath() = %q, %v", path, err)
	}
}

// Our own environment is full of other people's secrets and of PATHs that a login
// would not have.
func TestTheShellDoesNotSeeOurEnvironment(t *testing.T) {
	t.Setenv("MCPMEND_CANARY", "canary")
	p := login(t, "bash", map[string]string{".bash_profile": "env >~/env\n"})
	if _, err := p.LoginPath(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen, err := os.ReadFile(filepath.Join(p.Home, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(seen), "canary") || !strings.Contains(string(seen), "HOME="+p.Home) {
		t.Errorf("the shell sees:\n%s", seen)
	}
}

func TestFindPrefersTheLoginShell(t *testing.T) {
	p := login(t, "bash", map[string]string{
		".bash_profile": "export PATH=relative:$HOME/mine:$PATH\n", "mine/npx*": "", "relative/npx*": "",
		".nvm/versions/node/v22.0.0/bin/npx*": "",
	})
	p.Root = t.TempDir()
	got := p.Find(t.Context(), "npx")
	if len(got) < 2 || got[0].Path != filepath.Join(p.Home, "mine/npx") || got[0].From != "login shell" {
		t.Fatalf("found %+v", got)
	}
	if last := got[len(got)-1]; last.From != "nvm" || last.Version != "22.0.0" {
		t.Errorf("found %+v", got)
	}
}
