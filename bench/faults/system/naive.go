package system

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// RunNaive is the positive control: a proxy that restarts, reconnects and
// sends again whatever was not answered, as many do. It must be caught
// running tools twice, or the benchmark catches nothing.
func RunNaive(args []string) int {
	flags := flag.NewFlagSet("naive", flag.ContinueOnError)
	patience := flags.Duration("patience", 5*time.Second, "before a call is sent again")
	if flags.Parse(args) != nil || flags.NArg() == 0 {
		return 2
	}
	n := &naive{target: flags.Args(), patience: *patience, out: newFrames(os.Stdout), pending: map[string]*attempt{}}
	if n.overHTTP = strings.HasPrefix(n.target[0], "http"); !n.overHTTP {
		n.spawn()
	}
	eachFrame(os.Stdin, n.fromClient)
	n.mu.Lock()
	n.stopped = true
	n.mu.Unlock()
	if n.child != nil {
		n.child.Process.Kill()
		n.child.Wait()
	}
	return 0
}

const naiveAttempts = 6

type naive struct {
	target   []string
	patience time.Duration
	overHTTP bool
	out      *frames

	mu      sync.Mutex
	hello   *rpc.Message // the client's initialize, to be played again
	pending map[string]*attempt
	stopped bool

	child   *exec.Cmd // stdio
	in      *frames
	session string // HTTP
}

type attempt struct {
	m     *rpc.Message
	tries int
	timer *time.Timer
}

func (n *naive) fromClient(m *rpc.Message) {
	if m.Method == "initialize" {
		n.mu.Lock()
		n.hello = m
		n.mu.Unlock()
	}
	if !m.IsRequest() {
		n.forward(m)
		return
	}
	if n.overHTTP {
		go n.post(m)
		return
	}
	a := &attempt{m: m}
	n.mu.Lock()
	n.pending[string(m.ID)] = a
	n.mu.Unlock()
	n.try(a)
}

// try sends a request, and again when no answer comes.
func (n *naive) try(a *attempt) {
	n.mu.Lock()
	a.tries++
	spent := a.tries > naiveAttempts
	if !spent && a.m.Method == "tools/call" {
		a.timer = time.AfterFunc(n.patience, func() { n.again(a) })
	}
	n.mu.Unlock()
	if spent {
		n.settle(rpc.Refuse(a.m.ID, -32001, "request timed out after %d attempts", naiveAttempts))
		return
	}
	n.forward(a.m)
}

func (n *naive) again(a *attempt) {
	n.mu.Lock()
	waiting := n.pending[string(a.m.ID)] == a
	n.mu.Unlock()
	if waiting {
		n.try(a)
	}
}

func (n *naive) forward(m *rpc.Message) {
	if n.overHTTP {
		n.do(m)
		return
	}
	n.mu.Lock()
	in := n.in
	n.mu.Unlock()
	if in != nil {
		go in.send(m)
	}
}

func (n *naive) settle(m *rpc.Message) {
	n.mu.Lock()
	a := n.pending[string(m.ID)]
	delete(n.pending, string(m.ID))
	n.mu.Unlock()
	if a == nil {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	n.out.send(m)
}

// spawn starts the server and watches it for ever.
func (n *naive) spawn() {
	cmd := exec.Command(n.target[0], n.target[1:]...)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		time.AfterFunc(100*time.Millisecond, n.respawn)
		return
	}
	n.mu.Lock()
	n.child, n.in = cmd, newFrames(in)
	n.mu.Unlock()
	go func() {
		eachFrame(out, func(m *rpc.Message) {
			if m.IsResponse() {
				n.settle(m)
			} else {
				n.out.send(m)
			}
		})
		cmd.Process.Kill()
		cmd.Wait()
		n.respawn()
	}()
}

// respawn starts the server again and sends it everything that has no answer.
func (n *naive) respawn() {
	n.mu.Lock()
	if n.stopped {
		n.mu.Unlock()
		return
	}
	var open []*attempt
	for _, a := range n.pending {
		open = append(open, a)
	}
	hello := n.hello
	n.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	n.spawn()
	if hello != nil {
		n.forward(&rpc.Message{ID: json.RawMessage(`"again"`), Method: "initialize", Params: hello.Params})
		n.forward(&rpc.Message{Method: "notifications/initialized"})
	}
	for _, a := range open {
		n.again(a)
	}
}

// post sends a request over HTTP until something that looks like an answer
// comes back.
func (n *naive) post(m *rpc.Message) {
	var last string
	for try := range naiveAttempts {
		if try > 0 {
			time.Sleep(50 * time.Millisecond << try)
		}
		reply, status, text := n.do(m)
		if reply != nil {
			n.out.send(reply)
			return
		}
		last = text
		if status == 404 || status == 400 {
			n.greet()
		}
	}
	n.out.send(rpc.Refuse(m.ID, -32001, "request timed out after %d attempts: %s", naiveAttempts, last))
}

func (n *naive) greet() {
	n.mu.Lock()
	hello := n.hello
	n.mu.Unlock()
	if hello != nil {
		n.do(hello)
	}
}

func (n *naive) do(m *rpc.Message) (*rpc.Message, int, string) {
	ctx, stop := context.WithTimeout(context.Background(), n.patience)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, "POST", n.target[0], bytes.NewReader(m.Encode()))
	if err != nil {
		return nil, 0, err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	n.mu.Lock()
	if n.session != "" {
		req.Header.Set("Mcp-Session-Id", n.session)
	}
	n.mu.Unlock()
	if bytes.Contains(m.Params, []byte(rpc.MetaVersion)) {
		req.Header.Set("MCP-Protocol-Version", rpc.Modern)
		req.Header.Set("Mcp-Method", m.Method)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, err.Error()
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		n.mu.Lock()
		n.session = id
		n.mu.Unlock()
	}
	var reply *rpc.Message
	take := func(data []byte) {
		if r, err := rpc.Parse(data); err == nil && r.IsResponse() && bytes.Equal(r.ID, m.ID) {
			reply = r
		}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 32<<20))
	if err != nil && len(body) == 0 {
		return nil, 0, err.Error()
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				take(bytes.TrimSpace(data))
			}
		}
	} else {
		take(body)
	}
	if resp.StatusCode >= 400 {
		reply = nil
	}
	return reply, resp.StatusCode, resp.Status
}
