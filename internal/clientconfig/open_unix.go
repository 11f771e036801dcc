//go:build unix

package clientconfig

import "syscall"

const nonBlocking = syscall.O_NONBLOCK
