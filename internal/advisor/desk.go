package advisor

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/fault"
)

// desk holds the questions that are being asked, and decides whether another may
// be: not more than so many an hour, and none for a while after several failures
// in a row. Every change to it goes through one of its methods.
type desk struct {
	perHour int

	mu       sync.Mutex
	flights  map[[32]byte]*flight
	asked    []time.Time // within the last hour, oldest first
	failures int         // in a row
	closed   time.Time   // until then nothing is asked
}

const (
	tolerated   = 3
	pause       = time.Minute
	longestWait = time.Hour // that a service may ask for
)

// flight is one question on its way, and those who wait for it.
type flight struct {
	waiting int // guarded by desk.mu
	cancel  context.CancelCauseFunc
	done    chan struct{}
	reply   reply // this and err are set when done is closed
	err     error
}

// tooSlow is why a wait ended.
type tooSlow struct{ limit time.Duration }

func (e *tooSlow) Error() string {
	return fmt.Sprintf("the model did not answer within %v", e.limit.Round(time.Millisecond))
}
func (e *tooSlow) Unwrap() error { return context.DeadlineExceeded }

func timeout(err error) *fault.Fault {
	return &fault.Fault{Kind: fault.Timeout, Delivery: fault.Silent, Cause: err}
}

// ask asks, or waits for the answer to the same question.
func (a *Advisor) ask(ctx context.Context, q Question, arguments object) (reply, error) {
	key := q.identity()
	if err := ctx.Err(); err != nil {
		return reply{}, fmt.Errorf("%w: %w", ErrNotAsked, err)
	}
	f, first, err := a.desk.join(key, time.Now())
	if err != nil {
		return reply{}, err
	}
	if first != nil {
		// It ends with its answer, after the advisor's timeout, or when nobody
		// waits any more, and not when the first caller leaves.
		go a.fly(first, key, f, q, arguments)
	}
	select {
	case <-f.done:
		return f.reply, f.err
	case <-ctx.Done():
		cause := context.Cause(ctx)
		a.desk.leave(key, f, cause, time.Now())
		var slow *tooSlow
		if errors.As(cause, &slow) {
			return reply{}, timeout(slow)
		}
		return reply{}, fmt.Errorf("waiting for the model: %w", cause)
	}
}

func (a *Advisor) fly(ctx context.Context, key [32]byte, f *flight, q Question, arguments object) {
	ctx, stop := context.WithTimeoutCause(ctx, a.timeout, &tooSlow{a.timeout})
	defer stop()
	p, m := newPrompt(q, arguments, a.given)
	text, err := a.speak(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		f.err = timeout(context.Cause(ctx))
	case err != nil:
		f.err = err
	case len(text) > maxReply:
		f.err = tooMuch()
	default:
		f.reply, f.err = readReply(text, q, m)
	}
	a.desk.land(key, f, time.Now())
	f.cancel(nil)
}

// join finds the flight of a question or starts one; ctx is then the one to fly with.
func (d *desk) join(key [32]byte, now time.Time) (f *flight, ctx context.Context, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.flights[key]; f != nil {
		f.waiting++
		return f, nil, nil
	}
	if err := d.admit(now); err != nil {
		return nil, nil, err
	}
	f = &flight{waiting: 1, done: make(chan struct{})}
	ctx, f.cancel = context.WithCancelCause(context.Background())
	if d.flights == nil {
		d.flights = make(map[[32]byte]*flight)
	}
	d.flights[key] = f
	return f, ctx, nil
}

// admit counts a question, or says why it is not asked. The caller holds mu.
func (d *desk) admit(now time.Time) error {
	if now.Before(d.closed) {
		return fmt.Errorf("%w: it failed before and is left alone for %v", ErrNotAsked, d.closed.Sub(now).Round(time.Second))
	}
	d.asked = slices.DeleteFunc(d.asked, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if len(d.asked) >= d.perHour {
		return fmt.Errorf("%w: %d questions were asked within the hour", ErrNotAsked, len(d.asked))
	}
	d.asked = append(d.asked, now)
	if d.failures >= tolerated {
		// This one finds out whether it is back. The others wait for the outcome.
		d.closed = now.Add(pause)
	}
	return nil
}

// leave is what a caller does who does not wait any longer. The last one ends the
// flight, and counts it: a model behind a func may never come back.
func (d *desk) leave(key [32]byte, f *flight, cause error, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.waiting--; f.waiting > 0 || d.flights[key] != f {
		return
	}
	delete(d.flights, key)
	f.cancel(cause)
	var slow *tooSlow
	if errors.As(cause, &slow) { // that a caller went away says nothing about the model
		d.count(slow, now)
	}
}

// land gives the outcome of a flight to those who wait for it.
func (d *desk) land(key [32]byte, f *flight, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flights[key] == f {
		delete(d.flights, key)
		d.count(f.err, now)
	}
	close(f.done)
}

// count takes the outcome of a question. The caller holds mu.
func (d *desk) count(err error, now time.Time) {
	if err == nil || errors.Is(err, ErrRejected) { // it answers; whether well is another matter
		d.failures, d.closed = 0, time.Time{}
		return
	}
	if d.failures++; d.failures >= tolerated {
		d.closed = now.Add(pause)
	}
	var flt *fault.Fault
	if errors.As(err, &flt) && flt.RetryAfter > 0 {
		d.closed = later(d.closed, now.Add(min(flt.RetryAfter, longestWait)))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// identity is the same for the same question. The funcs do not count: each caller
// judges the answer by its own.
func (q *Question) identity() [32]byte {
	h := sha256.New()
	for _, part := range [...]string{q.Tool, string(q.SchemaPart), string(q.Arguments), q.Error, string(q.Kind)} {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(part)))
		h.Write([]byte(part))
	}
	return [32]byte(h.Sum(nil))
}
