// Package oracle compares what callers were told with what the ledger holds.
// It sees nothing of the system under test but its answers, and it alone
// decides what counts as right.
package oracle

import (
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
)

// Verdict on one operation.
type Verdict string

const (
	Correct     Verdict = "correct"     // said to have run, ran once
	Clean       Verdict = "clean"       // said not to have run, did not
	Honest      Verdict = "honest"      // said to be unknown
	Phantom     Verdict = "phantom"     // said to have run, did not
	Misreported Verdict = "misreported" // said not to have run, ran
	Duplicate   Verdict = "duplicate"   // ran twice and must not
	Hung        Verdict = "hung"        // no answer by the deadline and a second
)

// Verdicts in the order in which reports show them, the good ones first.
var Verdicts = []Verdict{Correct, Clean, Honest, Phantom, Misreported, Duplicate, Hung}

// Trust is how far a system may believe annotations.
type Trust string

const (
	TrustNone     Trust = "none"
	TrustReadOnly Trust = "read-only"
	TrustAll      Trust = "all"
)

// mayRepeat reports whether a system with this trust is allowed to run the
// tool twice when it does not know whether it ran once.
func (t Trust) mayRepeat(tool string) bool {
	switch tool {
	case ledger.ReadOnly, ledger.Lying:
		return t == TrustReadOnly || t == TrustAll
	case ledger.Idempotent:
		return t == TrustAll
	}
	return false
}

// Reach is how far the operation that a fault is aimed at had got, as far as
// a system in the middle is able to know. It decides whether the operation
// could have been healed.
type Reach int

const (
	// ByBook: the strike ends the process; the book tells who had been read.
	ByBook Reach = iota
	// Unsent and Refused operations may always be sent again.
	Unsent
	Refused
	// Silent and Partial ones only when the tool may run twice.
	Silent
	Partial
	// Started ones only when the tool reads.
	Started
	// Hopeless: nothing can heal this, now or later.
	Hopeless
	// Harmless: the fault must not be felt at all; whatever is not correct was lost.
	Harmless
)

// Strike is one fault that really happened.
type Strike struct {
	At   time.Duration
	Pid  int    // the process struck, 0 when the fault was on the wire
	Op   string // the operation aimed at, "" when it was aimed at none
	What string
}

// Facts is all that is known of one episode.
type Facts struct {
	Ops     []*driver.Op
	Book    []ledger.Line
	Strikes []Strike
	Reach   Reach
	Trust   Trust
	// Alone: the fault concerns the operations it names and no other.
	Alone bool
}

// Score is the outcome of one or many episodes.
type Score struct {
	Verdicts map[Verdict]int `json:"verdicts"`
	Ops      int             `json:"ops"`
	Faulted  int             `json:"faulted"` // in flight when a fault struck
	// Permitted repeats are of tools that truly read or are idempotent; Lied
	// ones are of a tool that lies to a system told to believe it.
	Permitted int `json:"permitted_repeats"`
	Lied      int `json:"lied_repeats"`
	// Healable operations could have been saved, Healed ones were.
	Healable int `json:"healable"`
	Healed   int `json:"healed"`
	// Exposed operations met a fault that must not be felt, Unharmed ones did not feel it.
	Exposed  int `json:"exposed"`
	Unharmed int `json:"unharmed"`
	// Frames that reached the server for these operations.
	Frames    int `json:"frames"`
	CrossTalk int `json:"cross_talk"`
	Blast     int `json:"blast"` // operations that failed though the fault was another's
	Leaked    int `json:"leaked"`
	// Unsafe counts arguments that the server saw or the caller was offered, and
	// that neither the caller had written nor a harmless correction explains;
	// Secrets counts places where a secret came to light.
	Unsafe   int `json:"unsafe"`
	Secrets  int `json:"secrets"`
	Starts   int `json:"starts"`
	Strikes  int `json:"strikes"`
	Episodes int `json:"episodes"`
	// Detection and recovery, one value per strike that shows them.
	TTD []time.Duration `json:"-"`
	TTR []time.Duration `json:"-"`
	// Latest is the longest time by which an answer overran its deadline;
	// negative when none did.
	Latest time.Duration `json:"-"`
	// Missed lists what the scenario asked for beyond the verdicts and did not get.
	Missed map[string]int `json:"missed,omitempty"`
	// Void says why this score proves nothing.
	Void string `json:"void,omitempty"`
	// Bad holds a few of the operations that must not have happened.
	Bad []string `json:"bad,omitempty"`
}

