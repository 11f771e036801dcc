package clientconfig

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Reasons not to write. The file is then as it was.
var (
	// ErrChanged: the file no longer holds the bytes we read. Read it again.
	ErrChanged = errors.New("the file has changed in the meantime")
	// ErrRefused: it is not a file we may replace.
	ErrRefused = errors.New("refusing to write")
	// ErrNoChange: there is nothing to write.
	ErrNoChange = errors.New("nothing to change")
)

// A Store writes files of other programs and keeps what was in them. All
// methods may be called by several goroutines and processes at once.
type Store struct {
	// Dir is our own folder. It is made when first needed; what is in it is
	// readable by its owner alone, since configurations hold secrets.
	Dir string

	// Step is called before each step of a write; an error stops it there. It is for
	// tests, which want to know what a write leaves behind that does not end.
	Step func(string) error
}

// A Change is a write that has been made, and can be undone.
type Change struct {
	ID   string
	Time time.Time
	// Path is the file as the client names it and Target what was written, which
	// differs if Path is a symbolic link.
	Path, Target string
	// Within is the folder of the project that the file belongs to, "" for one of the
	// user's own: no link of the project leads a write out of it.
	Within string `json:",omitempty"`
	// Client is the ID of the client whose file it is.
	Client string
	// Servers are the names of those whose entries it changed, none if it was about the
	// file as a whole. It is nil for a change that was recorded before there were names.
	Servers []string
	// Created is set if there was no file before, Removed if there is none now.
	Created, Removed bool `json:",omitempty"`
	// Undoes is the ID of the change that this one took back, or "".
	Undoes string `json:",omitempty"`
	// Done is false for a write that was interrupted before it took effect.
	Done bool `json:"-"`

	Format        Format
	Key           Path
	Before, After string // SHA-256 of the content
}

// Save writes a changed file. Either all of it is written or nothing; the mode
// and the owner stay, and a symbolic link stays one. What was there before is
// kept under the ID of the returned Change. A Change that is Done beside an error
// has been made, and a power cut might still lose it.
//
// It returns [ErrChanged] if the file does not hold what the File was read from:
// some clients rewrite theirs all the time.
func (s *Store) Save(ctx context.Context, f *File) (Change, error) {
	if f.doc == nil || slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Kind == Unparsable || p.Kind == Unreadable }) {
		return Change{}, fmt.Errorf("%w: %s could not be read", ErrRefused, f.Path)
	}
	if p := f.Refused(); p != nil && f.before().Refused() == nil {
		// Whatever made it so: the client works now and would not any more.
		return Change{}, fmt.Errorf("%w: %s would refuse the whole file (%s)", ErrRefused, f.Client.Name, p)
	}
	c := Change{Path: f.Path, Within: f.within(), Client: f.Client.ID, Servers: f.touched(), Created: f.onDisk == nil}
	if len(f.Places) > 0 {
		c.Format, c.Key = f.Places[0].Format, f.key(f.Places[0])
	}
	return s.write(ctx, c, f.onDisk, f.doc.data)
}

// before is the file as it was read.
func (f *File) before() *File {
	g := &File{Path: f.Path, Client: f.Client, Places: f.Places, Ignored: f.Ignored, Untrusted: f.Untrusted, project: f.project, onDisk: f.onDisk}
	if g.onDisk != nil {
		g.parse(g.onDisk)
	}
	return g
}

// Restore brings back what was there before a change, and returns that as a
// change of its own. If the file was written to since, only the values are
// brought back that the change had touched, or ErrChanged is returned if those
// are different now.
func (s *Store) Restore(ctx context.Context, id string) (Change, error) {
	old, err := s.change(id)
	if err != nil {
		return Change{}, err
	}
	before, err := s.Before(id)
	if err != nil {
		return Change{}, err
	}
	c := Change{Path: old.Path, Within: old.Within, Client: old.Client, Servers: old.Servers, Format: old.Format, Key: old.Key, Undoes: id, Created: old.Removed, Removed: old.Created}
	now, err := readFile(old.Target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = nil
	case err != nil:
		return Change{}, err
	}
	switch hash(now) {
	case old.Before:
		return Change{}, fmt.Errorf("%w: %s is as it was before %s", ErrNoChange, old.Path, id)
	case old.After:
		return s.write(ctx, c, now, before)
	}
	f, err := s.undo(old, before)
	if err != nil {
		return Change{}, err
	}
	c.Created, c.Removed = false, false
	return s.write(ctx, c, f.onDisk, f.doc.data)
}

