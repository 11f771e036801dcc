package secret

import (
	"math"
	"regexp"
	"strings"
	"sync"
)

// isRandom tells keys from names: letters and digits in no order, and many
// different ones, or letters whose case has no order. A name is made of words and
// numbers.
func isRandom(s string) bool {
	m := measure(s)
	return m.bits >= 3 && (m.digits >= 2 && m.mixed >= 4 ||
		len(s) >= 20 && m.humps*5 >= len(s) ||
		len(s) >= 32 && m.bits >= 4 && (m.humps+m.mixed)*6 >= len(s))
}

// isWord reports whether a text could be somebody's choice of words or numbers.
func isWord(s string) bool {
	m := measure(s)
	return len(s) <= 64 && m.mixed <= 1 && m.humps*4 <= len(s) && m.strange == 0
}

type measures struct {
	digits  int
	mixed   int     // changes between a letter and a digit beside it
	humps   int     // a small letter and a capital beside it
	strange int     // neither letter nor digit, nor what joins words
	bits    float64 // of Shannon's entropy for each character
}

func measure(s string) (m measures) {
	var counts [256]int
	for i := range len(s) {
		c := s[i]
		counts[c]++
		switch {
		case isDigit(c):
			m.digits++
		case !isLetter(c) && !strings.ContainsRune("-_./:,@ ", rune(c)):
			m.strange++
		}
		if i == 0 {
			continue
		}
		switch p := s[i-1]; {
		case isDigit(c) && isLetter(p), isLetter(c) && isDigit(p):
			m.mixed++
		case 'a' <= p && p <= 'z' && 'A' <= c && c <= 'Z':
			m.humps++
		}
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			m.bits -= p * math.Log2(p)
		}
	}
	return m
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isPath says by its beginning that a text is the path of a local file. The first
// folder must be a word, since one in 64 keys in base64 begins with a slash.
func isPath(s string) bool { return strings.ContainsAny(s, `/\`) && shapes.path().MatchString(s) }

// isReference reports whether a text only names the place where a value is. One that
// brings a default, as in ${NAME:-value}, holds a value.
func isReference(s string) bool {
	return s != "" && strings.IndexByte("$%{<", s[0]) >= 0 && shapes.reference().MatchString(s)
}

// isProse reports whether what stands behind a name is the rest of a sentence
// ("API_KEY: not set"), or the name of a secret and not the secret itself
// ("missing credentials: GITHUB_TOKEN").
func isProse(s string) bool {
	s = strings.TrimRight(s, ".,;:!?)")
	switch {
	case prose[strings.ToLower(s)], s == Mark, isReference(s):
		return true
	case !strings.ContainsFunc(s, func(r rune) bool { return r > 127 || isLetter(byte(r)) || isDigit(byte(r)) }):
		return true
	}
	return shapes.identifier().MatchString(s) && Name(s)
}

// trivial values are settings, whatever their name.
var trivial = set("true false null none nil yes no on off undefined required optional basic bearer digest oauth")

var prose = set(`a an and any are as at be by can cannot could did do does empty error expected expired failed false flag
	for found from given got has header https http if in incorrect invalid is it key malformed may missing must name needs nil no none not null of off on
	only option optional or please rejected required requires revoked set should string the this to true undefined
	unset use using value was were will with wrong yes you your
	auth authentication authorization bearer basic credentials digest oauth realm scheme token tokens`)

// A shape is built when first needed: a server that says nothing suspicious never
// needs most of them, and there is a process of ours for each.
type shape func() *regexp.Regexp

func lazily(expr string) shape {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// shapes is what secrets look like, and what is taken for one.
var shapes = struct {
	keyBegins, keyEnds, keyLines, opening             shape
	url, bearer, scheme, maker, webToken, login       shape
	parameters, path, reference, identifier, commit   shape
	uuid, ulid, traceParent, pod, timestamp, timePart shape
}{
	keyBegins: lazily(`-----BEGIN [A-Z ]*PRIVATE KEY-----`),
	keyEnds:   lazily(`-----END [A-Z ]*PRIVATE KEY-----`),
	// What is left of a key on its line, and lines of base64, maybe behind the words of a log.
	keyLines: lazily(`^(?:(?:\\+[nr]|[A-Za-z0-9+/=])*)(?:\r?\n(?:[^\n]{0,80}[ \t])?[A-Za-z0-9+/]{40,}=*|\r?\n[ \t]*[A-Za-z0-9+/]{4,}=*(?:\r?\n|$)|\r?\n(?:Proc-Type|DEK-Info):[^\n]*)*`),
	// The end of a line behind which the value of a name follows.
	opening: lazily(`["']?([A-Za-z_][A-Za-z0-9_.-]*)\\*["']?\]?[ \t]*(?:=>|:=|[:=])[ \t]*((?:[|>][+-]?[0-9]?)?|\\|\[|"""|'''|"[^"]+|'[^']+)$`),
	url:     lazily(`[A-Za-z][A-Za-z0-9+.-]*:\\?/\\?/[^\s"'<>` + "`" + `]+`),
	// A scheme of HTTP, and its credentials.
	bearer: lazily(`(?i)\b(bearer(?:\s|%20|\+)+)([A-Za-z0-9._~+/=-]{6,})`),
	scheme: lazily(`(?i)\b((?:basic|token|apikey|bot|negotiate|dpop)\s+)([A-Za-z0-9._~+/=-]{8,})`),
	// Makers of keys that mark them.
	maker: lazily(`\b(?:(?:sk|pk|rk|fc|tvly|pplx|gsk|xai|key|whsec|re|lin_api|ntn|secret|figd|pat|r8|apify_api|lsv2_pt|lsv2_sk|nvapi|sntrys|sntryu|phc|phx|sbp)[-_][A-Za-z0-9_-]{12,}` +
		`|(?:gh[pousr]_|github_pat_|glpat-|gldt-|xox[abeprs]-|xapp-|npm_|pypi-|hf_|dop_v1_|shpat_|ATATT|AIza|AKIA|ASIA|ya29\.|SG\.)[A-Za-z0-9_.=-]{8,})`),
	webToken: lazily(`\beyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){1,4}`),
	// As some database drivers write it: user:password@tcp(host)/name.
	login:       lazily(`[\w.-]+:[^\s]+@((?:tcp|unix)\()`),
	parameters:  lazily(`^[\w-]+=(?:"[^"]*"?|[^\s,"]+)(?:, ?[\w-]+=(?:"[^"]*"?|[^\s,"]+))*`),
	path:        lazily(`^(?:(?:file://|~|\.{1,2}|[A-Za-z]:)?[/\\]{1,2}[A-Za-z_.-]{1,20}(?:[/\\]|\.\w{1,8}$)|~[/\\]|[A-Za-z]:[/\\])`),
	reference:   lazily(`^(?:\$\{(?:[\w.-]+:)*[\w.][\w.-]*\}|\$\{\{ ?[\w.]+ ?\}\}|\{env:\w+\}|\$[A-Z][A-Z_]+|%[A-Z][A-Z_]+%|<[A-Za-z _-]+>)$`),
	identifier:  lazily(`^(?:[A-Z][A-Z]*(?:_[A-Z0-9]+)+|[a-z]+(?:_[a-z]+)+)$`),
	uuid:        lazily(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`),
	ulid:        lazily(`^0[0-7][0-9A-HJKMNP-TV-Z]{24}$`),
	traceParent: lazily(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`),
	pod:         lazily(`^[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[a-z0-9]{8,10}-[a-z0-9]{5}$`),
	timestamp:   lazily(`^\d{4}-?\d\d-?\d\d(?:[T _]\d\d[:_-]?\d\d(?:[:_-]?\d\d)?(?:[.,_-]\d{1,9})?(?: ?Z| ?[+-]\d\d:?\d\d)?)?$`),
	timePart:    lazily(`^(?:\d{2}|\d{8})T\d{2,6}Z?$|^\d+Z$`),
	commit:      lazily(`(?i)(?:[@#]|/(?:commit|tree|blob|raw|archive)/|\b(?:commit|revision|rev|ref|sha|sha1|head|git|checkout|tree|tag|at|to):?=? )$`),
}
