package upstream

import (
	"math"
	"math/rand/v2"
	"time"
)

// How a server that keeps failing is started again.
const (
	shortestRest = 250 * time.Millisecond
	longestRest  = 30 * time.Second
	steadyAfter  = time.Minute     // up for this long: the next restart is immediate
	penaltyHalf  = time.Minute     // half-life of the penalty
	parkAbove    = 5               // penalty at which it is parked
	slowProbe    = 5 * time.Minute // a parked server is tried this often
	starvedRest  = time.Second     // when it was we who could not start it
	setupProbe   = time.Minute     // one that somebody has to mend, this often
)

// pace decides when a server may be started again. It is plain arithmetic on the
// times it is told: a penalty for each start that failed, which fades by half each
// minute, and a pause that doubles. What happens after a start, in a call, is no
// reason to keep the server from everybody: see restarts.
type pace struct {
	starts  fading    // starts that failed
	crashes fading    // ends after a start that did not; only shown
	failed  int       // failed starts in a row, for the length of the pause
	upSince time.Time // zero while down
	next    time.Time // not to be started before
	parked  bool
	cheap   bool // a try costs nothing, so there is no reason to park
}

// fading is a count that fades by half each minute.
type fading struct {
	value float64
	asOf  time.Time // when it had that value
}

func (f *fading) at(now time.Time) float64 {
	if f.value == 0 {
		return 0
	}
	return f.value * math.Exp2(-now.Sub(f.asOf).Seconds()/penaltyHalf.Seconds())
}

func (f *fading) add(now time.Time) { f.value, f.asOf = f.at(now)+1, now }

// up notes that the server is working.
func (p *pace) up(now time.Time) {
	p.upSince, p.parked, p.next, p.failed = now, false, time.Time{}, 0
}

// troubled reports whether the server has been down more than once of late.
func (p *pace) troubled(now time.Time) bool { return p.starts.at(now)+p.crashes.at(now) >= 2 }

// ended notes that a server that was working has ended. It may be started again at
// once.
func (p *pace) ended(now time.Time) {
	p.crashes.add(now)
	p.upSince, p.next = time.Time{}, now
}

// down notes that the server could not be started. hopeless says that waiting will
// not mend it.
func (p *pace) down(now time.Time, hopeless bool) {
	p.starts.add(now)
	p.upSince = time.Time{}
	switch {
	case hopeless:
		p.parked, p.next = true, now.Add(setupProbe)
	case p.starts.value > parkAbove && !p.cheap:
		p.parked, p.next = true, now.Add(slowProbe)
	case p.failed == 0:
		p.next = now // the first failure after a quiet time is tried again at once
	default:
		p.next = now.Add(jitter(p.failed))
	}
	p.failed++
}

// jitter is the pause after the n-th failure in a row that is to be followed by one,
// counted from 1. All of it is chance, so that nobody comes back together.
func jitter(n int) time.Duration {
	return rand.N(min(longestRest, shortestRest<<min(n-1, 20)))
}

// restarts paces how often one instance is replaced after it ended in a call. One
// that did its work in between is replaced at once; one that only ends, more and
// more slowly.
type restarts struct{ fruitless int }

// pause is how long to wait before the next start. useful: the instance that ended
// had answered a call, or had lived for a while.
func (r *restarts) pause(useful bool) time.Duration {
	if useful {
		r.fruitless = 0
		return 0
	}
	r.fruitless++
	if r.fruitless == 1 {
		return 0
	}
	return jitter(r.fruitless - 1)
}

// starved notes that a start failed for lack of something on our side. That is no
// fault of the server's: it is tried again soon and not held against it.
func (p *pace) starved(now time.Time) {
	p.upSince, p.next = time.Time{}, now.Add(starvedRest)
	p.failed = max(p.failed, 1)
}

// kick allows a start at once: a person or a change of configuration asks for it.
func (p *pace) kick(now time.Time) { p.next = now }

// allowed says how long to wait before the next start.
func (p *pace) allowed(now time.Time) time.Duration { return max(0, p.next.Sub(now)) }
