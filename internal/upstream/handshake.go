package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

var errTimeout = errors.New("timed out")

// handshake gets the server to talk: in the era that is known, else in the
// client's own, else in the other one.
func (s *Session) handshake() (dialect, *fault.Fault) {
	if s.peer.Era == wire.Modern {
		return s.handshakeModern()
	}
	return s.handshakeLegacy()
}

// handshakeLegacy serves a client that begins with initialize. Its own words are
// what the server hears; they are kept for the day the server has to be started
// again.
func (s *Session) handshakeLegacy() (dialect, *fault.Fault) {
	first := s.takeInitialize()
	if !s.server.legacy.no() {
		d, o, l := s.introduce(first)
		if d != nil {
			s.server.legacy.learn(true)
			if first != nil {
				first.finish(o)
			}
			return d, nil
		}
		if s.server.legacy.yes() || !mayBeModern(o) {
			s.server.drop(l)
			return nil, s.giveUp(first, o)
		}
		if d := s.tryModern(l); d != nil {
			if first != nil {
				first.finish(Outcome{Reply: wire.NewResult(first.Msg.ID(), d.introduction())})
			}
			return d, nil
		}
		return nil, s.giveUp(first, o)
	}
	l, flt := s.server.openShared()
	if flt != nil {
		return nil, s.giveUp(first, Outcome{Fault: flt})
	}
	o := s.discover(l, s.server.spec.StartTimeout)
	l.settled()
	d := s.uplift(l, o)
	if d == nil {
		s.server.legacy.forget() // it was modern only once; ask anew next time
		return nil, s.giveUp(first, o)
	}
	if first != nil {
		first.finish(Outcome{Reply: wire.NewResult(first.Msg.ID(), d.introduction())})
	}
	return d, nil
}

// takeInitialize takes the client's initialize from the head of what waits. It is
// nil when the client is known already and the server has to be greeted again.
func (s *Session) takeInitialize() *Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.waiting {
		if w.call != nil && w.call.Msg.Method() == wire.MethodInitialize {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			s.hello = append([]byte(nil), w.call.Msg.Params()...)
			s.greeted = false
			return w.call
		}
	}
	return nil
}

// giveUp reports a failed handshake: to the client's initialize, if that is what
// failed, and to everything that waited behind it.
func (s *Session) giveUp(first *Call, o Outcome) *fault.Fault {
	flt := o.Fault
	if flt == nil {
		code, text := wire.ErrorOf(&o.Reply)
		flt = &fault.Fault{
			Delivery: fault.Unsent,
			Evidence: fault.Evidence{
				Text:       fmt.Sprintf("the server refused the handshake: %s", text),
				RPCCode:    code,
				HTTPStatus: o.Status,
				Moment:     fault.AtHandshake,
			},
		}
	}
	if flt.Moment == "" || flt.Moment == fault.AtCall {
		flt.Moment = fault.AtHandshake
	}
	if first != nil {
		first.finish(o)
	}
	waiting := *flt
	waiting.Delivery = fault.Unsent // the handshake failed; nothing else was sent
	return &waiting
}

// introduce makes a link of the session's own and sends initialize over it. On
// failure the link comes back alive if it is, for another try.
func (s *Session) introduce(first *Call) (dialect, Outcome, link) {
	l, flt := s.server.dial(s.hear)
	if flt != nil {
		return nil, Outcome{Fault: flt}, nil
	}
	if s.hello == nil && first == nil {
		// A client that never introduced itself: the server may tell it so.
		l.settled()
		return &relay{session: s, link: l}, Outcome{}, l
	}
	o := s.ask(l, wire.MethodInitialize, s.hello, s.server.spec.StartTimeout)
	if o.Fault != nil || o.Reply.Result() == nil {
		return nil, o, l
	}
	version, _ := wire.Member(o.Reply.Result(), "protocolVersion")
	text, _ := wire.StringValue(version)
	l.speak(text)
	l.settled()
	s.mu.Lock()
	greeted := s.greeted
	s.mu.Unlock()
	if greeted && first == nil {
		_ = l.post(wire.NewNotification(wire.MethodInitialized, nil))
	}
	return &relay{session: s, link: l}, o, l
}

// mayBeModern reports whether a failed initialize could be a modern server's way
// of saying that it does not know the word.
func mayBeModern(o Outcome) bool {
	if o.Fault == nil {
		return true
	}
	switch {
	case errors.Is(o.Fault.Cause, errTimeout):
		return false // it had its minute; a modern server answers at once
	case o.Fault.HTTPStatus >= 400 && o.Fault.HTTPStatus < 500:
		return o.Fault.HTTPStatus != 401 && o.Fault.HTTPStatus != 403 && o.Fault.HTTPStatus != 429
	}
	return o.Fault.Exited && o.Fault.Delivery == fault.Silent
}

// tryModern asks over the same link whether the server is modern, or over a new
// one if the last word killed it.
func (s *Session) tryModern(l link) *uplift {
	if l != nil && l.trouble() != nil {
		s.server.drop(l)
		<-l.closed()
		l = nil
	}
	if l == nil {
		shared, flt := s.server.openShared()
		if flt != nil {
			return nil
		}
		l = shared
	}
	o := s.discover(l, s.server.spec.ProbeTimeout)
	if !isDiscovery(o) || o.Reply.Result() == nil {
		s.server.drop(l)
		return nil
	}
	s.server.modern.learn(true)
	s.server.legacy.learn(false)
	l.settled()
	return s.uplift(s.server.promote(l), o)
}

