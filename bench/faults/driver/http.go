package driver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// NewHTTP is a client of a system that listens at url.
func NewHTTP(url string, modern bool) *Client {
	t := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	return &Client{conn: &httpConn{url: url, http: &http.Client{Transport: t}, modern: modern}, modern: modern}
}

type httpConn struct {
	url    string
	http   *http.Client
	modern bool

	mu      sync.Mutex
	session string
}

func (c *httpConn) post(ctx context.Context, m *rpc.Message) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", c.url, bytes.NewReader(m.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	switch {
	case c.modern:
		req.Header.Set("MCP-Protocol-Version", rpc.Modern)
		req.Header.Set("Mcp-Method", m.Method)
		var p struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(m.Params, &p); p.Name != "" {
			req.Header.Set("Mcp-Name", p.Name)
		}
	case session != "":
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("MCP-Protocol-Version", rpc.Legacy)
	}
	return c.http.Do(req)
}

func (c *httpConn) ask(ctx context.Context, m *rpc.Message, hear func(*rpc.Message)) (*rpc.Message, error) {
	resp, err := c.post(ctx, m)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errors.Join(errGone, err)
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && m.Method == "initialize" {
		c.mu.Lock()
		c.session = id
		c.mu.Unlock()
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(ctx, resp.Body, m.ID, hear)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if reply, bad := rpc.Parse(body); bad == nil && reply.IsResponse() {
		return reply, nil
	}
	return nil, fmt.Errorf("HTTP %d: %.200s %v", resp.StatusCode, body, err)
}

func readEvents(ctx context.Context, body io.Reader, id json.RawMessage, hear func(*rpc.Message)) (*rpc.Message, error) {
	r := bufio.NewReader(body)
	for {
		line, err := r.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			m, bad := rpc.Parse(bytes.TrimSpace(data))
			switch {
			case bad != nil:
			case m.IsResponse() && bytes.Equal(m.ID, id):
				return m, nil
			default:
				hear(m)
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, errGone
		}
	}
}

func (c *httpConn) tell(m *rpc.Message) error {
	resp, err := c.post(context.Background(), m)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func (c *httpConn) close() {
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if session != "" {
		if req, err := http.NewRequest("DELETE", c.url, nil); err == nil {
			req.Header.Set("Mcp-Session-Id", session)
			if resp, err := c.http.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}
	c.http.CloseIdleConnections()
}

// Stall sends a call over a connection of its own and never reads the answer.
// release closes the connection.
func Stall(c *Client, op *Op) (release func(), err error) {
	h, ok := c.conn.(*httpConn)
	if !ok {
		return nil, errors.New("only over HTTP")
	}
	u, err := url.Parse(h.url)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	args := map[string]any{"op_id": op.ID}
	for k, v := range op.Args {
		args[k] = v
	}
	m := rpc.Message{ID: c.id(), Method: "tools/call", Params: rpc.JSON(map[string]any{"name": op.Tool, "arguments": args})}
	body := m.Encode()
	h.mu.Lock()
	session := h.session
	h.mu.Unlock()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Session-Id: %s\r\nMCP-Protocol-Version: %s\r\nContent-Length: %d\r\n\r\n%s", u.Path, u.Host, session, rpc.Legacy, len(body), body)
	return func() { conn.Close() }, err
}

// Listen opens the stream on which a server speaks unasked. The stream ends with ctx or
// with the system's will, and then ended is closed.
func Listen(ctx context.Context, c *Client) (status int, ended <-chan struct{}, err error) {
	h, ok := c.conn.(*httpConn)
	if !ok {
		return 0, nil, errors.New("only over HTTP")
	}
	req, err := http.NewRequestWithContext(ctx, "GET", h.url, nil)
	if err != nil {
		return 0, nil, err
	}
	h.mu.Lock()
	req.Header.Set("Mcp-Session-Id", h.session)
	h.mu.Unlock()
	req.Header.Set("MCP-Protocol-Version", rpc.Legacy)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := h.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}()
	return resp.StatusCode, done, nil
}
