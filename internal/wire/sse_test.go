package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func event(data string) Event { return Event{Data: []byte(data)} }

func sameEvent(a, b Event) bool {
	return a.Type == b.Type && a.ID == b.ID && a.HasID == b.HasID && a.Retry == b.Retry &&
		bytes.Equal(a.Data, b.Data) && (a.Data == nil) == (b.Data == nil)
}

func show(events []Event) (out []string) {
	for _, e := range events {
		out = append(out, fmt.Sprintf("{%s %q %t %v %.100q}", e.Type, e.ID, e.HasID, e.Retry, e.Data))
	}
	return out
}

// events reads to the end of the stream and returns how it ended.
func events(src io.Reader, limit int) (got []Event, err error) {
	r := NewEventReader(src, limit)
	for {
		e, err := r.Next()
		switch {
		case err == nil:
			got = append(got, e)
		case !errors.Is(err, ErrTooLong):
			return got, err
		default:
			got = append(got, event(err.Error()))
		}
	}
}

func TestReadsEventsAsTheStandardSays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stream string
		want   []Event
		err    error
	}{
		{"plain", "data: a\n\ndata:b\n\n", []Event{event("a"), event("b")}, io.EOF},
		{"one space is stripped, not two", "data:  a \n\n", []Event{event(" a ")}, io.EOF},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []Event{event("a"), event("b")}, io.EOF},
		{"CR alone", "data: a\r\rdata: b\r\r", []Event{event("a"), event("b")}, io.EOF},
		{"every break there is", "data: a\ndata: b\rdata: c\r\n\ndata: d\n\r\n", []Event{event("a\nb\nc"), event("d")}, io.EOF},
		{"several lines of data", "data: {\ndata\ndata: }\n\n", []Event{event("{\n\n}")}, io.EOF},
		{"all fields", "id: 7\nevent: message\nretry: 1500\ndata: a\n\n", []Event{{Type: "message", ID: "7", HasID: true, Retry: 1500 * time.Millisecond, Data: []byte("a")}}, io.EOF},
		{"an id alone", "id: 7\n\nid\n\n", []Event{{ID: "7", HasID: true}, {HasID: true}}, io.EOF},
		{"a retry alone", "retry: 5\n\n", []Event{{Retry: 5 * time.Millisecond}}, io.EOF},
		{"empty data", "data:\n\ndata\n\n", []Event{event(""), event("")}, io.EOF},
		{"comments and blank lines", ": ping\n\n\n:\ndata: a\n: x\n\n", []Event{event("a")}, io.EOF},
		{"a type without data is nothing", "event: x\n\ndata: a\n\n", []Event{event("a")}, io.EOF},
		{"unknown fields", "date: x\nData: x\ndata : x\ndata: a\n\n", []Event{event("a")}, io.EOF},
		{"an id with a zero byte", "id: a\x00b\ndata: a\n\n", []Event{event("a")}, io.EOF},
		{"retry times that are none", "retry: -1\nretry: +1\nretry: 1.5\nretry: 99999999999999\nretry: \ndata: a\n\n", []Event{event("a")}, io.EOF},
		{"a colon in the data", "data: a: b\n\n", []Event{event("a: b")}, io.EOF},
		{"a byte order mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", []Event{event("a")}, io.EOF},
		{"the end in the middle of an event", "data: a\n\ndata: b\n", []Event{event("a")}, io.ErrUnexpectedEOF},
		{"the end in the middle of a line", "data: a\n\ndata: b", []Event{event("a")}, io.ErrUnexpectedEOF},
		{"nothing", "", nil, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []io.Reader{
				strings.NewReader(tt.stream),
				iotest.OneByteReader(strings.NewReader(tt.stream)),
			} {
				got, err := events(src, 0)
				if !slices.EqualFunc(got, tt.want, sameEvent) || err != tt.err {
					t.Errorf("got  %v, %v\nwant %v, %v", show(got), err, show(tt.want), tt.err)
				}
			}
		})
	}
}