// undo takes a change out of a file that has changed in other places since.
func (s *Store) undo(old Change, before []byte) (*File, error) {
	changed := fmt.Errorf("%w: %s, after %s", ErrChanged, old.Path, old.ID)
	client := ByID(old.Client)
	after, err := readFile(filepath.Join(s.folder(old.ID), "after"))
	if err != nil || client == nil || old.Created || old.Removed || len(old.Key) == 0 {
		return nil, changed
	}
	was, err := parse(old.Format, before)
	if err != nil {
		return nil, changed
	}
	became, err := parse(old.Format, after)
	if err != nil {
		return nil, changed
	}
	f := Open(old.Target, client, "", Place{Format: old.Format, Key: old.Key})
	for _, path := range differences(was.root, became.root, nil) {
		if f.doc == nil || !sameMeaning(f.doc.root.find(path), became.root.find(path)) {
			return nil, changed
		}
		if n := was.root.find(path); n != nil {
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

// Before returns what was in the file before a change; nil if there was none.
func (s *Store) Before(id string) ([]byte, error) {
	c, err := s.change(id)
	if err != nil || c.Created {
		return nil, err
	}
	return readFile(filepath.Join(s.folder(id), "before"))
}

// History returns all changes, the newest first.
func (s *Store) History() ([]Change, error) {
	entries, err := os.ReadDir(s.folder(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Change
	for _, e := range entries {
		if c, err := s.change(e.Name()); err == nil {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return b.Time.Compare(a.Time) })
	return all, nil
}

// change reads the record of a change. One without a record was interrupted
// before anything was written.
func (s *Store) change(id string) (Change, error) {
	if id == "" || strings.ContainsAny(id, `/\.`) {
		return Change{}, fmt.Errorf("there is no change %q", id)
	}
	data, err := readFile(filepath.Join(s.folder(id), "change.json"))
	if err != nil {
		return Change{}, fmt.Errorf("there is no change %q", id)
	}
	var c Change
	if err := json.Unmarshal(data, &c); err != nil {
		return Change{}, fmt.Errorf("the record of change %q is damaged", id)
	}
	if c.Done = exists(filepath.Join(s.folder(id), "done")); !c.Done {
		now, err := readFile(c.Target)
		c.Done = err == nil && hash(now) == c.After
	}
	return c, nil
}

func (s *Store) folder(id string) string { return filepath.Join(s.Dir, "backups", id) }

func (s *Store) at(step string) error {
	if s.Step == nil {
		return nil
	}
	return s.Step(step)
}

// write does all of it, in an order in which every moment is a good one to die:
// the backup is safe before the file is touched, and the file is replaced by one
// rename.
func (s *Store) write(ctx context.Context, c Change, before, after []byte) (_ Change, err error) {
	if !c.Created && !c.Removed && bytes.Equal(before, after) {
		return Change{}, fmt.Errorf("%w in %s", ErrNoChange, c.Path)
	}
	if len(after) > maxSize {
		return Change{}, fmt.Errorf("%w %s: %w", ErrRefused, c.Path, errTooLarge)
	}
	if err := s.makeDir(); err != nil {
		return Change{}, err
	}
	unlock, err := lock(ctx, filepath.Join(s.Dir, "lock"))
	if err != nil {
		return Change{}, fmt.Errorf("waiting for another writer: %w", err)
	}
	defer unlock()
	if err := staysWithin(c.Within, c.Path); err != nil {
		return Change{}, err
	}
	if c.Target, err = resolve(c.Path, c.Created); err != nil {
		return Change{}, err
	}
	s.sweep(c.Target)
	if err := s.at("compare"); err != nil {
		return Change{}, err
	}
	info, err := unchanged(c.Target, before, c.Created)
	if err != nil {
		return Change{}, err
	}
	c.Time, c.Before, c.After = time.Now().UTC(), hash(before), hash(after)
	if c.ID, err = s.backup(c, before, after); err != nil {
		return Change{}, fmt.Errorf("keeping a copy of %s: %w", c.Path, err)
	}
	c.Done, err = s.replace(c, info, before, after)
	if !c.Done {
		os.RemoveAll(s.folder(c.ID)) // it was not needed
		return Change{}, err
	}
	if err != nil {
		return c, err
	}
	if err := s.at("mark"); err != nil {
		return c, err
	}
	// That the record lacks its mark is found out from the file itself.
	_ = writeSynced(filepath.Join(s.folder(c.ID), "done"), nil)
	s.forget(c.Time)
	return c, nil
}

// replace puts the new content in place of the old. It is done as soon as the
// name stands for the new content, even if there is an error after that.
func (s *Store) replace(c Change, info fs.FileInfo, before, after []byte) (done bool, err error) {
	dir := filepath.Dir(c.Target)
	if c.Removed {
		if _, err := unchanged(c.Target, before, false); err != nil {
			return false, err
		}
		if err := s.at("remove"); err != nil {
			return false, err
		}
		if err := os.Remove(c.Target); err != nil {
			return false, err
		}
		return true, syncDir(dir)
	}
	if err := s.at("write beside"); err != nil {
		return false, err
	}
	temp, err := writeBeside(c.Target, info, after)
	if err != nil {
		return false, err
	}
	err = s.at("compare again")
	if err == nil {
		_, err = unchanged(c.Target, before, c.Created)
	}
	if err == nil {
		err = s.at("rename")
	}
	if err == nil {
		err = rename(temp, c.Target)
	}
	if err != nil {
		os.Remove(temp)
		return false, err
	}
	if err := s.at("sync the folder"); err != nil {
		return true, err
	}
	return true, syncDir(dir)
}

// resolve follows symbolic links to the file that is to be replaced. The folder
// of a new file is made.
func resolve(path string, create bool) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		return target, nil
	}
	if !errors.Is(err, fs.ErrNotExist) || !create {
		return "", fmt.Errorf("%w %s: %s", ErrRefused, path, plainError(err))
	}
	if exists(path) {
		return "", fmt.Errorf("%w %s: a link to a file that does not exist", ErrRefused, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// within is the folder of the project that a file belongs to, "" for one of the user's
// own.
func (f *File) within() string {
	if len(f.Places) == 0 {
		return ""
	}
	p := f.Places[0]
	if p.Scope != "project" || strings.HasPrefix(p.Path, "~") || strings.HasPrefix(p.Path, "$") || filepath.IsAbs(p.Path) {
		return ""
	}
	dir := f.Path
	for range strings.Split(p.Path, "/") {
		dir = filepath.Dir(dir)
	}
	return dir
}

// LeavesProject is where a file of a project leads to if a symbolic link takes it out of
// the project, and "" if none does. Nothing is written there: whoever wrote the project
// could name any file of the user's.
func (f *File) LeavesProject() string { return outOf(f.within(), f.Path) }

// outOf is where a path leads to if that is outside of a folder; "" if it is not, or
// there is no folder. What is not there yet is judged by the folder that it would be
// made in.
func outOf(within, path string) string {
	if within == "" {
		return ""
	}
	root, err := filepath.EvalSymlinks(within)
	if err != nil {
		return ""
	}
	for there := path; ; there = filepath.Dir(there) {
		target, err := filepath.EvalSymlinks(there)
		if err != nil && exists(there) { // a link to nowhere
			target, _ = os.Readlink(there)
			err = nil
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(there), target)
			}
		}
		if err == nil {
			rel, err := filepath.Rel(root, target)
			if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
				return target
			}
			return ""
		}
		if filepath.Dir(there) == there {
			return ""
		}
	}
}

func staysWithin(within, path string) error {
	if target := outOf(within, path); target != "" {
		return fmt.Errorf("%w %s: a symbolic link leads to %s, outside of the project", ErrRefused, path, target)
	}
	return nil
}

// unchanged makes sure that a file still holds what we read, and may be replaced.
func unchanged(target string, before []byte, created bool) (fs.FileInfo, error) {
	if created {
		if exists(target) {
			return nil, fmt.Errorf("%w: %s is there now", ErrChanged, target)
		}
		return nil, nil
	}
	info, err := replaceable(target)
	if err != nil {
		return nil, err
	}
	now, err := readFile(target)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(now, before) {
		return nil, fmt.Errorf("%w: %s", ErrChanged, target)
	}
	return info, nil
}

// MayReplace says why [Store.Save] would not write a file as it is now, nil if it
// would. It is for plans; Save looks again.
func (f *File) MayReplace() error {
	if err := staysWithin(f.within(), f.Path); err != nil {
		return err
	}
	if f.onDisk == nil {
		return nil // a new one
	}
	target, err := resolve(f.Path, false)
	if err == nil {
		_, err = replaceable(target)
	}
	return err
}

// replaceable makes sure that there is a file which may be replaced by another.
func replaceable(target string) (fs.FileInfo, error) {
	info, err := os.Lstat(target)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s", ErrChanged, target, plainError(err))
	}
	if err := checkFile(info); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrRefused, target, err)
	}
	if info.Mode()&0o200 == 0 {
		return nil, fmt.Errorf("%w %s: it is read-only", ErrRefused, target)
	}
	// A rename would leave the other name with the old content. Writing into the file
	// would not, and a crash could then leave half of it.
	if names(target, info) > 1 {
		return nil, fmt.Errorf("%w %s: a hard link gives it a second name, which would keep the old content; make that a symbolic link, or edit the file by hand",
			ErrRefused, target)
	}
	return info, nil
}

