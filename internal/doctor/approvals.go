package doctor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Approvals remembers which commands of project files a person has agreed to run, by
// the hash of their [approvalKey].
//
// They are lines at the end of a file that only its owner can read or write; a
// file that others may write to is not believed. Any number of processes may use
// it at once.
type Approvals struct {
	// File is where they are kept. It is made when first needed, and so is a second one
	// beside it, with the ending ".key", for the secret that goes into every hash: a hash
	// stands for tokens and passwords, and nobody who sees it can try them out.
	File string

	// What the file said when it last looked like info. A project may have thousands
	// of entries, and each is looked up and noted.
	mutex sync.Mutex
	info  fs.FileInfo
	lines map[string]approvalLine
	// once is until when a command may be started that is asked about every time.
	once map[string]time.Time

	secret []byte // nil before it was read or made
	sums   fileSums
}

// What a line of the file says of a hash.
const (
	wordShown    = "shown"
	wordApproved = "approved"
	// wordFolder: a person trusts the folder, whatever changes in it. The hash is that of
	// a key without the files of the project.
	wordFolder = "folder"
	// wordUsed: it was approved for one time, and that is over.
	wordUsed = "used"
)

// onceLasts is how long a command that is asked about every time may be started again
// for the same answer: to heal is to start several times.
const onceLasts = 5 * time.Minute

// shortHash is how much of a hash a person has to type. Approving by it is safe
// because the whole hash is looked up among those that were shown.
const shortHash = 12

// allows reports whether what a key stands for may be started now.
func (a *Approvals) allows(k approvalKey) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lines, err := a.read()
	switch {
	case err != nil:
		return false
	case lines[k.base].word == wordFolder:
		return true
	case k.unbounded == "":
		return lines[k.hash].word == wordApproved
	case time.Now().Before(a.once[k.hash]):
		return true
	case lines[k.hash].word != wordApproved:
		return false
	}
	// From now on it is not approved any more, for anybody else.
	if a.append(k.hash, lineOf(wordUsed, k)) != nil {
		return false
	}
	if a.once == nil {
		a.once = make(map[string]time.Time)
	}
	a.once[k.hash] = time.Now().Add(onceLasts)
	return true
}

// ErrNoHash: what was given to be approved cannot be a hash.
var ErrNoHash = errors.New("an approval takes the hash that was shown with the command, at least 12 characters of it")

// Approve remembers that a person has agreed. The hash may be cut to its first
// twelve characters if the command was shown before.
func (a *Approvals) Approve(hash string) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	hash, line, err := a.find(hash)
	if err != nil || line.word == wordApproved {
		return err
	}
	line.word = wordApproved
	return a.append(hash, line)
}

// ApproveFolder remembers that a person has agreed to a command that was shown, and to
// whatever later becomes of the files of the project that it runs.
func (a *Approvals) ApproveFolder(hash string) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	hash, line, err := a.find(hash)
	switch {
	case err != nil:
		return err
	case line.base == "":
		return fmt.Errorf("no command with the hash %s was shown", hash)
	case a.lines[line.base].word == wordFolder:
		return nil
	}
	return a.append(line.base, approvalLine{word: wordFolder, entry: line.entry, base: line.base})
}

// find is a hash that may be cut, in full, and what is known of it. The caller holds
// the mutex.
func (a *Approvals) find(hash string) (string, approvalLine, error) {
	hash = strings.ToLower(strings.TrimSpace(hash))
	if len(hash) < shortHash || strings.Trim(hash, "0123456789abcdef") != "" || len(hash) > hex.EncodedLen(sha256.Size) {
		return "", approvalLine{}, ErrNoHash
	}
	lines, err := a.read()
	if err != nil {
		return "", approvalLine{}, err
	}
	if len(hash) == hex.EncodedLen(sha256.Size) {
		return hash, lines[hash], nil
	}
	var whole []string
	for known, line := range lines {
		if strings.HasPrefix(known, hash) && line.word != wordFolder {
			whole = append(whole, known)
		}
	}
	switch len(whole) {
	case 0:
		return "", approvalLine{}, fmt.Errorf("no command with the hash %s was shown", hash)
	case 1:
		return whole[0], lines[whole[0]], nil
	}
	return "", approvalLine{}, fmt.Errorf("%d commands have a hash that begins with %s: type all of it", len(whole), hash)
}

// An approvalLine is what is known of a hash.
type approvalLine struct {
	word string
	// entry and base are those of the key, and marks those of its parts, in order to say
	// later what has changed. They are missing for a hash that was never shown.
	entry, base string
	marks       []string
}

// lineOf is what is noted of a key.
func lineOf(word string, k approvalKey) approvalLine {
	line := approvalLine{word: word, entry: k.entry, base: k.base}
	for _, p := range k.parts {
		line.marks = append(line.marks, p.mark)
	}
	return line
}

