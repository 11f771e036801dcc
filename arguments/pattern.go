package arguments

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pattern is a regular expression of a schema. Schemas are written for
// ECMAScript; Go's engine is linear in time but knows neither looking ahead nor
// back-references. What it cannot do is left unchecked (re is nil) rather than
// refused: of 3,183 real schemas 18 have such a pattern.
type pattern struct {
	source string
	re     *regexp.Regexp
	size   int // instructions: the cost of matching one byte
}

const (
	maxPatternBytes = 4 << 10
	maxPatternSize  = 4 << 10
)

func (p *pattern) String() string { return p.source }

func (p *pattern) MatchString(s string) bool {
	return p.re == nil || p.re.MatchString(s)
}

func compilePattern(source string) (jsonschema.Regexp, error) {
	p := &pattern{source: source}
	if len(source) > maxPatternBytes {
		return p, nil
	}
	translated := translatePattern(source)
	parsed, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return p, nil
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxPatternSize {
		return p, nil
	}
	if re, err := regexp.Compile(translated); err == nil {
		p.re, p.size = re, len(prog.Inst)
	}
	return p, nil
}

// translatePattern writes ECMAScript's spelling in Go's, where they differ and
// mean the same.
func translatePattern(source string) string {
	if !strings.ContainsAny(source, `\[`) {
		return source
	}
	var b strings.Builder
	class := false // inside [...]
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case c == '\\' && i+1 < len(source):
			i++
			next := source[i]
			switch {
			case next == 'u' && i+4 < len(source) && isHex(source[i+1:i+5]):
				b.WriteString(`\x{` + source[i+1:i+5] + `}`)
				i += 4
			case next == 'u' && strings.HasPrefix(source[i+1:], "{"):
				b.WriteString(`\x`)
			default:
				b.WriteByte('\\')
				b.WriteByte(next)
			}
			// [\w-.] is a dash there and a broken range here.
			if class && strings.IndexByte("wWdDsS", next) >= 0 && i+2 < len(source) && source[i+1] == '-' && source[i+2] != ']' {
				b.WriteString(`\-`)
				i++
			}
		case c == '[' && class:
			b.WriteString(`\[`) // [[] is a bracket there, the start of a POSIX class here
		case c == '[':
			class = true
			b.WriteByte(c)
			if strings.HasPrefix(source[i+1:], "^]") {
				b.Reset() // [^] means anything at all; rare enough to leave unchecked
				return `(?!)`
			}
		case c == ']':
			class = false
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
