package arguments

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Example returns arguments the schema accepts, formats included: the required
// fields, with values that show their shape and cannot be taken for real ones.
// It is the same every time. There is none (ok is false) where no value was
// found that validates, and where one would have to be chosen for a role, a
// permission or the like: models copy examples.
func (s *Schema) Example() (example []byte, ok bool) {
	defer func() {
		if recover() != nil { // of the engine, on a schema it cannot deal with
			example, ok = nil, false
		}
	}()
	g := generator{root: s.root}
	if s.strict != nil {
		g.root = s.strict
	}
	v, ok := g.value(g.root, "", 0)
	if !ok {
		return nil, false
	}
	example = encode(v)
	if len(s.Check(example)) > 0 {
		return nil, false
	}
	return example, true
}

// ordered is an object whose members stay in the order of the schema.
type ordered []namedValue

type namedValue struct {
	name  string
	value any
}

func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(appendString(nil, m.name))
		b.WriteByte(':')
		b.Write(encode(m.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// generator makes values for parts of a schema. Work is bounded: a schema may
// be recursive, and may demand what is never enough.
type generator struct {
	root  *jsonschema.Schema
	steps int
}

const (
	maxExampleSteps = 2000
	maxExampleDepth = 12
	maxExampleItems = 20
	maxExampleText  = 2000
)

// value returns a value the part accepts. The name of the field it is for may
// forbid a choice.
func (g *generator) value(part *jsonschema.Schema, name string, depth int) (any, bool) {
	if g.steps++; g.steps > maxExampleSteps || depth > maxExampleDepth || part == nil {
		return nil, false
	}
	if part.Bool != nil {
		return "<" + name + ">", *part.Bool
	}
	parts := conjunction(part)
	for _, v := range g.given(parts, name) {
		if accepts(part, v) {
			return v, true
		}
	}
	// A choice is only left if the schema leaves it open, and it is harmless.
	if slices.ContainsFunc(parts, func(p *jsonschema.Schema) bool { return p.Enum != nil }) {
		return nil, false
	}
	for _, branch := range branches(parts) {
		// A branch is told together with what stands beside it.
		for _, v := range g.made(append(conjunction(branch), parts...), name, depth) {
			if accepts(part, v) {
				return v, true
			}
		}
		if v, ok := g.value(branch, name, depth+1); ok && accepts(part, v) {
			return v, true
		}
	}
	for _, v := range g.made(parts, name, depth) {
		if accepts(part, v) {
			return v, true
		}
	}
	return nil, false
}

// conjunction lists the parts that all apply: the part, its references, allOf.
func conjunction(part *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{part}
	for i := 0; i < len(list) && len(list) < 100; i++ {
		for _, next := range append([]*jsonschema.Schema{list[i].Ref, list[i].RecursiveRef}, list[i].AllOf...) {
			if next != nil && !slices.Contains(list, next) {
				list = append(list, next)
			}
		}
	}
	return list
}

func branches(parts []*jsonschema.Schema) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	for _, p := range parts {
		out = append(out, p.AnyOf...)
		out = append(out, p.OneOf...)
	}
	return out
}

// accepts asks the engine; what it costs is bounded by the schema and by the
// size of what we make.
func accepts(part *jsonschema.Schema, v any) bool {
	plain, _, err := decode(encode(v))
	if err != nil {
		return false
	}
	budget := maxSteps / 10
	return spend(part, plain, 0, &budget) && part.Validate(plain) == nil
}

// given lists the values the schema itself offers.
func (g *generator) given(parts []*jsonschema.Schema, name string) []any {
	// Not even the only value there is: who confirms or permits must say so.
	if isPower(name) || isSecret(name) {
		return nil
	}
	var out []any
	for _, p := range parts {
		if p.Const != nil {
			out = append(out, *p.Const)
		}
	}
	for _, p := range parts {
		if p.Default != nil {
			out = append(out, *p.Default)
		}
		out = append(out, p.Examples[:min(len(p.Examples), 3)]...)
		if p.Enum != nil {
			out = append(out, p.Enum.Values[:min(len(p.Enum.Values), 20)]...)
		}
	}
	return out
}

// made lists values made to measure, by type.
func (g *generator) made(parts []*jsonschema.Schema, name string, depth int) []any {
	var out []any
	for _, typ := range typesOf(parts) {
		switch typ {
		case "string":
			out = append(out, texts(parts, name)...)
		case "integer", "number":
			out = append(out, numbers(parts, typ == "integer")...)
		case "boolean":
			if !isPower(name) {
				out = append(out, false, true)
			}
		case "array":
			out = append(out, g.arrays(parts, name, depth)...)
		case "object":
			if o, ok := g.object(parts, depth); ok {
				out = append(out, o)
			}
		case "null":
			out = append(out, nil)
		}
	}
	return out
}

// typesOf returns the types all parts allow, the telling ones first; without a
// word about types, what other keywords speak of.
func typesOf(parts []*jsonschema.Schema) []string {
	order := []string{"object", "array", "string", "integer", "number", "boolean", "null"}
	said := false
	for _, p := range parts {
		if p.Types == nil {
			continue
		}
		said = true
		allowed := p.Types.ToStrings()
		order = slices.DeleteFunc(order, func(t string) bool {
			return !slices.Contains(allowed, t) && !(t == "integer" && slices.Contains(allowed, "number"))
		})
	}
	if said {
		return order
	}
	for _, p := range parts {
		if p.Properties != nil || len(p.Required) > 0 || p.AdditionalProperties != nil {
			return []string{"object"}
		}
		if p.Items != nil || p.Items2020 != nil {
			return []string{"array"}
		}
	}
	return []string{"string", "object", "array", "integer"}
}

func (g *generator) object(parts []*jsonschema.Schema, depth int) (ordered, bool) {
	o := ordered{}
	for _, p := range parts {
		for _, name := range p.Required {
			if slices.ContainsFunc(o, func(m namedValue) bool { return m.name == name }) {
				continue
			}
			v, ok := g.value(memberOf(parts, name), name, depth+1)
			if !ok {
				return nil, false
			}
			o = append(o, namedValue{name, v})
		}
	}
	least := 0
	for _, p := range parts {
		if p.MinProperties != nil {
			least = max(least, *p.MinProperties)
		}
	}
	for _, p := range parts {
		names := make([]string, 0, len(p.Properties))
		for name := range p.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if len(o) >= least || slices.ContainsFunc(o, func(m namedValue) bool { return m.name == name }) {
				continue
			}
			if v, ok := g.value(p.Properties[name], name, depth+1); ok {
				o = append(o, namedValue{name, v})
			}
		}
	}
	for len(o) < min(least, maxExampleItems) {
		o = append(o, namedValue{"<key" + strconv.Itoa(len(o)+1) + ">", "<value>"})
	}
	return o, true
}

