//go:build unix && !linux

package upstream

import (
	"os"
	"os/exec"
	"syscall"
)

func dieWithUs(*syscall.SysProcAttr) {}

// Nothing tells here in a portable way what a process has started. A server on a
// terminal is ended alone; what it started sees its pipes end.
type rest struct{}

func (t *processTree) signalEach(sig syscall.Signal) { _ = t.Process.Signal(sig) }
func (t *processTree) remember()                     {}
func (t *processTree) restGone() bool                { return true }
func (t *processTree) forgetRest()                   {}

// keepUnread gives up on proving what was not read: without a way to see who
// else holds the pipe, the proof would not be one.
func keepUnread(childIn *os.File) *os.File {
	_ = childIn.Close()
	return nil
}

func (l *stdioLink) readersAlive() bool { return true }

func waitingIn(*os.File) int { return 0 }

func stopped(*exec.Cmd) bool { return false }

// sample cannot tell here; such a process is only ever judged by its exit.
func (l *stdioLink) sample() procSample { return procSample{} }
