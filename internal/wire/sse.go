package wire

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// Event is one server-sent event.
type Event struct {
	Type  string // empty means "message"
	ID    string
	HasID bool
	Retry time.Duration // 0 when the event did not say
	Data  []byte
	buf   *buffer
}

// Message parses the event's data as one JSON-RPC message, which then owns it.
func (e *Event) Message() (Message, error) {
	m, err := Parse(e.Data)
	if errors.Is(err, ErrUTF8) {
		m, err = Parse(bytes.ToValidUTF8(e.Data, []byte("\uFFFD")))
		return m, err
	}
	if err == nil {
		m.buf = e.buf
	}
	return m, err
}

// EventReader reads server-sent events from an HTTP body.
type EventReader struct {
	lines   lines
	started bool // past the first line
	skip    bool // the rest of an event that was too long is still to come
}

// NewEventReader reads from src. limit bounds one event in bytes, 0 for DefaultLimit.
func NewEventReader(src io.Reader, limit int) *EventReader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &EventReader{lines: lines{src: src, limit: limit, cr: true}}
}

// Expect says how large an event may well be, so that room is made for it at once
// rather than in steps. Larger tells how large the largest one was.
func (r *EventReader) Expect(size int) { r.lines.large = min(size, largestBuffer) }

// Larger is the size of the last large event, 0 if there was none.
func (r *EventReader) Larger() int { return r.lines.large }

// Next returns the next event that carries data, an id or a retry time. Comments
// are skipped. The error is that of the stream, io.EOF at its end, or ErrTooLong
// for an event over the limit, after which reading may go on. An event that the
// stream broke off in the middle of is dropped, as the standard asks; io.EOF is
// then io.ErrUnexpectedEOF.
func (r *EventReader) Next() (Event, error) {
	var e Event
	var begun, something bool
	for {
		l, err := r.line()
		if err == io.EOF && begun {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return Event{}, err
		}
		if len(l.text) == 0 {
			if something {
				return e, nil
			}
			e, begun = Event{}, false
			continue
		}
		begun = true
		if l.tooLong || len(e.Data)+len(l.text) > r.lines.limit {
			r.skip = true
			return Event{}, ErrTooLong
		}
		if e.field(l.text, l.buf) {
			something = true
		}
	}
}

// line is the next line that counts. Its error is the reason even if the stream
// ended within a line.
func (r *EventReader) line() (line, error) {
	for {
		l, err := r.lines.next()
		if err != nil {
			return line{}, err
		}
		if l.unfinished {
			if _, err = r.lines.next(); err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return line{}, err
		}
		if !r.started {
			r.started = true
			l.text = bytes.TrimPrefix(l.text, []byte("\xef\xbb\xbf"))
		}
		if r.skip = r.skip && len(l.text) > 0; !r.skip {
			return l, nil
		}
	}
}

// field takes in one line and reports whether it makes the event worth telling.
func (e *Event) field(text []byte, buf *buffer) bool {
	name, value, _ := bytes.Cut(text, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if e.Data == nil {
			e.Data, e.buf = value[:len(value):len(value)], buf
			if e.Data == nil {
				e.Data = []byte{}
			}
			return true
		}
		// The first line may lie in a buffer; appending moves it out of there.
		e.Data, e.buf = append(append(e.Data, '\n'), value...), nil
		return true
	case "event":
		e.Type = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.ID, e.HasID = string(value), true
			return true
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.Retry = time.Duration(ms) * time.Millisecond
			return true
		}
	}
	return false
}

// AppendEvent appends an event of type "message". id may be empty. Line breaks in
// data become several data lines, which the reader joins again.
func AppendEvent(dst []byte, id string, data ...[]byte) []byte {
	if id != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "event: message\ndata: "...)
	for _, part := range data {
		for {
			i := bytes.IndexAny(part, "\r\n")
			if i < 0 {
				dst = append(dst, part...)
				break
			}
			dst = append(dst, part[:i]...)
			if part[i] == '\n' { // a bare carriage return is white space here
				dst = append(dst, "\ndata: "...)
			}
			part = part[i+1:]
		}
	}
	return append(dst, "\n\n"...)
}
