//go:build unix

package wire

import (
	"os"
	"sync/atomic"
	"syscall"
)

// attempt is one write to a stream in non-blocking mode. It is kept in the writer
// so that trying costs no allocation.
type attempt struct {
	o    *outgoing
	p    []byte
	wait bool
	n    int
	err  error
	fn   func(fd uintptr) bool
	// total counts what the stream has taken in all.
	total *atomic.Int64
}

func (a *attempt) init(total *atomic.Int64) {
	a.total = total
	a.fn = func(fd uintptr) (done bool) {
		a.once(int(fd))
		return a.err != syscall.EAGAIN || !a.wait
	}
}

// once writes what fits and notes it before anybody can ask.
func (a *attempt) once(fd int) {
	if r := a.o.receipt; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if a.o.withdrawn() {
			a.err = errDropped
			return
		}
		if a.o.sent == 0 {
			r.from.Store(a.total.Load())
		}
	}
	n, err := syscall.Write(fd, a.p)
	if a.err = err; err != nil {
		return
	}
	a.n = n
	a.o.sent += n
	a.total.Add(int64(n))
	if a.o.receipt != nil {
		a.o.receipt.accepted.Store(int64(a.o.sent))
	}
}

// write returns how much of p, which belongs to o, fitted. That nothing did is
// not an error. If wait is set it waits until something does.
func (a *attempt) write(raw syscall.RawConn, o *outgoing, p []byte, wait bool) (int, error) {
	a.o, a.p, a.wait, a.n, a.err = o, p, wait, 0, nil
	err := raw.Write(a.fn)
	a.o, a.p = nil, nil
	if err == nil {
		err = a.err
	}
	if err == syscall.EAGAIN || err == syscall.EINTR {
		err = nil
	}
	return a.n, err
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
