package clientconfig

import (
	"path/filepath"
	"slices"
)

// Versions returns the file as it was before a change and as the change left it.
// Each is nil if there was no file then. Their Path is that of the changed file.
func (s *Store) Versions(id string) (before, after *File, err error) {
	c, err := s.change(id)
	if err != nil {
		return nil, nil, err
	}
	client := ByID(c.Client)
	if client == nil {
		client = &Client{ID: c.Client} // one we have forgotten
	}
	place := Place{Format: c.Format, Key: c.Key}
	for _, p := range client.Files {
		if p.Format == c.Format && slices.Equal(p.Key, c.Key) {
			place = p
		}
	}
	version := func(name string) *File {
		f := Open(filepath.Join(s.folder(id), name), client, "", place)
		f.Path = c.Path
		return f
	}
	if !c.Created {
		before = version("before")
	}
	if !c.Removed {
		after = version("after")
	}
	return before, after, nil
}
