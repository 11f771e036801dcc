// Package raw speaks JSON-RPC with an MCP server, bytes out and bytes in. No SDK
// is involved, so what a benchmark compares is what was on the wire.
package raw

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// ModernMeta is the member of params that makes a request one of 2026-07-28.
const ModernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}`

// Initialize is the params of a legacy handshake with every capability declared.
const Initialize = `{"protocolVersion":"2025-11-25","clientInfo":{"name":"raw","version":"1"},` +
	`"capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}}`

// A Client is one connection to a server.
type Client struct {
	// Answer returns the result for a request from the server, as JSON. It must be set
	// before the first call. Without it every such request is answered with an error.
	Answer func(method string, params []byte) string
	// ByValue takes a reply whose id is the same number, otherwise written, as clients do
	// that parse it: 3.0 for 3. It must be set before the first call.
	ByValue bool

	send  func(message []byte, e envelope)
	close func() error

	mu      sync.Mutex
	pending map[string]chan outcome
	seen    [][]byte
	lost    error // set once the connection is gone
}

type outcome struct {
	reply []byte
	err   error
}

// envelope is what routing needs of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`

	done chan outcome // of the call that this message makes
}

// Stdio returns a client that writes lines to in and reads lines from out. close
// is called by Close.
func Stdio(in io.Writer, out io.Reader, close func() error) *Client {
	c := &Client{pending: map[string]chan outcome{}, close: close}
	var mu sync.Mutex
	c.send = func(message []byte, e envelope) {
		mu.Lock()
		_, err := in.Write(append(message, '\n'))
		mu.Unlock()
		if err != nil {
			c.abandon(e, err)
		}
	}
	go func() {
		r := bufio.NewReaderSize(out, 1<<16)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				c.gone(fmt.Errorf("the connection ended: %w", err))
				return
			}
			c.deliver(bytes.TrimRight(line, "\r\n"))
		}
	}()
	return c
}

// Call sends a request with the given id and params, both JSON, and waits for the
// reply with exactly that id.
func (c *Client) Call(ctx context.Context, id, method, params string) ([]byte, error) {
	return c.Start(id, method, params).Reply(ctx)
}

// A Pending call has been sent.
type Pending struct {
	client *Client
	id     string
	done   chan outcome
}

// Start sends a request and does not wait.
func (c *Client) Start(id, method, params string) *Pending {
	p := &Pending{client: c, id: id, done: make(chan outcome, 1)}
	e := envelope{ID: json.RawMessage(id), Method: method, Params: json.RawMessage(params), done: p.done}
	c.mu.Lock()
	lost := c.lost
	c.pending[id] = p.done
	c.mu.Unlock()
	if lost != nil {
		c.abandon(e, lost)
		return p
	}
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q`, id, method)
	if params != "" {
		message = fmt.Appendf(message, `,"params":%s`, params)
	}
	c.send(append(message, '}'), e)
	return p
}

// Reply waits for the whole reply message.
func (p *Pending) Reply(ctx context.Context) ([]byte, error) {
	select {
	case o := <-p.done:
		return o.reply, o.err
	case <-ctx.Done():
		c := p.client
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, p.id)
		return nil, fmt.Errorf("no reply with id %s: %w; still open: %v; last seen: %.300q",
			p.id, ctx.Err(), slices.Sorted(maps.Keys(c.pending)), bytes.Join(c.seen[max(0, len(c.seen)-3):], []byte("\n")))
	}
}

// Notify sends a notification.
func (c *Client) Notify(method, params string) {
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q`, method)
	if params != "" {
		message = fmt.Appendf(message, `,"params":%s`, params)
	}
	c.send(append(message, '}'), envelope{Method: method})
}

// Handshake does initialize and initialized, and returns the reply to the former.
func (c *Client) Handshake(ctx context.Context) ([]byte, error) {
	reply, err := c.Call(ctx, `"initialize"`, "initialize", Initialize)
	if err == nil {
		c.Notify("notifications/initialized", "")
	}
	return reply, err
}

// Seen returns the messages that were not replies to calls, in order of
// arrival, and forgets them.
func (c *Client) Seen() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// Closing makes Close call also, after the connection has ended, and returns c.
func (c *Client) Closing(also func() error) *Client {
	own := c.close
	c.close = func() error { return errors.Join(own(), also()) }
	return c
}

// Close ends the connection.
func (c *Client) Close() error { return c.close() }

func (c *Client) deliver(message []byte) {
	var e envelope
	if err := json.Unmarshal(message, &e); err != nil {
		c.note(message)
		return
	}
	switch {
	case e.Method == "" && c.settle(string(e.ID), message):
	case e.Method != "" && e.ID != nil:
		c.note(message)
		c.send(c.answer(e), envelope{})
	default:
		c.note(message)
	}
}

func (c *Client) answer(e envelope) []byte {
	if c.Answer != nil {
		if result := c.Answer(e.Method, e.Params); result != "" {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, e.ID, result)
		}
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, e.ID)
}

func (c *Client) note(message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, message)
}

// settle ends the call with that id, if one is open.
func (c *Client) settle(id string, reply []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	done, open := c.pending[id]
	if number, err := strconv.ParseFloat(id, 64); err == nil && !open && c.ByValue {
		id = strconv.FormatFloat(number, 'f', -1, 64)
		done, open = c.pending[id]
	}
	if open {
		delete(c.pending, id)
		done <- outcome{reply: reply}
	}
	return open
}

// abandon ends the call that e made, if it is still open: by now its id may be that
// of another one.
func (c *Client) abandon(e envelope, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.done != nil && c.pending[string(e.ID)] == e.done {
		delete(c.pending, string(e.ID))
		e.done <- outcome{err: err}
	}
}

func (c *Client) gone(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
	for id, done := range c.pending {
		delete(c.pending, id)
		done <- outcome{err: err}
	}
}
