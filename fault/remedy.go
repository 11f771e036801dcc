package fault

import (
	"regexp"
	"slices"
	"strings"
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

var (
	namedFlag    = regexp.MustCompile(`(?i)\b(?:use|with|try|pass|add|run|set|specify|using)\s+(?:the\s+)?["'` + "`" + `]?(--[a-z][a-z0-9-]{1,40}(?:[= ]stdio\b)?)`)
	namedPython  = regexp.MustCompile(`(?i)does not satisfy python\s*((?:[<>=!~]=?|==)\s*\d+(?:\.\d+){0,2}(?:\.\*)?(?:\s*,\s*[<>=!~]=?\s*\d+(?:\.\d+){0,2})*)|requires[ -]python\s*:?\s*['"]?((?:[<>=!~]=?|==)\s*\d+(?:\.\d+){0,2})`)
	namedDotNet  = regexp.MustCompile(`^Framework: '[A-Za-z.]+', version '(\d+(?:\.\d+){1,3})`)
	namedNpx     = regexp.MustCompile(`((?:[A-Za-z]:)?[\\/][^'"\n:*?<>|]*[\\/]_npx[\\/][0-9a-f]{8,64})\b`)
	namedFastMCP = regexp.MustCompile(`No module named ['"]?mcp\.server\.fastmcp\b|cannot import name ['"]FastMCP['"] from ['"]mcp\.server`)
)

// RemedyIn reads the evidence for what it says itself would help.
func RemedyIn(e Evidence) Remedy {
	var r Remedy
	lines := slices.Concat(e.Stderr[max(0, len(e.Stderr)-maxLines):], e.Stdout[max(0, len(e.Stdout)-maxLines):], strings.Split(ends(e.Text, 16<<10), "\n"))
	for _, text := range lines {
		text = ends(text, 4<<10)
		if m := namedFlag.FindStringSubmatch(text); m != nil && r.Flag == "" {
			r.Flag = m[1]
		}
		if m := namedPython.FindStringSubmatch(text); m != nil && r.Python == "" {
			r.Python = strings.ReplaceAll(m[1]+m[2], " ", "")
		}
		if m := namedDotNet.FindStringSubmatch(strings.TrimSpace(text)); m != nil && r.DotNet == "" {
			r.DotNet = m[1]
		}
		if m := namedNpx.FindStringSubmatch(text); m != nil && r.NpxFolder == "" {
			r.NpxFolder = m[1]
		}
		r.FastMCP = r.FastMCP || namedFastMCP.MatchString(text)
	}
	return r
}
