package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/inject"
	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// errCannot is why a situation cannot be set up on this machine.
var errCannot = errors.New("not possible here")

//go:embed testdata/server.mjs
var nodeServer []byte

//go:embed testdata/server.py
var pythonServer []byte

// world is what all situations share: the programs.
type world struct {
	quick   bool
	dir     string // removed at the end
	mcpmend string
	odd     string
	gosdk   string
	node    []string // and its server of the TypeScript SDK
	python  []string // and its server by hand; empty without Python
	certs   inject.CertFiles
}

func newWorld(ctx context.Context, quick bool, binary string) (*world, error) {
	r, err := rig.Open()
	if err != nil {
		return nil, err
	}
	w := &world{quick: quick}
	if w.dir, err = os.MkdirTemp("", "harm-"); err != nil {
		return nil, err
	}
	if err := w.prepare(ctx, r, binary); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) prepare(ctx context.Context, r *rig.Rig, binary string) (err error) {
	if binary != "" {
		w.mcpmend, err = filepath.Abs(binary)
	} else {
		w.mcpmend, err = r.Mcpmend(ctx)
	}
	if err == nil {
		// A copy: whoever builds it anew meanwhile must not change what is measured.
		w.mcpmend, err = w.copy(w.mcpmend)
	}
	if err != nil {
		return err
	}
	if w.odd, err = r.Go(ctx, rig.Odd); err != nil {
		return err
	}
	if w.gosdk, err = r.Go(ctx, rig.GoSDK); err != nil {
		return err
	}
	npm, err := r.NPM(ctx)
	if err != nil {
		return err
	}
	script := filepath.Join(w.dir, "server.mjs")
	if err := os.WriteFile(script, nodeServer, 0o644); err != nil {
		return err
	}
	w.node = []string{npm.Node(), script, npm.Folder("@modelcontextprotocol/sdk")}
	// Not the name in PATH, which may be a script that looks for the right one each time.
	if python, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.executable)").Output(); err == nil {
		script := filepath.Join(w.dir, "server.py")
		if err := os.WriteFile(script, pythonServer, 0o644); err != nil {
			return err
		}
		w.python = []string{strings.TrimSpace(string(python)), script}
	}
	w.certs, err = inject.Certificate(w.dir, inject.NoFlaw)
	return err
}

func (w *world) copy(program string) (string, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	to := filepath.Join(w.dir, filepath.Base(program))
	return to, os.WriteFile(to, data, 0o755)
}

func (w *world) close() { os.RemoveAll(w.dir) }

// A side is one of the two ways in which a situation is played.
type side struct {
	*world
	through bool
	wait    time.Duration // that the situation has now
	dir     string        // its own working folder
	began   time.Time
	took    time.Duration // set by a situation that measures by itself
	opened  func()        // tells that the client is connected

	proxy *child.Child // mcpmend

	mu       sync.Mutex
	children []*child.Child
	closers  []func()
}

// clock starts the measured time anew, after what belongs to neither side.
func (s *side) clock() { s.began = time.Now() }

func (s *side) env() []string {
	return append(os.Environ(), "HARM_SIDE="+s.dir, "HARM_OWN=own value", "HOME="+s.dir, "SSL_CERT_FILE="+s.certs.CA)
}

// adopt makes a process the side's own, to be ended with it.
func (s *side) adopt(c *child.Child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = append(s.children, c)
}

