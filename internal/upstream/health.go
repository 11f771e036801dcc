package upstream

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
)

// State is how a server is, in the four words people see.
type State string

const (
	// Healthy: it works, or nobody has needed it yet.
	Healthy State = "healthy"
	// Degraded: it works with trouble, or is being started.
	Degraded State = "degraded"
	// Unresponsive: it is there and shows no sign of life.
	Unresponsive State = "unresponsive"
	// Dead: it is not there.
	Dead State = "dead"
)

// Health is a picture of a server at one moment. It is never changed once it is
// published, so anybody may read it.
type Health struct {
	State State
	// Detail is the finer word: idle, starting, ready, trouble, stopped, silent,
	// waiting (for the next start), parked.
	Detail string
	// Cause is why it is not healthy. May be nil.
	Cause *fault.Fault
	// Since is when the state was entered.
	Since time.Time
	// LastSuccess is the last reply, LastCheck the last look at it. Zero: never.
	LastSuccess, LastCheck time.Time
	// Failures in a row since the last success.
	Failures int
	// Closures counts connections that were lost, Recoveries those that were made
	// again after that, Restarts the processes started after the first.
	Closures, Recoveries, Restarts int
	// NextAttempt is when a dead server may be started again. Zero: at once.
	NextAttempt time.Time
}

// vitals keeps the health of a server. Every change goes through update, which
// publishes a new picture; readers never wait.
type vitals struct {
	picture atomic.Pointer[Health]
	// answered is the time of the last reply in nanoseconds. It changes with each
	// call, so it stands apart from the picture.
	answered atomic.Int64
	// tell takes changes of the picture. It must not block. May be nil.
	tell func(before, after Health)

	mu       sync.Mutex
	pace     pace
	starting chan struct{} // non-nil while somebody starts an unwell server
	kicked   chan struct{} // closed by kick, then replaced
	started  bool
	clean    int  // successes since trouble began
	tried    bool // to reach it, since it was last found dead
}

func (v *vitals) init() {
	v.kicked = make(chan struct{})
	v.picture.Store(&Health{State: Healthy, Detail: "idle", Since: time.Now()})
}

// Health is the latest picture. It takes nanoseconds and never waits.
func (s *Server) Health() Health {
	h := *s.vitals.picture.Load()
	if n := s.vitals.answered.Load(); n > 0 {
		h.LastSuccess = time.Unix(0, n)
		if h.LastSuccess.After(h.LastCheck) {
			h.LastCheck = h.LastSuccess
		}
	}
	return h
}

// update changes the picture under the lock and publishes it. Whoever watches is
// told afterwards, without the lock.
func (v *vitals) update(change func(h *Health, now time.Time)) {
	v.mu.Lock()
	now := time.Now()
	before := *v.picture.Load()
	after := before
	change(&after, now)
	if after.State != before.State || after.Detail != before.Detail {
		after.Since = now
	}
	v.picture.Store(&after)
	v.mu.Unlock()
	if v.tell != nil && (after.State != before.State || after.Detail != before.Detail) {
		v.tell(before, after)
	}
}

// beginning: a connection is being made.
func (v *vitals) beginning() {
	v.update(func(h *Health, _ time.Time) {
		v.tried = true
		h.State, h.Detail = Degraded, "starting"
		if v.started {
			h.Restarts++
		}
		v.started = true
	})
}

// ready: the handshake succeeded.
func (v *vitals) ready() {
	v.update(func(h *Health, now time.Time) {
		v.pace.up(now)
		if h.Closures > h.Recoveries {
			h.Recoveries++
		}
		h.State, h.Detail, h.Cause = Healthy, "ready", nil
		h.Failures, h.LastCheck, h.NextAttempt = 0, now, time.Time{}
		if v.pace.troubled(now) {
			h.State, h.Detail = Degraded, "trouble" // it has just been down, more than once
		}
		v.clean = 0
	})
}

// lost: a connection ended that should not have, or could not be made.
func (v *vitals) lost(cause *fault.Fault, wasUp bool) {
	d := fault.Diagnose(cause.Evidence) // once for all who will read it
	explained := *cause
	if explained.Kind == "" {
		explained.Kind = d.Kind
	}
	if explained.Hint == "" {
		explained.Hint = d.SuggestedFix
	}
	cause = &explained
	v.update(func(h *Health, now time.Time) {
		if h.State == Dead && !v.tried {
			h.Failures++ // the same outage, met by another call
			return
		}
		v.tried = false
		switch {
		case starved(cause.Errno):
			v.pace.starved(now)
		case wasUp && !v.pace.cheap:
			v.pace.ended(now)
		default:
			v.pace.down(now, d.Kind != fault.Unknown && !d.Retryable && d.Scope == fault.OfSetup)
		}
		h.State, h.Detail = Dead, "waiting"
		if v.pace.parked {
			h.Detail = "parked"
		}
		h.Cause, h.LastCheck, h.NextAttempt = cause, now, v.pace.next
		h.Failures++
		if wasUp {
			h.Closures++
		}
	})
}