// discover asks the server to describe itself, in our own name.
func (s *Session) discover(l link, timeout time.Duration) Outcome {
	l.speak(wire.ModernVersion)
	return s.ask(l, wire.MethodDiscover, modernParams(nil, modernMeta(s.hello)), timeout)
}

// isDiscovery reports whether an outcome shows a modern server: it described
// itself, or it refused the version in the words of the modern protocol.
func isDiscovery(o Outcome) bool {
	if o.Fault != nil {
		return false
	}
	if code, _ := wire.ErrorOf(&o.Reply); code == wire.CodeUnsupportedVersion {
		// A server of both eras that cannot be modern over this transport says
		// so with a list of the versions it can speak.
		supported, _ := wire.Member(o.Reply.Error(), "data", "supported")
		return speaksModern(supported)
	}
	supported, ok := wire.Member(o.Reply.Result(), "supportedVersions")
	return ok && speaksModern(supported)
}

func speaksModern(versions []byte) bool {
	var list []string
	_ = json.Unmarshal(versions, &list)
	for _, v := range list {
		if wire.EraOf(v) == wire.Modern {
			return true
		}
	}
	return false
}

// handshakeModern serves a client that begins with whatever it wants.
func (s *Session) handshakeModern() (dialect, *fault.Fault) {
	switch {
	case s.server.modern.yes():
		l, flt := s.server.openShared()
		if flt != nil {
			return nil, flt
		}
		if s.server.vitals.unwell() {
			// It was down. That a connection can be had does not mean it is back.
			if o := s.discover(l, s.server.spec.StartTimeout); o.Fault != nil {
				return nil, s.giveUp(nil, o)
			}
		}
		l.settled()
		return &stateless{session: s}, nil
	case s.server.modern.no():
		if s.peer.BothEras {
			return notModern{}, nil
		}
		return s.downshift(nil, nil)
	}
	l, flt := s.server.openShared()
	if flt != nil {
		return nil, flt
	}
	l.speak(wire.ModernVersion)
	_, probe := s.begin(l, wire.MethodDiscover, modernParams(nil, modernMeta(nil)))
	silence := time.NewTimer(s.server.spec.ProbeTimeout)
	defer silence.Stop()
	select {
	case o := <-probe:
		if isDiscovery(o) {
			s.server.modern.learn(true)
			l.settled()
			return &stateless{session: s}, nil
		}
		if o.Fault != nil && o.Fault.Delivery == fault.Unsent {
			return nil, s.giveUp(nil, o) // it never came to a question of era
		}
		probe = nil
	case <-silence.C:
	}
	if s.peer.BothEras {
		s.server.modern.learn(false)
		s.server.spare(l)
		return notModern{}, nil
	}
	return s.downshift(l, probe)
}

// notModern is the dialect for a client of both eras whose server is legacy: it
// is told what the server itself would say.
type notModern struct{}

func (notModern) call(c *Call) {
	c.finish(Outcome{Reply: wire.NewError(c.Msg.ID(), wire.CodeMethodNotFound, "method not found: "+c.Msg.Method(), nil)})
}

func (notModern) send(wire.Message) {}
func (notModern) attend()           {}
func (notModern) usable() bool      { return true }
func (notModern) over() link        { return nil }
func (notModern) probe() string     { return wire.MethodPing }
func (notModern) ownParams() []byte { return nil }
func (notModern) close()            {}

// relay is the dialect of client and server of the legacy era: nothing changes.
type relay struct {
	session *Session
	link    link
}

func (r *relay) call(c *Call) {
	if c.Msg.Method() == wire.MethodDiscover && !r.session.server.modern.yes() {
		// There are legacy servers that exit at a word they do not know.
		notModern{}.call(c)
		return
	}
	r.session.launch(r.link, c)
}

func (r *relay) send(m wire.Message) { _ = r.link.post(m) }
func (r *relay) attend()             { r.link.attend() }
func (r *relay) usable() bool        { return r.link.trouble() == nil }
func (r *relay) over() link          { return r.link }
func (r *relay) probe() string       { return wire.MethodPing }
func (r *relay) ownParams() []byte   { return nil }

func (r *relay) close() {
	r.session.server.drop(r.link)
	r.session.orphan(r.link)
}

// stateless is the dialect of client and server of the modern era: nothing
// changes, and all clients share one link.
type stateless struct{ session *Session }

func (d *stateless) call(c *Call) {
	l := d.session.server.sharedLink()
	if l == nil { // it was lost just now; connecting may take its time and is not done here
		c.finish(Outcome{Fault: &fault.Fault{Delivery: fault.Unsent, Evidence: fault.Evidence{Text: "the connection was lost", Moment: fault.AtCall}}})
		return
	}
	d.session.launch(l, c)
}

func (d *stateless) send(m wire.Message) {
	if l := d.session.server.sharedLink(); l != nil {
		_ = l.post(m)
	}
}

func (d *stateless) attend()      {}
func (d *stateless) usable() bool { return d.session.server.sharedLink() != nil }
func (d *stateless) close()       {}
func (d *stateless) over() link   { return d.session.server.sharedLink() }

func (d *stateless) probe() string     { return wire.MethodDiscover }
func (d *stateless) ownParams() []byte { return modernParams(nil, modernMeta(nil)) }
