package upstream

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Peer is the client a session works for.
type Peer struct {
	// Era the client speaks.
	Era wire.Era
	// BothEras: the client asks in the modern way first and goes on in the legacy
	// one when told that the server does not understand. It is told so, since
	// nothing is lost without a bridge.
	BothEras bool
	// Several: it cannot be told whether more than one client stands behind it, so
	// what belongs to none of its calls for certain is for nobody.
	Several bool
	// Relisted is told the server's tools after it was connected again and before
	// anything that waited is sent: the results of tools/list, page by page, nil
	// if they could not be had. May be nil.
	Relisted func(pages [][]byte)
	// Message takes what the server says to this client outside of replies and
	// of messages that a Call takes itself. It must not block.
	Message func(wire.Message)
	// Room says whether the client has room for more; see Call.Room. May be nil.
	Room func() <-chan struct{}
}

// Session is one client's conversation with a server. It connects on the first
// call, finds the era, and connects again when a call finds the link gone.
//
// All state is behind mu. No link is written to and nobody is called while it is
// held.
type Session struct {
	server *Server
	peer   Peer

	mu        sync.Mutex
	state     state
	stop      chan struct{} // closed when the session ends
	met       bool          // the server has been connected to before
	last      bool          // the client has sent its last
	waiting   []waiting     // what came while connecting, in order
	dialect   dialect       // how to speak to the server; set while open
	hello     []byte        // params of the legacy client's initialize
	greeted   bool          // the client has said that it is initialized
	attending bool
	lastAsked uint64
	asked     map[uint64]question

	restarts restarts // of the session's own process; used by connect alone

	held held // calls that wait for an answer of a modern client
}

type state uint8

const (
	idle state = iota
	connecting
	open
	ended
)

type waiting struct {
	call *Call
	msg  wire.Message // when call is nil
}

// question is a request of the server that the client has yet to answer.
type question struct {
	link   link
	id     []byte             // the server's own
	answer func(wire.Message) // takes the client's response, with our id in it
}

// dialect is how a client's messages are put to the server.
type dialect interface {
	call(*Call)
	send(wire.Message)
	attend()
	usable() bool
	close()
	// over is the link spoken over, nil if there is none now.
	over() link
	// probe is a request that every server of this kind answers somehow, and
	// ownParams what requests of our own must carry.
	probe() string
	ownParams() []byte
}

// Open begins a conversation. Nothing is started before the first call.
func (s *Server) Open(peer Peer) *Session {
	return &Session{server: s, peer: peer, stop: make(chan struct{})}
}

// Do passes a call to the server, connecting first if need be. It returns at once.
func (s *Session) Do(c *Call) {
	s.mu.Lock()
	if s.state == ended || s.last {
		s.mu.Unlock()
		c.finish(Outcome{Fault: sessionEnded()})
		return
	}
	again := s.peer.Era == wire.Legacy && c.Msg.Method() == wire.MethodInitialize && s.state == open
	if s.state == open && !again && s.connected() {
		d := s.dialect
		s.mu.Unlock()
		d.call(c)
		return
	}
	s.waiting = append(s.waiting, waiting{call: c})
	s.wake()
}

// wake starts connecting unless that is under way. It is called with mu held and
// releases it.
func (s *Session) wake() {
	start := s.state != connecting
	s.state = connecting
	s.mu.Unlock()
	if start {
		go s.connect()
	}
}

// ErrEnded is the cause of a fault when the session itself is over: another attempt
// would meet the same.
var ErrEnded = errors.New("the session has ended")

func sessionEnded() *fault.Fault {
	return &fault.Fault{Delivery: fault.Unsent, Evidence: fault.Evidence{Text: ErrEnded.Error()}, Cause: ErrEnded}
}

// connected reports whether calls can be sent over what the session has. A process
// of its own is judged by itself, whatever became of other clients' processes; what
// is reached over HTTP is the same server for all. The caller holds mu.
func (s *Session) connected() bool {
	return s.dialect != nil && s.dialect.usable() && (s.server.http == nil || s.server.reachable())
}

// Room is nil while the server takes what is sent to it. Otherwise it is closed when
// the server has taken most of what waits, or never will: a client should be read
// no further until then.
func (s *Session) Room() <-chan struct{} {
	s.mu.Lock()
	var l link
	if s.state == open {
		l = s.dialect.over()
	}
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.room()
}

// Connected reports whether a call would be sent at once.
func (s *Session) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == open && s.connected()
}

