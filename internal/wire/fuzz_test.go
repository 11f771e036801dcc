package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// hostile is what every fuzz target starts from: good messages and the ways in
// which peers have been seen to break them.
var hostile = []string{
	``, ` `, `{}`, `[]`, `null`, `0`, `-0.5e+10`, `"\ud83d\ude00"`, `{"a":1,"a":2}`, `{"":{}}`, "\"\xff\"", "\x00",
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":9007199254740993}}}`,
	` { "jsonrpc" : "2.0" , "id" : "a" , "result" : [ true , false , null , 1.0 ] } `,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
	`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`,
	`{"jsonrpc":"2.0","id":1,"method":"x","\u006dethod":"y"}`,
	`{"jsonrpc":"2.0","id":1,"method":"x","Method":"y"}`,
	`{"jsonrpc":"2.0","id":1,"result":{"text":"half a lin`,
	`{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}`,
	`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`,
	`INFO listening {"jsonrpc":"2.0","id":1,"result":{}}`,
	"\ufeff" + `{"jsonrpc":"2.0","method":"a"}` + "\r",
	strings.Repeat("[", 70) + strings.Repeat("]", 70),
	strings.Repeat(`{"a":[`, 70) + strings.Repeat("]}", 70),
}

func FuzzParse(f *testing.F) {
	for _, s := range hostile {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := Valid(raw)
		switch std := json.Valid(raw); {
		case errors.Is(err, ErrUTF8):
			if utf8.Valid(raw) {
				t.Fatalf("%q is UTF-8", raw)
			}
		case (err == nil) != std:
			t.Fatalf("Valid(%q) = %v, encoding/json says %t", raw, err, std)
		case err == nil && !utf8.Valid(raw):
			t.Fatalf("Valid accepts %q", raw)
		}
		m, perr := Parse(raw)
		if want := kindOf(raw); err == nil && m.Kind != want || err != nil && m.Kind != Invalid {
			t.Fatalf("Parse(%q) = kind %d, %v; want kind %d", raw, m.Kind, perr, want)
		}
		if perr != nil {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string][]byte{"id": m.ID(), "params": m.Params(), "result": m.Result(), "error": m.Error()} {
			if !bytes.Equal(got, members[name]) {
				t.Errorf("%s of %q is %s, want %s", name, raw, got, members[name])
			}
		}
		var method string
		if err := json.Unmarshal(members["method"], &method); m.Kind != Response && (err != nil || m.Method() != method) {
			t.Errorf("Method() = %q, want %q", m.Method(), method)
		}
	})
}

// kindOf says with the means of encoding/json what Parse should make of valid JSON.
func kindOf(raw []byte) Kind {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return Invalid
	}
	known := []string{"jsonrpc", "id", "method", "params", "result", "error"}
	seen := map[string]string{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return Invalid
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return Invalid
		}
		key := token.(string)
		i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, key) })
		if i < 0 {
			continue
		}
		// The key must be written plainly: look it up in the text, not decoded.
		before := bytes.TrimRight(raw[:d.InputOffset()-int64(len(value))], " \t\r\n")
		before = bytes.TrimRight(bytes.TrimSuffix(before, []byte(":")), " \t\r\n")
		if _, twice := seen[known[i]]; twice || !bytes.HasSuffix(before, []byte(`"`+known[i]+`"`)) {
			return Invalid
		}
		seen[known[i]] = string(value)
	}
	id, hasID := seen["id"]
	_, hasResult := seen["result"]
	_, hasError := seen["error"]
	method, hasMethod := seen["method"]
	switch {
	case seen["jsonrpc"] != `"2.0"`, hasID && id != "null" && strings.ContainsAny(id[:1], "{[tf"):
		return Invalid
	case hasMethod && (hasResult || hasError || id == "null" || method[0] != '"'):
		return Invalid
	case hasMethod && hasID:
		return Request
	case hasMethod:
		return Notification
	case hasError && !hasResult, hasResult && !hasError && hasID && id != "null":
		return Response
	}
	return Invalid
}

// What a line is taken for depends on that line alone: not on what came before,
// nor on how the stream was cut into reads. So nothing can keep a good line that
// follows from being delivered.
func FuzzLineReader(f *testing.F) {
	for i, s := range hostile {
		f.Add([]byte(s), uint16(i*i*20))
		f.Add([]byte(s+"\n\n"+hostile[len(hostile)-1-i]+"\n"), uint16(i))
	}
	f.Add([]byte(strings.Repeat("long ", 20_000)), uint16(100))
	f.Fuzz(func(t *testing.T, stream []byte, extra uint16) {
		limit := 64 + int(extra)
		var want []string
		for _, text := range bytes.Split(stream, []byte("\n")) {
			want = append(want, tell(t, io.MultiReader(bytes.NewReader(text), strings.NewReader("\n")), limit)...)
		}
		want = append(want, reply(7))
		all := append(bytes.Clone(stream), "\n"+reply(7)+"\n"...)
		for _, src := range []io.Reader{
			bytes.NewReader(all),
			iotest.HalfReader(bytes.NewReader(all)),
			iotest.OneByteReader(iotest.DataErrReader(bytes.NewReader(all))),
		} {
			if got := tell(t, src, limit); !slices.Equal(got, want) {
				t.Fatalf("got  %q\nwant %q", got, want)
			}
		}
		tell(t, bytes.NewReader(stream), limit) // the last line has no break
	})
}

