// Package driver plays the clients of a system under test. It speaks raw
// JSON-RPC over stdio or Streamable HTTP, in either era, and keeps a journal:
// when each operation was asked for, when it was answered, and what the answer
// claims.
package driver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// Op is one operation: what was asked, and what came of it.
type Op struct {
	ID    string         `json:"id"`
	Index int            `json:"index"`
	Tool  string         `json:"tool"`
	Args  map[string]any `json:"-"`
	// Deadline is how long the caller waits. An answer may come a second late.
	Deadline time.Duration `json:"-"`
	// Keep the whole answer, in Reply.
	Keep  bool         `json:"-"`
	Reply *rpc.Message `json:"-"`
	// CancelWhen, when it is closed, takes the call back.
	CancelWhen <-chan struct{} `json:"-"`

	Invoked   time.Duration `json:"invoked"`
	Answered  time.Duration `json:"answered,omitempty"`
	Outcome   Outcome       `json:"outcome"`
	Text      string        `json:"text,omitempty"`
	Said      *Statement    `json:"said,omitempty"`
	Foreign   bool          `json:"foreign,omitempty"` // the answer belongs to another operation
	Cancelled bool          `json:"cancelled,omitempty"`
	// Asked and Progress count the questions and the notes of progress on the way.
	Asked    int `json:"asked,omitempty"`
	Progress int `json:"progress,omitempty"`

	token json.RawMessage // for progress
}

// Grace is how long after its deadline an answer still counts.
const Grace = time.Second

// errGone: the system under test closed the connection.
var errGone = errors.New("connection to the system under test closed")

// conn carries messages to one system under test.
type conn interface {
	// ask sends a request and waits for its answer. What else comes with it is heard.
	ask(ctx context.Context, m *rpc.Message, hear func(*rpc.Message)) (*rpc.Message, error)
	tell(m *rpc.Message) error
	close()
}

// Client is one MCP client.
type Client struct {
	// Prefix stands before the name of every tool.
	Prefix string
	// Name is who the client says it is, and what it answers when a server asks. A
	// client without one offers to answer nothing.
	Name string

	conn   conn
	modern bool
	nextID atomic.Int64

	nextToken atomic.Int64
}

// Connect shakes hands. A system that is slow to answer is waited for until
// ctx ends.
func (c *Client) Connect(ctx context.Context) error {
	if c.modern {
		_, err := c.Ask(ctx, "server/discover", map[string]any{})
		return err
	}
	reply, err := c.Ask(ctx, "initialize", map[string]any{
		"protocolVersion": rpc.Legacy, "capabilities": c.capabilities(), "clientInfo": c.info(),
	})
	if err != nil {
		return err
	}
	if reply.Error != nil {
		return reply.Error
	}
	return c.conn.tell(&rpc.Message{Method: "notifications/initialized"})
}

func (c *Client) info() map[string]any {
	return map[string]any{"name": cmp.Or(c.Name, "faults"), "version": "1"}
}

func (c *Client) capabilities() map[string]any {
	if c.Name == "" && !c.modern {
		return map[string]any{}
	}
	return map[string]any{"elicitation": map[string]any{}}
}

// Ask sends any request and waits for its answer.
func (c *Client) Ask(ctx context.Context, method string, params map[string]any) (*rpc.Message, error) {
	return c.ask(ctx, method, params, func(*rpc.Message) {})
}

func (c *Client) ask(ctx context.Context, method string, params map[string]any, hear func(*rpc.Message)) (*rpc.Message, error) {
	if c.modern {
		params = withMeta(params, map[string]any{
			rpc.MetaVersion: rpc.Modern, rpc.MetaCapabilities: c.capabilities(), rpc.MetaClientInfo: c.info(),
		})
	}
	return c.conn.ask(ctx, &rpc.Message{ID: c.id(), Method: method, Params: rpc.JSON(params)}, hear)
}

// answer is what the client says when it is asked for something.
func (c *Client) answer() map[string]any {
	return map[string]any{"action": "accept", "content": map[string]any{"who": c.Name}}
}

// Use sets the id that the next request will have, to make two clients use the same.
func (c *Client) Use(id int64) { c.nextID.Store(id - 1) }

func (c *Client) id() json.RawMessage { return rpc.JSON(c.nextID.Add(1)) }

func withMeta(params, meta map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range params {
		out[k] = v
	}
	all := map[string]any{}
	if old, ok := params["_meta"].(map[string]any); ok {
		for k, v := range old {
			all[k] = v
		}
	}
	for k, v := range meta {
		all[k] = v
	}
	out["_meta"] = all
	return out
}

// Close ends the connection.
func (c *Client) Close() { c.conn.close() }

