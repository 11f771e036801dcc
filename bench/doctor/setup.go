package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// A setup is one machine with something wrong on it, and what an honest doctor
// says and does about it. It is a txtar file: a head of "key: value" lines (see
// keys), "#" lines that say what it is about, and the files, below home/, project/
// and bin/. Those below want/ and want-yes/ are what has become of a file after
// "heal" and after "heal --yes"; a file that is not there stays as it is.
type setup struct {
	Name  string
	About []string

	// Who it is about. Server is "" for a file as a whole.
	Client, Scope, Server string
	// Causes are the findings one of which is the right one, such as
	// "resolve.command_not_found"; "*" as the stage is any from start on. None is
	// right for "none".
	Causes []string
	// Warns are findings that must be there, as a cause or beside it.
	Warns []string
	// States, Classes: any of them is right. Classes are of the best fix.
	States, Classes []string
	// Exits are the exit codes of check that are right.
	Exits []int
	// After and AfterYes are the states after "heal" and "heal --yes".
	After, AfterYes []string
	// Words must all be in what is said of it, for the cause to count as named; "|"
	// separates words of which one is enough.
	Words []string
	// Env is set for the programs under test. Timeout is check's.
	Env     []string
	Timeout string
	// Parts are what is made before the files: see world.go.
	Parts []part
	// Needs are programs and the like without which the set-up is void.
	Needs []string
	// Approve: the command of a project file is approved before it is judged.
	Approve bool
	// Quick set-ups are run with --quick. Slow ones are only checked then, for the reason
	// given, and otherwise healed beside the others: they mostly wait.
	Quick bool
	Slow  string
	// StandIn says what could not be had here and is imitated.
	StandIn string
	// Leave: nothing may be changed, whatever was agreed to.
	Leave bool
	// Alone: no other client can be shown this set-up, for the reason given.
	Alone string

	Files, Want, WantYes []txtar.File
}

// A part is something of a machine that is no plain file.
type part struct{ kind, rest string }

func (s *setup) healthy() bool { return slices.Contains(s.Causes, "none") && len(s.Warns) == 0 }

// auto reports whether a doctor mends it without asking.
func (s *setup) auto() bool { return len(s.After) > 0 }

// asks reports whether it is mended after a person agreed.
func (s *setup) asks() bool { return len(s.AfterYes) > 0 }

var partKinds = []string{"listen", "closed", "free", "open", "fifo", "folder", "link", "mode", "arm64", "run", "npm", "nvm", "pad"}

func parseSetup(name string, data []byte) (*setup, error) {
	a := txtar.Parse(data)
	s := &setup{Name: name}
	for line := range strings.Lines(string(a.Comment)) {
		line = strings.TrimSpace(line)
		if text, about := strings.CutPrefix(line, "#"); about || line == "" {
			if about {
				s.About = append(s.About, strings.TrimSpace(text))
			}
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("%s: no key in %q", name, line)
		}
		if err := s.set(key, strings.TrimSpace(value)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, f := range a.Files {
		if rest, ok := strings.CutPrefix(f.Name, "want/"); ok {
			s.Want = append(s.Want, txtar.File{Name: rest, Data: f.Data})
		} else if rest, ok := strings.CutPrefix(f.Name, "want-yes/"); ok {
			s.WantYes = append(s.WantYes, txtar.File{Name: rest, Data: f.Data})
		} else {
			s.Files = append(s.Files, f)
		}
	}
	return s, s.valid()
}

func (s *setup) set(key, value string) error {
	list := strings.Fields(strings.ReplaceAll(value, "|", " "))
	switch key {
	case "client":
		s.Client = value
	case "scope":
		s.Scope = value
	case "server":
		s.Server = value
	case "cause":
		s.Causes = list
	case "warn":
		s.Warns = append(s.Warns, value)
	case "state":
		s.States = list
	case "class":
		s.Classes = list
	case "after":
		s.After = list
	case "after-yes":
		s.AfterYes = list
	case "words":
		for w := range strings.SplitSeq(value, ",") {
			s.Words = append(s.Words, strings.TrimSpace(w))
		}
	case "env":
		s.Env = append(s.Env, value)
	case "timeout":
		s.Timeout = value
	case "needs":
		s.Needs = append(s.Needs, list...)
	case "approve":
		s.Approve = value == "yes"
	case "quick":
		s.Quick = value == "yes"
	case "leave":
		s.Leave = value == "yes"
	case "slow":
		s.Slow = value
	case "stand-in":
		s.StandIn = value
	case "alone":
		s.Alone = value
	case "exit":
		for _, n := range list {
			code, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			s.Exits = append(s.Exits, code)
		}
	default:
		if !slices.Contains(partKinds, key) {
			return fmt.Errorf("unknown key %q", key)
		}
		s.Parts = append(s.Parts, part{key, value})
	}
	return nil
}

// notBroken are the states in which nobody has to do anything.
var notBroken = []string{"healthy", "disabled", "pending", "unchecked", "shadowed", "in-use"}

func (s *setup) valid() error {
	fail := func(text string) error { return fmt.Errorf("%s: %s", s.Name, text) }
	if s.Client == "" || len(s.Causes)+len(s.Warns) == 0 || len(s.States) == 0 || len(s.About) == 0 {
		return fail("needs a line that says what it is, client, cause or warn, and state")
	}
	if len(s.Want) > 0 && !s.auto() || len(s.WantYes) > 0 && !s.asks() {
		return fail("a wanted file without the state wanted with it")
	}
	if s.Leave && (s.auto() || s.asks()) {
		return fail("must not be touched, and is wanted mended")
	}
	if len(s.Exits) == 0 {
		s.Exits = []int{1}
		for _, state := range s.States {
			switch state {
			case "dead", "unresponsive":
				s.Exits = append(s.Exits, 4)
			case "degraded": // it works, and only a warning says more
				s.Exits = append(s.Exits, 0)
			case "sign-in":
				s.Exits = append(s.Exits, 3)
			}
		}
		if !slices.ContainsFunc(s.States, func(state string) bool { return !slices.Contains(notBroken, state) }) {
			s.Exits = []int{0}
		}
	}
	for _, f := range slices.Concat(s.Files, s.Want, s.WantYes) {
		root, _, _ := strings.Cut(f.Name, "/")
		if !slices.Contains([]string{"home", "project", "bin", "outside"}, root) || path.Clean(f.Name) != f.Name {
			return fail("no place for " + f.Name)
		}
	}
	return nil
}

// loadSetups reads all set-ups, in the order of their names.
func loadSetups(files fs.FS) ([]*setup, error) {
	names, err := fs.Glob(files, "testdata/*.txtar")
	if err != nil {
		return nil, err
	}
	var all []*setup
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		s, err := parseSetup(strings.TrimSuffix(path.Base(name), ".txtar"), data)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
