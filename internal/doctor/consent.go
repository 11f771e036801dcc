package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// Approvals remembers which commands of project files a person has agreed to run.
// An approval is bound to the hash of the file's name, command, arguments, working
// folder, names of variables and all their values that are not secret, and to the
// content of the scripts that it names in the project: another command is another
// approval.
//
// They are lines at the end of a file that only its owner can read or write; a
// file that others may write to is not believed. Any number of processes may use
// it at once.
type Approvals struct {
	// File is where they are kept. It is made when first needed.
	File string

	// What the file said when it last looked like info. A project may have thousands
	// of entries, and each is looked up and noted.
	mutex sync.Mutex
	info  fs.FileInfo
	lines map[string]approvalLine
}

// What a line of the file says of a hash.
const (
	wordShown    = "shown"
	wordApproved = "approved"
)

// shortHash is how much of a hash a person has to type. Approving by it is safe
// because the whole hash is looked up among those that were shown.
const shortHash = 12

// Approved reports whether a person has agreed to the command with this hash, which
// has to be whole.
func (a *Approvals) Approved(hash string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lines, err := a.read()
	return err == nil && len(hash) == hex.EncodedLen(sha256.Size) && lines[hash].word == wordApproved
}

// ErrNoHash: what was given to be approved cannot be a hash.
var ErrNoHash = errors.New("an approval takes the hash that was shown with the command, at least 12 characters of it")

// Approve remembers that a person has agreed. The hash may be cut to its first
// twelve characters if the command was shown before.
func (a *Approvals) Approve(hash string) error {
	hash = strings.ToLower(strings.TrimSpace(hash))
	if len(hash) < shortHash || strings.Trim(hash, "0123456789abcdef") != "" || len(hash) > hex.EncodedLen(sha256.Size) {
		return ErrNoHash
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lines, err := a.read()
	if err != nil {
		return err
	}
	if len(hash) < hex.EncodedLen(sha256.Size) {
		var whole []string
		for known := range lines {
			if strings.HasPrefix(known, hash) {
				whole = append(whole, known)
			}
		}
		switch len(whole) {
		case 0:
			return fmt.Errorf("no command with the hash %s was shown", hash)
		case 1:
			hash = whole[0]
		default:
			return fmt.Errorf("%d commands have a hash that begins with %s: type all of it", len(whole), hash)
		}
	}
	line := lines[hash] // with its scripts, if it was shown
	if line.word == wordApproved {
		return nil
	}
	line.word = wordApproved
	return a.append(hash, line)
}

// An approvalLine is what is known of a hash.
type approvalLine struct {
	word string
	// base is the hash without the content of scripts and marks stand for these, in
	// order to say later what has changed. There are none without scripts.
	base  string
	marks []string
}

// show remembers that a command waits for approval, so that the beginning of its
// hash is enough to approve it. Where that fails the whole hash still works.
func (a *Approvals) show(b bond) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lines, err := a.read()
	if err != nil || lines[b.hash].word != "" {
		return
	}
	line := approvalLine{word: wordShown, base: b.base}
	for _, s := range b.scripts {
		line.marks = append(line.marks, s.mark)
	}
	_ = a.append(b.hash, line)
}

