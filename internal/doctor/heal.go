package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// HealOptions say how far healing may go.
type HealOptions struct {
	// MaxAttempts is how many fixes are tried for one server; 0 is three.
	MaxAttempts int
	// Allow is asked before a fix of class ask is tried; nil refuses. Fixes of class
	// auto are not asked about.
	Allow func(*Case, Fix) bool
	// Later: what Allow refuses is shown to somebody later, so Person does not say
	// what it is.
	Later bool
	// Plan writes nothing and starts nothing new: it shows what would be tried.
	Plan bool
	// Hold tries everything and writes nothing: what would be written is in Drafts,
	// for [Doctor.Write].
	Hold bool
}

// A Healing is the record of what was tried for one case, and what came of it.
type Healing struct {
	Server string `json:"server,omitempty"`
	Client string `json:"client"`
	File   string `json:"file"`
	// Fixed: the server works now (or the file can be read now), because something was
	// changed, and that is written. A server that only needed more time works, and
	// Case says so.
	Fixed bool `json:"fixed"`
	// Planned: this is a plan and nothing was written. Unwritable says of a plan that
	// its changes could not be written; Person says why.
	Planned    bool      `json:"planned,omitempty"`
	Unwritable bool      `json:"-"`
	Attempts   []Attempt `json:"attempts"`
	// Entry is the entry as it is now, with secrets hidden.
	Entry any `json:"entry,omitempty"`
	// Diffs are the changes to files as unified diffs, with secrets hidden.
	Diffs []Diff `json:"diffs,omitempty"`
	// Drafts are the changes that Hold has left unwritten.
	Drafts []*Draft `json:"-"`
	// Changes are the writes that were made, each of which can be undone.
	Changes []clientconfig.Change `json:"-"`
	// Undo are the IDs of Changes.
	Undo []string `json:"undo,omitempty"`
	// Person is what a person has to do, in a sentence; "" if nothing.
	Person string `json:"person,omitempty"`
	// Reload is what makes the client see the change.
	Reload string `json:"reload,omitempty"`
	// Case is how it is now.
	Case *Case `json:"case"`
}

// An Attempt is one diagnosis, one fix, and what was seen after it.
type Attempt struct {
	Number    int       `json:"number"`
	Diagnosis Diagnosis `json:"diagnosis"`
	// Fix is what was tried; nil if there was nothing that may be tried.
	Fix *Fix `json:"fix,omitempty"`
	// Result is the state after it and Reached the last rung that held then. Empty
	// in a plan.
	Result  State `json:"result,omitempty"`
	Reached Stage `json:"reached,omitempty"`
	// Kept: the fix brought the server further and was kept.
	Kept bool `json:"kept"`
}

// Diagnosis is what an attempt was based on.
type Diagnosis struct {
	ID          string  `json:"id"`
	Kind        string  `json:"kind"`
	Explanation string  `json:"explanation"`
	Confidence  float64 `json:"confidence"`
}

// Diff is the change of one file.
type Diff struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// Heal tries to mend a case: it applies the best fix that may be applied to a copy
// of the file, looks again, keeps the fix if the server got further, and goes on
// until it works or nothing is left to try. Files are written at the end, and only
// with fixes that were kept.
func (d *Doctor) Heal(ctx context.Context, c *Case, o HealOptions) *Healing {
	h := &healer{HealOptions: o, store: d.Store, look: d.lookAgain, approve: d.approveMended}
	if h.MaxAttempts <= 0 {
		h.MaxAttempts = 3
	}
	return h.heal(ctx, c)
}

// lookAgain examines an entry of a file in memory, with more time than usual if
// wait is set.
func (d *Doctor) lookAgain(ctx context.Context, f *clientconfig.File, name string, wait time.Duration) *Case {
	patient := *d
	if wait > d.Timeout {
		patient.Timeout = wait
	}
	return patient.reexamine(ctx, f, name)
}

