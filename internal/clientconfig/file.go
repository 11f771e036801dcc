package clientconfig

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// A File is what one client reads from one file. It does not change: [File.Set]
// and [File.Remove] return another.
type File struct {
	// Path is the file's name, not resolved: it may be a symbolic link.
	Path   string
	Client *Client
	// Places are the rows of the table that led here, one for each scope.
	Places []Place
	// Ignored is set for a file that the client does not read.
	Ignored bool
	// Untrusted is set if the client uses no servers here, since it was not told to trust
	// the folder.
	Untrusted bool
	// Servers are in the order of the file.
	Servers []*Server
	// Problems are those of the file first, then those of entries.
	Problems []Problem

	project string
	doc     *document // nil when the file could not be read
	onDisk  []byte    // what was read; nil when there was no file
	lines   *liner
}

// A Value is a text of an entry and where it stands.
type Value struct {
	Text string
	At   Position
	// Path is what [File.Set] takes to change it.
	Path Path
}

// A Pair is a named value.
type Pair struct {
	Name, Value Value
}

// A Server is an entry of a file, in one shape for all clients. Values that are
// not there are zero; a Value that is there and empty has a Path.
type Server struct {
	Client *Client
	File   string
	Scope  string
	Name   Value
	// At is where the entry begins and Path leads to all of it.
	At   Position
	Path Path

	Command Value
	Args    []Value
	Env     []Pair
	EnvFrom []Value // variables handed through by name
	EnvFile Value
	Cwd     Value
	URL     Value
	Headers []Pair
	// HeadersFrom are headers whose Value is the name of a variable.
	HeadersFrom []Pair
	// Type is as written; Transport is what it comes to.
	Type      Value
	Transport Transport
	// Disabled is what the entry says of itself, Off that a list elsewhere names it.
	Disabled, Off bool
	// Timeout is as written, in units of Client.Entry.TimeoutUnit.
	Timeout Value
	// Other are the members we have no field for, with their text if it is one.
	Other []Pair
}

// New returns a File that does not exist yet, at a place of a client. It is
// written when servers were added and a [Store] saves it.
func New(path string, c *Client, project string, place Place) *File {
	f := &File{Path: path, Client: c, Places: []Place{place}, project: project}
	f.parse(nil)
	f.Problems = nil // that it is empty is no news
	return f
}

// Open reads a file for a client. The places say where in it the servers stand;
// project is the folder that "{project}" in a key means. It does not fail: what
// is wrong is in Problems.
func Open(path string, c *Client, project string, places ...Place) *File {
	f := &File{Path: path, Client: c, Places: places, project: project}
	data, err := readFile(path)
	if err != nil {
		f.Problems = []Problem{{Kind: Unreadable, At: Position{path, 1, 1}, Detail: plainError(err)}}
		return f
	}
	f.onDisk = data
	f.parse(data)
	return f
}

// openIgnored reads a file the client does not read and returns nil unless
// servers stand in it.
func openIgnored(path string, c *Client, place Place) *File {
	f := Open(path, c, "", place)
	if len(f.Servers) == 0 {
		return nil
	}
	f.Ignored = true
	at := f.doc.root.find(place.Key)
	f.Problems = []Problem{{Kind: Misplaced, At: f.lines.at(at.start), Path: place.Key,
		Detail: fmt.Sprintf("%s does not read servers from this file; they belong in %s", c.Name, place.Instead)}}
	return f
}

// Bytes returns the content of the file as this File has it.
func (f *File) Bytes() []byte {
	if f.doc == nil {
		return nil
	}
	return append([]byte(nil), f.doc.data...)
}

// Mentions reports whether a name stands anywhere in the file, for one whose entries
// cannot be seen. Of a file that could not be read at all nobody knows.
func (f *File) Mentions(name string) bool {
	data := f.onDisk
	if f.doc != nil {
		data = f.doc.data
	}
	return data == nil || bytes.Contains(data, []byte(name))
}

