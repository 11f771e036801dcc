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
	steadyAfter  = time.Minute      // up for this long: the next restart is immediate
	forgiveAfter = 10 * time.Minute // up for this long: its past is forgotten
	penaltyHalf  = time.Minute      // half-life of the penalty
	parkAbove    = 5                // penalty at which it is parked
	slowProbe    = 5 * time.Minute  // a parked server is tried this often
	starvedRest  = time.Second      // when it was we who could not start it
	setupProbe   = time.Minute      // one that somebody has to mend, this often
)

// pace decides when a server may be started again. It is plain arithmetic on the
// times it is told: a penalty for each failure that fades by half each minute, and
// a pause that doubles. A success alone resets nothing, or a server that answers
// the handshake and then dies would be started without end.
type pace struct {
	penalty float64
	asOf    time.Time // when penalty had that value
	failed  int       // failures in a row, for the length of the pause
	upSince time.Time // zero while down
	next    time.Time // not to be started before
	parked  bool
	cheap   bool // a try costs nothing, so there is no reason to park
}

// faded is the penalty at the given time.
func (p *pace) faded(now time.Time) float64 {
	if p.penalty == 0 {
		return 0
	}
	return p.penalty * math.Exp2(-now.Sub(p.asOf).Seconds()/penaltyHalf.Seconds())
}

// up notes that the server is working.
func (p *pace) up(now time.Time) {
	p.upSince, p.parked, p.next = now, false, time.Time{}
}

// down notes that the server ended or could not be started. hopeless says that
// waiting will not mend it.
func (p *pace) down(now time.Time, hopeless bool) {
	var lived time.Duration
	if !p.upSince.IsZero() {
		lived = now.Sub(p.upSince)
	}
	if lived >= forgiveAfter {
		p.penalty, p.failed = 0, 0
	}
	p.penalty, p.asOf = p.faded(now)+1, now
	p.upSince = time.Time{}
	switch {
	case hopeless:
		p.parked, p.next = true, now.Add(setupProbe)
	case p.penalty > parkAbove && !p.cheap:
		p.parked, p.next = true, now.Add(slowProbe)
	case lived >= steadyAfter || p.failed == 0:
		// The first failure after a quiet time is started again at once.
		p.next = now
	default:
		longest := min(longestRest, shortestRest<<min(p.failed-1, 20))
		p.next = now.Add(rand.N(longest))
	}
	if lived >= steadyAfter {
		p.failed = 0
	}
	p.failed++
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
