package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on arguments. No sane call comes near them; the validator underneath
// recurses by depth and computes with exact fractions, so it must not see more.
const (
	maxDepth     = 200
	maxExponent  = 400
	maxDigits    = 1000
	maxTextLevel = 3 // how often text may be wrapped in text
)

// syntaxError says why bytes are not one JSON value that we are willing to read.
type syntaxError struct {
	keyword string // "syntax", "duplicate" or "limit"
	msg     string
	path    []string // for keyword "duplicate": where
	cut     bool     // the text ends where it must not
}

func (e *syntaxError) Error() string { return e.msg }

// decoder reads JSON into the values the validator takes: numbers stay text
// (json.Number), so that none is rounded. Unlike encoding/json it refuses
// duplicate keys, whose meaning differs from parser to parser, and numbers that
// cost more to compute with than to write.
type decoder struct {
	data  []byte
	i     int
	nodes int
	depth int
	path  []string
	// loose accepts what models write for JSON (see text.go), and keeps in
	// fixes what has to be written differently for it to be JSON.
	loose bool
	fixes []fix
	// dup remembers the first duplicate key: the rest is still read, because
	// broken syntax further on is the more useful thing to report.
	dup *syntaxError
}

type fix struct {
	start, end int
	text       string
}

func (d *decoder) fix(start int, text string) {
	d.fixes = append(d.fixes, fix{start, d.i, text})
}

func decode(data []byte) (v any, nodes int, err *syntaxError) {
	d := decoder{data: data}
	v, err = d.document()
	return v, d.nodes, err
}

func (d *decoder) document() (any, *syntaxError) {
	d.space()
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	d.space()
	if d.i < len(d.data) {
		return nil, d.fail("more text after the end of the value")
	}
	if d.dup != nil {
		return nil, d.dup
	}
	return v, nil
}

func (d *decoder) fail(format string, args ...any) *syntaxError {
	return &syntaxError{keyword: "syntax", msg: fmt.Sprintf(format, args...), cut: d.i >= len(d.data)}
}

func (d *decoder) limit(format string, args ...any) *syntaxError {
	return &syntaxError{keyword: "limit", msg: fmt.Sprintf(format, args...)}
}

func (d *decoder) space() {
	for d.i < len(d.data) {
		switch d.data[d.i] {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return
		}
	}
}

func (d *decoder) value() (any, *syntaxError) {
	d.nodes++
	if d.i >= len(d.data) {
		return nil, d.fail("the text ends where a value is needed")
	}
	switch c := d.data[d.i]; {
	case c == '{':
		return d.object()
	case c == '[':
		return d.array()
	case c == '"', c == '\'' && d.loose:
		return d.string()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	default:
		return d.word()
	}
}

func (d *decoder) word() (any, *syntaxError) {
	start := d.i
	for d.i < len(d.data) && isIdent(d.data[d.i]) {
		d.i++
	}
	switch word := string(d.data[start:d.i]); word {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	case "True", "False":
		if d.loose {
			d.fix(start, strings.ToLower(word))
			return word == "True", nil
		}
	case "None":
		if d.loose {
			d.fix(start, "null")
			return nil, nil
		}
	}
	d.i = start
	return nil, d.fail("no value begins with %q", d.data[start:min(start+1, len(d.data))])
}

func isIdent(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (d *decoder) enter() *syntaxError {
	if d.depth++; d.depth > maxDepth {
		return d.limit("nested deeper than %d levels", maxDepth)
	}
	d.i++
	d.space()
	return nil
}

func (d *decoder) object() (any, *syntaxError) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	object := make(map[string]any)
	for !d.take('}') {
		key, err := d.key()
		if err != nil {
			return nil, err
		}
		d.space()
		if !d.take(':') {
			return nil, d.fail("a colon is missing after a key%s", d.ended())
		}
		d.space()
		d.path = append(d.path, key)
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		if _, twice := object[key]; twice && d.dup == nil {
			d.dup = &syntaxError{keyword: "duplicate", path: append([]string(nil), d.path...),
				msg: "the key " + strconv.Quote(key) + " is given twice"}
		}
		d.path = d.path[:len(d.path)-1]
		object[key] = v
		if done, err := d.next('}', "an object"); done || err != nil {
			d.depth--
			return object, err
		}
	}
	d.depth--
	return object, nil
}

func (d *decoder) key() (string, *syntaxError) {
	switch {
	case d.i >= len(d.data):
		return "", d.fail("a key is missing%s", d.ended())
	case d.data[d.i] == '"', d.data[d.i] == '\'' && d.loose:
		return d.string()
	case d.loose:
		start := d.i
		for d.i < len(d.data) && isIdent(d.data[d.i]) {
			d.i++
		}
		if d.i > start && (d.data[start] < '0' || d.data[start] > '9') {
			d.fix(start, `"`+string(d.data[start:d.i])+`"`)
			return string(d.data[start:d.i]), nil
		}
	}
	return "", d.fail("a key must be a string in double quotes")
}

