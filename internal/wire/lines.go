package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// DefaultLimit is the largest message that passes unless somebody says otherwise.
const DefaultLimit = 64 << 20

// ErrTooLong: the message is larger than the limit.
var ErrTooLong = errors.New("message larger than the limit")

// lines splits a stream at line breaks. It hands out large lines together with
// the buffer they were read into, so that a megabyte is not copied once more,
// and copies small ones, so that an idle stream holds little memory.
type lines struct {
	src   io.Reader
	limit int
	cr    bool // a carriage return ends a line too

	buf       *buffer
	off, fill int  // what is read but not handed out: buf.b[off:fill]
	searched  int  // no line break in buf.b[off:searched]
	large     int  // size of the last large line: the next one is likely as large
	afterCR   bool // the last break was a carriage return; a line feed may belong to it
}

const (
	// keepSmall is up to where copying is cheaper than giving the buffer away.
	keepSmall = 4 << 10
	// keepEnd is how much is kept of each end of a line that is too long.
	keepEnd = 1 << 10
)

// line is one line without its break.
type line struct {
	text []byte
	buf  *buffer // whom text belongs to; nil if to itself
	size int
	// tooLong: text is only the beginning of the line, and tail its end.
	tooLong bool
	tail    []byte
	// unfinished: the stream ended before the line did.
	unfinished bool
}

// next returns the next line. The error is that of the stream.
func (l *lines) next() (line, error) {
	for {
		if l.off < l.fill {
			l.passLineFeed()
			if i := l.lineBreak(l.buf.b[l.searched:l.fill]); i >= 0 {
				return l.cut(l.searched + i), nil
			}
			l.searched = l.fill
			if l.fill-l.off > l.limit {
				return l.skip(), nil
			}
		}
		if err := l.read(); err != nil {
			return l.rest(err)
		}
	}
}

