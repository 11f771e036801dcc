// Package guard takes one call from its arrival to its settlement.
//
// In comes a [Call] for one server. Out comes exactly one [Reply]: what the server
// answered, or an answer of ours that says what became of the call, why, and what
// to do now. Below it, package upstream reports facts; here they are acted on.
//
// A call passes the gate (is the server there, is there room to wait), is sent,
// and, if no answer comes back, is sent again or not as the table of package
// fault says. Nothing in here runs a tool twice that the table does not allow to
// be run twice.
package guard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// The words of the next room, for those who import only this one.
type (
	Spec   = upstream.Spec
	Peer   = upstream.Peer
	Health = upstream.Health
)

// Options say how the calls of one server are treated. The zero value is the
// careful default.
type Options struct {
	// Policy is the user's word on what the tools do.
	Policy fault.Policy
	// Stateful: the server remembers things between calls. After a restart the
	// first call is not run, and its answer says that the memory is gone.
	Stateful bool
	// MaxCall bounds one call, all attempts together; each progress that the server
	// reports extends it. 0 is no limit: the call takes as long as its server lives.
	MaxCall time.Duration
	// Arguments says what is done about arguments that do not fit.
	Arguments ArgumentOptions
	// OnEvent is told of everything that was mended. It must not block. May be nil.
	OnEvent func(Event)
}

// Event is something that was mended, or could not be.
type Event struct {
	Time time.Time
	// What: "started", "lost", "recovered", "parked", "unresponsive", "resent",
	// "mended" (its arguments), "not advised" (a model had no use, or none that may
	// be used), "settled".
	What string
	// Method and Tool of the call it is about; empty if it is about the server.
	Method, Tool string
	// Outcome of a call that was settled without the server's answer.
	Outcome fault.Outcome
	// Fault is the cause, where there is one.
	Fault *fault.Fault
}

// Server is one guarded server.
type Server struct {
	up      *upstream.Server
	options Options
	tools   tools
	budget  budget
	ramp    ramp
	queued  atomic.Int64 // bytes of calls that wait for the server to come back
	queue   atomic.Int64 // and how many they are
}

// New guards the server that spec describes. It starts nothing.
func New(spec Spec, options Options) (*Server, error) {
	s := &Server{options: options}
	s.tools.policy = options.Policy
	also := spec.OnHealth
	spec.OnHealth = func(before, after Health) {
		s.changed(before, after)
		if also != nil {
			also(before, after)
		}
	}
	up, err := upstream.New(spec)
	if err != nil {
		return nil, err
	}
	s.up = up
	return s, nil
}

// Health is the latest picture of the server. It takes nanoseconds.
func (s *Server) Health() Health { return s.up.Health() }

// Kick has a dead server started at once by the next call.
func (s *Server) Kick() { s.up.Kick() }

// Close ends every connection to the server; see upstream.Server.Close.
func (s *Server) Close(ctx context.Context) error { return s.up.Close(ctx) }

// changed takes a change of the server's health.
func (s *Server) changed(before, after Health) {
	what := ""
	switch {
	case after.Detail == "ready" && after.Recoveries > before.Recoveries:
		what = "recovered"
	case after.Detail == "ready" && before.Detail == "starting":
		what = "started"
	case after.State == upstream.Dead && after.Detail == "parked":
		what = "parked"
	case after.State == upstream.Dead:
		what = "lost"
	case after.State == upstream.Unresponsive:
		what = "unresponsive"
	}
	// News may come late; the ramp follows what is true now.
	switch now := s.up.Health(); {
	case now.State == upstream.Dead:
		s.ramp.close()
	case now.Detail == "ready" || now.Detail == "trouble":
		s.ramp.open(time.Now())
	}
	if what != "" {
		s.tell(Event{What: what, Fault: after.Cause})
	}
}

func (s *Server) tell(e Event) {
	if s.options.OnEvent != nil {
		e.Time = time.Now()
		s.options.OnEvent(e)
	}
}

// Session is one client's conversation with a guarded server.
type Session struct {
	server *Server
	up     *upstream.Session
	peer   Peer
	// forgot: the server was restarted and has to tell the client so.
	forgot atomic.Bool
	// advise asks a model; nil asks nobody.
	advise   func(context.Context, Advice) ([]byte, error)
	failures failures
	deaths   deaths
}

// Open begins a conversation. Nothing is started before the first call.
func (s *Server) Open(peer Peer) *Session {
	session := &Session{server: s, peer: peer}
	peer.Relisted = session.relisted
	session.up = s.up.Open(peer)
	session.advise = s.options.Arguments.Advise
	if by := s.options.Arguments.AdviseBy; by != nil {
		if own := by(session.up.Sample); own != nil {
			session.advise = own
		}
	}
	return session
}

// relisted compares the tools of a server that was connected again with those the
// client knows, and tells the client if they differ.
func (s *Session) relisted(pages [][]byte) {
	s.forgot.Store(s.server.options.Stateful)
	if pages == nil {
		return
	}
	if s.server.tools.replace(pages) && s.peer.Era == wire.Legacy {
		s.peer.Message(wire.NewNotification("notifications/tools/list_changed", nil))
	}
}

// Send passes on a client's notification or its response to the server.
func (s *Session) Send(m wire.Message) { s.up.Send(m) }

// Attend says that the client can hear what belongs to none of its calls.
func (s *Session) Attend() { s.up.Attend() }

// Close ends the conversation.
func (s *Session) Close() { s.up.Close() }
