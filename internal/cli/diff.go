package cli

import (
	"strings"

	"charm.land/lipgloss/v2"
	udiff "github.com/aymanbagabas/go-udiff"
)

// unified returns how a file changes as a unified diff, "" if it does not. hide
// takes the secrets out of a text; both sides go through it, so a changed secret
// shows as a line that reads the same before and after.
func unified(name string, before, after []byte, hide func(string) string) string {
	old, now := string(before), string(after)
	edits := udiff.Lines(old, now)
	if len(edits) == 0 {
		return ""
	}
	text, err := udiff.ToUnified(name, name, old, edits, 3)
	if err != nil { // edits that were just computed apply
		panic(err)
	}
	return hide(text)
}

// paintDiff colours a unified diff, line by line, and makes it harmless.
func (s *screen) paintDiff(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		style := lipgloss.NewStyle()
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			style = bold
		case strings.HasPrefix(line, "@@"):
			style = faint
		case strings.HasPrefix(line, "-"):
			style = red
		case strings.HasPrefix(line, "+"):
			style = green
		}
		// The spaces of a file mean something, so plain would take too much.
		line = strings.Map(func(r rune) rune {
			if r != '\t' && harmful(r) {
				return -1
			}
			return r
		}, escapes.ReplaceAllString(line, ""))
		lines[i] = s.paint(style.TabWidth(lipgloss.NoTabConversion), line)
	}
	return strings.Join(lines, "\n")
}
