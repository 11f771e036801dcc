package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// reply is a good message with the given id.
func reply(id int) string { return `{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"result":{}}` }

// readAll reads to the end of the stream and returns what came and what did not.
func readAll(t testing.TB, src io.Reader, limit int) (got []string, junk []Junk) {
	t.Helper()
	r := NewLineReader(src, limit, func(j Junk) { junk = append(junk, j) })
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, junk
		}
		if err != nil {
			t.Fatalf("Next() = %v", err)
		}
		got = append(got, string(m.Raw))
		m.Release()
	}
}

func TestSkipsWhatIsNoMessageAndGoesOn(t *testing.T) {
	a, b := reply(1), reply(2)
	for _, tt := range []struct {
		name   string
		stream string
		want   []string
		junk   []error
		id     string // of the only junk
	}{
		{"B01 text at the start and in the middle", "Server ready\n" + a + "\nwarning: x\n" + b + "\n", []string{a, b}, []error{ErrSyntax, ErrSyntax}, ""},
		{"B02 a log line in JSON", a + "\n" + `{"level":"info","id":9,"msg":"x"}` + "\n" + b + "\n", []string{a, b}, []error{ErrEnvelope}, ""},
		{"B03 two messages on a line", a + b + "\n" + a + " \t" + b + "\n", []string{a, b, a, b}, nil, ""},
		{"B03 CRLF", a + "\r\n" + b + "\r\n", []string{a, b}, nil, ""},
		{"B03 blank lines", "\n\n" + a + "\n \t\r\n\n" + b + "\n\n", []string{a, b}, nil, ""},
		{"B03 a byte order mark", "\ufeff" + a + "\n" + b + "\n", []string{a, b}, nil, ""},
		{"a batch", "[" + a + " , " + b + "]\n", []string{a, b}, nil, ""},
		{"a batch with something else in it", "[" + a + ",1]\n" + b + "\n", []string{b}, []error{ErrEnvelope}, ""},
		{"an empty batch", "[]\n" + a + "\n", []string{a}, []error{ErrEnvelope}, ""},
		{"a good and a broken message on a line", a + b[:9] + "\n" + b + "\n", []string{b}, []error{ErrSyntax}, "1"},
		{"B04 half a reply, then a good one", a[:30] + "\n" + b + "\n", []string{b}, []error{ErrSyntax}, "1"},
		{"B05 text in front of a reply", "INFO " + a + "\n" + b + "\n", []string{b}, []error{ErrSyntax}, ""},
		{"B08 bytes that are not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\xfe\"}\n", []string{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\ufffd\"}"}, nil, ""},
		{"B08 the same in the second message of a line", a + "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}\n", []string{a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\ufffd\"}"}, nil, ""},
		{"B08 a lone surrogate", `{"jsonrpc":"2.0","id":1,"result":"\ud800"}` + "\n", []string{`{"jsonrpc":"2.0","id":1,"result":"\ud800"}`}, nil, ""},
		{"B08 a zero byte", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\x00\"}\n" + b + "\n", []string{b}, []error{ErrSyntax}, "1"},
		{"B09 the same reply twice", a + "\n" + a + "\n", []string{a, a}, nil, ""},
		{"B10 a result for nobody", `{"jsonrpc":"2.0","id":null,"result":{}}` + "\n" + a + "\n", []string{a}, []error{ErrEnvelope}, ""},
		{"B10 ids that look alike", `{"jsonrpc":"2.0","id":"1","result":{}}` + "\n" + a + "\n", []string{`{"jsonrpc":"2.0","id":"1","result":{}}`, a}, nil, ""},
		{"B15 a member twice", `{"jsonrpc":"2.0","id":1,"id":2,"result":{}}` + "\n" + b + "\n", []string{b}, []error{ErrEnvelope}, ""},
		{"B15 a member in capitals", `{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}` + "\n" + b + "\n", []string{b}, []error{ErrEnvelope}, "1"},
		{"no break behind the last message", a + "\n" + b, []string{a, b}, nil, ""},
		{"the same, with other dirt", a + "\n\ufeff" + a + b + " \r", []string{a, a, b}, nil, ""},
		{"only spaces behind the last break", a + "\n  ", []string{a}, nil, ""},
		{"nothing", "", nil, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []io.Reader{
				strings.NewReader(tt.stream),
				iotest.OneByteReader(strings.NewReader(tt.stream)),
				iotest.DataErrReader(strings.NewReader(tt.stream)),
			} {
				got, junk := readAll(t, src, 0)
				if !slices.Equal(got, tt.want) {
					t.Errorf("got  %q\nwant %q", got, tt.want)
				}
				if !slices.EqualFunc(junk, tt.junk, func(j Junk, want error) bool { return errors.Is(j.Reason, want) }) {
					t.Fatalf("junk %v, want %v", junk, tt.junk)
				}
				if tt.id != "" && string(junk[0].ID) != tt.id {
					t.Errorf("the junk's id is %s, want %s", junk[0].ID, tt.id)
				}
				for _, j := range junk {
					if tt.id == "" && j.ID != nil {
						t.Errorf("%v was taken for a reply to %s", j, j.ID)
					}
					if j.Unfinished {
						t.Errorf("%v is said to be unfinished", j)
					}
				}
			}
		})
	}
}

