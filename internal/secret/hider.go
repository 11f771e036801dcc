package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
)

// A Hider hides secrets that are known, wherever they stand and however they are
// escaped, and then what looks like one. It is filled first and read afterwards;
// reading is safe from several goroutines. A nil Hider only scrubs.
//
// Until it is first read it does no more than remember what it was given.
type Hider struct {
	given []given
	once  sync.Once
	forms []*form
	index index
	taken map[string]bool
}

type given struct {
	mark, name, value string
	doubt             bool     // it is up to name and value whether this is a secret
	args              []string // of a command line, in place of value
}

// A form is one way to write a secret.
type form struct {
	text, mark  string
	base64      bool   // what stands around it is part of the same secret
	bones       string // text without what is dropped
	lead, trail string // what was dropped from its ends, from the inside out
}

// New returns a Hider that knows these values. Values of fewer than four
// characters are also parts of words; they are only hidden in quotes.
func New(values ...string) *Hider {
	h := new(Hider)
	for _, v := range values {
		h.given = append(h.given, given{mark: Mark, value: v})
	}
	return h
}

// Know adds a secret that will be shown as [name], whatever its name says.
func (h *Hider) Know(name, value string) {
	h.given = append(h.given, given{mark: "[" + name + "]", value: value})
}

// Show adds a text that will be shown as another one, in which marks stand for what
// is secret in it.
func (h *Hider) Show(text, shown string) {
	h.given = append(h.given, given{mark: shown, value: text})
}

// Add adds what is secret in the value of a variable, header or parameter, if its
// name or its look says that something is. It will be shown as [name].
func (h *Hider) Add(name, value string) {
	h.given = append(h.given, given{mark: "[" + name + "]", name: name, value: value, doubt: true})
}

// AddEnviron adds the secrets among variables, each of the form NAME=value.
func (h *Hider) AddEnviron(environ []string) {
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			h.Add(name, value)
		}
	}
}

// AddArgs adds the words of a command line that may not be shown whole.
func (h *Hider) AddArgs(words []string) {
	h.given = append(h.given, given{mark: Mark, args: slices.Clone(words)})
}

func (h *Hider) learnArgs(words []string) {
	for i, shown := range Args(words) {
		if shown == words[i] {
			continue
		}
		// What stands before the mark, such as "--token=", is no part of the secret, and
		// what stands behind it, such as a host and port, may be what a change is about.
		before, _, _ := strings.Cut(shown, Mark)
		h.learn(strings.TrimPrefix(shown, before), strings.TrimPrefix(words[i], before))
		if strings.Contains(words[i], "://") {
			h.learnURL(Mark, words[i]) // its password alone
		}
	}
}

// AddHeader adds what is secret in a header of the form "Name: value".
func (h *Hider) AddHeader(header string) {
	name, value, _ := strings.Cut(header, ":")
	h.Add(name, strings.TrimSpace(value))
}

func (h *Hider) build() {
	h.taken = make(map[string]bool)
	for _, g := range h.given {
		switch {
		case g.args != nil:
			h.learnArgs(g.args)
		case !g.doubt:
			h.learn(g.mark, g.value)
		case tells(g.name, g.value):
			h.learn(g.mark, g.value)
			h.learnCredentials(g.mark, g.value)
			h.learnMembers(g.mark, g.value)
		default:
			h.learnURL(g.mark, g.value)
		}
	}
	h.given, h.taken = nil, nil
}

// learnCredentials learns what stands behind the scheme of a header.
func (h *Hider) learnCredentials(mark, value string) {
	scheme, credentials, ok := strings.Cut(value, " ")
	if !ok || !schemes[strings.ToLower(scheme)] {
		return
	}
	if isReference(credentials) {
		return
	}
	h.learn(mark, credentials)
	if plain, err := base64.StdEncoding.DecodeString(credentials); err == nil && strings.EqualFold(scheme, "basic") {
		if _, password, ok := strings.Cut(string(plain), ":"); ok {
			h.learn(mark, password)
		}
	}
}

