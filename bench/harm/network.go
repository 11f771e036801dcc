package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/network"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

// networks are about what happens between a client and a server over HTTP.
func networks() []situation {
	const long = 60 * time.Second
	overTLS := func(id, name, server string, era2026, fullOnly bool, flags ...string) situation {
		return situation{id: id, name: name, server: server, wait: long, quick: 12 * time.Second, fullOnly: fullOnly, play: func(ctx context.Context, s *side) error {
			argv := append([]string{s.gosdk, "-http", "ADDR", "-cert", s.certs.Cert, "-key", s.certs.Key}, flags...)
			url, _, err := s.serve(ctx, "https", argv...)
			if err != nil {
				return err
			}
			c, err := s.web(url)
			if c != nil {
				c.modern = era2026
			}
			return oneCall(ctx, s, c, err, "wait")
		}}
	}
	odd := func(id, name string, wait, quick time.Duration, play func(ctx context.Context, s *side, c *conn) error, flags ...string) situation {
		return situation{id: id, name: name, server: byHand + ", HTTP/1.1", wait: wait, quick: quick, play: func(ctx context.Context, s *side) error {
			url, _, err := s.serve(ctx, "http", with([]string{s.odd, "-http", "ADDR"}, flags...)...)
			if err != nil {
				return err
			}
			c, err := s.web(url)
			if err := opened(ctx, c, err, ""); err != nil {
				return err
			}
			return play(ctx, s, c)
		}}
	}
	return []situation{
		overTLS("tls.h1", "a silent call of 60 s over HTTP/1.1 with TLS, era 2025-11-25", goSDK+", HTTP/1.1", false, true, "-h1"),
		overTLS("tls.h2", "a silent call of 60 s over HTTP/2 with TLS, era 2025-11-25", goSDK+", HTTP/2", false, false),
		overTLS("tls.h1.modern", "a silent call of 60 s over HTTP/1.1 with TLS, era 2026-07-28", goSDK+", HTTP/1.1", true, true, "-h1", "-stateless"),
		overTLS("tls.h2.modern", "a silent call of 60 s over HTTP/2 with TLS, era 2026-07-28", goSDK+", HTTP/2", true, false, "-stateless"),
		odd("http.get-hangs", "GET is never answered, a call of 20 s", 20*time.Second, 8*time.Second, oneOpenCall, "-get-hangs"),
		odd("http.closes", "each connection serves one request, 40 calls in a row", 0, 0, func(ctx context.Context, _ *side, c *conn) error {
			for i := range 40 {
				if err := works(ctx, c, "wait"); err != nil {
					return fmt.Errorf("call %d: %w", i+1, err)
				}
				if err := sleep(ctx, 50*time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		}, "-closes"),
		inFull(odd("http.trickle", "the body of a reply comes in ten pieces, 4 s apart", 40*time.Second, 0, func(ctx context.Context, _ *side, c *conn) error {
			return works(ctx, c, "wait")
		}, "-trickle", "4s")),
		odd("http.one", "a server that does one thing at a time runs a call of 60 s", long, 12*time.Second, oneOpenCall, "-one-thing"),
		{id: "outage.call", name: "no packet passes for 20 s during a call", server: goSDK + ", HTTP/1.1", wait: 20 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error { return outage(ctx, s, true) }},
		{id: "outage.idle", name: "no packet passes for 20 s, a call is made meanwhile", server: goSDK + ", HTTP/1.1", wait: 20 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error { return outage(ctx, s, false) }},
	}
}

// oneOpenCall makes one call of the situation's time on an open connection.
func oneOpenCall(ctx context.Context, s *side, c *conn) error {
	return expect(ctx, []*raw.Pending{c.call("wait", `"key":"0","seconds":`+secs(s.wait))}, func(int) string { return "done 0" })
}

// outage makes a call of 5 s to a server behind a router that passes nothing on for the
// situation's time. The outage begins in the call, or before it.
func outage(ctx context.Context, s *side, inCall bool) error {
	n, err := network.New(ctx, s.env())
	if err != nil {
		return fmt.Errorf("%w: a network of its own: %v", errCannot, err)
	}
	s.atEnd(n.Close)
	url, err := inNetwork(ctx, s, n)
	if err != nil {
		return err
	}
	s.clock()
	c, err := connectIn(s, n, url)
	if err := opened(ctx, c, err, "wait"); err != nil {
		return err
	}
	var call *raw.Pending
	start := func() { call = c.call("wait", `"key":"0","seconds":5`) }
	if inCall {
		start()
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	if err := n.Pass(ctx, false); err != nil {
		return err
	}
	if !inCall {
		start()
	}
	if err := sleep(ctx, s.wait); err != nil {
		return err
	}
	if err := n.Pass(ctx, true); err != nil {
		return err
	}
	if err := expect(ctx, []*raw.Pending{call}, func(int) string { return "done 0" }); err != nil {
		return err
	}
	return works(ctx, c, "wait")
}

// inNetwork serves on the server's machine and waits until it can be reached from the client's.
func inNetwork(ctx context.Context, s *side, n *network.Network) (url string, err error) {
	c, err := child.Start(n.AtServer(s.gosdk, "-http", network.ServerAddress), s.dir, s.env())
	if err != nil {
		return "", err
	}
	s.adopt(c)
	for {
		conn, err := n.Dial(ctx, "tcp", network.ServerAddress)
		if err == nil {
			return "http://" + network.ServerAddress + "/mcp", conn.Close()
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return "", fmt.Errorf("the server does not listen: %w\n%s", err, c.Said())
		}
	}
}

func connectIn(s *side, n *network.Network, url string) (*conn, error) {
	if s.through {
		return s.pipe(nil, n.AtClient(s.mcpmend, "run", url))
	}
	return s.direct(url, n.Dial)
}
