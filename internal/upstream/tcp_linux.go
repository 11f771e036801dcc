package upstream

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpUnacknowledged has the kernel end a connection whose other end has
// acknowledged nothing for so long, be it data or keepalive probes.
func giveUpUnacknowledged(c syscall.RawConn, d time.Duration) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}
