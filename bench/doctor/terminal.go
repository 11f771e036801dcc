package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// atTerminal runs a program as a person does, at a terminal, and answers every
// question with the given text. seen is told of each piece of output as it comes;
// it may be nil.
func (w *world) atTerminal(ctx context.Context, answer string, seen func([]byte), argv ...string) (*spoken, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	ours, theirs, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = w.path("project"), append(w.env, "TERM=xterm-256color", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	start := time.Now()
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, err
	}
	if answer != "" {
		// More answers than there can be questions; a terminal keeps them.
		if _, err := ours.WriteString(strings.Repeat(answer+"\n", 40)); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	buf := make([]byte, 1<<16)
	for {
		n, err := ours.Read(buf)
		out.Write(buf[:n])
		if seen != nil && n > 0 {
			seen(buf[:n])
		}
		if err != nil {
			break // EIO, when the last program has closed its side
		}
	}
	err = cmd.Wait()
	s := &spoken{argv: argv, out: out.Bytes(), took: time.Since(start)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return s, fmt.Errorf("%s: %w", strings.Join(argv[1:], " "), ctx.Err())
	case errors.As(err, &exit):
		s.exit = exit.ExitCode()
		return s, nil
	}
	return s, err
}

func openTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	// Not ours.Fd(), which would make every read of it block the whole runtime's poller.
	raw, err := ours.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	var n int
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if failed == nil {
			n, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
		if failed == nil {
			failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 60, Col: 200})
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}
