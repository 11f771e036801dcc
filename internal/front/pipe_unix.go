//go:build unix

package front

import (
	"os"

	"golang.org/x/sys/unix"
)

// nobodyReads reports whether the other end of a pipe or socket is closed.
func nobodyReads(f *os.File) bool { return polls(f, 0, unix.POLLERR|unix.POLLHUP) }

// hasEnded reports whether the other end of what we read has been closed, whether or
// not everything has been read.
func hasEnded(f *os.File) bool {
	return polls(f, pollReadHangUp, unix.POLLHUP|unix.POLLERR|pollReadHangUp)
}

// polls reports whether one of the events holds for a file now. asked are those that
// are not told unasked.
func polls(f *os.File, asked, events int16) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true
	}
	holds := false
	_ = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: asked}}
		if n, err := unix.Poll(look, 0); err == nil && n > 0 {
			holds = look[0].Revents&events != 0
		}
	})
	return holds
}