// tempName begins the names of unfinished files, so that those of a writer that
// died can be told from files of the user.
func tempName(target string) string { return "." + filepath.Base(target) + ".mcpmend-" }

// writeBeside writes the content into a file next to the target, with the mode
// and owner of the target, and waits until the disk has it.
func writeBeside(target string, info fs.FileInfo, data []byte) (_ string, err error) {
	f, err := os.CreateTemp(filepath.Dir(target), tempName(target)+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	if info != nil {
		if err := keepOwner(f, info); err != nil {
			return "", fmt.Errorf("%w %s: its owner could not be kept: %w", ErrRefused, target, err)
		}
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return "", err
		}
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// sweep removes what a writer that was killed has left behind. We hold the lock,
// so nobody is still at it.
func (s *Store) sweep(target string) {
	if entries, err := os.ReadDir(filepath.Dir(target)); err == nil {
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), tempName(target)) && e.Type().IsRegular() {
				os.Remove(filepath.Join(filepath.Dir(target), e.Name()))
			}
		}
	}
	if entries, err := os.ReadDir(s.folder("")); err == nil {
		for _, e := range entries {
			if dir := s.folder(e.Name()); !exists(filepath.Join(dir, "change.json")) {
				os.RemoveAll(dir)
			}
		}
	}
}

