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

// lastReplies is how long calls may still take when the client has closed its
// side but goes on listening, as a script with a pipe does.
const lastReplies = 5 * time.Second

// drainTime is how long they may take when we are asked to end. Clients kill what
// does not end soon.
const drainTime = 1500 * time.Millisecond

// Stdio serves one client on a pair of pipes. It returns when the client is gone
// or ctx is done; calls that were under way are given up then.
type Stdio struct {
	// Catalogue is what the client gets to see.
	Catalogue *catalogue.Catalogue
	// In and Out are the client's pipes.
	In, Out *os.File
	// MaxMessage is the largest message in bytes, 0 for wire.DefaultLimit.
	MaxMessage int

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
			limit := lastReplies
			if ctx.Err() != nil {
				limit = drainTime
			}
			s.awaitReplies(limit)
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		s.take(m)
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
	}))
}

// complain answers a line that was no message, as JSON-RPC asks.
func (s *Stdio) complain(j wire.Junk) {
	if m, ok := j.Answer(); ok {
		_ = s.out.Send(m, nil, nil)
	}
}

// awaitReplies lets calls finish, up to a limit, for a client that said its last
// word but still listens.
func (s *Stdio) awaitReplies(most time.Duration) {
	if s.talk == nil {
		return
	}
	limit := time.NewTimer(most)
	defer limit.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	settled := s.talk.settled()
	for {
		select {
		case <-settled:
			<-s.out.Idle()
			return
		case <-limit.C:
			return
		case <-look.C:
			if nobodyReads(s.Out) {
				return
			}
		}
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
