package upstream

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Reaper ends what servers leave behind. It is for a program that has no children
// but its servers: it makes us the parent of whatever they leave, and ends it when
// End is called. What has a session of its own was detached on purpose, as a browser
// or a terminal multiplexer is, and is let be.
type Reaper struct {
	guardian *guardian
	before   map[int]bool // children that we had from the beginning, by an exec into us

	mu   sync.Mutex    // held while a process is started, or what is not known yet would be an orphan
	live map[int][]int // servers that are not reaped yet, and what the guardian was told of below them
}

// NewReaper makes the one of this process. With guard, servers are ended even if we
// are killed and cannot do it: see guardian.
func NewReaper(guard bool) *Reaper {
	r := &Reaper{before: make(map[int]bool), live: make(map[int][]int)}
	for _, pid := range children(os.Getpid()) {
		r.before[pid] = true
	}
	if guard {
		r.guardian = startGuardian("/bin/sh") // before we adopt: it is nobody's orphan
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return r
}

// guarded reports whether a process that is started now will be ended if we are
// killed.
func (r *Reaper) guarded() bool { return r != nil && r.guardian.tell("\n") }

func (r *Reaper) start(cmd *exec.Cmd) error {
	if r == nil {
		return cmd.Start()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		r.live[cmd.Process.Pid] = nil
		r.guardian.started('+', cmd.Process.Pid)
	}
	return err
}

// reap takes the status of a process that has ended. Its number is free afterwards,
// so the guardian has to forget it first.
func (r *Reaper) reap(cmd *exec.Cmd) {
	if r == nil {
		_ = cmd.Wait()
		return
	}
	r.guardian.ended(cmd.Process.Pid)
	_ = cmd.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pid := range r.live[cmd.Process.Pid] {
		r.guardian.ended(pid)
	}
	delete(r.live, cmd.Process.Pid)
}

// note tells the guardian what a server has started so far. Should the server leave by
// itself in the moment we are killed, the guardian would not find it below the server.
func (r *Reaper) note(cmd *exec.Cmd) {
	if r == nil || r.guardian == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, live := r.live[cmd.Process.Pid]
	if !live {
		return
	}
	for below := children(cmd.Process.Pid); len(below) > 0 && len(known) < 100; {
		var next []int
		for _, pid := range below {
			if session, err := unix.Getsid(pid); err == nil && session == ourSession() {
				r.guardian.started('&', pid)
				known = append(known, pid)
				next = append(next, children(pid)...)
			}
		}
		below = next
	}
	r.live[cmd.Process.Pid] = known
}

// sweep kills the orphans of the servers that have ended and reports whether none is
// left. While a server lives, an orphan may be something that it needs, so it is let
// be until the last one has ended.
func (r *Reaper) sweep() (none bool) {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live) > 0 || r.killOrphans(false)
}

// killOrphans kills or reaps each of our children and reports whether there was none
// to kill. Their children become ours, for the next time. What has a session of its
// own is let be, unless detached ones are meant, too.
func (r *Reaper) killOrphans(detached bool) (none bool) {
	none = true
	for _, pid := range children(os.Getpid()) {
		if r.before[pid] {
			continue
		}
		if dead, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil); dead == pid {
			continue
		}
		// A child of ours that is not reaped keeps its number.
		if session, err := unix.Getsid(pid); err == nil && (detached || session == ourSession()) {
			_ = unix.Kill(pid, syscall.SIGKILL)
			none = false
		}
	}
	return none
}

// End kills what servers have left, and is called when none of them is needed any
// more. It gives up on what cannot be killed after two seconds.
func (r *Reaper) End() { r.end(false) }

// EndAll is End for whoever started servers only to look at them: what they detached
// is of no use to anybody then.
func (r *Reaper) EndAll() { r.end(true) }

func (r *Reaper) end(detached bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for deadline := time.Now().Add(2 * time.Second); !r.killOrphans(detached) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	r.guardian.dismiss()
}