func (d *decoder) array() (any, *syntaxError) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	array := []any{}
	for !d.take(']') {
		d.path = append(d.path, strconv.Itoa(len(array)))
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		array = append(array, v)
		if done, err := d.next(']', "a list"); done || err != nil {
			d.depth--
			return array, err
		}
	}
	d.depth--
	return array, nil
}

func (d *decoder) take(c byte) bool {
	if d.i < len(d.data) && d.data[d.i] == c {
		d.i++
		return true
	}
	return false
}

// next moves past the comma after a member, or past the end of its container.
func (d *decoder) next(end byte, what string) (done bool, err *syntaxError) {
	d.space()
	if d.take(end) {
		return true, nil
	}
	comma := d.i
	if !d.take(',') {
		return false, d.fail("%s is not closed%s", what, d.ended())
	}
	d.space()
	if d.i < len(d.data) && d.data[d.i] == end {
		if !d.loose {
			return false, d.fail("a comma before the end of %s", what)
		}
		d.fix(comma, "")
		d.i++
		return true, nil
	}
	return false, nil
}

func (d *decoder) ended() string {
	if d.i >= len(d.data) {
		return ": the text ends too early"
	}
	return ""
}

func (d *decoder) number() (any, *syntaxError) {
	start, exponent := d.i, 0
	if end := scanNumber(d.data[d.i:]); end > 0 {
		d.i += end
	} else {
		return nil, d.fail("not a number")
	}
	token := d.data[start:d.i]
	if e := bytes.IndexAny(token, "eE"); e >= 0 {
		n, err := strconv.Atoi(string(token[e+1:]))
		if err != nil {
			n = maxExponent + 1
		}
		exponent = max(n, -n)
	}
	if exponent > maxExponent || len(token) > maxDigits {
		return nil, d.limit("a number is too long to compute with")
	}
	return json.Number(token), nil
}

// scanNumber returns the length of the JSON number at the start of data, or 0.
func scanNumber(data []byte) int {
	i := 0
	digits := func() bool {
		from := i
		for i < len(data) && data[i] >= '0' && data[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(data) && data[i] == '-' {
		i++
	}
	leading := i
	if !digits() || data[leading] == '0' && i > leading+1 {
		return 0
	}
	if i < len(data) && data[i] == '.' {
		i++
		if !digits() {
			return 0
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			return 0
		}
	}
	return i
}

func (d *decoder) string() (string, *syntaxError) {
	quote := d.data[d.i]
	d.i++
	start := d.i
	for d.i < len(d.data) {
		switch c := d.data[d.i]; {
		case c == quote:
			d.i++
			text := string(d.data[start : d.i-1])
			if quote != '"' {
				d.fix(start-1, string(appendString(nil, text)))
			}
			return text, nil
		case c == '\\' || c < ' ':
			return d.escaped(quote, start)
		}
		d.i++
	}
	return "", d.fail("the text ends inside a string")
}

// escaped goes on with a string that is not simply its own bytes.
func (d *decoder) escaped(quote byte, start int) (string, *syntaxError) {
	out := append([]byte(nil), d.data[start:d.i]...)
	for d.i < len(d.data) {
		c := d.data[d.i]
		switch {
		case c == quote:
			d.i++
			if d.loose {
				d.fix(start-1, string(appendString(nil, string(out))))
			}
			return string(out), nil
		case c == '\\':
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < ' ' && !(d.loose && quote == '"'):
			return "", d.fail("a line break or control character inside a string must be escaped")
		default:
			out = append(out, c)
			d.i++
		}
	}
	return "", d.fail("the text ends inside a string")
}

func (d *decoder) escape() (rune, *syntaxError) {
	if d.i+1 >= len(d.data) {
		d.i = len(d.data)
		return 0, d.fail("the text ends inside a string")
	}
	c := d.data[d.i+1]
	d.i += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := d.hex(4)
		if ok && utf16.IsSurrogate(r) && bytes.HasPrefix(d.data[d.i:], []byte(`\u`)) {
			back := d.i
			d.i += 2
			if low, ok := d.hex(4); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, nil
				}
			}
			d.i = back
		}
		if ok {
			return r, nil
		}
	case '\'':
		if d.loose {
			return '\'', nil
		}
	case 'x': // as Python and JavaScript write it
		if r, ok := d.hex(2); ok && d.loose {
			return r, nil
		}
	case 'U':
		if r, ok := d.hex(8); ok && d.loose && utf8.ValidRune(r) {
			return r, nil
		}
	}
	d.i -= 2
	return 0, d.fail(`"\%c" is not an escape JSON knows`, c)
}

func (d *decoder) hex(n int) (rune, bool) {
	if d.i+n > len(d.data) {
		return 0, false
	}
	r, err := strconv.ParseUint(string(d.data[d.i:d.i+n]), 16, 32)
	if err != nil {
		return 0, false
	}
	d.i += n
	return rune(r), true
}

// encode writes a value as JSON, as other people's programs would write it: no
// HTML escapes, numbers as they were.
func encode(v any) []byte {
	switch v := v.(type) {
	case string:
		return appendString(nil, v)
	case json.Number:
		return []byte(v)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null") // only values that came from decode get here
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < ' ':
			dst = fmt.Appendf(dst, `\u%04x`, c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
