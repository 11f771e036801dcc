package doctor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// A healing that moves a server writes two files. It is killed before each step of
// each write, as a power button would, and the next one finds every file whole and
// the server in at least one of them.
func TestBeingKilledAtAnyWriteLeavesOldOrNew(t *testing.T) {
	if os.Getenv("DOCTOR_KILL_HOME") != "" {
		killedHealer(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const right, wrong = `{"numStartups": 3}`, `{"theme": "dark", "mcpServers": {"a": {"command": "npx"}}}`
	kills := 0
	seen := make(map[string]bool)
	for at := 0; ; at++ {
		c := newClinic(t, "claude-code", right)
		wrongPath := filepath.Join(c.system.Home, ".claude", "settings.json")
		c.put(wrongPath, wrong)
		child := exec.Command(self, "-test.run=^TestBeingKilledAtAnyWriteLeavesOldOrNew$")
		child.Env = append(os.Environ(), "DOCTOR_KILL_HOME="+c.system.Home, "DOCTOR_KILL_AT="+strconv.Itoa(at))
		out, err := child.CombinedOutput()
		if bytes.Contains(out, []byte("FAIL")) {
			t.Fatalf("step %d: %s", at, out)
		}
		left, err2 := os.ReadFile(wrongPath)
		if err2 != nil {
			t.Fatal(err2)
		}
		now := c.content()
		newRight, newLeft := strings.Contains(now, `"npx"`), !strings.Contains(string(left), `"npx"`)
		if !newRight && now != right || !newLeft && string(left) != wrong {
			t.Errorf("step %d: half a file:\n%s\n%s", at, now, left)
		}
		if newLeft && !newRight {
			t.Errorf("step %d: the server is in neither file", at)
		}
		seen[strconv.FormatBool(newRight)+strconv.FormatBool(newLeft)] = true
		wantHistory(t, at, c.store, map[string]bool{c.path: newRight, wrongPath: newLeft})
		if err == nil {
			break
		}
		kills++
	}
	if kills < 14 || len(seen) != 3 {
		t.Errorf("killed %d times and saw the states %v; want 14 or more, and old, between, new", kills, seen)
	}
}

// wantHistory: a change is told of if and only if it was made.
func wantHistory(t *testing.T, at int, s *clientconfig.Store, made map[string]bool) {
	t.Helper()
	history, err := s.History()
	if err != nil {
		t.Fatal(err)
	}
	done := make(map[string]bool)
	for _, c := range history {
		done[c.Path] = done[c.Path] || c.Done
	}
	for path, was := range made {
		if done[path] != was {
			t.Errorf("step %d: %s was changed: %t; the history says %t", at, path, was, done[path])
		}
	}
}

// killedHealer is the process that dies.
func killedHealer(t *testing.T) {
	at, err := strconv.Atoi(os.Getenv("DOCTOR_KILL_AT"))
	if err != nil {
		t.Fatal(err)
	}
	c := newClinic(t, "claude-code", "")
	home := os.Getenv("DOCTOR_KILL_HOME")
	c.system.Home, c.sources.home = home, home
	c.sources.system = c.system
	c.path = filepath.Join(home, ".claude.json")
	c.Allow = func(*Case, Fix) bool { return true }
	c.store = &clientconfig.Store{Dir: filepath.Join(home, "state"), Step: func(string) error {
		if at--; at < 0 {
			p, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			_ = p.Kill()
			select {} // until the signal arrives
		}
		return nil
	}}
	if h := c.healed("a"); !h.Fixed {
		t.Fatal(h.Person)
	}
}
