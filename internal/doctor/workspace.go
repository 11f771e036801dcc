package doctor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// A workspace holds the files of a healing in memory, with the fixes that were kept
// so far. It does not change: trying a fix makes another one.
type workspace struct {
	// at is the file that has the entry now.
	at string
	// before are the files as they were read and files as they are now, by path;
	// order is that of their first edit, in which they are written.
	before, files map[string]*clientconfig.File
	order         []string
	edits         []Edit
}

// newWorkspace begins with what is on disk now. A file with edits that nobody has
// saved yet is taken as it is.
func newWorkspace(f *clientconfig.File) *workspace {
	before := f
	if !f.Edited() {
		f = f.Again()
		before = f
	}
	return &workspace{
		at: f.Path, before: map[string]*clientconfig.File{f.Path: before}, files: map[string]*clientconfig.File{f.Path: f},
	}
}

func (w *workspace) current() *clientconfig.File { return w.files[w.at] }

// with returns a workspace in which a fix was applied.
func (w *workspace) with(fix Fix) (*workspace, error) {
	n := &workspace{at: w.at, before: maps.Clone(w.before), files: maps.Clone(w.files), order: slices.Clone(w.order), edits: slices.Clone(w.edits)}
	for _, e := range fix.Edits {
		f := n.files[e.File]
		if f == nil {
			if e.open == nil {
				return nil, fmt.Errorf("%s is not open", e.File)
			}
			f = e.open()
			n.before[e.File] = f
			n.at = e.File // the entry moves there
		}
		f, err := e.apply(f)
		if err != nil {
			return nil, err
		}
		n.files[e.File] = f
		n.edits = append(n.edits, e)
		if !slices.Contains(n.order, e.File) {
			n.order = append(n.order, e.File)
		}
	}
	return n, nil
}

// edited are the files to be written, in order: what moves is added before it is
// removed elsewhere.
func (w *workspace) edited() []string { return w.order }

func (w *workspace) diffs() []Diff {
	var all []Diff
	for _, path := range w.order {
		all = append(all, DiffOf(w.before[path], w.files[path]))
	}
	return all
}

// drafts are the same changes, for somebody else to write.
func (w *workspace) drafts() []*Draft {
	var all []*Draft
	for _, path := range w.order {
		if draft := NewDraft(w.before[path], w.files[path], nil); draft != nil {
			all = append(all, draft)
		}
	}
	return all
}

// again reads a file once more and applies to it what was kept.
func (w *workspace) again(path string) error {
	f := w.files[path].Again()
	w.before[path] = f
	for _, e := range w.edits {
		if e.File != path {
			continue
		}
		var err error
		if f, err = e.apply(f); err != nil {
			return err
		}
	}
	w.files[path] = f
	return nil
}
