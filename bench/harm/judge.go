package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// A situation is something that happens between a client and a server, in which the
// client gets all it wants.
type situation struct {
	id, name string
	server   string // what it is made of
	wait     time.Duration
	// quick is the wait of a quick run, if a shorter one shows the same. Situations that
	// would show nothing then are fullOnly.
	quick    time.Duration
	fullOnly bool
	// slowStart is set for one whose connection takes long to open.
	slowStart bool
	// alone is set for one that uses the processor for long.
	alone bool
	// play is called once for each side. It fails if the client lacks anything. errCannot
	// in its error means that this machine cannot set the situation up.
	play func(ctx context.Context, s *side) error

	opened chan struct{} // gets something from each side once it is connected; may be nil
}

// isOpen tells that one side is connected.
func (s *situation) isOpen() {
	select {
	case s.opened <- struct{}{}:
	default:
	}
}

func (s *situation) waits(quick bool) time.Duration {
	if quick && s.quick != 0 {
		return s.quick
	}
	return s.wait
}

// inFull leaves a situation out of quick runs.
func inFull(s situation) situation {
	s.fullOnly = true
	return s
}

// A verdict is what became of a situation.
type verdict string

const (
	held verdict = "held"
	lost verdict = "MISSED" // something was missing
	late verdict = "LATE"   // all came, too late
	void verdict = "VOID"   // the bare client fails, too
)

// result is one situation, played.
type result struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Server  string  `json:"server"`
	Verdict verdict `json:"verdict"`
	Direct  float64 `json:"direct_seconds"`
	Through float64 `json:"through_seconds"`
	Why     string  `json:"why,omitempty"`
	Tries   int     `json:"tries"`

	cannot   bool // be set up here
	together bool // played beside others
}

// unsure is true when another try may come out better. Load on the machine can make a bare
// client fail. It can make a situation late: very late beside all the others, a little when
// it was played alone.
func (r *result) unsure() bool {
	switch r.Verdict {
	case void:
		return !r.cannot
	case late:
		return r.together || r.Through < 1.5*r.Direct+1
	}
	return false
}

// outcome is what one side came to.
type outcome struct {
	err  error
	took time.Duration
}

// allowed is the time within which it has to succeed through us.
func allowed(direct time.Duration) time.Duration { return direct*11/10 + 100*time.Millisecond }

// judge compares the sides.
func judge(s *situation, direct, through outcome) result {
	r := result{ID: s.id, Name: s.name, Server: s.server, Direct: direct.took.Seconds(), Through: through.took.Seconds(), Tries: 1}
	switch limit := allowed(direct.took); {
	case direct.err != nil:
		r.Verdict, r.Why, r.cannot = void, "direct: "+shorten(direct.err), errors.Is(direct.err, errCannot)
	case through.err != nil:
		r.Verdict, r.Why = lost, shorten(through.err)
	case through.took > limit:
		r.Verdict, r.Why = late, fmt.Sprintf("%.2f s allowed", limit.Seconds())
	default:
		r.Verdict = held
	}
	return r
}

// shorten makes one line of an error: some hold whole messages.
func shorten(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > 220 {
		text = text[:220] + " …"
	}
	return text
}

// play plays both sides, at once if together.
func (w *world) play(ctx context.Context, s *situation, together bool) result {
	limit := s.waits(w.quick)*3/2 + 40*time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	throughCtx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	began := time.Now()
	if !together {
		direct := w.playSide(ctx, s, false)
		if direct.err != nil {
			return judge(s, direct, outcome{})
		}
		took := time.Since(began)
		defer time.AfterFunc(hopeless(took), giveUp).Stop()
		return judge(s, direct, w.playSide(throughCtx, s, true))
	}
	done := make(chan outcome, 1)
	go func() { done <- w.playSide(throughCtx, s, true) }()
	direct := w.playSide(ctx, s, false)
	if direct.err != nil {
		giveUp()
	} else {
		// A hang is known long before the time of the whole situation is over.
		took := time.Since(began)
		defer time.AfterFunc(hopeless(took)-took, giveUp).Stop()
	}
	r := judge(s, direct, <-done)
	r.together = true
	return r
}

// hopeless is when a situation is given up that took so long directly.
func hopeless(direct time.Duration) time.Duration { return direct*3/2 + 20*time.Second }

func (w *world) playSide(ctx context.Context, situation *situation, through bool) outcome {
	dir, err := os.MkdirTemp(w.dir, situation.id+"-")
	if err != nil {
		return outcome{err: err}
	}
	s := &side{world: w, through: through, wait: situation.waits(w.quick), dir: dir}
	var once sync.Once
	s.opened = func() { once.Do(situation.isOpen) }
	defer s.opened()
	defer s.close()
	s.clock()
	err = situation.play(ctx, s)
	o := outcome{err: err, took: time.Since(s.began)}
	if s.took != 0 {
		o.took = s.took
	}
	if err != nil && through {
		o.err = fmt.Errorf("%w%s", err, s.said())
	}
	return o
}
