package app

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// slim gives back what only starting up has needed. The program carries the whole
// doctor, whose packages make tables when they are loaded; one that merely stands
// in front of a server, perhaps beside twenty others, keeps none of it. Pages of the
// program's file are dropped and come back when they are touched: they are read-only
// and in the system's cache, so nothing is lost.
func slim() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		// 00400000-00a00000 r-xp 00000000 fe:01 1234   /usr/bin/mcpmend
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[5] != self || strings.Contains(fields[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil && end > start {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
		}
	}
}
