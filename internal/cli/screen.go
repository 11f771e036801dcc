package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/term"
)

// A screen is where a person reads, and where they can be asked. Its methods may
// be called by several goroutines at once.
type screen struct {
	out, err io.Writer
	in       io.Reader
	done     <-chan struct{} // closed when the command is interrupted
	// terminal says that out is one; width is its width, or 0 where lines have no end.
	terminal bool
	width    int
	// live says that err is a terminal that can erase a line, asks that a person
	// sits at in and err.
	live, asks     bool
	colour         bool
	quiet, verbose bool
	glyphs

	mu     sync.Mutex
	shown  bool          // a progress line stands on err
	asking bool          // a question stands there, and nothing else may
	passed int           // lines on err that will vanish
	answer *bufio.Reader // what was typed, read ahead
}

// glyphs are the signs that carry meaning. None of them is told apart by colour
// alone.
type glyphs struct {
	ok, bad, warn, dot, arrow, ellipsis string
}

var (
	signs   = glyphs{ok: "✓", bad: "✗", warn: "!", dot: "·", arrow: "→", ellipsis: "…"}
	letters = glyphs{ok: "+", bad: "x", warn: "!", dot: "-", arrow: "->", ellipsis: "..."}
)

// Styles, from the sixteen colours that every terminal lets its owner choose.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

func (p *program) screen() *screen {
	getenv := func(name string) string { return lookupEnv(p.env.Environ, name) }
	dumb := getenv("TERM") == "dumb"
	s := &screen{
		out: p.env.Stdout, err: p.env.Stderr, in: p.env.Stdin, done: p.done,
		terminal: isTerminal(p.env.Stdout),
		live:     isTerminal(p.env.Stderr) && !dumb && !p.quiet,
		asks:     isTerminal(p.env.Stdin) && isTerminal(p.env.Stderr) && !p.noInput && !p.json,
		quiet:    p.quiet, verbose: p.verbose,
		glyphs: signs,
	}
	if s.terminal {
		s.width = terminalWidth(p.env.Stdout)
	}
	s.colour = wantsColour(p.noColor, s.terminal, getenv)
	if p.ascii || s.terminal && (dumb || !speaksUnicode(getenv)) {
		s.glyphs = letters
	}
	return s
}

// wantsColour follows no-color.org and bixense.com/clicolors, strongest first.
func wantsColour(off, terminal bool, getenv func(string) string) bool {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case off || getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return terminal && getenv("CLICOLOR") != "0" && getenv("TERM") != "dumb"
}

// speaksUnicode doubts only a locale that says otherwise: many containers have
// none at all and a terminal that shows everything.
func speaksUnicode(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

func isTerminal(file any) bool {
	f, ok := file.(*os.File)
	return ok && f != nil && term.IsTerminal(f.Fd())
}

func terminalWidth(file any) int  { width, _ := terminalSize(file); return width }
func terminalHeight(file any) int { _, height := terminalSize(file); return height }

func terminalSize(file any) (width, height int) {
	if f, ok := file.(*os.File); ok {
		if width, height, err := term.GetSize(f.Fd()); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// paint colours text, if the person wants that.
func (s *screen) paint(style lipgloss.Style, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return style.Render(text)
}

// printf writes to the answer. A progress line makes room for it.
func (s *screen) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.out, format, args...)
}

// notef tells the person something that is not part of the answer.
func (s *screen) notef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.err, format, args...)
}

// progress shows what is going on in a line that will vanish; without a terminal
// it says nothing. "" takes the line away.
func (s *screen) progress(text string) {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if text == "" || s.asking {
		return
	}
	// A line that is longer than the window could not be erased.
	fmt.Fprint(s.err, s.paint(faint, s.cut(plain(text), terminalWidth(s.err)-1)))
	s.shown = true
}

// busy keeps a progress line up to date, once a second, until it is told to rest.
func (s *screen) busy(text func() string) (rest func()) {
	if !s.live {
		return func() {}
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	s.progress(text())
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.progress(text())
			case <-stop:
				return
			}
		}
	})
	return func() {
		close(stop)
		done.Wait()
		s.progress("")
	}
}

// passing writes a line to err that vanish takes away again, on a terminal.
func (s *screen) passing(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if s.live {
		text = s.cutPainted(text, terminalWidth(s.err)-1)
		s.passed++
	}
	fmt.Fprintln(s.err, text)
}

// vanish takes away the progress line and the passing ones. What has left the
// window cannot be taken back, so then they stay.
func (s *screen) vanish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	switch {
	case s.passed == 0:
	case s.passed < terminalHeight(s.err):
		fmt.Fprintf(s.err, "\x1b[%dA\x1b[J", s.passed)
	default:
		fmt.Fprintln(s.err)
	}
	s.passed = 0
}

// keep lets the passing lines stay.
func (s *screen) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.passed = 0
}

func (s *screen) erase() {
	if s.shown {
		fmt.Fprint(s.err, "\r\x1b[K")
		s.shown = false
	}
}

// ask puts a question that is answered by yes or no. Whoever cannot be asked has
// not agreed; neither has who types nothing, closes the input or interrupts.
func (s *screen) ask(question string) bool {
	if !s.asks {
		return false
	}
	s.notef("%s [y/N] ", question)
	s.setAsking(true)
	defer s.setAsking(false)
	if s.answer == nil {
		s.answer = bufio.NewReader(s.in)
	}
	// Reading from a terminal cannot be stopped. Who interrupts wants to leave, and
	// the reader is left behind with the process.
	typed := make(chan string, 1)
	go func() {
		line, err := s.answer.ReadString('\n')
		if err != nil {
			s.notef("\n")
			line = ""
		}
		typed <- line
	}()
	select {
	case line := <-typed:
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes"
	case <-s.done:
		s.notef("\n")
		s.asks = false
		return false
	}
}

func (s *screen) setAsking(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = now
}

// cut shortens text to a width; 0 and less do not.
func (s *screen) cut(text string, width int) string {
	if width <= 0 || lipgloss.Width(text) <= width {
		return text
	}
	width -= lipgloss.Width(s.ellipsis)
	used := 0
	for i, r := range text {
		used += lipgloss.Width(string(r))
		if used > width {
			return text[:i] + s.ellipsis
		}
	}
	return text
}

// cutPainted is cut for text with colours in it, which it loses if it is too long.
func (s *screen) cutPainted(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	return s.cut(plain(text), width)
}

// pad fills text up to a width, counted as a terminal does.
func pad(text string, width int) string {
	if n := width - lipgloss.Width(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// wrap breaks text into lines between words. Words longer than the width stay
// whole, since they are what people copy.
func wrap(text string, width int) []string {
	if width <= 0 || lipgloss.Width(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case lipgloss.Width(line)+1+lipgloss.Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P^_X][^\x1b]*\x1b\\|[ -/]*[0-~])`)

// plain makes one harmless line of what somebody else wrote: a server could
// otherwise paint over what we say about it, or turn letters around.
func plain(text string) string {
	text = escapes.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case harmful(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// visible is a line to be pasted without runes that are harmful. Its spaces stay: they
// may belong to a name.
func visible(line string) string {
	return strings.Map(func(r rune) rune {
		if harmful(r) {
			return -1
		}
		return r
	}, line)
}

// harmful tells runes that move the cursor or the text around them.
func harmful(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar
}
