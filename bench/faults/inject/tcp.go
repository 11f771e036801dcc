// Package inject holds the faults that are not inside the server: a TCP proxy
// that breaks connections at a chosen byte of a chosen operation, and what can
// be done to a process from outside.
package inject

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// Break is what happens to a connection.
type Break string

const (
	Reset     Break = "reset"      // RST, by SO_LINGER 0
	Close     Break = "close"      // an ordinary FIN
	BlackHole Break = "black hole" // the connection stays and nothing passes
	Outage    Break = "outage"     // as a black hole, and new connections fall into it, too, until this one is given up
	Drip      Break = "drip"       // one byte at a time
)

// Rule breaks the connection that carries an operation.
type Rule struct {
	// Op is the index of the operation, or ledger.Any; then Every strikes each
	// nth only, the first time it comes.
	Op    int
	Every int
	// Times bounds how often the rule strikes; 0 means once, -1 always.
	Times int
	// Request strikes before a byte of the request is passed on; otherwise it
	// is the answer that is broken, after so many bytes of it.
	Request bool
	After   int
	Do      Break
	// For ends a black hole and spaces the bytes of a drip.
	For time.Duration
}

// Proxy stands between a system and an HTTP server.
type Proxy struct {
	target string

	mu       sync.Mutex
	listener net.Listener
	addr     string
	rules    []Rule
	met      map[string]bool // operations that were struck
	conns    map[net.Conn]bool
	strikes  []oracle.Strike
	closed   bool
	plain    bool // on a raw proxy: something other than TLS came
	raw      bool
	dark     atomic.Int32 // how many outages there are
}

// NewProxy listens on a free port of the loopback and passes on to target.
func NewProxy(target string, rules []Rule) (*Proxy, error) {
	p := &Proxy{target: target, rules: append([]Rule(nil), rules...), met: map[string]bool{}, conns: map[net.Conn]bool{}}
	for i := range p.rules {
		if p.rules[i].Times == 0 {
			p.rules[i].Times = 1
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.listener, p.addr = l, l.Addr().String()
	go p.accept(l)
	return p, nil
}

// NewRawProxy passes bytes on without looking for requests. It notes the first
// byte of each connection, by which TLS is known.
func NewRawProxy(target string) (*Proxy, error) {
	p, err := NewProxy(target, nil)
	if err == nil {
		p.mu.Lock()
		p.raw = true
		p.mu.Unlock()
	}
	return p, err
}

// Plain reports whether a raw proxy was spoken to without TLS.
func (p *Proxy) Plain() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plain
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.addr }

// Strikes returns what has struck so far.
func (p *Proxy) Strikes() []oracle.Strike {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]oracle.Strike(nil), p.strikes...)
}

// Down refuses new connections and resets the present ones.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strikes = append(p.strikes, oracle.Strike{At: ledger.Now(), What: "refused"})
	p.listener.Close()
	for c := range p.conns {
		hangUp(c, true)
	}
}

// Up listens again at the same address.
func (p *Proxy) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	go p.accept(l)
	return nil
}

// Stop ends everything.
func (p *Proxy) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.listener.Close()
	for c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if p.track(c) {
			go p.carry(c)
		}
	}
}

func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func hangUp(c net.Conn, reset bool) {
	if tcp, ok := c.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
	c.Close()
}

var opID = regexp.MustCompile(`"op_id":"([^"]+)"`)

// take finds the rule that this request must meet, and uses it up.
func (p *Proxy) take(raw []byte) (Rule, string, bool) {
	m := opID.FindSubmatch(raw)
	if m == nil {
		return Rule{}, "", false
	}
	op := string(m[1])
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.rules {
		r := &p.rules[i]
		if r.Times == 0 || r.Op != ledger.Any && r.Op != ledger.Index(op) {
			continue
		}
		if r.Every > 1 && (ledger.Index(op)%r.Every != r.Every-1 || p.met[op]) {
			continue
		}
		p.met[op] = true
		if r.Times > 0 {
			r.Times--
		}
		return *r, op, true
	}
	return Rule{}, op, false
}

func (p *Proxy) strike(r Rule, op string) {
	p.mu.Lock()
	p.strikes = append(p.strikes, oracle.Strike{At: ledger.Now(), Op: op, What: string(r.Do)})
	p.mu.Unlock()
}

