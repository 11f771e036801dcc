package app

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func childrenOf(pid string) []int {
	var out []int
	tasks, _ := os.ReadDir("/proc/" + pid + "/task")
	for _, t := range tasks {
		list, _ := os.ReadFile("/proc/" + pid + "/task/" + t.Name() + "/children")
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// isAlone reports whether a process lives and has started no other.
func isAlone(pid int, _ bool) bool {
	if pid == 0 || unix.Kill(pid, 0) != nil {
		return false
	}
	return len(childrenOf(strconv.Itoa(pid))) == 0
}

// runningProcesses lists the processes of this user, without us and what we
// started.
func runningProcesses() []process {
	var out []process
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !ofThisUser(pid) || startedByUs(pid) {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || len(line) == 0 {
			continue
		}
		dir, _ := os.Readlink("/proc/" + e.Name() + "/cwd")
		out = append(out, process{pid: pid, argv: strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"), dir: dir})
	}
	return out
}

func ofThisUser(pid int) bool {
	var st unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid), &st)
	return err == nil && int(st.Uid) == os.Getuid()
}

// startedByUs follows the parents of a process up to us.
func startedByUs(pid int) bool {
	for range 64 {
		if pid == os.Getpid() {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false
		}
		// The name in parentheses may hold anything, so look behind the last one.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil || pid <= 1 {
			return false
		}
	}
	return false
}
