package secret

import (
	"cmp"
	"slices"
	"strings"
)

// A secret that is known comes back in pieces as often as whole: folded by YAML, cut at
// 76 signs by MIME, joined by + in source text, each line behind the date of a
// log. So it is looked for in what is left of a text when everything is dropped
// that only separates. What a line begins with may stand between two pieces.

// dropped are the bytes that separate pieces, and those that escape others.
var dropped = func() (d [256]bool) {
	for _, c := range []byte(" \t\r\n\v\f\"'`\\+,:") {
		d[c] = true
	}
	return d
}()

const (
	anchor   = 4   // bytes by which the beginning of a form is found
	leastRun = 8   // a form that is shorter in its bones is only found as it stands
	prefix   = 120 // bytes that may stand in front of a piece on its line
	resyncs  = 4096
	effort   = 64 // comparisons for each byte of a text; what takes more was made for that
)

// bones are a text without what is dropped.
type bones struct {
	text  []byte
	at    []int32  // where each byte stands in the whole
	lines []int32  // where lines begin in text, ascending
	begin []uint64 // a bit for each of them
	whole string
}

func bonesOf(s string) *bones {
	b := &bones{text: make([]byte, 0, len(s)), at: make([]int32, 0, len(s)), begin: make([]uint64, len(s)/64+1), whole: s}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if escapesLine(s, i) {
			c = '\n'
			i++
		}
		switch {
		case c == '\n':
			if n := int32(len(b.text)); len(b.lines) == 0 || b.lines[len(b.lines)-1] != n {
				b.lines = append(b.lines, n)
				b.begin[n>>6] |= 1 << (n & 63)
			}
		case !dropped[c]:
			b.text, b.at = append(b.text, c), append(b.at, int32(i))
		}
	}
	return b
}

func bone(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if escapesLine(s, i) {
			i++
		} else if !dropped[s[i]] {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// escapesLine reports whether a line break stands there as JSON and programs write it.
// In a form of a secret the same two signs are dropped, whatever they stand for.
func escapesLine(s string, i int) bool {
	return s[i] == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 'r')
}

// line returns where the line behind the one of i begins.
func (b *bones) line(i int) int {
	n, _ := slices.BinarySearch(b.lines, int32(i)+1)
	if n == len(b.lines) {
		return len(b.text)
	}
	return int(b.lines[n])
}

func (b *bones) isLine(i int) bool { return b.begin[i>>6]&(1<<(i&63)) != 0 }

// isStart reports whether no letter or digit stands in front of a byte.
func (b *bones) isStart(i int) bool {
	at := b.at[i]
	return at == 0 || !isLetter(b.whole[at-1]) && !isDigit(b.whole[at-1])
}

// A span is a part of a text that is hidden.
type span struct {
	start, end int
	form       *form
}

// An index finds the forms that may begin at a place by four bytes.
type index struct {
	seen  [1 << 10]uint64
	forms map[[anchor]byte][]anchored
}

// anchored is a form, and how much of it was before those bytes: a line may have ended
// in between.
type anchored struct {
	form *form
	skip int
}

func (x *index) add(f *form) {
	if x.forms == nil {
		x.forms = make(map[[anchor]byte][]anchored)
	}
	for skip := 0; skip < anchor && skip+leastRun <= len(f.bones); skip++ {
		key := [anchor]byte([]byte(f.bones[skip : skip+anchor]))
		x.forms[key] = append(x.forms[key], anchored{f, skip})
		bit := hash(key[:])
		x.seen[bit>>6] |= 1 << (bit & 63)
	}
}

func hash(b []byte) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) * 2654435761 >> 16
}

// find returns the parts of s that are a form, in the order of their beginning.
func (x *index) find(s string, spans []span) []span {
	if len(x.forms) == 0 || len(s) < leastRun {
		return spans
	}
	b := bonesOf(s)
	left := effort*len(b.text) + 1<<16
	x.each(b, func(i int, a anchored) bool {
		m := matcher{bones: b, anchored: a}
		pieces, _ := m.match(i, a.skip)
		spans = append(spans, pieces...)
		if left -= m.steps; left < 0 {
			// Rather nothing is shown than that somebody waits, or a secret slips by.
			spans = append(spans, span{int(b.at[i]), len(s), &form{mark: Mark}})
		}
		return left >= 0
	})
	return spans
}

// each calls yield with every place at which a form may begin, until it returns false.
func (x *index) each(b *bones, yield func(i int, a anchored) bool) {
	for i := 0; i+anchor <= len(b.text); i++ {
		if bit := hash(b.text[i:]); x.seen[bit>>6]&(1<<(bit&63)) == 0 {
			continue
		}
		for _, a := range x.forms[[anchor]byte(b.text[i:])] {
			if a.skip > 0 && !b.isStart(i) {
				continue
			}
			if !yield(i, a) {
				return
			}
		}
	}
}

