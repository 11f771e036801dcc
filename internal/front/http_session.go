package front

import (
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// What a session keeps for a client that has no stream open.
const (
	backlogMessages = 64
	backlogBytes    = 256 << 10
)

// session is one client: a legacy one, which names it by its id, or a modern one,
// which is known by what it says about itself. While nothing happens it is a little
// memory and nothing else: no goroutine, no timer, no buffer.
type session struct {
	id      string
	talk    *conversation
	batches atomic.Bool // the client may send several messages in one body

	mu       sync.Mutex
	ear      *stream        // where to say what belongs to no call; nil if the client does not listen
	backlog  []wire.Message // what was said meanwhile
	size     int            // bytes in backlog
	attended bool

	// Guarded by the mutex of sessions.
	busy  int           // requests and streams that use it
	since time.Time     // when busy became 0
	place *list.Element // in quiet, nil while busy or ended
}

// hear takes what the server says outside of calls.
func (s *session) hear(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ear == nil || !s.ear.push(outgoing{msg: m}) {
		s.keep(m)
	}
}

// keep files a message for later. When there are too many the oldest
// notification goes first: a request has somebody waiting for its answer. The
// caller holds mu.
func (s *session) keep(m wire.Message) {
	s.backlog = append(s.backlog, m)
	s.size += len(m.Raw)
	for len(s.backlog) > backlogMessages || s.size > backlogBytes && len(s.backlog) > 1 {
		drop := 0
		for i := range s.backlog {
			if s.backlog[i].Kind == wire.Notification {
				drop = i
				break
			}
		}
		s.size -= len(s.backlog[drop].Raw)
		s.backlog[drop].Release()
		s.backlog = append(s.backlog[:drop], s.backlog[drop+1:]...)
	}
}

// divert takes what a call had to say when its client no longer listened to it.
// Only questions are worth passing on: the server waits for the answers.
func (s *session) divert(rest []outgoing) {
	for i := range rest {
		if rest[i].msg.Kind == wire.Request {
			s.hear(rest[i].msg)
		} else {
			rest[i].msg.Release()
		}
	}
}

// attend opens the ear and says whether it is the first time. It returns nil when
// the client listens already.
func (s *session) attend() (ear *stream, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ear != nil {
		return nil, false
	}
	s.ear = newStream(endless)
	for _, m := range s.backlog {
		s.ear.push(outgoing{msg: m})
	}
	s.backlog, s.size = nil, 0
	first, s.attended = !s.attended, true
	return s.ear, first
}

// unattend closes the ear and keeps what it did not hear.
func (s *session) unattend(ear *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ear = nil
	for _, o := range ear.leave() {
		s.keep(o.msg)
	}
}

// close ends the session for the server and for a stream that may be open.
func (s *session) close() {
	s.mu.Lock()
	if s.ear != nil {
		s.ear.finish()
	}
	s.mu.Unlock()
	s.talk.session.Close()
}

// sessions are all clients of one era. Those that nobody uses stand in a queue, the
// one unused for longest at its head, and one timer for all looks at that head.
type sessions struct {
	idle time.Duration
	most int // how many there may be, 0 for any number

	mu    sync.Mutex
	byID  map[string]*session
	quiet list.List
	timer *time.Timer // set while quiet is not empty
}

// begin opens a session, in use by the caller.
func (t *sessions) begin(c *catalogue.Catalogue) *session {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	s := &session{id: hex.EncodeToString(random[:]), busy: 1}
	s.talk = newConversation(c.Open(catalogue.Peer{Era: wire.Legacy, Message: s.hear}))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = make(map[string]*session)
	}
	t.byID[s.id] = s
	return s
}

// meet is the session of that id, opened if there is none, in use by the caller. It
// returns nil when there are too many and all of them are in use.
func (t *sessions) meet(id string, open func(*session) *catalogue.Session) *session {
	if s := t.enter(id); s != nil {
		return s
	}
	t.mu.Lock()
	if s := t.byID[id]; s != nil { // somebody else was faster
		t.mu.Unlock()
		return t.enter(id)
	}
	var evicted *session
	if t.most > 0 && len(t.byID) >= t.most {
		unused := t.quiet.Front()
		if unused == nil {
			t.mu.Unlock()
			return nil
		}
		evicted = unused.Value.(*session)
		t.forget(evicted)
	}
	s := &session{id: id, busy: 1}
	s.talk = newConversation(open(s))
	if t.byID == nil {
		t.byID = make(map[string]*session)
	}
	t.byID[id] = s
	t.mu.Unlock()
	if evicted != nil {
		evicted.close()
	}
	return s
}

// enter marks a session as used. It returns nil if there is none of that id.
func (t *sessions) enter(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil {
		return nil
	}
	s.busy++
	if s.place != nil {
		t.quiet.Remove(s.place)
		s.place = nil
	}
	return s
}

// leave undoes one enter or begin.
func (t *sessions) leave(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.busy--
	if s.busy > 0 || t.byID[s.id] != s {
		return
	}
	s.since = time.Now()
	s.place = t.quiet.PushBack(s)
	if t.timer == nil {
		t.timer = time.AfterFunc(t.idle, t.sweep)
	}
}

// end closes a session and forgets it.
func (t *sessions) end(s *session) {
	t.mu.Lock()
	known := t.byID[s.id] == s
	t.forget(s)
	t.mu.Unlock()
	if known {
		s.close()
	}
}

func (t *sessions) forget(s *session) {
	delete(t.byID, s.id)
	if s.place != nil {
		t.quiet.Remove(s.place)
		s.place = nil
	}
}

// sweep ends the sessions that were unused for too long.
func (t *sessions) sweep() {
	now := time.Now()
	var expired []*session
	t.mu.Lock()
	t.timer = nil
	for e := t.quiet.Front(); e != nil; e = t.quiet.Front() {
		s := e.Value.(*session)
		if wait := s.since.Add(t.idle).Sub(now); wait > 0 {
			t.timer = time.AfterFunc(wait, t.sweep)
			break
		}
		t.forget(s)
		expired = append(expired, s)
	}
	t.mu.Unlock()
	for _, s := range expired {
		s.close()
	}
}

func (t *sessions) closeAll() {
	t.mu.Lock()
	all := t.byID
	t.byID = nil
	t.quiet.Init()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	t.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}
