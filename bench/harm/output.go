package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

const megabyte = 1 << 20

// outputs are about what servers write, and about readers that are slow.
func outputs() []situation {
	logging := func(id, name string, every float64, line string) situation {
		return situation{id: id, name: name, server: byHand, wait: 5 * time.Second, play: func(ctx context.Context, s *side) error {
			c, err := s.stdio(s.odd)
			if err := opened(ctx, c, err, ""); err != nil {
				return err
			}
			quoted, err := json.Marshal(line)
			if err != nil {
				return err
			}
			call := c.call("log", fmt.Sprintf(`"key":"0","seconds":%s,"every":%g,"text":%s`, secs(s.wait), every, quoted))
			return expect(ctx, []*raw.Pending{call}, func(int) string { return "done 0" })
		}}
	}
	habit := func(id, name string, flags ...string) situation {
		return situation{id: id, name: name, server: byHand, wait: 4 * time.Second, play: func(ctx context.Context, s *side) error {
			c, err := s.stdio(with([]string{s.odd}, flags...)...)
			if err != nil {
				return err
			}
			c.ByValue = true // as in every client that parses JSON
			if err := opened(ctx, c, err, ""); err != nil {
				return err
			}
			c.Notify("notifications/roots/list_changed", "")
			return manyCalls(ctx, s, c, 4)
		}}
	}
	return []situation{
		logging("log.json", "JSON log lines on stdout during a call", 0.2, `{"level":"info","msg":"still working","time":"2026-11-15T10:00:00Z"}`),
		logging("log.error", `a log line that holds "error"`, 10, `{"level":"info","msg":"query ok","error":null}`),
		inFull(logging("log.result", `a log line that holds "result"`, 10, `{"event":"cache","id":null,"result":{"rows":3}}`)),
		logging("log.text", "a line on stdout that quotes a reply", 10, `fetched {"jsonrpc":"2.0","id":1,"result":{}} from the cache`),
		inFull(logging("log.half", "half a message on stdout", 10, `{"jsonrpc":"2.0","id":1,"result":{"content":[`)),
		habit("answers.null", "notifications are answered with a result and id null", "-answers", "null"),
		inFull(habit("answers.error", "notifications are answered with an error and id null", "-answers", "error")),
		habit("ids.float", "ids come back as 3.0", "-floats"),
		inFull(habit("ends.crlf", "lines end with CR LF", "-crlf")),
		inFull(habit("replies.twice", "each reply comes twice", "-twice")),
		inFull(habit("replies.reverse", "replies come in reverse order", "-reverse", "4")),
		{id: "big.paused", name: "10 replies of 20 MB, the reader pauses for 4 s", server: byHand, wait: 4 * time.Second, quick: 2 * time.Second, alone: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				return bigReplies(ctx, s, c, err, 10)
			}},
		{id: "big.paused.http", name: "5 replies of 20 MB over HTTP, the reader pauses for 4 s", server: goSDK + ", HTTP/2", wait: 4 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "https", s.gosdk, "-http", "ADDR", "-cert", s.certs.Cert, "-key", s.certs.Key)
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return bigReplies(ctx, s, c, err, 5)
			}},
		{id: "big.long", name: "20 MB for a reader that pauses for 40 s", server: typescript, wait: 40 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.node...)
				return bigReplies(ctx, s, c, err, 1)
			}},
		{id: "big.argument", name: "20 MB as an argument", server: byHand, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				if err := opened(ctx, c, err, ""); err != nil {
					return err
				}
				call := c.call("echo", `"text":"`+strings.Repeat("y", 20*megabyte)+`"`)
				return expect(ctx, []*raw.Pending{call}, func(int) string { return fmt.Sprint(20 * megabyte) })
			}},
		{id: "notes.paused", name: "150,000 notifications of 1 KB, the reader pauses for 4 s", server: byHand, wait: 4 * time.Second, quick: 2 * time.Second, alone: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				return notified(ctx, s, c, err, 150_000)
			}},
		{id: "notes.http", name: "20,000 notifications of 1 KB over HTTP, the reader pauses for 4 s", server: goSDK + ", HTTP/1.1", wait: 4 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", s.gosdk, "-http", "ADDR")
				if err != nil {
					return err
				}
				c, err := s.web(url)
				return notified(ctx, s, c, err, 20_000)
			}},
		{id: "notes.front", name: "the same with a client over HTTP", server: goSDK + ", HTTP/1.1", wait: 4 * time.Second, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				url, _, err := s.serve(ctx, "http", s.gosdk, "-http", "ADDR")
				if err != nil {
					return err
				}
				c, err := s.front(ctx, url)
				return notified(ctx, s, c, err, 20_000)
			}},
		{id: "stderr.flood", name: "64 MB on stderr during a call", server: byHand, alone: true, fullOnly: true,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				if err := opened(ctx, c, err, ""); err != nil {
					return err
				}
				call := c.call("stderr", fmt.Sprintf(`"key":"0","bytes":%d`, 64*megabyte))
				return expect(ctx, []*raw.Pending{call}, func(int) string { return "done 0" })
			}},
		{id: "pipe.full", name: "400 calls of 64 KB to a server that writes 256 KB for each before it reads on", server: byHand, wait: 3 * time.Second, alone: true, fullOnly: true,
			play: fullPipe},
		{id: "eof.queue", name: "stdin is closed with 20 calls unread, all are answered", server: pythonHand, wait: 2 * time.Second,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.python...)
				return closedEarly(ctx, s, c, err, "block", s.wait/20)
			}},
		{id: "eof.running", name: "stdin is closed with 20 calls running, all are answered", server: byHand, wait: 8 * time.Second, quick: 7 * time.Second,
			play: func(ctx context.Context, s *side) error {
				c, err := s.stdio(s.odd)
				return closedEarly(ctx, s, c, err, "wait", s.wait)
			}},
	}
}

