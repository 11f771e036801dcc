package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// A Hider hides secrets that are known, wherever they stand and however they are
// escaped, and then what looks like one. It is filled first and read afterwards;
// reading is safe from several goroutines. A nil Hider only scrubs.
//
// Until it is first read it does no more than remember what it was given.
type Hider struct {
	given []given
	once  sync.Once
	forms []form // longest first
	taken map[string]bool
}

type given struct {
	mark, name, value string
	doubt             bool // it is up to name and value whether this is a secret
}

// A form is one way to write a secret.
type form struct {
	text, mark string
	base64     bool // what stands around it is part of the same secret
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

func (h *Hider) build() {
	h.taken = make(map[string]bool)
	for _, g := range h.given {
		switch {
		case !g.doubt:
			h.learn(g.mark, g.value)
		case tells(g.name, g.value):
			h.learn(g.mark, g.value)
			h.learnCredentials(g.mark, g.value)
		default:
			h.learnURL(g.mark, g.value)
		}
	}
	slices.SortStableFunc(h.forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
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
	add := func(text, mark string, b64 bool) {
		if !h.taken[text] {
			h.taken[text] = true
			h.forms = append(h.forms, form{text, mark, b64})
		}
	}
	if len(value) < 4 {
		for _, quote := range [...]string{`"`, `\"`, "'"} {
			add(quote+value+quote, quote+mark+quote, false)
		}
	} else {
		for _, text := range escapes(value) {
			add(text, mark, false)
		}
	}
	if len(value) >= 6 {
		for _, text := range insideBase64(value) {
			add(text, mark, true)
		}
	}
}

// escapes are the ways in which a text stands in JSON, in JSON inside of JSON, and
// in an address.
func escapes(s string) []string {
	out := []string{s}
	for _, html := range [...]bool{false, true} {
		once := jsonEscape(s, html)
		out = append(out, once, jsonEscape(once, html))
	}
	out = append(out, strings.ReplaceAll(s, "/", `\/`))
	for _, escaped := range [...]string{
		url.QueryEscape(s), strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), url.PathEscape(s), component.Replace(url.QueryEscape(s)),
		url.UserPassword("", s).String()[1:],
	} {
		out = append(out, escaped, lowerEscapes(escaped), url.QueryEscape(escaped))
	}
	return out
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

// Text is s without secrets. If s was cut, the beginning of a secret at its end,
// or the end of one at its beginning, is hidden too.
func (h *Hider) Text(s string) string {
	if h == nil {
		return Scrub(s)
	}
	h.once.Do(h.build)
	for _, f := range h.forms {
		if f.base64 {
			s = replaceAround(s, f)
		} else {
			s = strings.ReplaceAll(s, f.text, f.mark)
		}
	}
	return Scrub(h.edges(s))
}

// replaceAround replaces a form together with all the base64 around it.
func replaceAround(s string, f form) string {
	for from := 0; ; {
		i := strings.Index(s[from:], f.text)
		if i < 0 {
			return s
		}
		start, end := from+i, from+i+len(f.text)
		for start > 0 && isBase64(s[start-1]) {
			start--
		}
		for end < len(s) && isBase64(s[end]) {
			end++
		}
		s = s[:start] + f.mark + s[end:]
		from = start + len(f.mark)
	}
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
