package fault

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Remedy is what a failing program itself says would help. It is the program's
// text and not to be trusted beyond its form: a flag is a flag of the same program.
type Remedy struct {
	// Flag is an option that the message tells the reader to use, such as
	// "--isolated".
	Flag string
	// Python is the version that is asked for, such as ">=3.12".
	Python string
	// DotNet is the version of .NET that is asked for, such as "9.0.0".
	DotNet string
	// NpxFolder is the folder of npm's cache that a broken installation was left in:
	// ".../_npx/<hash>".
	NpxFolder string
	// FastMCP says that what broke is the module mcp.server.fastmcp, which version 2
	// of the Python SDK does not have any more.
	FastMCP bool
}

// helps are the forms in which programs say what would help. Nearly every line is
// an ordinary one, and looking for the bytes that a form needs, in lower case, tells
// so at a hundredth of the cost of matching.
var helps = []struct {
	needs string
	form  func() *regexp.Regexp
	keep  func(*Remedy, []string)
}{
	{"--", lazily(`(?i)\b(?:use|with|try|pass|add|run|set|specify|using)\s+(?:the\s+)?["'` + "`" + `]?(--[a-z][a-z0-9-]{1,40}(?:[= ]stdio\b)?)`),
		func(r *Remedy, m []string) { r.Flag = cmp.Or(r.Flag, m[1]) }},
	{"python", lazily(`(?i)does not satisfy python\s*((?:[<>=!~]=?|==)\s*\d+(?:\.\d+){0,2}(?:\.\*)?(?:\s*,\s*[<>=!~]=?\s*\d+(?:\.\d+){0,2})*)|requires[ -]python\s*:?\s*['"]?((?:[<>=!~]=?|==)\s*\d+(?:\.\d+){0,2})`),
		func(r *Remedy, m []string) { r.Python = cmp.Or(r.Python, strings.ReplaceAll(m[1]+m[2], " ", "")) }},
	{"framework:", lazily(`^\s*Framework: '[A-Za-z.]+', version '(\d+(?:\.\d+){1,3})`),
		func(r *Remedy, m []string) { r.DotNet = cmp.Or(r.DotNet, m[1]) }},
	{belowNpx, npxFolder,
		func(r *Remedy, m []string) { r.NpxFolder = cmp.Or(r.NpxFolder, m[1]) }},
	{"mcp.server", lazily(`No module named ['"]?mcp\.server\.fastmcp\b|cannot import name ['"]FastMCP['"] from ['"]mcp\.server`),
		func(r *Remedy, _ []string) { r.FastMCP = true }},
}

// belowNpx is in every path that npxFolder finds.
const belowNpx = "_npx"

var npxFolder = lazily(`((?:[A-Za-z]:)?[\\/][^'"\n:*?<>|]*[\\/]_npx[\\/][0-9a-f]{8,64})\b`)

// lazily compiles an expression when it is first needed, which for most processes
// is never.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// RemedyIn reads the evidence for what it says itself would help. Where several
// lines say something, the first one counts.
func RemedyIn(e Evidence) Remedy {
	var r Remedy
	lines := slices.Concat(e.Stderr[max(0, len(e.Stderr)-maxLines):], e.Stdout[max(0, len(e.Stdout)-maxLines):], strings.Split(ends(e.Text, 16<<10), "\n"))
	for _, text := range lines {
		text = ends(text, 4<<10)
		lower := lowerASCII(text)
		for _, h := range helps {
			if !strings.Contains(lower, h.needs) {
				continue
			}
			if m := h.form().FindStringSubmatch(text); m != nil {
				h.keep(&r, m)
			}
		}
	}
	return r
}
