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

// ownGroup gives the child a process group of its own, so that everything it
// starts can be ended with it.
func ownGroup(cmd *exec.Cmd, withUs bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if withUs {
		dieWithUs(cmd.SysProcAttr)
	}
}

// signalGroup must only be called before the leader is reaped or while members
// of the group are alive: until then nobody else can be given its number.
func signalGroup(cmd *exec.Cmd, sig syscall.Signal) {
	if cmd.Process != nil && cmd.Process.Pid > 1 {
		_ = syscall.Kill(-cmd.Process.Pid, sig)
	}
}

func termGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

// groupGone waits a moment until no member of the group is left, so that whoever
// is started next does not meet them. Members that became our children are
// reaped; that happens only in a program that adopts orphans.
func groupGone(cmd *exec.Cmd) {
	group := -cmd.Process.Pid
	for range 200 {
		for {
			pid, err := syscall.Wait4(group, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
		if syscall.Kill(group, 0) != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
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
