package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is the time a process has spent on a processor so far. It is read from the
// scheduler's own nanosecond accounting; utime and stime of /proc/PID/stat move in
// ticks of 10 ms, which is hundreds of calls.
func CPU(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread ended between listing and reading
		}
		if err != nil {
			return 0, err
		}
		running, _, _ := bytes.Cut(text, []byte(" "))
		n, err := strconv.ParseInt(string(running), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		total += time.Duration(n)
	}
	if total == 0 {
		return 0, fmt.Errorf("no CPU accounting for process %d: is this Linux with schedstat?", pid)
	}
	return total, nil
}

// Resident is the memory of a process that is in RAM, in bytes, and how much of it
// is private to the process: the part that grows with every further instance.
func Resident(pid int) (rss, private int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) != 2 || fields[1] != "kB" {
			continue
		}
		kb, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		switch name {
		case "Rss":
			rss = kb << 10
		case "Private_Clean", "Private_Dirty":
			private += kb << 10
		}
	}
	return rss, private, nil
}

// FDs counts the open file descriptors of a process.
func FDs(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}

// Marked lists the processes that carry mark in their environment: all that descend
// from a process started with it, even those that left its process group. Zombies have
// no environment any more; Zombies lists them.
func Marked(mark string) ([]Process, error) {
	return processes(func(dir string) bool {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		return err == nil && bytes.Contains(env, []byte(mark))
	})
}

// Zombies lists dead children of pid that nobody has waited for.
func Zombies(pid int) ([]Process, error) {
	return processes(func(dir string) bool {
		state, parent := stat(dir)
		return state == "Z" && parent == pid
	})
}

// A Process is one that was found.
type Process struct {
	PID     int
	Command string
}

func (p Process) String() string { return fmt.Sprintf("pid %d: %s", p.PID, p.Command) }

func processes(match func(dir string) bool) ([]Process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, dir := range dirs {
		if !match(dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may just have gone
		found = append(found, Process{PID: pid, Command: strings.ReplaceAll(string(cmdline), "\x00", " ")})
	}
	return found, nil
}

func stat(dir string) (state string, parent int) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "", 0
	}
	// The command name is in parentheses and may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