func TestReportsALineTheStreamBrokeOffIn(t *testing.T) {
	for _, limit := range []int{0, 40} {
		stream := reply(1) + "\n" + `{"jsonrpc":"2.0","id":2,"result":{"text":"the server died h`
		got, junk := readAll(t, strings.NewReader(stream), limit)
		if len(got) != 1 || len(junk) != 1 {
			t.Fatalf("limit %d: got %q, junk %v", limit, got, junk)
		}
		if j := junk[0]; !j.Unfinished || string(j.ID) != "2" || j.Size != len(stream)-len(reply(1))-1 {
			t.Errorf("limit %d: %+v", limit, j)
		}
	}
}

func TestALineIsBoundedExactly(t *testing.T) {
	message := func(size int) string {
		const frame = `{"jsonrpc":"2.0","id":1,"result":""}`
		return frame[:len(frame)-2] + strings.Repeat("x", size-len(frame)) + `"}`
	}
	for _, limit := range []int{40, 1000, 1023, 1025, 8 << 10, 8<<10 + 1, 100_000} {
		for _, size := range []int{limit - 1, limit, limit + 1, limit + 2, 2 * limit, 10 * limit} {
			size = max(size, 36)
			text := message(size)
			stream := reply(5) + "\n" + text + "\n" + reply(6) + "\n"
			for _, src := range []io.Reader{strings.NewReader(stream), iotest.HalfReader(strings.NewReader(stream))} {
				got, junk := readAll(t, src, limit)
				want := []string{reply(5), text, reply(6)}
				if size > limit {
					want = []string{reply(5), reply(6)}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("limit %d, line of %d: %d messages arrived, want %d", limit, size, len(got), len(want))
				}
				if size <= limit {
					continue
				}
				if len(junk) != 1 || !errors.Is(junk[0].Reason, ErrTooLong) || junk[0].Size != size || string(junk[0].ID) != "1" {
					t.Fatalf("limit %d, line of %d: junk %+v", limit, size, junk)
				}
				if !strings.HasPrefix(text, string(junk[0].Text)) {
					t.Errorf("limit %d, line of %d: the junk begins %q", limit, size, junk[0].Text)
				}
			}
		}
	}
}

