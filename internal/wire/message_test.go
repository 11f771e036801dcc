package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func mustParse(t testing.TB, raw string) Message {
	t.Helper()
	m, err := Parse([]byte(raw))
	if err != nil {
		t.Fatalf("Parse(%s) = %v", abridge(raw), err)
	}
	return m
}

func abridge(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func TestTellsTheKindsOfMessagesApart(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		want Kind
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, Request},
		{`{"method":"ping","params":{},"id":"a","jsonrpc":"2.0"}`, Request},
		{` { "jsonrpc" : "2.0" , "id" : 1 , "method" : "ping" } `, Request},
		{`{"jsonrpc":"2.0","method":"notifications/progress"}`, Notification},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, Response},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, Response},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, Response},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, Response},
		{`{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`, Response},
		{`{"jsonrpc":"2.0","id":1,"result":{},"vendor":{"id":2,"Method":"x"},"":0}`, Response},
	} {
		if m := mustParse(t, tt.raw); m.Kind != tt.want {
			t.Errorf("Parse(%s).Kind = %d, want %d", tt.raw, m.Kind, tt.want)
		}
	}
}

func TestRefusesWhatIsNoMessage(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		want error
	}{
		// Not JSON.
		{``, ErrSyntax},
		{` `, ErrSyntax},
		{`{`, ErrSyntax},
		{`{}x`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"result":{}}x`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":{}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":{},}`, ErrSyntax},
		{`{"jsonrpc":"2.0" "id":1,"result":{}}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":01,"result":{}}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1.,"result":{}}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":-,"result":{}}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":NaN}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":[1,]}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":[1}]`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":{1:2}}`, ErrSyntax},
		{`{'jsonrpc':'2.0'}`, ErrSyntax},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\x00\"}", ErrSyntax},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\nb\"}", ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":"\x"}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":"\u12g4"}`, ErrSyntax},
		{`{"jsonrpc":"2.0","id":1,"result":"\u12`, ErrSyntax},
		// Bytes that are not UTF-8, among them a surrogate spelled out (B08).
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}", ErrUTF8},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xed\xa0\x80\"}", ErrUTF8},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xc0\xaf\"}", ErrUTF8},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xe6\x97\"}", ErrUTF8},
		// JSON, but nothing we can route.
		{`[]`, ErrEnvelope},
		{`"ping"`, ErrEnvelope},
		{`null`, ErrEnvelope},
		{`{}`, ErrEnvelope},
		{`{"level":"info","msg":"listening"}`, ErrEnvelope}, // B02
		{`{"jsonrpc":"1.0","id":1,"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":2.0,"id":1,"method":"x"}`, ErrEnvelope},
		{`{"id":1,"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","result":{}}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":null,"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"method":"x","result":{}}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":{},"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":[1],"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":true,"method":"x"}`, ErrEnvelope},
		// Two readers would see two messages (B15).
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"id":1,"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"method":"x","Method":"y"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","ID":1,"method":"x"}`, ErrEnvelope},
		{`{"JSONRPC":"2.0","id":1,"method":"x"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"method":"x","PARAMS":{}}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"result":{},"Error":{}}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"result":{},"reſult":{}}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"method":"x","\u006dethod":"y"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"method":"x","\u004D\u0045\u0054\u0048\u004F\u0044":"y"}`, ErrEnvelope},
		{`{"jsonrpc":"2.0","id":1,"method":"x","param\u017F":{}}`, ErrEnvelope},
	} {
		m, err := Parse([]byte(tt.raw))
		if !errors.Is(err, tt.want) {
			t.Errorf("Parse(%q) = %v, want %v", tt.raw, err, tt.want)
		}
		if m.Kind != Invalid {
			t.Errorf("Parse(%q).Kind = %d beside an error", tt.raw, m.Kind)
		}
	}
}

func TestDrawsTheDepthLineWhereEncodingJSONDoes(t *testing.T) {
	// The envelope itself is one level. 100,000 is row B07.
	for _, levels := range []int{1, 62, 63, 64, 65, 127, 128, 129, 640, MaxDepth - 2, MaxDepth - 1, MaxDepth, MaxDepth + 1, 100_000} {
		for _, brackets := range [][2]string{{"[", "]"}, {`{"a":`, "}"}, {`[{"a":`, "}]"}} {
			each := strings.Count(brackets[0], "[") + strings.Count(brackets[0], "{")
			n := levels / each
			value := strings.Repeat(brackets[0], n) + "0" + strings.Repeat(brackets[1], n)
			raw := `{"jsonrpc":"2.0","id":1,"result":` + value + `}`

			var decoded any
			decodes := json.Unmarshal([]byte(raw), &decoded) == nil
			if _, err := Parse([]byte(raw)); (err == nil) != decodes || err != nil && !errors.Is(err, ErrDepth) {
				t.Errorf("Parse of %d × %q in an envelope = %v; encoding/json accepts it: %t", n, brackets[0], err, decodes)
			}
			decodes = json.Valid([]byte(value))
			if err := Valid([]byte(value)); (err == nil) != decodes || err != nil && !errors.Is(err, ErrDepth) {
				t.Errorf("Valid of %d × %q = %v; encoding/json accepts it: %t", n, brackets[0], err, decodes)
			}
		}
	}
}

func TestMismatchedBracketsAreFoundAtEveryDepth(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 128, 1000} {
		opened := strings.Repeat("[", n) + `{"a":[`
		closed := `]}` + strings.Repeat("]", n)
		if err := Valid([]byte(opened + closed)); err != nil {
			t.Errorf("%d deep: %v", n, err)
		}
		for at := range closed {
			wrong := []byte(opened + closed)
			wrong[len(opened)+at] ^= ']' ^ '}'
			if err := Valid(wrong); !errors.Is(err, ErrSyntax) {
				t.Errorf("%d deep, bracket %d of the wrong kind: %v", n, at, err)
			}
		}
	}
}

func TestIDsOfAnySizeAndTypeSurvive(t *testing.T) {
	ids := []string{
		`0`, `-1`, `1`, `9007199254740993`, `18446744073709551616`, `1.0`, `1e400`, `-0`,
		`123456789012345678901234567890123456789012345678901234567890`,
		`""`, `"1"`, `"a-b"`, `"\u0031"`, `"\ud800"`, `"\""`, `"\\"`, `"日本"`, `"null"`,
		`"` + strings.Repeat("long", 1<<16) + `"`,
	}
	for _, id := range ids {
		request := mustParse(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		if got := string(request.ID()); got != id || !request.HasID() {
			t.Errorf("ID() = %s, want %s", abridge(got), abridge(id))
		}
		reply := NewResult(request.ID(), []byte(`{}`))
		if got := string(reply.ID()); got != id || reply.Kind != Response {
			t.Errorf("the reply's ID() = %s, want %s", abridge(got), abridge(id))
		}
		for _, other := range ids {
			swapped := reply.WithID([]byte(other))
			if got := string(swapped.ID()); got != other {
				t.Fatalf("WithID(%s).ID() = %s", abridge(other), abridge(got))
			}
			again := swapped.WithID([]byte(id))
			if string(again.Raw) != string(reply.Raw) {
				t.Fatalf("replacing id %s by %s and back changed the bytes", abridge(id), abridge(other))
			}
		}
	}
}

func TestPartsAreTheBytesAsWritten(t *testing.T) {
	m := mustParse(t, `{ "vendor" : 1.0, "params" : { "n" : 9007199254740993 } ,"method":"a\u002fb", "id":"x" ,"jsonrpc":"2.0"}`)
	for _, tt := range []struct{ part, got, want string }{
		{"ID", string(m.ID()), `"x"`},
		{"Method", m.Method(), `a/b`},
		{"Params", string(m.Params()), `{ "n" : 9007199254740993 }`},
		{"Result", string(m.Result()), ``},
		{"Error", string(m.Error()), ``},
	} {
		if tt.got != tt.want {
			t.Errorf("%s() = %q, want %q", tt.part, tt.got, tt.want)
		}
	}
	if m.Result() != nil || m.Error() != nil {
		t.Error("an absent part is not nil")
	}
	if grown := append(m.Params(), "overwritten"...); string(grown) == "" || !json.Valid(m.Raw) {
		t.Errorf("appending to a part wrote into the message: %s", m.Raw)
	}
}

// same fails unless a message's spans are those that a fresh Parse finds.
func same(t *testing.T, got Message, want string) {
	t.Helper()
	if string(got.Raw) != want {
		t.Fatalf("got  %s\nwant %s", got.Raw, want)
	}
	fresh := mustParse(t, want)
	got.buf, fresh.buf, got.Raw, fresh.Raw = nil, nil, nil, nil
	if !reflect.DeepEqual(got, fresh) {
		t.Errorf("spans after the change: %+v, after a fresh parse: %+v", got, fresh)
	}
}

func TestSplicingMovesNothingElse(t *testing.T) {
	request := mustParse(t, `{"a":1, "id" : 7,"method":"m" ,"params": {"x":[1.0]} , "jsonrpc":"2.0","z":null}`)
	same(t, request.WithID([]byte(`"much longer"`)), `{"a":1, "id" : "much longer","method":"m" ,"params": {"x":[1.0]} , "jsonrpc":"2.0","z":null}`)
	same(t, request.WithParams([]byte(`[]`)), `{"a":1, "id" : 7,"method":"m" ,"params": [] , "jsonrpc":"2.0","z":null}`)
	reply := mustParse(t, `{"result":{"n":1e3},"jsonrpc":"2.0","id":7}`)
	same(t, reply.WithResult([]byte(`{}`)), `{"result":{},"jsonrpc":"2.0","id":7}`)
	same(t, reply.WithID([]byte(`12`)), `{"result":{"n":1e3},"jsonrpc":"2.0","id":12}`)
	bare := mustParse(t, `{"jsonrpc":"2.0","id":7,"method":"m" }`)
	same(t, bare.WithParams([]byte(`{"a":{}}`)), `{"jsonrpc":"2.0","id":7,"method":"m" ,"params":{"a":{}}}`)
	same(t, request, `{"a":1, "id" : 7,"method":"m" ,"params": {"x":[1.0]} , "jsonrpc":"2.0","z":null}`)
}

func TestReplacingWhatIsNotThereChangesNothing(t *testing.T) {
	const notification = `{"jsonrpc":"2.0","method":"m","params":{}}`
	m := mustParse(t, notification)
	same(t, m.WithID([]byte("5")), notification)
	same(t, m.WithResult([]byte("{}")), notification)
}

func TestBuildsMessagesThatParse(t *testing.T) {
	for _, tt := range []struct {
		got  Message
		want string
	}{
		{NewRequest([]byte("1"), "tools/call", []byte(`{"name":"x"}`)), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`},
		{NewRequest([]byte(`"a"`), "odd \"method\"\n", nil), `{"jsonrpc":"2.0","id":"a","method":"odd \"method\"\n"}`},
		{NewNotification("notifications/initialized", nil), `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
		{NewResult([]byte("1"), []byte(`{}`)), `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{NewError([]byte("1"), -32000, "no", nil), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`},
		{NewError(nil, -32700, "no", []byte(`[1]`)), `{"jsonrpc":"2.0","error":{"code":-32700,"message":"no","data":[1]}}`},
	} {
		same(t, tt.got, tt.want)
	}
	if m := NewResult([]byte("1"), []byte(`{`)); m.Kind != Invalid {
		t.Errorf("a message around broken JSON has kind %d", m.Kind)
	}
}

func TestReadsErrorsAsFarAsTheyCanBeRead(t *testing.T) {
	for _, tt := range []struct {
		err  string
		code int
		text string
	}{
		{`{"code":-32601,"message":"no such method"}`, -32601, "no such method"},
		{`{"code":-32601.0,"message":"x","data":{"a":1}}`, -32601, "x"},
		{`{"code":"E1","message":"x"}`, 0, "x"},
		{`{"message":"x"}`, 0, "x"},
		{`"just text"`, 0, ""},
		{`null`, 0, ""},
	} {
		m := mustParse(t, `{"jsonrpc":"2.0","id":1,"error":`+tt.err+`}`)
		if code, text := ErrorOf(&m); code != tt.code || text != tt.text {
			t.Errorf("ErrorOf(%s) = %d, %q, want %d, %q", tt.err, code, text, tt.code, tt.text)
		}
	}
	ok := NewResult([]byte("1"), []byte("{}"))
	if code, text := ErrorOf(&ok); code != 0 || text != "" {
		t.Errorf("ErrorOf a result = %d, %q", code, text)
	}
}

func TestStringsSurviveEncodingAndDecoding(t *testing.T) {
	for _, s := range []string{"", "a", `"\/`, "\x00\x1f\x7f\n\r\t\b\f", "日本語", "\u2028", "🎉", "tools/call"} {
		raw := AppendString(nil, s)
		if err := Valid(raw); err != nil {
			t.Errorf("AppendString(%q) = %s: %v", s, raw, err)
		}
		if got, ok := StringValue(raw); !ok || got != s {
			t.Errorf("StringValue(AppendString(%q)) = %q, %t", s, got, ok)
		}
	}
	if got := string(AppendString(nil, "a\xffb")); got != "\"a\uFFFDb\"" {
		t.Errorf("AppendString of a byte that is not UTF-8 = %s", got)
	}
	for _, raw := range []string{``, `"`, `1`, `null`, `{}`} {
		if got, ok := StringValue([]byte(raw)); ok {
			t.Errorf("StringValue(%s) = %q", raw, got)
		}
	}
}

func TestCloneOutlivesTheBuffer(t *testing.T) {
	buf := newBuffer(100)
	m, err := Parse(append(buf.b[:0], `{"jsonrpc":"2.0","id":1,"method":"ping"}`...))
	if err != nil {
		t.Fatal(err)
	}
	m.buf = buf
	c := m.Clone()
	m.Release()
	if m.Raw != nil || m.Kind != Invalid {
		t.Errorf("a released message still says %s", m.Raw)
	}
	clear(buf.b)
	if c.buf != nil || string(c.ID()) != "1" || c.Method() != "ping" {
		t.Errorf("the clone changed with the buffer: %s", c.Raw)
	}
}

func TestReadingAMessageAllocatesNothing(t *testing.T) {
	longKey := strings.Repeat("x-vendor-", 6)
	for _, raw := range [][]byte{
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`),
		[]byte(`{"jsonrpc":"2.0","id":1,"result":{},"` + longKey + `":1,"a":2}`),
		textResult(100 << 10),
		toolList(30),
	} {
		n := testing.AllocsPerRun(100, func() {
			m, err := Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = m.Method(), m.ID()
			Member(m.Result(), "content")
			Member(m.Params(), "arguments", "path")
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", abridge(string(raw)), n)
		}
	}
}

func TestANullBesideTheOtherMemberIsAbsent(t *testing.T) {
	for raw, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}`:    `{"a":1}`,
		`{"jsonrpc":"2.0","id":1,"result":null,"error":null}`:       `null`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1},"result":null}`: ``,
	} {
		m, err := Parse([]byte(raw))
		if err != nil || m.Kind != Response || string(m.Result()) != want || (m.Error() == nil) != (want != "") {
			t.Errorf("%s: result %q, error %q, %v", raw, m.Result(), m.Error(), err)
		}
	}
	if _, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}`)); err == nil {
		t.Error("a message with a result and an error passed")
	}
}

func TestIDsAreComparedByValue(t *testing.T) {
	for _, same := range [][2]string{{"3", "3.0"}, {"3", "3e0"}, {"-1", "-1.0"}, {`"a"`, `"a"`}, {"12345678901234567890", "12345678901234567890"}} {
		if IDKey([]byte(same[0])) != IDKey([]byte(same[1])) {
			t.Errorf("%s and %s are told apart", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"3", `"3"`}, {"3", "3.5"}, {"9007199254740993", "9007199254740992"}, {"12345678901234567890", "12345678901234567891"}} {
		if IDKey([]byte(other[0])) == IDKey([]byte(other[1])) {
			t.Errorf("%s and %s are taken for the same", other[0], other[1])
		}
	}
}
