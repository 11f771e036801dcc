package arguments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Documentation describes what a tool takes, for who failed twice without it.
type Documentation struct {
	Description string     `json:"description,omitempty"`
	Required    []string   `json:"required,omitempty"`
	Properties  []Property `json:"properties"`
}

// Property describes one top-level field.
type Property struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Constraints []string `json:"constraints,omitempty"`
	Examples    []string `json:"examples,omitempty"`
}

const maxProperties = 40

func document(s *Schema, description string) *Documentation {
	root := s.root
	if s.strict != nil {
		root = s.strict // formats are worth telling
	}
	d := &Documentation{Description: description, Properties: []Property{}}
	seen := map[string]*jsonschema.Schema{}
	var names []string
	for _, p := range unfold([]*jsonschema.Schema{root}) {
		d.Required = append(d.Required, p.Required...)
		for name, part := range p.Properties {
			if seen[name] == nil {
				seen[name] = part
				names = append(names, name)
			}
		}
	}
	d.Required = dedupe(d.Required)
	// What is required comes first, in the order of the schema.
	slices.SortFunc(names, func(a, b string) int {
		x, y := slices.Index(d.Required, a), slices.Index(d.Required, b)
		switch {
		case x >= 0 && y >= 0:
			return x - y
		case x >= 0:
			return -1
		case y >= 0:
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names[:min(len(names), maxProperties)] {
		d.Properties = append(d.Properties, property(name, seen[name], root))
	}
	return d
}

func property(name string, part, root *jsonschema.Schema) Property {
	described := part.Description
	part = follow(part)
	if described == "" {
		described = part.Description
	}
	p := Property{Name: name, Type: "any", Description: clip(described, 200), Constraints: constraints(part)}
	if words := describe(part); words != "a value" {
		p.Type = words
	}
	if part.Types != nil {
		p.Type = typeWords(part, part.Types.ToStrings())
	}
	for _, v := range part.Examples[:min(len(part.Examples), 2)] {
		p.Examples = append(p.Examples, clip(string(encode(v)), 80))
	}
	if len(p.Examples) == 0 {
		g := generator{root: root}
		if v, ok := g.value(part, name, 0); ok {
			p.Examples = []string{clip(string(encode(v)), 80)}
		}
	}
	return p
}

func constraints(p *jsonschema.Schema) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if p.Enum != nil {
		add("one of %s", listing(p.Enum.Values))
	}
	if p.Const != nil {
		add("only %s", encode(*p.Const))
	}
	for _, n := range []struct {
		words string
		value *int
	}{
		{"at least %d characters", p.MinLength}, {"at most %d characters", p.MaxLength},
		{"at least %d items", p.MinItems}, {"at most %d items", p.MaxItems},
		{"at least %d fields", p.MinProperties}, {"at most %d fields", p.MaxProperties},
	} {
		if n.value != nil {
			add(n.words, *n.value)
		}
	}
	if p.Minimum != nil {
		add("at least %s", number(p.Minimum))
	}
	if p.ExclusiveMinimum != nil {
		add("more than %s", number(p.ExclusiveMinimum))
	}
	if p.Maximum != nil {
		add("at most %s", number(p.Maximum))
	}
	if p.ExclusiveMaximum != nil {
		add("less than %s", number(p.ExclusiveMaximum))
	}
	if p.MultipleOf != nil {
		add("a multiple of %s", number(p.MultipleOf))
	}
	if p.Pattern != nil {
		add("matches %s", clip(p.Pattern.String(), 80))
	}
	if p.Format != nil {
		add("format %s", p.Format.Name)
	}
	if p.UniqueItems {
		add("items differ from each other")
	}
	return out
}

// advice sorts the problems into what to do about them.
func (x *explainer) advice() []string {
	kinds := map[string][]string{}
	for _, f := range x.findings {
		kind := f.Keyword
		switch kind {
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems":
			kind = "range"
		case "const":
			kind = "enum"
		}
		kinds[kind] = append(kinds[kind], field(f.path))
	}
	var out []string
	for _, k := range []struct{ kind, words string }{
		{"syntax", "Send one complete JSON object as arguments"},
		{"duplicate", "Give each key once"},
		{"required", "Add the missing required fields"},
		{"additionalProperties", "Remove or rename fields the tool does not know"},
		{"type", "Give values of the right type"},
		{"enum", "Use only the allowed values"},
		{"range", "Keep numbers and lengths within their limits"},
		{"pattern", "Match the required pattern"},
		{"format", "Write values in the named format"},
	} {
		if fields := kinds[k.kind]; fields != nil {
			out = append(out, k.words+": "+names8(dedupe(fields)))
		}
	}
	if x.Repeats >= 3 {
		out = append(out, fmt.Sprintf("The same call has now failed %d times: stop and ask the user", x.Repeats+1))
	}
	return out
}

// fullText tells everything, in the order one would ask.
func (x *explainer) fullText(e Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Tool %s received invalid arguments: %s.", x.Tool, count(len(e.Issues)+e.More, "problem"))
	if !x.Forwarded {
		b.WriteString(" The tool was not run.")
	}
	b.WriteString("\n\nIssues:")
	for i, issue := range e.Issues {
		fmt.Fprintf(&b, "\n%d. %s %s", i+1, issue.Field, issue.Problem)
		if issue.Received != "" {
			fmt.Fprintf(&b, "\n   Received: %s", clip(issue.Received, 120))
		}
		fmt.Fprintf(&b, "\n   Expected: %s\n   Fix: %s", issue.Expected, issue.Fix)
		if issue.Suggestion != "" {
			fmt.Fprintf(&b, " Did you mean %s?", clip(issue.Suggestion, 120))
		}
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", e.More)
	}
	b.WriteString("\n\nSchema:")
	if e.Schema.Description != "" {
		fmt.Fprintf(&b, "\nDescription: %s", clip(e.Schema.Description, 400))
	}
	if len(e.Schema.Required) > 0 {
		fmt.Fprintf(&b, "\nRequired fields: %s", strings.Join(e.Schema.Required, ", "))
	}
	for _, p := range e.Schema.Properties {
		fmt.Fprintf(&b, "\n- %s (%s)", p.Name, p.Type)
		if p.Description != "" {
			fmt.Fprintf(&b, ": %s", p.Description)
		}
		if len(p.Constraints) > 0 {
			fmt.Fprintf(&b, "\n  Constraints: %s", strings.Join(p.Constraints, ", "))
		}
		if len(p.Examples) > 0 {
			fmt.Fprintf(&b, "\n  Examples: %s", strings.Join(p.Examples, ", "))
		}
	}
	if len(e.Suggestions) > 0 {
		b.WriteString("\n\nSuggestions:")
		for i, s := range e.Suggestions {
			fmt.Fprintf(&b, "\n%d. %s", i+1, s)
		}
	}
	if e.SuggestedArguments != nil {
		fmt.Fprintf(&b, "\n\nSuggested arguments:\n%s", e.SuggestedArguments)
	}
	if e.ValidExample != nil {
		fmt.Fprintf(&b, "\n\nValid example:\n%s", e.ValidExample)
	}
	return b.String()
}
