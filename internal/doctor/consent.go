package doctor

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// What a person is asked before something of a project is started, and what they see.

// steering are variables that make a program run other code, though some are
// called like secrets.
var steering = pattern(`(?i)^(PATH|PATHEXT|COMSPEC|SHELL|ENV|BASH_ENV|HOME|USERPROFILE|LD_.*|DYLD_.*|NODE_.*|NPM_.*|PYTHON.*|PIP_.*|UV_.*|RUBY.*|PERL.*|` +
	`JAVA_.*|JDK_.*|_JAVA_.*|CLASSPATH|GIT_.*|SSH_.*|DOCKER_.*|DENO_.*|BUN_.*|ELECTRON_.*|.*_PROXY|.*_PRELOAD|.*ASKPASS)$`)

// wouldRun is all that somebody agrees to who approves an entry, in one line: a
// variable can make a harmless command run something else. Words are quoted where
// it could not be seen otherwise where they end. changed are parts of the key that were
// approved with another content.
func wouldRun(s *clientconfig.Server, k approvalKey, changed []string) string {
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
	var lines []string // of files of variables
	for _, f := range k.envFiles {
		lines = append(lines, f.lines...)
	}
	inline := hasCode(s.Client, "args", words) || hasCode(s.Client, "env", values(s.Env)) || hasCode(nil, "", lines)
	for _, f := range k.envFiles {
		switch {
		case f.outside:
			notes = append(notes, "variables of "+f.name+", which is outside of the project and was not read")
		case len(f.lines) > 0:
			notes = append(notes, "variables of "+f.name+": "+strings.Join(quoted(agreeable(f.lines, true, inline), " "), " "))
		default:
			notes = append(notes, "variables of "+f.name)
		}
	}
	if s.Cwd.Text != "" {
		notes = append(notes, "in "+s.Cwd.Text)
	}
	for _, name := range changed {
		notes = append(notes, name+" has changed since you approved it")
	}
	if k.unbounded != "" {
		notes = append(notes, "what it runs "+k.unbounded+", so this is asked every time")
	}
	line := agreedLine(set, words, inline)
	if len(notes) > 0 {
		line += " (" + strings.Join(quoted(notes, "  "), ", ") + ")"
	}
	return line
}

func values(pairs []clientconfig.Pair) []string {
	var all []string
	for _, p := range pairs {
		all = append(all, p.Value.Text)
	}
	return all
}

// hasCode: some word may be a line of code that uses others, as in sh -c 'exec $TOKEN'.
// What the client itself replaces is none.
func hasCode(client *clientconfig.Client, part string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		if client != nil {
			for _, r := range slices.Backward(client.References(part, w)) {
				if r.Expanded && !r.HasDefault {
					w = w[:r.Start] + w[r.Start+len(r.Text):]
				}
			}
		}
		return strings.ContainsAny(w, codeSigns+"$[]") || batchVariable().MatchString(w)
	})
}

// codeSigns are such that no language does without one of them.
const codeSigns = "()`;|&<>{}'\""

var batchVariable = pattern(`%\w+%`)

// isLineOfCode: a word is more than a word, as no secret is.
func isLineOfCode(word string) bool {
	return strings.ContainsAny(word, codeSigns) || strings.ContainsFunc(word, unicode.IsSpace)
}

// agreeable are words with their secrets hidden, as far as these are proven to be data.
// Where there is code in the line itself, inline, nothing is: it may run any of the
// words, and who agrees judges it by what it says. Elsewhere it takes a word that is
// nothing but a secret, the value of an option that is named like one, or a variable
// that makes no program run other code; and that could not be a line of code or a
// path.
func agreeable(words []string, variables, inline bool) []string {
	if inline {
		return slices.Clone(words)
	}
	shown := secret.Args(words)
	for i, w := range words {
		name, value, named := strings.Cut(w, "=")
		if !named {
			value = w
		}
		switch {
		case shown[i] == w:
		case strings.ContainsAny(value, `/\`) && !strings.Contains(value, "://") && !strings.ContainsAny(value, "+="): // base64 has them
			shown[i] = w
		case shown[i] == secret.Mark && !isLineOfCode(w):
		case strings.HasPrefix(w, "-") && value != "" && shown[i] == name+"="+secret.Mark:
		case variables && !steering().MatchString(name) && !isLineOfCode(value):
		default:
			shown[i] = unhide(w, shown[i])
		}
	}
	return shown
}

// agreedLine is a command with its variables, as somebody is asked about it.
func agreedLine(set, argv []string, inline bool) string {
	return strings.Join(quoted(append(agreeable(set, true, inline), agreeable(argv, false, inline)...), " "), " ")
}

// Agreeable is a line that somebody is asked to agree to, for who has no more than the
// line: what is hidden in it is hidden already, and where it has code in it nothing may
// be hidden on the way.
func Agreeable(line string) string {
	if strings.ContainsAny(line, codeSigns+"$%/") {
		return line
	}
	return secret.Scrub(line)
}

// unhide shows what is hidden of a word and could be code.
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
		if isLineOfCode(rest[:at]) {
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
	_, waits := d.pending(s, f)
	return waits
}

// pending is the same with the key that has to be approved, if it is an entry of a
// project.
func (d *Doctor) pending(s *clientconfig.Server, f *clientconfig.File) (k approvalKey, waits bool) {
	if !ofProject(s, f) {
		return approvalKey{}, false
	}
	k = d.approvalKeyIn(d.look, s, f)
	if d.Approvals == nil {
		return k, true
	}
	if d.Approvals.allows(k) {
		if d.look == nil {
			return k, false
		}
		// Something may have changed since the look began.
		if k = d.approvalKey(s, f); d.Approvals.allows(k) {
			return k, false
		}
	}
	d.Approvals.show(k)
	return k, true
}

// approve is for an entry that a person has agreed to in other words: it may be
// started from now on.
func (d *Doctor) approve(s *clientconfig.Server, f *clientconfig.File) error {
	k, waits := d.pending(s, f)
	switch {
	case !waits:
		return nil
	case d.Approvals == nil:
		return errors.New("there is no place to remember what was approved")
	}
	return d.Approvals.Approve(k.hash)
}

func ofProject(s *clientconfig.Server, f *clientconfig.File) bool {
	if s.Scope != "" {
		return s.Scope == "project"
	}
	return slices.ContainsFunc(f.Places, func(p clientconfig.Place) bool { return p.Scope == "project" })
}
