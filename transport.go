package mcpmend

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Transport connects go-sdk clients to one server. Set Command or URL; all else
// is optional. A Transport may be connected several times, also at once.
type Transport struct {
	// Command is the program and its arguments. It is never passed to a shell.
	Command []string
	// Dir is where the program starts, "" for the current directory.
	Dir string
	// Env is the program's whole environment, nil for that of this process.
	Env []string
	// Stderr takes a copy of what the program writes to stderr. May be nil.
	Stderr io.Writer

	// URL of a server that is reached over HTTP.
	URL string
	// Header is sent with every request to URL, and to no other origin.
	Header http.Header

	// Trust is how much of what the server says about its own tools is believed
	// when a call may have to be sent again. The zero value believes nothing.
	Trust fault.Trust
	// Tools is your own word on what single tools do; it outranks everything.
	Tools map[string]fault.Effect
	// Stateful: the server remembers things between calls. After a restart the
	// first call is not run, and its error says that the memory is gone.
	Stateful bool

	// OnEvent is told what was mended and what could not be. It must not block.
	// May be nil.
	OnEvent func(Event)

	once   sync.Once
	server *guard.Server
	err    error
}

var _ mcp.Transport = (*Transport)(nil)

func (t *Transport) guarded() (*guard.Server, error) {
	t.once.Do(func() {
		t.server, t.err = guard.New(guard.Spec{
			Command: t.Command,
			Dir:     t.Dir,
			Env:     t.Env,
			Stderr:  t.Stderr,
			URL:     t.URL,
			Header:  t.Header,
		}, guard.Options{
			Policy:   fault.Policy{Trust: t.Trust, Tools: t.Tools},
			Stateful: t.Stateful,
			OnEvent:  t.OnEvent,
		})
	})
	return t.server, t.err
}

// Connect begins a conversation. The server is started by the first message, so
// the error is only ever about the Transport's own fields.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	server, err := t.guarded()
	if err != nil {
		return nil, fmt.Errorf("mcpmend: %w", err)
	}
	c := &connection{server: server, calls: make(map[jsonrpc.ID]*guard.Call)}
	c.ready.L = &c.mu
	return c, nil
}

// Health is the latest picture of the server. It takes nanoseconds, never waits and
// may be asked at any time.
func (t *Transport) Health() Health {
	server, err := t.guarded()
	if err != nil {
		return Health{}
	}
	return server.Health()
}

// Close ends every connection to the server and every process that was started,
// and waits for that, at most five seconds.
func (t *Transport) Close() error {
	server, err := t.guarded()
	if err != nil {
		return nil // nothing was ever started
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Close(ctx)
}

// connection is one client's side of a conversation, in the SDK's terms.
type connection struct {
	server *guard.Server

	mu      sync.Mutex
	ready   sync.Cond
	arrived []arrived
	size    int           // of arrived, in bytes
	room    chan struct{} // closed when there is room again; nil while nobody waits
	session *guard.Session
	era     wire.Era
	calls   map[jsonrpc.ID]*guard.Call
	closed  bool
}

// arrived is a message for the client, and how large it was.
type arrived struct {
	msg  jsonrpc.Message
	size int
}

// roomFor is how many bytes may wait for a client that does not read, before its
// server is left unread, too.
const roomFor = 1 << 20

func (c *connection) SessionID() string { return "" }

// Read returns the next message for the client.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ready.Broadcast()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.arrived) == 0 {
		if c.closed {
			return nil, io.EOF
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.ready.Wait()
	}
	next := c.arrived[0]
	c.arrived[0] = arrived{}
	c.arrived = c.arrived[1:]
	c.size -= next.size
	if c.size <= roomFor/2 {
		c.makeRoom()
	}
	return next.msg, nil
}

// Room is nil while the client has room for more; otherwise it is closed when it has.
func (c *connection) Room() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size <= roomFor || c.closed {
		return nil
	}
	if c.room == nil {
		c.room = make(chan struct{})
	}
	return c.room
}

// makeRoom tells who waits for room. The caller holds mu.
func (c *connection) makeRoom() {
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// Write takes a message of the client. It waits for the server only where that does
// not take what was sent to it before, as a pipe would.
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	m, err := wire.Parse(wire.OneLine(raw))
	if err != nil {
		return err
	}
	request, ok := msg.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		c.tell(m)
		return nil
	}
	session, err := c.meet(&m)
	if err != nil {
		return err
	}
	for full := session.Room(); full != nil; full = session.Room() {
		select {
		case <-full:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	call := &guard.Call{Msg: m}
	call.Done = func(r guard.Reply) { c.settled(request.ID, call, r) }
	c.mu.Lock()
	c.calls[request.ID] = call
	c.mu.Unlock()
	session.Do(call)
	return nil
}

// meet returns the session for a request, in the era the request is of. The SDK
// asks in the modern way first and introduces itself in the legacy one if that
// fails.
func (c *connection) meet(m *wire.Message) (*guard.Session, error) {
	era := wire.EraOfRequest(m)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, mcp.ErrConnectionClosed
	}
	if c.session != nil && (era == wire.EraUnknown || era == c.era) {
		defer c.mu.Unlock()
		return c.session, nil
	}
	if era == wire.EraUnknown {
		era = wire.Legacy
	}
	old := c.session
	c.era = era
	c.session = c.server.Open(guard.Peer{Era: era, BothEras: true, Message: c.deliver, Room: c.Room})
	session := c.session
	c.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return session, nil
}

// tell passes on a notification or a response of the client.
func (c *connection) tell(m wire.Message) {
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if session == nil {
		return
	}
	method := m.Method()
	if m.Kind == wire.Notification && method == wire.MethodCancelled {
		c.cancel(session, m)
		return
	}
	session.Send(m)
	if method == wire.MethodInitialized {
		session.Attend()
	}
}

func (c *connection) cancel(session *guard.Session, m wire.Message) {
	id, _ := wire.Member(m.Params(), "requestId")
	c.mu.Lock()
	var call *guard.Call
	for _, under := range c.calls {
		if string(under.Msg.ID()) == string(id) {
			call = under
		}
	}
	c.mu.Unlock()
	if call != nil {
		session.Cancel(call, &m)
	}
}

func (c *connection) settled(id jsonrpc.ID, call *guard.Call, r guard.Reply) {
	c.mu.Lock()
	if c.calls[id] == call {
		delete(c.calls, id)
	}
	c.mu.Unlock()
	switch {
	case r.None:
		return
	case r.Fault != nil:
		c.push(&jsonrpc.Response{ID: id, Error: &CallError{Outcome: Outcome(r.Outcome), Fault: r.Fault}}, len(r.Msg.Raw))
		return
	}
	reply := r.Msg.WithID(call.Msg.ID())
	c.deliver(reply)
}

// deliver hands a message to the client.
func (c *connection) deliver(m wire.Message) {
	size := len(m.Raw)
	msg, err := jsonrpc.DecodeMessage(m.Raw)
	m.Release()
	if err != nil {
		return // checked before; the SDK's reader is stricter than we know
	}
	c.push(msg, size)
}

func (c *connection) push(msg jsonrpc.Message, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrived = append(c.arrived, arrived{msg, size})
	c.size += size
	c.ready.Broadcast()
}

// Close ends the conversation. Calls under way are given up.
func (c *connection) Close() error {
	c.mu.Lock()
	session, was := c.session, c.closed
	c.session, c.closed = nil, true
	c.makeRoom()
	c.ready.Broadcast()
	c.mu.Unlock()
	if !was && session != nil {
		session.Close()
	}
	return nil
}
