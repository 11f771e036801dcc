package clientconfig

import (
	"os"
	"path/filepath"
)

// After returns what a change wrote; nil if it took the file away.
func (s *Store) After(id string) ([]byte, error) {
	c, err := s.change(id)
	if err != nil || c.Removed {
		return nil, err
	}
	return os.ReadFile(filepath.Join(s.folder(id), "after"))
}