// show remembers that a command waits for approval, so that the beginning of its
// hash is enough to approve it. Where that fails the whole hash still works.
func (a *Approvals) show(k approvalKey) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if lines, err := a.read(); err == nil && lines[k.hash].word == "" {
		_ = a.append(k.hash, lineOf(wordShown, k))
	}
}

// extend carries an approval on to a key that differs in no more than files which the
// approved server has made. Where that fails, a person is asked again.
func (a *Approvals) extend(before, after approvalKey) {
	if after.hash == before.hash || after.code != before.code || after.unbounded != "" {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if lines, err := a.read(); err == nil && lines[before.hash].word == wordApproved {
		_ = a.append(after.hash, lineOf(wordApproved, after))
	}
}

// changed are the parts of a key that are not as they were when it was approved; none
// if it never was.
func (a *Approvals) changed(k approvalKey) []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lines, err := a.read()
	if err != nil {
		return nil
	}
	approved, known := false, make(map[string]bool)
	for _, line := range lines {
		if line.word == wordApproved && line.entry == k.entry {
			approved = true
			for _, mark := range line.marks {
				known[mark] = true
			}
		}
	}
	if !approved {
		return nil
	}
	var all, changed []string
	for _, p := range k.parts {
		all = append(all, p.name)
		if !known[p.mark] {
			changed = append(changed, p.name)
		}
	}
	if changed == nil { // each was approved, and not together; or one of them is gone
		return all
	}
	return changed
}

// read returns what the file says of each hash. A line that was cut off says
// nothing. The caller holds the mutex, and does not keep the map.
func (a *Approvals) read() (map[string]approvalLine, error) {
	info, err := os.Lstat(a.File)
	if errors.Is(err, fs.ErrNotExist) {
		a.info, a.lines = nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !ours(info, 0o022) {
		return nil, fmt.Errorf("%s is not believed: others may write to it", a.File)
	}
	if a.info != nil && os.SameFile(a.info, info) && a.info.Size() == info.Size() && a.info.ModTime().Equal(info.ModTime()) {
		return a.lines, nil
	}
	text, err := os.ReadFile(a.File)
	if err != nil {
		return nil, err
	}
	a.info, a.lines = info, make(map[string]approvalLine)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 3 || len(words) > 6 || !strings.HasSuffix(line, "\n") || len(words[1]) != hex.EncodedLen(sha256.Size) {
			continue
		}
		known := approvalLine{word: words[0]}
		if len(words) > 4 {
			known.entry, known.base = words[3], words[4]
		}
		if len(words) > 5 {
			known.marks = strings.Split(words[5], ",")
		}
		a.lines[words[1]] = known // the last word counts
	}
	return a.lines, nil
}

// append writes a line at once, so that lines of several processes never mix. It
// begins with a line break, in case the one before was cut off by a crash. The caller
// has just read, under the same hold of the mutex.
func (a *Approvals) append(hash string, line approvalLine) error {
	if err := os.MkdirAll(filepath.Dir(a.File), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(a.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("\n%s %s %s", line.word, hash, time.Now().UTC().Format(time.RFC3339))
	if line.base != "" {
		text += " " + line.entry + " " + line.base
		if len(line.marks) > 0 {
			text += " " + strings.Join(line.marks, ",")
		}
	}
	text += "\n"
	_, err = f.WriteString(text)
	if err == nil && line.word != wordShown { // what was merely shown may be lost
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		a.appended(hash, line, len(text))
	}
	return err
}

// appended spares us reading all that we know and one line, if nobody else has
// written meanwhile.
func (a *Approvals) appended(hash string, line approvalLine, size int) {
	before := a.info
	a.info = nil
	if info, err := os.Lstat(a.File); err == nil && before != nil && os.SameFile(before, info) && info.Size() == before.Size()+int64(size) {
		a.info, a.lines[hash] = info, line
	}
}

// ours reports whether a file is a plain one of the user's own, on which others have
// none of these rights.
func ours(info fs.FileInfo, rights fs.FileMode) bool {
	return info.Mode().IsRegular() && ownedByUs(info) && (runtime.GOOS == "windows" || info.Mode().Perm()&rights == 0)
}

// keySize is that of the secret in every hash.
const keySize = 32

// key is the secret that goes into every hash. Where it cannot be kept it is made up
// for this process, so that what is approved now has to be approved again later.
func (a *Approvals) key() []byte {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.secret == nil {
		key, err := keptKey(a.File + ".key")
		if err != nil {
			key = newKey()
		}
		a.secret = key
	}
	return a.secret
}

func newKey() []byte {
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	return key
}

// keptKey reads a key, or makes it. Another process may be at it at the same time:
// the file gets its name when it is whole, and the first one wins.
func keptKey(file string) ([]byte, error) {
	if key, err := readKey(file); !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"-*") // mode 600
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(newKey()) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(file)
}

// readKey believes a key that nobody else can know.
func readKey(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !ours(info, 0o077) {
		return nil, fmt.Errorf("%s is not believed: others may read it", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("%s is damaged", file)
	}
	return key, nil
}
