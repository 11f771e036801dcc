package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

	buf       *buffer
	off, fill int // what is read but not handed out: buf.b[off:fill]
	searched  int // no line break in buf.b[off:searched]
	large     int // size of the last large line: the next one is likely as large
}

// keepSmall is up to where copying is cheaper than giving the buffer away.
const keepSmall = 4 << 10

// line is one line without its break. When it was too long, text holds only its
// beginning and tail its end.
type line struct {
	text []byte
	buf  *buffer // whom text belongs to; nil if to itself
	tail []byte
	size int
}

func (l *lines) next() (line, error) {
	for {
		if l.buf != nil {
			if i := bytes.IndexByte(l.buf.b[l.searched:l.fill], '\n'); i >= 0 {
				return l.cut(l.searched + i), nil
			}
			l.searched = l.fill
			if l.fill-l.off > l.limit {
				return l.skip()
			}
		}
		if err := l.read(); err != nil {
			return l.rest(err)
		}
	}
}

func (l *lines) read() error {
	switch {
	case l.buf == nil:
		l.buf = newBuffer(smallestBuffer)
	case l.off == l.fill:
		l.off, l.fill, l.searched = 0, 0, 0
	case l.fill == len(l.buf.b):
		l.makeRoom()
	}
	for range 100 { // readers may return nothing a few times, not for ever
		n, err := l.src.Read(l.buf.b[l.fill:])
		l.fill += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom moves what is unread to the front, into a larger buffer if the
// current one is full of a single line.
func (l *lines) makeRoom() {
	old, held := l.buf, l.fill-l.off
	if l.off > 0 && held <= len(old.b)/2 {
		copy(old.b, old.b[l.off:l.fill])
	} else {
		l.buf = newBuffer(min(max(4*held, l.large+1), max(l.limit+smallestBuffer, 2*held)))
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
	if len(text) <= keepSmall || len(rest) > len(text) {
		l.off, l.searched = end+1, end+1
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

// skip reads past a line that is too long, keeping both of its ends.
func (l *lines) skip() (line, error) {
	const keep = 1 << 10
	held := l.buf.b[l.off:l.fill]
	out := line{text: bytes.Clone(held[:keep]), size: len(held)}
	tail := bytes.Clone(held[len(held)-keep:])
	l.buf.release()
	l.buf, l.off, l.fill, l.searched = newBuffer(64<<10), 0, 0, 0
	for {
		n, err := l.src.Read(l.buf.b)
		chunk := l.buf.b[:n]
		end := bytes.IndexByte(chunk, '\n')
		if end >= 0 {
			l.off, l.searched, l.fill = end+1, end+1, n
			chunk = chunk[:end]
		}
		out.size += len(chunk)
		if len(chunk) >= keep {
			tail = append(tail[:0], chunk[len(chunk)-keep:]...)
		} else {
			tail = append(tail, chunk...)
			tail = tail[max(0, len(tail)-keep):]
		}
		if end >= 0 || err != nil {
			out.tail = tail
			return out, ErrTooLong
		}
	}
}

// rest hands out what stood behind the last line break when the stream ended.
func (l *lines) rest(err error) (line, error) {
	if l.buf == nil || l.off == l.fill {
		if l.buf != nil {
			l.buf.release()
			l.buf = nil
		}
		return line{}, err
	}
	text := bytes.Clone(l.buf.b[l.off:l.fill])
	l.off = l.fill
	return line{text: text, size: len(text)}, errUnfinished
}

// errUnfinished marks a last line that had no line break.
var errUnfinished = errors.New("the stream ended in the middle of a line")

// Junk is a line on a protocol stream that is no message, and why.
type Junk struct {
	// Text is the line, or its beginning.
	Text []byte
	// Size of the whole line in bytes.
	Size int
	// Reason wraps ErrSyntax, ErrDepth, ErrEnvelope or ErrTooLong.
	Reason error
	// ID of the reply this line seems to have been, as written; nil if it
	// cannot be told. Good for failing that call early, not for trusting it.
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
		switch {
		case errors.Is(err, ErrTooLong):
			r.junk(Junk{Text: l.text, Size: l.size, Reason: ErrTooLong, ID: salvageID(l.text, l.tail)})
			continue
		case errors.Is(err, errUnfinished):
			// A whole message without its line break still counts.
			if m, perr := Parse(bytes.TrimSpace(l.text)); perr == nil {
				return m, nil
			}
			r.junk(Junk{Text: l.text, Size: l.size, Reason: ErrSyntax, ID: salvageID(l.text, nil), Unfinished: true})
			continue
		case err != nil:
			return Message{}, err
		}
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
	if errors.Is(err, ErrUTF8) {
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
	r.junk(Junk{Text: text, Size: l.size, Reason: err, ID: salvageID(text, text[max(0, len(text)-1024):])})
	return Message{}, false
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

// salvageID looks for a reply's id where encoders put it: right behind the
// version at the front, or at the very end.
func salvageID(head, tail []byte) []byte {
	for _, opening := range [...]string{`{"jsonrpc":"2.0","id":`, `{"id":`} {
		if after, ok := bytes.CutPrefix(head, []byte(opening)); ok {
			return scalarAt(after)
		}
	}
	tail = bytes.TrimRight(tail, " \r\n\t")
	if i := bytes.LastIndex(tail, []byte(`,"id":`)); i >= 0 {
		id := scalarAt(tail[i+len(`,"id":`):])
		if id != nil && string(tail[i+len(`,"id":`)+len(id):]) == "}" {
			return id
		}
	}
	return nil
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

func (j Junk) String() string {
	const most = 200
	text := j.Text
	if len(text) > most {
		text = text[:most]
	}
	return fmt.Sprintf("%v: %q (%d bytes)", j.Reason, text, j.Size)
}
