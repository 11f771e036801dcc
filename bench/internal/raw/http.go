package raw

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// HTTP returns a client of the Streamable HTTP server at url. Each request decides
// its own era: one with ModernMeta in its params is sent as 2026-07-28 wants it, any
// other one in the session that initialize opened.
func HTTP(url string) *Client {
	return HTTPOver(&http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}, url)
}

// HTTPOver is like HTTP, over connections that the caller makes.
func HTTPOver(transport *http.Transport, url string) *Client {
	ctx, cancel := context.WithCancel(context.Background())
	h := &httpLink{
		url: url, ctx: ctx,
		client:    &Client{pending: map[string]chan outcome{}},
		transport: transport,
	}
	h.client.send = h.send
	h.client.close = func() error {
		err := h.endSession()
		cancel()
		h.running.Wait()
		h.transport.CloseIdleConnections()
		return err
	}
	return h.client
}

type httpLink struct {
	url       string
	ctx       context.Context // ends with the client
	client    *Client
	transport *http.Transport
	running   sync.WaitGroup

	mu      sync.Mutex
	session string
}

// send posts the message and delivers what comes back, in the background for a
// request, so that several may be open. Others are sent one after another: their
// order means something.
func (h *httpLink) send(message []byte, e envelope) {
	post := func() {
		err := h.post(message, e)
		if err == nil {
			err = errors.New("the answer ended without a reply") // unless there was one
		}
		h.client.abandon(e, err)
		if e.Method == "notifications/initialized" {
			h.running.Go(h.listen)
		}
	}
	if e.ID == nil {
		post()
		return
	}
	h.running.Go(post)
}

func (h *httpLink) post(message []byte, e envelope) error {
	req, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url, bytes.NewReader(message))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	h.describe(req.Header, e)
	res, err := h.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" && e.Method == "initialize" {
		h.mu.Lock()
		h.session = id
		h.mu.Unlock()
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return h.events(res.Body)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || e.ID == nil {
		return err
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return fmt.Errorf("HTTP %s, %s: %.300q", res.Status, res.Header.Get("Content-Type"), body)
	}
	h.client.deliver(body)
	return nil
}

// describe sets the headers that repeat what the message says.
func (h *httpLink) describe(header http.Header, e envelope) {
	h.mu.Lock()
	session := h.session
	h.mu.Unlock()
	if !bytes.Contains(e.Params, []byte(`"io.modelcontextprotocol/protocolVersion"`)) {
		if session != "" && e.Method != "initialize" {
			header.Set("Mcp-Session-Id", session)
			header.Set("MCP-Protocol-Version", "2025-11-25")
		}
		return
	}
	header.Set("MCP-Protocol-Version", "2026-07-28")
	header.Set("Mcp-Method", e.Method)
	var p struct{ Name, URI string }
	if json.Unmarshal(e.Params, &p) == nil && p.Name+p.URI != "" {
		header.Set("Mcp-Name", p.Name+p.URI)
	}
}

// listen reads the session's own stream, if the server has one.
func (h *httpLink) listen() {
	req, err := http.NewRequestWithContext(h.ctx, http.MethodGet, h.url, nil)
	if err != nil {
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	h.describe(req.Header, envelope{})
	res, err := h.transport.RoundTrip(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		_ = h.events(res.Body)
	}
}

// events delivers the messages of a stream.
func (h *httpLink) events(body io.Reader) error {
	r := bufio.NewReaderSize(body, 1<<16)
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(text, []byte(" "))...)
		}
		if len(line) == 0 && len(data) > 0 {
			h.client.deliver(data)
			data = nil
		}
	}
}

func (h *httpLink) endSession() error {
	h.mu.Lock()
	session := h.session
	h.mu.Unlock()
	if session == "" {
		return nil
	}
	req, err := http.NewRequestWithContext(h.ctx, http.MethodDelete, h.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Mcp-Session-Id", session)
	req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	res, err := h.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}
