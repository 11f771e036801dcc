//go:build unix

package front

import (
	"os"

	"golang.org/x/sys/unix"
)

// nobodyReads reports whether the other end of a pipe or socket is closed.
func nobodyReads(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	_ = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd)}}
		if n, err := unix.Poll(look, 0); err == nil && n > 0 {
			gone = look[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	})
	return gone
}
