package wire

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest. encoding/json draws the
// same line, so what passes here can be read by the Go programs behind us.
const MaxDepth = 10_000

var (
	// ErrSyntax: the bytes are not one JSON value.
	ErrSyntax = errors.New("not valid JSON")
	// ErrDepth: the value nests deeper than MaxDepth.
	ErrDepth = errors.New("JSON nested too deeply")
	// ErrUTF8: a string holds bytes that are not UTF-8.
	ErrUTF8 = errors.New("JSON string is not valid UTF-8")
)

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// scanValue checks the JSON value that starts at b[i], which must not be white
// space, and returns the index just past it. depth is how many brackets are open
// around it.
func scanValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, ErrSyntax
	}
	if c := b[i]; c != '{' && c != '[' {
		return scanScalar(b, i)
	}
	return scanNested(b, i, depth)
}

func scanScalar(b []byte, i int) (int, error) {
	switch c := b[i]; {
	case c == '"':
		return scanString(b, i)
	case c == '-' || '0' <= c && c <= '9':
		return scanNumber(b, i)
	case c == 't':
		return scanWord(b, i, "true")
	case c == 'f':
		return scanWord(b, i, "false")
	case c == 'n':
		return scanWord(b, i, "null")
	}
	return i, ErrSyntax
}

// scanNested walks the array or object at b[i]. Each turn of the loop reads one
// value; what may follow it depends on the innermost open bracket.
//
// Which brackets are braces is kept in the bits of one word, and only every 64th
// level makes a call. So small values cost no memory to speak of, and hostile
// depth costs little stack.
func scanNested(b []byte, i, depth int) (int, error) {
	const most = 64
	var braces uint64 // lowest bit: the innermost bracket is a brace
	var err error
	open := 0
	for {
		if i >= len(b) {
			return i, ErrSyntax
		}
		switch c := b[i]; {
		case c != '{' && c != '[':
			i, err = scanScalar(b, i)
		case depth+open == MaxDepth:
			return i, ErrDepth
		case open == most:
			i, err = scanNested(b, i, depth+open)
		default:
			const closing = '}' - '{' // as far apart as the square ones
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == c+closing {
				i++
				break
			}
			open++
			braces <<= 1
			if c == '[' {
				continue
			}
			braces |= 1
			if _, i, err = scanKey(b, i); err != nil {
				return i, err
			}
			continue
		}
		if err != nil {
			return i, err
		}
		// A value has ended: close brackets until a comma asks for the next one.
		for {
			if open == 0 {
				return i, nil
			}
			i = skipSpace(b, i)
			if i >= len(b) {
				return i, ErrSyntax
			}
			c := b[i]
			i++
			if c == ',' {
				i = skipSpace(b, i)
				if braces&1 != 0 {
					if _, i, err = scanKey(b, i); err != nil {
						return i, err
					}
				}
				break
			}
			if c != ']' && c != '}' || (c == '}') != (braces&1 != 0) {
				return i - 1, ErrSyntax
			}
			open--
			braces >>= 1
		}
	}
}

// scanKey reads `"key" :`. It returns where the key ends, its quote included, and
// where the member's value starts.
func scanKey(b []byte, i int) (end, value int, err error) {
	if i >= len(b) || b[i] != '"' {
		return i, i, ErrSyntax
	}
	if end, err = scanString(b, i); err != nil {
		return end, end, err
	}
	i = skipSpace(b, end)
	if i >= len(b) || b[i] != ':' {
		return end, i, ErrSyntax
	}
	return end, skipSpace(b, i+1), nil
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// scanString checks the string whose opening quote is b[i]. Eight bytes are
// looked at together; only a quote, a backslash or a control character needs a
// closer look. Long texts are most of what passes through us, so this loop is
// what the cost of a large message comes from. Text outside ASCII is checked
// afterwards in one go, which is faster than stopping at each of its characters.
func scanString(b []byte, i int) (int, error) {
	i++
	start := i
	var seen uint64 // all bytes so far laid over each other
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote := x ^ '"'*everyByte
			slash := x ^ '\\'*everyByte
			m := ((quote - everyByte) &^ quote) | ((slash - everyByte) &^ slash) |
				((x - ' '*everyByte) &^ x)
			seen |= x
			if m &= highBits; m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, ErrSyntax
		}
		switch c := b[i]; {
		case c == '"':
			if seen&highBits != 0 && !utf8.Valid(b[start:i]) {
				return i, ErrUTF8
			}
			return i + 1, nil
		case c == '\\':
			n := escapeLen(b, i)
			if n == 0 {
				return i, ErrSyntax
			}
			i += n
		case c < ' ':
			return i, ErrSyntax
		default:
			seen |= uint64(c)
			i++
		}
	}
}

// escapeLen is the length of the escape sequence at b[i], 0 if there is none.
func escapeLen(b []byte, i int) int {
	if i+1 >= len(b) {
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if i+6 > len(b) {
			return 0
		}
		for _, c := range b[i+2 : i+6] {
			if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func scanNumber(b []byte, i int) (int, error) {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, ErrSyntax
	case b[i] == '0':
		i++
	case '1' <= b[i] && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return i, ErrSyntax
	}
	if i < len(b) && b[i] == '.' {
		start := i + 1
		if i = skipDigits(b, start); i == start {
			return i, ErrSyntax
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start := i
		if i = skipDigits(b, start); i == start {
			return i, ErrSyntax
		}
	}
	return i, nil
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

func scanWord(b []byte, i int, word string) (int, error) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, ErrSyntax
	}
	return i + len(word), nil
}

// Valid reports what is wrong with b as one JSON value, nil if nothing is.
func Valid(b []byte) error {
	i, err := scanValue(b, skipSpace(b, 0), 0)
	if err != nil {
		return err
	}
	if skipSpace(b, i) != len(b) {
		return ErrSyntax
	}
	return nil
}