// approveMended extends a person's word from the command of a case, which was
// started, to the one that mending makes of it in f, if agreed says that the person
// has agreed to the change. It reports whether the new command may be started. While
// the person was asked, somebody may have written other scripts.
func (d *Doctor) approveMended(c *Case, f *clientconfig.File, agreed func() bool) bool {
	s := f.Server(c.Name)
	return s == nil || !d.needsApproval(s, f) || agreed() && !d.needsApproval(c.server, c.file) && d.approve(s, f) == nil
}

// A healer works on one case. What it knows of the world are two funcs, so that
// tests can tell it what would happen.
type healer struct {
	HealOptions
	store   *clientconfig.Store
	look    func(ctx context.Context, f *clientconfig.File, name string, wait time.Duration) *Case
	approve func(c *Case, f *clientconfig.File, agreed func() bool) bool
}

func (h *healer) heal(ctx context.Context, c *Case) *Healing {
	record := &Healing{Server: c.Name, Client: c.Client, File: c.At.File, Planned: h.Plan, Attempts: []Attempt{}, Case: c}
	if c.file == nil {
		record.Person = person(c, nil)
		return record
	}
	w := newWorkspace(c.file)
	if !bytes.Equal(w.current().Bytes(), c.file.Bytes()) && !h.Plan {
		// An earlier healing, or the client, has written the file since.
		if now := h.look(ctx, w.current(), c.Name, 0); now != nil {
			c = now
		}
	}
	if h.Plan {
		w = h.plan(c, w, record)
		record.Diffs = w.diffs()
		record.Person = person(c, nil)
		for _, path := range w.edited() {
			if err := w.files[path].MayReplace(); err != nil {
				record.Unwritable, record.Person = true, unwritten(path, err).Error()
			}
		}
		return record
	}
	was := c
	c, w, left := h.attempt(ctx, c, w, record)
	if stillRefused(c, w) {
		// Half of a change does harm: the client may have worked without.
		c, w = was, newWorkspace(was.file)
		for i := range record.Attempts {
			record.Attempts[i].Kept = false
		}
	}
	record.Case = c
	problem := h.finish(ctx, w, record)
	mended := slices.ContainsFunc(record.Attempts, func(a Attempt) bool { return a.Kept })
	changed := slices.ContainsFunc(record.Attempts, func(a Attempt) bool { return a.Kept && a.Fix.Changes() })
	record.Fixed = changed && problem == nil && !isBroken(c) && len(record.Drafts) == 0
	record.Entry = entryShown(w.current(), w.current().Server(c.Name), nil)
	switch {
	case problem != nil:
		record.Person = problem.Error()
	case isBroken(c) && left.needs > 0:
		record.Person = tooLate(c.file.Client, left.needs)
	case !mended || isBroken(c):
		record.Person = h.person(c, left.refused)
	}
	if len(record.Changes) > 0 {
		record.Reload = c.file.Client.Reload
	}
	return record
}

// stillRefused reports whether the client would refuse a file that was edited, or still ignore
// the entry that the edits are for.
func stillRefused(c *Case, w *workspace) bool {
	for _, path := range w.edited() {
		if w.files[path].Refused() != nil {
			return true
		}
	}
	return len(w.edited()) > 0 && c.Name != "" && isBroken(c) && rung(c.Cause.Stage) <= rung(AtShape)
}

func isBroken(c *Case) bool { return c.Cause != nil && c.Cause.Severity == Broken }

// leftover is what a person may have to know after healing: fixes that nobody
// agreed to, and the time that a server needs to start if it is more than its client
// gives it.
type leftover struct {
	refused []Fix
	needs   time.Duration
}

