package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcpmend/mcpmend/internal/cli"
)

// terminal returns the two ends of one: what a person sees and types, and what a
// program has as its standard files.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 110}); err != nil {
		t.Fatal(err)
	}
	return person, program
}

// atTerminal runs the program on a terminal where somebody types, and returns all
// that could be seen there.
func atTerminal(t *testing.T, home string, env []string, typed string, args ...string) (screen string, code int) {
	t.Helper()
	person, program := terminal(t)
	if _, err := io.WriteString(person, typed); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string)
	go func() {
		all, err := io.ReadAll(person)
		if err != nil && !errors.Is(err, syscall.EIO) { // how Linux says that the other end was closed
			all = append(all, err.Error()...)
		}
		seen <- string(all)
	}()
	environ := append(os.Environ(), "HOME="+home, "TERM=xterm-256color", "NO_COLOR=", "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
	mcpmend := exec.Command("mcpmend", args...)
	mcpmend.Env = append(environ, env...) // the last of two counts
	mcpmend.Stdin, mcpmend.Stdout, mcpmend.Stderr = program, program, program
	err := mcpmend.Run()
	program.Close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return <-seen, mcpmend.ProcessState.ExitCode()
}

func wantSeen(t *testing.T, screen, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(screen) {
		t.Errorf("%q was not seen in %q", pattern, screen)
	}
}

func wantUnseen(t *testing.T, screen, pattern string) {
	t.Helper()
	if m := regexp.MustCompile(pattern).FindString(screen); m != "" {
		t.Errorf("%q was seen in %q", m, screen)
	}
}

func TestATerminalShowsProgressAndTakesItAway(t *testing.T) {
	home, _ := homeWith(t, twoServers)
	screen, code := atTerminal(t, home, nil, "", "check")
	if code != cli.Failed {
		t.Errorf("exit code %d", code)
	}
	wantSeen(t, screen, `^.*checking · 0 of 2 done · waiting for memory, weather`)
	// Both lines that came while we worked are gone before the verdict stands there.
	wantSeen(t, screen, `\x1b\[2A\x1b\[J\x1b\[1m2 servers in 1 client · 1 needs attention`)
	wantSeen(t, screen, `\x1b\[31m✗`)
}

func TestADumbTerminalStaysStill(t *testing.T) {
	home, _ := homeWith(t, twoServers)
	screen, _ := atTerminal(t, home, []string{"TERM=dumb"}, "", "check")
	wantUnseen(t, screen, `\x1b|checking|✗`)
	wantSeen(t, screen, `(?m)^x weather `)
}

func TestWhoSaysNoIsObeyed(t *testing.T) {
	for _, typed := range []string{"n\n", "\n", "what?\n", "\x04"} {
		home, file := homeWith(t, twoServers)
		screen, code := atTerminal(t, home, nil, typed, "remove", "memory")
		if code != cli.Pending {
			t.Errorf("%q: exit code %d", typed, code)
		}
		wantSeen(t, screen, `Remove memory from ~/.claude.json\? \[y/N\]`)
		if now, _ := os.ReadFile(file); string(now) != twoServers {
			t.Errorf("%q: the file is now %s", typed, now)
		}
	}
}

func TestWhoSaysYesIsServed(t *testing.T) {
	home, file := homeWith(t, twoServers)
	screen, code := atTerminal(t, home, nil, "y\n", "remove", "memory")
	if code != cli.OK {
		t.Errorf("exit code %d", code)
	}
	wantSeen(t, screen, `Removed\. Undo: mcpmend undo [0-9a-f]+`)
	if now, _ := os.ReadFile(file); strings.Contains(string(now), "memory") {
		t.Errorf("the file is now %s", now)
	}
}

func TestNobodyIsAskedWhoDoesNotWantToBe(t *testing.T) {
	for _, how := range []struct{ env, flag string }{{"", "--no-input"}, {"", "--json"}, {"MCPMEND_NO_INPUT=1", "--ascii"}} {
		home, file := homeWith(t, twoServers)
		screen, code := atTerminal(t, home, []string{how.env}, "y\n", "remove", "memory", how.flag)
		if code != cli.Pending {
			t.Errorf("%+v: exit code %d", how, code)
		}
		wantUnseen(t, screen, `\[y/N\]`)
		if now, _ := os.ReadFile(file); string(now) != twoServers {
			t.Errorf("%+v: the file is now %s", how, now)
		}
	}
}