// tell lists what a reader makes of a stream: messages as they are, junk marked.
func tell(t *testing.T, src io.Reader, limit int) (out []string) {
	r := NewLineReader(src, limit, func(j Junk) {
		if len(j.Text) > max(j.Size, keepSmall) && utf8.Valid(j.Text) && !bytes.ContainsRune(j.Text, utf8.RuneError) {
			t.Errorf("%d bytes of junk from a line of %d", len(j.Text), j.Size)
		}
		out = append(out, fmt.Sprintf("junk %v %s", j, j.ID))
	})
	for {
		m, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(m.Raw); err != nil || again.Kind != m.Kind || bytes.IndexByte(m.Raw, '\n') >= 0 {
			t.Errorf("%q came out as a message: %v", m.Raw, err)
		}
		out = append(out, string(m.Raw))
		m.Release()
	}
}

func FuzzEventReader(f *testing.F) {
	for i, s := range hostile {
		f.Add([]byte("data: "+s+"\n\n"), s, []byte(hostile[len(hostile)-1-i]), uint16(i*50))
		f.Add([]byte("event: x\r\nid: 5\r\r: c\nretry: 10\ndata\ndata:"+s), "5", []byte("a\nb\r\n\n"), uint16(100))
	}
	f.Fuzz(func(t *testing.T, garbage []byte, id string, data []byte, extra uint16) {
		// However the stream is cut into reads, the events are the same.
		limit := 20 + int(extra)
		want, wantErr := events(bytes.NewReader(garbage), limit)
		got, err := events(iotest.OneByteReader(bytes.NewReader(garbage)), limit)
		if !slices.EqualFunc(got, want, sameEvent) || err != wantErr {
			t.Fatalf("in single bytes %v, %v\nat once %v, %v", show(got), err, show(want), wantErr)
		}

		// What is written behind any garbage is read again.
		if strings.ContainsAny(id, "\r\n\x00") {
			id = ""
		}
		stream := append(bytes.Clone(garbage), "\n\n"...)
		stream = AppendEvent(stream, id, data[:len(data)/2], data[len(data)/2:])
		got, err = events(bytes.NewReader(stream), 0)
		if err != io.EOF || len(got) == 0 {
			t.Fatalf("%v, %v", show(got), err)
		}
		last := Event{Type: "message", ID: id, HasID: id != "", Data: bytes.ReplaceAll(data, []byte("\r"), nil)}
		if !sameEvent(got[len(got)-1], last) && len(data) > 0 {
			t.Fatalf("wrote %v\nread  %v", show([]Event{last}), show(got))
		}
	})
}

// Setting and removing a member does that to this member and nothing to others.
func FuzzSetAndRemove(f *testing.F) {
	for i, s := range hostile {
		f.Add([]byte(s), "a", "jsonrpc", []byte(hostile[(i+5)%len(hostile)]))
		f.Add([]byte(s), "params", "_meta", []byte(`{"x": 1.0}`))
	}
	f.Fuzz(func(t *testing.T, object []byte, outer, inner string, value []byte) {
		if Valid(object) != nil || Valid(value) != nil || !utf8.ValidString(outer) || !utf8.ValidString(inner) {
			t.Skip()
		}
		value = bytes.TrimSpace(value)
		before := bytes.Clone(object)
		for _, path := range [][]string{{outer}, {outer, inner}} {
			set := Set(object, value, path...)
			if Valid(set) != nil && !errors.Is(Valid(set), ErrDepth) {
				t.Fatalf("Set(%s, %s, %q) = %s", object, value, path, set)
			}
			if got, ok := Member(set, path...); !ok || !bytes.Equal(got, value) {
				t.Fatalf("Set(%s, %s, %q) = %s, where Member finds %s", object, value, path, set, got)
			}
			othersEqual(t, object, set, outer)
			a, _ := Member(object, outer)
			b, _ := Member(set, outer)
			if len(path) > 1 {
				othersEqual(t, a, b, inner)
			}
			agrees(t, set)

			removed := Remove(set, path...)
			if got, ok := Member(removed, path...); ok {
				t.Fatalf("Remove(%s, %q) = %s, where Member finds %s", set, path, removed, got)
			}
			othersEqual(t, object, removed, outer)
			if b, ok := Member(removed, outer); len(path) > 1 {
				if !ok {
					t.Fatalf("Remove(%s, %q) = %s", set, path, removed)
				}
				othersEqual(t, a, b, inner)
			}
			agrees(t, removed)
		}
		if !bytes.Equal(object, before) {
			t.Fatalf("the argument %s became %s", before, object)
		}
	})
}

// othersEqual fails unless all members but those named key are the same bytes in
// the same order.
func othersEqual(t *testing.T, before, after []byte, key string) {
	t.Helper()
	list := func(object []byte) (out []string) {
		EachMember(object, func(k string, v []byte) {
			if k != key {
				out = append(out, k+"\x00"+string(v))
			}
		})
		return out
	}
	if a, b := list(before), list(after); !slices.Equal(a, b) {
		t.Fatalf("from %s to %s: members but %q were %q, are %q", before, after, key, a, b)
	}
}

// agrees fails unless encoding/json sees the members we see.
func agrees(t *testing.T, object []byte) {
	t.Helper()
	want := map[string]json.RawMessage{}
	if json.Unmarshal(object, &want) != nil {
		return // deeper than it reads
	}
	got := map[string]json.RawMessage{}
	EachMember(object, func(k string, v []byte) { got[k] = v })
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("members of %s are %q, want %q", object, got, want)
	}
}
