package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/child"
)

// memory is what mcpmend holds while nothing happens.
type memory struct {
	Resident int64 `json:"resident"` // of one mcpmend run in front of a small server, after some calls
	Private  int64 `json:"private"`  // the part of it that another mcpmend run does not share

	Session   perSession `json:"session"`   // legacy HTTP sessions that have no request open
	Listening perSession `json:"listening"` // the same with their GET streams open
}

// perSession is the growth from a few idle sessions to many.
type perSession struct {
	Sessions   int     `json:"sessions"`
	Bytes      float64 `json:"bytes"`
	Goroutines float64 `json:"goroutines"`
}

func (w *world) memory(ctx context.Context) (*memory, error) {
	m := &memory{}
	var err error
	if m.Resident, m.Private, err = w.resident(ctx); err != nil {
		return nil, fmt.Errorf("memory of one run: %w", err)
	}
	sessions, listening := 10_000, 4_000 // each stream is two descriptors of mcpmend's, and one here
	if w.quick {
		sessions, listening = 2_000, 500
	}
	if m.Session, err = w.idle(ctx, sessions, false); err != nil {
		return nil, fmt.Errorf("idle sessions: %w", err)
	}
	if m.Listening, err = w.idle(ctx, listening, true); err != nil {
		return nil, fmt.Errorf("listening sessions: %w", err)
	}
	return m, nil
}

func (w *world) resident(ctx context.Context) (rss, private int64, err error) {
	d, c, err := stdioTransport.open(ctx, w, mcpmendWay, w.small)
	if err != nil {
		return 0, 0, err
	}
	defer c.Stop()
	if err := handshake(d); err != nil {
		return 0, 0, err
	}
	r := newRequest(10_000)
	for range 1000 {
		if _, err := d.call(r.fresh()); err != nil {
			return 0, 0, err
		}
	}
	return child.Resident(c.PID())
}

// idle opens n sessions at mcpmend, which stands in front of an HTTP server, so
// that no session has a process of its own.
func (w *world) idle(ctx context.Context, n int, listen bool) (per perSession, err error) {
	server, addr, err := child.ServeHTTP(ctx, []string{w.plain, "-http", "ADDR"})
	if err != nil {
		return per, err
	}
	defer server.Stop()
	front, url, err := startFront(ctx, []string{w.mcpmend, "run", "--http", "127.0.0.1:0", "--no-token", "http://" + addr + "/mcp"})
	if err != nil {
		return per, err
	}
	defer front.Stop()
	crowd := newCrowd(url)
	defer crowd.leave()

	few := n / 100
	if err := crowd.join(ctx, few, listen); err != nil {
		return per, err
	}
	before, err := settled(front.PID())
	if err != nil {
		return per, err
	}
	if err := crowd.join(ctx, n, listen); err != nil {
		return per, err
	}
	after, err := settled(front.PID())
	if err != nil {
		return per, err
	}
	goroutines, err := front.Goroutines()
	if err != nil {
		return per, err
	}
	return perSession{Sessions: n, Bytes: float64(after-before) / float64(n), Goroutines: float64(goroutines) / float64(n+few)}, nil
}

// settled is the memory of a process once it stopped changing much.
func settled(pid int) (int64, error) {
	var last int64
	for range 20 {
		rss, _, err := child.Resident(pid)
		if err != nil {
			return 0, err
		}
		if last != 0 && rss-last < 64<<10 && last-rss < 64<<10 {
			return rss, nil
		}
		last = rss
		time.Sleep(200 * time.Millisecond)
	}
	return last, nil
}

// A crowd is many clients with a session each.
type crowd struct {
	url    string
	client *http.Client
	quit   context.CancelFunc
	ctx    context.Context
	open   sync.WaitGroup
}

func newCrowd(url string) *crowd {
	ctx, quit := context.WithCancel(context.Background())
	dialer := &net.Dialer{}
	return &crowd{url: url, ctx: ctx, quit: quit, client: &http.Client{Transport: &http.Transport{
		// A stream occupies its connection; handshakes share a few.
		MaxIdleConnsPerHost: 8,
		DialContext:         dialer.DialContext,
		ReadBufferSize:      1 << 10,
		WriteBufferSize:     1 << 10,
	}}}
}

// join opens n more sessions and leaves them alone.
func (c *crowd) join(ctx context.Context, n int, listen bool) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		session, err := c.post(initialize, "")
		if err == nil {
			_, err = c.post(initialized, session)
		}
		if err == nil && listen {
			err = c.listen(session)
		}
		if err != nil {
			return fmt.Errorf("session %d: %w", i, err)
		}
	}
	return nil
}

func (c *crowd) post(message, session string) (string, error) {
	res, err := c.send(http.MethodPost, message, session)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.Header.Get("Mcp-Session-Id"), err
}

func (c *crowd) listen(session string) error {
	res, err := c.send(http.MethodGet, "", session)
	if err != nil {
		return err
	}
	c.open.Go(func() {
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
	})
	return nil
}

// leave ends all streams. The sessions stay; mcpmend is about to be stopped.
func (c *crowd) leave() {
	c.quit()
	c.open.Wait()
	c.client.CloseIdleConnections()
}

func (m *memory) print(w io.Writer) {
	fmt.Fprintf(w, "memory of one mcpmend run: %.1f MB resident, %.1f MB of it private\n", float64(m.Resident)/1e6, float64(m.Private)/1e6)
	for _, s := range []struct {
		name string
		perSession
	}{{"idle", m.Session}, {"idle, with a GET stream", m.Listening}} {
		fmt.Fprintf(w, "%d sessions %s: %.1f KiB and %.2f goroutines each\n", s.Sessions, s.name, s.Bytes/1024, s.Goroutines)
	}
	fmt.Fprintln(w)
}

func (c *crowd) send(method, message, session string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.ctx, method, c.url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
	res, err := c.client.Do(req)
	if err == nil && res.StatusCode >= 300 {
		res.Body.Close()
		err = fmt.Errorf("%s: HTTP %s", method, res.Status)
	}
	return res, err
}
