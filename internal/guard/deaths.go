package guard

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// deaths remembers which calls of one client were alone at work when the server
// died. A call that did so twice is what the server dies of: it is refused for a
// while, then tried once. Everything else goes on.
type deaths struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*death
}

type death struct {
	times  int
	last   time.Time
	cause  *fault.Fault
	trying *Call // the one try after the pause, while it is under way
}

const (
	deathsAllowed = 2           // so often a call may be there when the server dies
	deathPause    = time.Minute // and then it is refused for this long
	deathsKept    = 256
	deathForgiven = 10 * time.Minute
)

// keyOf is a tool together with its arguments, as the client wrote them.
func keyOf(c *Call) [sha256.Size]byte {
	arguments, _ := wire.Member(c.Msg.Params(), "arguments")
	h := sha256.New()
	fmt.Fprintf(h, "%d %s ", len(c.name), c.name)
	h.Write(arguments)
	return [sha256.Size]byte(h.Sum(nil))
}

// refuse says why a call is not to be made now, nil if it may be.
func (d *deaths) refuse(c *Call, now time.Time) *fault.Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) == 0 {
		return nil
	}
	one := d.known[keyOf(c)]
	if one == nil || one.times < deathsAllowed {
		return nil
	}
	wait := one.last.Add(deathPause).Sub(now)
	if wait <= 0 && one.trying == nil {
		one.trying, c.tried = c, one
		return nil
	}
	f := *one.cause
	f.Delivery = fault.Unsent
	f.Text = fmt.Sprintf("the server ended %d times while it worked on this call alone; the last time: %s", one.times, one.cause.Text)
	f.RetryAfter = max(wait, time.Second)
	f.Hint = "call it with other arguments, or do without it; other tools go on working"
	return &f
}

// note takes what became of an attempt of a call.
func (d *deaths) note(c *Call, o *upstream.Outcome) {
	died := o.Fault != nil && o.Fault.Exited && o.Alone
	d.mu.Lock()
	defer d.mu.Unlock()
	if !died && (o.Fault != nil || len(d.known) == 0) {
		return
	}
	key := keyOf(c)
	if !died {
		delete(d.known, key)
		return
	}
	now := time.Now()
	one := d.known[key]
	if one == nil || now.Sub(one.last) > deathForgiven {
		one = new(death)
		d.keep(key, one, now)
	}
	one.times++
	one.last, one.cause = now, o.Fault
}

// settled ends the one try of a call, if this was it.
func (d *deaths) settled(c *Call) {
	if c.tried == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.tried.trying == c {
		c.tried.trying = nil
	}
}

// keep files a death, and forgets the oldest one when there are too many.
func (d *deaths) keep(key [sha256.Size]byte, one *death, now time.Time) {
	if d.known == nil {
		d.known = make(map[[sha256.Size]byte]*death)
	}
	if len(d.known) >= deathsKept {
		var oldest [sha256.Size]byte
		at := now
		for k, other := range d.known {
			if !other.last.After(at) {
				oldest, at = k, other.last
			}
		}
		delete(d.known, oldest)
	}
	d.known[key] = one
}