// attempt is the loop. It returns the case and the files as they are after the
// fixes that were kept.
func (h *healer) attempt(ctx context.Context, c *Case, w *workspace, record *Healing) (*Case, *workspace, leftover) {
	tried := make(map[string]bool)
	var left leftover
	for len(record.Attempts) < h.MaxAttempts && ctx.Err() == nil {
		finding, fix := next(c, tried)
		if fix == nil {
			break
		}
		tried[keyOf(finding, fix)] = true
		if left.needs > 0 && fix.wait > 0 {
			continue // still more time would show nothing new
		}
		changed, err := w.with(*fix)
		if err != nil {
			continue // the file is not what the finding was about any more
		}
		if !h.permits(c, fix, changed) {
			left.refused = append(left.refused, *fix)
			continue
		}
		if fix.clean != nil {
			if err := fix.clean(ctx); err != nil {
				continue
			}
		}
		after := h.look(ctx, changed.current(), c.Name, fix.wait)
		if after == nil {
			continue
		}
		kept := isBetter(c, finding, after)
		if kept && fix.wait > 0 && !fix.within && len(fix.Edits) == 0 {
			// It works with more time than its client gives it. Perhaps it was only the
			// first start that was slow.
			if again := h.look(ctx, changed.current(), c.Name, 0); again != nil {
				after, kept = again, isBetter(c, finding, again)
			}
			if !kept {
				left.needs = fix.wait
			}
		}
		record.Attempts = append(record.Attempts, Attempt{
			Number: len(record.Attempts) + 1, Diagnosis: diagnosisOf(finding), Fix: fix,
			Result: after.State, Reached: after.Reached, Kept: kept,
		})
		if kept {
			c, w = after, changed
		}
	}
	if len(record.Attempts) == 0 && c.Cause != nil {
		record.Attempts = append(record.Attempts, Attempt{Number: 1, Diagnosis: diagnosisOf(c.Cause), Result: c.State, Reached: c.Reached})
	}
	return c, w, left
}

// permits reports whether a fix may be tried. A person is asked once at the most, and
// only if it is a person's decision.
func (h *healer) permits(c *Case, fix *Fix, changed *workspace) bool {
	agreed := sync.OnceValue(func() bool { return h.Allow != nil && h.Allow(c, *fix) })
	switch {
	case fix.Class == Ask && !agreed():
		return false
	case h.Hold && fix.person && !agreed(): // nobody has asked for healing but a program
		return false
	case c.saw != nil && !h.approve(c, changed.current(), agreed):
		return false
	case fix.clean != nil && h.Hold: // what is removed cannot be held back
		return agreed()
	}
	return true
}

// plan notes for each finding the fix that would be tried first.
func (h *healer) plan(c *Case, w *workspace, record *Healing) *workspace {
	for _, finding := range findings(c) {
		for i := range finding.Fixes {
			fix := &finding.Fixes[i]
			refused := fix.Class == Ask && h.Allow != nil && !h.Allow(c, *fix)
			if fix.Class == Never || refused || len(record.Attempts) >= h.MaxAttempts {
				continue
			}
			changed, err := w.with(*fix)
			if err != nil {
				continue
			}
			w = changed
			record.Attempts = append(record.Attempts, Attempt{Number: len(record.Attempts) + 1, Diagnosis: diagnosisOf(finding), Fix: fix})
			break
		}
	}
	if len(record.Attempts) == 0 && c.Cause != nil {
		record.Attempts = append(record.Attempts, Attempt{Number: 1, Diagnosis: diagnosisOf(c.Cause)})
	}
	return w
}

// findings are those of a case, the cause first.
func findings(c *Case) []*Finding {
	var all []*Finding
	if c.Cause != nil {
		all = append(all, c.Cause)
	}
	for i := range c.Also {
		all = append(all, &c.Also[i])
	}
	return all
}

// next is the best fix that has not been tried.
func next(c *Case, tried map[string]bool) (*Finding, *Fix) {
	for _, f := range findings(c) {
		for i := range f.Fixes {
			if fix := &f.Fixes[i]; fix.Class != Never && !tried[keyOf(f, fix)] {
				return f, fix
			}
		}
	}
	return nil, nil
}

func keyOf(f *Finding, fix *Fix) string { return f.ID + "\x00" + fix.Name + "\x00" + fix.Does }