// Server returns the last entry of that name, or nil.
func (f *File) Server(name string) *Server {
	for i := len(f.Servers) - 1; i >= 0; i-- {
		if f.Servers[i].Name.Text == name {
			return f.Servers[i]
		}
	}
	return nil
}

// ServerPath returns where an entry of that name stands, or would stand if it
// were added for the first place of the file. It is nil if there is no place.
func (f *File) ServerPath(name string) Path {
	if s := f.Server(name); s != nil {
		return s.Path
	}
	if len(f.Places) == 0 {
		return nil
	}
	key := f.key(f.Places[0])
	if !f.Places[0].List {
		return key.then(name)
	}
	n := 0
	if f.doc != nil {
		if l := f.doc.root.find(key); l != nil {
			n = len(l.elements)
		}
	}
	return key.then(fmt.Sprint(n))
}

// conflict is how git marks the place where it could not merge.
var conflict = regexp.MustCompile(`(?m)^<{7}( |\r?$)`)

// parse fills the file from bytes.
func (f *File) parse(data []byte) {
	f.lines = newLiner(f.Path, data)
	f.Servers, f.Problems = nil, nil
	place := Place{Format: JSON}
	if len(f.Places) > 0 {
		place = f.Places[0]
	}
	var err error
	f.doc, err = parse(place.Format, data)
	if err != nil {
		p := Problem{Kind: Unparsable, At: f.lines.at(0), Detail: err.Error()}
		if e, ok := err.(*syntaxError); ok {
			p.At = f.lines.at(e.offset)
		}
		if at := conflict.FindIndex(data); at != nil {
			p.At, p.Detail = f.lines.at(at[0]), "a merge conflict was left here"
		}
		f.Problems = append(f.Problems, p)
		return
	}
	if place.NoBOM && bytes.HasPrefix(data, []byte(byteOrderMark)) {
		f.Problems = append(f.Problems, Problem{Kind: ByteOrderMark, At: f.lines.at(0)})
	}
	f.noteSpots(place)
	for _, p := range f.Places {
		f.readPlace(p)
	}
}

// noteSpots turns what the parser noticed into problems, of each kind the first
// only: the next is found when that is mended.
func (f *File) noteSpots(place Place) {
	seen := make(map[Kind]bool)
	for _, s := range f.doc.spots {
		switch s.kind {
		case Comment:
			if !place.Strict || seen[s.kind] {
				continue
			}
		case TrailingComma:
			if !(place.Strict || place.NoTrailingComma) || seen[s.kind] {
				continue
			}
		}
		if s.kind == DuplicateKey && !f.concerns(s.path) {
			continue
		}
		seen[s.kind] = true
		f.Problems = append(f.Problems, Problem{Kind: s.kind, At: f.lines.at(s.offset), Path: s.path, Have: s.name})
	}
}

// concerns reports whether a path leads to the servers or below them. What else
// is in the file is not our business.
func (f *File) concerns(path Path) bool {
	for _, p := range f.Places {
		key := f.key(p)
		n := min(len(key), len(path))
		if strings.Join(key[:n], "\x00") == strings.Join(path[:n], "\x00") {
			return true
		}
	}
	return false
}

// key is the place's key with the project filled in.
func (f *File) key(p Place) Path {
	key := make(Path, len(p.Key))
	for i, name := range p.Key {
		if name == "{project}" {
			name = f.projectKey(key[:i])
		}
		key[i] = name
	}
	return key
}

// projectKey finds how the file spells the folder of the project.
func (f *File) projectKey(above Path) string {
	if f.doc != nil {
		if n := f.doc.root.find(above); n != nil {
			for _, m := range n.members {
				if m.name != "" && filepath.ToSlash(filepath.Clean(m.name)) == filepath.ToSlash(filepath.Clean(f.project)) {
					return m.name
				}
			}
		}
	}
	return f.project
}
