package upstream

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithUs has the kernel end the child if we are killed without a word.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// keepUnread keeps the child's end of its stdin, to see later what was not read.
func keepUnread(childIn *os.File) *os.File { return childIn }

// awaitExit returns when the process has ended, but before it is reaped: its
// number stays taken until then, and its group can be ended safely. It waits in
// the poller, not in a thread, so a thousand servers cost no thousand threads.
func awaitExit(cmd *exec.Cmd) {
	fd, err := unix.PidfdOpen(cmd.Process.Pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		waitWithoutReaping(cmd.Process.Pid)
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool { return hasExited(cmd.Process.Pid) })
	}
	if err != nil {
		waitWithoutReaping(cmd.Process.Pid)
	}
}

// hasExited asks without waiting and without reaping.
func hasExited(pid int) bool {
	var info unix.Siginfo
	err := waitid(pid, &info, unix.WNOHANG)
	return err != nil || info.Signo != 0
}

func waitWithoutReaping(pid int) {
	var info unix.Siginfo
	_ = waitid(pid, &info, 0)
}

func waitid(pid int, info *unix.Siginfo, options int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// stopped reports whether the process is held by a signal or a debugger.
func stopped(cmd *exec.Cmd) bool {
	state, _ := procState(cmd.Process.Pid)
	return state == 'T' || state == 't'
}

// procState is the one-letter state of a process and its used processor ticks.
func procState(pid int) (state byte, ticks uint64) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// The name in parentheses may hold anything, so look behind the last one.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, 0
	}
	user, _ := strconv.ParseUint(string(fields[11]), 10, 64)
	system, _ := strconv.ParseUint(string(fields[12]), 10, 64)
	return fields[0][0], user + system
}

// waitingIn is how many bytes lie unread in a pipe.
func waitingIn(f *os.File) int {
	n := 0
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}

// readersAlive reports whether some process other than us may still read the
// child's stdin. When that cannot be told, the answer is yes.
func (l *stdioLink) readersAlive() bool {
	var st syscall.Stat_t
	raw, err := l.unread.SyscallConn()
	if err != nil {
		return true
	}
	if cerr := raw.Control(func(fd uintptr) { err = syscall.Fstat(int(fd), &st) }); cerr != nil || err != nil {
		return true
	}
	want := "pipe:[" + strconv.FormatUint(st.Ino, 10) + "]"
	self, leader := strconv.Itoa(os.Getpid()), strconv.Itoa(l.cmd.Process.Pid)
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, p := range processes {
		if c := p.Name()[0]; c < '0' || c > '9' || p.Name() == self {
			continue
		}
		fds, err := os.ReadDir("/proc/" + p.Name() + "/fd")
		if os.IsPermission(err) {
			if p.Name() == leader {
				return true // it hides its files; that is no reason to think it closed them
			}
			continue // another user's process cannot have inherited from our child
		}
		for _, fd := range fds {
			if target, err := os.Readlink("/proc/" + p.Name() + "/fd/" + fd.Name()); err == nil && target == want {
				return true
			}
		}
	}
	return false
}

// sample asks the kernel about the process and everything below it.
func (l *stdioLink) sample() procSample {
	state, ticks := procState(l.cmd.Process.Pid)
	seen := procSample{known: state != 0, ticks: ticks, moved: bytesMoved(l.cmd.Process.Pid)}
	seen.note(l.cmd.Process.Pid, state)
	// A wrapper such as npx or sh has one child that has one child: the server at
	// the end of that chain is the one that matters.
	chain := true
	below := children(l.cmd.Process.Pid)
	for depth := 0; len(below) > 0 && depth < 16; depth++ {
		chain = chain && len(below) == 1
		var next []int
		for _, pid := range below {
			state, ticks := procState(pid)
			seen.ticks += ticks
			seen.moved += bytesMoved(pid)
			if chain {
				seen.note(pid, state)
			}
			next = append(next, children(pid)...)
		}
		below = next
	}
	return seen
}

// note takes in the state of one process of the chain.
func (s *procSample) note(pid int, state byte) {
	switch {
	case state == 't', state == 'T' && isTraced(pid):
		s.traced = true
	case state == 'T':
		s.stopped = true
	}
}

// isTraced reports whether a debugger is attached to a process.
func isTraced(pid int) bool {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, ok := bytes.Cut(status, []byte("TracerPid:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return ok && string(bytes.TrimSpace(line)) != "0"
}

// bytesMoved is how much a process has read and written in all; 0 where that may
// not be asked.
func bytesMoved(pid int) uint64 {
	io, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	var sum uint64
	for _, line := range bytes.Split(io, []byte{'\n'}) {
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && (string(name) == "rchar" || string(name) == "wchar") {
			n, _ := strconv.ParseUint(string(value), 10, 64)
			sum += n
		}
	}
	return sum
}

// children are the processes started by any thread of a process.
func children(pid int) []int {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return nil
	}
	var out []int
	for _, t := range threads {
		list, err := os.ReadFile(tasks + "/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range bytes.Fields(list) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}
