package clientconfig

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Find reads every file that exists of the given clients, or of all when there
// are none, in the order of the table. A file that two clients share is
// returned once for each of them. In the home folder a project's file may be the
// user's own; it is that of the row which comes first in the table, which is the
// user's. Files a client ignores are included when
// servers stand in them, with a [Misplaced] problem.
func (s System) Find(clients ...*Client) []*File {
	if len(clients) == 0 {
		clients = Clients()
	}
	var files []*File
	for _, c := range clients {
		files = append(files, s.findFor(c)...)
	}
	return files
}

func (s System) findFor(c *Client) []*File {
	var files []*File
	byPath := make(map[string][]Place) // places in the same file are read together
	var order []string
	for _, p := range c.Files {
		for _, name := range s.existing(p) {
			if byPath[name] == nil {
				order = append(order, name)
			}
			if !slices.ContainsFunc(byPath[name], func(q Place) bool { return slices.Equal(q.Key, p.Key) }) {
				byPath[name] = append(byPath[name], p)
			}
		}
	}
	for _, name := range order {
		files = append(files, Open(name, c, s.Project, byPath[name]...))
	}
	for _, p := range c.Ignored {
		for _, name := range s.existing(p) {
			if byPath[name] != nil {
				continue
			}
			if f := openIgnored(name, c, p); f != nil {
				files = append(files, f)
			}
		}
	}
	for _, f := range files {
		f.Untrusted = c.Trust != nil && !s.trusted(c.Trust)
	}
	for _, p := range c.Off {
		for _, name := range s.existing(p) {
			s.switchOff(files, p, name)
		}
	}
	return files
}

// switchOff marks the servers that a list of the client names. A list that cannot
// be read names none.
func (s System) switchOff(files []*File, p Place, name string) {
	data, err := readFile(name)
	if err != nil {
		return
	}
	doc, err := parse(p.Format, data)
	if err != nil {
		return
	}
	list := doc.root.find((&File{project: s.Project, doc: doc}).key(p))
	if list == nil {
		return
	}
	for _, n := range list.elements {
		for _, f := range files {
			for _, server := range f.Servers {
				if n.kind == text && n.value == server.Name.Text && (p.Scope == "" || p.Scope == server.Scope) {
					server.Off = true
				}
			}
		}
	}
}

// existing returns the files a place stands for that are there. Something that
// is there and is no file, such as a pipe, is returned as well, since the client
// would stumble over it.
func (s System) existing(p Place) []string {
	pattern := s.Path(p)
	if pattern == "" {
		return nil
	}
	if p.Unless != "" {
		if _, err := os.Stat(s.expand(p.Unless)); err == nil {
			return nil
		}
	}
	if p.Upward {
		return existingUpward(s.Project, p.Path)
	}
	return glob(pattern)
}

func existingUpward(dir, name string) []string {
	var found []string
	for {
		if f := filepath.Join(dir, filepath.FromSlash(name)); exists(f) {
			found = append(found, f)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return found
		}
		dir = parent
	}
}

// glob is like filepath.Glob, but only the names that come from the table are
// patterns: a project may be called "[draft]".
func glob(pattern string) []string {
	dir, name := filepath.Split(pattern)
	if !strings.Contains(name, "*") {
		if exists(pattern) {
			return []string{pattern}
		}
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		if ok, _ := path.Match(name, e.Name()); ok {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
