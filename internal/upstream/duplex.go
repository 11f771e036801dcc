package upstream

import (
	"bytes"
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
	down    *fault.Fault
	strays  uint64  // replies nobody waited for
	lost    *spoilt // a reply that belongs to we do not know whom
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
		var params []byte
		if note != nil {
			params = note.Params()
		}
		params = wire.Set(params, f.key, "requestId")
		_ = d.post(wire.NewNotification(wire.MethodCancelled, params))
	}
	f.fail(&fault.Fault{Delivery: fault.Cancelled})
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
	d.stray(m)
	m.Release()
}

// claim takes the flight with this id out of the table. A server that turns the
// number into a string is understood all the same: the ids are ours.
func (d *duplex) claim(id []byte) *flight {
	n, err := strconv.ParseUint(string(bytes.Trim(id, `"`)), 10, 64)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.pending[n]
	if err != nil || f == nil {
		d.strays++
		return nil
	}
	delete(d.pending, n)
	return f
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
	// Nothing in the message says which request caused it. The youngest one is
	// the best guess; with one request under way it is certain.
	d.mu.Lock()
	defer d.mu.Unlock()
	var youngest *flight
	several := false
	for _, f := range d.pending {
		if f.call == nil || f.msg.Method() == wire.MethodListen {
			continue
		}
		several = youngest != nil
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
	if len(id) == 0 {
		return nil
	}
	n, err := strconv.ParseUint(string(bytes.Trim(id, `"`)), 10, 64)
	if err != nil {
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

// garbled handles a line that was no message. If it was meant as the reply to a
// request, that request is given up soon, unless the right reply follows.
func (d *duplex) garbled(j wire.Junk) {
	f := d.find(j.ID)
	reply := looksLikeReply(j.Text)
	if f == nil && reply {
		f = d.mentioned(j.Text)
	}
	switch {
	case f != nil:
		d.spoil(f, j.Reason.Error(), j.Text)
	case reply:
		d.missing(j.Reason.Error(), j.Text)
	}
}

// mentioned finds a request under way whose id stands somewhere in the text. That
// is a guess, and good enough for not waiting much longer.
func (d *duplex) mentioned(text []byte) *flight {
	for {
		i := bytes.Index(text, []byte(`"id"`))
		if i < 0 {
			return nil
		}
		text = text[i+len(`"id"`):]
		value := bytes.TrimLeft(text, ": ")
		end := bytes.IndexAny(value, ",} ")
		if end > 0 {
			if f := d.find(value[:end]); f != nil {
				return f
			}
		}
	}
}

func (d *duplex) spoil(f *flight, why string, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.started.Store(true)
	f.spoilt = &spoilt{at: time.Now(), why: why, text: d.excerpt(text)}
}

// stray handles a reply that nobody waits for. Late replies to requests that were
// given up are expected; under an id we never used it is somebody's lost reply.
func (d *duplex) stray(m wire.Message) {
	n, err := strconv.ParseUint(string(bytes.Trim(m.ID(), `"`)), 10, 64)
	d.mu.Lock()
	ours := err == nil && n <= d.lastID
	d.mu.Unlock()
	if !ours && m.Error() == nil {
		d.missing("it came under an id that was never used", m.Raw)
	}
}

// missing notes that some request's reply will not come. Which one shows when all
// others have theirs.
func (d *duplex) missing(why string, text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) > 0 {
		d.lost = &spoilt{at: time.Now(), why: why, text: d.excerpt(text)}
	}
}

// excerpt is the beginning of a spoilt reply, without what must not be shown.
func (d *duplex) excerpt(text []byte) string {
	start := d.hide.Text(string(text[:min(len(text), 800)]))
	return start[:min(len(start), 200)]
}

// spoilt is a reply that could not be read, or not be matched.
type spoilt struct {
	at        time.Time
	why, text string
}

// giveUpSpoilt settles requests whose reply arrived spoilt and was not followed
// by a better one.
func (d *duplex) giveUpSpoilt(now time.Time) {
	d.mu.Lock()
	if d.lost != nil && now.Sub(d.lost.at) >= spoiltFor {
		var older []*flight
		for _, f := range d.pending {
			if f.at.Before(d.lost.at) && f.msg.Method() != wire.MethodListen {
				older = append(older, f)
			}
		}
		if len(older) == 1 {
			older[0].spoilt = d.lost
		}
		if len(older) <= 1 {
			d.lost = nil
		}
	}
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
	for _, f := range lost {
		one := why
		one.Delivery = delivered(f)
		if f.spoilt != nil {
			one.PartialText = f.spoilt.text
		}
		f.fail(&one)
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
