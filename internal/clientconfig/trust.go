package clientconfig

import (
	"path/filepath"
	"strings"
)

// Trust is how a client keeps the folders in which it uses servers: an object in a file of
// its own, from folders to a word.
type Trust struct {
	Path string // not expanded, as in a Place
	// Folder trusts a folder and what is below, Parent the folder above it, and Never is
	// a folder that is not trusted.
	Folder, Parent, Never string
	// Variable is one of the client's environment that decides, if it is true or false.
	Variable string
	// Unless is a file in which the value at Key says false: then all folders are trusted.
	Unless string
	Key    Path
	// How says what to do, for people.
	How string
}

// trusted reports whether the client uses servers in the project.
func (s System) trusted(t *Trust) bool {
	switch s.getenv(t.Variable) {
	case "true":
		return true
	case "false":
		return false
	}
	if n := s.value(t.Unless, t.Key); n != nil && n.kind == boolean && n.value == "false" {
		return true
	}
	// The longest rule counts.
	found, trusted := -1, false
	rules := s.value(t.Path, nil)
	if rules == nil || s.Project == "" {
		return false
	}
	project := realPath(s.Project)
	for _, m := range rules.members {
		folder := realPath(m.name)
		if m.value.value == t.Parent {
			folder = filepath.Dir(folder)
		}
		if len(m.name) > found && isIn(folder, project) {
			found, trusted = len(m.name), m.value.value != t.Never
		}
	}
	return trusted
}

// value is what stands at a key of a file that may not be there.
func (s System) value(path string, key Path) *node {
	data, err := readFile(s.expand(path))
	if err != nil {
		return nil
	}
	doc, err := parse(JSONC, data)
	if err != nil {
		return nil
	}
	return doc.root.find(key)
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// isIn reports whether a path is a folder or below it.
func isIn(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}
