package front

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/wire"
)

const (
	// inputEnds is how long servers keep their input after the client has closed its
	// side. Directly they would have lost it at once.
	inputEnds = 5 * time.Second
	// deafAfter is how long a client that has closed its side may take nothing of
	// what waits for it.
	deafAfter = 5 * time.Second
	// defaultDrain is how long calls may still take when we are told to stop.
	defaultDrain = 5 * time.Second
	// lookEvery is how often it is looked whether the client is still there.
	lookEvery = 100 * time.Millisecond
)

// Stdio serves one client on a pair of pipes. It returns when the client is gone
// or ctx is done; calls that were under way are answered then.
type Stdio struct {
	// Catalogue is what the client gets to see.
	Catalogue *catalogue.Catalogue
	// In and Out are the client's pipes.
	In, Out *os.File
	// MaxMessage is the largest message in bytes, 0 for wire.DefaultLimit.
	MaxMessage int
	// DrainTimeout is how long calls may still take when ctx is done, 0 for five
	// seconds. What is left then is answered by us.
	DrainTimeout time.Duration

	out  *wire.LineWriter
	talk *conversation
	era  wire.Era
}

// Serve reads from the client until it ends.
func (s *Stdio) Serve(ctx context.Context) error {
	s.out = wire.NewLineWriter(s.Out)
	defer s.hangUp()
	stop := context.AfterFunc(ctx, func() { _ = s.In.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	in := wire.NewLineReader(s.In, s.MaxMessage, s.complain)
	for {
		m, err := in.Next()
		if err != nil {
			s.finish(ctx)
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		s.take(m)
		if !s.awaitRoom(ctx) {
			return nil
		}
	}
}

func (s *Stdio) take(m wire.Message) {
	if m.Kind != wire.Request {
		if s.talk != nil {
			s.talk.send(m)
			if m.Kind == wire.Notification && m.Method() == wire.MethodInitialized {
				s.talk.session.Attend()
			}
		}
		return
	}
	s.meet(&m)
	call := &catalogue.Call{Msg: m}
	call.Done = func(r catalogue.Reply) {
		if !r.None {
			_ = s.out.Send(r.Msg, m.ID(), nil)
		}
	}
	s.talk.do(call)
}

// meet opens the session in the client's era. A client of both eras may ask in
// the modern way first and introduce itself in the legacy one afterwards.
func (s *Stdio) meet(m *wire.Message) {
	era := s.era
	if era != wire.Legacy {
		if said := wire.EraOfRequest(m); said != wire.EraUnknown {
			era = said
		}
	}
	if era == wire.EraUnknown {
		era = wire.Legacy
	}
	if s.talk != nil && era == s.era {
		return
	}
	if s.talk != nil {
		s.talk.session.Close()
	}
	s.era = era
	s.talk = newConversation(s.Catalogue.Open(catalogue.Peer{
		Era:     era,
		Message: func(m wire.Message) { _ = s.out.Send(m, nil, nil) },
		Room:    s.out.Room,
	}))
}

// complain answers a line that was no message, as JSON-RPC asks.
func (s *Stdio) complain(j wire.Junk) {
	if m, ok := j.Answer(); ok {
		_ = s.out.Send(m, nil, nil)
	}
}

// awaitRoom reads the client no further while the server does not take what was sent
// to it, or the client does not take what it is sent: as pipes do. It reports false
// if the client is not worth waiting for.
func (s *Stdio) awaitRoom(ctx context.Context) bool {
	for {
		full := s.out.Room()
		if full == nil && s.talk != nil {
			full = s.talk.session.Room()
		}
		if full == nil {
			return true
		}
		if !s.wait(ctx, full, &deafness{}) {
			return false
		}
		if ctx.Err() != nil || nothingLeft(s.In) {
			return true // what is left is seen to by who reads on
		}
	}
}

// wait waits for done, or until ctx is done, or until all that is left to read is the end
// of the input, which needs no room. It reports false when the client has
// gone, or has closed its side and takes nothing any more.
func (s *Stdio) wait(ctx context.Context, done <-chan struct{}, d *deafness) bool {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return true
		case now := <-look.C:
			// The end is seen without reading: before it there may be more than we
			// have room for.
			if nobodyReads(s.Out) || hasEnded(s.In) && d.lasts(now, s.out) {
				return false
			}
			if !d.ended && nothingLeft(s.In) {
				return true
			}
		}
	}
}

// deafness is since when a client has taken nothing of what waits for it.
type deafness struct {
	ended bool // the end of its input has been read
	since time.Time
	taken int64
}

func (d *deafness) lasts(now time.Time, out *wire.LineWriter) bool {
	waiting := true
	select {
	case <-out.Idle():
		waiting = false
	default:
	}
	if taken := out.Written(); !waiting || taken != d.taken || d.since.IsZero() {
		d.since, d.taken = now, taken
	}
	return now.Sub(d.since) >= deafAfter
}

// finish lets calls end for a client that has said its last word and still listens,
// as a script with a pipe does. When we are told to stop they have the drain
// timeout, and what is left then is answered by us.
func (s *Stdio) finish(ctx context.Context) {
	if s.talk == nil {
		return
	}
	d := &deafness{ended: true}
	if ctx.Err() == nil {
		settled := s.talk.settled()
		early, cancel := context.WithTimeout(ctx, inputEnds)
		there := s.wait(early, settled, d)
		cancel()
		if there && ctx.Err() == nil && !isClosed(settled) {
			s.talk.session.EndInput()
			there = s.wait(ctx, settled, d)
		}
		if !there {
			return
		}
	}
	if ctx.Err() != nil {
		limit := s.DrainTimeout
		if limit <= 0 {
			limit = defaultDrain
		}
		drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if !s.wait(drained, s.talk.settled(), d) {
			return
		}
		s.talk.stop()
	}
	s.wait(context.WithoutCancel(ctx), s.out.Idle(), d)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Stdio) hangUp() {
	if s.talk != nil {
		s.talk.session.Close()
	}
	select {
	case <-s.out.Idle():
	case <-time.After(time.Second):
	}
}