type matcher struct {
	*bones
	anchored
	steps   int  // comparisons
	resyncs int  // places that were tried for the rest of the form
	open    bool // the text ended before the form did
}

// match follows a form from a place on, over lines. It returns its pieces; those of a form
// that breaks off where a line does, too, if there is enough of it.
func (m *matcher) match(i, k int) (pieces []span, whole bool) {
	f, start := m.form.bones, i
	lastEnd, lastK := -1, 0 // the last place where a line ended in here
	for ; k < len(f) && i < len(m.text); i, k = i+1, k+1 {
		m.steps++
		if i > start && m.isLine(i) {
			lastEnd, lastK = i, k
		}
		if m.text[i] != f[k] {
			break
		}
	}
	if k == len(f) {
		return []span{m.span(start, i)}, true
	}
	if i == len(m.text) || m.isLine(i) {
		lastEnd, lastK = i, k
		m.open = m.open || i == len(m.text)
	}
	if lastEnd <= start || lastK < anchor {
		return nil, false
	}
	first := m.span(start, lastEnd)
	var short []span // ends in the middle of a word
	var cut []span   // goes on where the text does not
	line := lastEnd
	for range 2 { // one line may have nothing on it but what is dropped
		end := m.line(line)
		for p := line; p < end && p-line <= prefix; p++ {
			if p == lastEnd || m.text[p] != f[lastK] || !m.isStart(p) {
				continue
			}
			if m.resyncs++; m.resyncs > resyncs {
				return []span{first}, false
			}
			n := common(m.text[p:end], f[lastK:])
			m.steps += n
			switch {
			case lastK+n == len(f) && (n >= anchor || m.isEnd(p+n)):
				return []span{first, m.span(p, p+n)}, true
			case lastK+n == len(f) && short == nil:
				short = []span{first, m.span(p, p+n)}
				continue
			case p+n < end:
				continue
			}
			rest, ok := m.match(p, lastK)
			if ok {
				return append([]span{first}, rest...), true
			}
			if m.open && rest != nil && cut == nil {
				cut = append([]span{first}, rest...)
			}
		}
		line = end
	}
	if short != nil {
		return short, true
	}
	if cut != nil {
		return cut, false
	}
	if lastK-m.skip >= shortest {
		return []span{first}, false
	}
	return nil, false
}

// isEnd reports whether no letter or digit follows on what stands before i.
func (m *matcher) isEnd(i int) bool {
	at := int(m.at[i-1]) + 1
	return at == len(m.whole) || !isLetter(m.whole[at]) && !isDigit(m.whole[at])
}

func common(text []byte, f string) int {
	n := 0
	for n < len(text) && n < len(f) && text[n] == f[n] {
		n++
	}
	return n
}

func (m *matcher) span(i, end int) span {
	s := span{int(m.at[i]), int(m.at[end-1]) + 1, m.form}
	// Escapes in front of the first byte, and quotes, are not its own; a sign at either
	// end that was dropped from the form is.
	for _, c := range m.form.lead {
		if s.start == 0 || m.whole[s.start-1] != byte(c) {
			break
		}
		s.start--
	}
	for _, c := range m.form.trail {
		if s.end == len(m.whole) || m.whole[s.end] != byte(c) {
			break
		}
		s.end++
	}
	if !m.form.base64 {
		return s
	}
	return around(m.whole, s)
}

// render puts marks in the place of spans. Lines stay lines: a secret of three is
// three marks.
func render(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var b strings.Builder
	done := 0
	for i := 0; i < len(spans); {
		hidden := spans[i]
		longest := hidden
		for i++; i < len(spans) && spans[i].start < hidden.end; i++ {
			if spans[i].end-spans[i].start > longest.end-longest.start {
				longest = spans[i]
			}
			hidden.end = max(hidden.end, spans[i].end)
		}
		b.WriteString(s[done:hidden.start])
		markLines(&b, s[hidden.start:hidden.end], longest.form.mark)
		done = hidden.end
	}
	b.WriteString(s[done:])
	return b.String()
}

// markLines writes a mark for each line of a text, and what the lines are indented by.
func markLines(b *strings.Builder, hidden, mark string) {
	for first := true; ; first = false {
		line, rest, more := strings.Cut(hidden, "\n")
		bare := strings.TrimLeft(line, " \t")
		if first {
			bare = line
		}
		if b.WriteString(line[:len(line)-len(bare)]); strings.TrimSpace(bare) != "" {
			b.WriteString(mark)
		}
		if !more {
			return
		}
		if strings.HasSuffix(line, "\r") {
			b.WriteByte('\r')
		}
		b.WriteByte('\n')
		hidden = rest
	}
}
