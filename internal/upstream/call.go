package upstream

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Call is one request on its way to a server. A Call is used once.
type Call struct {
	// Msg is the request as the client wrote it. It is read, never changed.
	Msg wire.Message
	// Header holds the Mcp-Param-* headers the client sent along. May be nil.
	Header http.Header
	// On takes messages that belong to this call and come before its reply,
	// such as progress. nil sends them to the session's Peer instead.
	// It must not block.
	On func(wire.Message)
	// Check is asked right before the call is sent, each time. What it returns
	// ends the call unsent. May be nil.
	Check func() *fault.Fault
	// Done takes the outcome, exactly once, on any goroutine. It must not block.
	Done func(Outcome)

	flight  atomic.Pointer[flight]
	gone    atomic.Bool // the caller has given it up
	settled atomic.Bool
}

// Sent reports whether any of the call may have reached the server.
func (c *Call) Sent() bool {
	f := c.flight.Load()
	return f != nil && (f.left.Load() || f.receipt.Accepted() > 0)
}

// finish reports the outcome unless one has been reported before.
func (c *Call) finish(o Outcome) {
	if c.settled.CompareAndSwap(false, true) {
		c.Done(o)
	}
}

// Outcome is what became of a call.
type Outcome struct {
	// Reply is the server's response when Fault is nil. Its id is not the
	// client's: write it with the id of the call.
	Reply wire.Message
	// Status is the HTTP status the reply came with, 0 if it did not come by HTTP.
	Status int
	// Fault says why there is no reply, and how far the request got.
	Fault *fault.Fault
	// Alone: it was the only request that the server can have been working on when
	// the connection was lost.
	Alone bool
}

// flight is one attempt to get a request answered over one link.
type flight struct {
	link    canceller
	session *Session     // whose call it is; nil for a request of our own
	call    *Call        // nil for a request of our own
	vitals  *vitals      // of the server, which every outcome says something about
	msg     wire.Message // what is sent; the client's own bytes where possible
	header  http.Header
	on      func(wire.Message) // the call's own ear; nil if it has none
	peer    func(wire.Message) // the client's, for when the call has none
	done    func(Outcome)

	settled atomic.Bool
	started atomic.Bool // something that belongs to it came back
	left    atomic.Bool // it left us, for links without receipts
	receipt wire.Receipt

	// Filled in by the link.
	at     time.Time // when it was sent
	spoilt *spoilt   // its reply, if that could not be read; guarded by the link
	id     uint64
	key    []byte // the id as sent
	token  []byte // the client's progress token as written, nil if there is none
}

// settle reports the outcome unless one has been reported before.
func (f *flight) settle(o Outcome) {
	if f.settled.CompareAndSwap(false, true) {
		if f.vitals != nil {
			f.vitals.note(o)
		}
		f.done(o)
	}
}

// hear passes a message that belongs to this flight to whoever listens for it.
func (f *flight) hear(m wire.Message) {
	if f.on != nil {
		f.on(m)
		return
	}
	f.peer(m)
}

func (f *flight) fail(flt *fault.Fault) { f.settle(Outcome{Fault: flt}) }

// canceller is whoever has a flight under way.
type canceller interface {
	// abandon gives up a flight that was sent: the server is told, and the
	// flight settles as cancelled. note is the client's own notification, nil if
	// it sent none.
	abandon(f *flight, note *wire.Message)
}

// link is one live connection to a server.
type link interface {
	canceller
	// send starts a request. It returns at once; the flight settles exactly once.
	send(*flight)
	// post sends a notification or a response, at most once.
	post(wire.Message) error
	// attend opens the channel for what the server says outside of calls, where
	// the transport needs one.
	attend()
	// close ends the connection. It returns at once and is bounded in time.
	close()
	// closed is closed when nothing of the connection is left.
	closed() <-chan struct{}
	// trouble is why the link can no longer be used, nil while it can.
	trouble() *fault.Fault
	// speak tells the transport which protocol version was agreed on; some send
	// it along with every message.
	speak(version string)
	// settled says that the handshake over the link has succeeded.
	settled()
	// inspect looks at the link's state, about once a second, and acts on it.
	inspect(now time.Time, v *vitals)
	// adopt gives the link to whoever hears through hear: one session, or, when
	// shared, all of them. A link that was asked for its era changes hands so.
	adopt(hear receiver, shared bool)
}

// receiver takes what a link hears outside of replies. f is the flight it
// belongs to, nil where that cannot be told. It must not block and owns m.
type receiver func(from link, m wire.Message, f *flight)
