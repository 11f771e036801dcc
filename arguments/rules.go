package arguments

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// answers lists the lossless answers to one objection. None means that mending
// it would be a guess.
func (m *mender) answers(e *jsonschema.ValidationError, root any) []plan {
	path := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		value, _ := at(root, path)
		return m.retype(path, value, root, k.Want, m.schema.at[e.SchemaURL])
	case *kind.Enum:
		return m.respell(path, k.Got, root, k.Want)
	case *kind.Const:
		return m.respell(path, k.Got, root, []any{k.Want})
	case *kind.Required:
		return m.fill(path, k.Missing, root)
	case *kind.AdditionalProperties:
		return m.rekey(path, k.Properties, root)
	case *kind.FalseSchema:
		if len(path) > 0 {
			return m.rekey(path[:len(path)-1], path[len(path)-1:], root)
		}
	}
	return nil
}

func one(e edit) []plan { return []plan{{e}} }

// retype answers "this type is not accepted here".
func (m *mender) retype(path []string, value, root any, wants []string, part *jsonschema.Schema) []plan {
	switch value := value.(type) {
	case nil:
		return m.leaveOut(path, root)
	case string:
		return m.retypeText(path, value, root, wants, part)
	case json.Number:
		return quoteInteger(path, value, wants)
	case []any:
		return unwrapOne(path, value, wants)
	case map[string]any:
		if slices.Contains(wants, "array") && takes(part, "object") && !isOneOfMany(path, root) {
			return one(edit{op: wrap, path: path, rule: RuleWrap})
		}
	}
	return nil
}

func (m *mender) retypeText(path []string, text string, root any, wants []string, part *jsonschema.Schema) []plan {
	var ways []plan
	add := func(text string, rule Rule) {
		ways = append(ways, plan{{path: path, text: text, rule: rule}})
	}
	for _, want := range wants {
		switch want {
		case "integer":
			if isCanonicalNumber(text) && !strings.Contains(text, ".") {
				add(text, RuleNumberText)
			}
		case "number":
			if isCanonicalNumber(text) {
				add(text, RuleNumberText)
			}
		case "boolean":
			switch text {
			case "true", "false":
				add(text, RuleBooleanText)
			case "True", "False":
				add(strings.ToLower(text), RulePythonText)
			}
		case "object", "array":
			if inner, ok := jsonText(text, want); ok {
				add(inner, containerRule(want, path, root))
			} else if want == "array" && takes(part, "string") && isOneThing(path, text) && !isOneOfMany(path, root) {
				ways = append(ways, plan{{op: wrap, path: path, rule: RuleWrap}})
			}
		}
	}
	return dedupePlans(ways)
}

// dedupePlans: "42" is an answer to integer and to number, but only one.
func dedupePlans(ways []plan) []plan {
	return slices.CompactFunc(ways, func(a, b plan) bool { return a[0].equal(b[0]) })
}

func containerRule(want string, path []string, root any) Rule {
	if len(path) > 0 {
		if parent, _ := at(root, path[:len(path)-1]); typeOf(parent) == "array" {
			return RuleItemText
		}
	}
	if want == "array" {
		return RuleArrayText
	}
	return RuleObjectText
}

// isCanonicalNumber accepts the text a number has in JSON and no other: no
// exponent, sign or zeros in front, which codes and identifiers may have.
func isCanonicalNumber(text string) bool {
	return text != "" && text != "-0" && len(text) <= maxDigits &&
		scanNumber([]byte(text)) == len(text) && !strings.ContainsAny(text, "eE")
}

// jsonText returns the container that text is the JSON of.
func jsonText(text, want string) (string, bool) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != map[string]byte{"object": '{', "array": '['}[want] {
		return "", false
	}
	if _, _, err := decode([]byte(trimmed)); err != nil {
		return "", false
	}
	return trimmed, true
}

// isOneThing says that a text cannot be several written as one, nor a
// placeholder for nothing.
func isOneThing(path []string, text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "null", "none", "nil", "undefined", "n/a", "nan":
		return false
	}
	if strings.ContainsAny(text, ",;|\n\r\t") || strings.ContainsAny(text[:1], "[{(\"'<`") {
		return false
	}
	return len(path) == 0 || !isCommand(path[len(path)-1])
}