// Do performs op and fills in its outcome.
func (c *Client) Do(ctx context.Context, op *Op) {
	args := map[string]any{"op_id": op.ID}
	for k, v := range op.Args {
		args[k] = v
	}
	params := map[string]any{"name": c.Prefix + op.Tool, "arguments": args}
	if _, ok := args["progress_ms"]; ok {
		op.token = rpc.JSON(op.ID)
		if c.Name != "" {
			op.token = rpc.JSON(c.nextToken.Add(1)) // the same numbers in every client, as with the SDKs
		}
		params["_meta"] = map[string]any{"progressToken": op.token}
	}
	hear := func(m *rpc.Message) { c.hear(op, m) }
	ctx, stop := context.WithTimeout(ctx, op.Deadline+Grace)
	defer stop()
	if op.CancelWhen != nil {
		ctx, stop = withSignal(ctx, op.CancelWhen)
		defer stop()
	}
	op.Invoked = ledger.Now()
	for round := 0; ; round++ {
		reply, err := c.ask(ctx, "tools/call", params, hear)
		op.Answered = ledger.Now()
		if err != nil {
			op.fail(ctx, err)
			return
		}
		op.settle(reply)
		more := op.Text == "input_required" && round < 8
		if !more || !c.answerInput(reply.Result, params) {
			if asked, _ := args["ask"].(bool); asked && op.Outcome == OK && !strings.HasSuffix(op.Text, " by "+c.Name) {
				op.Foreign = true // another one's answer was given to our tool
			}
			return
		}
	}
}

// hear takes what comes on the stream of op beside its answer: questions, which are
// answered, and progress, which must be its own.
func (c *Client) hear(op *Op, m *rpc.Message) {
	switch {
	case m.IsRequest() && m.Method == "elicitation/create" && c.Name != "":
		op.Asked++
		go c.conn.tell(rpc.Answer(m.ID, c.answer()))
	case m.IsRequest():
		go c.conn.tell(rpc.Refuse(m.ID, -32601, "method not found"))
	case m.Method == "notifications/progress":
		var p struct {
			Token   json.RawMessage `json:"progressToken"`
			Message string          `json:"message"`
		}
		json.Unmarshal(m.Params, &p)
		op.Progress++
		if p.Message != op.ID || !bytes.Equal(p.Token, op.token) {
			op.Foreign = true
		}
	}
}

// answerInput turns an input_required result into the next round of the call.
// A result that asks for nothing is the server shedding load: that is for the
// system in the middle to handle, so the driver does not come back.
func (c *Client) answerInput(result json.RawMessage, params map[string]any) bool {
	var r struct {
		State    string                     `json:"requestState"`
		Requests map[string]json.RawMessage `json:"inputRequests"`
	}
	json.Unmarshal(result, &r)
	if len(r.Requests) == 0 {
		return false
	}
	answers := map[string]any{}
	for key := range r.Requests {
		answers[key] = c.answer()
	}
	params["inputResponses"], params["requestState"] = answers, r.State
	return true
}

func withSignal(ctx context.Context, when <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-when:
			stop(errTakenBack)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { stop(nil) }
}

var errTakenBack = errors.New("taken back by the caller")

func (op *Op) fail(ctx context.Context, err error) {
	switch {
	case errors.Is(context.Cause(ctx), errTakenBack):
		op.Outcome, op.Cancelled = Unknown, true
	case errors.Is(err, errGone):
		op.Outcome = Unknown
	case ctx.Err() != nil:
		op.Outcome, op.Answered = None, 0
	default:
		op.Outcome = readError(0, err.Error())
	}
	op.Text = err.Error()
}

func (op *Op) settle(reply *rpc.Message) {
	if op.Keep {
		op.Reply = reply
	}
	outcome, said, text := readOutcome(reply)
	op.Outcome, op.Said = outcome, said
	op.Foreign = op.Foreign || outcome == OK && said == nil && !strings.HasPrefix(text, op.ID+" ")
	op.Text = text[:min(len(text), 300)]
}

// Run performs ops with so many at a time, spread over the clients, and
// returns when all are settled. The order in which they begin is theirs.
func Run(ctx context.Context, clients []*Client, ops []*Op, atOnce int) {
	queue := make(chan *Op)
	var wg sync.WaitGroup
	for i := range atOnce {
		wg.Go(func() {
			for op := range queue {
				clients[i%len(clients)].Do(ctx, op)
			}
		})
	}
	for _, op := range ops {
		queue <- op
	}
	close(queue)
	wg.Wait()
}

// Describe is op in one line, for reports of what went wrong.
func (op *Op) Describe() string {
	after := "no answer"
	if op.Answered > 0 {
		after = "after " + (op.Answered - op.Invoked).Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%s %s: %s, %s: %s", op.ID, op.Tool, op.Outcome, after, op.Text)
}
