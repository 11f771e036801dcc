package upstream

import (
	"bytes"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/secret"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// duplex is the part that links with one stream for everything have in common:
// it gives each request an id of its own and finds the request for each reply.
//
// Ids are always ours, small and counted up. So two clients on one link cannot
// meet, a request sent again gets a new id, and a client's exotic id never
// depends on the server's JSON library.
type duplex struct {
	// self is the link this is a part of.
	self link
	hide *secret.Hider // what must not be shown of a spoilt reply; may be nil
	// write hands one message to the stream without waiting for the peer.
	write func(m wire.Message, id []byte, r *wire.Receipt) error

	mu      sync.Mutex
	hear    receiver
	shared  bool // several clients use this link, so progress tokens are replaced too
	lastID  uint64
	pending map[uint64]*flight
	useful  bool // a client's call has been answered over it
	// ghosts are calls that were given up and may still be running: what they say
	// belongs to nobody who is still here. Only kept while shared.
	ghosts map[uint64]struct{}
	// user is the session whose calls go over the link, mixed that there were others.
	user  *Session
	mixed bool
	down  *fault.Fault
}

func (d *duplex) send(f *flight) {
	d.mu.Lock()
	shared := d.shared
	if shared || f.on != nil {
		f.token, _ = wire.Member(f.msg.Params(), "_meta", "progressToken")
	}
	if d.down != nil {
		down := *d.down
		d.mu.Unlock()
		down.Delivery = fault.Unsent
		f.fail(&down)
		return
	}
	if f.session != nil && f.session != d.user {
		d.mixed = d.mixed || d.user != nil
		d.user = f.session
	}
	f.at = time.Now()
	d.lastID++
	f.id = d.lastID
	f.key = strconv.AppendUint(nil, f.id, 10)
	if d.pending == nil {
		d.pending = make(map[uint64]*flight)
	}
	d.pending[f.id] = f
	if f.settled.Load() { // given up in the meantime
		delete(d.pending, f.id)
		d.mu.Unlock()
		return
	}
	d.mu.Unlock()

	m := f.msg
	if shared && f.token != nil {
		m = m.WithParams(wire.Set(m.Params(), f.key, "_meta", "progressToken"))
	}
	if err := d.write(borrowed(m), f.key, &f.receipt); err != nil {
		d.forget(f)
		f.fail(&fault.Fault{Delivery: fault.Unsent, Evidence: fault.Evidence{Text: err.Error(), Moment: fault.AtCall}, Cause: err})
	}
}

// borrowed is m without its buffer: the writer may not give it back while the
// caller can still want to send it again.
func borrowed(m wire.Message) wire.Message {
	m.Disown()
	return m
}

func (d *duplex) forget(f *flight) {
	d.mu.Lock()
	delete(d.pending, f.id)
	d.mu.Unlock()
}

func (d *duplex) post(m wire.Message) error {
	d.mu.Lock()
	down := d.down
	d.mu.Unlock()
	if down != nil {
		return down
	}
	return d.write(m, nil, nil)
}

func (d *duplex) adopt(hear receiver, shared bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hear, d.shared = hear, shared
}

func (d *duplex) abandon(f *flight, note *wire.Message) {
	d.forget(f)
	f.receipt.Drop()
	if f.receipt.Accepted() > 0 {
		d.haunt(f)
		var params []byte
		if note != nil {
			params = note.Params()
		}
		params = wire.Set(params, f.key, "requestId")
		_ = d.post(wire.NewNotification(wire.MethodCancelled, params))
	}
	f.fail(&fault.Fault{Delivery: fault.Cancelled})
}

// mostGhosts is how many calls that were given up are remembered. Of more than that
// it is only known that they are there.
const mostGhosts = 1024

// haunt remembers a call that was given up while the server may be at work on it.
func (d *duplex) haunt(f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shared || f.call == nil || len(d.ghosts) >= mostGhosts {
		return
	}
	if d.ghosts == nil {
		d.ghosts = make(map[uint64]struct{})
	}
	d.ghosts[f.id] = struct{}{}
}

// incoming takes one message that arrived on the stream.
func (d *duplex) incoming(m wire.Message) {
	if m.Kind != wire.Response {
		d.mu.Lock()
		hear, shared := d.hear, d.shared
		d.mu.Unlock()
		m, f := d.attribute(m, shared)
		hear(d.self, m, f)
		return
	}
	if f := d.claim(m.ID()); f != nil {
		f.settle(Outcome{Reply: m})
		return
	}
	// Late, to a request that was given up; or an answer to a notification. Nobody
	// waits for it.
	m.Release()
}

// claim takes the flight with this id out of the table.
func (d *duplex) claim(id []byte) *flight {
	n, ok := ownNumber(id)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.pending[n]
	if !ok || f == nil {
		if len(d.ghosts) < mostGhosts { // else there may be more than we know
			delete(d.ghosts, n)
		}
		return nil
	}
	delete(d.pending, n)
	d.useful = d.useful || f.call != nil
	return f
}

// ownNumber reads an id of ours as its value. A server that writes 3 as 3.0 or "3"
// is understood all the same: the ids are ours, and small.
func ownNumber(id []byte) (uint64, bool) {
	text := string(bytes.Trim(id, `"`))
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, true
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > 1<<53 || v != math.Trunc(v) {
		return 0, false
	}
	return uint64(v), true
}

// attribute finds the flight that a notification or request belongs to.
func (d *duplex) attribute(m wire.Message, shared bool) (wire.Message, *flight) {
	method := m.Method()
	if method == wire.MethodProgress {
		return d.attributeProgress(m, shared)
	}
	if id, ok := wire.Member(m.Params(), "_meta", wire.MetaSubscription); ok {
		if f := d.find(id); f != nil {
			f.started.Store(true)
			params := wire.Set(m.Params(), f.msg.ID(), "_meta", wire.MetaSubscription)
			return m.WithParams(params), f
		}
		return m, nil
	}
	if standsAlone(method) {
		return m, nil
	}
	// Nothing in the message says which request caused it. On a link of one client
	// the youngest is the best guess, and whichever it is, the right client hears it.
	// Where several clients may be, only a request that is alone will do.
	d.mu.Lock()
	defer d.mu.Unlock()
	var youngest *flight
	several := d.mixed || len(d.ghosts) > 0
	for _, f := range d.pending {
		if f.call == nil || f.msg.Method() == wire.MethodListen {
			continue
		}
		several = several || youngest != nil
		if youngest == nil || f.id > youngest.id {
			youngest = f
		}
	}
	if shared && several {
		return m, nil // it might be another client's
	}
	return m, youngest
}

// standsAlone reports whether a notification is about the server as a whole.
func standsAlone(method string) bool {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated":
		return true
	}
	return false
}

