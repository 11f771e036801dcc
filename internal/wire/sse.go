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
	lines lines
}

// NewEventReader reads from src. limit bounds one event in bytes, 0 for DefaultLimit.
func NewEventReader(src io.Reader, limit int) *EventReader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &EventReader{lines: lines{src: src, limit: limit}}
}

// Next returns the next event that carries data, an id or a retry time. Comments
// are skipped. The error is that of the stream, io.EOF at its end, or ErrTooLong
// for an event over the limit, after which reading may go on. An event that the
// stream broke off in the middle of is dropped, as the standard asks.
func (r *EventReader) Next() (Event, error) {
	var e Event
	var something bool
	for {
		l, err := r.lines.next()
		if errors.Is(err, errUnfinished) {
			return Event{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return Event{}, err
		}
		text := bytes.TrimSuffix(l.text, []byte{'\r'})
		if len(text) == 0 {
			if something {
				return e, nil
			}
			e = Event{}
			continue
		}
		if len(e.Data)+len(text) > r.lines.limit {
			return Event{}, ErrTooLong
		}
		if e.field(text, l.buf) {
			something = true
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
			e.Data, e.buf = value, buf
			if e.Data == nil {
				e.Data = []byte{}
			}
			return true
		}
		joined := make([]byte, 0, len(e.Data)+1+len(value))
		joined = append(append(append(joined, e.Data...), '\n'), value...)
		e.Data, e.buf = joined, nil
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
