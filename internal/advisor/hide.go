package advisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// mask replaces secrets by placeholders before a model sees them, and puts them
// back at the very place where they stood. A placeholder that turns up anywhere
// else is refused: the model has no business with what is behind it. A mask is
// filled once and only read afterwards.
type mask struct {
	nonce  string
	places map[string]hidden // by JSON pointer
	seen   []string          // secret texts, to be found again elsewhere
}

type hidden struct {
	shown    string
	original any
}

func newMask(nonce string) *mask { return &mask{nonce: nonce, places: make(map[string]hidden)} }

// collect remembers what is secret by the name of its field, so that it is found
// wherever else it stands.
func (m *mask) collect(v any, secret bool) {
	switch v := v.(type) {
	case object:
		for key, member := range v {
			m.collect(member, secret || isSecretName(key))
		}
	case []any:
		for _, member := range v {
			m.collect(member, secret)
		}
	case string, json.Number:
		if text := wording(v); secret && text != "" {
			m.seen = append(m.seen, text)
		}
	}
}

// hideArguments returns a copy without secrets.
func (m *mask) hideArguments(pointer string, v any, secret bool) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, member := range v {
			at := under(pointer, key)
			out[m.text(key)] = m.hideArguments(at, member, secret || isSecretName(key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.hideArguments(item(pointer, i), v[i], secret)
		}
		return out
	case string, json.Number:
		shown := m.placeholder()
		if !secret {
			if shown = m.text(wording(v)); shown == wording(v) {
				return v
			}
		}
		m.places[pointer] = hidden{shown, v}
		return shown
	}
	return v
}

func (m *mask) placeholder() string { return fmt.Sprintf("[hidden %s %d]", m.nonce, len(m.places)+1) }

// hideSchema returns a copy of a schema without the values it gives to secret
// fields. Their types and bounds are no secret.
func (m *mask) hideSchema(v any, secret, value bool) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, member := range v {
			gives := slices.Contains([]string{"default", "const", "enum", "example", "examples"}, key)
			out[m.text(key)] = m.hideSchema(member, secret || isSecretName(key), value || gives)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.hideSchema(v[i], secret, value)
		}
		return out
	case string:
		if secret && value {
			return "[hidden]"
		}
		return m.text(v)
	case json.Number:
		if secret && value {
			return "[hidden]"
		}
	}
	return v
}

// text hides what looks like a secret, and what was found to be one elsewhere.
func (m *mask) text(s string) string {
	for _, secret := range m.seen {
		quoted := string(encode(secret))
		s = strings.ReplaceAll(s, quoted, `"[hidden]"`)
		if len(secret) >= 4 { // shorter ones are also parts of words
			s = strings.ReplaceAll(s, quoted[1:len(quoted)-1], "[hidden]")
			s = strings.ReplaceAll(s, secret, "[hidden]")
		}
	}
	return scrub(s)
}

// restore puts the secrets back into the model's arguments.
func (m *mask) restore(pointer string, v any) (any, error) {
	if h, ok := m.places[pointer]; ok {
		if shown, ok := v.(string); !ok || shown != h.shown {
			return nil, fmt.Errorf("changes %s, which was hidden", show(pointer))
		}
		return h.original, nil
	}
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, member := range v {
			if m.shows(key) {
				return nil, errors.New("a hidden value as the name of a field")
			}
			restored, err := m.restore(under(pointer, key), member)
			if err != nil {
				return nil, err
			}
			out[key] = restored
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			restored, err := m.restore(item(pointer, i), v[i])
			if err != nil {
				return nil, err
			}
			out[i] = restored
		}
		return out, nil
	}
	if s, ok := v.(string); ok && m.shows(s) {
		return nil, fmt.Errorf("a hidden value at %s", show(pointer))
	}
	return v, nil
}

func (m *mask) shows(s string) bool {
	return strings.Contains(s, m.nonce) || strings.Contains(s, "[hidden")
}

// isSecretName says by its name that a field holds something not to be shown.
func isSecretName(name string) bool {
	ws := words(name)
	has := func(list ...string) bool {
		return slices.ContainsFunc(ws, func(w string) bool {
			return slices.Contains(list, w) || slices.Contains(list, strings.TrimSuffix(w, "s"))
		})
	}
	switch joined := strings.Join(ws, ""); {
	case has("password", "passwd", "pwd", "passphrase", "pass", "secret", "credential", "authorization", "auth", "bearer", "cookie", "session", "key", "otp", "pin", "jwt", "signature"),
		strings.Contains(joined, "apikey"), strings.Contains(joined, "privatekey"), strings.Contains(joined, "accesskey"), strings.Contains(joined, "password"):
		return true
	case has("token"), strings.HasSuffix(joined, "token"):
		// To hide a limit or a page would hide the mistake.
		return !has("page", "max", "min", "next", "count", "limit", "type", "num", "budget")
	}
	return false
}

// What secrets look like in a text. The first group, where there is one, is kept.
var secretShapes = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}`),
	regexp.MustCompile(`(?i)\b((?:basic|digest|token)\s+)[A-Za-z0-9._~+/=-]{16,}`),
	regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/@"']+@`),
	// A telling name, and what stands behind it.
	regexp.MustCompile(`(?i)([\w-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|access[_-]?token|auth[_-]?token|refresh[_-]?token|\btoken|authorization|cookie|credential)s?["']?\s*[:=]\s*["']?)[^\s"',;&}]+`),
	// Makers of keys that mark them.
	regexp.MustCompile(`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}`),
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|npm_|hf_|dop_v1_|shpat_|AIza|AKIA|ASIA|ya29\.)[A-Za-z0-9_.-]{8,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){1,2}`),
}

var longRun = regexp.MustCompile(`[A-Za-z0-9+=_-]{20,}`)

// scrub hides what looks like a secret.
func scrub(s string) string {
	for _, shape := range secretShapes {
		s = shape.ReplaceAllString(s, "${1}[hidden]")
	}
	return longRun.ReplaceAllStringFunc(s, func(run string) string {
		if isRandom(run) {
			return "[hidden]"
		}
		return run
	})
}

// isRandom tells keys from names: letters and digits in no order, and many
// different ones. A name is made of words, and of few digits at its end.
func isRandom(s string) bool {
	counts := make(map[rune]int)
	digits, switches := 0, 0
	for i, r := range s {
		counts[r]++
		digit := '0' <= r && r <= '9'
		if digit {
			digits++
		}
		if i > 0 && digit != ('0' <= s[i-1] && s[i-1] <= '9') {
			switches++
		}
	}
	bits := 0.0
	for _, n := range counts {
		p := float64(n) / float64(len(s))
		bits -= p * math.Log2(p)
	}
	return bits >= 3 && digits >= 2 && switches >= 4
}
