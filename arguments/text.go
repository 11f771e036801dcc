package arguments

import (
	"bytes"
	"strings"
)

// fromText turns arguments that came as text, or not at all, into an object.
// The text must be complete: what was cut off is gone, and closing it would run
// the tool with part of what was meant.
func fromText(args []byte) ([]byte, Change, bool) {
	value, _, broken := decode(args)
	if broken != nil {
		// The bytes themselves are the model's text, as some gateways pass it on.
		return looseText(string(args), args)
	}
	switch value := value.(type) {
	case nil:
		return []byte("{}"), Change{From: "null", To: "{}", Rule: RuleEmpty}, true
	case string:
		return unquote(value, args, maxTextLevel)
	}
	return nil, Change{}, false
}

func unquote(text string, args []byte, level int) ([]byte, Change, bool) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return []byte("{}"), Change{From: string(args), To: "{}", Rule: RuleEmpty}, true
	}
	value, _, broken := decode([]byte(trimmed))
	if broken != nil {
		return looseText(trimmed, args)
	}
	switch value := value.(type) {
	case map[string]any:
		return []byte(trimmed), Change{From: string(args), To: trimmed, Rule: RuleText}, true
	case string:
		if level > 1 {
			return unquote(value, args, level-1)
		}
	}
	return nil, Change{}, false
}

// looseText reads what models write when they mean JSON: inside one code fence,
// with Python's literals or quotes, a bare key, a raw line break in a string, a
// comma too many. Each has one reading.
func looseText(text string, args []byte) ([]byte, Change, bool) {
	d := decoder{data: []byte(unfence(strings.TrimSpace(text))), loose: true}
	value, err := d.document()
	if _, ok := value.(map[string]any); !ok || err != nil {
		return nil, Change{}, false
	}
	out := bytes.TrimSpace(d.tidy())
	if _, _, err := decode(out); err != nil {
		return nil, Change{}, false
	}
	return out, Change{From: string(args), To: string(out), Rule: RuleText}, true
}

// tidy returns the text with its slips put right, and all else as it was.
func (d *decoder) tidy() []byte {
	out := make([]byte, 0, len(d.data))
	done := 0
	for _, f := range d.fixes {
		out = append(out, d.data[done:f.start]...)
		out = append(out, f.text...)
		done = f.end
	}
	return append(out, d.data[done:]...)
}

// unfence takes text out of a Markdown code fence that holds nothing else.
func unfence(text string) string {
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	line, body, ok := strings.Cut(rest, "\n")
	if !ok || strings.Trim(strings.ToLower(strings.TrimSpace(line)), "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return text
	}
	if body, ok = strings.CutSuffix(strings.TrimRight(body, " \t\r\n"), "```"); !ok {
		return text
	}
	return body
}
