package ledger

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// serveStdio reads requests line by line until stdin ends.
func (s *server) serveStdio() {
	s.write = func(b []byte) {
		s.loop.Lock()
		defer s.loop.Unlock()
		writeAll(1, b)
	}
	if s.plan.Stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	for _, f := range s.points.match(AtStart, nil) {
		if f.Do == Say {
			s.write([]byte(f.Text))
			continue
		}
		s.strike(f, nil)
	}
	var pending []byte
	chunk := make([]byte, 64<<10)
	for {
		s.beforeRead()
		for !awaitInput(5) || s.deaf.Load() {
			if s.deaf.Load() {
				unix.Close(0)
				select {}
			}
		}
		batch, rest, ok := s.read(pending, chunk)
		pending = rest
		for _, job := range batch {
			go s.run(job.msg, job.call)
		}
		if !ok {
			if s.plan.Stubborn {
				select {}
			}
			return
		}
	}
}

type job struct {
	msg  *rpc.Message
	call *call
}

// read takes what is in the pipe and enters every request in the book before
// any of them is acted on, in one step as seen by freeze.
func (s *server) read(pending, chunk []byte) (batch []job, rest []byte, ok bool) {
	s.loop.Lock()
	defer s.loop.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	n, err := unix.Read(0, chunk)
	if n <= 0 {
		return nil, pending, err == unix.EINTR
	}
	pending = append(pending, chunk[:n]...)
	var lines []Line
	for {
		line, after, found := bytes.Cut(pending, []byte{'\n'})
		if !found {
			break
		}
		pending = after
		m, err := rpc.Parse(line)
		if err != nil {
			continue
		}
		c, entry, isCall := s.receive(m)
		if isCall {
			lines = append(lines, entry)
			s.mu.Lock()
			s.calls[string(m.ID)] = c
			s.mu.Unlock()
		}
		batch = append(batch, job{m, c})
	}
	if len(lines) > 0 {
		s.book.Write(false, lines...)
	}
	return batch, bytes.Clone(pending), true
}

func (s *server) run(m *rpc.Message, c *call) {
	if !m.IsRequest() {
		switch {
		case m.Method == "notifications/cancelled":
			s.cancel(m)
		case m.IsResponse():
			s.hear(m)
		}
		return
	}
	a := s.serve(context.Background(), m, c, func(n *rpc.Message) { s.write(append(n.Encode(), '\n')) })
	if a != nil {
		s.reply(a)
	}
}

// reply writes an answer to stdout, spoiled as the plan says.
func (s *server) reply(a *answer) {
	if s.plan.FloatIDs {
		a.msg.ID = append(a.msg.ID, ".0"...)
	}
	frame := append(a.msg.Encode(), '\n')
	if a.call == nil {
		s.write(frame)
		return
	}
	for _, f := range a.spoil {
		frame = expand(f, a, frame)
	}
	for _, f := range s.points.match(MidReply, a.call) {
		// The lock is kept: nothing may follow what was broken off.
		s.loop.Lock()
		writeAll(1, frame[:min(f.N, len(frame))])
		s.strike(f, a.call)
	}
	s.write(frame)
	s.book.Write(false, Line{Kind: Reply, Op: a.call.op, Tool: a.call.tool})
	s.mu.Lock()
	delete(s.calls, string(a.call.id))
	s.mu.Unlock()
	for _, f := range s.points.match(AfterReply, a.call) {
		s.strike(f, a.call)
	}
}

// expand writes the text of a fault with the true answer put in its places.
func expand(f Fault, a *answer, frame []byte) []byte {
	reply := strings.TrimSuffix(string(frame), "\n")
	text := strings.NewReplacer(
		"{{reply}}", reply,
		"{{half}}", reply[:len(reply)/2],
		"{{result}}", string(a.msg.Result),
		"{{id}}", string(a.msg.ID),
		"{{op}}", a.call.op,
		"{{bad utf-8}}", "\xff\xfe\x00",
	).Replace(f.Text)
	// The long ones last, so that they are neither made nor copied for nothing.
	switch {
	case strings.Contains(text, "{{big}}"):
		text = strings.Replace(text, "{{big}}", strings.Repeat("x", f.N), 1)
	case strings.Contains(text, "{{deep}}"):
		text = strings.Replace(text, "{{deep}}", strings.Repeat("[", f.N)+strings.Repeat("]", f.N), 1)
	}
	return []byte(text)
}

// beforeRead strikes while requests lie unread in the pipe.
func (s *server) beforeRead() {
	for i, f := range s.points.faults {
		if f.At != BeforeRead || int(s.received.Load()) < f.Op {
			continue
		}
		if !s.points.applies(i, f, nil) {
			continue
		}
		awaitInput(-1)
		// What is written together should be found together.
		for n := unread(); ; {
			time.Sleep(quiet / 10)
			if m := unread(); m == n {
				break
			} else {
				n = m
			}
		}
		// An empty pipe that can be read has been closed.
		if unread() > 0 && s.points.claim(i, f, nil) {
			s.strike(f, nil)
		}
	}
}

// awaitInput reports whether stdin can be read within so many milliseconds, or
// ever when the number is negative.
func awaitInput(timeout int) bool {
	fds := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, timeout)
		if err != unix.EINTR {
			return n > 0
		}
	}
}

func unread() int {
	n, _ := unix.IoctlGetInt(0, unix.TIOCINQ)
	return n
}

func writeAll(fd int, b []byte) {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return
		}
		b = b[n:]
	}
}

// notify floods the client with notifications.
func (s *server) notify(n int) {
	for i := range n {
		m := rpc.Message{Method: "notifications/message", Params: rpc.JSON(map[string]any{"level": "info", "data": i})}
		s.write(append(m.Encode(), '\n'))
	}
}

// ask sends a request from the server to the client, which the modern era forbids.
func (s *server) ask() {
	m := rpc.Message{ID: []byte(`"from-server"`), Method: "roots/list"}
	s.write(append(m.Encode(), '\n'))
}

// resetSignal gives a signal back its default, which package signal cannot do
// for those the runtime itself handles.
func resetSignal(sig syscall.Signal) {
	var action [4]uintptr
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// Main is the server's command line: --dir DIR [--http ADDR [--cert FILE --key FILE]].
func Main(args []string) int {
	o, err := parseOptions(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		return 2
	}
	s, err := newServer(o.dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		return 1
	}
	if o.http != "" {
		return s.serveHTTP(o)
	}
	s.book.Write(false, Line{Kind: Start})
	stop := make(chan os.Signal, 1)
	if !s.plan.Stubborn {
		signal.Notify(stop, syscall.SIGTERM)
		go func() { <-stop; os.Exit(0) }()
	}
	s.serveStdio()
	return 0
}
