package arguments

import (
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// reach lists every part of a schema once.
func reach(root *jsonschema.Schema) []*jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{root: true}
	list := []*jsonschema.Schema{root}
	for i := 0; i < len(list); i++ {
		visit := func(s *jsonschema.Schema) {
			if !seen[s] {
				seen[s] = true
				list = append(list, s)
			}
		}
		inPlace(list[i], visit)
		inside(list[i], visit)
	}
	return list
}

// inPlace visits the parts that judge the same value as s.
func inPlace(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	one := func(p *jsonschema.Schema) {
		if p != nil {
			visit(p)
		}
	}
	one(s.Ref)
	one(s.RecursiveRef)
	if s.DynamicRef != nil {
		one(s.DynamicRef.Ref)
	}
	one(s.Not)
	one(s.If)
	one(s.Then)
	one(s.Else)
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, p := range list {
			visit(p)
		}
	}
	for _, name := range sortedKeys(s.DependentSchemas) {
		visit(s.DependentSchemas[name])
	}
	for _, name := range sortedKeys(s.Dependencies) {
		if p, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			visit(p)
		}
	}
}

// sortedKeys keeps what is said about a schema from depending on chance.
func sortedKeys[T any](m map[string]T) []string {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// inside visits the parts that judge a member or an item of what s judges.
func inside(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	for _, p := range s.Properties {
		visit(p)
	}
	for _, p := range s.PatternProperties {
		visit(p)
	}
	for _, p := range s.PrefixItems {
		visit(p)
	}
	for _, p := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch p := p.(type) {
		case *jsonschema.Schema:
			visit(p)
		case []*jsonschema.Schema:
			for _, p := range p {
				visit(p)
			}
		}
	}
	for _, p := range []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema} {
		if p != nil {
			visit(p)
		}
	}
}

// memberParts visits the parts of s that judge the member key.
func memberParts(s *jsonschema.Schema, key string, visit func(*jsonschema.Schema)) {
	declared := false
	if p, ok := s.Properties[key]; ok {
		declared = true
		visit(p)
	}
	for re, p := range s.PatternProperties {
		if re.MatchString(key) {
			declared = true
			visit(p)
		}
	}
	if p, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !declared {
		visit(p)
	}
	if s.UnevaluatedProperties != nil && !declared {
		visit(s.UnevaluatedProperties)
	}
}

// itemParts visits the parts of s that judge item i.
func itemParts(s *jsonschema.Schema, i int, visit func(*jsonschema.Schema)) {
	first := s.PrefixItems
	rest := s.Items2020
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		first = items
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	}
	switch {
	case i < len(first):
		visit(first[i])
	case rest != nil:
		visit(rest)
	}
	if s.Contains != nil {
		visit(s.Contains)
	}
	if s.UnevaluatedItems != nil {
		visit(s.UnevaluatedItems)
	}
}

// follow goes along plain references to the part that says something.
func follow(part *jsonschema.Schema) *jsonschema.Schema {
	for range maxSchemaDepth {
		if part == nil || part.Ref == nil || part.Types != nil || part.Enum != nil || part.Properties != nil {
			return part
		}
		part = part.Ref
	}
	return part
}

func itemsOf(part *jsonschema.Schema) *jsonschema.Schema {
	if items, ok := part.Items.(*jsonschema.Schema); ok {
		return follow(items)
	}
	return follow(part.Items2020)
}

// parts returns the parts of the schema that judge the value at a path,
// whatever branch they are in.
func (s *Schema) parts(path []string) []*jsonschema.Schema {
	parts := unfold([]*jsonschema.Schema{s.root})
	for _, step := range path {
		var next []*jsonschema.Schema
		for _, p := range parts {
			visit := func(p *jsonschema.Schema) { next = append(next, p) }
			memberParts(p, step, visit)
			if i, err := strconv.Atoi(step); err == nil {
				itemParts(p, i, visit)
			}
		}
		parts = unfold(next)
	}
	return parts
}

// unfold adds what the parts refer to in place, each once.
func unfold(parts []*jsonschema.Schema) []*jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{}
	var out []*jsonschema.Schema
	var visit func(*jsonschema.Schema)
	visit = func(p *jsonschema.Schema) {
		if seen[p] || len(out) > 1000 {
			return
		}
		seen[p] = true
		out = append(out, p)
		inPlace(p, visit)
	}
	for _, p := range parts {
		visit(p)
	}
	return out
}

// member is the part that judges a member of the object at path, if one does.
func (s *Schema) member(path []string, key string) *jsonschema.Schema {
	for _, p := range s.parts(path) {
		if m, ok := p.Properties[key]; ok {
			return m
		}
	}
	return nil
}

// declared lists the names of the members an object at path may have by the
// schema, in any branch, and the patterns that allow more.
func (s *Schema) declared(path []string) (names map[string]bool, patterns []jsonschema.Regexp) {
	names = map[string]bool{}
	for _, p := range s.parts(path) {
		for name := range p.Properties {
			names[name] = true
		}
		for re := range p.PatternProperties {
			patterns = append(patterns, re)
		}
	}
	return names, patterns
}

// strays returns the names an object at path may have by the schema, and the
// keys it has that are not among them.
func (s *Schema) strays(path []string, members map[string]any) (names map[string]bool, stray []string) {
	names, patterns := s.declared(path)
	for key := range members {
		if !names[key] && !slices.ContainsFunc(patterns, func(re jsonschema.Regexp) bool { return re.MatchString(key) }) {
			stray = append(stray, key)
		}
	}
	slices.Sort(stray)
	return names, stray
}

// absent returns the names that an object does not have.
func absent(names map[string]bool, members map[string]any) []string {
	var out []string
	for name := range names {
		if _, ok := members[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
