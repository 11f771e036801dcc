package fault

import (
	"fmt"
	"strconv"
	"strings"
)

// Diagnosis is what the evidence says.
type Diagnosis struct {
	Kind Kind
	// Confidence is between 0 and 1. What would be less than likely is reported as
	// Unknown instead, with the confidence that the best guess had.
	Confidence float64
	// Explanation is a sentence or two for people and models; SuggestedFix is a
	// hint, lower case, no full stop. Both name what was found.
	Explanation  string
	SuggestedFix string
	// Retryable and Scope are those of the kind; see About.
	Retryable bool
	Scope     Scope
	// Pieces are the names that were found beside the cause.
	Pieces Pieces
	// Because is the one thing that decided, such as "errno ENOENT" or the words of
	// the message that matched.
	Because string
}

// Diagnose finds the cause in the evidence. Facts come first: a fact that can
// mean one thing only outweighs any text. A fact that can mean several things
// (exit code 1, HTTP 400) gives way to a text that is plain about it, and what the
// server wrote to stderr before it died outweighs what its client made of that.
//
// It never fails and takes bounded time: of long evidence it reads the beginning
// and the end.
func Diagnose(e Evidence) Diagnosis {
	best := clue{kind: Unknown, because: "nothing in the evidence says why"}
	consider := func(c clue) {
		if c.outweighs(best) {
			best = c
		}
	}
	for _, c := range facts(e) {
		consider(c)
	}
	consider(read(e.Text))
	consider(readStderr(e))
	consider(readStdout(e))
	if e.Exited {
		if flag := RemedyIn(e).Flag; strings.HasSuffix(flag, "stdio") {
			consider(clue{kind: TransportMismatch, sure: likely, because: "the server asks for " + flag})
		}
	}
	return best.diagnosis(e)
}

// Diagnosis is what is said of a failure whose kind is known already. The evidence
// only gives the words; it may be zero.
func (k Kind) Diagnosis(e Evidence) Diagnosis {
	return clue{kind: k, sure: 1, because: "it is known"}.diagnosis(e)
}

// clue is one piece of evidence that speaks for one kind.
type clue struct {
	kind    Kind
	sure    float64
	weight  int // decides between clues that are equally sure
	because string
	pieces  Pieces
}

func (c clue) outweighs(other clue) bool {
	if c.sure != other.sure {
		return c.sure > other.sure
	}
	return c.weight > other.weight
}

func (c clue) diagnosis(e Evidence) Diagnosis {
	kind := c.kind
	if c.sure < enough {
		kind = Unknown
		c.pieces = Pieces{}
	}
	about := kind.About()
	switch {
	case c.pieces.Subcommand != "":
		about.Explanation, about.Fix = unknownSubcommand.Explanation, unknownSubcommand.Fix
	case c.pieces.Command == "" && kind == CommandNotFound:
		c.pieces.Command = printable(clip(e.Command, maxName))
	}
	return Diagnosis{
		Kind:         kind,
		Confidence:   c.sure,
		Explanation:  fill(about.Explanation, e, c.pieces),
		SuggestedFix: fill(about.Fix, e, c.pieces),
		Retryable:    about.Retryable,
		Scope:        about.Scope,
		Pieces:       c.pieces,
		Because:      c.because,
	}
}

// Fault makes an error of the diagnosis, with the evidence it came from.
func (d Diagnosis) Fault(e Evidence, delivery Delivery, cause error) *Fault {
	return &Fault{Kind: d.Kind, Delivery: delivery, Hint: d.SuggestedFix, Evidence: e, Cause: cause}
}

// Of the evidence at most this much is read.
const (
	maxText  = 8 << 10 // of one text, half from each end
	maxLines = 60      // of stderr, the last ones
	maxLine  = 1 << 10
)

// read finds the strongest clue in a message.
func read(text string) clue {
	var best clue
	for l := range strings.SplitSeq(ends(text, maxText), "\n") {
		if c := readLine(l); c.outweighs(best) {
			best = c
		}
	}
	return best
}

// readLine finds the strongest clue in one line. Programs that pass an error on put
// their own words before it, so of clues that are equally sure the last one counts,
// unless they share words: then the longer one does.
func readLine(text string) clue {
	var best clue
	end := 0 // of the words that gave it
	l := cut(text)
	rules := index()
	for i := range l.words {
		for _, r := range rules[l.words[i].lower] {
			if r.sure < best.sure {
				continue
			}
			f, ok := r.phrase.matchAt(&l, i)
			if !ok {
				continue
			}
			c := clue{kind: r.kind, sure: r.sure, weight: len(r.phrase.steps), pieces: f.pieces}
			if c.outweighs(best) || c.kind != best.kind && c.sure == best.sure && f.from >= end {
				c.because = strconv.Quote(printable(clip(l.text[l.words[f.from].start:l.words[f.to-1].end], maxName)))
				best, end = c, f.to
			}
		}
	}
	return best
}

