package doctor

import (
	"context"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// HealOptions say how far healing may go.
type HealOptions struct {
	// MaxAttempts is how many fixes are tried for one server; 0 is three.
	MaxAttempts int
	// Allow is asked before a fix of class ask is tried; nil refuses. Fixes of class
	// auto are not asked about.
	Allow func(*Case, Fix) bool
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
	// Fixed: the server works now (or the file can be read now), and that is written.
	Fixed bool `json:"fixed"`
	// Planned: this is a plan and nothing was written.
	Planned  bool      `json:"planned,omitempty"`
	Attempts []Attempt `json:"attempts"`
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
	panic("not built yet")
}