// bigReplies asks for n replies of 20 MB and reads none of them for the situation's time.
func bigReplies(ctx context.Context, s *side, c *conn, err error, n int) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	c.gate.close()
	var calls []*raw.Pending
	for range n {
		calls = append(calls, c.call("big", fmt.Sprintf(`"bytes":%d`, 20*megabyte)))
	}
	err = sleep(ctx, s.wait)
	c.gate.open()
	if err != nil {
		return err
	}
	return expectBig(ctx, calls, 20*megabyte)
}

// notified has count notifications sent to a reader that pauses, and counts them.
func notified(ctx context.Context, s *side, c *conn, err error, count int) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	c.gate.close()
	call := c.callMeta("notes", fmt.Sprintf(`"key":"0","bytes":1000,"count":%d`, count), `"progressToken":77`)
	err = sleep(ctx, s.wait)
	c.gate.open()
	if err != nil {
		return err
	}
	if err := expect(ctx, []*raw.Pending{call}, func(int) string { return "done 0" }); err != nil {
		return err
	}
	return countProgress(c.Seen(), count)
}

// fullPipe sends more than the server's stdin takes while the server cannot write, since
// nobody reads: only a reader and a writer that do not wait for each other get through.
func fullPipe(ctx context.Context, s *side) error {
	c, err := s.stdio(s.odd, "-serial")
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	c.gate.close()
	const n = 400
	calls := make(chan []*raw.Pending, 1)
	go func() {
		var sent []*raw.Pending
		pad := strings.Repeat("y", 64<<10)
		for range n {
			sent = append(sent, c.call("big", fmt.Sprintf(`"bytes":%d,"text":%q`, 256<<10, pad)))
		}
		calls <- sent
	}()
	err = sleep(ctx, s.wait)
	c.gate.open()
	if err != nil {
		return err
	}
	select {
	case sent := <-calls:
		return expectBig(ctx, sent, 256<<10)
	case <-ctx.Done():
		return fmt.Errorf("the calls could not be written: %w", ctx.Err())
	}
}

// closedEarly makes 20 calls, closes stdin, as "printf ... | server" does, and waits for the
// replies.
func closedEarly(ctx context.Context, _ *side, c *conn, err error, tool string, each time.Duration) error {
	if err := opened(ctx, c, err, ""); err != nil {
		return err
	}
	var calls []*raw.Pending
	for i := range 20 {
		calls = append(calls, c.call(tool, fmt.Sprintf(`"key":"%d","seconds":%s`, i, secs(each))))
	}
	if err := c.child.Stdin.Close(); err != nil {
		return err
	}
	return expect(ctx, calls, func(i int) string { return fmt.Sprint("done ", i) })
}
