package front

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/internal/wire"
)

const (
	// silence is how long a stream may say nothing: proxies and clients take a
	// mute connection for a dead one.
	silence = 15 * time.Second
	// roomFor is how much may wait for a client, in bytes of memory, before a server
	// of its own is left unread.
	roomFor = 1 << 20
	// queueLimit is how much may wait for a client that does not read, where the
	// server cannot be left unread because others use it, too. Replies always may,
	// since there is one for each request.
	queueLimit = 16 << 20
	// queueCost is what a message takes besides its bytes.
	queueCost = 256
)

// stream is the way from whoever has something to say to the HTTP request that
// carries it. Pushing never waits; a goroutine that serves the request takes.
type stream struct {
	wake chan struct{} // holds a token when there is something to take

	mu    sync.Mutex
	state streamState
	queue []outgoing
	size  int           // of queue, in memory
	left  int           // replies yet to come; endless for a stream without any
	room  chan struct{} // closed when the queue was taken; nil while nobody waits
}

const endless = -1

type streamState uint8

const (
	listening streamState = iota
	deserted              // the client is gone or has all it asked for
	flooded               // the client reads too slowly
	finished              // our side has no more to say
)

type outgoing struct {
	msg    wire.Message
	id     []byte // the client's, in place of the message's own; nil to keep that
	status int    // for a reply that comes first; 0 for 200
	reply  bool
	none   bool // the reply is that there is none
}

func newStream(replies int) *stream {
	return &stream{wake: make(chan struct{}, 1), left: replies}
}

// push queues a message and reports whether anybody will take it.
func (s *stream) push(o outgoing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != listening {
		return false
	}
	cost := len(o.msg.Raw) + queueCost
	if !o.reply && len(s.queue) > 0 && s.size+cost > queueLimit {
		s.state, s.queue, s.size = flooded, nil, 0
		s.makeRoom()
		s.nudge()
		return false
	}
	s.queue = append(s.queue, o)
	s.size += cost
	if o.reply {
		s.left--
	}
	s.nudge()
	return true
}

// nudge wakes the taker. The caller holds mu.
func (s *stream) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take is what has come since the last time, and whether that was all.
func (s *stream) take() (batch []outgoing, last bool, state streamState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, s.queue, s.size = s.queue, nil, 0
	s.makeRoom()
	return batch, s.left == 0, s.state
}

// Room is nil while there is room for more. Otherwise it is closed when the client
// is about to be sent what waits, or is gone.
func (s *stream) Room() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size <= roomFor || s.state != listening {
		return nil
	}
	if s.room == nil {
		s.room = make(chan struct{})
	}
	return s.room
}

// makeRoom tells those who wait for room. The caller holds mu.
func (s *stream) makeRoom() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// leave says that nobody takes any more, and returns what nobody took.
func (s *stream) leave() []outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.queue
	s.state, s.queue, s.size = deserted, nil, 0
	s.makeRoom()
	s.nudge()
	return rest
}

// finish ends the stream from our side, after what has been pushed.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == listening {
		s.state = finished
		s.nudge()
	}
}

// answer writes the response to one HTTP request. Its headers are held back
// until the first message is known: an error may need a status of its own, and a
// lone reply needs no stream.
type answer struct {
	w       http.ResponseWriter
	accept  accepted
	retry   bool   // tell the client when to come back if the stream breaks
	session string // the id of a new session, told if the first message is no error

	started bool // a stream of events has begun
	scratch []byte
}

// ending is what an answer has to know about our own end.
type ending struct {
	stop   <-chan struct{} // closed when the answer has to end as it is; nil for never
	settle <-chan struct{} // closed when calls have to be answered by us
	giveUp func()          // has the calls of this answer answered by us
}

// follow writes what comes through the stream until its last reply. It reports
// false when the client went away, did not read, or we have to stop.
func (a *answer) follow(r *http.Request, s *stream, end ending) bool {
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case <-s.wake:
			batch, last, state := s.take()
			if state == flooded {
				return false
			}
			if len(batch) > 0 && a.write(batch, last) != nil {
				return false
			}
			if last || state == finished || state == deserted {
				return true
			}
			quiet.Reset(silence)
		case <-quiet.C:
			if a.accept.events && a.comment() != nil {
				return false
			}
			quiet.Reset(silence)
		case <-r.Context().Done():
			return false
		case <-end.settle:
			end.settle = nil
			end.giveUp()
		case <-end.stop:
			return false
		}
	}
}