// Judge scores one episode.
func Judge(f Facts) *Score {
	s := &Score{Verdicts: map[Verdict]int{}, Ops: len(f.Ops), Strikes: len(f.Strikes), Episodes: 1, Missed: map[string]int{}}
	h := readHistory(f.Book)
	over := f.over()
	s.Starts = ledger.Count(f.Book, ledger.Start)
	for _, op := range f.Ops {
		e := h.ops[op.ID]
		if e == nil {
			e = never
		}
		v := s.verdict(op, e, f.Trust)
		s.Verdicts[v]++
		s.Frames += len(e.received)
		if op.Foreign {
			s.CrossTalk++
		}
		if v == Phantom || v == Misreported || v == Duplicate || v == Hung || op.Foreign {
			s.bad(string(v) + ": " + op.Describe())
		}
		if op.Answered > 0 {
			s.Latest = max(s.Latest, op.Answered-op.Invoked-op.Deadline)
		}
		s.heal(f, over, op, e, v)
	}
	s.times(f, h)
	return s
}

// CountUnsafe enters an unsafe correction, CountSecret a secret that was told.
func (s *Score) CountUnsafe(what string) { s.Unsafe++; s.bad("unsafe: " + what) }
func (s *Score) CountSecret(what string) { s.Secrets++; s.bad("secret: " + what) }

func (s *Score) bad(text string) {
	if len(s.Bad) < 5 {
		s.Bad = append(s.Bad, text)
	}
}

// history is the book, by operation.
type history struct {
	ops    map[string]*trace
	starts []ledger.Line
}

type trace struct {
	received, replied, refused []ledger.Line
	begun, committed           int
}

func readHistory(book []ledger.Line) history {
	h := history{ops: map[string]*trace{}}
	for _, l := range book {
		if l.Kind == ledger.Start {
			h.starts = append(h.starts, l)
		}
		t := h.ops[l.Op]
		if t == nil {
			t = &trace{}
			h.ops[l.Op] = t
		}
		switch l.Kind {
		case ledger.Recv:
			t.received = append(t.received, l)
		case ledger.Begin:
			t.begun++
		case ledger.Commit:
			t.committed++
		case ledger.Reply:
			t.replied = append(t.replied, l)
		case ledger.Refused:
			t.refused = append(t.refused, l)
		}
	}
	return h
}

var never = &trace{}

func (s *Score) verdict(op *driver.Op, t *trace, trust Trust) Verdict {
	ran := t.committed
	if ran > 1 {
		switch {
		case op.Tool == ledger.ReadOnly || op.Tool == ledger.Idempotent:
			s.Permitted += ran - 1
		case trust.mayRepeat(op.Tool):
			s.Lied += ran - 1
		default:
			return Duplicate
		}
	}
	switch op.Outcome {
	case driver.OK:
		if ran == 0 {
			return Phantom
		}
		return Correct
	case driver.Failed:
		// An effect that was begun and interrupted is not "not executed" either.
		if ran > 0 || t.begun > 0 {
			return Misreported
		}
		return Clean
	case driver.Unknown:
		return Honest
	}
	return Hung
}

// over finds for each strike when it was over: at the first good answer to an
// operation that was asked for after it. Without one it never was.
func (f Facts) over() []time.Duration {
	end := make([]time.Duration, len(f.Strikes))
	for i, k := range f.Strikes {
		for _, op := range f.Ops {
			if op.Invoked > k.At && op.Outcome == driver.OK {
				end[i] = earliest(end[i], op.Answered)
			}
		}
	}
	return end
}

// heal decides whether op was hit, could have been saved, and was. A strike
// hits the operations that are under way and those that begin before it is over.
func (s *Score) heal(f Facts, over []time.Duration, op *driver.Op, t *trace, v Verdict) {
	hit, healable := false, true
	for i, k := range f.Strikes {
		named := k.Op != "" && k.Op != "-"
		present := op.Answered == 0 || op.Answered >= k.At
		if op.Invoked > k.At {
			present = over[i] == 0 || op.Invoked < over[i]
		}
		switch {
		case named && k.Op == op.ID:
		case named && k.Pid == 0, f.Alone && named, !present:
			continue
		}
		hit = true
		// Saved from one strike and lost to the next, it was not to be saved.
		healable = healable && mayHeal(f, op, t, k)
	}
	if !hit {
		if f.Alone && v != Correct && !op.Cancelled {
			s.Blast++
		}
		return
	}
	s.Faulted++
	if op.Cancelled || !healable {
		return
	}
	if f.Reach == Harmless {
		s.Exposed++
		if v == Correct {
			s.Unharmed++
		}
		return
	}
	s.Healable++
	if v == Correct {
		s.Healed++
	}
}

