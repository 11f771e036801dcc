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

// nesting remembers for each open bracket whether it was a brace. A bit per
// level keeps the scanner iterative: hostile depth costs no stack.
type nesting struct {
	bits  [(MaxDepth + 63) / 64]uint64
	depth int
}

func (n *nesting) push(object bool) bool {
	if n.depth == MaxDepth {
		return false
	}
	w, m := n.depth>>6, uint64(1)<<(n.depth&63)
	if object {
		n.bits[w] |= m
	} else {
		n.bits[w] &^= m
	}
	n.depth++
	return true
}

func (n *nesting) inObject() bool {
	d := n.depth - 1
	return n.bits[d>>6]&(1<<(d&63)) != 0
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// scanValue checks the JSON value that starts at b[i], which must not be white
// space, and returns the index just past it.
func scanValue(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, ErrSyntax
	}
	if c := b[i]; c != '{' && c != '[' {
		return scanScalar(b, i)
	}
	return scanNested(b, i)
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

// scanNested walks an array or object without recursion. Each turn of the loop
// reads one value; what follows it is settled by the innermost open bracket.
func scanNested(b []byte, i int) (int, error) {
	var open nesting
	var err error
	for {
		if i >= len(b) {
			return i, ErrSyntax
		}
		switch b[i] {
		case '{':
			if !open.push(true) {
				return i, ErrDepth
			}
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == '}' {
				open.depth--
				i++
				break
			}
			if i, err = scanKey(b, i); err != nil {
				return i, err
			}
			continue
		case '[':
			if !open.push(false) {
				return i, ErrDepth
			}
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == ']' {
				open.depth--
				i++
				break
			}
			continue
		default:
			if i, err = scanScalar(b, i); err != nil {
				return i, err
			}
		}
		// A value has ended: close brackets until a comma asks for the next one.
		for {
			if open.depth == 0 {
				return i, nil
			}
			i = skipSpace(b, i)
			if i >= len(b) {
				return i, ErrSyntax
			}
			if b[i] == ',' {
				i = skipSpace(b, i+1)
				if open.inObject() {
					if i, err = scanKey(b, i); err != nil {
						return i, err
					}
				}
				break
			}
			closing := byte(']')
			if open.inObject() {
				closing = '}'
			}
			if b[i] != closing {
				return i, ErrSyntax
			}
			open.depth--
			i++
		}
	}
}

// scanKey reads `"key" :` and stops at the first byte of the member's value.
func scanKey(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return i, ErrSyntax
	}
	i, err := scanString(b, i)
	if err != nil {
		return i, err
	}
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return i, ErrSyntax
	}
	return skipSpace(b, i+1), nil
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// scanString checks the string whose opening quote is b[i]. Eight bytes are
// looked at together; only a quote, a backslash, a control character or a byte
// outside ASCII needs a closer look. Long texts are most of what passes through
// us, so this loop is what the cost of a large message comes from.
func scanString(b []byte, i int) (int, error) {
	i++
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote := x ^ '"'*everyByte
			slash := x ^ '\\'*everyByte
			m := ((quote - everyByte) &^ quote) | ((slash - everyByte) &^ slash) |
				((x - ' '*everyByte) &^ x) | x
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
			return i + 1, nil
		case c == '\\':
			n := escapeLen(b, i)
			if n == 0 {
				return i, ErrSyntax
			}
			i += n
		case c < ' ':
			return i, ErrSyntax
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n <= 1 {
				return i, ErrUTF8
			}
			i += n
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
	i, err := scanValue(b, skipSpace(b, 0))
	if err != nil {
		return err
	}
	if skipSpace(b, i) != len(b) {
		return ErrSyntax
	}
	return nil
}