// lineBreak is the place of the first line break in b, -1 if there is none.
func (l *lines) lineBreak(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if !l.cr {
		return i
	}
	if i >= 0 {
		b = b[:i]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return i
}

// passLineFeed steps over the second half of a break that has been used already.
func (l *lines) passLineFeed() {
	if l.afterCR && l.buf.b[l.off] == '\n' {
		l.off++
		l.searched = max(l.searched, l.off)
	}
	l.afterCR = false
}

func (l *lines) read() error {
	switch {
	case l.buf == nil:
		l.buf = newBuffer(l.waitWith())
	case l.off == l.fill:
		l.off, l.fill, l.searched = 0, 0, 0
		if len(l.buf.b) > l.waitWith() { // the wait for more may be long
			l.buf.release()
			l.buf = newBuffer(l.waitWith())
		}
	case l.fill == len(l.buf.b):
		l.makeRoom()
	}
	n, err := l.fetch(l.buf.b[l.fill:])
	l.fill += n
	return err
}

// waitWith is how large a buffer to hold while waiting for the next line. Where
// lines have been of some kilobytes, the next one should not take two reads and a
// move; for larger ones that matters little, and the memory would matter.
func (l *lines) waitWith() int {
	if l.large > smallestBuffer {
		return 4 * smallestBuffer
	}
	return smallestBuffer
}

// fetch reads at least one byte into p, or says why not.
func (l *lines) fetch(p []byte) (int, error) {
	for range 100 { // readers may return nothing a few times, not for ever
		if n, err := l.src.Read(p); n > 0 || err != nil {
			if n > 0 {
				err = nil // it will come again
			}
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// makeRoom moves what is unread to the front, into a larger buffer if the
// current one is full of a single line.
func (l *lines) makeRoom() {
	old, held := l.buf, l.fill-l.off
	if l.off > 0 && held <= len(old.b)/2 {
		copy(old.b, old.b[l.off:l.fill])
	} else {
		// What is held is within the limit, so there is room for a little more.
		guess := max(4*held, min(l.large+1, largestBuffer))
		l.buf = newBuffer(min(guess, l.limit+smallestBuffer))
		copy(l.buf.b, old.b[l.off:l.fill])
		old.release()
	}
	l.searched -= l.off
	l.off, l.fill = 0, held
}

// cut hands out the line that ends at the break buf.b[end].
func (l *lines) cut(end int) line {
	text := l.buf.b[l.off:end]
	rest := l.buf.b[end+1 : l.fill]
	l.afterCR = l.buf.b[end] == '\r'
	if len(text) <= keepSmall || len(rest) > len(text) || len(text) > l.limit {
		l.off, l.searched = end+1, end+1
		if len(text) > l.limit {
			return l.shortened(text)
		}
		l.large -= l.large / 4 // what comes now is small
		return line{text: bytes.Clone(text), size: len(text)}
	}
	given := l.buf
	l.large = len(text)
	l.buf, l.off, l.fill, l.searched = nil, 0, 0, 0
	if len(rest) > 0 {
		l.buf = newBuffer(len(rest) + 1)
		l.fill = copy(l.buf.b, rest)
	}
	return line{text: text[:len(text):len(text)], buf: given, size: len(text)}
}

// shortened is what is kept of a line that is too long: both of its ends.
func (l *lines) shortened(text []byte) line {
	keep := min(l.limit, keepEnd)
	return line{
		text:    bytes.Clone(text[:keep]),
		tail:    bytes.Clone(text[len(text)-keep:]),
		size:    len(text),
		tooLong: true,
	}
}

// skip reads past a line that has become too long.
func (l *lines) skip() line {
	out := l.shortened(l.buf.b[l.off:l.fill])
	l.buf.release()
	l.buf, l.off, l.fill, l.searched = newBuffer(64<<10), 0, 0, 0
	for keep := len(out.tail); ; {
		n, err := l.fetch(l.buf.b)
		if err != nil { // the next read will meet it again
			out.unfinished = true
			return out
		}
		chunk := l.buf.b[:n]
		end := l.lineBreak(chunk)
		if end >= 0 {
			l.off, l.searched, l.fill = end+1, end+1, n
			l.afterCR = chunk[end] == '\r'
			chunk = chunk[:end]
		}
		out.size += len(chunk)
		out.tail = append(out.tail, chunk[max(0, len(chunk)-keep):]...)
		out.tail = append(out.tail[:0], out.tail[len(out.tail)-keep:]...)
		if end >= 0 {
			return out
		}
	}
}

// rest hands out what stood behind the last line break when the stream ended.
func (l *lines) rest(err error) (line, error) {
	if l.off == l.fill {
		if l.buf != nil {
			l.buf.release()
			l.buf, l.off, l.fill, l.searched = nil, 0, 0, 0
		}
		return line{}, err
	}
	text := bytes.Clone(l.buf.b[l.off:l.fill])
	l.off = l.fill
	return line{text: text, size: len(text), unfinished: true}, nil
}

// Junk is a line on a protocol stream that is no message, and why.
type Junk struct {
	// Text is the line, or the first few kilobytes of it.
	Text []byte
	// Size of the whole line in bytes.
	Size int
	// Reason wraps ErrSyntax, ErrDepth, ErrEnvelope or ErrTooLong.
	Reason error
	// ID of the reply this line was meant to be, as written; nil if it says nothing
	// of JSON-RPC or not whose reply it is.
	ID []byte
	// Unfinished: the stream ended before the line did.
	Unfinished bool
}

// LineReader reads messages from a stdio stream, one a line.
//
// What is no message is reported and skipped; the stream goes on at the next
// line. Bytes that are not UTF-8 are replaced by U+FFFD. Blank lines, carriage
// returns, byte order marks and several messages on a line are accepted.
type LineReader struct {
	lines   lines
	junk    func(Junk)
	waiting []Message
}

// NewLineReader reads from src. limit is the largest message in bytes, 0 for
// DefaultLimit. junk may be nil; it is called on the goroutine that calls Next.
func NewLineReader(src io.Reader, limit int, junk func(Junk)) *LineReader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	if junk == nil {
		junk = func(Junk) {}
	}
	return &LineReader{lines: lines{src: src, limit: limit}, junk: junk}
}

// Next returns the next message. The error is that of the stream, io.EOF at its
// end; no content of the stream can cause one.
func (r *LineReader) Next() (Message, error) {
	for {
		if len(r.waiting) > 0 {
			m := r.waiting[0]
			r.waiting = r.waiting[1:]
			return m, nil
		}
		l, err := r.lines.next()
		if err != nil {
			return Message{}, err
		}
		if l.tooLong {
			r.junk(Junk{Text: l.text, Size: l.size, Reason: ErrTooLong, ID: salvageID(l.text, l.tail), Unfinished: l.unfinished})
			continue
		}
		// A whole message at the end counts even without its line break.
		if m, ok := r.understand(l); ok {
			return m, nil
		}
	}
}

func (r *LineReader) understand(l line) (Message, bool) {
	text := bytes.TrimPrefix(l.text, []byte("\xef\xbb\xbf"))
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return Message{}, false
	}
	m, err := Parse(text)
	if err != nil && !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
		l.buf = nil
		m, err = Parse(text)
	}
	if err == nil {
		m.buf = l.buf
		return m, true
	}
	if several := split(text); len(several) > 0 {
		r.waiting = several[1:]
		return several[0], true
	}
	r.report(l, text, err)
	return Message{}, false
}

// report tells of a line that is no message. Whoever keeps the report must not
// keep a large buffer with it.
func (r *LineReader) report(l line, text []byte, why error) {
	j := Junk{
		Text:       text,
		Size:       l.size,
		Reason:     why,
		ID:         salvageID(text, text[max(0, len(text)-keepEnd):]),
		Unfinished: l.unfinished,
	}
	if l.buf != nil || len(text) > keepSmall {
		j.Text = bytes.Clone(text[:min(len(text), keepSmall)])
	}
	if l.buf != nil {
		l.buf.release()
	}
	r.junk(j)
}

// split takes apart a line of several messages: one behind the other, or the
// array that JSON-RPC calls a batch. All of it must be messages, or none counts.
func split(text []byte) []Message {
	var out []Message
	if text[0] == '[' {
		ok := Valid(text) == nil
		if ok {
			EachElement(text, func(element []byte) {
				m, err := Parse(element)
				ok = ok && err == nil
				out = append(out, m)
			})
		}
		if !ok {
			return nil
		}
		return out
	}
	for rest := text; len(rest) > 0; {
		m, end, err := parse(rest)
		if err != nil {
			return nil
		}
		m.Raw = rest[:end:end]
		out = append(out, m)
		rest = bytes.TrimSpace(rest[end:])
	}
	return out
}

// salvageID looks for a reply's id where encoders put it: before the result, or at
// the very end. A request's id is the peer's own and not looked for.
func salvageID(head, tail []byte) []byte {
	var id []byte
	versioned := false
	i := skipSpace(head, 0)
	if i == len(head) || head[i] != '{' {
		return nil
	}
	for i < len(head) && (head[i] == '{' || head[i] == ',') {
		start := skipSpace(head, i+1)
		end, value, err := scanKey(head, start)
		if err != nil || value == len(head) {
			break
		}
		switch string(head[start+1 : end-1]) {
		case "jsonrpc":
			versioned = true
		case "id":
			if id != nil {
				return nil
			}
			if id = scalarAt(head[value:]); id == nil {
				return nil
			}
		case "result", "error":
			if id == nil {
				return idAtEnd(tail, versioned)
			}
			if !versioned {
				return nil // a log line with members of these names
			}
			return id
		default:
			return nil
		}
		if i, err = scanScalar(head, value); err != nil {
			break
		}
		i = skipSpace(head, i)
	}
	if versioned { // cut off before it said what it is
		return id
	}
	return nil
}

// idAtEnd reads `, "id": 5 }`, with the version before it if that was not read yet.
func idAtEnd(tail []byte, versioned bool) []byte {
	const key = `"id"`
	at := bytes.LastIndex(tail, []byte(key))
	if at < 0 || !versioned && !bytes.Contains(tail[max(0, at-len(key)-len(`"jsonrpc" : "2.0"`)):at], []byte(`"jsonrpc"`)) || !bytes.HasSuffix(bytes.TrimRight(tail[:at], " \t"), []byte{','}) {
		return nil
	}
	_, value, err := scanKey(tail, at)
	if err != nil {
		return nil
	}
	id := scalarAt(tail[value:])
	if id == nil || string(bytes.TrimSpace(tail[value+len(id):])) != "}" {
		return nil
	}
	return id
}

func scalarAt(b []byte) []byte {
	if len(b) == 0 || b[0] != '"' && b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return nil
	}
	end, err := scanScalar(b, 0)
	if err != nil || end == len(b) {
		return nil
	}
	return bytes.Clone(b[:end])
}

