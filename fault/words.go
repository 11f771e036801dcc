package fault

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A message is matched word by word, not byte by byte: that is what keeps "403"
// from being found in a session id, and "auth" in "author". A word is a run of
// ASCII letters, digits and underscores; "<" is a word as well, because a page of
// HTML in place of JSON shows itself by nothing else.

// line is one line of text, cut into words.
type line struct {
	text  string
	words []word
}

type word struct {
	start, end int
	lower      string
}

func cut(text string) line {
	lower := lowerASCII(text)
	l := line{text: text, words: make([]word, 0, len(text)/6+1)}
	for i := 0; i < len(text); {
		switch {
		case isWordByte(lower[i]):
			start := i
			for i < len(text) && isWordByte(lower[i]) {
				i++
			}
			l.words = append(l.words, word{start, i, lower[start:i]})
		case text[i] == '<':
			l.words = append(l.words, word{i, i + 1, "<"})
			i++
		default:
			i++
		}
	}
	return l
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_'
}

// lowerASCII keeps every byte at its place, which strings.ToLower does not.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// phrase is a pattern ready to be matched. It is written like the message it
// stands for:
//
//	word        that word, in any case
//	one|other   either word
//	...         up to maxGap words that do not matter
//	<command>   a name, remembered as a piece of the diagnosis
//
// Punctuation does not count. A phrase begins with a plain word, or with one piece
// and then a plain word.
type phrase struct {
	source string
	before string // the piece before the first plain word, if any
	steps  []step // the first one is plain words
}

type step struct {
	words []string // alternatives; empty for the two below
	gap   bool
	piece string
}

const maxGap = 16

func parsePhrase(source string) (phrase, error) {
	p := phrase{source: source}
	for field := range strings.FieldsSeq(source) {
		switch piece, isPiece := strings.CutPrefix(field, "<"); {
		case field == "...":
			p.steps = append(p.steps, step{gap: true})
		case isPiece && strings.HasSuffix(piece, ">"):
			piece = strings.TrimSuffix(piece, ">")
			if _, ok := pieceForms[piece]; !ok {
				return p, fmt.Errorf("phrase %q: no piece is called %q", source, piece)
			}
			if len(p.steps) == 0 && p.before == "" {
				p.before = piece
				continue
			}
			p.steps = append(p.steps, step{piece: piece})
		case strings.Contains(field, "|"):
			var s step
			for either := range strings.SplitSeq(field, "|") {
				words := cut(either).words
				if len(words) != 1 {
					return p, fmt.Errorf("phrase %q: %q is not one word", source, either)
				}
				s.words = append(s.words, words[0].lower)
			}
			p.steps = append(p.steps, s)
		default:
			for _, w := range cut(field).words {
				p.steps = append(p.steps, step{words: []string{w.lower}})
			}
		}
	}
	if len(p.steps) == 0 || len(p.steps[0].words) == 0 {
		return p, fmt.Errorf("phrase %q: a plain word must come first", source)
	}
	return p, nil
}

// found is one match of a phrase in a line.
type found struct {
	from, to int // words, half open
	pieces   Pieces
}

// matchAt matches the phrase with its first plain word at word i.
func (p *phrase) matchAt(l *line, i int) (f found, ok bool) {
	f.from = i
	f.to, f.pieces, ok = l.match(p.steps, i, Pieces{})
	if !ok || p.before == "" {
		return f, ok
	}
	if i == 0 {
		return f, false
	}
	var text string
	text, f.from = l.nameBefore(i - 1)
	f.pieces, ok = f.pieces.take(p.before, text)
	return f, ok
}

// match matches the steps from word i on. It returns the first word after them and
// the pieces with those that were found added.
func (l *line) match(steps []step, i int, pieces Pieces) (int, Pieces, bool) {
	for n, s := range steps {
		switch {
		case s.gap:
			for skip := 0; skip <= maxGap && i+skip <= len(l.words); skip++ {
				if to, found, ok := l.match(steps[n+1:], i+skip, pieces); ok {
					return to, found, true
				}
			}
			return 0, pieces, false
		case i >= len(l.words):
			return 0, pieces, false
		case s.piece != "":
			text, next := l.nameFrom(i)
			var ok bool
			if pieces, ok = pieces.take(s.piece, text); !ok {
				return 0, pieces, false
			}
			i = next
		default:
			if !slices.Contains(s.words, l.words[i].lower) {
				return 0, pieces, false
			}
			i++
		}
	}
	return i, pieces, true
}

