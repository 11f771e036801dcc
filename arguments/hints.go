package arguments

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// wrong explains a value that is there and does not fit.
func (x *explainer) wrong(f finding, i *Issue) {
	value, _ := at(x.value, f.path)
	got := clip(f.Received, 60)
	i.Problem = "does not satisfy " + f.Keyword
	if f.Keyword == "type" {
		i.Problem = "has the wrong type: " + typeOf(value)
		if typeOf(value) != "null" && f.Received != "(hidden)" {
			got += " (" + typeOf(value) + ")"
		}
	}
	need := "need " + f.Expected
	if f.Keyword == "format" {
		need = "need a " + f.Expected
	}
	i.Fix = "Give " + strings.TrimPrefix(need, "need ") + "."
	hint := ""
	switch meant, ok := x.meant(f, value); {
	case ok:
		i.Suggestion = meant
		hint = " Did you mean " + clip(meant, 120) + "?"
	case value == nil && f.Keyword == "type" && x.optional(f.path):
		i.Fix = "Leave it out, or give " + f.Expected + "."
		hint = " Or leave it out."
	}
	i.line = fmt.Sprintf("%s: got %s, %s.%s", i.Field, got, need, hint)
}

// stray explains a member the schema does not know.
func (x *explainer) stray(f finding, i *Issue) {
	parent, key := f.path[:max(0, len(f.path)-1)], ""
	if len(f.path) > 0 {
		key = f.path[len(f.path)-1]
	}
	object, _ := at(x.value, parent)
	members, _ := object.(map[string]any)
	names, _ := x.Schema.declared(parent)
	free := absent(names, members)
	i.Problem, i.Fix = "is not a field", "Remove it."
	i.line = i.Field + ": not a field"
	meant, ok := nearest(key, free)
	switch home := x.home(parent, names, key); {
	case ok:
		i.Suggestion, i.Fix = strconv.Quote(meant), "Rename it to "+meant+"."
		i.line += fmt.Sprintf(". Did you mean %q? Else remove it.", meant)
	case home != "":
		i.Fix = fmt.Sprintf("Put it inside %q, or remove it.", home)
		i.line += fmt.Sprintf("; put it inside %q, or remove it.", home)
	case len(free) == 0:
		i.line += "; remove it."
	default:
		i.line += "; remove it, or use one of " + names8(free) + "."
	}
}

// home is the only declared object that has a member of that name.
func (x *explainer) home(parent []string, names map[string]bool, key string) string {
	home := ""
	if len(names) > 200 {
		return "" // a search too far, for a hint
	}
	for name := range names {
		inner, _ := x.Schema.declared(append(slices.Clip(parent), name))
		if !inner[key] {
			continue
		}
		if home != "" {
			return ""
		}
		home = name
	}
	return home
}

func names8(names []string) string {
	const most = 8
	s := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		s += fmt.Sprintf(" (%d more)", more)
	}
	return s
}

// missing explains a member that is not there, and looks for it under another
// name, deeper inside, or lying about unpacked.
func (x *explainer) missing(f finding) Issue {
	i := Issue{Field: field(f.path), Problem: "is missing", Expected: f.Expected, Fix: "Add it: " + f.Expected + "."}
	parent, name := f.path[:len(f.path)-1], f.path[len(f.path)-1]
	object, _ := at(x.value, parent)
	members, _ := object.(map[string]any)
	names, stray := x.Schema.strays(parent, members)
	free := absent(names, members)
	stray = slices.DeleteFunc(stray, func(key string) bool {
		other, ok := onlyAlike(key, free)
		return ok && other != name // it is another one's
	})
	i.line = fmt.Sprintf("%s: missing, need %s.", i.Field, f.Expected)
	if len(stray) == 0 {
		return i
	}
	if inner, holder := x.unpacked(f, stray, members, name); inner != nil {
		i.Fix = fmt.Sprintf("Put %s into it.", strings.Join(inner, ", "))
		i.line += " " + i.Fix
		return i
	} else if holder != "" {
		x.renamed[pointer(append(slices.Clip(parent), holder))] = true
		i.Fix = fmt.Sprintf("It is inside %q; move it up.", holder)
		i.line += " " + i.Fix
		return i
	}
	for _, key := range stray {
		x.renamed[pointer(append(slices.Clip(parent), key))] = true
	}
	if meant, ok := nearest(name, stray); ok || len(stray) == 1 {
		if !ok {
			meant = stray[0]
		}
		i.Suggestion = strconv.Quote(meant)
		i.Fix = fmt.Sprintf("You sent %q, which is not a field; rename it?", meant)
	} else {
		i.Fix = fmt.Sprintf("You sent %s, which are not fields; is it one of them?", quoteAll(stray))
	}
	i.line += " " + i.Fix
	return i
}

// unpacked finds the members of a missing object lying beside it, or the missing
// member inside an object nobody knows.
func (x *explainer) unpacked(f finding, stray []string, members map[string]any, name string) (inner []string, holder string) {
	if f.part != nil {
		for _, p := range unfold([]*jsonschema.Schema{f.part}) {
			for _, key := range stray {
				if _, ok := p.Properties[key]; ok && !slices.Contains(inner, key) {
					inner = append(inner, key)
				}
			}
		}
	}
	for _, key := range stray {
		if object, ok := members[key].(map[string]any); ok {
			if _, ok := object[name]; ok {
				holder = key
			}
		}
	}
	return inner, holder
}

func quoteAll(names []string) string {
	const most = 6
	var quoted []string
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(n))
	}
	if len(names) > most {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// meant guesses what was meant by a value. A guess is good enough to ask with.
func (x *explainer) meant(f finding, value any) (string, bool) {
	name := ""
	if len(f.path) > 0 {
		name = f.path[len(f.path)-1]
	}
	if isSecret(name) {
		return "", false
	}
	text, isText := value.(string)
	var texts []string
	for _, v := range f.values {
		if t, ok := v.(string); ok {
			texts = append(texts, t)
		}
	}
	// Who may do what is not for us to propose.
	if isText && len(texts) > 0 && !isPower(name) {
		if t, ok := nearest(text, texts); ok {
			return string(appendString(nil, t)), true
		}
	}
	for _, want := range f.wants {
		switch want {
		case "boolean":
			if b, ok := booleanWord(value); ok {
				return b, true
			}
		case "array":
			if parts := separated(text); isText && parts != nil {
				return string(encode(parts)), true
			}
		}
	}
	return "", false
}

func booleanWord(value any) (string, bool) {
	switch strings.ToLower(strings.Trim(string(encode(value)), `" `)) {
	case "yes", "y", "on", "1", "true", "t", "enabled":
		return "true", true
	case "no", "n", "off", "0", "false", "f", "disabled":
		return "false", true
	}
	return "", false
}

// separated splits text at commas, or at semicolons.
func separated(text string) []any {
	for _, separator := range []string{",", ";", "|", "\n"} {
		if !strings.Contains(text, separator) || strings.ContainsAny(text, `{}[]"`) {
			continue
		}
		var parts []any
		for _, p := range strings.Split(text, separator) {
			parts = append(parts, strings.TrimSpace(p))
		}
		return parts
	}
	return nil
}

func (x *explainer) optional(path []string) bool {
	if len(path) == 0 {
		return false
	}
	for _, p := range x.Schema.parts(path[:len(path)-1]) {
		if slices.Contains(p.Required, path[len(path)-1]) {
			return false
		}
	}
	return true
}
