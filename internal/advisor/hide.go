package advisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// mask replaces secrets by placeholders before a model sees them, and puts them
// back at the very place where they stood. A placeholder that turns up anywhere
// else is refused: the model has no business with what is behind it. A mask is
// filled once and only read afterwards.
type mask struct {
	nonce  string
	places map[string]hidden // by JSON pointer
	known  *secret.Hider     // secret texts, to be found again elsewhere
	given  *secret.Hider     // what the server was given; may be nil
}

type hidden struct {
	shown    string
	original any
}

func newMask(nonce string, given *secret.Hider) *mask {
	return &mask{nonce: nonce, places: make(map[string]hidden), known: secret.New(), given: given}
}

// collect remembers what is secret by the name of its field, so that it is found
// wherever else it stands.
func (m *mask) collect(v any, hide bool) {
	switch v := v.(type) {
	case object:
		for key, member := range v {
			m.collect(member, hide || secret.Name(key))
		}
	case []any:
		for _, member := range v {
			m.collect(member, hide)
		}
	case string, json.Number:
		if text := wording(v); hide && text != "" {
			m.known.Know("hidden", text)
		}
	}
}

// hideArguments returns a copy without secrets.
func (m *mask) hideArguments(pointer string, v any, hide bool) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, member := range v {
			at := under(pointer, key)
			out[m.text(key)] = m.hideArguments(at, member, hide || secret.Name(key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.hideArguments(item(pointer, i), v[i], hide)
		}
		return out
	case string, json.Number:
		shown := m.placeholder()
		if !hide {
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
func (m *mask) hideSchema(v any, hide, value bool) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, member := range v {
			gives := slices.Contains([]string{"default", "const", "enum", "example", "examples"}, key)
			out[m.text(key)] = m.hideSchema(member, hide || secret.Name(key), value || gives)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.hideSchema(v[i], hide, value)
		}
		return out
	case string:
		if hide && value {
			return secret.Mark
		}
		return m.text(v)
	case json.Number:
		if hide && value {
			return secret.Mark
		}
	}
	return v
}

// text hides what looks like a secret, and what was found to be one elsewhere.
func (m *mask) text(s string) string { return m.known.Text(m.given.Text(s)) }

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
