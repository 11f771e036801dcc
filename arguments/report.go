package arguments

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A finding is a problem with what is needed to act on it.
type finding struct {
	Problem
	path   []string
	part   *jsonschema.Schema // that objects; for a missing member, the member's
	wants  []string           // types, for keyword "type"
	values []any              // allowed values, for "enum" and "const"
	cut    bool               // the text ends too early, for "syntax"
}

func (v verdict) findings(s *Schema) []finding {
	switch {
	case v.broken != nil:
		p := Problem{Path: pointer(v.broken.path), Keyword: v.broken.keyword, Received: v.broken.msg, Expected: "one complete JSON object"}
		if p.Keyword == "duplicate" {
			p.Expected = "each key once"
		}
		return []finding{{Problem: p, path: v.broken.path, cut: v.broken.cut}}
	case v.unchecked != "":
		return []finding{{Problem: Problem{Keyword: "limit", Expected: v.unchecked, Warning: true}}}
	}
	if text, ok := v.value.(string); ok {
		// The model's raw text: what is wrong inside it says more than its type.
		text = strings.TrimSpace(unfence(strings.TrimSpace(text)))
		if _, _, broken := decode([]byte(text)); broken != nil && strings.HasPrefix(text, "{") {
			return verdict{broken: broken}.findings(s)
		}
	}
	r := reporter{schema: s}
	if v.tree != nil {
		r.report(v.tree)
	} else if v.formats != nil {
		r.report(v.formats)
		// The rest are echoes of formats, in branches that failed for them.
		r.found = slices.DeleteFunc(r.found, func(f finding) bool { return !f.Warning })
	}
	// The engine walks maps, so its order differs from run to run.
	slices.SortStableFunc(r.found, func(a, b finding) int {
		return cmp.Or(comparePaths(a.path, b.path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Expected, b.Expected))
	})
	r.found = slices.CompactFunc(r.found, func(a, b finding) bool { return a.Problem == b.Problem })
	r.found = r.found[:min(len(r.found), maxProblems)]
	for i, f := range r.found {
		if received, ok := at(v.value, f.path); ok {
			r.found[i].Received = show(f.path, received, 200)
		}
	}
	return r.found
}

// comparePaths orders like strings, but numbers by value: item 10 after item 9.
func comparePaths(a, b []string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if len(x) != len(y) && strings.Trim(x, "0123456789") == "" && strings.Trim(y, "0123456789") == "" {
			return cmp.Compare(len(x), len(y))
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// reporter turns the engine's tree into a flat list.
type reporter struct {
	schema *Schema
	found  []finding
}

func (r *reporter) report(e *jsonschema.ValidationError) {
	if len(r.found) >= maxFindings {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		r.choose(e, "anyOf")
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			r.add(e, "oneOf", "a value that fits only one of the allowed forms")
			return
		}
		r.choose(e, "oneOf")
	case *kind.Contains, *kind.MinContains:
		r.add(e, "contains", "a list with a certain item")
	case *kind.PropertyNames:
		r.addAt(e, append(slices.Clip(e.InstanceLocation), k.Property), "propertyNames", "another key")
	default:
		if len(e.Causes) == 0 {
			r.leaf(e)
			return
		}
		for _, cause := range e.Causes {
			r.report(cause)
		}
	}
}

// choose reports one branch of several that all failed. If the value has a type
// none of them takes, the types are all there is to say. Otherwise the branch
// that was meant is the one whose fixed values fit, then the one with the least
// to complain about.
func (r *reporter) choose(e *jsonschema.ValidationError, keyword string) {
	type branch struct {
		found []finding
		score int
	}
	var branches []branch
	var here []finding
	for _, cause := range e.Causes {
		sub := reporter{schema: r.schema}
		sub.report(cause)
		if f := sub.found; len(f) == 1 && slices.Equal(f[0].path, e.InstanceLocation) && (f[0].Keyword == "type" || f[0].Keyword == "enum" || f[0].Keyword == "const") {
			here = append(here, f[0])
			continue
		}
		b := branch{found: sub.found, score: len(sub.found)}
		for _, f := range sub.found {
			if f.Keyword == "const" || f.Keyword == "enum" && len(f.path) == len(e.InstanceLocation)+1 {
				b.score += 100
			}
		}
		branches = append(branches, b)
	}
	if len(branches) == 0 {
		r.merge(e, keyword, here)
		return
	}
	best := slices.MinFunc(branches, func(a, b branch) int { return cmp.Compare(a.score, b.score) })
	if best.score < 100 || len(branches) == 1 {
		r.found = append(r.found, best.found...)
		return
	}
	r.add(e, keyword, fmt.Sprintf("one of %d allowed forms", len(e.Causes)))
}

func (r *reporter) merge(e *jsonschema.ValidationError, keyword string, here []finding) {
	if len(here) == 0 {
		r.add(e, keyword, "one of the allowed forms")
		return
	}
	f := here[0]
	for _, other := range here[1:] {
		if f.Keyword != other.Keyword && f.Keyword == "type" {
			f.Keyword = other.Keyword // the values say more than the types
		}
		f.wants = append(f.wants, other.wants...)
		f.values = append(f.values, other.values...)
	}
	f.wants = dedupe(f.wants)
	if len(here) > 1 {
		words := slices.Clone(f.wants)
		if len(f.values) > 0 {
			words = append(words, "one of "+listing(f.values))
		}
		f.Expected = strings.Join(words, " or ")
	}
	r.found = append(r.found, f)
}

func (r *reporter) add(e *jsonschema.ValidationError, keyword, expected string) *finding {
	return r.addAt(e, e.InstanceLocation, keyword, expected)
}

func (r *reporter) addAt(e *jsonschema.ValidationError, path []string, keyword, expected string) *finding {
	f := finding{path: path, part: r.schema.at[e.SchemaURL]}
	f.Problem = Problem{Path: pointer(path), Keyword: keyword, Expected: expected, Warning: keyword == "format"}
	r.found = append(r.found, f)
	return &r.found[len(r.found)-1]
}

func (r *reporter) leaf(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		f := r.add(e, "type", "")
		f.wants = k.Want
		f.Expected = typeWords(f.part, k.Want)
	case *kind.Enum:
		f := r.add(e, "enum", "one of "+listing(k.Want))
		f.values = k.Want
	case *kind.Const:
		f := r.add(e, "const", listing([]any{k.Want}))
		f.values = []any{k.Want}
	case *kind.Required:
		r.missing(e, k.Missing)
	case *kind.DependentRequired:
		r.missing(e, k.Missing)
	case *kind.Dependency:
		r.missing(e, k.Missing)
	case *kind.AdditionalProperties:
		for _, key := range k.Properties[:min(len(k.Properties), maxFindings)] {
			r.addAt(e, append(slices.Clip(e.InstanceLocation), key), "additionalProperties", "no such field")
		}
	case *kind.FalseSchema:
		r.add(e, "additionalProperties", "no such field")
	case *kind.Format:
		r.add(e, "format", k.Want)
	default:
		r.add(e, keywordOf(k), bound(k))
	}
}