func (a *answer) write(batch []outgoing, last bool) error {
	if !a.started {
		first := &batch[0]
		if a.session != "" && first.msg.Error() == nil {
			a.w.Header()[headerSession] = []string{a.session}
		}
		if last && len(batch) == 1 && !a.wantsEvents(first) {
			return a.json(*first)
		}
		a.begin()
	}
	a.extend()
	for i := range batch {
		if err := a.event(&batch[i]); err != nil {
			return err
		}
	}
	return a.flush()
}

func (a *answer) wantsEvents(only *outgoing) bool {
	if !a.accept.events {
		return false
	}
	// A stream can only begin with 200, so whatever has another status is no stream.
	return !a.accept.json || a.accept.eventsFirst && only.status == 0
}

// json writes a message as the whole response.
func (a *answer) json(o outgoing) error {
	a.extend()
	if o.none {
		a.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	head, id, tail := o.msg.Parts(o.id)
	header := a.w.Header()
	header["Content-Type"] = contentJSON
	header["Content-Length"] = []string{strconv.Itoa(len(head) + len(id) + len(tail))}
	if o.status != 0 {
		a.w.WriteHeader(o.status)
	}
	err := a.parts(head, id, tail)
	o.msg.Release()
	return err
}

// Shared by all responses; net/http only reads them.
var (
	contentJSON   = []string{"application/json"}
	contentEvents = []string{"text/event-stream"}
	neverCache    = []string{"no-cache, no-transform"}
	neverBuffer   = []string{"no"}
)

func (a *answer) begin() {
	header := a.w.Header()
	header["Content-Type"] = contentEvents
	header["Cache-Control"] = neverCache
	header["X-Accel-Buffering"] = neverBuffer // nginx would collect events otherwise
	a.w.WriteHeader(http.StatusOK)
	a.started = true
}

var (
	eventRetry = []byte("retry: 1000\n")
	eventHead  = []byte("event: message\ndata: ")
	eventTail  = []byte("\n\n")
	eventQuiet = []byte(": still here\n\n")
)

func (a *answer) event(o *outgoing) error {
	if o.none {
		return nil
	}
	defer o.msg.Release()
	// The field stands in the event of the first message: older clients take an
	// event without data for a broken message.
	if a.retry {
		a.retry = false
		if _, err := a.w.Write(eventRetry); err != nil {
			return err
		}
	}
	head, id, tail := o.msg.Parts(o.id)
	if bytes.IndexByte(o.msg.Raw, '\n') >= 0 || bytes.IndexByte(o.msg.Raw, '\r') >= 0 {
		return a.parts(wire.AppendEvent(nil, "", head, id, tail))
	}
	return a.parts(eventHead, head, id, tail, eventTail)
}

// comment shows that the connection lives, and opens the stream if need be.
func (a *answer) comment() error {
	if !a.started {
		if a.session != "" {
			a.w.Header()[headerSession] = []string{a.session}
		}
		a.begin()
	}
	a.extend()
	if _, err := a.w.Write(eventQuiet); err != nil {
		return err
	}
	return a.flush()
}

// coalesce is up to where copying parts together is cheaper than another write.
const coalesce = 1 << 10

// parts writes pieces one behind the other, large ones in steps, so that a slow
// client has time for each step rather than for everything.
func (a *answer) parts(pieces ...[]byte) error {
	const step = 256 << 10
	a.scratch = a.scratch[:0]
	for _, p := range pieces {
		if len(p) <= coalesce {
			a.scratch = append(a.scratch, p...)
			continue
		}
		if err := a.spill(); err != nil {
			return err
		}
		for len(p) > 0 {
			n := min(len(p), step)
			if _, err := a.w.Write(p[:n]); err != nil {
				return err
			}
			if p = p[n:]; len(p) > 0 {
				a.extend()
			}
		}
	}
	return a.spill()
}

func (a *answer) spill() error {
	if len(a.scratch) == 0 {
		return nil
	}
	_, err := a.w.Write(a.scratch)
	a.scratch = a.scratch[:0]
	return err
}

// extend gives the client time for the next piece.
func (a *answer) extend() {
	_ = http.NewResponseController(a.w).SetWriteDeadline(time.Now().Add(patience))
}

func (a *answer) flush() error {
	return http.NewResponseController(a.w).Flush()
}