// isOneOfMany says that a value stands in a list with others. If lists are
// wanted there, all of them may be one row or each a row of its own.
func isOneOfMany(path []string, root any) bool {
	if len(path) == 0 {
		return false
	}
	parent, _ := at(root, path[:len(path)-1])
	list, ok := parent.([]any)
	return ok && len(list) > 1
}

// takes says that the items of a list may be of a type. It wants to hear it from
// the schema: a list of anything says nothing about what one of them looks like.
func takes(part *jsonschema.Schema, typ string) bool {
	if part == nil {
		return false
	}
	items := itemsOf(part)
	if items == nil {
		return false
	}
	for _, p := range unfold([]*jsonschema.Schema{items}) {
		if p.Types != nil && slices.Contains(p.Types.ToStrings(), typ) {
			return true
		}
		if p.Enum != nil && slices.ContainsFunc(p.Enum.Values, func(v any) bool { return typeOf(v) == typ }) {
			return true
		}
	}
	return false
}

// quoteInteger puts a whole number into quotes, digit by digit. Fractions and
// exponents may have lost characters before they came here.
func quoteInteger(path []string, n json.Number, wants []string) []plan {
	if !slices.Contains(wants, "string") || strings.ContainsAny(string(n), ".eE") || n == "-0" {
		return nil
	}
	if len(path) > 0 && isCode(path[len(path)-1]) {
		return nil
	}
	return one(edit{path: path, text: `"` + string(n) + `"`, rule: RuleIntegerToken})
}

// unwrapOne takes the only item out of its list.
func unwrapOne(path []string, items []any, wants []string) []plan {
	if len(items) != 1 || !slices.ContainsFunc(wants, isScalar) || !isScalar(typeOf(items[0])) {
		return nil
	}
	return one(edit{op: unwrap, path: path, rule: RuleUnwrap})
}

func isScalar(typ string) bool {
	return typ == "string" || typ == "number" || typ == "integer" || typ == "boolean"
}

// leaveOut removes a null where "not given" is the only thing it can mean: an
// optional member of a call that changes nothing. To an updating tool null may
// say "clear this".
func (m *mender) leaveOut(path []string, root any) []plan {
	if m.call.Risk != ReadOnly || len(path) == 0 {
		return nil
	}
	parent, key := path[:len(path)-1], path[len(path)-1]
	if v, _ := at(root, parent); typeOf(v) != "object" {
		return nil
	}
	for _, p := range m.schema.parts(parent) {
		if slices.Contains(p.Required, key) {
			return nil
		}
	}
	return one(edit{op: remove, path: parent, key: key, rule: RuleNull})
}

// respell answers "not one of the allowed values".
func (m *mender) respell(path []string, got, root any, allowed []any) []plan {
	switch got := got.(type) {
	case nil:
		return m.leaveOut(path, root)
	case string:
		return respellText(path, got, allowed)
	case json.Number:
		for _, v := range allowed {
			if v == any(string(got)) {
				return quoteInteger(path, got, []string{"string"})
			}
		}
	case []any:
		if len(got) == 1 && slices.ContainsFunc(allowed, func(v any) bool { return isScalar(typeOf(v)) }) {
			return unwrapOne(path, got, []string{"string", "number", "boolean"})
		}
	}
	return nil
}

func respellText(path []string, got string, allowed []any) []plan {
	var texts []string
	for _, v := range allowed {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case json.Number:
			if string(v) == got && isCanonicalNumber(got) {
				return one(edit{path: path, text: got, rule: RuleNumberText})
			}
		case bool:
			if got == "true" && v || got == "false" && !v {
				return one(edit{path: path, text: got, rule: RuleBooleanText})
			}
		}
	}
	if value, ok := unique(fold(got), texts, fold); ok {
		return one(edit{path: path, text: string(appendString(nil, value)), rule: RuleValue})
	}
	return nil
}

