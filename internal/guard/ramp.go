package guard

import (
	"sync"
	"time"
)

// ramp decides how many calls may be on their way at once when a server is not
// well. A first start is no outage: whoever waits for it is let in together. While
// it is down one call goes ahead and finds out whether it is back; the
// others wait. When it is back they are let in slowly: one, then two, then four,
// and no more than rampCap at once until it has worked for a while. All that
// waited would otherwise fall on it together.
type ramp struct {
	mu      sync.Mutex
	down    bool      // the server was there and is not; before the first start it is not down
	since   time.Time // of the recovery; zero when there is nothing to be careful about
	epoch   uint64    // counts outages; who entered before one does not count after it
	running int
	waiting []func(pass uint64)
	ticking bool
}

const (
	rampStep = 250 * time.Millisecond
	rampCap  = 16
	rampFor  = 10 * time.Second
)

// close says that the server is down, open that it is back.
func (r *ramp) close() {
	r.mu.Lock()
	if !r.down {
		r.down = true
		r.epoch++
		r.running = 0
	}
	r.mu.Unlock()
}

func (r *ramp) open(now time.Time) {
	r.mu.Lock()
	if r.down {
		r.down, r.since = false, now
	}
	r.mu.Unlock()
	r.release()
}

// room is how many calls may run at once; 0 means any number. The caller holds mu.
func (r *ramp) room(now time.Time) int {
	switch {
	case r.down:
		return 1
	case r.since.IsZero():
		return 0
	}
	age := now.Sub(r.since)
	if age >= rampFor {
		r.since = time.Time{}
		return 0
	}
	return min(rampCap, 1<<min(int(age/rampStep), 10))
}

// enter runs start now, or as soon as there is room for it, with a pass that is to
// be given to leave.
func (r *ramp) enter(start func(pass uint64)) {
	r.mu.Lock()
	room := r.room(time.Now())
	if room > 0 && (r.running >= room || len(r.waiting) > 0) {
		r.waiting = append(r.waiting, start)
		r.tick()
		r.mu.Unlock()
		return
	}
	r.running++
	pass := r.epoch + 1
	r.mu.Unlock()
	start(pass)
}

// leave says that a call that entered has ended. The pass 0 is nobody's.
func (r *ramp) leave(pass uint64) {
	if pass == 0 {
		return
	}
	r.mu.Lock()
	if pass == r.epoch+1 {
		r.running--
	}
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
	var ready []func(uint64)
	for len(r.waiting) > 0 && (room == 0 || r.running < room) {
		ready = append(ready, r.waiting[0])
		r.waiting = r.waiting[1:]
		r.running++
	}
	r.tick()
	pass := r.epoch + 1
	r.mu.Unlock()
	for _, start := range ready {
		start(pass)
	}
}

// tick has another look soon: room grows with time, too. The caller holds mu.
func (r *ramp) tick() {
	if len(r.waiting) == 0 || r.ticking {
		return
	}
	r.ticking = true
	time.AfterFunc(rampStep, func() {
		r.mu.Lock()
		r.ticking = false
		r.mu.Unlock()
		r.release()
	})
}
