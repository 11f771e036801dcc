package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// textResult is a reply that carries n bytes of prose, as most large ones do.
func textResult(n int) []byte {
	const prose = "The quick brown fox jumps over the lazy dog, then writes about it.\n"
	text := strings.Repeat(prose, n/len(prose)+1)[:n]
	raw := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":`)
	raw = AppendString(raw, text)
	return append(raw, `}],"isError":false}}`...)
}

// toolList is a reply made of many small tokens: schemas, flags, numbers.
func toolList(tools int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":2,"result":{"tools":[`)
	for i := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"read_file_%d","description":"Reads one file and returns its text.",`+
			`"inputSchema":{"type":"object","properties":{"path":{"type":"string","minLength":1},`+
			`"head":{"type":"integer","minimum":0,"maximum":100000},"tags":{"type":"array","items":{"type":"string"}},`+
			`"mode":{"enum":["a","b",null,true,-1.5e3]}},"required":["path"],"additionalProperties":false},`+
			`"annotations":{"readOnlyHint":true,"idempotentHint":true}}`, i)
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

var samples = []struct {
	name string
	raw  []byte
}{
	{"100B", []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"n":"hello"}}}`)},
	{"10KB-text", textResult(10 << 10)},
	{"1MB-text", textResult(1 << 20)},
	{"13KB-tools", toolList(30)},
	{"30KB-cjk", []byte(`{"jsonrpc":"2.0","id":7,"result":{"text":"` + strings.Repeat("日本語のテキスト、", 1100) + `"}}`)},
	{"10KB-numbers", []byte(`{"jsonrpc":"2.0","id":7,"result":[` + strings.Repeat(`12.5,-3,[0,1],`, 730) + `9]}`)},
}

func BenchmarkParse(b *testing.B) {
	for _, s := range samples {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(s.raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStdlibValid is the yardstick: the same bytes through encoding/json,
// which only says yes or no.
func BenchmarkStdlibValid(b *testing.B) {
	for _, s := range samples {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.raw)))
			for b.Loop() {
				if !json.Valid(s.raw) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

// BenchmarkMember asks for one member of an object with many small nested values.
func BenchmarkMember(b *testing.B) {
	raw := toolList(30)
	m, err := Parse(raw)
	if err != nil {
		b.Fatal(err)
	}
	tools, _ := Member(m.Result(), "tools")
	b.SetBytes(int64(len(tools)))
	b.ReportAllocs()
	for b.Loop() {
		EachElement(tools, func(tool []byte) {
			if _, ok := Member(tool, "inputSchema", "properties", "mode"); !ok {
				b.Fatal("no mode")
			}
		})
	}
}

// endless repeats one line for ever.
type endless struct {
	line []byte
	off  int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := copy(p[n:], e.line[e.off:])
		n += k
		e.off = (e.off + k) % len(e.line)
	}
	return n, nil
}

func BenchmarkLineReader(b *testing.B) {
	for _, s := range samples[:4] {
		b.Run(s.name, func(b *testing.B) {
			r := NewLineReader(&endless{line: append(bytes.Clone(s.raw), '\n')}, 0, nil)
			b.SetBytes(int64(len(s.raw)))
			b.ReportAllocs()
			for b.Loop() {
				m, err := r.Next()
				if err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
		})
	}
}

func BenchmarkEventReader(b *testing.B) {
	for _, s := range samples[:4] {
		b.Run(s.name, func(b *testing.B) {
			r := NewEventReader(&endless{line: AppendEvent(nil, "", s.raw)}, 0)
			b.SetBytes(int64(len(s.raw)))
			b.ReportAllocs()
			for b.Loop() {
				e, err := r.Next()
				if err != nil {
					b.Fatal(err)
				}
				m, err := e.Message()
				if err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
		})
	}
}