// Answer is what whoever sent the line should hear, if it was meant as a request.
// Without an id nobody waits for it, and clients complain of an answer to nothing.
func (j Junk) Answer() (Message, bool) {
	id := garbledID(j.Text)
	if id == nil {
		return Message{}, false
	}
	code := CodeParse
	if errors.Is(j.Reason, ErrEnvelope) {
		code = CodeInvalidRequest
	}
	return NewError(id, code, j.Reason.Error(), nil), true
}

// garbledID finds the id of what was meant as a request, nil if it was something
// else: an answer to a question of ours must not be taken for one.
func garbledID(text []byte) []byte {
	if !bytes.Contains(text, []byte(`"method"`)) {
		return nil
	}
	_, rest, ok := bytes.Cut(text, []byte(`"id"`))
	if !ok {
		return nil
	}
	rest = bytes.TrimLeft(rest, ": \t")
	end := bytes.IndexAny(rest, ",}")
	if end <= 0 {
		return nil
	}
	id := bytes.TrimSpace(rest[:end])
	if Valid(id) != nil || id[0] == '{' || id[0] == '[' || string(id) == "null" {
		return nil
	}
	return bytes.Clone(id)
}

func (j Junk) String() string {
	const most = 200
	text := j.Text
	if len(text) > most {
		text = text[:most]
	}
	return fmt.Sprintf("%v: %q (%d bytes)", j.Reason, text, j.Size)
}
