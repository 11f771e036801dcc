// Package guard takes one call from its arrival to its settlement.
//
// In comes a [Call] for one server. Out comes exactly one [Reply]: what the server
// answered, or an answer of ours that says what became of the call, why, and what
// to do now. Below it, package upstream reports facts; here they are acted on.
package guard

import (
	"context"
	"net/http"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Spec says how to reach a server.
type Spec = upstream.Spec

// Peer is the client a session works for.
type Peer = upstream.Peer

// Server is one guarded server.
type Server struct {
	up *upstream.Server
}

// New guards the server that spec describes. It starts nothing.
func New(spec Spec) (*Server, error) {
	up, err := upstream.New(spec)
	if err != nil {
		return nil, err
	}
	return &Server{up: up}, nil
}

// Close ends every connection to the server; see upstream.Server.Close.
func (s *Server) Close(ctx context.Context) error { return s.up.Close(ctx) }

// Session is one client's conversation with a guarded server.
type Session struct {
	up *upstream.Session
}

// Open begins a conversation. Nothing is started before the first call.
func (s *Server) Open(peer Peer) *Session {
	return &Session{up: s.up.Open(peer)}
}

// Call is one request of a client. A Call is used once.
type Call struct {
	// Msg is the request as the client wrote it.
	Msg wire.Message
	// Header holds the Mcp-Param-* headers the client sent along. May be nil.
	Header http.Header
	// On takes messages that belong to this call and come before its reply. nil
	// sends them to the session's Peer. It must not block.
	On func(wire.Message)
	// Done takes the reply, exactly once, on any goroutine. It must not block.
	Done func(Reply)

	up upstream.Call
}

// Reply is how a call was settled.
type Reply struct {
	// Msg is the response. Write it with the id of the call's own message.
	Msg wire.Message
	// Status is the HTTP status it came with, 0 if it did not come by HTTP.
	Status int
	// None: the caller gave the call up and expects no response.
	None bool
}

// Do sees a call through. It returns at once.
func (s *Session) Do(c *Call) {
	c.up.Msg, c.up.Header, c.up.On = c.Msg, c.Header, c.On
	c.up.Done = func(o upstream.Outcome) {
		switch {
		case o.Fault == nil:
			c.Done(Reply{Msg: o.Reply, Status: o.Status})
		case o.Fault.Delivery == fault.Cancelled:
			c.Done(Reply{None: true})
		default:
			c.Done(Reply{Msg: settle(&c.Msg, o.Fault)})
		}
	}
	s.up.Do(&c.up)
}

// Cancel gives a call up. note is the client's notification, nil if it sent none.
func (s *Session) Cancel(c *Call, note *wire.Message) { s.up.Cancel(&c.up, note) }

// Send passes on a client's notification or its response to the server.
func (s *Session) Send(m wire.Message) { s.up.Send(m) }

// Attend says that the client can hear what belongs to none of its calls.
func (s *Session) Attend() { s.up.Attend() }

// Close ends the conversation.
func (s *Session) Close() { s.up.Close() }
