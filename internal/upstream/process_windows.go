package upstream

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// On Windows a process has no group that could be signalled; the children of a
// server end when their pipes do. A job object is the better answer and is not
// built yet.
func ownGroup(cmd *exec.Cmd, _ bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func termGroup(cmd *exec.Cmd) {}
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}

func groupGone(*exec.Cmd) {}

func exitStatus(s *os.ProcessState) (code int, signal string) {
	if s == nil {
		return -1, ""
	}
	return s.ExitCode(), ""
}

func errnoName(err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "ENOENT"
	case errors.Is(err, os.ErrPermission):
		return "EACCES"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "ECONNREFUSED"
	case errors.Is(err, syscall.ECONNRESET):
		return "ECONNRESET"
	}
	return ""
}

func keepUnread(childIn *os.File) *os.File {
	_ = childIn.Close()
	return nil
}

func (l *stdioLink) readersAlive() bool { return true }

func waitingIn(*os.File) int { return 0 }

func stopped(*exec.Cmd) bool { return false }

// sample cannot tell here; such a process is only ever judged by its exit.
func (l *stdioLink) sample() procSample { return procSample{} }
