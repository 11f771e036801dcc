package clinic

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/wire"
)

// pipes are the client's. The transport of the SDK ends the session at the first
// line that is no message, and drops calls that were read before the end of input,
// so that a script which pipes its questions in gets no answers.
type pipes struct {
	in  io.ReadCloser
	out io.Writer
}

// lastAnswers is how long calls may take after the end of input: who has closed it
// may also be gone.
const lastAnswers = 2 * time.Second

func (p pipes) Connect(context.Context) (mcp.Connection, error) {
	c := &connection{
		pipes: p, read: make(chan wire.Message), closed: make(chan struct{}),
		open: make(map[jsonrpc.ID]bool), answered: make(chan struct{}, 1),
	}
	go c.listen()
	return c, nil
}

// A connection is the client on its pipes.
type connection struct {
	pipes
	read     chan wire.Message // closed at the end of input
	failed   error             // why it ended; nobody looks before read is closed
	closed   chan struct{}
	close    sync.Once
	answered chan struct{} // one is there after an answer

	writing sync.Mutex
	mu      sync.Mutex
	open    map[jsonrpc.ID]bool // calls without an answer
}

// listen reads until the end of input. It is a goroutine of its own since a read of
// standard input cannot be given up; it ends with the next line or with the program.
func (c *connection) listen() {
	defer close(c.read)
	in := wire.NewLineReader(c.in, 0, func(j wire.Junk) {
		if m, ok := j.Answer(); ok {
			_ = c.send(m.Raw) // if the client is gone, the next read says so
		}
	})
	for {
		m, err := in.Next()
		if err != nil {
			c.failed = err
			return
		}
		select {
		case c.read <- m:
		case <-c.closed:
			c.failed = io.EOF
			return
		}
	}
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case raw, ok := <-c.read:
			if !ok {
				c.wait(ctx)
				return nil, c.failed
			}
			if m := c.decode(raw); m != nil {
				return m, nil
			}
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// decode turns a message into one of the SDK's. It is nil if the SDK has no such
// message, as for an answer to nothing.
func (c *connection) decode(raw wire.Message) jsonrpc.Message {
	m, err := jsonrpc.DecodeMessage(raw.Raw)
	if err != nil {
		if raw.Kind == wire.Request {
			_ = c.send(wire.NewError(raw.ID(), wire.CodeInvalidRequest, wire.ErrEnvelope.Error(), nil).Raw)
		}
		return nil
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.note(r.ID, true)
	}
	return m
}

func (c *connection) Write(_ context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err == nil {
		err = c.send(raw)
	}
	if r, ok := m.(*jsonrpc.Response); ok {
		c.note(r.ID, false)
	}
	return err
}

func (c *connection) send(raw []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(raw, '\n'))
	return err
}

func (c *connection) Close() error {
	var err error
	c.close.Do(func() {
		close(c.closed)
		err = c.in.Close()
	})
	return err
}

func (c *connection) SessionID() string { return "" }

// note notes a call that was read, or answered.
func (c *connection) note(id jsonrpc.ID, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked {
		c.open[id] = true
		return
	}
	delete(c.open, id)
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// wait returns when all calls are answered, or have taken too long.
func (c *connection) wait(ctx context.Context) {
	late := time.After(lastAnswers)
	for {
		c.mu.Lock()
		n := len(c.open)
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}
