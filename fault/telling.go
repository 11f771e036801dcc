package fault

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// frames are lines of a stack trace and what stands around them: where something
// happened, and not what.
var frames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*at .+|^\s*File ".*", line \d+|^Traceback \(most recent call last\)|^\s*[\^~]+[\s\^~]*$` +
		`|^Node\.js v\d|^(?:file://|node:|/|[A-Za-z]:\\)\S+:\d+$|^\s*(?:throw|raise) |^goroutine \d+ \[|^\s*[\[\]{}()]+,?$|^\s+\S+: .*,?$|^\s*\.\.\. \d+ more`)
})

// advice is what npm adds to every failure of a kind, below what happened.
var advice = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^npm (?:error|ERR!)(?: \d+)?\s*(?:$|Note that you can also install|tarball, folder, http url|A complete log of this run|This is probably not a problem with npm)`)
})

// Telling picks from what a program wrote last the lines that say what happened,
// at most n, in their order. It leaves out stack traces and npm's advice; if
// nothing else was written the last lines are returned.
func Telling(lines []string, n int) []string {
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
	if len(kept) == 0 {
		kept = slices.Clone(lines)
	}
	return kept[max(0, len(kept)-n):]
}