// memberOf returns what judges a member, or a part that takes anything.
func memberOf(parts []*jsonschema.Schema, name string) *jsonschema.Schema {
	var found *jsonschema.Schema
	for _, p := range parts {
		memberParts(p, name, func(m *jsonschema.Schema) {
			if found == nil {
				found = m
			}
		})
	}
	if found == nil {
		return &jsonschema.Schema{}
	}
	return found
}

func (g *generator) arrays(parts []*jsonschema.Schema, name string, depth int) []any {
	least, unique := 0, false
	for _, p := range parts {
		if p.MinItems != nil {
			least = max(least, *p.MinItems)
		}
		unique = unique || p.UniqueItems
	}
	if least > maxExampleItems {
		return nil
	}
	list := []any{}
	for i := range max(least, 1) {
		var item *jsonschema.Schema
		for _, p := range parts {
			itemParts(p, i, func(m *jsonschema.Schema) {
				if item == nil {
					item = m
				}
			})
		}
		if item == nil {
			item = &jsonschema.Schema{}
		}
		v, ok := g.value(item, strings.TrimSuffix(name, "s"), depth+1)
		if !ok {
			break
		}
		if unique && i > 0 {
			v = vary(item, v, list)
		}
		list = append(list, v)
	}
	if len(list) < least {
		return nil
	}
	if least == 0 {
		return []any{list, []any{}}
	}
	return []any{list}
}

// vary changes a value until it differs from those that are there.
func vary(item *jsonschema.Schema, v any, list []any) any {
	have := func(v any) bool {
		return slices.ContainsFunc(list, func(o any) bool { return bytes.Equal(encode(o), encode(v)) })
	}
	var candidates []any
	for _, p := range conjunction(item) {
		if p.Enum != nil {
			candidates = append(candidates, p.Enum.Values...)
		}
	}
	for n := 2; n < maxExampleItems+2; n++ {
		switch v := v.(type) {
		case string:
			candidates = append(candidates, strings.TrimSuffix(v, ">")+strconv.Itoa(n)+">", v+strconv.Itoa(n))
		case json.Number:
			if i, err := v.Int64(); err == nil {
				candidates = append(candidates, json.Number(strconv.FormatInt(i+int64(n)-1, 10)))
			}
		}
	}
	for _, c := range candidates {
		if !have(c) && accepts(item, c) {
			return c
		}
	}
	return v
}

// samples of formats come from ranges set aside for documentation.
var samples = map[string]string{
	"date-time": "2026-01-01T00:00:00Z", "date": "2026-01-01", "time": "00:00:00Z", "duration": "P1D",
	"email": "user@example.com", "idn-email": "user@example.com", "hostname": "example.com", "idn-hostname": "example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uri": "https://example.com/", "iri": "https://example.com/",
	"uri-reference": "/example", "iri-reference": "/example", "uri-template": "/example/{id}",
	"uuid": "00000000-0000-4000-8000-000000000000", "json-pointer": "/example", "relative-json-pointer": "0/example", "regex": "example",
}

