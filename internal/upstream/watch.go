package upstream

import (
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// How often a link is looked at, and what is noticed when. Noticing is fast and
// only shown; a process is ended late and on certainty, see liveness.
const (
	lookEvery   = 500 * time.Millisecond
	noticeAfter = 1500 * time.Millisecond // without a sign of life, with something waiting: unresponsive
	spoiltFor   = 2 * time.Second         // how long the right reply may follow a spoilt one
	readerEvery = 2 * time.Second         // how often it is looked whether anybody reads the input
	// defaultHungAfter is how long a process may show no sign of life at all before it
	// is replaced.
	defaultHungAfter = 5 * time.Minute
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

// procSample is what the operating system says about a process and everything
// below it at one moment.
type procSample struct {
	known   bool   // false where the system does not say
	stopped bool   // held by a signal, and not by a debugger
	traced  bool   // held by a debugger
	unread  int    // bytes it has not read from its stdin
	ticks   uint64 // processor time used
	moved   uint64 // bytes read and written, anywhere
}

// pendingWork is what a process has been asked to do and has said.
type pendingWork struct {
	starting bool      // it has not introduced itself yet
	read     bool      // somebody waits for a request of which it has read something
	heldBack bool      // it may be waiting for us: we have not taken all of its output
	heard    time.Time // when it last wrote anything
}

// liveness is what the looks at one process have seen so far. Only the watching
// goroutine uses it.
type liveness struct {
	ticks, moved uint64
	movedAt      time.Time // when it last used the processor or moved a byte
	stoppedAt    time.Time // first seen stopped; zero if it is not
	unreadAt     time.Time // since when something has lain unread; zero if nothing does
	readersAt    time.Time // when it was last looked whether anybody reads the input
}

// verdict is what a look leads to.
type verdict uint8

const (
	lively       verdict = iota
	unresponsive         // no sign of life for a moment: shown, nothing else
	hung                 // none for so long, and nobody can be waiting for it: replaced
)

// judge decides about a process that lives. It is replaced only if it has been
// stopped for hungAfter and no debugger holds it; or if for as long its input lay
// unread while it and its children used no processor and moved no byte, nobody
// waits for a request that it has read, and we hold back none of its output. A
// start may take as long as it takes.
func (p *liveness) judge(now time.Time, seen procSample, w pendingWork, hungAfter time.Duration) verdict {
	if p.movedAt.IsZero() || seen.ticks != p.ticks || seen.moved != p.moved || seen.traced || w.heldBack {
		p.ticks, p.moved, p.movedAt = seen.ticks, seen.moved, now
	}
	p.stoppedAt = since(p.stoppedAt, seen.stopped, now)
	p.unreadAt = since(p.unreadAt, seen.unread > 0, now)
	if seen.stopped {
		if now.Sub(p.stoppedAt) >= hungAfter {
			return hung
		}
		return unresponsive
	}
	if seen.unread == 0 || w.starting {
		return lively
	}
	quiet := min(now.Sub(p.movedAt), now.Sub(p.unreadAt), now.Sub(w.heard))
	switch {
	case quiet < noticeAfter:
		return lively
	case quiet < hungAfter || w.read:
		return unresponsive
	}
	return hung
}

// since is when a condition that holds now began to hold; zero if it does not.
func since(before time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// inspect looks at a process for which something waits. An idle one is let be: its
// end is noticed without looking.
func (l *stdioLink) inspect(now time.Time, v *vitals) {
	l.giveUpSpoilt(now)
	unread := l.unreadBytes()
	work, waiting := l.pendingWork(unread)
	if !waiting && unread == 0 {
		l.liveness = liveness{}
		v.alive()
		return
	}
	seen := l.sample()
	if !seen.known {
		return
	}
	seen.unread = unread
	switch verdict := l.liveness.judge(now, seen, work, l.spec.HungAfter); verdict {
	case lively:
		v.alive()
	default:
		detail, cause := "silent", l.lifeless("neither reads its input, nor writes, nor uses the processor")
		if seen.stopped {
			detail, cause = "stopped", l.lifeless("was stopped by a signal and does not run")
		}
		v.unresponsive(detail, cause)
		if verdict == hung {
			l.kill(cause)
			return
		}
	}
	l.inspectReaders(now, work)
}

// inspectReaders replaces a process that has closed its input: it can be told
// nothing more. What it has read before, it may still answer.
func (l *stdioLink) inspectReaders(now time.Time, work pendingWork) {
	p := &l.liveness
	if work.read || p.unreadAt.IsZero() || now.Sub(p.unreadAt) < time.Second || now.Sub(p.readersAt) < readerEvery {
		return
	}
	p.readersAt = now
	if !l.readersAlive() {
		l.kill(l.lifeless("closed its input and can be told nothing more"))
	}
}

// pendingWork is what the process has to do, and whether anything waits for it.
func (l *stdioLink) pendingWork(unread int) (w pendingWork, waiting bool) {
	w = pendingWork{
		starting: !l.ready.Load(),
		heldBack: l.heldBack.Load(),
		heard:    time.Unix(0, max(l.heard.Load(), l.tail.heard.Load())),
	}
	// What was written after unread was asked for counts as read, which only makes
	// us more patient.
	read := l.in.Written() - int64(unread)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.pending {
		if f.msg.Method() == wire.MethodListen {
			continue // it waits by design
		}
		waiting = true
		if from, begun := f.receipt.From(); begun && from < read {
			w.read = true
		}
	}
	return w, waiting
}

func (l *stdioLink) unreadBytes() int {
	if l.unread == nil {
		return 0
	}
	return waitingIn(l.unread)
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
