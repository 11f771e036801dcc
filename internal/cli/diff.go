package cli

import (
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

// diff shows the change of a file, indented, under the name a person gives it.
func (v view) diff(d doctor.Diff) string {
	text := d.Text
	for _, mark := range []string{"--- ", "+++ "} {
		text = strings.Replace(text, mark+d.File+"\n", mark+v.path(d.File)+"\n", 1)
	}
	return indent(v.paintDiff(text))
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