// read returns what the file says of each hash. A line that was cut off says
// nothing. The caller holds the mutex, and does not keep the map.
func (a *Approvals) read() (map[string]approvalLine, error) {
	info, err := os.Lstat(a.File)
	if errors.Is(err, fs.ErrNotExist) {
		a.info = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !ownedByUs(info) || runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
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
		if len(words) != 3 && len(words) != 5 || !strings.HasSuffix(line, "\n") || len(words[1]) != hex.EncodedLen(sha256.Size) {
			continue
		}
		if a.lines[words[1]].word == wordApproved {
			continue
		}
		known := approvalLine{word: words[0]}
		if len(words) == 5 {
			known.base, known.marks = words[3], strings.Split(words[4], ",")
		}
		a.lines[words[1]] = known
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
	if len(line.marks) > 0 {
		text += " " + line.base + " " + strings.Join(line.marks, ",")
	}
	text += "\n"
	_, err = f.WriteString(text)
	if err == nil && line.word == wordApproved { // what was merely shown may be lost
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

// A bond is what an approval is bound to: one hash of it all, one without the content
// of scripts, and these scripts.
type bond struct {
	hash, base string
	scripts    []script
}

// fingerprint is the hash that an approval is bound to.
func (d *Doctor) fingerprint(s *clientconfig.Server, f *clientconfig.File) string {
	return d.bond(s, f).hash
}

// bond is what an approval of an entry is bound to. The folder counts as it is in the
// end: a file of the folder above holds for many projects, and the same relative
// path leads to another program in each.
func (d *Doctor) bond(s *clientconfig.Server, f *clientconfig.File) bond {
	var b bond
	what := struct {
		File, Command string
		Args          []string
		Env           []string
		From          []string
		EnvFile, Cwd  string
		URL           string
		Headers       []string
		Dir           string
		FileEnv       []string
		Scripts       []string `json:",omitempty"`
	}{File: s.File, Command: s.Command.Text, EnvFile: s.EnvFile.Text, Cwd: s.Cwd.Text, URL: s.URL.Text}
	if s.Command.Text != "" {
		x, as := d.expansion(s, f)
		what.Dir = d.folder(as, s, x)
		for _, pair := range x.envFile() {
			what.FileEnv = append(what.FileEnv, boundValue(pair[0], pair[1]))
		}
		b.scripts = d.scripts(s, x, what.Dir)
	}
	for _, a := range s.Args {
		what.Args = append(what.Args, a.Text)
	}
	for _, p := range s.Env {
		what.Env = append(what.Env, boundValue(p.Name.Text, p.Value.Text)+references(s, "env", p))
	}
	for _, v := range s.EnvFrom {
		what.From = append(what.From, v.Text)
	}
	for _, h := range s.Headers {
		what.Headers = append(what.Headers, h.Name.Text+references(s, "headers", h))
	}
	for _, h := range s.HeadersFrom {
		what.Headers = append(what.Headers, h.Name.Text+" from "+h.Value.Text)
	}
	slices.Sort(what.Env)
	slices.Sort(what.From)
	slices.Sort(what.Headers)
	sum := func() string {
		text, err := json.Marshal(what)
		if err != nil {
			panic(err) // texts and lists of texts
		}
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}
	b.base = sum()
	for _, script := range b.scripts {
		what.Scripts = append(what.Scripts, script.mark)
	}
	b.hash = sum()
	return b
}

// boundValue is as much of a variable as an approval depends on. A token may be
// renewed without asking again. Any other value is as good as an argument: it makes
// a program run other code, or send that token to another address.
func boundValue(name, value string) string {
	if secret.Name(name) && !steering().MatchString(name) {
		return name
	}
	return name + "=" + value
}

// references are the user's own variables that a value hands over.
func references(s *clientconfig.Server, part string, p clientconfig.Pair) string {
	out := ""
	if s.Client != nil {
		for _, r := range s.Client.References(part, p.Value.Text) {
			out += " " + r.Text
		}
	}
	return out
}

// steering are variables that make a program run other code, though some are
// called like secrets.
var steering = pattern(`(?i)^(PATH|PATHEXT|COMSPEC|SHELL|ENV|BASH_ENV|HOME|USERPROFILE|LD_.*|DYLD_.*|NODE_.*|NPM_.*|PYTHON.*|PIP_.*|UV_.*|RUBY.*|PERL.*|` +
	`JAVA_.*|JDK_.*|_JAVA_.*|CLASSPATH|GIT_.*|SSH_.*|DOCKER_.*|DENO_.*|BUN_.*|ELECTRON_.*|.*_PROXY|.*_PRELOAD|.*ASKPASS)$`)

// wouldRun is all that somebody agrees to who approves an entry, in one line: a
// variable can make a harmless command run something else. Words are quoted where
// it could not be seen otherwise where they end. changed are scripts that were
// approved with another content.
func wouldRun(s *clientconfig.Server, changed []string) string {
	words := argvOf(s)
	if s.URL.Text != "" {
		words = []string{secret.Scrub(s.URL.Text)}
	}
	var set, notes []string
	for _, p := range s.Env {
		set = append(set, p.Name.Text+"="+p.Value.Text)
	}
	for _, h := range s.Headers {
		notes = append(notes, "header "+secret.Args([]string{"--header", h.Name.Text + ": " + h.Value.Text})[1])
	}
	for _, h := range s.HeadersFrom {
		notes = append(notes, "header "+h.Name.Text+" from "+h.Value.Text)
	}
	for _, v := range s.EnvFrom {
		notes = append(notes, "your "+v.Text)
	}
	if s.EnvFile.Text != "" {
		notes = append(notes, "variables of "+s.EnvFile.Text)
	}
	if s.Cwd.Text != "" {
		notes = append(notes, "in "+s.Cwd.Text)
	}
	for _, name := range changed {
		notes = append(notes, name+" has changed since you approved it")
	}
	line := agreedLine(set, words)
	if len(notes) > 0 {
		line += " (" + strings.Join(quoted(notes, "  "), ", ") + ")"
	}
	return line
}

// agreeable are words with their secrets hidden, as far as these are no more than
// secrets: in TOKEN="$(curl …)" for a shell, or password=… for node -e, something
// would be run that nobody has seen. A word that is nothing but a secret stays
// hidden, and so does the value of an option that is named like one, and a variable
// that makes no program run other code.
func agreeable(words []string, variables bool) []string {
	shown := secret.Args(words)
	docker, ofDocker := dockerRun(words)
	for i, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch {
		case shown[i] == w, shown[i] == secret.Mark, ofDocker && i < docker.image:
		case strings.HasPrefix(w, "-") && value != "" && shown[i] == name+"="+secret.Mark:
		case variables && !steering().MatchString(name):
		default:
			shown[i] = unhide(w, shown[i])
		}
	}
	return shown
}

// agreedLine is a command with its variables, as somebody is asked about it.
func agreedLine(set, argv []string) string {
	return strings.Join(quoted(append(agreeable(set, true), agreeable(argv, false)...), " "), " ")
}

// Agreeable is a text that somebody is asked to agree to, with its secrets hidden as
// far as these are no code.
func Agreeable(text string) string { return unhide(text, secret.Scrub(text)) }

// unhide shows what is hidden of a word and could be code: no language does without
// one of these signs.
func unhide(word, shown string) string {
	pieces := strings.Split(shown, secret.Mark)
	rest, ok := strings.CutPrefix(word, pieces[0])
	out := pieces[0]
	for i, piece := range pieces[1:] {
		at := strings.Index(rest, piece)
		if i == len(pieces)-2 { // the last one ends the word
			at = len(rest) - len(piece)
			ok = ok && strings.HasSuffix(rest, piece)
		}
		if !ok || at < 0 {
			return word
		}
		hidden := secret.Mark
		if strings.ContainsAny(rest[:at], "()`;|&<>{}'\"") || strings.ContainsFunc(rest[:at], unicode.IsSpace) {
			hidden = rest[:at]
		}
		out, rest = out+hidden+piece, rest[at+len(piece):]
	}
	return out
}

// quoted quotes words that hold a gap, or something that cannot be seen.
func quoted(words []string, gap string) []string {
	hides := func(r rune) bool { return r == '"' || !unicode.IsPrint(r) }
	for i, w := range words {
		if w == "" || strings.Contains(w, gap) || strings.ContainsFunc(w, hides) {
			words[i] = strconv.Quote(w)
		}
	}
	return words
}

// needsApproval reports whether an entry may not be started before a person has
// agreed: it comes with a project, so somebody else may have written it. An address
// is no better than a command: it may be one that only this machine can reach, where
// a request alone does something.
func (d *Doctor) needsApproval(s *clientconfig.Server, f *clientconfig.File) bool {
	if !ofProject(s, f) {
		return false
	}
	if d.Approvals == nil {
		return true
	}
	b := d.bond(s, f)
	if d.Approvals.Approved(b.hash) {
		return false
	}
	d.Approvals.show(b)
	return true
}

// approve is for an entry that a person has agreed to in other words: it may be
// started from now on.
func (d *Doctor) approve(s *clientconfig.Server, f *clientconfig.File) error {
	switch {
	case !d.needsApproval(s, f):
		return nil
	case d.Approvals == nil:
		return errors.New("there is no place to remember what was approved")
	}
	return d.Approvals.Approve(d.fingerprint(s, f))
}

func ofProject(s *clientconfig.Server, f *clientconfig.File) bool {
	if s.Scope != "" {
		return s.Scope == "project"
	}
	return slices.ContainsFunc(f.Places, func(p clientconfig.Place) bool { return p.Scope == "project" })
}
