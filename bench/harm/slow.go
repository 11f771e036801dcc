package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

// slows are about servers and people that take their time.
func slows() []situation {
	const long = 60 * time.Second
	blocked := func(id, name, server string, play func(ctx context.Context, s *side) error) situation {
		return situation{id: id, name: name, server: server, wait: long, fullOnly: true, play: play}
	}
	return []situation{
		{id: "slow.stdio", name: "a call of 90 s", server: typescript, wait: 90 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return oneCall(ctx, s, c, err, "wait")
			}},
		{id: "slow.http", name: "a call of 90 s over HTTP, nothing on the stream", server: typescript + ", HTTP/1.1", wait: 90 * time.Second, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.node, "--http", "ADDR")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return oneCall(ctx, s, c, err, "wait")
			}},
		{id: "slow.json", name: "a call of 60 s over HTTP, not even headers", server: typescript + ", HTTP/1.1", wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.node, "--http", "ADDR", "--json")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return oneCall(ctx, s, c, err, "wait")
			}},
		blocked("block.stdio", "the event loop is blocked for 60 s", typescript, func(ctx context.Context, s *side) error {
			c, err := s.stdio(s.node...)
			return oneCall(ctx, s, c, err, "block")
		}),
		blocked("block.exec", "execFileSync for 60 s, two more calls behind it", typescript, func(ctx context.Context, s *side) error {
			c, err := s.stdio(s.node...)
			return blockedCalls(ctx, s, c, err, "exec", 2)
		}),
		blocked("block.python", "blocked for 60 s, three more calls behind it", pythonHand, func(ctx context.Context, s *side) error {
			c, err := s.stdio(s.python...)
			return blockedCalls(ctx, s, c, err, "block", 3)
		}),
		{id: "block.ping", name: "the event loop is blocked for 75 s, a ping behind it", server: typescript, wait: 75 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				if err := opened(ctx, c, err, "wait"); err != nil {
					return err
				}
				calls := []*raw.Pending{c.call("block", `"key":"0","seconds":`+secs(s.wait))}
				if err := sleep(ctx, time.Second); err != nil { // by then the call has been read
					return err
				}
				ping := c.ask("ping", "{}")
				if err := expect(ctx, calls, func(int) string { return "done 0" }); err != nil {
					return err
				}
				_, err = resultOf(ping.Reply(ctx))
				return err
			}},
		blocked("block.cancelled", "blocked for 60 s, cancelled, then called again", pythonHand, func(ctx context.Context, s *side) error {
			c, err := s.stdio(s.python...)
			return cancelledBlock(ctx, s, c, err)
		}),
		{id: "block.spin", name: "the event loop computes for 15 s, a call behind it", server: typescript, wait: 15 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return blockedCalls(ctx, s, c, err, "spin", 1)
			}},
		{id: "block.http", name: "the event loop is blocked for 60 s, over HTTP", server: typescript + ", HTTP/1.1", wait: long, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.node, "--http", "ADDR")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return oneCall(ctx, s, c, err, "block")
			}},
		{id: "block.http.queue", name: "execFileSync for 60 s over HTTP, two more calls behind it", server: typescript + ", HTTP/1.1", wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.node, "--http", "ADDR", "--json")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return blockedCalls(ctx, s, c, err, "exec", 2)
			}},
		{id: "block.http.python", name: "a server of one thread is blocked for 60 s, over HTTP", server: pythonHand + ", HTTP/1.0", wait: long, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.python, "--http", "ADDR")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return blockedCalls(ctx, s, c, err, "block", 1)
			}},
		{id: "block.http.front", name: "the same with a client over HTTP", server: pythonHand + ", HTTP/1.0", wait: long, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.python, "--http", "ADDR")...)
				if err != nil {
					return err
				}
				c, err := s.front(ctx, url)
				return blockedCalls(ctx, s, c, err, "block", 1)
			}},
		{id: "block.http.again", name: "five calls in a row that block for 12 s each, over HTTP", server: typescript + ", HTTP/1.1", wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", with(s.node, "--http", "ADDR")...)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				if err := opened(ctx, c, err, ""); err != nil {
					return err
				}
				for i := range 5 {
					got, err := c.do(ctx, "block", fmt.Sprintf(`"key":"%d","seconds":%s`, i, secs(s.wait/5)))
					if err != nil || got != fmt.Sprint("done ", i) {
						return fmt.Errorf("call %d: %q, %w", i+1, got, err)
					}
				}
				return nil
			}},
		{id: "progress.stdio", name: "a call of 60 s with progress each second", server: typescript, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return progressing(ctx, s, c, err)
			}},
		{id: "progress.http", name: "a call of 60 s with progress each second, over HTTP", server: goSDK + ", HTTP/1.1", wait: long, quick: 8 * time.Second,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", s.gosdk, "-http", "ADDR")
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return progressing(ctx, s, c, err)
			}},
		{id: "progress.modern", name: "a call of 60 s with progress each second, HTTP/2, era 2026-07-28", server: goSDK + ", HTTP/2", wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "https", s.gosdk, "-http", "ADDR", "-stateless", "-cert", s.certs.Cert, "-key", s.certs.Key)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return progressing(ctx, s, modern(c), err)
			}},
		{id: "cancel", name: "a cancelled call runs on for 20 s, others are made meanwhile", server: typescript, wait: 20 * time.Second, quick: 8 * time.Second,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return cancelledWait(ctx, s, c, err)
			}},
		{id: "question.stdio", name: "a person takes 45 s to answer a tool's question", server: typescript, wait: 45 * time.Second, quick: 12 * time.Second,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return question(ctx, s, c, err)
			}},
		{id: "question.http", name: "a person takes 45 s to answer a tool's question, over HTTP", server: goSDK + ", HTTP/1.1", wait: 45 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", s.gosdk, "-http", "ADDR")
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return question(ctx, s, c, err)
			}},
		{id: "idle", name: "nothing is called for 60 s, then the same process answers", server: typescript, wait: long, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				if err := opened(ctx, c, err, ""); err != nil {
					return err
				}
				return samePID(ctx, c, func() error { return sleep(ctx, s.wait) })
			}},
	}
}