const maxName = 160

// nameFrom reads the name that word i begins: up to the closing quote if there
// is an opening one, else up to white space. It returns the first word after it.
func (l *line) nameFrom(i int) (string, int) {
	start, end := l.words[i].start, l.words[i].end
	floor := 0
	if i > 0 {
		floor = l.words[i-1].end
	}
	for start > floor && !isBreak(l.text[start-1]) {
		start--
	}
	limit := min(len(l.text), start+maxName)
	quoted := start > 0 && isQuote(l.text[start-1])
	for end < limit {
		c := l.text[end]
		if quoted && c == l.text[start-1] || !quoted && isBreak(c) {
			break
		}
		end++
	}
	next := i + 1
	for next < len(l.words) && l.words[next].start < end {
		next++
	}
	return trimName(l.text[start:end]), next
}

// nameBefore reads the name that word i ends, and returns its first word.
func (l *line) nameBefore(i int) (string, int) {
	start, end := l.words[i].start, l.words[i].end
	limit := max(0, end-maxName)
	closing := byte(0)
	if end < len(l.text) && isQuote(l.text[end]) {
		closing = l.text[end]
	}
	for start > limit {
		c := l.text[start-1]
		if closing != 0 && c == closing || closing == 0 && isBreak(c) {
			break
		}
		start--
	}
	first := i
	for first > 0 && l.words[first-1].start >= start {
		first--
	}
	return trimName(l.text[start:end]), first
}

func isQuote(c byte) bool { return c == '\'' || c == '"' || c == '`' }

func isBreak(c byte) bool {
	return c <= ' ' || isQuote(c) || strings.IndexByte("()[]{}<>,;", c) >= 0
}

func trimName(s string) string {
	return strings.TrimRight(strings.Trim(s, " \t'\"`"), ".,;:!?)\\")
}

// Pieces are the names found in the evidence, each empty when there was none.
type Pieces struct {
	Command string // the program that is missing or failed
	// Subcommand is what Command, which is there, was told to do and does not know,
	// such as "mcp" in "docker mcp".
	Subcommand string
	Variable   string // the environment variable that is not set
	Package    string // the package or module
	Path       string // the file or folder
	Host       string // the host name or address
	Port       int
	Version    string
	Tool       string // the tool's name as the message has it
}

// with fills in what is missing from others. An address stays whole.
func (p Pieces) with(others Pieces) Pieces {
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	if p.Host == "" && p.Port == 0 {
		p.Host, p.Port = others.Host, others.Port
	}
	fill(&p.Command, others.Command)
	fill(&p.Subcommand, others.Subcommand)
	fill(&p.Variable, others.Variable)
	fill(&p.Package, others.Package)
	fill(&p.Path, others.Path)
	fill(&p.Version, others.Version)
	fill(&p.Tool, others.Tool)
	return p
}