func TestAnEventOverTheLimitIsSkippedWhole(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, tt := range []struct{ name, stream string }{
		{"in one line", "data: " + long + "\n\n"},
		{"with more lines behind it", "data: " + long + "\ndata: rest\nid: 5\n\n"},
		{"in many lines", strings.Repeat("data: "+long[:50]+"\n", 4) + "data: rest\n\n"},
		{"behind an id", "id: 1\ndata: " + long + "\r\ndata: rest\r\n\r\n"},
	} {
		stream := "data: a\n\n" + tt.stream + "data: b\n\n"
		want := []Event{event("a"), event(ErrTooLong.Error()), event("b")}
		for _, src := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
			got, err := events(src, 100)
			if !slices.EqualFunc(got, want, sameEvent) || err != io.EOF {
				t.Errorf("%s: got %v, %v", tt.name, show(got), err)
			}
		}
	}
}

func TestTellsTheReasonAStreamBrokeOff(t *testing.T) {
	broken := errors.New("connection reset")
	for _, head := range []string{"", "data: a", "data: a\n", "data: a\n\n", strings.Repeat("x", 300)} {
		_, err := events(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), 100)
		if !errors.Is(err, broken) {
			t.Errorf("after %q: %v", abridge(head), err)
		}
	}
}

// A pretty-printed megabyte has many lines; joining them must not be quadratic.
func TestManyLinesOfDataAreJoinedInLinearSpace(t *testing.T) {
	const n = 20_000
	stream := []byte(strings.Repeat("data: 0123456789,\n", n) + "\n")
	used := allocated(func() {
		e, err := NewEventReader(bytes.NewReader(stream), 0).Next()
		if err != nil || len(e.Data) != 12*n-1 {
			t.Errorf("%d bytes, %v", len(e.Data), err)
		}
	})
	if used > uint64(20*len(stream)) {
		t.Errorf("%d bytes were allocated for a stream of %d", used, len(stream))
	}
}

func TestEventsSurviveWritingAndReading(t *testing.T) {
	large := `{"text":"` + strings.Repeat("x", 100_000) + `"}`
	var stream []byte
	var want []Event
	for i, data := range []string{"", " ", "a", " a", ":", "a\n", "\n", "a\n\nb", "data: x\n\nid: 5", large, large + "\n" + large} {
		e := event(data)
		e.Type, e.HasID = "message", i%2 == 0
		if e.HasID {
			e.ID = "id" + strconv.Itoa(i)
		}
		stream = AppendEvent(stream, e.ID, []byte(data))
		want = append(want, e)
	}
	got, err := events(bytes.NewReader(stream), 0)
	if !slices.EqualFunc(got, want, sameEvent) || err != io.EOF {
		t.Errorf("got  %v, %v\nwant %v", show(got), err, show(want))
	}
}

func TestAnEventIsWrittenFromParts(t *testing.T) {
	got := string(AppendEvent([]byte("x"), "", []byte(`{"id":`), []byte(`7`), []byte("\r\n}")))
	if want := "xevent: message\ndata: {\"id\":7\ndata: }\n\n"; got != want {
		t.Errorf("AppendEvent = %q, want %q", got, want)
	}
}

func TestAnEventIsAMessage(t *testing.T) {
	stream := AppendEvent(nil, "", []byte("{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"result\":\"\xff\"}"))
	stream = AppendEvent(stream, "", textResult(50<<10))
	stream = AppendEvent(stream, "", []byte("no message"))
	got, _ := events(bytes.NewReader(stream), 0)
	m, err := got[0].Message()
	if err != nil || m.Kind != Response || string(m.Result()) != "\"\ufffd\"" {
		t.Errorf("Message() = %q, %v", m.Raw, err)
	}
	m, err = got[1].Message()
	if err != nil || !bytes.Equal(m.Raw, textResult(50<<10)) || m.buf == nil {
		t.Errorf("a large event gave %s, %v", m.String(), err)
	}
	if m, err := got[2].Message(); !errors.Is(err, ErrSyntax) {
		t.Errorf("Message() = %s, %v", m.Raw, err)
	}
}