func (d *duplex) attributeProgress(m wire.Message, shared bool) (wire.Message, *flight) {
	token, ok := wire.Member(m.Params(), "progressToken")
	if !ok {
		return m, nil
	}
	if !shared {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, f := range d.pending {
			if f.token == nil {
				f.token, _ = wire.Member(f.msg.Params(), "_meta", "progressToken")
			}
			if f.token != nil && bytes.Equal(f.token, token) {
				f.started.Store(true)
				return m, f
			}
		}
		return m, nil
	}
	f := d.find(token)
	if f == nil || f.token == nil {
		return m, nil
	}
	f.started.Store(true)
	return m.WithParams(wire.Set(m.Params(), f.token, "progressToken")), f
}

func (d *duplex) find(id []byte) *flight {
	n, ok := ownNumber(id)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending[n]
}

func (d *duplex) trouble() *fault.Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}

// garbled handles a line that was no message. It touches no call, except where it
// was meant as JSON-RPC and names the request that it was to answer: that request
// is given up soon, unless the right reply follows.
func (d *duplex) garbled(j wire.Junk) {
	f := d.find(j.ID)
	if f == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f.started.Store(true)
	f.spoilt = &spoilt{at: time.Now(), why: j.Reason.Error(), text: d.excerpt(j.Text)}
}

// excerpt is the beginning of a spoilt reply, without what must not be shown.
func (d *duplex) excerpt(text []byte) string {
	start := d.hide.Text(string(text[:min(len(text), 800)]))
	return start[:min(len(start), 200)]
}

// spoilt is a reply that could not be read.
type spoilt struct {
	at        time.Time
	why, text string
}

// giveUpSpoilt settles requests whose reply arrived spoilt and was not followed
// by a better one.
func (d *duplex) giveUpSpoilt(now time.Time) {
	d.mu.Lock()
	var gone []*flight
	for id, f := range d.pending {
		if f.spoilt != nil && now.Sub(f.spoilt.at) >= spoiltFor {
			delete(d.pending, id)
			gone = append(gone, f)
		}
	}
	d.mu.Unlock()
	for _, f := range gone {
		f.fail(&fault.Fault{
			Delivery: fault.Partial,
			Evidence: fault.Evidence{Text: "the reply could not be read: " + f.spoilt.why, Moment: fault.AtCall, PartialText: f.spoilt.text},
		})
	}
}

// fail ends the link for the given reason. Every request under way settles with
// what delivered says of it.
func (d *duplex) fail(why fault.Fault, delivered func(*flight) fault.Delivery) {
	d.mu.Lock()
	if d.down != nil {
		d.mu.Unlock()
		return
	}
	d.down = &why
	lost := d.pending
	d.pending = nil
	d.mu.Unlock()
	how := make(map[*flight]fault.Delivery, len(lost))
	reached := 0 // how many requests the server may have been working on
	for _, f := range lost {
		how[f] = delivered(f)
		switch how[f] {
		case fault.Silent, fault.Started, fault.Partial:
			reached++
		}
	}
	for _, f := range lost {
		one := why
		one.Delivery = how[f]
		if f.spoilt != nil {
			one.PartialText = f.spoilt.text
		}
		f.settle(Outcome{Fault: &one, Alone: reached == 1})
	}
}

// deliveredBy tells from the receipt how far a flight got.
func deliveredBy(f *flight) fault.Delivery {
	f.receipt.Drop() // nothing of it may leave any more if nothing has
	switch {
	case f.spoilt != nil:
		return fault.Partial
	case f.started.Load():
		return fault.Started
	case f.receipt.Accepted() == 0:
		return fault.Unsent
	case !f.receipt.Whole():
		return fault.Unparseable
	}
	return fault.Silent
}
