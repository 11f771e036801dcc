package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

// processes are about what else happens to a server's process, and what it leaves.
func processes() []situation {
	const long = 60 * time.Second
	return []situation{
		{id: "detach.session", name: "a program in a session of its own survives the end", server: pythonHand,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.python...)
				return detached(ctx, c, err, func() error { return c.Close() })
			}},
		{id: "detach.daemon", name: "a daemon survives the end by SIGTERM", server: byHand,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				return detached(ctx, c, err, func() error {
					_, err := c.child.Stop()
					return err
				})
			}},
		{id: "terminal", name: "a tool asks for a PIN on the terminal", server: byHand, play: atTerminal},
		{id: "environment", name: "folder, variables and arguments are the client's", server: byHand, play: inPlace},
		{id: "debugger.call", name: "held by a debugger for 60 s in a call, another comes meanwhile", server: pythonHand, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.python...)
				return halted(ctx, s, c, err, trace, "block", true)
			}},
		{id: "debugger.idle", name: "held by a debugger for 60 s, a call comes meanwhile", server: typescript, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return halted(ctx, s, c, err, trace, "block", false)
			}},
		{id: "debugger.h2", name: "held by a debugger for 60 s, a call over HTTP/2 comes meanwhile", server: goSDK + ", HTTP/2", wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "https", s.gosdk, "-http", "ADDR", "-cert", s.certs.Cert, "-key", s.certs.Key)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return halted(ctx, s, c, err, trace, "wait", false)
			}},
		{id: "debugger.http", name: "held by a debugger for 60 s, a call over HTTP/1.1 comes meanwhile", server: pythonHand + ", HTTP/1.0", wait: long, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.python, "--http", "ADDR")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return halted(ctx, s, c, err, trace, "block", false)
			}},
		{id: "stopped.call", name: "SIGSTOP in a call, another comes, SIGCONT after 60 s", server: typescript, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return halted(ctx, s, c, err, stop, "block", true)
			}},
		{id: "stopped.idle", name: "SIGSTOP while idle, a call comes, SIGCONT after 60 s", server: pythonHand, wait: long, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.python...)
				return halted(ctx, s, c, err, stop, "block", false)
			}},
		{id: "exit.reply", name: "the server exits after the call, its reply of 20 MB is whole", server: byHand, alone: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd, "-exits")
				if err := opened(ctx, c, err, ""); err != nil {
					return err
				}
				call := c.call("big", fmt.Sprintf(`"bytes":%d`, 20*megabyte))
				return expectBig(ctx, []*raw.Pending{call}, 20*megabyte)
			}},
		{id: "exit.each", name: "the server exits after every call, the client starts it again, 10 times", server: byHand, play: startedAgain},
		{id: "exit.http", name: "a process of its own for each of 12 calls over HTTP", server: byHand + ", HTTP/1.1",
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", s.odd, "-http", "ADDR", "-process-per-call")
				if err != nil {
					return err
				}
				c, err := s.web(url)
				if err := opened(ctx, c, err, ""); err != nil {
					return err
				}
				for i := range 12 {
					if err := works(ctx, c, "wait"); err != nil {
						return fmt.Errorf("call %d: %w", i+1, err)
					}
					if err := sleep(ctx, time.Second/4); err != nil {
						return err
					}
				}
				return nil
			}},
		{id: "shutdown", name: "the server saves its work for 1.5 s after the end of stdin", server: byHand,
			play: func(ctx context.Context, s *side) error {
				saved := filepath.Join(s.dir, "saved")
				c, err := s.stdio(s.odd, "-shutdown", "1.5s", "-saved", saved)
				if err := opened(ctx, c, err, "wait"); err != nil {
					return err
				}
				if err := c.Close(); err != nil {
					return err
				}
				_, err = os.Stat(saved)
				return err
			}},
	}
}

// detached has the server start a program that is to stay, ends the connection and looks
// for it a second later.
func detached(ctx context.Context, c *conn, err error, end func() error) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	text, err := c.do(ctx, "detach", "")
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	if state := inject.State(pid); state == 0 || state == 'Z' {
		return errors.New("what the server had detached is gone")
	}
	return nil
}

// atTerminal gives both sides a terminal, as a client that a person has started has one.
func atTerminal(ctx context.Context, s *side) error {
	ours, theirs, err := openTerminal()
	if err != nil {
		return fmt.Errorf("%w: %v", errCannot, err)
	}
	s.atEnd(func() { ours.Close() })
	c, err := s.stdioWith(func(cmd *exec.Cmd) {
		cmd.ExtraFiles = []*os.File{theirs}
		cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, true, 3
	}, s.odd)
	theirs.Close()
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	call := c.call("prompt", "")
	asked := make(chan error, 1)
	go func() {
		var seen []byte
		buf := make([]byte, 4096)
		for !bytes.Contains(seen, []byte("PIN? ")) {
			n, err := ours.Read(buf)
			if err != nil {
				asked <- fmt.Errorf("the terminal showed %q: %w", seen, err)
				return
			}
			seen = append(seen, buf[:n]...)
		}
		_, err := ours.WriteString("1234\n")
		asked <- err
	}()
	select {
	case err := <-asked:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("nobody was asked for the PIN: %w", ctx.Err())
	}
	return expect(ctx, []*raw.Pending{call}, func(int) string { return "pin 1234" })
}

// openTerminal returns both ends of a new terminal.
func openTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	conn, err := ours.SyscallConn() // Fd would make its reads block a thread
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	var n int
	var failed error
	err = conn.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			n, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err = errors.Join(err, failed); err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

// inPlace compares what the server was given with what the client has.
func inPlace(ctx context.Context, s *side) error {
	c, err := s.stdio(s.odd, "-banner", "two  words; $HOME *")
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	want := s.dir + " own value -banner two  words; $HOME *"
	return expect(ctx, []*raw.Pending{c.call("where", "")}, func(int) string { return want })
}

// halted holds the server's process for the situation's time. A call comes meanwhile; if
// inCall another one runs already. The same process has to answer.
func halted(ctx context.Context, s *side, c *conn, err error, hold func(pid int, until <-chan struct{}) error, tool string, inCall bool) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	var calls []*raw.Pending
	start := func() error {
		calls = append(calls, c.call(tool, fmt.Sprintf(`"key":"%d","seconds":2`, len(calls))))
		return sleep(ctx, time.Second) // by then it has been read, if anybody reads
	}
	return samePID(ctx, c, func() error {
		text, err := c.do(ctx, "pid", "")
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if inCall {
			if err := start(); err != nil {
				return err
			}
		}
		until, held := make(chan struct{}), make(chan error, 1)
		go func() { held <- hold(pid, until) }()
		err = sleep(ctx, time.Second)
		if err == nil {
			err = start()
		}
		if err == nil {
			err = sleep(ctx, s.wait)
		}
		close(until)
		if err := cmp.Or(<-held, err); err != nil {
			return err
		}
		return expect(ctx, calls, func(i int) string { return fmt.Sprint("done ", i) })
	})
}

// stop holds a process as Ctrl-Z or a sleeping laptop does.
func stop(pid int, until <-chan struct{}) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	<-until
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("the process that was stopped is gone: %w", err)
	}
	return nil
}

// startedAgain is a client that starts its server for each call. Its time is the mean of
// one round, since each round is a start of mcpmend, too.
func startedAgain(ctx context.Context, s *side) error {
	const rounds = 10
	for i := range rounds {
		c, err := s.stdio(s.odd, "-exits")
		if err := opened(ctx, c, err, "wait"); err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
		if err := c.Close(); err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	s.took = time.Since(s.began) / rounds
	return nil
}
