package fault

import (
	"slices"
	"strings"
)

// frames are lines of a stack trace and what stands around them: where something
// happened, and not what.
var frames = lazily(`^\s*at .+|^\s*File ".*", line \d+|^Traceback \(most recent call last\)|^\s*[\^~]+[\s\^~]*$` +
	`|^Node\.js v\d|^(?:file://|node:|/|[A-Za-z]:\\)\S+:\d+$|^\s*(?:throw|raise) |^goroutine \d+ \[|^\s*[\[\]{}()]+,?$|^\s+\S+: .*,?$|^\s*\.\.\. \d+ more`)

// advice is what npm adds to every failure of a kind, below what happened.
var advice = lazily(`^npm (?:error|ERR!)(?: \d+)?\s*(?:$|Note that you can also install|tarball, folder, http url|A complete log of this run|This is probably not a problem with npm)`)

// failing is in a line that says what failed, in whatever language.
var failing = lazily(`(?i)\b\w*(?:error|exception|fatal|panic|failed|cannot|denied)\b`)

// Telling picks from what a program wrote last the lines that say what happened,
// at most n: the one that the diagnosis came from first, or else the last that
// speaks of an error. It leaves out stack traces and npm's advice; if nothing else
// was written the last lines are returned.
func (d Diagnosis) Telling(lines []string, n int) []string {
	kept := withoutFrames(lines)
	if len(kept) == 0 {
		kept = lines
	}
	first := -1
	decided := d.quotes()
	for i, line := range kept {
		shows := decided != "" && strings.Contains(line, decided)
		if shows {
			first = i
			break
		}
		if failing().MatchString(line) {
			first = i
		}
	}
	if first < 0 {
		return slices.Clone(kept[max(0, len(kept)-n):])
	}
	rest := slices.Delete(slices.Clone(kept), first, first+1)
	return append([]string{kept[first]}, rest[max(0, len(rest)-n+1):]...)
}

// quotes are the words of the message that decided, "" if it was something else.
func (d Diagnosis) quotes() string {
	from, to := strings.IndexByte(d.Because, '"'), strings.LastIndexByte(d.Because, '"')
	if from == to {
		return ""
	}
	return d.Because[from+1 : to]
}

func withoutFrames(lines []string) []string {
	var kept []string
	code := false // the line of the program that a trace quotes follows its place
	for _, line := range lines {
		switch {
		case frames().MatchString(line):
			code = true
			continue
		case strings.TrimSpace(line) == "", advice().MatchString(line), code && strings.HasPrefix(line, " "):
		default:
			kept = append(kept, line)
		}
		code = false
	}
	return kept
}

// Brief is Text for people. That of a connection that could not be made names its
// address, then Go names it again; [Diagnose] needs that, and who reads it does not.
func (e Evidence) Brief() string {
	const we = "cannot connect to "
	rest, ours := strings.CutPrefix(e.Text, we)
	host, dialled, found := strings.Cut(rest, ": dial tcp")
	if !ours || !found || strings.Contains(host, " ") {
		return e.Text
	}
	address, why, found := strings.Cut(dialled, ": ")
	if !found {
		return e.Text
	}
	if address = strings.TrimSpace(address); address != "" && address != host {
		host += " (" + address + ")"
	}
	why = strings.TrimPrefix(why, "connect: ")
	if lookup, found := strings.CutPrefix(why, "lookup "); found {
		asked, answer, _ := strings.Cut(lookup, ": ")
		if _, server, found := strings.Cut(asked, " on "); found {
			answer += " (asked " + server + ")"
		}
		why = answer
	}
	return we + host + ": " + why
}