// oneCall makes one call of the situation's time.
func oneCall(ctx context.Context, s *side, c *conn, err error, tool string) error {
	return blockedCalls(ctx, s, c, err, tool, 0)
}

// blockedCalls makes one call of the situation's time, and others that are done at once
// when their turn comes.
func blockedCalls(ctx context.Context, s *side, c *conn, err error, tool string, behind int) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	calls := []*raw.Pending{c.call(tool, `"key":"0","seconds":`+secs(s.wait))}
	for i := range behind {
		if i == 0 { // by then the first one has been read
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
		}
		calls = append(calls, c.call(tool, fmt.Sprintf(`"key":"%d","seconds":0`, i+1)))
	}
	return expect(ctx, calls, func(i int) string { return fmt.Sprint("done ", i) })
}

// cancelledBlock gives a blocking call up and waits for the next one, which the same
// process answers when it has finished.
func cancelledBlock(ctx context.Context, s *side, c *conn, err error) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	return samePID(ctx, c, func() error {
		c.call("block", `"key":"0","seconds":`+secs(s.wait))
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		c.Notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d,"reason":"no time"}`, c.last.Load()))
		return works(ctx, c, "block")
	})
}

// cancelledWait gives a call up that takes no notice, and goes on with others until it
// would have been done.
func cancelledWait(ctx context.Context, s *side, c *conn, err error) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	return samePID(ctx, c, func() error {
		c.call("wait", `"key":"0","seconds":`+secs(s.wait))
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		c.Notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d,"reason":"no time"}`, c.last.Load()))
		for end := time.Now().Add(s.wait); time.Now().Before(end); {
			if err := works(ctx, c, "wait"); err != nil {
				return err
			}
			if err := sleep(ctx, time.Second/2); err != nil {
				return err
			}
		}
		return nil
	})
}

// samePID fails if another process answers after what happens.
func samePID(ctx context.Context, c *conn, happens func() error) error {
	before, err := c.do(ctx, "pid", "")
	if err != nil {
		return err
	}
	if err := happens(); err != nil {
		return err
	}
	after, err := c.do(ctx, "pid", "")
	if err == nil && after != before {
		err = fmt.Errorf("process %s answers instead of %s", after, before)
	}
	return err
}

// progressing makes a call that tells of its progress each second, and counts that.
func progressing(ctx context.Context, s *side, c *conn, err error) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	count := int(s.wait / time.Second)
	call := c.callMeta("progress", fmt.Sprintf(`"key":"0","seconds":%s,"count":%d`, secs(s.wait), count), `"progressToken":77`)
	if err := expect(ctx, []*raw.Pending{call}, func(int) string { return "done 0" }); err != nil {
		return err
	}
	return countProgress(c.Seen(), count)
}

// countProgress fails unless progress came count times, in order.
func countProgress(seen [][]byte, count int) error {
	n := 0
	for _, message := range seen {
		if !bytes.Contains(message, []byte(`"notifications/progress"`)) {
			continue
		}
		n++
		// Not parsed once more: there may be 150,000 of them.
		_, after, _ := bytes.Cut(message, []byte(`"progress":`))
		number := after[:max(bytes.IndexAny(after, ",}"), 0)]
		if string(number) != strconv.Itoa(n) || !bytes.Contains(message, []byte(`"progressToken":77`)) {
			return fmt.Errorf("notification %d is %.200s", n, message)
		}
	}
	if n != count {
		return fmt.Errorf("%d of %d notifications came", n, count)
	}
	return nil
}

// question has a tool ask the client, who takes the situation's time to answer.
func question(ctx context.Context, s *side, c *conn, err error) error {
	if err != nil {
		return err
	}
	c.Answer = func(method string, _ []byte) string {
		if method != "elicitation/create" || sleep(ctx, s.wait) != nil {
			return ""
		}
		return `{"action":"accept","content":{"name":"Ada"}}`
	}
	if err := opened(ctx, c, nil, ""); err != nil {
		return err
	}
	got, err := c.do(ctx, "ask", `"key":"it"`)
	if err == nil && got != "answer Ada" {
		err = fmt.Errorf("got %q", got)
	}
	return err
}
