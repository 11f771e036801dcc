package secret

import (
	"strings"
)

// A Stream hides secrets in a text that arrives bit by bit. It remembers the last lines
// that it gave out, so that a secret is found which goes on behind them, and holds
// back what may be the beginning of one. It belongs to one goroutine.
type Stream struct {
	hider   *Hider
	context string // lines that were given out, as they came
	held    string
}

// Stream returns a Stream that knows what h does.
func (h *Hider) Stream() *Stream {
	if h == nil {
		h = New()
	}
	return &Stream{hider: h}
}

const (
	usualContext = 1 << 10 // bytes that are remembered
	mostContext  = 8 << 10 // if a secret may be going on
	mostHeld     = 64 << 10
)

// Push adds to the text and returns what may be shown of it by now. At most 64 KiB
// are held back.
func (st *Stream) Push(text string) string {
	st.held += text
	if len(st.held) < mostHeld && (!strings.HasSuffix(st.held, "\n") || st.hider.open(st.context+st.held) >= 0) {
		return ""
	}
	return st.Flush()
}

// Holds reports whether something is held back.
func (st *Stream) Holds() bool { return st.held != "" }

// Flush returns what is held back. It is for when nothing has followed for a while.
func (st *Stream) Flush() string {
	if st.held == "" {
		return ""
	}
	all := st.context + st.held
	shown := st.hider.Text(all)
	for range strings.Count(st.context, "\n") { // lines stay lines
		_, shown, _ = strings.Cut(shown, "\n")
	}
	st.context, st.held = st.rest(all), ""
	return shown
}

// rest is what has to be remembered of a text: whole lines, the last ones, and those from
// which on a secret may be going on.
func (st *Stream) rest(all string) string {
	if !strings.HasSuffix(all, "\n") {
		all += "\n" // the rest of a line that is too long stands alone
	}
	from := max(0, len(all)-usualContext)
	if at := st.hider.open(all); at >= 0 {
		from = min(from, max(at, len(all)-mostContext))
	}
	if at := strings.LastIndex(all, "-----BEGIN "); at >= 0 && !strings.Contains(all[at:], "-----END ") {
		from = min(from, max(at, len(all)-mostContext))
	}
	if from == 0 {
		return all
	}
	if start := strings.LastIndexByte(all[:from], '\n') + 1; len(all)-start <= mostContext {
		return all[start:]
	}
	_, whole, _ := strings.Cut(all[from:], "\n")
	return whole
}

// open returns where something begins that may be a known secret and is not at its end
// when s is, or -1.
func (h *Hider) open(s string) int {
	h.once.Do(h.build)
	if len(h.index.forms) == 0 {
		return -1
	}
	cut := max(0, len(s)-mostContext)
	b := bonesOf(s[cut:])
	found, left := -1, effort*len(b.text)+1<<16
	h.index.each(b, func(i int, a anchored) bool {
		m := matcher{bones: b, anchored: a}
		if _, whole := m.match(i, a.skip); !whole && m.open {
			found = cut + int(b.at[i])
		}
		left -= m.steps
		return found < 0 && left >= 0
	})
	return found
}