// Send passes on a client's notification, or its response to a request of the server.
func (s *Session) Send(m wire.Message) {
	if m.Kind == wire.Response {
		s.answer(m)
		return
	}
	s.mu.Lock()
	if m.Method() == wire.MethodInitialized {
		s.greeted = true
	}
	switch s.state {
	case open:
		d := s.dialect
		s.mu.Unlock()
		d.send(m)
		return
	case connecting:
		s.waiting = append(s.waiting, waiting{msg: m})
	}
	// Idle or ended: nobody is there to be told, and notifications are not kept.
	s.mu.Unlock()
}

// Cancel gives up a call. note is the client's notification if it sent one. The
// call settles as cancelled unless it was settled before.
func (s *Session) Cancel(c *Call, note *wire.Message) {
	c.gone.Store(true)
	if f := c.flight.Load(); f != nil {
		f.link.abandon(f, note)
		c.finish(Outcome{Fault: &fault.Fault{Delivery: fault.Cancelled}})
		return
	}
	// It has no flight, and whoever gives it one looks at gone first: it will not
	// be sent any more.
	s.mu.Lock()
	s.waiting = slices.DeleteFunc(slices.Clone(s.waiting), func(w waiting) bool { return w.call == c })
	s.mu.Unlock()
	c.finish(Outcome{Fault: &fault.Fault{Delivery: fault.Cancelled}})
}

// Attend says that the client can hear what belongs to none of its calls.
func (s *Session) Attend() {
	s.mu.Lock()
	s.attending = true
	d := s.dialect
	s.mu.Unlock()
	if d != nil {
		d.attend()
	}
}

// EndInput says that the client will send nothing more. A server on stdio is told so
// by the end of its input, as it would be without us; what it still has to answer,
// it may. Nothing is started any more.
func (s *Session) EndInput() {
	s.mu.Lock()
	s.last = true
	var l link
	if s.dialect != nil {
		l = s.dialect.over()
	}
	s.mu.Unlock()
	if process, ok := l.(*stdioLink); ok {
		process.endInput()
	}
}

// Close ends the conversation. What is under way is given up.
func (s *Session) Close() {
	s.mu.Lock()
	was := s.state
	s.state = ended
	left, d := s.waiting, s.dialect
	s.waiting, s.dialect = nil, nil
	s.mu.Unlock()
	if was == ended {
		return
	}
	close(s.stop)
	for _, w := range left {
		if w.call != nil {
			w.call.finish(Outcome{Fault: sessionEnded()})
		}
	}
	if d != nil {
		d.close()
	}
}

// connect finds a dialect and then passes on what waited. It runs on a goroutine
// of its own, one at a time.
func (s *Session) connect() {
	done, pause, ok := s.server.vitals.turn(s.stop, s.patience())
	var d dialect
	var flt *fault.Fault
	switch {
	case ok:
		d, flt = s.reach()
		done()
	case pause > 0:
		flt = s.server.paused(pause)
	default:
		return // the session ended, and with it whoever waited
	}
	s.mu.Lock()
	if s.state == ended {
		s.mu.Unlock()
		if d != nil {
			d.close()
		}
		return
	}
	if flt != nil {
		left := s.waiting
		s.waiting, s.state = nil, idle
		s.mu.Unlock()
		for _, w := range left {
			if w.call != nil {
				one := *flt
				w.call.finish(Outcome{Fault: &one})
			}
		}
		return
	}
	s.dialect = d
	attending := s.attending
	s.mu.Unlock()
	if attending {
		d.attend()
	}
	s.flush(d)
}

// How long calls wait for a start that is put off. A client that introduces itself
// may give up soon.
const (
	startPatience = 30 * time.Second
	greetPatience = 3 * time.Second
)

func (s *Session) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits(wire.MethodInitialize) {
		return greetPatience
	}
	return startPatience
}

// paused is the fault of a call that would have to wait for so long before the server
// is started again.
func (s *Server) paused(wait time.Duration) *fault.Fault {
	f := &fault.Fault{Evidence: fault.Evidence{Text: "the server could not be started", Moment: fault.WhenIdle}}
	if cause := s.Health().Cause; cause != nil {
		*f = *cause
	}
	f.Delivery, f.RetryAfter = fault.Unsent, wait
	return f
}

