//go:build unix

package machine

import (
	"os/exec"
	"syscall"
)

const dontWait = syscall.O_NONBLOCK

// ownSession takes the terminal away from a child: an interactive shell that has
// one, but not the foreground, would stop itself until it gets it.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// killSession ends a child and what it started. It must be called before the child
// is reaped.
func killSession(cmd *exec.Cmd) {
	if cmd.Process != nil && cmd.Process.Pid > 1 {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