func texts(parts []*jsonschema.Schema, name string) []any {
	if name == "" {
		name = "text"
	}
	least, most := 0, maxExampleText
	var out []any
	for _, p := range parts {
		if p.MinLength != nil {
			least = max(least, *p.MinLength)
		}
		if p.MaxLength != nil {
			most = min(most, *p.MaxLength)
		}
		if p.Format != nil && samples[p.Format.Name] != "" {
			out = append(out, samples[p.Format.Name])
		}
	}
	if least > maxExampleText {
		return out
	}
	for _, p := range parts {
		if re, ok := p.Pattern.(*pattern); ok {
			for _, text := range re.examples(least) {
				out = append(out, text)
			}
		}
	}
	holder := "<" + name + ">"
	if pad := least - len(holder); pad > 0 {
		holder = "<" + name + strings.Repeat("_", pad) + ">"
	}
	if len(holder) > most {
		holder = strings.Repeat("x", max(least, min(most, 3)))
	}
	return append(out, holder)
}

// numbers lists candidates near zero that the limits suggest.
func numbers(parts []*jsonschema.Schema, whole bool) []any {
	candidates := []*big.Rat{big.NewRat(1, 1), big.NewRat(0, 1)}
	one := big.NewRat(1, 1)
	add := func(r *big.Rat) { candidates = append(candidates, r) }
	for _, p := range parts {
		for _, limit := range []*big.Rat{p.Minimum, p.ExclusiveMinimum} {
			if limit != nil {
				add(limit)
				add(new(big.Rat).Add(limit, one))
				add(ceil(limit))
			}
		}
		for _, limit := range []*big.Rat{p.Maximum, p.ExclusiveMaximum} {
			if limit != nil {
				add(limit)
				add(new(big.Rat).Sub(limit, one))
				add(new(big.Rat).Neg(ceil(new(big.Rat).Neg(limit))))
			}
		}
		if p.Minimum != nil && p.Maximum != nil {
			add(new(big.Rat).Quo(new(big.Rat).Add(p.Minimum, p.Maximum), big.NewRat(2, 1)))
		}
		if p.ExclusiveMinimum != nil && p.ExclusiveMaximum != nil {
			add(new(big.Rat).Quo(new(big.Rat).Add(p.ExclusiveMinimum, p.ExclusiveMaximum), big.NewRat(2, 1)))
		}
	}
	for _, p := range parts {
		if m := p.MultipleOf; m != nil && m.Sign() > 0 {
			for _, c := range slices.Clone(candidates) {
				add(new(big.Rat).Mul(ceil(new(big.Rat).Quo(c, m)), m))
			}
		}
	}
	var out []any
	for _, c := range candidates {
		if text, ok := decimal(c); ok && (!whole || c.IsInt()) {
			out = append(out, json.Number(text))
		}
	}
	return out
}

func ceil(r *big.Rat) *big.Rat {
	q := new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(r.Num()), r.Denom()))
	return new(big.Rat).SetInt(q)
}

func decimal(r *big.Rat) (string, bool) {
	if r.IsInt() {
		return r.Num().String(), len(r.Num().String()) <= 30
	}
	digits, exact := r.FloatPrec()
	return r.FloatString(digits), exact && digits <= 30
}

// examples writes short texts that match, the repeated parts as often as needed
// to reach a length.
func (p *pattern) examples(least int) []string {
	if p.re == nil {
		return nil
	}
	tree, err := syntax.Parse(translatePattern(p.source), syntax.Perl)
	if err != nil {
		return nil
	}
	var out []string
	for _, extra := range []int{0, 1, 3, 8, least} {
		var b strings.Builder
		writeMatch(&b, tree, min(extra, maxExampleText))
		if text := b.String(); len(text) >= least && len(text) <= maxExampleText && p.re.MatchString(text) {
			out = append(out, text)
		}
	}
	return out
}

func writeMatch(b *strings.Builder, re *syntax.Regexp, extra int) {
	if b.Len() > maxExampleText {
		return
	}
	times := func(least, most int) {
		n := min(max(least, extra), maxExampleText)
		if most >= 0 {
			n = min(n, most)
		}
		for range max(n, least) {
			if b.Len() > maxExampleText {
				return
			}
			writeMatch(b, re.Sub[0], extra)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(plainest(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	case syntax.OpAlternate:
		writeMatch(b, re.Sub[0], extra)
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			writeMatch(b, sub, extra)
		}
	}
}

// plainest picks a letter or digit of a class, if it has one.
func plainest(ranges []rune) rune {
	for _, want := range "xaA01" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1] > ' ' {
			return max(ranges[i], '!')
		}
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'x'
}
