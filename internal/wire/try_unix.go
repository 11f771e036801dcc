//go:build unix

package wire

import (
	"os"
	"syscall"
)

// attempt is one write that does not wait. It is kept in the writer so that
// trying costs no allocation.
type attempt struct {
	p   []byte
	n   int
	err error
	fn  func(fd uintptr) bool
}

func (a *attempt) init() {
	a.fn = func(fd uintptr) bool {
		a.n, a.err = syscall.Write(int(fd), a.p)
		return true // whatever came of it: never wait
	}
}

// write returns how much fitted; that nothing did is not an error.
func (a *attempt) write(raw syscall.RawConn, p []byte) (int, error) {
	a.p, a.n, a.err = p, 0, nil
	if err := raw.Write(a.fn); err != nil {
		return 0, err
	}
	a.p = nil
	if a.err == syscall.EAGAIN || a.err == syscall.EINTR {
		return 0, nil
	}
	if a.err != nil {
		return 0, a.err
	}
	return a.n, nil
}

// canTry reports whether a write to f returns instead of waiting.
func canTry(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	nonblocking := false
	err = raw.Control(func(fd uintptr) {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
		nonblocking = errno == 0 && flags&syscall.O_NONBLOCK != 0
	})
	return err == nil && nonblocking
}
