package upstream

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardian is a process that outlives us by a moment. It is told over a pipe which
// servers run; when the pipe ends, because we have, it kills those that still do,
// with everything they started and did not detach. The kernel alone (PDEATHSIG) would
// kill the first process of a server and leave what that one has started: of npx, all
// that matters.
//
// It is a shell, since a second one of us would take ten times its memory. Nothing
// but numbers is ever said to it. It has none of our files and variables and a
// session of its own, and it is not our child: whoever looks for the server below us
// finds the server. A nil guardian is none.
type guardian struct{ pipe *os.File }

//go:embed guardian.sh
var guardianScript string

// startGuardian returns nil if the shell cannot be started.
func startGuardian(shell string) *guardian {
	ours, err := os.Readlink("/proc/self")
	if err != nil || ours != strconv.Itoa(os.Getpid()) {
		return nil // this is not the /proc of our processes
	}
	script, err := pipeWith(guardianScript)
	if err != nil {
		return nil
	}
	defer script.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// A short command line, for people who wonder what this is.
	sh := exec.CommandContext(ctx, shell, "/proc/self/fd/4", "mcpmend-guardian", ours, strconv.Itoa(ourSession()))
	sh.Dir, sh.Env = "/", []string{}
	sh.ExtraFiles = []*os.File{r, script}
	sh.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := withoutOurFiles(sh.Run); err != nil {
		_ = w.Close()
		return nil
	}
	return &guardian{pipe: w}
}

// pipeWith is a pipe from which a short text can be read.
func pipeWith(text string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	_ = w.SetWriteDeadline(time.Now().Add(time.Second)) // should it not fit
	if _, err := w.WriteString(text); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// withoutOurFiles starts a process that gets none of the files that were left open
// for us by whoever started us. A server does get them, as it would without us.
func withoutOurFiles(start func() error) error {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags|unix.FD_CLOEXEC); err == nil {
			defer func() { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags) }()
		}
	}
	return start()
}

// started tells it of a server, or with the sign '&' of what a server has started.
// Like ended it is called while the number cannot have been given to another process;
// the time of its start says later whether it has been.
func (g *guardian) started(sign byte, pid int) {
	if s, ok := statOf(pid); ok {
		g.tell(fmt.Sprintf("%c %d %d\n", sign, pid, s.start))
	}
}

func (g *guardian) ended(pid int) { g.tell(fmt.Sprintf("- %d\n", pid)) }

// tell reports whether the guardian can hear it.
func (g *guardian) tell(line string) bool {
	if g == nil {
		return false
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := g.pipe.WriteString(line)
	return err == nil
}

// dismiss lets it go. It kills what is still running.
func (g *guardian) dismiss() {
	if g != nil {
		_ = g.pipe.Close()
	}
}