// reach gets the session to the server: over the connection it has, if that
// turns out to be alive, or over a new one.
func (s *Session) reach() (dialect, *fault.Fault) {
	s.mu.Lock()
	old, again := s.dialect, s.met
	greeting := s.waits(wire.MethodInitialize)
	s.mu.Unlock()
	if old != nil && !greeting && old.usable() {
		// Over HTTP the connection outlives an outage, and calls may still be under
		// way on it. It is not given up because a question got no answer.
		flt := s.revived(old)
		if flt == nil {
			return old, nil
		}
		if old.usable() {
			s.server.vitals.lost(flt, false)
			return nil, flt
		}
	}
	s.mu.Lock()
	s.dialect = nil
	s.mu.Unlock()
	if old != nil {
		if !greeting && !s.rest(old.over()) {
			return nil, sessionEnded()
		}
		old.close()
	}
	d, flt := s.handshake()
	if flt != nil {
		if !flt.Exited && flt.Moment != fault.AtStart {
			s.server.vitals.lost(flt, false) // what ended or did not start has been counted
		}
		return nil, flt
	}
	s.server.vitals.ready()
	s.mu.Lock()
	s.met = true
	s.mu.Unlock()
	if again && !greeting && s.peer.Relisted != nil {
		s.relist(d)
	}
	return d, nil
}

// rest waits before a process that ended is replaced. It reports false if the
// session ended meanwhile.
func (s *Session) rest(gone link) bool {
	process, ok := gone.(*stdioLink)
	if !ok {
		return true
	}
	pause := time.NewTimer(s.restarts.pause(process.wasUseful()))
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-s.stop:
		return false
	}
}

// waits reports whether a call of this method is waiting. The caller holds mu.
func (s *Session) waits(method string) bool {
	for _, w := range s.waiting {
		if w.call != nil && w.call.Msg.Method() == method {
			return true
		}
	}
	return false
}

// revived asks over an existing connection whether the server is back. Any answer
// is life, an error too.
func (s *Session) revived(d dialect) *fault.Fault {
	l := d.over()
	if l == nil {
		return sessionEnded()
	}
	o := s.ask(l, d.probe(), d.ownParams(), s.server.spec.StartTimeout)
	if o.Fault != nil {
		flt := *o.Fault
		flt.Delivery = fault.Unsent // of whatever waits; only the question was sent
		return &flt
	}
	s.server.vitals.ready()
	return nil
}

// relist tells the peer which tools the server has now. A server that does not
// answer leaves the peer with what it knew.
func (s *Session) relist(d dialect) {
	var pages [][]byte
	var cursor []byte
	for range maxPages {
		l := d.over()
		if l == nil {
			break // it is gone again
		}
		params := d.ownParams()
		if cursor != nil {
			params = wire.Set(params, cursor, "cursor")
		}
		o := s.ask(l, wire.MethodTools, params, s.server.spec.StartTimeout)
		if o.Fault != nil || o.Reply.Result() == nil {
			pages = nil // half a list is none
			break
		}
		pages = append(pages, o.Reply.Result())
		next, ok := wire.Member(o.Reply.Result(), "nextCursor")
		if !ok || string(next) == "null" || string(next) == `""` || bytes.Equal(next, cursor) {
			break
		}
		cursor = next
	}
	s.peer.Relisted(pages)
}

// maxPages is where a list stops being a list and becomes a loop.
const maxPages = 100