func (s *Store) makeDir() error {
	if s.Dir == "" {
		return errors.New("a store needs a folder")
	}
	if err := os.MkdirAll(s.folder(""), 0o700); err != nil {
		return err
	}
	return os.Chmod(s.folder(""), 0o700) // also if somebody made it before us
}

// backup keeps the content before and after a change. The record is written
// last: without it the rest is rubbish, with it all is there.
func (s *Store) backup(c Change, before, after []byte) (string, error) {
	var err error
	for range 8 { // a collision among a few thousand is rare, eight are impossible
		c.ID = newID()
		if err = os.Mkdir(s.folder(c.ID), 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	dir := s.folder(c.ID)
	record, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	for _, file := range []struct {
		name string
		data []byte
		skip bool
	}{
		{"before", before, c.Created},
		{"after", after, c.Removed},
		{"change.json", append(record, '\n'), false},
	} {
		err := s.at("back up " + file.name)
		if err == nil && !file.skip {
			err = writeSynced(filepath.Join(dir, file.name), file.data)
		}
		if err != nil {
			os.RemoveAll(dir)
			return "", err
		}
	}
	if err := errors.Join(syncDir(dir), syncDir(s.folder(""))); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return c.ID, nil
}

// writeSynced makes a file that its owner alone can read.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// newID returns six characters that a person can type.
func newID() string {
	var b [3]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// hash names a content; "" stands for no file.
func hash(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// lockPatience is how long a writer waits for another, which takes milliseconds.
const lockPatience = 5 * time.Second

// lock waits until it has the lock alone; the returned func gives it back. The
// operating system does if we die.
func lock(ctx context.Context, path string) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		unlock, err := tryLock(path)
		if err == nil || !errors.Is(err, errLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

var errLocked = errors.New("somebody else has the lock")