// atEnd has f called when the situation is over.
func (s *side) atEnd(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// close ends whatever is left of the side.
func (s *side) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	for _, c := range s.children {
		select {
		case <-c.Exited():
		default: // not reaped, so the id is still its own
			_ = syscall.Kill(c.PID(), syscall.SIGKILL)
		}
	}
	left, _ := child.Marked("HARM_SIDE=" + s.dir + "\x00")
	for _, p := range left {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	for _, c := range s.children {
		<-c.Exited()
		c.Stdin.Close()
		c.Stdout.Close()
	}
}

// said is what mcpmend wrote last, as part of an error.
func (s *side) said() string {
	if s.proxy == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(s.proxy.Said()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return "; last output: " + last
	}
	return ""
}

// start runs a program in the side's own folder.
func (s *side) start(argv []string, prepare func(*exec.Cmd)) (*child.Child, error) {
	if prepare == nil {
		prepare = func(*exec.Cmd) {}
	}
	c, err := child.StartWith(argv, s.dir, s.env(), prepare)
	if err != nil {
		return nil, err
	}
	s.adopt(c)
	if s.through {
		s.proxy = c
	}
	return c, nil
}

// stdio connects to a server on stdin and stdout.
func (s *side) stdio(argv ...string) (*conn, error) { return s.stdioWith(nil, argv...) }

func (s *side) stdioWith(prepare func(*exec.Cmd), argv ...string) (*conn, error) {
	if len(argv) == 0 {
		return nil, fmt.Errorf("%w: there is no such interpreter", errCannot)
	}
	if s.through {
		argv = append([]string{s.mcpmend, "run", "--"}, argv...)
	}
	return s.pipe(prepare, argv)
}

func (s *side) pipe(prepare func(*exec.Cmd), argv []string) (*conn, error) {
	c, err := s.start(argv, prepare)
	if err != nil {
		return nil, err
	}
	g := &gate{}
	client := raw.Stdio(c.Stdin, g.reader(c.Stdout), func() error {
		_, err := c.Hangup()
		return err
	})
	return &conn{Client: client, child: c, gate: g, opened: s.opened}, nil
}

// web connects to a server at url: directly over HTTP, or on the stdio of mcpmend.
func (s *side) web(url string) (*conn, error) {
	if s.through {
		return s.pipe(nil, []string{s.mcpmend, "run", url})
	}
	return s.direct(url, (&net.Dialer{}).DialContext)
}

// front is like web, but the client speaks HTTP on both sides.
func (s *side) front(ctx context.Context, url string) (*conn, error) {
	if s.through {
		c, err := s.start([]string{s.mcpmend, "run", "--http", "127.0.0.1:0", "--no-token", url}, nil)
		if err != nil {
			return nil, err
		}
		if url, err = c.Line(ctx, "mcpmend: listening on "); err != nil {
			return nil, err
		}
	}
	return s.direct(url, (&net.Dialer{}).DialContext)
}

// direct is a client over HTTP whose connections are made by dial.
func (s *side) direct(url string, dial func(context.Context, string, string) (net.Conn, error)) (*conn, error) {
	authority, err := os.ReadFile(s.certs.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	g := &gate{}
	client := raw.HTTPOver(&http.Transport{
		MaxIdleConnsPerHost: 64, DisableCompression: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return gatedConn{c, g.reader(c)}, nil
		},
	}, url)
	return &conn{Client: client, gate: g, opened: s.opened}, nil
}

// serve starts a server over HTTP, with ADDR in argv replaced, and returns its URL. The
// measured time begins when it listens: starting it is nobody's part here.
func (s *side) serve(ctx context.Context, scheme string, argv ...string) (string, *child.Child, error) {
	if len(argv) < 2 {
		return "", nil, fmt.Errorf("%w: there is no such interpreter", errCannot)
	}
	c, addr, err := child.ServeHTTP(ctx, argv)
	if err != nil {
		return "", nil, err
	}
	s.adopt(c)
	s.clock()
	return scheme + "://" + addr + "/mcp", c, nil
}

// A gate stops what reads through it while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it opens again; nil while open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

func (g *gate) reader(r io.Reader) io.Reader { return gatedReader{r, g} }

type gatedReader struct {
	io.Reader
	gate *gate
}

func (r gatedReader) Read(p []byte) (int, error) {
	r.gate.mu.Lock()
	shut := r.gate.shut
	r.gate.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return r.Reader.Read(p)
}

type gatedConn struct {
	net.Conn
	r io.Reader
}

func (c gatedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// A conn is a client, connected.
type conn struct {
	*raw.Client
	child  *child.Child // nil over HTTP
	gate   *gate
	modern bool
	opened func()
	last   atomic.Int64
}

// open does what a client does first.
func (c *conn) open(ctx context.Context) error {
	if c.modern {
		_, err := resultOf(c.ask("server/discover", "{"+raw.ModernMeta+"}").Reply(ctx))
		c.opened()
		return err
	}
	_, err := resultOf(c.Handshake(ctx))
	c.opened()
	return err
}

// ask sends a request under the next id.
func (c *conn) ask(method, params string) *raw.Pending {
	return c.Start(strconv.FormatInt(c.last.Add(1), 10), method, params)
}

// call calls a tool; arguments is the inside of a JSON object.
func (c *conn) call(tool, arguments string) *raw.Pending {
	return c.callMeta(tool, arguments, "")
}

// callMeta adds a member to _meta, such as "progressToken":1.
func (c *conn) callMeta(tool, arguments, member string) *raw.Pending {
	meta := ""
	switch {
	case c.modern && member != "":
		meta = "," + strings.TrimSuffix(raw.ModernMeta, "}") + "," + member + "}"
	case c.modern:
		meta = "," + raw.ModernMeta
	case member != "":
		meta = `,"_meta":{` + member + "}"
	}
	return c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{%s}%s}`, tool, arguments, meta))
}

// do calls a tool and returns its text.
func (c *conn) do(ctx context.Context, tool, arguments string) (string, error) {
	return text(c.call(tool, arguments).Reply(ctx))
}

// expect waits for calls, each of which has to come to its text.
func expect(ctx context.Context, calls []*raw.Pending, want func(i int) string) error {
	bad, first := 0, error(nil)
	for i, call := range calls {
		got, err := text(call.Reply(ctx))
		if err == nil && got != want(i) {
			err = fmt.Errorf("got %.60q of %d bytes, want %.60q", got, len(got), want(i))
		}
		if err != nil {
			bad++
			first = cmp.Or(first, err)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d calls: %w", bad, len(calls), first)
	}
	return nil
}

// expectBig waits for replies whose text is size bytes of x. It does not parse them again: with
// 20 MB each that would take longer than what is measured.
func expectBig(ctx context.Context, calls []*raw.Pending, size int) error {
	whole := bytes.Repeat([]byte("x"), size)
	for i, call := range calls {
		reply, err := call.Reply(ctx)
		if err != nil {
			return fmt.Errorf("reply %d of %d: %w", i+1, len(calls), err)
		}
		at := bytes.Index(reply, []byte(`"xx`)) + 1
		if at == 0 || len(reply) <= at+size || !bytes.Equal(reply[at:at+size], whole) || reply[at+size] != '"' {
			return fmt.Errorf("reply %d of %d: %d bytes, %.200s", i+1, len(calls), len(reply), reply)
		}
	}
	return nil
}

// resultOf is the result of a reply.
func resultOf(reply []byte, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	var r struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(reply, &r); err != nil {
		return nil, err
	}
	if r.Error != nil || r.Result == nil {
		return nil, fmt.Errorf("got the error %s", r.Error)
	}
	return r.Result, nil
}

// text is what a tool said, if it worked.
func text(reply []byte, err error) (string, error) {
	result, err := resultOf(reply, err)
	if err != nil {
		return "", err
	}
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return "", err
	}
	if r.IsError || len(r.Content) != 1 {
		return "", fmt.Errorf("the tool failed: %s", result)
	}
	return r.Content[0].Text, nil
}

// sleep waits, as part of a situation.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
