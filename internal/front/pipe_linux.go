package front

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pollReadHangUp is set when the other end of a socket writes no more.
const pollReadHangUp = unix.POLLRDHUP

// Pipes are our standard input and output, in a mode where waiting for a client
// costs no thread and writing to one that does not read blocks nobody.
//
// A pipe is opened a second time, since the mode belongs to the open file and
// another process may share ours. A socket, which is what Node gives its
// children, cannot be opened again and is switched; nobody else holds our end.
func Pipes() (in, out *os.File) {
	return polled(os.Stdin, unix.O_RDONLY), polled(os.Stdout, unix.O_WRONLY)
}

func polled(f *os.File, mode int) *os.File {
	fd := int(f.Fd())
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return f
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return f
		}
		return os.NewFile(uintptr(again), f.Name())
	case unix.S_IFSOCK:
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return f
		}
		if unix.SetNonblock(again, true) != nil {
			_ = unix.Close(again)
			return f
		}
		return os.NewFile(uintptr(again), f.Name())
	}
	return f
}

// nothingLeft reports whether the other end of what we read has been closed, and
// everything was read.
func nothingLeft(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil || !hasEnded(f) {
		return err != nil
	}
	unread := 1
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			unread = n
		}
	})
	return unread == 0
}
