package guard

import (
	"sync"
	"time"
)

// ramp lets calls in slowly after a recovery. A server that has just come back
// gets one call, then two, then four, and no more than rampCap at once until it
// has worked for a while: all that waited would otherwise fall on it together.
type ramp struct {
	mu      sync.Mutex
	since   time.Time // of the recovery; zero when there is nothing to be careful about
	running int
	waiting []func()
}

const (
	rampStep = 250 * time.Millisecond
	rampCap  = 16
	rampFor  = 10 * time.Second
)

// begin starts the careful time.
func (r *ramp) begin(now time.Time) {
	r.mu.Lock()
	r.since = now
	r.mu.Unlock()
}

// room is how many calls may run at once; 0 means any number. The caller holds mu.
func (r *ramp) room(now time.Time) int {
	if r.since.IsZero() {
		return 0
	}
	age := now.Sub(r.since)
	if age >= rampFor {
		r.since = time.Time{}
		return 0
	}
	return min(rampCap, 1<<min(int(age/rampStep), 10))
}

// enter runs start now, or as soon as there is room for it.
func (r *ramp) enter(start func()) {
	r.mu.Lock()
	room := r.room(time.Now())
	if room > 0 && (r.running >= room || len(r.waiting) > 0) {
		r.waiting = append(r.waiting, start)
		if len(r.waiting) == 1 {
			time.AfterFunc(rampStep, r.release) // room grows with time, too
		}
		r.mu.Unlock()
		return
	}
	r.running++
	r.mu.Unlock()
	start()
}

// leave says that a call that entered has ended.
func (r *ramp) leave() {
	r.mu.Lock()
	r.running--
	idle := len(r.waiting) == 0
	r.mu.Unlock()
	if !idle {
		r.release()
	}
}

// release starts what there is room for.
func (r *ramp) release() {
	r.mu.Lock()
	room := r.room(time.Now())
	var ready []func()
	for len(r.waiting) > 0 && (room == 0 || r.running < room) {
		ready = append(ready, r.waiting[0])
		r.waiting = r.waiting[1:]
		r.running++
	}
	if len(r.waiting) > 0 {
		time.AfterFunc(rampStep, r.release)
	}
	r.mu.Unlock()
	for _, start := range ready {
		start()
	}
}
