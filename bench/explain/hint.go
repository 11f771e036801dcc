package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/toolset"
)

// hinted reports whether an error holds what its reader needs: what the case
// itself suggests, or else the field at fault and what is wrong with it.
func hinted(c toolset.Case, text string) bool {
	var s struct {
		Rename, To, Add, Remove, Tool string
		Value                         json.RawMessage
		OneOf                         []json.RawMessage `json:"one_of"`
		Maximum                       json.RawMessage
	}
	if len(c.Suggestion) > 0 {
		if err := json.Unmarshal(c.Suggestion, &s); err != nil {
			return false
		}
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if w != "" && strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	names := func(name string) bool { return mentions(text, name) }
	switch {
	case s.To != "":
		return names(s.Rename) && names(s.To)
	case s.Add != "":
		return names(s.Add) && has("missing", "need ", "Expected")
	case s.Remove != "":
		return names(s.Remove) && has("emove", "eave it out")
	case s.Tool != "":
		return names(s.Tool)
	case s.Maximum != nil:
		return names(string(s.Maximum)) && names(last(c.Field))
	case s.Value != nil:
		return has(compact(s.Value))
	case s.OneOf != nil:
		for _, v := range s.OneOf[:min(len(s.OneOf), 12)] {
			if !has(compact(v)) {
				return false
			}
		}
		return true
	case strings.HasPrefix(c.Kind, "truncated_"):
		return has("cut off", "ends too early", "ends inside")
	case c.Kind == "concatenated_objects":
		return has("after the end") && has("one complete JSON object")
	case c.Kind == "duplicate_keys_conflict":
		return has("twice") && names(last(c.Field))
	case c.Group == "toolname":
		return has("no tool") && has(c.ToolCalled)
	case c.Kind == "over_nested":
		return names(last(c.Field)) // the group that was made up
	default:
		return names(last(c.Field)) && has("need ", "missing", "not a field", "Expected")
	}
}

// mentions reports whether a name stands in a text by itself: "id" is not
// mentioned by "invalid".
func mentions(text, name string) bool {
	part := func(s string) bool {
		return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	}
	for from := 0; name != ""; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(name)
		if !part(text[max(start-1, 0):start]) && !part(text[end:min(end+1, len(text))]) {
			return true
		}
		from = start + 1
	}
	return false
}

// last is the name at the end of a JSON pointer, or of the list an item is in.
func last(pointer string) string {
	steps := strings.Split(pointer, "/")
	for i := len(steps) - 1; i > 0; i-- {
		if strings.Trim(steps[i], "0123456789") != "" {
			return strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
		}
	}
	return ""
}

func compact(v json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return string(v)
	}
	var plain any
	dec := json.NewDecoder(&b)
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		return string(v)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain); err != nil {
		return string(v)
	}
	return strings.TrimSpace(out.String())
}
