package oracle

import (
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
)

// episode is one operation, written by hand.
type episode struct {
	tool    string
	outcome driver.Outcome
	book    string // r: received, b: begun, c: committed, a: answered, !: struck, R: received by the next instance
}

func (e episode) facts(trust Trust, reach Reach) Facts {
	f := Facts{Trust: trust, Reach: reach}
	now, pid := time.Duration(10), 1
	for _, ch := range e.book {
		now += 10
		line := ledger.Line{At: now, Pid: pid, Op: "x.0.0", Tool: e.tool}
		switch ch {
		case 'r':
			line.Kind = ledger.Recv
		case 'R':
			pid++
			line.Pid, line.Kind = pid, ledger.Recv
		case 'b':
			line.Kind = ledger.Begin
		case 'c':
			line.Kind = ledger.Commit
		case 'a':
			line.Kind = ledger.Reply
		case '!':
			f.Strikes = append(f.Strikes, Strike{At: now, Pid: pid})
			continue
		}
		f.Book = append(f.Book, line)
	}
	op := &driver.Op{ID: "x.0.0", Tool: e.tool, Outcome: e.outcome, Invoked: 1, Answered: now + 10, Deadline: time.Second}
	if e.outcome == driver.None {
		op.Answered = 0
	}
	f.Ops = []*driver.Op{op}
	return f
}

func TestComparesWhatWasSaidWithWhatWasDone(t *testing.T) {
	for _, c := range []struct {
		tool    string
		outcome driver.Outcome
		book    string
		trust   Trust
		want    Verdict
	}{
		{ledger.Plain, driver.OK, "rbca", TrustNone, Correct},
		{ledger.Plain, driver.OK, "r!", TrustNone, Phantom},
		{ledger.Plain, driver.OK, "rb!", TrustNone, Phantom},
		{ledger.Plain, driver.Failed, "!", TrustNone, Clean},
		{ledger.Plain, driver.Failed, "r!", TrustNone, Clean},
		{ledger.Plain, driver.Failed, "rb!", TrustNone, Misreported},
		{ledger.Plain, driver.Failed, "rbc!", TrustNone, Misreported},
		{ledger.Plain, driver.Unknown, "rbc!", TrustNone, Honest},
		{ledger.Plain, driver.Unknown, "!", TrustNone, Honest},
		{ledger.Plain, driver.None, "rbc!", TrustNone, Hung},
		{ledger.Plain, driver.OK, "rbc!Rbca", TrustAll, Duplicate},
		{ledger.Destructive, driver.Unknown, "rbc!Rbc", TrustAll, Duplicate},
		{ledger.ReadOnly, driver.OK, "rbc!Rbca", TrustNone, Correct},
		{ledger.Idempotent, driver.OK, "rbc!Rbca", TrustNone, Correct},
		{ledger.Lying, driver.OK, "rbc!Rbca", TrustNone, Duplicate},
		{ledger.Lying, driver.OK, "rbc!Rbca", TrustReadOnly, Correct},
	} {
		s := Judge(episode{c.tool, c.outcome, c.book}.facts(c.trust, ByBook))
		if s.Verdicts[c.want] != 1 {
			t.Errorf("%s said %s, book %q, trust %s: got %v, want %s", c.tool, c.outcome, c.book, c.trust, s.Verdicts, c.want)
		}
	}
}

func TestKnowsWhatCouldHaveBeenHealed(t *testing.T) {
	for _, c := range []struct {
		tool             string
		outcome          driver.Outcome
		book             string
		trust            Trust
		reach            Reach
		healable, healed int
	}{
		// Nobody had read it: anyone may send it again.
		{ledger.Destructive, driver.OK, "!Rbca", TrustNone, ByBook, 1, 1},
		{ledger.Destructive, driver.Unknown, "!", TrustNone, ByBook, 1, 0},
		// It was read: only what may run twice, and only with trust.
		{ledger.Destructive, driver.Unknown, "rbc!", TrustAll, ByBook, 0, 0},
		{ledger.ReadOnly, driver.Unknown, "rbc!", TrustNone, ByBook, 0, 0},
		{ledger.ReadOnly, driver.Unknown, "rbc!", TrustReadOnly, ByBook, 1, 0},
		{ledger.Idempotent, driver.OK, "rbc!Rbca", TrustAll, ByBook, 1, 1},
		{ledger.Idempotent, driver.Unknown, "rbc!", TrustReadOnly, ByBook, 0, 0},
		// Struck twice: unread the first time, read the second.
		{ledger.Destructive, driver.Unknown, "!Rbc!", TrustNone, ByBook, 0, 0},
		// Read after the strike, by a server that lives on and cannot answer.
		{ledger.Destructive, driver.Unknown, "!rbc", TrustNone, ByBook, 0, 0},
		// Answered before the strike: nothing to heal.
		{ledger.ReadOnly, driver.OK, "rbca!", TrustAll, ByBook, 0, 0},
		{ledger.Plain, driver.Failed, "r!", TrustNone, Refused, 1, 0},
		{ledger.Idempotent, driver.Unknown, "rb!", TrustAll, Started, 0, 0},
		{ledger.Plain, driver.Failed, "!", TrustNone, Hopeless, 0, 0},
	} {
		s := Judge(episode{c.tool, c.outcome, c.book}.facts(c.trust, c.reach))
		if s.Healable != c.healable || s.Healed != c.healed {
			t.Errorf("%s said %s, book %q, trust %s, reach %d: healed %d of %d, want %d of %d",
				c.tool, c.outcome, c.book, c.trust, c.reach, s.Healed, s.Healable, c.healed, c.healable)
		}
	}
}

func TestAFaultOfAnotherCallIsNotAnExcuse(t *testing.T) {
	f := Facts{Alone: true, Reach: Silent, Trust: TrustNone, Strikes: []Strike{{At: 50, Op: "x.0.0"}}, Ops: []*driver.Op{
		{ID: "x.0.0", Tool: ledger.Plain, Outcome: driver.Unknown, Invoked: 1, Answered: 60},
		{ID: "x.0.1", Tool: ledger.Plain, Outcome: driver.Unknown, Invoked: 1, Answered: 60},
	}}
	if s := Judge(f); s.Blast != 1 || s.Faulted != 1 {
		t.Errorf("blast %d, faulted %d; want 1 and 1", s.Blast, s.Faulted)
	}
}

func TestAStrikeLastsUntilTheFirstGoodAnswer(t *testing.T) {
	f := Facts{Reach: Unsent, Trust: TrustNone, Strikes: []Strike{{At: 50}}, Ops: []*driver.Op{
		{ID: "x.0.0", Outcome: driver.OK, Invoked: 1, Answered: 40},       // before
		{ID: "x.0.1", Outcome: driver.Failed, Invoked: 60, Answered: 70},  // while it lasts
		{ID: "x.0.2", Outcome: driver.OK, Invoked: 80, Answered: 90},      // the one that ends it
		{ID: "x.0.3", Outcome: driver.Failed, Invoked: 95, Answered: 100}, // after
	}}
	if s := Judge(f); s.Faulted != 2 {
		t.Errorf("faulted %d, want 2", s.Faulted)
	}
}
