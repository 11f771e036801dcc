package inject

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpmend/mcpmend/bench/faults/ledger"
)

// Survivors lists the live processes of an episode: those that carry its mark
// or name its directory. Zombies do not count; they are only unread news.
func Survivors(dir string) []int {
	mark, self := []byte(ledger.Marker+"="+dir+"\x00"), os.Getpid()
	var pids []int
	for _, pid := range allPids() {
		if pid == self {
			continue
		}
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		env, _ := os.ReadFile(filepath.Join(proc, "environ"))
		cmd, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		if !bytes.Contains(env, mark) && !bytes.Contains(cmd, []byte(dir+"\x00")) {
			continue
		}
		if st := State(pid); st != 'Z' && st != 'X' && st != 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

func allPids() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat returns the fields of /proc/PID/stat from the state on.
func stat(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name may hold anything, a closing parenthesis too.
	_, after, ok := strings.Cut(string(data[max(bytes.LastIndexByte(data, ')'), 0):]), " ")
	if !ok {
		return nil
	}
	return strings.Fields(after)
}

// State is the kernel's letter for what pid is doing, 0 when it is gone.
func State(pid int) byte {
	f := stat(pid)
	if len(f) == 0 {
		return 0
	}
	return f[0][0]
}

// Parent of pid, 0 when it is gone.
func Parent(pid int) int {
	f := stat(pid)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// CPU is the processor time that pid has used.
func CPU(pid int) time.Duration {
	f := stat(pid)
	if len(f) < 13 {
		return 0
	}
	u, _ := strconv.Atoi(f[11])
	s, _ := strconv.Atoi(f[12])
	return time.Duration(u+s) * 10 * time.Millisecond
}

// RSS is the memory of pid in bytes.
func RSS(pid int) int {
	f := stat(pid)
	if len(f) < 22 {
		return 0
	}
	pages, _ := strconv.Atoi(f[21])
	return pages * os.Getpagesize()
}

// PeakRSS is the most memory that pid ever had, in bytes.
func PeakRSS(pid int) int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(data), "VmHWM:")
	f := strings.Fields(after)
	if len(f) == 0 {
		return 0
	}
	kb, _ := strconv.Atoi(f[0])
	return kb << 10
}

// Files counts the open file descriptors of pid.
func Files(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

// Threads of pid.
func Threads(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(entries)
}

// AwaitState waits until pid is in one of these states ("" stands for gone).
func AwaitState(ctx context.Context, pid int, states string) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		st := State(pid)
		if st == 0 || st == 'Z' {
			if states == "" {
				return nil
			}
		} else if strings.IndexByte(states, st) >= 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Signal sends sig to one process.
func Signal(pid int, sig syscall.Signal) error {
	if pid <= 1 {
		return fmt.Errorf("no process to signal")
	}
	return syscall.Kill(pid, sig)
}

// Reap waits up to grace for an episode's processes to be gone, then ends the
// rest and returns how many it had to end.
func Reap(dir string, grace time.Duration) int {
	deadline := time.Now().Add(grace)
	for {
		left := Survivors(dir)
		if len(left) == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			for _, pid := range left {
				Signal(pid, syscall.SIGKILL)
			}
			return len(left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// LimitFiles lowers the number of files that pid may have open and returns a
// function that restores it.
func LimitFiles(pid, n int) (restore func()) {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		return func() {}
	}
	unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(n), Max: old.Max}, nil)
	return func() { unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil) }
}
