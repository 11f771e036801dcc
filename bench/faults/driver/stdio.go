package driver

import (
	"bufio"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// NewStdio is a client of a system that speaks over these pipes.
func NewStdio(in io.WriteCloser, out io.Reader, modern bool) *Client {
	c := &stdioConn{in: in, waiting: map[string]chan *rpc.Message{}, gone: make(chan struct{})}
	go c.read(out)
	return &Client{conn: c, modern: modern}
}

type stdioConn struct {
	writeMu sync.Mutex
	in      io.WriteCloser

	mu      sync.Mutex
	waiting map[string]chan *rpc.Message
	gone    chan struct{} // closed when the system's output ends
	pause   sync.Mutex    // held while the reader must not read
	heard   atomic.Int64  // notifications
}

func (c *stdioConn) read(out io.Reader) {
	defer close(c.gone)
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		c.pause.Lock()
		m, bad := rpc.Parse(line)
		c.pause.Unlock()
		if bad == nil {
			c.deliver(m)
		}
		if err != nil {
			return
		}
	}
}

func (c *stdioConn) deliver(m *rpc.Message) {
	if m.IsRequest() {
		// A well-behaved client answers what it cannot do.
		go c.tell(rpc.Refuse(m.ID, -32601, "method not found"))
		return
	}
	if m.Method != "" {
		c.heard.Add(1)
		return
	}
	c.mu.Lock()
	reply := c.waiting[string(m.ID)]
	delete(c.waiting, string(m.ID))
	c.mu.Unlock()
	if reply != nil {
		reply <- m
	}
}

// ask hears nothing: on this link nobody can tell what belongs to which request.
func (c *stdioConn) ask(ctx context.Context, m *rpc.Message, _ func(*rpc.Message)) (*rpc.Message, error) {
	reply := make(chan *rpc.Message, 1)
	c.mu.Lock()
	c.waiting[string(m.ID)] = reply
	c.mu.Unlock()
	// A system that does not read must not keep the caller past its deadline.
	sent := make(chan error, 1)
	go func() { sent <- c.tell(m) }()
	for {
		select {
		case err := <-sent:
			if err != nil {
				return nil, errGone
			}
			sent = nil
		case r := <-reply:
			return r, nil
		case <-c.gone:
			select {
			case r := <-reply:
				return r, nil
			default:
				return nil, errGone
			}
		case <-ctx.Done():
			if context.Cause(ctx) == errTakenBack {
				c.tell(&rpc.Message{Method: "notifications/cancelled", Params: rpc.JSON(map[string]any{"requestId": m.ID})})
			}
			return nil, ctx.Err()
		}
	}
}

func (c *stdioConn) tell(m *rpc.Message) error {
	frame := append(m.Encode(), '\n')
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, err := c.in.Write(frame)
	return err
}

func (c *stdioConn) close() { c.in.Close() }

// Pause stops reading what the system says until resume is called.
func (c *Client) Pause() (resume func()) {
	s, ok := c.conn.(*stdioConn)
	if !ok {
		return func() {}
	}
	s.pause.Lock() // one more line is read
	return s.pause.Unlock
}

// Heard counts the notifications that came over stdio.
func (c *Client) Heard() int {
	if s, ok := c.conn.(*stdioConn); ok {
		return int(s.heard.Load())
	}
	return 0
}
