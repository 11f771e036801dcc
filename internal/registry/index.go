package registry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The index is a file of lines: a header, then one line of JSON for each server.
// A lookup scans the bytes for a quoted key and decodes only the line it is in,
// so that a check pays milliseconds and not the decoding of everything.
const (
	indexName   = "registry.jsonl"
	indexFormat = 1
	maxIndex    = 64 << 20
)

// header is the first line of an index.
type header struct {
	Format int `json:"mcpmend_registry"`
	// Base is where it came from; another base starts anew.
	Base string `json:"base"`
	// Checked is when we asked, by our clock; Newest the latest change we were told
	// of, by the registry's.
	Checked time.Time `json:"checked,omitzero"`
	Newest  time.Time `json:"newest,omitzero"`
	// Size is how many bytes follow the header. An index that lost some would not
	// get them back by asking for what is new.
	Size int `json:"size"`
}

// row is one line.
type row struct {
	Keys []string `json:"keys"`
	Entry
}

type index struct {
	head header
	rows []byte // the lines after the header, each with its newline
}

// load returns the index, reading it the first time. A file that is missing, too
// large or not ours is an empty index: it can be made again.
func (r *Registry) load() *index {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.index == nil {
		r.index = &index{}
		if ix, err := readIndex(r.Dir, r.base()); err == nil {
			r.index = ix
		}
	}
	return r.index
}

func readIndex(dir, base string) (*index, error) {
	if dir == "" {
		return nil, os.ErrNotExist
	}
	path := filepath.Join(dir, indexName)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, errors.New("not an index")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIndex))
	if err != nil {
		return nil, err
	}
	first, rows, _ := bytes.Cut(data, []byte("\n"))
	ix := &index{rows: rows}
	if err := json.Unmarshal(first, &ix.head); err != nil {
		return nil, err
	}
	if ix.head.Format != indexFormat || ix.head.Base != base || ix.head.Size != len(rows) {
		return nil, errors.New("another index")
	}
	return ix, nil
}

// find returns the entry with this key. If there are several, one that is active
// wins, then the one that changed last.
func (ix *index) find(key string) (Entry, bool) {
	quoted := quote(key)
	var best Entry
	found := false
	for rest := ix.rows; ; {
		at := bytes.Index(rest, quoted)
		if at < 0 {
			return best, found
		}
		start := bytes.LastIndexByte(rest[:at], '\n') + 1
		line, after, _ := bytes.Cut(rest[start:], []byte("\n"))
		rest = after
		var r row
		if json.Unmarshal(line, &r) != nil || !slices.Contains(r.Keys, key) {
			continue
		}
		if !found || better(r.Entry, best) {
			best, found = r.Entry, true
		}
	}
}

func better(a, b Entry) bool {
	if (a.Status == "") != (b.Status == "") {
		return a.Status == ""
	}
	return a.Updated.After(b.Updated)
}

// template looks for a URL with variables that this address could come from.
func (ix *index) template(address string) (Entry, bool) {
	for line := range bytes.Lines(ix.rows) {
		// Keys come first in a line.
		keys, _, _ := bytes.Cut(line, []byte("]"))
		if !bytes.Contains(keys, []byte("{")) || !bytes.Contains(line, []byte("url:")) {
			continue
		}
		var r row
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		for _, m := range r.Remotes {
			if fits(m.URL, address) {
				return r.Entry, true
			}
		}
	}
	return Entry{}, false
}

func (ix *index) search(words []string) []Entry {
	var found []Entry
	for line := range bytes.Lines(ix.rows) {
		lower := bytes.ToLower(line)
		if slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(lower, []byte(w)) }) {
			continue
		}
		var r row
		if json.Unmarshal(line, &r) == nil && r.Status != Deleted && score(&r.Entry, words) > 0 {
			found = append(found, r.Entry)
		}
	}
	return found
}

// score says how well an entry fits the words, all of which must be somewhere; 0
// is not at all.
func score(e *Entry, words []string) int {
	name := strings.ToLower(e.Name + " " + e.Title)
	rest := strings.ToLower(e.Description)
	for _, k := range e.keys() {
		rest += " " + k
	}
	total := 0
	for _, w := range words {
		switch {
		case strings.HasSuffix(strings.ToLower(e.Name), "/"+w) || strings.EqualFold(e.Name, w):
			total += 4
		case strings.Contains(name, w):
			total += 2
		case strings.Contains(rest, w):
			total++
		default:
			return 0
		}
	}
	if e.Status == Deprecated {
		return 1
	}
	return total + 1
}

func samePackage(a, b Entry) bool {
	return slices.ContainsFunc(b.keys(), func(k string) bool { return slices.Contains(a.keys(), k) })
}

// quote is a key as it stands in a line.
func quote(key string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(key)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// write puts an index in the place of the old one, all of it or nothing.
func (ix *index) write(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, indexName+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriter(f)
	head, err := json.Marshal(ix.head)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", head)
	if _, err := w.Write(ix.rows); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, indexName))
}

// names maps the name of each server to its line.
func (ix *index) names() map[string][]byte {
	lines := make(map[string][]byte)
	for line := range bytes.Lines(ix.rows) {
		var r struct{ Name string }
		if json.Unmarshal(line, &r) == nil && r.Name != "" {
			lines[r.Name] = line
		}
	}
	return lines
}
