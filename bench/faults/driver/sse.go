package driver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// NewSSE is a client of a system that speaks the HTTP+SSE transport of 2024:
// one stream for all answers, and an address of its own for requests.
func NewSSE(address string) *Client {
	c := &sseConn{
		stdioConn: stdioConn{waiting: map[string]chan *rpc.Message{}, gone: make(chan struct{})},
		address:   address, ready: make(chan struct{}),
	}
	c.in = sseWriter{c}
	go c.listen()
	return &Client{conn: c}
}

// sseConn matches answers to requests as the stdio client does; only the way
// of the bytes is another.
type sseConn struct {
	stdioConn
	address string

	once  sync.Once
	ready chan struct{} // closed when post is known
	post  string
	body  interface{ Close() error }
}

func (c *sseConn) listen() {
	defer close(c.gone)
	resp, err := c.open()
	if err != nil {
		return
	}
	defer resp.Body.Close()
	c.mu.Lock()
	c.body = resp.Body
	c.mu.Unlock()
	event, r := "", bufio.NewReader(resp.Body)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		line = bytes.TrimSpace(line)
		if name, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			event = strings.TrimSpace(string(name))
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		data = bytes.TrimSpace(data)
		if event == "endpoint" {
			c.found(string(data))
			continue
		}
		if m, err := rpc.Parse(data); err == nil {
			c.deliver(m)
		}
	}
}

// open asks for the stream until it is given: a system may listen before it is
// ready to serve.
func (c *sseConn) open() (*http.Response, error) {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(c.address)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		if err == nil {
			resp.Body.Close()
			err = fmt.Errorf("HTTP %d", resp.StatusCode)
		}
		if time.Since(begin) > 15*time.Second {
			return nil, err
		}
	}
}

func (c *sseConn) found(endpoint string) {
	base, err := url.Parse(c.address)
	if err != nil {
		return
	}
	post, err := base.Parse(endpoint)
	if err != nil {
		return
	}
	c.once.Do(func() {
		c.post = post.String()
		close(c.ready)
	})
}

func (c *sseConn) ask(ctx context.Context, m *rpc.Message, hear func(*rpc.Message)) (*rpc.Message, error) {
	select {
	case <-c.ready:
	case <-c.gone:
		return nil, errGone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.stdioConn.ask(ctx, m, hear)
}

func (c *sseConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.body != nil {
		c.body.Close()
	}
}

// sseWriter posts what is written to it.
type sseWriter struct{ c *sseConn }

func (w sseWriter) Write(frame []byte) (int, error) {
	resp, err := http.Post(w.c.post, "application/json", bytes.NewReader(bytes.TrimSpace(frame)))
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	if resp.StatusCode >= 400 {
		return 0, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return len(frame), nil
}

func (w sseWriter) Close() error { return nil }
