// Package catalogue is what clients see of the servers behind us.
//
// In comes a request; out of its name comes the guarded server it is meant for.
// Today there is one server and the catalogue shows it as it is.
package catalogue

import (
	"context"

	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// The words of the next room, for those who import only this one.
type (
	Call  = guard.Call
	Reply = guard.Reply
	Peer  = guard.Peer
)

// Catalogue holds the servers.
type Catalogue struct {
	server *guard.Server
}

// Of shows a single server, transparently.
func Of(server *guard.Server) *Catalogue { return &Catalogue{server: server} }

// Close ends every connection to every server.
func (c *Catalogue) Close(ctx context.Context) error { return c.server.Close(ctx) }

// Session is one client's view of the catalogue.
type Session struct {
	server *guard.Session
}

// Open begins a client's conversation. Nothing is started before its first call.
func (c *Catalogue) Open(peer Peer) *Session {
	return &Session{server: c.server.Open(peer)}
}

// Do sees a call through to the server it names. It returns at once.
func (s *Session) Do(c *Call) { s.server.Do(c) }

// Cancel gives a call up. note is the client's notification, nil if it sent none.
func (s *Session) Cancel(c *Call, note *wire.Message) { s.server.Cancel(c, note) }

// Stop answers a call in our own name, since we are about to end.
func (s *Session) Stop(c *Call) { s.server.Stop(c) }

// EndInput says that the client will send nothing more; see upstream.Session.EndInput.
func (s *Session) EndInput() { s.server.EndInput() }

// Send passes on a client's notification or its response to a server.
func (s *Session) Send(m wire.Message) { s.server.Send(m) }

// Room is nil while the servers take what is sent to them. Otherwise it is closed
// when the client may be read on.
func (s *Session) Room() <-chan struct{} { return s.server.Room() }

// Attend says that the client can hear what belongs to none of its calls.
func (s *Session) Attend() { s.server.Attend() }

// Close ends the conversation.
func (s *Session) Close() { s.server.Close() }
