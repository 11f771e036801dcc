package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

func init() {
	roles["run"] = playRun
	roles["cycles"] = playCycles
	roles["regroups"] = playRegroups
	roles["prompts"] = playPrompts
	roles["notes interrupt"] = playNotesInterrupt
}

// playRun is mcpmend run in front of the command in the arguments.
func playRun(string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := Run(ctx, RunOptions{Command: os.Args[1:], Environ: os.Environ(), Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// playCycles starts and stops the command in the arguments a hundred times, two at a
// time, and writes what there was before and after.
func playCycles(note string) {
	reaper := upstream.NewReaper(true)
	cycle := func() {
		var sessions []*upstream.Session
		var servers []*upstream.Server
		for range 2 {
			server, err := upstream.New(upstream.Spec{Command: os.Args[1:], Env: os.Environ(), DieWithUs: true, Reaper: reaper})
			if err != nil {
				panic(err)
			}
			session := server.Open(upstream.Peer{Era: wire.Legacy, Message: func(m wire.Message) { m.Release() }})
			done := make(chan upstream.Outcome, 1)
			session.Do(&upstream.Call{
				Msg:  wire.NewRequest([]byte("1"), wire.MethodInitialize, fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}`, wire.LegacyVersion)),
				Done: func(o upstream.Outcome) { done <- o },
			})
			if o := <-done; o.Fault != nil {
				panic(o.Fault)
			}
			sessions, servers = append(sessions, session), append(servers, server)
		}
		for i, server := range servers {
			sessions[i].Close()
			if err := server.Close(context.Background()); err != nil {
				panic(err)
			}
		}
	}
	state := func() string {
		fds, _ := os.ReadDir("/proc/self/fd")
		return fmt.Sprintf("%d files, children %v", len(fds), childrenOf("self"))
	}
	cycle()
	before := state()
	for range 50 {
		cycle()
	}
	_ = os.WriteFile(note, []byte(before+"\n"+state()), 0o600)
	reaper.End()
	os.Exit(0)
}

// playRegroups leaves its process group, but not its session.
func playRegroups(note string) {
	_ = syscall.Setpgid(0, 0)
	writeNote(note, strconv.Itoa(os.Getpid()))
	select {}
}

// playPrompts asks its user something on the terminal before it serves.
func playPrompts(note string) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	_, _ = tty.WriteString("token? ")
	answer, _ := bufio.NewReader(tty).ReadString('\n')
	writeNote(note, answer)
}

func playNotesInterrupt(note string) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	atEnd = func() {
		<-interrupted
		writeNote(note, "interrupted")
	}
}

// writeNote writes a file that is never seen half written.
func writeNote(file, text string) {
	_ = os.WriteFile(file+".new", []byte(text), 0o600)
	_ = os.Rename(file+".new", file)
}

// A client is what stands before a mcpmend run of the test binary. Both belong to a
// shell, as on a real terminal, whose end would hang up on them.
type client struct {
	*exec.Cmd
	pid    int // of mcpmend
	in     io.WriteCloser
	out    *bufio.Reader
	person *os.File // the other side of its terminal, if it has one
}

// startRole starts the test binary in a role, with a controlling terminal or in a
// session without one.
func startRole(t *testing.T, terminal bool, role string, command ...string) *client {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const leader = `trap : INT; "$@"; code=$?; [ $code -lt 128 ] || exec sleep 600; exit $code`
	c := &client{Cmd: exec.Command("sh", append([]string{"-c", leader, "sh", self}, command...)...)}
	// With the race detector every end would take a second.
	c.Env = append(os.Environ(), playVar+"="+role, "GORACE=atexit_sleep_ms=0")
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if terminal {
		var program *os.File
		c.person, program = openTerminal(t)
		defer program.Close()
		c.ExtraFiles = []*os.File{program}
		c.SysProcAttr.Setctty, c.SysProcAttr.Ctty = true, 3
	}
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	until(t, "it runs", func() bool {
		for _, pid := range childrenOf(strconv.Itoa(c.Process.Pid)) {
			c.pid = pid
		}
		return c.pid != 0
	})
	return c
}

func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

func (c *client) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// greet introduces the client and waits for the answer.
func (c *client) greet(t *testing.T) {
	t.Helper()
	c.say(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	line, err := c.out.ReadString('\n')
	if err != nil || !strings.Contains(line, `"player"`) {
		t.Fatalf("initialize: %q, %v", line, err)
	}
}

// below are all processes that descend from one.
func below(pid int) []int {
	var all []int
	for _, child := range childrenOf(strconv.Itoa(pid)) {
		all = append(append(all, child), below(child)...)
	}
	return all
}

func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// guardianOf is the process that watches over one of ours, 0 if there is none.
func guardianOf(pid int) int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		line, _ := os.ReadFile(file)
		if strings.Contains(string(line), fmt.Sprintf("\x00mcpmend-guardian\x00%d\x00", pid)) {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return n
		}
	}
	return 0
}

// number waits for a note with the number of a process.
func number(t *testing.T, note string) int {
	t.Helper()
	var pid int
	until(t, filepath.Base(note)+" is written", func() bool {
		text, _ := os.ReadFile(note)
		n, _ := fmt.Sscan(string(text), &pid)
		return n == 1
	})
	t.Cleanup(func() {
		if lives(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

// eachPlace runs a test with a controlling terminal and without.
func eachPlace(t *testing.T, test func(t *testing.T, terminal bool)) {
	t.Run("on a terminal", func(t *testing.T) { test(t, true) })
	t.Run("without a terminal", func(t *testing.T) { test(t, false) })
}

// inRole is how a shell starts the test binary in a role; $1 is the binary.
func inRole(role string) string { return "env '" + playVar + "=" + role + `' "$1"` }

func shell(script string) []string {
	self, _ := os.Executable()
	return []string{"sh", "-c", script, "sh", self}
}

func TestNothingIsLeftWhenWeAreKilled(t *testing.T) {
	for _, server := range []struct{ how, role string }{
		{"the server stays", "stays"},
		{"the server leaves when its input ends", "good"},
	} {
		t.Run(server.how, func(t *testing.T) {
			eachPlace(t, func(t *testing.T, terminal bool) { killedBefore(t, terminal, server.role) })
		})
	}
}

// killedBefore kills mcpmend in front of a server that is the child of a shell, as with
// npx. One process has left its group, and some are being started all the time.
func killedBefore(t *testing.T, terminal bool, role string) {
	dir := t.TempDir()
	c := startRole(t, terminal, "run", shell(inRole("regroups="+dir+"/other")+` &
		while :; do /bin/true; done &
		`+inRole(role)+"; touch "+dir+"/next; true")...)
	c.greet(t)
	number(t, dir+"/other")
	started, guardian := below(c.pid), guardianOf(c.pid)
	for _, pid := range started {
		if p, err := os.FindProcess(pid); err == nil { // a handle; the number may be another's later
			t.Cleanup(func() { _ = p.Kill() })
		}
	}
	if len(started) < 4 {
		t.Errorf("%d processes, want the shells, the server and the other", len(started))
	}
	if slices.Contains(started, guardian) || guardian == 0 {
		t.Errorf("guardian %d, below us %v; want one that is not below us", guardian, started)
	}
	_ = syscall.Kill(c.pid, syscall.SIGKILL)
	killed := time.Now()
	until(t, "all are gone", func() bool { return !slices.ContainsFunc(append(started, guardian), lives) })
	if took := time.Since(killed); took > 3*time.Second {
		t.Errorf("took %v, want no more than 3 s", took)
	}
	if !terminal {
		until(t, "the group of the server is empty", func() bool { return syscall.Kill(-started[0], 0) != nil })
	}
	if _, err := os.Stat(dir + "/next"); err == nil && role == "stays" {
		t.Error("the shell went on to its next command")
	}
}

func TestOnlyWhatWasDetachedOutlivesAnOrderlyEnd(t *testing.T) {
	ends := map[string]func(*client){
		"the client leaves": func(c *client) { _ = c.in.Close() },
		"we are terminated": func(c *client) { _ = syscall.Kill(c.pid, syscall.SIGTERM) },
	}
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			eachPlace(t, func(t *testing.T, terminal bool) {
				dir := t.TempDir()
				t.Setenv("NOTES", dir)
				c := startRole(t, terminal, "run", shell(`
					sleeps='echo $$ >"$NOTES/$0.new"; mv "$NOTES/$0.new" "$NOTES/$0"; exec sleep 600'
					setsid sh -c "$sleeps" detached >/dev/null 2>&1 </dev/null &
					sh -c "$sleeps" attached >/dev/null 2>&1 </dev/null &
					(sh -c "$sleeps" orphan >/dev/null 2>&1 </dev/null &)
					`+inRole("regroups="+dir+"/regrouped")+` >/dev/null 2>&1 </dev/null &
					exec `+inRole("good"))...)
				c.greet(t)
				detached := number(t, dir+"/detached")
				var others []int
				for _, name := range []string{"attached", "orphan", "regrouped"} {
					others = append(others, number(t, dir+"/"+name))
				}
				guardian := guardianOf(c.pid)
				end(c)
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
				if !lives(detached) {
					t.Error("what was detached was ended")
				}
				for i, name := range []string{"attached", "orphan", "regrouped"} {
					if lives(others[i]) {
						t.Errorf("the %s process is still there", name)
					}
				}
				until(t, "the guardian has gone", func() bool { return !lives(guardian) })
			})
		})
	}
}

func TestAServerCanAskOnTheTerminal(t *testing.T) {
	note := t.TempDir() + "/answer"
	c := startRole(t, true, "run", shell(inRole("prompts="+note)+"; true")...)
	c.say(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	seen := make([]byte, 64)
	if n, err := c.person.Read(seen); err != nil || string(seen[:n]) != "token? " {
		t.Fatalf("on the terminal: %q, %v", seen[:n], err)
	}
	if _, err := c.person.WriteString("sesame\n"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() {
		line, _ := c.out.ReadString('\n')
		answered <- line
	}()
	select {
	case line := <-answered:
		if !strings.Contains(line, `"player"`) {
			t.Errorf("initialize: %q", line)
		}
	case <-time.After(20 * time.Second):
		t.Error("the server does not answer")
	}
	if answer, _ := os.ReadFile(note); string(answer) != "sesame\n" {
		t.Errorf("the server read %q from its user", answer)
	}
}

func TestCtrlCReachesTheServer(t *testing.T) {
	note := t.TempDir() + "/note"
	c := startRole(t, true, "run", shell("exec "+inRole("notes interrupt="+note))...)
	c.greet(t)
	started := below(c.pid)
	if _, err := c.person.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(note); string(text) != "interrupted" {
		t.Errorf("the server notes %q, want that it was interrupted", text)
	}
	if slices.ContainsFunc(started, lives) {
		t.Errorf("one of %v is still there", started)
	}
}

func TestManyStartsAndStopsLeaveNothing(t *testing.T) {
	eachPlace(t, func(t *testing.T, terminal bool) {
		note := t.TempDir() + "/note"
		c := startRole(t, terminal, "cycles="+note, shell("sleep 600 >/dev/null 2>&1 </dev/null & "+inRole("good")+"; true")...)
		guardian := 0
		until(t, "the guardian stands", func() bool {
			guardian = guardianOf(c.pid)
			return guardian != 0
		})
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(note)
		before, after, _ := strings.Cut(string(text), "\n")
		if before != after || !strings.HasSuffix(after, "children []") {
			t.Errorf("after one start: %s; after a hundred: %s", before, after)
		}
		until(t, "the guardian has gone", func() bool { return !lives(guardian) })
	})
}
