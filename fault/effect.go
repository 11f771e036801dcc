package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Effect is what a second execution of the same call would do. The zero value is
// the worst: a tool of which nothing is known may destroy something.
type Effect uint8

const (
	// Destructive: a second execution may destroy something. This is what the
	// protocol tells us to assume when nothing is said.
	Destructive Effect = iota
	// Unstated: it adds something each time, or nobody knows.
	Unstated
	// Keyed: the call carries a key by which the server recognises it again. Only
	// the user can say this; MCP has no such key.
	Keyed
	// Idempotent: a second execution with the same arguments changes nothing more.
	Idempotent
	// ReadOnly: it changes nothing.
	ReadOnly
)

var effectNames = [...]string{"destructive", "unstated", "keyed", "idempotent", "read-only"}

func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return fmt.Sprintf("Effect(%d)", e)
}

// MarshalText writes the effect's name.
func (e Effect) MarshalText() ([]byte, error) {
	if int(e) >= len(effectNames) {
		return nil, fmt.Errorf("no effect has the number %d", e)
	}
	return []byte(e.String()), nil
}

// UnmarshalText reads the effect's name, as users write it in a policy.
func (e *Effect) UnmarshalText(text []byte) error {
	for i, name := range effectNames {
		if string(text) == name {
			*e = Effect(i)
			return nil
		}
	}
	return fmt.Errorf("unknown effect %q: want one of %q", text, effectNames)
}

// Trust is how much of what a server says about its own tools is believed.
type Trust string

const (
	// TrustNone believes nothing. It is what the zero value means.
	TrustNone Trust = "none"
	// TrustReadOnly believes that a tool is read-only, and nothing else.
	TrustReadOnly Trust = "read-only"
	// TrustAll believes every annotation.
	TrustAll Trust = "all"
)

// Policy is the user's word on the tools of one server. The zero value trusts
// nothing.
type Policy struct {
	Trust Trust
	// Tools gives the effect of single tools by their exact name as the server has
	// it, and that of all others under "*". It outranks every annotation.
	Tools map[string]Effect
}

// Effect says what a second execution of a tool would do, and whether that is
// the user's own word rather than the server's. annotations is the tool's
// "annotations" member as it came; it may be empty.
//
// An annotation that is not there, or is not believed, counts as what the
// protocol makes its default: not read-only, destructive, not idempotent.
func (p Policy) Effect(tool string, annotations json.RawMessage) (effect Effect, byUser bool) {
	if effect, ok := p.Tools[tool]; ok {
		return effect, true
	}
	if effect, ok := p.Tools["*"]; ok {
		return effect, true
	}
	h, err := readHints(annotations)
	if err != nil || h.contradict() {
		return Destructive, false
	}
	switch p.Trust {
	case TrustReadOnly:
		if h.is(readOnlyHint) {
			return ReadOnly, false
		}
	case TrustAll:
		switch {
		case h.is(readOnlyHint):
			return ReadOnly, false
		case h.is(idempotentHint):
			return Idempotent, false
		case h.isNot(destructiveHint):
			return Unstated, false
		}
	}
	return Destructive, false
}

const (
	readOnlyHint    = "readOnlyHint"
	destructiveHint = "destructiveHint"
	idempotentHint  = "idempotentHint"
)

// hints holds the annotations that were given, true or false.
type hints map[string]bool

func (h hints) is(name string) bool { return h[name] }

func (h hints) isNot(name string) bool {
	v, given := h[name]
	return given && !v
}

func (h hints) contradict() bool { return h.is(readOnlyHint) && h.is(destructiveHint) }

// readHints reads the three annotations that speak of effects. It is strict where
// encoding/json is not: names count by their exact case, and a name given twice or
// a value that is no boolean is an error, since another reader might see another
// value than we do.
func readHints(raw json.RawMessage) (hints, error) {
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("annotations are not an object")
	}
	h := make(hints)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		name := key.(string)
		if name != readOnlyHint && name != destructiveHint && name != idempotentHint {
			continue
		}
		v, ok := value.(bool)
		if _, twice := h[name]; twice || !ok {
			return nil, fmt.Errorf("annotation %s is given twice or is not a boolean", name)
		}
		h[name] = v
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	return h, nil
}
