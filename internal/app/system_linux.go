package app

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes us the parent of whatever our servers leave behind, so that
// it can be found and ended.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endOrphans ends what servers left behind. It runs last: every process that is
// still our child was started by one of them and escaped its process group.
func endOrphans() {
	for range 10 { // an orphan may have children of its own
		children := ownChildren()
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for _, pid := range children {
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}
}

func ownChildren() []int {
	var out []int
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		list, _ := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}