func TestKnowsAReplyFromItsEnds(t *testing.T) {
	filler := strings.Repeat("x", 5000)
	for _, tt := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":7,"result":"` + filler + `"}`, `7`},
		{`{"jsonrpc":"2.0","id":"a\"b","result":"` + filler + `"}`, `"a\"b"`},
		{`{"id":-7,"jsonrpc":"2.0","result":"` + filler + `"}`, `-7`},
		{`{"result":"` + filler + `","jsonrpc":"2.0","id":12345}` + " \r", `12345`},
		{`{"jsonrpc":"2.0","result":"` + filler + `","id":"z"}`, `"z"`},
		{`{"jsonrpc":"2.0","result":{"x":"` + filler + `","id":"inner"}}`, ``},
		{`{"jsonrpc":"2.0","id":null,"result":"` + filler + `"}`, ``},
		{`{"jsonrpc":"2.0","id":{},"result":"` + filler + `"}`, ``},
		{`{"jsonrpc": "2.0", "id": 7, "result": "` + filler + `"}`, `7`},
		{`{"jsonrpc": "2.0", "result": "` + filler + `", "id": 7}`, `7`},
		{filler, ``},
		// Log lines with members of these names.
		{`{"id":7,"result":"` + filler + `"}`, ``},
		{`{"result":"` + filler + `","id":7}`, ``},
		{`{"error":null,"msg":"` + filler + `","id":7}`, ``},
		{`{"level":"info","text":"` + filler + `","id":7}`, ``},
		{`{"id":7,"level":"info","text":"` + filler + `"}`, ``},
		// A request of the server carries the server's own id, not one of ours.
		{`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":"` + filler + `"}`, ``},
		{`{"id":7,"method":"sampling/createMessage","params":"` + filler + `"}`, ``},
		{`{"jsonrpc":"2.0","method":"sampling/createMessage","params":"` + filler + `","id":7}`, ``},
		{`{"method":"x","params":"` + filler + `","jsonrpc":"2.0","id":7}`, ``},
	} {
		_, junk := readAll(t, strings.NewReader(tt.line+"\n"+reply(1)+"\n"), 4000)
		if len(junk) != 1 || string(junk[0].ID) != tt.want {
			t.Errorf("%s: junk %v with id %s, want %s", abridge(tt.line), junk, junk[0].ID, tt.want)
		}
	}
}

// B06, B07: one line of a gigabyte and one of great depth cost little memory and
// nothing that comes after them.
func TestHugeLinesAreSkippedInBoundedMemory(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 17 << 20
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	src := io.MultiReader(
		strings.NewReader(`{"jsonrpc":"2.0","id":3,"result":"`),
		io.LimitReader(&endless{line: bytes.Repeat([]byte("x"), 1<<16)}, size),
		strings.NewReader("\"}\n"+`{"jsonrpc":"2.0","id":4,"result":`+deep+"}\n"+reply(1)+"\n"),
	)
	var got []string
	var junk []Junk
	used := allocated(func() { got, junk = readAll(t, src, 16<<20) })
	if len(got) != 1 || got[0] != reply(1) {
		t.Errorf("got %d messages behind the long lines", len(got))
	}
	if len(junk) != 2 || junk[0].Reason != ErrTooLong || string(junk[0].ID) != "3" || !errors.Is(junk[1].Reason, ErrDepth) || string(junk[1].ID) != "4" {
		t.Errorf("junk %v", junk)
	}
	if used > 64<<20 {
		t.Errorf("%d MiB were allocated for a limit of 16", used>>20)
	}
}

// allocated is how many bytes f takes from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestLargeMessagesAreIntactWhateverTheirNeighbours(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var stream bytes.Buffer
	var want []string
	for i := range 300 {
		size := []int{0, 100, 3000, 4 << 10, 5000, 8 << 10, 9000, 40_000, 200_000}[rng.IntN(9)]
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, i, strings.Repeat(string(rune('a'+i%26)), size))
		want = append(want, line)
		stream.WriteString(line + "\n")
	}
	// All messages are kept, none released, so that no two may share memory.
	r := NewLineReader(chopped{&stream, rng}, 0, func(j Junk) { t.Errorf("junk: %v", j) })
	var got []Message
	for {
		m, err := r.Next()
		if err == io.EOF {
			break
		}
		got = append(got, m)
	}
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range got {
		if string(got[i].Raw) != want[i] {
			t.Errorf("message %d is %s", i, got[i].String())
		}
	}
}

