package clinic

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A lingering transport lets calls end that were read before the end of input. The
// SDK drops them, so that a script which pipes its questions in gets no answers.
type lingering struct{ mcp.Transport }

// lastAnswers is how long they may take: who has closed the input may also be gone.
const lastAnswers = 2 * time.Second

func (t lingering) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lingeringConnection{Connection: c, open: make(map[jsonrpc.ID]bool), answered: make(chan struct{}, 1)}, nil
}

type lingeringConnection struct {
	mcp.Connection
	answered chan struct{} // one is there after an answer

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // calls without an answer
}

func (c *lingeringConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && r.IsCall() {
		c.note(r.ID, true)
	}
	if err != nil {
		c.wait(ctx)
	}
	return m, err
}

func (c *lingeringConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.note(r.ID, false)
	}
	return err
}

// note notes a call that was read, or answered.
func (c *lingeringConnection) note(id jsonrpc.ID, asked bool) {
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
func (c *lingeringConnection) wait(ctx context.Context) {
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