// flush passes on what waited, in order, and opens the fast path when nothing is left.
func (s *Session) flush(d dialect) {
	for {
		s.mu.Lock()
		if s.state != connecting {
			s.mu.Unlock()
			return
		}
		batch := s.waiting
		s.waiting = nil
		if len(batch) == 0 {
			s.state = open
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, w := range batch {
			if w.call != nil {
				d.call(w.call)
			} else {
				d.send(w.msg)
			}
		}
	}
}

// launch sends a call over a link as it is, and reports straight to it.
func (s *Session) launch(l link, c *Call) { s.fly(l, c, c.Msg, c.On, c.finish) }

// fly sends what a bridge has made of a call. on and done stand for the call's own.
func (s *Session) fly(l link, c *Call, msg wire.Message, on func(wire.Message), done func(Outcome)) {
	if c.Check != nil {
		if flt := c.Check(); flt != nil {
			done(Outcome{Fault: flt})
			return
		}
	}
	room := c.Room
	if room == nil {
		room = s.peer.Room
	}
	f := &flight{link: l, session: s, room: room, call: c, vitals: &s.server.vitals, msg: msg, header: c.Header, on: on, peer: s.peer.Message, done: done}
	c.flight.Store(f)
	if c.gone.Load() {
		f.fail(&fault.Fault{Delivery: fault.Cancelled})
		return
	}
	l.send(f)
}

// ownIDs numbers the requests we send in our own name.
var ownIDs atomic.Int64

// ask sends a request of our own and waits for the outcome; a timeout of 0 is none.
func (s *Session) ask(l link, method string, params []byte, timeout time.Duration) Outcome {
	f, q := s.begin(l, method, params)
	late, stop := after(timeout)
	defer stop()
	select {
	case o := <-q:
		return o
	case <-late:
		if method != wire.MethodInitialize { // which may not be taken back
			l.abandon(f, nil)
		}
		return tooSlow(method, timeout)
	}
}

// after is a channel that hears when the time is over, never if it is 0.
func after(timeout time.Duration) (late <-chan time.Time, stop func()) {
	if timeout <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(timeout)
	return t.C, func() { t.Stop() }
}

// begin sends a request of our own. The outcome comes over the channel, also
// long after somebody has stopped waiting for it.
func (s *Session) begin(l link, method string, params []byte) (*flight, <-chan Outcome) {
	got := make(chan Outcome, 1)
	id := strconv.AppendQuote(nil, "mcpmend-"+strconv.FormatInt(ownIDs.Add(1), 10))
	f := &flight{
		link: l,
		msg:  wire.NewRequest(id, method, params),
		peer: func(m wire.Message) { m.Release() },
		done: func(o Outcome) { got <- o },
	}
	l.send(f)
	return f, got
}

func tooSlow(method string, timeout time.Duration) Outcome {
	return Outcome{Fault: &fault.Fault{
		Delivery: fault.Silent,
		Evidence: fault.Evidence{Text: "no answer to " + method + " within " + timeout.String(), Moment: fault.AtHandshake},
		Cause:    errTimeout,
	}}
}

// receiver is the session as a link sees it.
func (s *Session) receiver() receiver { return receiver{take: s.hear, room: s.peer.Room} }

// hear takes what the session's own link hears outside of replies.
func (s *Session) hear(l link, m wire.Message, f *flight) {
	switch {
	case m.Kind == wire.Request:
		m = s.forClient(l, m)
	case m.Method() == wire.MethodCancelled:
		m = s.withdrawn(l, m)
	}
	if f != nil {
		f.hear(m)
		return
	}
	s.peer.Message(m)
}

// forClient files a request of the server and gives it an id of ours, so that
// the answer finds its way to the very process that asked, or to nobody.
func (s *Session) forClient(l link, m wire.Message) wire.Message {
	id := bytes.Clone(m.ID())
	key := s.file(question{link: l, id: id, answer: func(reply wire.Message) {
		_ = l.post(reply.WithID(id))
	}})
	return m.WithID(key)
}

// withdrawn translates the server's word that it no longer wants an answer.
func (s *Session) withdrawn(l link, m wire.Message) wire.Message {
	id, _ := wire.Member(m.Params(), "requestId")
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, q := range s.asked {
		if q.link == l && bytes.Equal(q.id, id) {
			delete(s.asked, n)
			return m.WithParams(wire.Set(m.Params(), strconv.AppendUint(nil, n, 10), "requestId"))
		}
	}
	return m
}

// orphan withdraws the questions of a link that is gone: no answer can reach it.
func (s *Session) orphan(l link) {
	s.mu.Lock()
	var gone [][]byte
	for n, q := range s.asked {
		if q.link == l {
			delete(s.asked, n)
			gone = append(gone, strconv.AppendUint(nil, n, 10))
		}
	}
	s.mu.Unlock()
	for _, key := range gone {
		params := wire.Set(wire.Set(nil, []byte(`"the server is gone"`), "reason"), key, "requestId")
		s.peer.Message(wire.NewNotification(wire.MethodCancelled, params))
	}
}

// file remembers a question and returns the id under which the client knows it.
func (s *Session) file(q question) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastAsked++
	if s.asked == nil {
		s.asked = make(map[uint64]question)
	}
	s.asked[s.lastAsked] = q
	return strconv.AppendUint(nil, s.lastAsked, 10)
}

func (s *Session) answer(m wire.Message) {
	n, err := strconv.ParseUint(string(m.ID()), 10, 64)
	s.mu.Lock()
	q, ok := s.asked[n]
	delete(s.asked, n)
	s.mu.Unlock()
	if err == nil && ok {
		q.answer(m)
	}
}
