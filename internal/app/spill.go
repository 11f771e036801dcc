package app

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// spill passes a server's stderr on without ever blocking the server: a client
// that does not read ours loses lines, and nothing else happens. Secrets are hidden
// in it, and on a terminal what would do more than be read.
type spill struct {
	to       io.Writer
	stream   *secret.Stream // belongs to pour
	terminal bool

	mu      sync.Mutex
	waiting []byte
	idle    chan struct{} // closed when all is written; nil while there is nothing
}

const (
	spillLimit = 1 << 20
	spillPart  = 64 << 10             // at once, or a burst would cost much memory
	spillRest  = 2 * time.Millisecond // lines that come one by one are looked at together
	spillHold  = 50 * time.Millisecond
)

func newSpill(to io.Writer, hide *secret.Hider, terminal bool) *spill {
	return &spill{to: to, stream: hide.Stream(), terminal: terminal}
}

func (s *spill) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting)+len(p) > spillLimit {
		return len(p), nil
	}
	s.waiting = append(s.waiting, p...)
	if s.idle == nil {
		s.idle = make(chan struct{})
		go s.pour()
	}
	return len(p), nil
}

func (s *spill) pour() {
	held := 0 // how often something was held back in a row
	for {
		time.Sleep(spillRest)
		part := s.take(held == 0)
		switch {
		case part == "" && held == 0:
			return
		case part == "" || held > 4:
			s.show(s.stream.Push(part) + s.stream.Flush())
			held = 0
			continue
		}
		s.show(s.stream.Push(part))
		if held++; !s.stream.Holds() {
			held = 0
		} else if !s.more() {
			time.Sleep(spillHold)
		}
	}
}

// take returns what to write next. If there is nothing and last is set, it says that
// all is written.
func (s *spill) take(last bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.waiting), spillPart)
	part := string(s.waiting[:n])
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	if n == 0 && last {
		close(s.idle)
		s.idle = nil
	}
	return part
}

func (s *spill) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > 0
}

func (s *spill) show(text string) {
	if s.terminal {
		text = legible(text)
	}
	if text != "" {
		_, _ = io.WriteString(s.to, text)
	}
}

// drain waits until all is written, no longer than d.
func (s *spill) drain(d time.Duration) {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(d):
	}
}

// colours do nothing but be seen.
var colours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;:]*m`) })

// legible shows what a terminal would obey: a sequence that clears it, moves in it
// or fills the clipboard, and signs that turn letters around. Colours are left out.
func legible(text string) string {
	if !strings.ContainsFunc(text, obeyed) && utf8.ValidString(text) {
		return text
	}
	if strings.Contains(text, "\x1b[") {
		text = colours().ReplaceAllLiteralString(text, "")
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1, r < 256 && obeyed(r) && !strings.HasPrefix(text[i:], "\r\n"):
			fmt.Fprintf(&b, `\x%02x`, min(rune(text[i]), r))
		case r >= 256 && obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String()
}

func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}
