//go:build unix

package upstream

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// processTree is the process of a server with everything it has started, except
// for what it detached on purpose, which is what has a session of its own.
//
// Without a terminal the process leads a process group, and the kernel knows its
// members. On a terminal it stays in our group, where it would be without us: in
// another one, a question to its user would stop it, and Ctrl-C would not reach it.
// Our group is not ours alone and is never signalled; what belongs to the server is
// found by walking down from its process.
type processTree struct {
	*exec.Cmd
	spec *Spec
	rest rest // where it has no group: what was found below the process
}

func newTree(cmd *exec.Cmd, spec *Spec) *processTree { return &processTree{Cmd: cmd, spec: spec} }

func (t *processTree) start() error {
	t.SysProcAttr = &syscall.SysProcAttr{Setpgid: t.spec.OwnGroup || !hasTerminal()}
	if t.spec.DieWithUs && !t.spec.Reaper.guarded() {
		dieWithUs(t.SysProcAttr)
	}
	return t.spec.Reaper.start(t.Cmd)
}

// reap takes the status of the process, which has ended. From then on its number
// may be given to another one.
func (t *processTree) reap() { t.spec.Reaper.reap(t.Cmd) }

func (t *processTree) ownGroup() bool { return t.SysProcAttr.Setpgid }

// hasTerminal reports whether we have a controlling terminal, whatever our
// standard files are.
func hasTerminal() bool {
	fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = syscall.Close(fd)
	return true
}

// signalGroup must only be called before the leader is reaped or while members
// of the group are alive: until then nobody else can be given its number.
func signalGroup(t *processTree, sig syscall.Signal) {
	switch {
	case t.Process == nil || t.Process.Pid <= 1:
	case t.ownGroup():
		_ = syscall.Kill(-t.Process.Pid, sig)
	default:
		t.signalEach(sig)
	}
}

func termGroup(t *processTree) { signalGroup(t, syscall.SIGTERM) }
func killGroup(t *processTree) { signalGroup(t, syscall.SIGKILL) }

// groupGone waits a moment until nothing is left of what was killed, so that whoever
// is started next does not meet it. What became our child is reaped; that happens
// only in a program that adopts orphans.
func groupGone(t *processTree) {
	gone := t.restGone
	if t.ownGroup() {
		gone = t.groupIsEmpty
	}
	for range 200 {
		if gone() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	t.forgetRest()
}

func (t *processTree) groupIsEmpty() bool {
	group := -t.Process.Pid
	for {
		pid, err := syscall.Wait4(group, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			break
		}
	}
	return syscall.Kill(group, 0) != nil
}

func exitStatus(s *os.ProcessState) (code int, signal string) {
	if s == nil {
		return -1, ""
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), signalName(ws.Signal())
	}
	return s.ExitCode(), ""
}

func signalName(s syscall.Signal) string {
	for sig, name := range map[syscall.Signal]string{
		syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM", syscall.SIGSEGV: "SIGSEGV",
		syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGINT: "SIGINT",
		syscall.SIGHUP: "SIGHUP", syscall.SIGPIPE: "SIGPIPE", syscall.SIGILL: "SIGILL",
		syscall.SIGFPE: "SIGFPE", syscall.SIGTRAP: "SIGTRAP", syscall.SIGQUIT: "SIGQUIT",
	} {
		if sig == s {
			return name
		}
	}
	return s.String()
}

// errnoName is the symbolic name of the system error inside err, "" if none.
func errnoName(err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return "ENOENT"
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	for e, name := range map[syscall.Errno]string{
		syscall.ENOENT: "ENOENT", syscall.EACCES: "EACCES", syscall.EPERM: "EPERM",
		syscall.ENOEXEC: "ENOEXEC", syscall.ECONNREFUSED: "ECONNREFUSED", syscall.ECONNRESET: "ECONNRESET",
		syscall.ETIMEDOUT: "ETIMEDOUT", syscall.EPIPE: "EPIPE", syscall.EMFILE: "EMFILE", syscall.ENFILE: "ENFILE",
		syscall.ENOMEM: "ENOMEM", syscall.EAGAIN: "EAGAIN", syscall.EHOSTUNREACH: "EHOSTUNREACH",
		syscall.ENETUNREACH: "ENETUNREACH", syscall.ENOTDIR: "ENOTDIR", syscall.E2BIG: "E2BIG",
		syscall.ENOSPC: "ENOSPC", syscall.EROFS: "EROFS", syscall.EISDIR: "EISDIR", syscall.EDQUOT: "EDQUOT",
		syscall.ENAMETOOLONG: "ENAMETOOLONG", syscall.EINVAL: "EINVAL",
	} {
		if e == errno {
			return name
		}
	}
	return strings.ToUpper(errno.Error())
}
