package upstream

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// rest is what was found below a process. Each is held by a handle, so that its
// number may go to another process without harm to that one.
type rest struct {
	mu    sync.Mutex
	found map[int]*os.Process
}

// remember looks up what the process has started, while that can be told: when the
// process has ended, its children are somebody else's.
func (t *processTree) remember() {
	if t.ownGroup() {
		return
	}
	t.rest.mu.Lock()
	defer t.rest.mu.Unlock()
	t.find(nil)
}

// signalEach signals the process and everything below it, one by one.
func (t *processTree) signalEach(sig syscall.Signal) {
	t.rest.mu.Lock()
	defer t.rest.mu.Unlock()
	if sig == syscall.SIGKILL {
		t.stopAll()
	} else {
		t.find(nil)
	}
	_ = t.Process.Signal(sig)
	for pid, p := range t.rest.found {
		if t.isDetached(pid) { // since it was found
			if sig == syscall.SIGKILL {
				_ = p.Signal(syscall.SIGCONT)
			}
			t.drop(pid)
			continue
		}
		_ = p.Signal(sig)
	}
}

// stopAll stops the process and everything below it, from the top, until nothing new
// is found. Otherwise a child that is started while we look would be missed, and a
// shell would go on to its next command when the first one is killed.
func (t *processTree) stopAll() {
	stop := func(p *os.Process) { _ = p.Signal(syscall.SIGSTOP) }
	stop(t.Process)
	for range 20 {
		if !t.find(stop) {
			return
		}
	}
}

// find walks down from the process, hands what was not known yet to each, and reports
// whether there was any.
func (t *processTree) find(each func(*os.Process)) (any bool) {
	if t.Process.Signal(syscall.Signal(0)) != nil {
		return false // it was reaped, and its number may be another's
	}
	if t.rest.found == nil {
		t.rest.found = make(map[int]*os.Process)
	}
	below := []int{t.Process.Pid}
	for len(below) > 0 {
		parent := below[0]
		below = below[1:]
		for _, pid := range children(parent) {
			if p := t.rest.found[pid]; p != nil && p.Signal(syscall.Signal(0)) == nil {
				below = append(below, pid)
				continue
			}
			t.drop(pid)
			p, err := os.FindProcess(pid)
			if err != nil {
				continue
			}
			// What is asked now is true of the process that p stands for, or p is dead.
			if s, ok := statOf(pid); !ok || s.parent != parent || s.state == 'Z' || t.isDetached(pid) {
				_ = p.Release()
				continue
			}
			if each != nil {
				each(p)
			}
			t.rest.found[pid] = p
			below = append(below, pid)
			any = true
		}
	}
	return any
}

func (t *processTree) drop(pid int) {
	if p := t.rest.found[pid]; p != nil {
		_ = p.Release()
		delete(t.rest.found, pid)
	}
}

// isDetached reports whether a process below the server's own has left the session
// of it and of us.
func (t *processTree) isDetached(pid int) bool {
	session, err := unix.Getsid(pid)
	if err != nil || session == ourSession() {
		return false
	}
	its, err := unix.Getsid(t.Process.Pid) // it may have made one itself
	return err != nil || session != its
}

func ourSession() int {
	session, _ := unix.Getsid(0)
	return session
}

// restGone reaps what has become our child and reports whether nothing is left.
func (t *processTree) restGone() bool {
	t.rest.mu.Lock()
	defer t.rest.mu.Unlock()
	for pid, p := range t.rest.found {
		if p.Signal(syscall.Signal(0)) == nil {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if s, ok := statOf(pid); p.Signal(syscall.Signal(0)) != nil || ok && s.state == 'Z' {
			t.drop(pid)
		}
	}
	return len(t.rest.found) == 0 && t.spec.Reaper.sweep()
}

func (t *processTree) forgetRest() {
	t.rest.mu.Lock()
	defer t.rest.mu.Unlock()
	for pid := range t.rest.found {
		t.drop(pid)
	}
}

// procStat is a part of /proc/PID/stat.
type procStat struct {
	state  byte
	parent int
	start  uint64 // in ticks since the system started; with the number it names a process
}

func statOf(pid int) (s procStat, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	// The name in parentheses may hold anything, so look behind the last one.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return s, false
	}
	s.state = fields[0][0]
	s.parent, _ = strconv.Atoi(string(fields[1]))
	s.start, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	return s, true
}
