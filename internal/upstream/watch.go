package upstream

import (
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// How often and how patiently a process is looked at.
const (
	lookEvery   = 500 * time.Millisecond
	stoppedIdle = time.Second             // a stopped process is killed after this long when nobody waits for it,
	stoppedFor  = 4500 * time.Millisecond // and after this long when somebody does
	spoiltFor   = 2 * time.Second         // how long the right reply may follow a spoilt one
	silentFor   = 5 * time.Second         // without a sign of life, with work waiting: suspicious
	idleGrace   = 10 * time.Second        // a silent one is killed after this long when nobody waits for it,
	callGrace   = 45 * time.Second        // and after this long when somebody does
	probeAfter  = 30 * time.Second        // an idle one is asked for a sign of life this often,
	probeWithin = 10 * time.Minute        // if it was used this recently
)

// watch looks after the links until there are none.
func (s *Server) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for now := range tick.C {
		s.mu.Lock()
		if len(s.links) == 0 || s.closed {
			s.watching = false
			s.mu.Unlock()
			return
		}
		links := make([]link, 0, len(s.links))
		for l := range s.links {
			links = append(links, l)
		}
		s.mu.Unlock()
		for _, l := range links {
			if l.trouble() == nil {
				l.inspect(now, &s.vitals)
			}
		}
	}
}

// reachable reports whether calls may be sent now, or have to wait for the server
// to come back.
func (s *Server) reachable() bool { return s.vitals.picture.Load().State != Dead }

// pulse is what the looks at one process have seen so far. Only the watching
// goroutine uses it.
type pulse struct {
	stoppedAt time.Time // first seen stopped; zero if it is not
	ticks     uint64
	movedAt   time.Time // when its processor time last moved
	silentAt  time.Time // first found silent; zero if it is not
	unreadAt  time.Time // since when something has lain unread
	probedAt  time.Time
}

// look is what the operating system says about a process at one moment.
type look struct {
	stopped bool   // held by a signal
	unread  int    // bytes it has not read from its stdin
	ticks   uint64 // processor time of it and its descendants
	known   bool   // false where the system does not say
}

// errand is what a process has been asked to do and has said.
type errand struct {
	starting bool      // it has not introduced itself yet; the start has a limit of its own
	waiting  int       // requests without a reply
	ours     bool      // nobody but us waits for one
	oldest   time.Time // when the oldest of them was sent
	heard    time.Time // when it last wrote anything
}

// verdict is what a look leads to.
type verdict uint8

const (
	wellOff    verdict = iota
	suspicious         // no sign of life
	doomed             // no sign of life for too long: kill it
)

// judge forms an opinion about a process. A slow answer is never a reason by
// itself: to be killed, a process must be stopped, or must neither read, nor
// write, nor compute while something waits for it.
func (p *pulse) judge(now time.Time, seen look, e errand) verdict {
	if p.movedAt.IsZero() || seen.ticks != p.ticks {
		p.ticks, p.movedAt = seen.ticks, now
	}
	if seen.stopped {
		if p.stoppedAt.IsZero() {
			p.stoppedAt = now
		}
		patience := stoppedFor
		if e.ours {
			patience = stoppedIdle
		}
		return sentence(now.Sub(p.stoppedAt) >= patience)
	}
	p.stoppedAt = time.Time{}
	switch {
	case seen.unread == 0:
		p.unreadAt = time.Time{}
	case p.unreadAt.IsZero():
		p.unreadAt = now
	}
	quiet := min(now.Sub(p.movedAt), now.Sub(e.heard), now.Sub(e.oldest))
	if e.starting || e.waiting == 0 || seen.unread == 0 || quiet < silentFor {
		p.silentAt = time.Time{}
		return wellOff
	}
	if p.silentAt.IsZero() {
		p.silentAt = now
	}
	grace := callGrace
	if e.ours {
		grace = idleGrace
	}
	return sentence(now.Sub(p.silentAt) >= grace)
}

func sentence(final bool) verdict {
	if final {
		return doomed
	}
	return suspicious
}

// inspect looks at a process and acts on what it sees.
func (l *stdioLink) inspect(now time.Time, v *vitals) {
	l.giveUpSpoilt(now)
	seen := l.look()
	if !seen.known {
		return
	}
	e := errand{starting: !l.ready.Load(), ours: l.onlyOurs(), heard: time.Unix(0, max(l.heard.Load(), l.tail.heard.Load()))}
	e.waiting, e.oldest = l.underWay()
	opinion := l.pulse.judge(now, seen, e)
	if opinion != wellOff {
		detail, cause := "silent", l.lifeless("neither reads its input, nor writes, nor uses the processor")
		if seen.stopped {
			detail, cause = "stopped", l.lifeless("was stopped by a signal and does not run")
		}
		v.unresponsive(detail, cause)
		if opinion == doomed {
			l.kill(cause)
		}
		return
	}
	v.alive()
	if !l.pulse.unreadAt.IsZero() && now.Sub(l.pulse.unreadAt) >= time.Second && !l.readersAlive() {
		l.kill(l.lifeless("closed its input and can be told nothing more"))
		return
	}
	l.probeIdle(now, e.waiting, e.heard)
}

func (l *stdioLink) lifeless(how string) *fault.Fault {
	name := l.spec.Command[0]
	return &fault.Fault{
		Kind:     fault.ServerHung,
		Evidence: fault.Evidence{Text: name[strings.LastIndexByte(name, '/')+1:] + " " + how, Command: name, Moment: fault.AtCall},
	}
}

// kill ends a lifeless process. Its calls settle when it is gone.
func (l *stdioLink) kill(why *fault.Fault) {
	l.verdict.CompareAndSwap(nil, why)
	killGroup(l.cmd)
}

// probeIdle asks a process that has nothing to do for a sign of life. The answer
// does not matter; that the question is read does.
func (l *stdioLink) probeIdle(now time.Time, waiting int, heard time.Time) {
	if waiting > 0 || !l.ready.Load() || now.Sub(heard) < probeAfter || now.Sub(heard) > probeWithin || now.Sub(l.pulse.probedAt) < probeAfter {
		return
	}
	l.pulse.probedAt = now
	method, params := wire.MethodPing, []byte(nil)
	if l.isShared() {
		method, params = wire.MethodDiscover, modernParams(nil, modernMeta(nil))
	}
	l.send(&flight{
		link: l,
		msg:  wire.NewRequest([]byte(`"mcpmend-probe"`), method, params),
		peer: func(m wire.Message) { m.Release() },
		done: func(Outcome) {},
	})
}

// underWay is how many requests wait for a reply, and since when the oldest does.
func (d *duplex) underWay() (n int, oldest time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.pending {
		if f.msg.Method() == wire.MethodListen {
			continue // it waits by design
		}
		if n++; n == 1 || f.at.Before(oldest) {
			oldest = f.at
		}
	}
	return n, oldest
}

// onlyOurs reports whether nobody but us waits for a reply.
func (d *duplex) onlyOurs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.pending {
		if f.call != nil && f.msg.Method() != wire.MethodListen {
			return false
		}
	}
	return true
}

func (d *duplex) isShared() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shared
}
