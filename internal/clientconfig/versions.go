package clientconfig

import (
	"path/filepath"
	"reflect"
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

// touched names the servers whose entries are not as they were read.
func (f *File) touched() []string {
	was := &File{Path: f.Path, Client: f.Client, Places: f.Places, project: f.project}
	was.parse(f.onDisk)
	before, after := was.entries(), f.entries()
	names := []string{}
	for _, s := range slices.Concat(f.Servers, was.Servers) {
		name := s.Name.Text
		if !slices.Contains(names, name) && !reflect.DeepEqual(before[name], after[name]) {
			names = append(names, name)
		}
	}
	return names
}

// entries are what the servers of each name consist of: one may stand in a file once
// for every project.
func (f *File) entries() map[string][]any {
	all := make(map[string][]any)
	for _, s := range f.Servers {
		all[s.Name.Text] = append(all[s.Name.Text], f.Value(s.Path))
	}
	return all
}