// carry passes requests on one by one; answers flow back on their own.
func (p *Proxy) carry(client net.Conn) {
	defer p.forget(client)
	if p.dark.Load() > 0 {
		io.Copy(io.Discard, client)
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		hangUp(client, true)
		return
	}
	if !p.track(server) {
		return
	}
	defer p.forget(server)
	if p.raw {
		p.pipe(client, server)
		return
	}
	back := &backflow{proxy: p, client: client, server: server}
	go back.run()
	defer func() {
		if back.dark.Load() {
			p.dark.Add(-1) // the client has given up
		}
	}()

	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(client, &raw))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		rule, op, hit := p.take(raw.Bytes())
		if hit && rule.Request {
			p.strike(rule, op)
			if !p.before(rule, client) {
				return
			}
		} else if hit {
			back.arm(&rule, op)
		} else {
			back.arm(nil, "")
		}
		if _, err := server.Write(raw.Bytes()); err != nil {
			return
		}
		raw.Reset()
	}
}

// handshakeByte begins every TLS connection.
const handshakeByte = 0x16

func (p *Proxy) pipe(client, server net.Conn) {
	in := bufio.NewReader(client)
	first, err := in.Peek(1)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.plain = p.plain || first[0] != handshakeByte
	p.strikes = append(p.strikes, oracle.Strike{At: ledger.Now(), What: "TLS with a bad certificate"})
	p.mu.Unlock()
	go func() {
		io.Copy(client, server)
		client.Close()
	}()
	io.Copy(server, in)
}

// before breaks a connection while the request is still in our hands, and
// reports whether it may go on after all.
func (p *Proxy) before(r Rule, client net.Conn) bool {
	switch r.Do {
	case Reset, Close:
		hangUp(client, r.Do == Reset)
		return false
	case Outage:
		p.dark.Add(1)
		defer p.dark.Add(-1)
		io.Copy(io.Discard, client)
		return false
	case BlackHole:
		if r.For == 0 {
			// Until the client loses patience.
			io.Copy(io.Discard, client)
			return false
		}
		time.Sleep(r.For)
	}
	return true
}

// backflow carries answers from the server to the client.
type backflow struct {
	dark           atomic.Bool // it has caused an outage
	proxy          *Proxy
	client, server net.Conn

	mu    sync.Mutex
	rule  *Rule
	op    string
	bytes int // of the present answer passed so far
}

// arm sets what the next answer will meet; nil lets it pass.
func (b *backflow) arm(r *Rule, op string) {
	b.mu.Lock()
	b.rule, b.op, b.bytes = r, op, 0
	b.mu.Unlock()
}

func (b *backflow) run() {
	defer b.client.Close()
	chunk := make([]byte, 32<<10)
	for {
		n, err := b.server.Read(chunk)
		if n > 0 && !b.pass(chunk[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// pass hands on a piece of an answer, up to the byte at which it must break.
func (b *backflow) pass(data []byte) bool {
	b.mu.Lock()
	rule, op := b.rule, b.op
	room := len(data)
	if rule != nil && rule.Do != Drip {
		room = min(room, rule.After-b.bytes)
	}
	b.bytes += room
	b.mu.Unlock()
	if rule == nil {
		_, err := b.client.Write(data)
		return err == nil
	}
	if rule.Do == Drip {
		return b.drip(*rule, op, data)
	}
	if _, err := b.client.Write(data[:room]); err != nil {
		return false
	}
	if room == len(data) {
		return true
	}
	b.proxy.strike(*rule, op)
	b.mu.Lock()
	b.rule = nil
	b.mu.Unlock()
	switch rule.Do {
	case Outage:
		if b.dark.CompareAndSwap(false, true) {
			b.proxy.dark.Add(1)
		}
		io.Copy(io.Discard, b.server)
		return false
	case BlackHole:
		if rule.For == 0 {
			io.Copy(io.Discard, b.server)
			return false
		}
		time.Sleep(rule.For)
		_, err := b.client.Write(data[room:])
		return err == nil
	default:
		hangUp(b.client, rule.Do == Reset)
		return false
	}
}

func (b *backflow) drip(r Rule, op string, data []byte) bool {
	b.mu.Lock()
	if b.bytes == len(data) {
		b.proxy.strike(r, op)
	}
	b.mu.Unlock()
	for i := range data {
		if _, err := b.client.Write(data[i : i+1]); err != nil {
			return false
		}
		time.Sleep(r.For)
	}
	return true
}
