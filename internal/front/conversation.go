package front

import (
	"sync"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// conversation is one client's session together with the calls it has under way,
// so that the client can take one of them back.
type conversation struct {
	session *catalogue.Session

	mu    sync.Mutex
	calls map[string]*catalogue.Call // by the client's id; see wire.IDKey
	empty chan struct{}              // closed when calls becomes empty; nil while nobody waits
}

func newConversation(session *catalogue.Session) *conversation {
	return &conversation{session: session, calls: make(map[string]*catalogue.Call)}
}

// do starts a call and remembers it until its reply has been handed to done.
func (c *conversation) do(call *catalogue.Call) {
	key := wire.IDKey(call.Msg.ID())
	done := call.Done
	call.Done = func(r catalogue.Reply) {
		c.mu.Lock()
		if c.calls[key] == call {
			delete(c.calls, key)
		}
		if len(c.calls) == 0 && c.empty != nil {
			close(c.empty)
			c.empty = nil
		}
		c.mu.Unlock()
		done(r)
	}
	c.mu.Lock()
	c.calls[key] = call
	c.mu.Unlock()
	c.session.Do(call)
}

// send takes a notification or a response of the client.
func (c *conversation) send(m wire.Message) {
	if m.Kind == wire.Notification && m.Method() == wire.MethodCancelled {
		id, _ := wire.Member(m.Params(), "requestId")
		c.mu.Lock()
		call := c.calls[wire.IDKey(id)]
		c.mu.Unlock()
		if call != nil {
			c.session.Cancel(call, &m)
		}
		return
	}
	c.session.Send(m)
}

// stop answers every call that is under way in our own name.
func (c *conversation) stop() {
	c.mu.Lock()
	left := make([]*catalogue.Call, 0, len(c.calls))
	for _, call := range c.calls {
		left = append(left, call)
	}
	c.mu.Unlock()
	for _, call := range left {
		c.session.Stop(call)
	}
}

// settled is closed once no call is under way.
func (c *conversation) settled() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.empty != nil {
		return c.empty
	}
	empty := make(chan struct{})
	if len(c.calls) == 0 {
		close(empty)
	} else {
		c.empty = empty
	}
	return empty
}
