package front

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// stdioClient is a client on the other end of our pipes, before a real server.
type stdioClient struct {
	t     *testing.T
	in    *os.File // what the client writes to
	out   *os.File // what it reads from
	lines *bufio.Reader
	stop  context.CancelFunc
	ended chan error
}

func newStdioClient(t *testing.T, front Stdio) *stdioClient {
	t.Helper()
	server, err := guard.New(guard.Spec{Command: []string{os.Args[0]}, Env: append(os.Environ(), beServer+"=1")}, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	front.Catalogue = catalogue.Of(server)
	c := &stdioClient{t: t, ended: make(chan error, 1)}
	if front.In, c.in, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	if c.out, front.Out, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewReader(c.out)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	go func() {
		err := front.Serve(ctx)
		_ = front.Out.Close()
		c.ended <- err
	}()
	t.Cleanup(func() {
		_ = c.in.Close()
		_ = c.out.Close()
		stop()
		_ = server.Close(context.Background())
		for _, f := range []*os.File{front.In, front.Out} {
			_ = f.Close()
		}
	})
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	c.next()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *stdioClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *stdioClient) next() wire.Message {
	c.t.Helper()
	_ = c.out.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("reading: %v", err)
	}
	m, err := wire.Parse(line[:len(line)-1])
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// end waits until we have ended.
func (c *stdioClient) end(within time.Duration) {
	c.t.Helper()
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Error(err)
		}
	case <-time.After(within):
		c.t.Fatalf("still there after %v", within)
	}
}

func stdioCall(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":%[1]d}}}`, id, tool, arguments)
}

func TestAStdioClientThatPausesGetsEveryReply(t *testing.T) {
	c := newStdioClient(t, Stdio{})
	const calls, size = 8, 4 << 20
	for id := 1; id <= calls; id++ {
		c.send(stdioCall(id, "large", fmt.Sprintf(`{"count":1,"size":%d}`, size)))
	}
	<-time.After(time.Second)
	for range calls {
		if m := c.next(); len(m.Result()) < size {
			t.Fatalf("got %d bytes: %.300s", len(m.Raw), m.Raw)
		}
	}
}

func TestAStdioClientThatPausesGetsEveryNotification(t *testing.T) {
	c := newStdioClient(t, Stdio{})
	const messages, size = 4000, 10_000
	c.send(stdioCall(1, "count", fmt.Sprintf(`{"count":%d,"size":%d}`, messages, size)))
	<-time.After(500 * time.Millisecond)
	for n := range messages {
		if m := c.next(); m.Method() != wire.MethodProgress {
			t.Fatalf("message %d is %v", n, &m)
		}
	}
	if m := c.next(); text(&m) != "counted" {
		t.Errorf("got %v", &m)
	}
}

func TestAClientThatHasClosedItsInputStillGetsItsReplies(t *testing.T) {
	c := newStdioClient(t, Stdio{})
	c.send(stdioCall(1, "nap", `{}`))
	_ = c.in.Close()
	c.next() // progress
	if m := c.next(); text(&m) != "awake" {
		t.Errorf("got %v", &m)
	}
	c.end(10 * time.Second)
}

func TestAClientThatClosesItsInputAndTakesNothingIsLeft(t *testing.T) {
	c := newStdioClient(t, Stdio{})
	for id := 1; id <= 3; id++ {
		c.send(stdioCall(id, "large", `{"count":1,"size":10000000}`))
	}
	// It writes until nobody takes any more, and never reads.
	_ = c.in.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for id := 10; ; id++ {
		if _, err := io.WriteString(c.in, stdioCall(id, "echo", `{"text":"`+strings.Repeat("x", 3000)+`"}`)+"\n"); err != nil {
			break
		}
	}
	_ = c.in.Close()
	c.end(deafAfter + 10*time.Second)
}

func TestAStdioClientGetsAnAnswerToEveryCallWhenWeStop(t *testing.T) {
	c := newStdioClient(t, Stdio{DrainTimeout: 50 * time.Millisecond})
	c.send(stdioCall(1, "hold", `{}`))
	c.next() // it has begun
	c.stop()
	if m := c.next(); !strings.Contains(string(m.Raw), "unknown") || string(m.ID()) != "1" {
		t.Errorf("got %v, want an answer of ours", &m)
	}
	c.end(10 * time.Second)
}
