package clientconfig

import (
	"os"
	"path/filepath"
	"time"
)

// How much of the history is kept: every change that is younger than KeptFor, and
// of each file the last KeptChanges whatever their age. A copy holds the secrets of
// a file, which should not lie about for ever.
const (
	KeptFor     = 30 * 24 * time.Hour
	KeptChanges = 20
)

// forget deletes the changes beyond that. It is called after a write, under its
// lock, so nobody is in the middle of one; and what the runs of today have written
// is far too young. An undo is younger than what it took back, so it never goes
// first. Whatever fails is tried again after the next write.
func (s *Store) forget(now time.Time) {
	all, err := s.History()
	if err != nil {
		return
	}
	seen := make(map[string]int)
	for _, c := range all {
		if seen[c.Target]++; seen[c.Target] <= KeptChanges || now.Sub(c.Time) < KeptFor {
			continue
		}
		// Without its record, which goes first, a change is rubbish that the next sweep
		// takes away.
		dir := s.folder(c.ID)
		if os.Remove(filepath.Join(dir, "change.json")) != nil || syncDir(dir) != nil || s.at("forget "+c.ID) != nil {
			return
		}
		os.RemoveAll(dir)
	}
}