func (r *reporter) missing(e *jsonschema.ValidationError, names []string) {
	for _, name := range names {
		path := append(slices.Clip(e.InstanceLocation), name)
		f := r.addAt(e, path, "required", "")
		f.part = r.schema.member(e.InstanceLocation, name)
		f.Expected = describe(f.part)
	}
}

func keywordOf(k jsonschema.ErrorKind) string {
	if path := k.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	return "schema"
}

// bound puts a violated limit into words.
func bound(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "at least " + number(k.Want)
	case *kind.Maximum:
		return "at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "less than " + number(k.Want)
	case *kind.MultipleOf:
		return "a multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("at least %s", count(k.Want, "character"))
	case *kind.MaxLength:
		return fmt.Sprintf("at most %s (it has %d)", count(k.Want, "character"), k.Got)
	case *kind.Pattern:
		return "text matching " + clip(k.Want, 80)
	case *kind.MinItems:
		return "at least " + count(k.Want, "item")
	case *kind.MaxItems:
		return fmt.Sprintf("at most %s (it has %d)", count(k.Want, "item"), k.Got)
	case *kind.UniqueItems:
		return "items that differ from each other"
	case *kind.AdditionalItems:
		return fmt.Sprintf("%s fewer", count(k.Count, "item"))
	case *kind.MinProperties:
		return "at least " + count(k.Want, "field")
	case *kind.MaxProperties:
		return "at most " + count(k.Want, "field")
	case *kind.Not:
		return "a value the schema does not exclude"
	default:
		return "a value that satisfies " + keywordOf(k)
	}
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return string(encode(f))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// listing writes allowed values, a dozen at most.
func listing(values []any) string {
	const most = 12
	words := make([]string, 0, most)
	for _, v := range values[:min(len(values), most)] {
		words = append(words, clip(string(encode(v)), 60))
	}
	s := strings.Join(words, ",")
	if more := len(values) - most; more > 0 {
		s += fmt.Sprintf(" (%d more)", more)
	}
	return s
}

// typeWords names types, and of a list also what is in it.
func typeWords(part *jsonschema.Schema, wants []string) string {
	words := slices.Clone(wants)
	for i, w := range words {
		if w != "array" || part == nil {
			continue
		}
		if items := itemsOf(part); items != nil && items.Types != nil {
			words[i] = "array of " + strings.Join(items.Types.ToStrings(), "/")
		}
	}
	return strings.Join(words, " or ")
}

// describe says in a few words what a part of a schema takes.
func describe(part *jsonschema.Schema) string {
	part = follow(part)
	switch {
	case part == nil:
		return "a value"
	case part.Const != nil:
		return listing([]any{*part.Const})
	case part.Enum != nil:
		return "one of " + listing(part.Enum.Values)
	case part.Types != nil:
		return typeWords(part, part.Types.ToStrings())
	}
	var wants []string
	for _, branch := range slices.Concat(part.AnyOf, part.OneOf) {
		if branch = follow(branch); branch.Types != nil {
			wants = append(wants, branch.Types.ToStrings()...)
		}
	}
	if len(wants) > 0 {
		return strings.Join(dedupe(wants), " or ")
	}
	return "a value"
}

func dedupe(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// show writes a received value, shortened, and not at all if it is a secret.
func show(path []string, v any, most int) string {
	if text, ok := v.(string); ok && len(path) == 0 {
		return fmt.Sprintf("text of %d bytes", len(text)) // who knows what is in it
	}
	for _, step := range path {
		if isSecret(step) {
			return "(hidden)"
		}
	}
	return clip(string(encode(hideSecrets(v))), most)
}

// hideSecrets hides values under telling names further down.
func hideSecrets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if isSecret(key) {
				out[key] = "(hidden)"
			} else {
				out[key] = hideSecrets(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = hideSecrets(item)
		}
		return out
	case string:
		if strings.HasPrefix(strings.TrimSpace(v), "{") || strings.HasPrefix(strings.TrimSpace(v), "[") {
			if inner, _, err := decode([]byte(v)); err == nil && holdsSecret(inner) {
				return "(hidden)"
			}
		}
	}
	return v
}

// holdsSecret says that some field has a telling name and a value.
func holdsSecret(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if isSecret(key) && item != nil || holdsSecret(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsSecret)
	}
	return false
}

// clip shortens text to about that many bytes, between characters.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
