//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package clientconfig

import (
	"errors"
	"os"
	"syscall"
)

func tryLock(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return nil, errLocked
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}
