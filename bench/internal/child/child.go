// Package child runs the processes a benchmark looks at, and looks at them:
// what they say on stderr, what CPU and memory they take, what they leave behind.
package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopPatience is how long a process may take to leave before it is killed.
	stopPatience = 5 * time.Second
	// dumpPatience is the same for a process that prints its goroutines first, of
	// which there may be ten thousands.
	dumpPatience = 2 * time.Minute
)

// A Child is one running process. Stdin and Stdout belong to whoever started
// it; stderr is read here, so a talkative process never blocks.
type Child struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	cmd    *exec.Cmd
	lines  chan string   // stderr, until nobody waits for a line any more
	exited chan struct{} // closed once the process is reaped

	drained chan struct{} // closed at the end of stderr

	mu         sync.Mutex
	last       []string // the end of stderr, for error messages
	goroutines int      // seen in a stack dump
}

// Start runs argv in dir (or here, if empty) with env (or ours, if nil).
func Start(argv []string, dir string, env []string) (*Child, error) {
	return StartWith(argv, dir, env, func(*exec.Cmd) {})
}

// StartWith is like Start; prepare may change what the process gets, apart from the three
// standard streams.
func StartWith(argv []string, dir string, env []string, prepare func(*exec.Cmd)) (*Child, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	// A benchmark that is killed must not leave servers behind that slow the next one.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	prepare(cmd)
	// os.Pipe instead of cmd.StdoutPipe: Wait closes the latter, and a benchmark
	// may still be reading when the process has already gone.
	var ours, theirs [3]*os.File
	for fd := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, closeAll(ours[:fd]), closeAll(theirs[:fd]))
		}
		ours[fd], theirs[fd] = r, w
	}
	ours[0], theirs[0] = theirs[0], ours[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err := cmd.Start()
	if closing := closeAll(theirs[:]); err == nil {
		err = closing
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(ours[:]))
	}
	c := &Child{
		Stdin: ours[0], Stdout: ours[1], cmd: cmd,
		lines: make(chan string, 16), exited: make(chan struct{}), drained: make(chan struct{}),
	}
	go c.readStderr(ours[2])
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(c.exited)
	}()
	return c, nil
}

func closeAll(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}

func (c *Child) readStderr(stderr io.ReadCloser) {
	defer stderr.Close()
	scan := bufio.NewScanner(stderr)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		c.mu.Lock()
		c.last = append(c.last, scan.Text())
		c.last = c.last[max(0, len(c.last)-20):]
		if strings.HasPrefix(scan.Text(), "goroutine ") && strings.HasSuffix(scan.Text(), ":") {
			c.goroutines++
		}
		c.mu.Unlock()
		select {
		case c.lines <- scan.Text():
		default:
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // a line too long for the scanner
	close(c.lines)
	close(c.drained)
}

// PID is the process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Said returns the last lines of stderr.
func (c *Child) Said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.last, "\n")
}

// Line waits for a line on stderr that contains text and returns what follows it.
func (c *Child) Line(ctx context.Context, text string) (string, error) {
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return "", fmt.Errorf("%s ended before it said %q:\n%s", c.cmd.Path, text, c.Said())
			}
			if _, rest, ok := strings.Cut(line, text); ok {
				return rest, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("%s did not say %q: %w\n%s", c.cmd.Path, text, ctx.Err(), c.Said())
		}
	}
}

// Stop closes stdin and sends SIGTERM, which ends every well-behaved server,
// stdio or HTTP, and reports how the process ended and what it took. A process that
// does not leave is killed, and that is an error.
func (c *Child) Stop() (*os.ProcessState, error) {
	_ = c.Stdin.Close()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	return c.leave(stopPatience)
}

// Hangup only closes stdin, as most clients do, and is otherwise like Stop.
func (c *Child) Hangup() (*os.ProcessState, error) {
	_ = c.Stdin.Close()
	return c.leave(stopPatience)
}

// Goroutines ends a Go program by having it print all its goroutines, and counts them.
func (c *Child) Goroutines() (int, error) {
	if err := c.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return 0, err
	}
	if _, err := c.leave(dumpPatience); err != nil {
		return 0, err
	}
	<-c.drained
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.goroutines == 0 {
		return 0, fmt.Errorf("%s printed no goroutines:\n%s", c.cmd.Path, strings.Join(c.last, "\n"))
	}
	return c.goroutines, nil
}

func (c *Child) leave(patience time.Duration) (*os.ProcessState, error) {
	defer c.Stdout.Close()
	select {
	case <-c.exited:
		return c.cmd.ProcessState, nil
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		<-c.exited
		return c.cmd.ProcessState, fmt.Errorf("%s (pid %d) had to be killed:\n%s", c.cmd.Path, c.PID(), c.Said())
	}
}

// Exited is closed when the process is gone and reaped.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// ServeHTTP starts a server that is told its address on the command line, and
// waits until it accepts connections. The argument "ADDR" is replaced by a free
// loopback address, which is returned.
func ServeHTTP(ctx context.Context, argv []string) (*Child, string, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	argv = append([]string(nil), argv...)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "ADDR", addr)
	}
	c, err := Start(argv, "", nil)
	if err != nil {
		return nil, "", err
	}
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c, addr, conn.Close()
		}
		select {
		case <-c.Exited():
			return nil, "", fmt.Errorf("%v ended at once:\n%s", argv, c.Said())
		case <-ctx.Done():
			_, _ = c.Stop()
			return nil, "", fmt.Errorf("%v does not listen: %w", argv, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
