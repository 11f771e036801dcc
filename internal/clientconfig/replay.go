package clientconfig

import "fmt"

// Replay makes the change from one File to another in f, which is the same file at
// a later time. It returns [ErrChanged] if the values that the change touches are
// not what they were, or if it is not one of values: a comment that was removed
// leaves no trace to go by.
func (f *File) Replay(before, after *File) (*File, error) {
	changed := fmt.Errorf("%w: %s", ErrChanged, f.Path)
	if f.doc == nil || before.doc == nil || after.doc == nil {
		return nil, changed
	}
	paths := differences(before.doc.root, after.doc.root, nil)
	if len(paths) == 0 {
		return nil, changed
	}
	for _, path := range paths {
		if !sameMeaning(f.doc.root.find(path), before.doc.root.find(path)) {
			return nil, changed
		}
		var err error
		if n := after.doc.root.find(path); n != nil {
			f, err = f.Set(path, n.meaning())
		} else {
			f, err = f.Remove(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", changed, err)
		}
	}
	return f, nil
}
