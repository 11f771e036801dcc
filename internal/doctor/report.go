package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// Machine is what a bug report says of where it was made.
type Machine struct {
	// Version is ours; System is such as "linux/amd64".
	Version, System string
	// Runtimes are versions of node, python and the like, each as "node v24.1.0".
	Runtimes []string
}

// Markdown is a report of the case for a bug tracker: everything a maintainer asks
// for first, and nothing that is secret. Home is replaced by "~" in it.
func (c *Case) Markdown(m Machine, home string) string {
	var b strings.Builder
	title := nameCell(c.Name)
	if title == "" {
		title = "configuration file"
	}
	fmt.Fprintf(&b, "### %s: %s\n\n", title, c.headline())
	b.WriteString("| | |\n|---|---|\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", name, cell(value))
		}
	}
	row("mcpmend", m.Version)
	row("system", m.System)
	row("runtimes", nameCell(strings.Join(m.Runtimes, ", ")))
	if c.Client != "" {
		row("client", nameCell(strings.TrimSpace(c.Client+" "+c.Scope)))
	}
	row("entry", nameCell(c.At.String()))
	row("runs", code(c.Runs))
	if c.Info != nil {
		row("server", nameCell(strings.TrimSpace(c.Info.Name+" "+c.Info.Version)))
		row("protocol", nameCell(strings.TrimSpace(c.Info.Protocol+" "+c.Info.Transport)))
		row("tools", fmt.Sprint(len(c.Info.Tools)))
	}

	if len(c.Ladder) > 0 {
		b.WriteString("\n| stage | | |\n|---|---|---|\n")
		for _, s := range c.Ladder {
			ok := "ok"
			if !s.OK {
				ok = "**failed**"
			}
			took := ""
			if s.Took > 0 {
				took = s.Took.Round(time.Millisecond).String()
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Stage, ok, cell(strings.TrimSpace(took+" "+prose(s.Note))))
		}
	}
	if c.Cause != nil {
		fmt.Fprintf(&b, "\n**Cause** `%s` (confidence %.2f): %s\n", c.Cause.ID, c.Cause.Confidence, prose(c.Cause.Explanation))
		if len(c.Cause.Evidence) > 0 {
			fmt.Fprintf(&b, "\n%s\n", fence(c.Cause.Evidence))
		}
		for _, f := range c.Cause.Fixes {
			fmt.Fprintf(&b, "\n- %s (%s)", prose(f.Does), classWords[f.Class])
		}
		if len(c.Cause.Fixes) > 0 {
			b.WriteByte('\n')
		}
	}
	if c.leftUnsaid() {
		fmt.Fprintf(&b, "\nLast lines on stderr:\n\n%s\n", fence(c.Stderr))
	}
	// A server could otherwise write to the terminal that shows the report, or turn
	// letters around in the issue that it is pasted into.
	text := c.hider.Text(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, b.String()))
	if home != "" && home != "/" {
		text = strings.ReplaceAll(text, home, "~")
	}
	return text
}

// leftUnsaid reports whether there are last words that are not among the evidence.
func (c *Case) leftUnsaid() bool {
	return slices.ContainsFunc(c.Stderr, func(line string) bool {
		return c.Cause == nil || !slices.Contains(c.Cause.Evidence, "stderr: "+line)
	})
}

// classWords say who does it, to a reader who has not read what our classes are.
var classWords = map[Class]string{Auto: "automatic", Ask: "automatic, asks first", Never: "by hand"}

// headline says in a few words how it is.
func (c *Case) headline() string {
	switch {
	case c.Cause == nil:
		return string(c.State)
	case c.Cause.Severity == Broken:
		return fmt.Sprintf("%s at %s", c.State, c.Cause.Stage)
	}
	return fmt.Sprintf("%s, %s", c.State, c.Cause.ID)
}

// nameCell shows a name that others chose. One that could be more than a name where
// the report is pasted, such as a link or an image, is code.
func nameCell(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" .,:-_/~()+", r)
	}) || strings.Contains(s, "://") || strings.Contains(s, "__") || strings.HasPrefix(s, "_") {
		return code(s)
	}
	return s
}

// prose keeps what others wrote in a sentence of ours from being anything but words.
func prose(s string) string {
	var b strings.Builder
	letter := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || s[i] == '_')
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n' || c == '\r':
			b.WriteByte(' ')
			continue
		case strings.IndexByte("\\`*[]<>|", c) >= 0,
			c == '_' && !(letter(i-1) && letter(i+1)),
			c == '!' && i+1 < len(s) && s[i+1] == '[', c == '~' && i+1 < len(s) && s[i+1] == '~':
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return strings.ReplaceAll(b.String(), `\[hidden\]`, secret.Mark)
}

// cell keeps a text from ending the cell of a table it stands in.
func cell(s string) string {
	return strings.NewReplacer(`\|`, `\|`, "|", `\|`, "\n", " ", "\r", " ").Replace(s)
}

// code quotes a command. Markdown drops the blanks; without them the last quote
// would be hidden along with a secret in front of it.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "` " + strings.ReplaceAll(s, "`", "'") + " `"
}

// fence quotes lines so that none of them can end the quotation: a server's words
// are shown, not interpreted.
func fence(lines []string) string {
	text := strings.Join(lines, "\n")
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + "text\n" + text + "\n" + mark
}

// IssueTemplate is for maintainers of servers: a field for their bug form that
// brings them such a report.
const IssueTemplate = `  - type: textarea
    id: mcpmend-report
    attributes:
      label: Report
      description: >
        Run "mcpmend report NAME" with the server's name in your client's configuration
        and paste what it prints. Secrets are hidden; please look it over all the same.
    validations:
      required: true
`