// pieceForms says for each piece of a phrase what it may look like and where it
// is kept. A name of the wrong form means that the phrase does not match.
var pieceForms = map[string]func(Pieces, string) (Pieces, bool){
	"command": func(p Pieces, s string) (Pieces, bool) { p.Command = s; return p, hasLetter(s) && !isFiller(s) },
	"subcommand": func(p Pieces, s string) (Pieces, bool) {
		p.Subcommand = s
		return p, hasLetter(s) && !isFiller(s)
	},
	"runtime":  func(p Pieces, s string) (Pieces, bool) { p.Command = s; return p, isRuntime(s) },
	"variable": func(p Pieces, s string) (Pieces, bool) { p.Variable = variableName(s); return p, p.Variable != "" },
	"package": func(p Pieces, s string) (Pieces, bool) {
		p.Package = strings.TrimSuffix(s, "@*")
		return p, hasLetter(s)
	},
	"path":    func(p Pieces, s string) (Pieces, bool) { p.Path = s; return p, strings.ContainsAny(s, `/\`) },
	"name":    func(p Pieces, s string) (Pieces, bool) { return p, hasLetter(s) }, // needed to match, not kept
	"program": func(p Pieces, s string) (Pieces, bool) { p.Command = s; return p, hasLetter(s) && !isFile(s) },
	"drive": func(p Pieces, s string) (Pieces, bool) {
		return p, len(s) > 2 && s[1] == ':' && s[2] == '\\' && !strings.Contains(s, ".")
	},
	"server": func(p Pieces, s string) (Pieces, bool) {
		p.Package = s
		return p, strings.Contains(strings.ToLower(s), "mcp")
	},
	"module":  func(p Pieces, s string) (Pieces, bool) { p.Package = s; return p, hasLetter(s) && !isFile(s) },
	"script":  func(p Pieces, s string) (Pieces, bool) { p.Path = s; return p, isScript(s) },
	"version": func(p Pieces, s string) (Pieces, bool) { p.Version = s; return p, strings.ContainsAny(s, "0123456789") },
	"tool":    func(p Pieces, s string) (Pieces, bool) { p.Tool = s; return p, hasLetter(s) },
	"address": Pieces.withAddress,
	"number":  func(p Pieces, s string) (Pieces, bool) { _, err := strconv.Atoi(s); return p, err == nil },
	"offset":  func(p Pieces, s string) (Pieces, bool) { n, err := strconv.Atoi(s); return p, err == nil && n > 0 },
	"port": func(p Pieces, s string) (Pieces, bool) {
		n, err := strconv.Atoi(s)
		p.Port = n
		return p, err == nil && 0 < n && n <= 65535
	},
}

func (p Pieces) take(piece, text string) (Pieces, bool) {
	if text == "" {
		return p, false
	}
	return pieceForms[piece](p, printable(text))
}

// withAddress reads host:port, host, :port or a URL, of which it keeps only the host
// and the port: the rest may hold a secret.
func (p Pieces) withAddress(s string) (Pieces, bool) {
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return p, false
		}
		s = u.Host
	}
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i+1:]
	}
	if n, err := strconv.Atoi(port); err == nil && 0 < n && n <= 65535 {
		p.Host, p.Port = host, n
		return p, true
	}
	if strings.ContainsAny(s, "/\\@") || !strings.ContainsAny(s, ".:") {
		return p, false
	}
	p.Host = s
	return p, true
}

// address joins host and port again, for people.
func (p Pieces) address() string {
	switch {
	case p.Port == 0:
		return p.Host
	case p.Host == "":
		return "port " + strconv.Itoa(p.Port)
	default:
		return p.Host + ":" + strconv.Itoa(p.Port)
	}
}

// variableName returns the name of an environment variable, or "" if s does not
// look like one: capitals, digits and underscores, as by custom.
func variableName(s string) string {
	s = strings.Trim(s, "${}%:")
	if len(s) < 3 {
		return ""
	}
	letters := 0
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z':
			letters++
		case c == '_', '0' <= c && c <= '9' && i > 0:
		default:
			return ""
		}
	}
	if letters < 2 || !strings.Contains(s, "_") && !strings.HasSuffix(s, "KEY") && !strings.HasSuffix(s, "TOKEN") {
		return ""
	}
	return s
}

func hasLetter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' })
}

// isFile tells a path, or a name with an ending that no program has, from a name
// that is looked up.
func isFile(s string) bool {
	if strings.ContainsAny(s, "/\\") {
		return !strings.HasPrefix(s, "@") // a scoped package
	}
	_, ending, found := strings.Cut(s, ".")
	return found && !slices.Contains([]string{"exe", "cmd", "bat"}, strings.ToLower(ending))
}

// isRuntime knows the programs that run servers. Any other bare name may be that of
// a folder.
func isRuntime(s string) bool {
	name, ending, _ := strings.Cut(strings.ToLower(s), ".")
	return slices.Contains([]string{"", "exe", "cmd", "bat"}, ending) && slices.Contains([]string{
		"node", "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "tsx", "python", "python3", "py", "pip", "uv", "uvx", "pipx",
		"docker", "podman", "java", "dotnet", "go", "cargo", "ruby", "php", "git",
	}, name)
}

// isScript tells a program's own file, which an entry names, from a file of a package.
func isScript(s string) bool {
	rooted := strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':'
	return rooted && !strings.Contains(s, "node_modules")
}

// isFiller tells the words of a sentence from the name of a program, where a
// phrase cannot: "the file was not found" is not about a program called file.
func isFiller(s string) bool {
	switch strings.ToLower(s) {
	case "a", "an", "and", "be", "but", "could", "error", "failed", "file", "is", "it", "module", "not", "object",
		"package", "page", "path", "process", "record", "resource", "server", "session", "that", "the", "this",
		"tool", "url", "user", "was", "were", "which", "with", "method", "command", "directory":
		return true
	}
	return false
}

// printable keeps control characters and broken bytes out of what we show.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}
