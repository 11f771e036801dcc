package upstream

import (
	"math/rand/v2"
	"testing"
	"time"
)

// busy makes up the life of a process that would still answer: at every moment it
// computes, moves bytes, writes now and then, has read its input and waits for
// somebody else, is held by a debugger, starts, or waits for us.
type busy struct {
	random *rand.Rand
	kind   int
	seen   procSample
	work   pendingWork
}

const busyKinds = 9

func newBusy(seed uint64, now time.Time) *busy {
	b := &busy{random: rand.New(rand.NewPCG(seed, 1)), kind: int(seed % busyKinds)}
	b.seen = procSample{known: true}
	b.work = pendingWork{heard: now}
	return b
}

func (b *busy) live(now time.Time, tick int) {
	b.seen.unread = b.random.IntN(70_000)
	switch b.kind {
	case 0: // a processor-bound tool: reads nothing, writes nothing
		b.seen.ticks += uint64(b.random.IntN(2))
	case 1: // an asynchronous tool that waits for somebody else
		b.seen.unread = 0
	case 2: // blocks its event loop and reports progress now and then
		if now.Sub(b.work.heard) > 4*time.Minute {
			b.work.heard = now
		}
	case 3: // is stopped for a while now and then
		b.seen.stopped = tick%600 < 500
		b.seen.ticks++
	case 4: // blocks its event loop in a call that it has read, for as long as it takes
		b.work.read = true
	case 5: // is held by a debugger
		b.seen.traced = true
	case 6: // waits for a slow reader
		b.work.heldBack = true
	case 7: // starts, and downloads without using the processor
		b.work.starting = true
	case 8: // copies a large file without using the processor much
		b.seen.moved += uint64(b.random.IntN(2))
	}
}

func TestAProcessThatWouldAnswerIsNeverReplaced(t *testing.T) {
	const lives, minutes = 900, 30
	start := time.Unix(1_700_000_000, 0)
	for seed := range uint64(lives) {
		b, p := newBusy(seed, start), liveness{}
		for tick := range int(minutes * time.Minute / lookEvery) {
			now := start.Add(time.Duration(tick) * lookEvery)
			b.live(now, tick)
			if p.judge(now, b.seen, b.work, defaultHungAfter) == hung {
				t.Fatalf("life %d of kind %d was ended after %v", seed, b.kind, now.Sub(start))
			}
		}
	}
}

func TestALifelessProcessIsShownSoonAndReplacedLate(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	never := time.Duration(-1)
	for name, test := range map[string]struct {
		seen            procSample
		work            pendingWork
		shown, replaced time.Duration // at the latest; replaced also at the earliest
	}{
		"stopped":                      {procSample{known: true, stopped: true}, pendingWork{}, 0, defaultHungAfter},
		"stopped in a call":            {procSample{known: true, stopped: true}, pendingWork{read: true}, 0, defaultHungAfter},
		"stopped at the start":         {procSample{known: true, stopped: true}, pendingWork{starting: true}, 0, defaultHungAfter},
		"leaves its input unread":      {procSample{known: true, unread: 10}, pendingWork{}, 2 * time.Second, defaultHungAfter},
		"the same, busy with a call":   {procSample{known: true, unread: 10}, pendingWork{read: true}, 2 * time.Second, never},
		"the same, held by a debugger": {procSample{known: true, unread: 10, traced: true}, pendingWork{}, never, never},
		"the same, held back by us":    {procSample{known: true, unread: 10}, pendingWork{heldBack: true}, never, never},
		"the same, at the start":       {procSample{known: true, unread: 10}, pendingWork{starting: true}, never, never},
		"has read everything":          {procSample{known: true}, pendingWork{read: true}, never, never},
	} {
		var p liveness
		shown, replaced := never, never
		test.work.heard = start
		for tick := range int(20 * time.Minute / lookEvery) {
			now := start.Add(time.Duration(tick) * lookEvery)
			v := p.judge(now, test.seen, test.work, defaultHungAfter)
			if v >= unresponsive && shown < 0 {
				shown = now.Sub(start)
			}
			if v == hung && replaced < 0 {
				replaced = now.Sub(start)
			}
		}
		if (shown < 0) != (test.shown < 0) || shown > test.shown || replaced != test.replaced {
			t.Errorf("%s: shown after %v, replaced after %v, want %v and %v", name, shown, replaced, test.shown, test.replaced)
		}
	}
}

func TestAServerThatFailsToStartIsStartedFewTimes(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for range 200 {
		var p pace
		starts := 0
		for now := start; now.Sub(start) < 5*time.Minute; now = now.Add(10 * time.Millisecond) {
			if p.allowed(now) == 0 {
				starts++
				p.down(now.Add(time.Millisecond), false)
			}
		}
		if starts > 8 {
			t.Fatalf("%d starts within five minutes, want at most 8", starts)
		}
	}
}

func TestCrashesInCallsPauseNobody(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var p pace
	for range 100 {
		p.up(now)
		now = now.Add(time.Millisecond)
		p.ended(now)
		if wait := p.allowed(now); wait != 0 || p.parked {
			t.Fatalf("has to wait %v, parked %v", wait, p.parked)
		}
	}
	if !p.troubled(now) {
		t.Error("nobody is told that it ends again and again")
	}
}

func TestAnInstanceThatOnlyEndsIsReplacedMoreAndMoreSlowly(t *testing.T) {
	var r restarts
	if wait := r.pause(false); wait != 0 {
		t.Errorf("the first restart waits %v", wait)
	}
	total := time.Duration(0)
	for range 1000 {
		wait := r.pause(false)
		if wait > longestRest {
			t.Fatalf("waits %v", wait)
		}
		total += wait
	}
	if total < time.Hour {
		t.Errorf("1000 restarts take %v", total)
	}
	if wait := r.pause(true); wait != 0 {
		t.Errorf("after one that worked it waits %v", wait)
	}
}

func TestTheFirstRestartAfterAQuietTimeIsImmediate(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var p pace
	p.up(now)
	now = now.Add(2 * time.Minute)
	p.down(now, false)
	if wait := p.allowed(now); wait != 0 {
		t.Errorf("has to wait %v", wait)
	}
}

func TestWhatSomebodyHasToMendIsTriedRarelyAndAfterAKick(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var p pace
	p.down(now, true)
	if wait := p.allowed(now); !p.parked || wait < 30*time.Second {
		t.Errorf("parked %v, next in %v", p.parked, wait)
	}
	p.kick(now)
	if wait := p.allowed(now); wait != 0 {
		t.Errorf("after a kick it still has to wait %v", wait)
	}
}