// fill answers "these members are missing": each is there under another
// spelling, or the schema itself knows its value.
func (m *mender) fill(path []string, missing []string, root any) []plan {
	object, _ := at(root, path)
	members, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	names, stray := m.schema.strays(path, members)
	var p plan
	for _, name := range missing {
		if key, ok := onlyAlike(name, stray); ok {
			if other, ok := onlyAlike(key, absent(names, members)); ok && other == name {
				p = append(p, edit{op: rename, path: path, key: key, text: name, rule: RuleKey})
				continue
			}
		}
		// A key we do not know may be this very member, misspelled.
		value, ok := m.given(path, name)
		if !ok || len(stray) > 0 {
			return nil
		}
		p = append(p, edit{op: insert, path: path, key: name, text: value, rule: RuleDefault})
	}
	return []plan{p}
}

// rekey answers "there are no such members".
func (m *mender) rekey(path []string, keys []string, root any) []plan {
	object, _ := at(root, path)
	members, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	names, stray := m.schema.strays(path, members)
	var p plan
	for _, key := range keys {
		name, ok := onlyAlike(key, absent(names, members))
		if !ok {
			return nil
		}
		if other, ok := onlyAlike(name, stray); !ok || other != key {
			return nil
		}
		p = append(p, edit{op: rename, path: path, key: key, text: name, rule: RuleKey})
	}
	return []plan{p}
}

func onlyAlike(name string, names []string) (string, bool) {
	return unique(fold(name), names, fold)
}

// given returns the value a schema itself gives a member. Never a confirmation
// or a permission: those must be said.
func (m *mender) given(path []string, name string) (string, bool) {
	if isPower(name) {
		return "", false
	}
	for part := m.schema.member(path, name); part != nil; part = part.Ref {
		switch {
		case part.Const != nil:
			return string(encode(*part.Const)), true
		case part.Default != nil:
			return string(encode(*part.Default)), true
		case part.Enum != nil && len(part.Enum.Values) == 1:
			return string(encode(part.Enum.Values[0])), true
		}
	}
	return "", false
}

// envelopes are the names models and frameworks give the object that holds the
// arguments.
var envelopes = []string{"arguments", "args", "params", "parameters", "input", "kwargs", "tool_input", "toolInput"}

// unwrapCall takes the arguments out of an envelope: one undeclared key that is
// known to be one, alone or beside the name of this very tool.
func (m *mender) unwrapCall(args []byte, v verdict) ([]byte, Change, bool) {
	members, ok := v.value.(map[string]any)
	if !ok || len(members) == 0 || len(members) > 2 {
		return nil, Change{}, false
	}
	names, _ := m.schema.declared(nil)
	for _, key := range envelopes {
		inner, ok := members[key]
		if !ok || names[key] || len(members) == 2 && !m.namesTool(members) {
			continue
		}
		start, end, ok := scanner{data: args}.find([]string{key})
		if !ok {
			continue
		}
		out := args[start:end]
		switch inner := inner.(type) {
		case map[string]any:
		case string:
			text, ok := jsonText(inner, "object")
			if !ok {
				return nil, Change{}, false
			}
			out = []byte(text)
		default:
			return nil, Change{}, false
		}
		return slices.Clone(out), Change{From: string(args), To: string(out), Rule: RuleEnvelope}, true
	}
	return nil, Change{}, false
}

func (m *mender) namesTool(members map[string]any) bool {
	for _, key := range []string{"name", "tool", "tool_name", "toolName"} {
		if members[key] == any(m.call.Tool) && m.call.Tool != "" {
			return true
		}
	}
	return false
}

// RFC 3339 allows a blank for the T in its prose and not in its grammar.
var spacedDateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$`)

// dateTimes collects the repairs for date-times with a blank in the middle.
func dateTimes(e *jsonschema.ValidationError, edits []edit) []edit {
	if k, ok := e.ErrorKind.(*kind.Format); ok && k.Want == "date-time" {
		if text, ok := k.Got.(string); ok && spacedDateTime.MatchString(text) {
			fixed := strings.Replace(text, " ", "T", 1)
			edits = append(edits, edit{path: e.InstanceLocation, text: string(appendString(nil, fixed)), rule: RuleDateTime})
		}
	}
	for _, cause := range e.Causes {
		edits = dateTimes(cause, edits)
	}
	return edits
}