const noisyServer = `{"mcpServers": {"notes": {"command": "demo", "args": ["-noise"]}}}
`

func TestAFixIsShownBeforeItIsAskedAbout(t *testing.T) {
	home, file := homeWith(t, noisyServer)
	screen, _ := atTerminal(t, home, nil, "n\n", "heal", "notes", "--no-color")
	wantSeen(t, screen, `(?s)\+\{"mcpServers": \{"notes": \{"command": ".*", "args": \["run", "--", "demo", "-noise"\]\}\}\}.*Do this\? \[y/N\]`)
	wantSeen(t, screen, `Healed 0 of 1`)
	if now, _ := os.ReadFile(file); string(now) != noisyServer {
		t.Errorf("the file is now %s", now)
	}

	screen, code := atTerminal(t, home, nil, "y\n", "heal", "notes", "--no-color")
	if code != cli.OK {
		t.Errorf("exit code %d", code)
	}
	wantSeen(t, screen, `Healed 1 of 1`)
	if n := strings.Count(screen, `"args": ["run", "--", "demo", "-noise"]`); n != 1 {
		t.Errorf("the change was shown %d times, want once, when it was asked about:\n%s", n, screen)
	}
	wantSeen(t, screen, `Undo: mcpmend undo [0-9a-f]+`)
	if now, _ := os.ReadFile(file); !strings.Contains(string(now), `"run", "--", "demo"`) {
		t.Errorf("the file is now %s", now)
	}
}

func TestAProjectsCommandIsAskedAbout(t *testing.T) {
	home, _ := homeWith(t, `{}`)
	if err := os.WriteFile(".mcp.json", []byte(`{"mcpServers": {"helper": {"command": "demo"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	screen, _ := atTerminal(t, home, nil, "n\n", "check")
	wantSeen(t, screen, `Start it, now and from now on\? \[y/N\]`)
	wantSeen(t, screen, `waits for your approval`)
	screen, _ = atTerminal(t, home, nil, "y\n", "check")
	wantSeen(t, screen, `all healthy`)
	screen, _ = atTerminal(t, home, nil, "", "check")
	wantUnseen(t, screen, `\[y/N\]`)
	wantSeen(t, screen, `all healthy`)
}

func TestAQuestionCanBeInterrupted(t *testing.T) {
	home, file := homeWith(t, `{"mcpServers": {"weather": {"command": "demo", "args": ["-need", "WEATHER_API_KEY"]}}}`)
	screen := interruptedAt(t, home, `\[y/N\] $`, "heal")
	wantSeen(t, screen, `Do this\? \[y/N\]`)
	wantSeen(t, screen, "interrupted")
	if now, err := os.ReadFile(file); err != nil || strings.Contains(string(now), "WEATHER_API_TOKEN") {
		t.Errorf("%v: the file holds %s", err, now)
	}
}

func TestWhoInterruptsKeepsWhatIsKnown(t *testing.T) {
	home, _ := homeWith(t, `{"mcpServers": {"memory": {"command": "demo"}, "slow": {"command": "demo", "args": ["-hang"]}}}`)
	screen := interruptedAt(t, home, `1 of 2 done · waiting for slow`, "check", "--timeout", "1m")
	wantSeen(t, screen, `✓.*memory.*healthy`)
	wantUnseen(t, screen, `\x1b\[J`) // nothing was taken away
	wantUnseen(t, screen, `✗.*slow`)
}

// interruptedAt runs the program on a terminal where somebody presses Ctrl-C when
// the pattern is seen, and returns all that could be seen there.
func interruptedAt(t *testing.T, home, pattern string, args ...string) string {
	t.Helper()
	person, program := terminal(t)
	c := exec.Command("mcpmend", args...)
	c.Env = append(os.Environ(), "HOME="+home, "WEATHER_API_TOKEN=canary-1234567", "TERM=xterm")
	c.Stdin, c.Stdout, c.Stderr = program, program, program
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	program.Close()
	var screen strings.Builder
	moment, pressed := regexp.MustCompile(pattern), false
	for piece := make([]byte, 4096); ; {
		n, err := person.Read(piece)
		screen.Write(piece[:n])
		if err != nil {
			break
		}
		if !pressed && moment.MatchString(screen.String()) {
			pressed = true
			if _, err := person.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != cli.Interrupted {
		t.Errorf("exit code %d\n%s", code, screen.String())
	}
	return screen.String()
}