func mayHeal(f Facts, op *driver.Op, t *trace, k Strike) bool {
	switch f.Reach {
	case Unsent, Refused, Harmless:
		return true
	case Silent, Partial:
		return f.Trust.mayRepeat(op.Tool)
	case Started:
		return f.Trust.mayRepeat(op.Tool) && op.Tool != ledger.Idempotent
	case Hopeless:
		return false
	}
	for _, l := range t.received {
		if l.At <= k.At || l.Pid == k.Pid {
			// Read by the one that was struck, who may live on a while. If it was
			// answered before, there was nothing to heal.
			for _, r := range t.replied {
				if r.At <= k.At {
					return false
				}
			}
			return f.Trust.mayRepeat(op.Tool)
		}
	}
	return true // never read
}

// times reads detection and recovery off the journal: a strike was noticed when
// the first caller was told or the next instance came up, and repaired when the
// first operation that began its life in the server after it was answered well.
func (s *Score) times(f Facts, h history) {
	for _, k := range f.Strikes {
		if k.Pid == 0 {
			continue
		}
		var noticed, repaired time.Duration
		for _, l := range h.starts {
			if l.At > k.At {
				noticed = earliest(noticed, l.At)
			}
		}
		for _, op := range f.Ops {
			if op.Answered < k.At {
				continue
			}
			if op.Outcome != driver.OK && op.Invoked <= k.At {
				noticed = earliest(noticed, op.Answered)
			}
			if t := h.ops[op.ID]; op.Outcome == driver.OK && t != nil && len(t.received) > 0 {
				if last := t.received[len(t.received)-1]; last.At > k.At && last.Pid != k.Pid {
					repaired = earliest(repaired, op.Answered)
				}
			}
		}
		if noticed > 0 {
			s.TTD = append(s.TTD, noticed-k.At)
		}
		if repaired > 0 {
			s.TTR = append(s.TTR, repaired-k.At)
		}
	}
}

func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// Add merges another score into s.
func (s *Score) Add(o *Score) {
	for v, n := range o.Verdicts {
		s.Verdicts[v] += n
	}
	s.Ops += o.Ops
	s.Faulted += o.Faulted
	s.Permitted += o.Permitted
	s.Lied += o.Lied
	s.Healable += o.Healable
	s.Healed += o.Healed
	s.Exposed += o.Exposed
	s.Unharmed += o.Unharmed
	s.Frames += o.Frames
	s.CrossTalk += o.CrossTalk
	s.Blast += o.Blast
	s.Leaked += o.Leaked
	s.Unsafe += o.Unsafe
	s.Secrets += o.Secrets
	s.Starts += o.Starts
	s.Strikes += o.Strikes
	s.Episodes += o.Episodes
	s.TTD = append(s.TTD, o.TTD...)
	s.TTR = append(s.TTR, o.TTR...)
	s.Latest = max(s.Latest, o.Latest)
	for m, n := range o.Missed {
		s.Missed[m] += n
	}
	for _, b := range o.Bad {
		s.bad(b)
	}
	if s.Void == "" {
		s.Void = o.Void
	}
}

// NewScore is an empty score to add to.
func NewScore() *Score { return &Score{Verdicts: map[Verdict]int{}, Missed: map[string]int{}} }

// Zeros are the figures that must be zero, by name.
func (s *Score) Zeros() map[string]int {
	z := map[string]int{}
	for _, v := range []Verdict{Phantom, Misreported, Duplicate, Hung} {
		if n := s.Verdicts[v]; n > 0 {
			z[string(v)] = n
		}
	}
	if s.CrossTalk > 0 {
		z["cross-talk"] = s.CrossTalk
	}
	if s.Leaked > 0 {
		z["leaked processes"] = s.Leaked
	}
	if s.Unsafe > 0 {
		z["unsafe corrections"] = s.Unsafe
	}
	if s.Secrets > 0 {
		z["secrets told"] = s.Secrets
	}
	return z
}