func diagnosisOf(f *Finding) Diagnosis {
	return Diagnosis{ID: f.ID, Kind: f.Kind, Explanation: f.Explanation, Confidence: f.Confidence}
}

// isBetter reports whether a fix is worth keeping: its finding is gone, and the
// server got further than before, or as far with less that is wrong.
func isBetter(before *Case, mended *Finding, after *Case) bool {
	for _, f := range findings(after) {
		if sameFinding(f, mended) {
			return false
		}
	}
	was, is := rung(before.Reached), rung(after.Reached)
	switch {
	case is > was, !isBroken(after) && isBroken(before):
		return true
	case is < was:
		return false
	case !isBroken(after): // a warning less
		return true
	case mended != before.Cause: // a warning less, and the cause is as it was
		return sameFinding(before.Cause, after.Cause)
	}
	// On the same rung. In the file, one thing less is wrong; a server that now misses
	// another variable has found the first.
	now := after.Cause
	return len(findings(after)) < len(findings(before)) && rung(now.Stage) <= rung(AtResolve) ||
		now.ID == mended.ID && now.pieces.Variable != "" && now.pieces.Variable != mended.pieces.Variable
}

// sameFinding compares what is wrong. A line may have moved, so a place in the file
// only counts for what was seen in the file and has not.
func sameFinding(a, b *Finding) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.ID != b.ID || a.pieces != b.pieces {
		return false
	}
	if a.problem != nil && b.problem != nil {
		return slices.Equal(a.problem.Path, b.problem.Path) && a.problem.Have == b.problem.Have
	}
	return true
}

// person says what somebody has to do after healing. What is shown later is not
// named here, and need not be mentioned unless there is another way.
func (h *healer) person(c *Case, refused []Fix) string {
	if !h.Later || len(refused) == 0 {
		return person(c, refused)
	}
	if other := person(c, nil); other != "" {
		return "agree to what is asked; or " + other
	}
	return ""
}

// person says what somebody has to do: agree to a change, or make one.
func person(c *Case, refused []Fix) string {
	var steps []string
	for _, fix := range refused {
		steps = append(steps, "agree to this change: "+fix.Does)
	}
	if c.Cause != nil {
		for _, fix := range c.Cause.Fixes {
			if fix.Class != Never {
				continue
			}
			step := fix.Does
			if fix.Run != "" {
				step += " (" + fix.Run + ")"
			}
			steps = append(steps, step)
			break
		}
	}
	return strings.Join(steps, "; or ")
}

// finish writes what was kept, or drafts it.
func (h *healer) finish(ctx context.Context, w *workspace, record *Healing) error {
	if !h.Hold {
		return h.write(ctx, w, record)
	}
	record.Diffs, record.Drafts = w.diffs(), w.drafts()
	record.Planned = len(record.Drafts) > 0
	return nil
}

// write saves what was kept, each file once. A file that the client has written in
// the meantime is read again and edited again, once.
func (h *healer) write(ctx context.Context, w *workspace, record *Healing) error {
	if len(w.edited()) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("nothing was written: %w", ctx.Err())
	}
	if h.store == nil {
		return errors.New("there is no place to keep the old file, so nothing was written")
	}
	for _, path := range w.edited() {
		change, err := h.store.Save(ctx, w.files[path])
		if errors.Is(err, clientconfig.ErrChanged) {
			if err = w.again(path); err == nil {
				change, err = h.store.Save(ctx, w.files[path])
			}
		}
		if errors.Is(err, clientconfig.ErrNoChange) {
			continue
		}
		if change.Done {
			record.Changes = append(record.Changes, change)
			record.Undo = append(record.Undo, change.ID)
			record.Diffs = append(record.Diffs, DiffOf(w.before[path], w.files[path]))
		}
		if err != nil {
			return unwritten(path, err)
		}
	}
	return nil
}

func unwritten(path string, err error) error {
	return fmt.Errorf("%s could not be written: %w", path, err)
}