// chopped returns reads of any size, as a pipe does.
type chopped struct {
	r   io.Reader
	rng *rand.Rand
}

func (c chopped) Read(p []byte) (int, error) {
	return c.r.Read(p[:1+c.rng.IntN(len(p))])
}

func TestAnIdleStreamHoldsASmallBuffer(t *testing.T) {
	var many strings.Builder
	for i := range 2000 {
		many.WriteString(reply(i) + "\n")
	}
	big := `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 30_000) + `"}` + "\n"
	medium := big[:9000] + big[len(big)-3:]
	for stream, most := range map[string]int{
		big:                    4 * smallestBuffer,
		big + many.String():    smallestBuffer,
		medium + many.String(): smallestBuffer,
		many.String() + big + medium + many.String(): smallestBuffer,
	} {
		var last waiting
		r := NewLineReader(io.MultiReader(strings.NewReader(stream), &last), 0, nil)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		if last.room == 0 || last.room > most {
			t.Errorf("a stream of %d bytes then waits with a buffer of %d (large %d)", len(stream), last.room, r.lines.large)
		}
	}
}

// waiting is a stream on which nothing comes; it notes the buffer it was given.
type waiting struct{ room int }

func (w *waiting) Read(p []byte) (int, error) {
	w.room = len(p)
	return 0, io.EOF
}

func TestJunkKeepsNoLargeBufferAlive(t *testing.T) {
	_, junk := readAll(t, strings.NewReader(strings.Repeat("noise ", 1<<20)+"\n"), 0)
	if len(junk) != 1 || junk[0].Size != 6<<20-1 && junk[0].Size != 6<<20 || cap(junk[0].Text) > 64<<10 {
		t.Errorf("%d pieces of junk, the first of size %d in %d bytes", len(junk), junk[0].Size, cap(junk[0].Text))
	}
}

func TestAReaderThatMakesNoProgressIsAnError(t *testing.T) {
	for _, head := range []string{"", "{", strings.Repeat("x", 100)} {
		r := NewLineReader(io.MultiReader(strings.NewReader(head), stuck{}), 50, nil)
		if _, err := r.Next(); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("after %q: Next() = %v", head, err)
		}
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestTheStreamsErrorIsReturned(t *testing.T) {
	broken := errors.New("broken")
	for _, head := range []string{"", "{", reply(1) + "\n", strings.Repeat("x", 100)} {
		r := NewLineReader(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), 60, nil)
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, broken) {
			t.Errorf("after %q: Next() = %v", head, err)
		}
	}
}

func TestOnlyAGarbledRequestIsAnswered(t *testing.T) {
	for line, want := range map[string]string{
		`(node:1) Warning`: "",
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{`: `{"jsonrpc":"2.0","id":3,"error":{"code":-32700,"message":"not valid JSON"}}`,
		`{"jsonrpc":"2.0","id":"a","method":5}`:                    `{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"not a JSON-RPC 2.0 message: malformed request"}}`,
		`{"jsonrpc":"2.0","id":null,"method":5}`:                   "",
		`{"jsonrpc":"2.0","method":5}`:                             "",
		`{"jsonrpc":"2.0","id":3,"result":{`:                       "", // an answer to a question of ours
	} {
		var got string
		r := NewLineReader(strings.NewReader(line+"\n"), 0, func(j Junk) {
			if m, ok := j.Answer(); ok {
				got = string(m.Raw)
			}
		})
		if m, err := r.Next(); err != io.EOF {
			t.Errorf("%s: got %s, %v", line, m.Raw, err)
		}
		if got != want {
			t.Errorf("%s: answered with %q, want %q", line, got, want)
		}
	}
}
