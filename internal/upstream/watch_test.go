package upstream

import (
	"math/rand/v2"
	"testing"
	"time"
)

// busy makes up the life of a process that is at work, however slowly: at every
// moment it computes, or writes now and then, or has read its input and waits for
// somebody else, or is stopped for a while.
type busy struct {
	random *rand.Rand
	kind   int
	seen   look
	e      errand
}

func newBusy(seed uint64, now time.Time) *busy {
	b := &busy{random: rand.New(rand.NewPCG(seed, 1))}
	b.kind = b.random.IntN(4)
	b.seen = look{known: true}
	b.e = errand{waiting: 1 + b.random.IntN(20), oldest: now, heard: now}
	return b
}

func (b *busy) live(now time.Time, tick int) {
	b.seen.stopped = false
	switch b.kind {
	case 0: // a processor-bound tool: reads nothing, writes nothing
		b.seen.unread = b.random.IntN(70_000)
		b.seen.ticks += uint64(1 + b.random.IntN(50))
	case 1: // an asynchronous tool that waits for somebody else
		b.seen.unread = 0
	case 2: // blocks its event loop and reports progress now and then
		b.seen.unread = b.random.IntN(70_000)
		if now.Sub(b.e.heard) > 4*time.Second {
			b.e.heard = now
		}
	case 3: // is stopped for three seconds now and then, as a debugger does
		b.seen.unread = b.random.IntN(70_000)
		b.seen.stopped = tick%40 < 6
		if !b.seen.stopped {
			b.seen.ticks++
		}
	}
}

func TestABusyProcessIsNeverKilled(t *testing.T) {
	const lives, minutes = 10_000, 3
	start := time.Unix(1_700_000_000, 0)
	for seed := range uint64(lives) {
		b, p := newBusy(seed, start), pulse{}
		for tick := range int(minutes * time.Minute / lookEvery) {
			now := start.Add(time.Duration(tick) * lookEvery)
			b.live(now, tick)
			if p.judge(now, b.seen, b.e) == doomed {
				t.Fatalf("life %d of kind %d was ended after %v", seed, b.kind, now.Sub(start))
			}
		}
	}
}

func TestALifelessProcessIsFoundInTime(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for name, test := range map[string]struct {
		seen             look
		e                errand
		suspect, condemn time.Duration
	}{
		"stopped, nobody waits": {look{known: true, stopped: true}, errand{ours: true}, 0, 2 * time.Second},
		"stopped in a call":     {look{known: true, stopped: true}, errand{waiting: 1}, 0, 6 * time.Second},
		"silent, nobody waits":  {look{known: true, unread: 10}, errand{waiting: 1, ours: true}, 6 * time.Second, 16 * time.Second},
		"silent in a call":      {look{known: true, unread: 10}, errand{waiting: 1}, 6 * time.Second, 51 * time.Second},
	} {
		var p pulse
		var suspected, condemned time.Duration = -1, -1
		test.e.oldest, test.e.heard = start, start
		for tick := range 200 {
			now := start.Add(time.Duration(tick) * lookEvery)
			switch v := p.judge(now, test.seen, test.e); {
			case v >= suspicious && suspected < 0:
				suspected = now.Sub(start)
			case v == doomed && condemned < 0:
				condemned = now.Sub(start)
			}
		}
		if suspected < 0 || suspected > test.suspect || condemned < 0 || condemned > test.condemn {
			t.Errorf("%s: suspected after %v, killed after %v, want at most %v and %v", name, suspected, condemned, test.suspect, test.condemn)
		}
	}
}

func TestAHopelessServerIsStartedFewTimes(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for range 200 {
		var p pace
		starts := 0
		for now := start; now.Sub(start) < 5*time.Minute; now = now.Add(10 * time.Millisecond) {
			if p.allowed(now) == 0 {
				starts++
				p.up(now) // it answers the handshake, and then it dies
				p.down(now.Add(time.Millisecond), false)
			}
		}
		if starts > 8 {
			t.Fatalf("%d starts within five minutes, want at most 8", starts)
		}
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