// learnMembers learns what is secret in an object of JSON, such as the key of a service
// account: programs read it, and then print its parts.
func (h *Hider) learnMembers(mark, value string) {
	if !strings.HasPrefix(value, "{") {
		return
	}
	var members map[string]any
	if json.Unmarshal([]byte(value), &members) != nil {
		return
	}
	for name, member := range members {
		if text, ok := member.(string); ok && tells(name, text) {
			h.learn(mark, text)
		}
	}
}

// learnURL learns the password and the secret parameters of an address.
func (h *Hider) learnURL(mark, value string) {
	if !strings.Contains(value, "://") {
		return
	}
	u, err := url.Parse(value)
	if err != nil {
		return
	}
	if password, ok := u.User.Password(); ok {
		h.learn(mark, password)
	}
	for name, values := range u.Query() {
		for _, v := range values {
			if tells(name, v) {
				h.learn(mark, v)
			}
		}
	}
}

func (h *Hider) learn(mark, value string) {
	value = strings.TrimSpace(value)
	if value == "" || h.taken[value] || trivial[strings.ToLower(value)] {
		return
	}
	if len(value) < 4 {
		for _, quote := range [...]string{`"`, `\"`, "'"} {
			h.add(quote+value+quote, quote+mark+quote, false)
		}
	} else {
		for _, text := range escapes(value) {
			h.add(text, mark, false)
		}
	}
	if len(value) >= 6 {
		for _, text := range hexes(value) {
			h.add(text, mark, false)
		}
		for _, text := range insideBase64(value) {
			h.add(text, mark, true)
		}
	}
	if !strings.Contains(value, "\n") {
		return
	}
	for line := range strings.Lines(value) { // which are also shown one by one
		if line = strings.TrimSpace(line); len(line) >= shortest {
			h.learn(mark, line)
		}
	}
}

func (h *Hider) add(text, mark string, b64 bool) {
	if h.taken[text] {
		return
	}
	h.taken[text] = true
	f := &form{text: text, mark: mark, base64: b64, bones: bone(text)}
	h.forms = append(h.forms, f)
	if len(f.bones) < leastRun {
		return
	}
	inside := func(r rune) bool { return r < 256 && dropped[byte(r)] }
	lead := []byte(text[:len(text)-len(strings.TrimLeftFunc(text, inside))])
	slices.Reverse(lead)
	f.lead, f.trail = string(lead), text[len(strings.TrimRightFunc(text, inside)):]
	h.index.add(f)
}

// escapes are the ways in which a text stands in JSON, in JSON inside of JSON, in an
// address and in HTML.
func escapes(s string) []string {
	out := []string{s, html.EscapeString(s), strings.ReplaceAll(s, "/", `\/`), asciiOnly(s)}
	for _, html := range [...]bool{false, true} {
		once := jsonEscape(s, html)
		out = append(out, once, jsonEscape(once, html), asciiOnly(once))
	}
	for _, escaped := range [...]string{
		url.QueryEscape(s), strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), url.PathEscape(s), component.Replace(url.QueryEscape(s)),
		url.UserPassword("", s).String()[1:], eachByte(s, "%%%02X"),
	} {
		out = append(out, escaped, lowerEscapes(escaped), url.QueryEscape(escaped))
	}
	return out
}

// hexes are the ways in which dumps write bytes; blanks, commas, colons and backslashes
// between them make no difference.
func hexes(s string) []string {
	var out []string
	for _, format := range [...]string{"%02x", "%02X", "%02x-", "%02X-", "x%02x", "x%02X", "0x%02x", "0x%02X"} {
		out = append(out, strings.TrimLeft(strings.TrimSuffix(eachByte(s, format), "-"), "x"))
	}
	return out
}

func eachByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// asciiOnly writes other letters as \u00e9, which is what Python does in JSON.
func asciiOnly(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 128:
			b.WriteRune(r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// component turns Go's escapes into those of a browser.
var component = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}

func jsonEscape(s string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(s); err != nil {
		return s
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// insideBase64 is what can be seen of a text in the base64 of a longer one, such
// as user:text: three forms, by where it begins in a group of three bytes.
func insideBase64(s string) []string {
	var out []string
	for shift := range 3 {
		whole := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:shift] + s))
		core := whole[(8*shift+5)/6 : 8*(shift+len(s))/6]
		out = append(out, core, strings.NewReplacer("+", "-", "/", "_").Replace(core))
	}
	return out
}

// Text is s without secrets. It is best given the whole of what is shown: a secret may go
// over several lines. If s was cut, the beginning of a secret at its end, or the end of
// one at its beginning, is hidden too.
func (h *Hider) Text(s string) string {
	if h == nil {
		return Scrub(s)
	}
	h.once.Do(h.build)
	// As in Scrub: what was hidden can bring to light what stood behind it.
	for range 4 {
		next := Scrub(h.edges(h.known(s)))
		if next == s {
			break
		}
		s = next
	}
	return s
}

// Lines are the lines of one text without secrets; as many as there were.
func (h *Hider) Lines(lines []string) []string {
	if len(lines) == 0 {
		return lines
	}
	shown := strings.Split(h.Text(strings.Join(lines, "\n")), "\n")
	if len(shown) == len(lines) {
		return shown
	}
	// One of them had a line break of its own.
	out := make([]string, len(lines))
	for i, line := range lines {
		n := strings.Count(line, "\n") + 1
		out[i] = strings.Join(shown[:min(n, len(shown))], "\n")
		shown = shown[min(n, len(shown)):]
	}
	return out
}

// JSON is a JSON text without secrets in its strings. Text could not see there what
// goes over lines, nor tell a quote of the value from one of the text.
func (h *Hider) JSON(text []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			break
		}
		var value string
		if json.Unmarshal(text[i:end+1], &value) == nil {
			if shown := h.Text(value); shown != value {
				out = append(append(out, text[done:i]...), `"`+jsonEscape(shown, false)+`"`...)
				done = end + 1
			}
		}
		i = end
	}
	return append(out, text[done:]...)
}

// Unnamed is a Hider that knows the same, and shows Mark for each.
func (h *Hider) Unnamed() *Hider {
	out := new(Hider)
	for _, g := range h.given {
		if !strings.Contains(g.mark, Mark) {
			g.mark = Mark
		}
		out.given = append(out.given, g)
	}
	return out
}

// known hides the secrets that are known.
func (h *Hider) known(s string) string {
	var spans []span
	for _, f := range h.forms {
		if len(f.bones) >= leastRun {
			continue
		}
		for from := 0; ; {
			i := strings.Index(s[from:], f.text)
			if i < 0 {
				break
			}
			from += i
			found := span{from, from + len(f.text), f}
			if f.base64 {
				found = around(s, found)
			}
			spans = append(spans, found)
			from += len(f.text)
		}
	}
	return render(s, h.index.find(s, spans))
}

// around is a span together with all the base64 around it.
func around(s string, found span) span {
	for found.start > 0 && s[found.start-1] != '=' && isBase64(s[found.start-1]) {
		found.start--
	}
	for found.end < len(s) && isBase64(s[found.end]) {
		found.end++
	}
	return found
}

func isBase64(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}

// shortest is how much of a secret is one: a few characters are anybody's.
const shortest = 8

func (h *Hider) edges(s string) string {
	text := strings.TrimRight(s, "…. \r\n\"'")
	for _, end := range [...]string{s, text} {
		for _, f := range h.forms {
			for n := min(len(f.text)-1, len(end)); n >= shortest; n-- {
				if strings.HasSuffix(end, f.text[:n]) {
					return h.start(end[:len(end)-n] + f.mark + s[len(end):])
				}
			}
		}
	}
	return h.start(s)
}

func (h *Hider) start(s string) string {
	for _, f := range h.forms {
		for n := min(len(f.text)-1, len(s)); n >= shortest; n-- {
			if strings.HasPrefix(s, f.text[len(f.text)-n:]) {
				return f.mark + s[n:]
			}
		}
	}
	return s
}
