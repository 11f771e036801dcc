//go:build !unix

package wire

import (
	"os"
	"sync/atomic"
	"syscall"
)

// attempt stands for a write that does not wait, which this system does not
// offer for pipes; everything is left to the pump.
type attempt struct{}

func (a *attempt) init(*atomic.Int64) {}

func (a *attempt) write(syscall.RawConn, *outgoing, []byte, bool) (int, error) { return 0, nil }

func canTry(*os.File) bool { return false }