// readStderr reads the server's last words. On a tie they win over the
// message of the client, and the later line over the earlier one.
func readStderr(e Evidence) clue {
	var best clue
	lines := e.Stderr
	if len(lines) > maxLines {
		lines = lines[len(lines)-maxLines:]
	}
	named := make(map[Kind]Pieces) // what any line of that kind names
	for i, text := range lines {
		c := readLine(ends(text, maxLine))
		if c.kind == "" {
			continue
		}
		if isWarning(text) {
			c.sure *= 0.7 // it went on after this
		}
		if !e.Exited && e.Moment != AtStart && e.Moment != AtHandshake {
			c.sure *= 0.8 // a server that lives may have written this about something else
		}
		c.weight += 1000 + i
		named[c.kind] = named[c.kind].with(c.pieces)
		if c.outweighs(best) {
			c.because = "stderr: " + c.because
			best = c
		}
	}
	if e.Exited && (best.kind == "" || best.kind == MissingDependency) && halfInstalled(lines) {
		best = clue{kind: PackageCacheCorrupt, sure: narrow, weight: best.weight + 1, because: "stderr: a module is missing below _npx"}
	}
	// Node writes an error as an object over many lines: the last says what it was
	// and an earlier one where.
	best.pieces = best.pieces.with(named[best.kind])
	return best
}

// halfInstalled recognises a package that npx has installed in part, which its
// error says in two lines: that a module is missing, and who asked for it.
func halfInstalled(lines []string) bool {
	missing, below := false, false
	for _, l := range lines {
		l = strings.ToLower(ends(l, maxLine))
		missing = missing || strings.Contains(l, "cannot find module") || strings.Contains(l, "module_not_found")
		below = below || strings.Contains(l, belowNpx) && npxFolder().MatchString(l)
	}
	return missing && below
}

func isWarning(text string) bool {
	l := cut(clip(text, 64))
	for i := range min(4, len(l.words)) {
		switch l.words[i].lower {
		case "warn", "warning", "debug", "info", "deprecated", "experimentalwarning", "deprecationwarning":
			return true
		}
	}
	return false
}

// readStdout: what a server prints besides messages is pollution, but it says why
// the connection failed only while the process lives; a process that ended may
// have printed its last words to the wrong place.
func readStdout(e Evidence) clue {
	if len(e.Stdout) == 0 {
		return clue{}
	}
	if e.Exited {
		c := read(strings.Join(e.Stdout[max(0, len(e.Stdout)-maxLines):], "\n"))
		c.weight += 500
		return c
	}
	if e.Moment != AtHandshake {
		return clue{}
	}
	return clue{kind: StdoutPollution, sure: likely, because: "lines on standard output that are no messages"}
}

// ends keeps the beginning and the end of a long text.
func ends(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit/2] + "\n" + s[len(s)-limit/2:]
}

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit]
}

// fill puts what is known into a template: {name|words for when it is not known}.
func fill(template string, e Evidence, p Pieces) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		slot, after, _ := strings.Cut(rest, "}")
		name, otherwise, _ := strings.Cut(slot, "|")
		if value := known(name, e, p); value != "" {
			b.WriteString(value)
		} else {
			b.WriteString(otherwise)
		}
		template = after
	}
}

func known(name string, e Evidence, p Pieces) string {
	switch name {
	case "command":
		return quoted(p.Command)
	case "subcommand":
		return quoted(p.Subcommand)
	case "variable":
		return p.Variable
	case "package":
		return quoted(p.Package)
	case "path":
		return p.Path
	case "host":
		return quoted(p.Host)
	case "address":
		return p.address()
	case "tool":
		return quoted(p.Tool)
	case "ended":
		return ending(e)
	}
	return ""
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return strconv.Quote(s)
}

// ending says how a process ended.
func ending(e Evidence) string {
	switch killed := signalOf(e); {
	case killed == "SIGKILL":
		return "was killed (SIGKILL), which is often the system running out of memory"
	case killed != "":
		return "was ended by " + killed
	case e.Exited:
		return fmt.Sprintf("ended with exit code %d", e.ExitCode)
	}
	return ""
}
