package doctor

import (
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// NeedsPerson reports whether nobody but a person may agree to the fix, and no
// program in their name: something is started or dialled that the entry did not name, or
// that the client has not known of, or a variable goes where it has not been. A fix of
// class auto that needs a person may still be made when a person has asked for healing.
func (f Fix) NeedsPerson() bool { return f.person }

// startsNew finds that out from what a fix makes of the entry, so that no fix can be
// forgotten: whatever would be run has to stand in the file as it is now.
func (d *Doctor) startsNew(c *Case, fix Fix) bool {
	if len(fix.Edits) == 0 {
		return false
	}
	w := newWorkspace(c.file)
	before := w.current()
	w, err := w.with(fix)
	if err != nil {
		return true
	}
	after := w.current()
	if after.Path != before.Path { // to where the client reads it for the first time
		return true
	}
	text := knownText(before)
	for _, s := range after.Servers {
		if c.Name != "" && s.Name.Text != c.Name {
			continue
		}
		if was := before.Server(s.Name.Text); d.runsNew(text, was, s) || handsOn(was, s) {
			return true
		}
	}
	return false
}

// readsNew finds out whether a fix makes the client read something to start or to dial
// where it has found nothing: under a key that it does not read, or in words of another
// client. Somebody may have kept it there so that it does not run. Other entries than the
// case's own count, too, since a fix may put a whole file right.
func (d *Doctor) readsNew(c *Case, fix Fix) bool {
	if len(fix.Edits) == 0 {
		return false
	}
	w := newWorkspace(c.file)
	before := w.current()
	w, err := w.with(fix)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(w.current().Servers, func(s *clientconfig.Server) bool {
		return namesSomething(s) && !isMeantFor(before, before.Server(s.Name.Text))
	})
}

// namesSomething: there is something to start or to dial.
func namesSomething(s *clientconfig.Server) bool { return s.Command.Text != "" || s.URL.Text != "" }

// isMeantFor: the entry stands where the client looks and in its own words, so that whoever
// wrote it wanted the client to start it. A slip in writing, such as a comma too many or
// arguments in one text, does not change that.
func isMeantFor(f *clientconfig.File, s *clientconfig.Server) bool {
	return s != nil && namesSomething(s) && !slices.ContainsFunc(f.Problems, func(p clientconfig.Problem) bool {
		switch p.Kind {
		case clientconfig.ArgsAsString, clientconfig.CommandHoldsArgs, clientconfig.DuplicateKey:
			return false
		case clientconfig.WrongName: // which beside a command costs a part alone
			return false
		}
		return p.Server != "" && p.Server == s.Name.Text
	})
}

// knownText is all that stands in a file, as it is written and as it is read.
func knownText(f *clientconfig.File) string {
	all := []string{string(f.Bytes())}
	f.EachText(func(_ clientconfig.Path, text string) { all = append(all, text) })
	return sameHost(strings.Join(all, "\n"))
}

// sameHost gives all names of this machine the same spelling.
func sameHost(text string) string {
	return strings.NewReplacer("127.0.0.1", "localhost", "[::1]", "localhost").Replace(text)
}

// runsNew: a word of the entry could be a program, a script, a package or an address,
// and does not stand in the text. was is the entry before, nil if there was none.
func (d *Doctor) runsNew(text string, was, s *clientconfig.Server) bool {
	argv := argvOf(s)
	if inner, url := wrapped(s, d.Self); inner != nil || url != "" {
		argv = append(inner, url) // behind us it is the same server
	}
	if len(argv) > 2 && programName(argv[0]) == "cmd" && strings.EqualFold(argv[1], "/c") {
		argv = argv[2:]
	}
	for i, w := range argv {
		switch {
		case w == "", strings.Contains(text, sameHost(w)), versionWord().MatchString(w):
		case strings.HasPrefix(w, "-") && !strings.ContainsAny(w, "=/"):
		case i == 0 && was != nil && programName(w) == programName(was.Command.Text) && (d.System.Project == "" || !isBelow(d.System.Project, w)):
			// The same program, by its path.
		default:
			return true
		}
	}
	if url := s.URL.Text; url != "" && !strings.Contains(text, sameHost(url)) {
		return true
	}
	for _, p := range s.Env {
		if steering().MatchString(p.Name.Text) && !strings.EqualFold(p.Name.Text, "PATH") && !strings.Contains(text, p.Value.Text) && !versionWord().MatchString(p.Value.Text) {
			return true
		}
	}
	return false
}

// versionWord is a version, a number, or a bound on the version of something that is
// fetched anyway.
var versionWord = pattern(`^(?:[\w.-]*(?:[<>=~!]=?|@))?v?\d[\d.]*$`)

// handsOn: a variable of the user's reaches the server that did not before, or goes to
// an address.
func handsOn(was, s *clientconfig.Server) bool {
	known := make(map[string]bool)
	if was != nil {
		for _, name := range handedOnBy(was) {
			known[name] = true
		}
	}
	return slices.ContainsFunc(handedOnBy(s), func(name string) bool { return !known[name] })
}

// handedOnBy are the variables that an entry refers to, in whatever spelling.
func handedOnBy(s *clientconfig.Server) []string {
	var names []string
	refer := func(part string, v clientconfig.Value) {
		if s.Client == nil {
			return
		}
		for _, r := range s.Client.References(part, v.Text) {
			if !strings.EqualFold(r.Name, "PATH") { // which every server gets
				names = append(names, r.Name)
			}
		}
	}
	refer("command", s.Command)
	refer("url", s.URL)
	for _, a := range s.Args {
		refer("args", a)
	}
	for _, p := range s.Env {
		refer("env", p.Value)
	}
	for _, h := range s.Headers {
		refer("headers", h.Value)
	}
	for _, v := range s.EnvFrom {
		names = append(names, v.Text)
	}
	for _, h := range s.HeadersFrom {
		names = append(names, h.Value.Text)
	}
	if docker, ok := dockerRun(argvOf(s)); ok {
		for _, p := range s.Env {
			if docker.passes(p.Name.Text) {
				names = append(names, "docker "+p.Name.Text)
			}
		}
		options := docker.words[docker.first:docker.image]
		for i, w := range options {
			if (w == "-e" || w == "--env") && i+1 < len(options) {
				names = append(names, "docker "+options[i+1])
			}
		}
	}
	return names
}