// starved reports whether it was our own process that lacked something.
func starved(errno string) bool {
	switch errno {
	case "EMFILE", "ENFILE", "ENOMEM", "EAGAIN":
		return true
	}
	return false
}

// unresponsive: no sign of life, for the reason given.
func (v *vitals) unresponsive(detail string, cause *fault.Fault) {
	v.update(func(h *Health, now time.Time) {
		if h.State != Dead {
			h.State, h.Detail, h.Cause, h.LastCheck = Unresponsive, detail, cause, now
		}
	})
}

// alive: a sign of life after none was seen.
func (v *vitals) alive() {
	if v.picture.Load().State != Unresponsive {
		return
	}
	v.update(func(h *Health, now time.Time) {
		if h.State == Unresponsive {
			h.State, h.Detail, h.Cause, h.LastCheck = Healthy, "ready", nil, now
		}
	})
}

// trouble: a call failed for a reason that lies with the connection.
func (v *vitals) trouble(cause *fault.Fault) {
	v.update(func(h *Health, now time.Time) {
		h.Failures++
		h.LastCheck = now
		v.clean = 0
		if h.State == Healthy {
			h.State, h.Detail, h.Cause = Degraded, "trouble", cause
		}
	})
}

// success notes a reply. The fast path is one store.
func (v *vitals) success() {
	v.answered.Store(time.Now().UnixNano())
	if h := v.picture.Load(); h.State == Healthy && h.Failures == 0 {
		return
	}
	v.update(func(h *Health, now time.Time) {
		h.Failures = 0
		v.clean++
		switch {
		case h.State == Unresponsive:
			h.State, h.Detail, h.Cause = Healthy, "ready", nil
		case h.State == Degraded && h.Detail == "trouble" && v.clean >= 2 && now.Sub(h.Since) >= 10*time.Second:
			h.State, h.Detail, h.Cause = Healthy, "ready", nil
		}
	})
}

// note takes what an outcome says about the server's health. Only trouble with the
// connection counts: an error that a server answers with is an answer.
func (v *vitals) note(o Outcome) {
	f := o.Fault
	switch {
	case f == nil:
		v.success()
	case f.Exited || f.Kind == fault.ServerHung || f.Delivery == fault.Cancelled:
		// Told by whoever saw the process end, or nobody's failure.
	case f.Delivery == fault.Unsent && f.Moment == fault.AtStart:
		v.lost(f, true) // nothing listens there any more
	case f.Delivery == fault.Refused && f.HTTPStatus != 429:
	default:
		v.trouble(f)
	}
}

// unwell reports whether the server is down or has just been.
func (v *vitals) unwell() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pace.upSince.IsZero() && v.pace.failed > 0
}

// Kick allows the next start at once.
func (s *Server) Kick() {
	v := &s.vitals
	v.mu.Lock()
	v.pace.kick(time.Now())
	close(v.kicked)
	v.kicked = make(chan struct{})
	v.mu.Unlock()
	v.update(func(h *Health, _ time.Time) { h.NextAttempt = time.Time{} })
}

// turn waits until the server may be started, and lets only one start it while it
// is unwell. The caller must call done with the verdict. stop ends the waiting; so
// does a pause of more than patience, which is returned.
func (v *vitals) turn(stop <-chan struct{}, patience time.Duration) (done func(), pause time.Duration, ok bool) {
	for {
		if !v.unwell() {
			return func() {}, 0, true
		}
		v.mu.Lock()
		wait := v.pace.allowed(time.Now())
		if v.starting == nil && wait > patience {
			v.mu.Unlock()
			return nil, wait, false
		}
		busy, kicked := v.starting, v.kicked
		if busy == nil && wait == 0 {
			mine := make(chan struct{})
			v.starting, v.tried = mine, true
			v.mu.Unlock()
			return func() {
				v.mu.Lock()
				v.starting = nil
				v.mu.Unlock()
				close(mine)
			}, 0, true
		}
		v.mu.Unlock()
		var due <-chan time.Time
		if busy == nil {
			pause := time.NewTimer(wait)
			defer pause.Stop()
			due = pause.C
		}
		select {
		case <-busy:
		case <-due:
		case <-kicked:
		case <-stop:
			return nil, 0, false
		}
	}
}
