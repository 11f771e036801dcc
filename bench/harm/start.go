package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

// Kinds of servers, as they are shown.
const (
	typescript = "Node, TypeScript SDK"
	goSDK      = "Go SDK"
	byHand     = "Go by hand"
	pythonHand = "Python by hand"
)

// situations are all of them.
func situations() []situation {
	var all []situation
	for _, chapter := range [][]situation{starts(), slows(), outputs(), processes(), networks()} {
		all = append(all, chapter...)
	}
	return all
}

// starts are about servers that take long to start, and clients that do not wait.
func starts() []situation {
	const long = 75 * time.Second
	return []situation{
		{id: "start.python", name: "the start takes 75 s", server: pythonHand, slowStart: true, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(with(s.python, "--start", secs(s.wait))...)
				return opened(ctx, c, err, "block")
			}},
		{id: "start.typescript", name: "the start takes 75 s", server: typescript, slowStart: true, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(with(s.node, "--start", secs(s.wait))...)
				return opened(ctx, c, err, "wait")
			}},
		{id: "start.modern", name: "the start takes 75 s, era 2026-07-28", server: goSDK, slowStart: true, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.gosdk, "-start", s.wait.String())
				return opened(ctx, modern(c), err, "wait")
			}},
		{id: "start.greeting", name: "initialize is answered after 75 s", server: byHand, slowStart: true, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd, "-greet", s.wait.String())
				return opened(ctx, c, err, "wait")
			}},
		{id: "start.greeting.http", name: "initialize over HTTP is answered after 75 s", server: byHand + ", HTTP/1.1", slowStart: true, wait: long, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", s.odd, "-http", "ADDR", "-greet", s.wait.String())
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return opened(ctx, c, err, "wait")
			}},
		{id: "start.wrapped", name: "a shell prints a banner for 20 s before the server", server: byHand, slowStart: true, wait: 20 * time.Second, quick: 6 * time.Second,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio("sh", "-c", fmt.Sprintf(`echo "Installing ..."; sleep %s; echo "added 12 packages in 20s"; exec "$0"`, secs(s.wait)), s.odd)
				return opened(ctx, c, err, "wait")
			}},
		{id: "start.list", name: "tools/list takes 30 s", server: pythonHand, wait: 30 * time.Second, quick: 10 * time.Second,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(with(s.python, "--list", secs(s.wait))...)
				if err := opened(ctx, c, err, ""); err != nil {
					return err
				}
				if _, err := resultOf(c.ask("tools/list", "{}").Reply(ctx)); err != nil {
					return fmt.Errorf("tools/list: %w", err)
				}
				return works(ctx, c, "block")
			}},
		{id: "burst.64", name: "64 parallel calls of 3 s right after the start", server: byHand, wait: 3 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				return burst(ctx, s, c, err, 64)
			}},
		{id: "burst.1000", name: "1,000 parallel calls of 3 s right after the start", server: byHand, wait: 3 * time.Second, alone: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				return burst(ctx, s, c, err, 1000)
			}},
		{id: "burst.modern", name: "64 calls of 3 s sent while it still starts, era 2026-07-28", server: goSDK, wait: 3 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.gosdk, "-start", "2s")
				if err != nil {
					return err
				}
				return manyCalls(ctx, s, modern(c), 64)
			}},
		{id: "burst.typescript", name: "64 parallel calls of 3 s over HTTP", server: typescript + ", HTTP/1.1", wait: 3 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.node, "--http", "ADDR")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return burst(ctx, s, c, err, 64)
			}},
		{id: "burst.h2", name: "1,000 parallel calls of 3 s over HTTP/2 with TLS, era 2026-07-28", server: goSDK + ", HTTP/2", wait: 3 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "https", s.gosdk, "-http", "ADDR", "-stateless", "-cert", s.certs.Cert, "-key", s.certs.Key)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return burst(ctx, s, modern(c), err, 1000)
			}},
	}
}

// with is argv with arguments, nothing if there is no interpreter.
func with(argv []string, args ...string) []string {
	if len(argv) == 0 {
		return nil
	}
	return append(append([]string(nil), argv...), args...)
}

func modern(c *conn) *conn {
	if c != nil {
		c.modern = true
	}
	return c
}

func secs(d time.Duration) string { return fmt.Sprintf("%g", d.Seconds()) }

// opened does the first steps on a new connection, and calls a tool unless it is "".
func opened(ctx context.Context, c *conn, err error, tool string) error {
	if err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	if tool == "" {
		return nil
	}
	return works(ctx, c, tool)
}

// works calls a tool that is done at once.
func works(ctx context.Context, c *conn, tool string) error {
	got, err := c.do(ctx, tool, `"key":"a","seconds":0`)
	if err == nil && got != "done a" {
		err = errors.New("got " + got)
	}
	return err
}

func burst(ctx context.Context, s *side, c *conn, err error, n int) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	return manyCalls(ctx, s, c, n)
}

// manyCalls makes n calls at once, each of the situation's time.
func manyCalls(ctx context.Context, s *side, c *conn, n int) error {
	var calls []*raw.Pending
	for i := range n {
		calls = append(calls, c.call("wait", fmt.Sprintf(`"key":"%d","seconds":%s`, i, secs(s.wait))))
	}
	return expect(ctx, calls, func(i int) string { return fmt.Sprint("done ", i) })
}
