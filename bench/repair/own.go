package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/bench/internal/toolset"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The set of this program: tools with random schemas, a valid call of each, and
// the call broken in every way that applies. It needs no files, so the project
// can be judged alone. What a slip was is known because we made it; that a call
// is valid or broken is the word of the bare engine, not of package arguments.

// ownTool is a tool made up from a list of fields.
type ownTool struct {
	toolset.Tool
	fields []ownField
	closed bool
	engine *jsonschema.Schema
}

type ownField struct {
	name     string
	kind     string // "text", "integer", "number", "boolean", "choice", "texts", "rows", "object", "nullable", "either"
	required bool
	schema   map[string]any
	choices  []string
	inner    []ownField
}

var ownWords = []string{"harbor", "lantern", "meadow", "quartz", "saddle", "timber", "velvet", "walnut", "breeze", "copper", "garnet", "island"}

func ownSet(seed uint64, quick bool) (*scorer, []toolset.Case) {
	tools := 400
	if quick {
		tools = 40
	}
	r := rand.New(rand.NewPCG(seed, 20260101))
	s := &scorer{tools: map[string]toolset.Tool{}, catalogs: map[string][]string{}, cache: arguments.NewCache(0)}
	var cases []toolset.Case
	for n := range tools {
		t := makeTool(r, n)
		s.tools[t.ID] = t.Tool
		s.catalogs[t.Project] = []string{t.Name, "list_" + pick(r, ownWords), "archive-everything"}
		call := t.call(r)
		if t.engine.Validate(reread(call)) != nil {
			panic(fmt.Sprintf("own set: %s does not accept %s", t.InputSchema, raw(call)))
		}
		for _, slip := range slips {
			for i, c := range slip.make(r, t, clone(call)) {
				if c, ok := t.label(slip, c); ok {
					c.ID = fmt.Sprintf("own-%d-%s-%d", n, slip.name, i)
					cases = append(cases, c)
				}
			}
		}
	}
	return s, cases
}

// makeTool makes up a tool. Names are written in one style, as people do.
func makeTool(r *rand.Rand, n int) ownTool {
	style := pick(r, []func(...string) string{snake, camel, kebab})
	t := ownTool{closed: r.IntN(2) == 0}
	t.Name = style(pick(r, []string{"find", "update", "render", "book"}), pick(r, ownWords), fmt.Sprintf("v%d", n))
	t.ID, t.Project = "own/"+t.Name, fmt.Sprintf("own-%d", n)
	t.Risk = pick(r, []string{"read", "write", "destructive"})
	t.fields = makeFields(r, style, 3+r.IntN(5), 2)
	schema := objectSchema(t.fields, t.closed)
	switch r.IntN(4) {
	case 0:
		schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	case 1:
		schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	}
	// Some schemas say the same by reference.
	properties := schema["properties"].(map[string]any)
	if r.IntN(3) == 0 {
		defs := map[string]any{}
		for name, p := range properties {
			defs["d_"+name] = p
			properties[name] = map[string]any{"$ref": "#/definitions/d_" + name}
		}
		schema["definitions"] = defs
	}
	t.InputSchema = raw(schema)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("own:///schema.json", reread(schema)); err != nil {
		panic(err)
	}
	t.engine = c.MustCompile("own:///schema.json")
	return t
}

func makeFields(r *rand.Rand, style func(...string) string, n, depth int) []ownField {
	kinds := []string{"text", "integer", "number", "boolean", "choice", "texts", "nullable", "either"}
	if depth > 0 {
		kinds = append(kinds, "rows", "object")
	}
	words := slices.Clone(ownWords)
	r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	var fields []ownField
	for i := range n {
		f := ownField{kind: pick(r, kinds), required: r.IntN(2) == 0}
		f.name = style(words[i], pick(r, []string{"size", "label", "mark", "group"}))
		switch f.kind {
		case "text":
			f.schema = map[string]any{"type": "string"}
		case "integer", "number", "boolean":
			f.schema = map[string]any{"type": f.kind}
		case "choice":
			f.choices = []string{style("slow", words[i]), style("fast", words[i]), style("very", "fast", words[i])}
			f.schema = map[string]any{"type": "string", "enum": f.choices}
		case "texts":
			f.schema = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
		case "nullable":
			f.schema = map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "null"}}}
		case "either":
			f.schema = map[string]any{"type": []any{"integer", "string"}}
		case "rows", "object":
			f.inner = makeFields(r, style, 2+r.IntN(2), depth-1)
			f.inner[0].required = true
			f.schema = objectSchema(f.inner, r.IntN(2) == 0)
			if f.kind == "rows" {
				f.schema = map[string]any{"type": "array", "items": f.schema}
			}
		}
		fields = append(fields, f)
	}
	return fields
}

func objectSchema(fields []ownField, closed bool) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, f := range fields {
		properties[f.name] = f.schema
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "required": required}
	if closed {
		schema["additionalProperties"] = false
	}
	return schema
}

func (t ownTool) call(r *rand.Rand) map[string]any { return objectValue(r, t.fields) }

func objectValue(r *rand.Rand, fields []ownField) map[string]any {
	o := map[string]any{}
	for _, f := range fields {
		if f.required || r.IntN(3) > 0 {
			o[f.name] = f.value(r)
		}
	}
	return o
}

func (f ownField) value(r *rand.Rand) any {
	switch f.kind {
	case "text":
		return pick(r, []string{"a quiet " + pick(r, ownWords), "007", `{"not": "json for you"}`, " blanks ", "x, y", "ünïcode…"})
	case "integer":
		return json.Number(pick(r, []string{"7", "-12", "9007199254740993", "40"}))
	case "number":
		return json.Number(pick(r, []string{"2.5", "3", "-0.125", "1e3"}))
	case "boolean":
		return r.IntN(2) == 0
	case "choice":
		return pick(r, f.choices)
	case "texts":
		return []any{pick(r, ownWords), pick(r, ownWords) + " two"}
	case "nullable":
		return pick(r, []any{nil, "null", "text"})
	case "either":
		return pick(r, []any{json.Number("5"), "0123"})
	case "rows":
		return []any{objectValue(r, f.inner), objectValue(r, f.inner)}
	default:
		return objectValue(r, f.inner)
	}
}

// A slip is one way to break a call.
type slip struct {
	name    string
	verdict string
	// representation says that mending it changes no name and no value.
	representation bool
	make           func(r *rand.Rand, t ownTool, call map[string]any) []broken
}

// broken is a call after a slip. Want is the call as it was meant, if that can
// be known.
type broken struct {
	args any
	want any
	tool string
}

// label makes a case of a broken call, if the engine agrees that it is one.
func (t ownTool) label(s slip, b broken) (toolset.Case, bool) {
	c := toolset.Case{Kind: s.name, Group: "own", ToolID: t.ID, ToolCalled: t.Name, Risk: t.Risk, Verdict: s.verdict, Arguments: raw(b.args)}
	if b.tool != "" {
		c.ToolCalled, c.ExpectedTool = b.tool, t.Name
	} else if accepted := t.engine.Validate(reread(b.args)) == nil; accepted != (s.verdict == "pass_through") {
		return c, false
	}
	if s.verdict == "repair" {
		c.Expected = raw(b.want)
		if t.engine.Validate(reread(b.want)) != nil {
			return c, false
		}
		c.Policy = policies(t.Risk, s.representation)
	}
	return c, true
}

// policies says what becomes of a repair for a tool of that risk.
func policies(risk string, representation bool) map[string]string {
	p := map[string]string{"balanced": "repair", "strict": "repair"}
	if risk == "destructive" && !representation {
		p["balanced"] = "suggest"
	}
	if risk == "destructive" || risk == "write" && !representation {
		p["strict"] = "suggest"
	}
	return p
}

// eachField breaks one field of the call at a time, at every depth. The function
// returns the broken value; an absent field, or false, is left alone.
func eachField(kinds string, f func(field ownField, v any) (any, bool)) func(*rand.Rand, ownTool, map[string]any) []broken {
	return func(_ *rand.Rand, t ownTool, call map[string]any) []broken {
		var out []broken
		var walk func(fields []ownField, object map[string]any)
		walk = func(fields []ownField, object map[string]any) {
			for _, field := range fields {
				v, present := object[field.name]
				if !present {
					continue
				}
				if slices.Contains(strings.Fields(kinds), field.kind) || kinds == "*" {
					if bad, ok := f(field, v); ok {
						object[field.name] = bad
						out = append(out, broken{args: clone(call)})
						object[field.name] = v
					}
				}
				switch v := v.(type) {
				case map[string]any:
					walk(field.inner, v)
				case []any:
					for _, item := range v {
						if row, ok := item.(map[string]any); ok {
							walk(field.inner, row)
						}
					}
				}
			}
		}
		walk(t.fields, call)
		for i := range out {
			out[i].want = call
		}
		return out
	}
}

func asText(_ ownField, v any) (any, bool) { return string(raw(v)), true }

// always breaks a field into one fixed value.
func always(bad any) func(ownField, any) (any, bool) {
	return func(ownField, any) (any, bool) { return bad, true }
}

// whole breaks the arguments as a whole.
func whole(f func(t ownTool, text string, call map[string]any) any) func(*rand.Rand, ownTool, map[string]any) []broken {
	return func(_ *rand.Rand, t ownTool, call map[string]any) []broken {
		return []broken{{args: f(t, string(raw(call)), call), want: call}}
	}
}

const (
	mend  = "repair"
	leave = "must_not_repair"
	keep  = "pass_through"
)

var slips = []slip{
	{"valid", keep, false, whole(func(_ ownTool, _ string, call map[string]any) any { return call })},
	{"number_text", mend, true, eachField("integer number", func(_ ownField, v any) (any, bool) {
		return string(v.(json.Number)), !strings.Contains(string(v.(json.Number)), "e")
	})},
	{"boolean_text", mend, true, eachField("boolean", asText)},
	{"python_boolean", mend, true, eachField("boolean", func(_ ownField, v any) (any, bool) {
		return map[bool]string{true: "True", false: "False"}[v.(bool)], true
	})},
	{"container_text", mend, true, eachField("texts rows object", asText)},
	{"item_text", mend, true, eachField("rows", func(_ ownField, v any) (any, bool) {
		return []any{string(raw(v.([]any)[0])), v.([]any)[1]}, true
	})},
	{"arguments_text", mend, true, whole(func(_ ownTool, text string, _ map[string]any) any { return text })},
	{"arguments_text_twice", mend, true, whole(func(_ ownTool, text string, _ map[string]any) any { return string(raw(text)) })},
	{"fence", mend, true, whole(func(_ ownTool, text string, _ map[string]any) any { return "```json\n" + text + "\n```" })},
	{"trailing_comma", mend, true, whole(func(_ ownTool, text string, call map[string]any) any {
		return strings.TrimSuffix(text, "}") + strings.Repeat(",", min(len(call), 1)) + "}"
	})},
	{"python", mend, true, whole(func(_ ownTool, _ string, call map[string]any) any { return python(call) })},
	{"envelope", mend, false, whole(func(_ ownTool, _ string, call map[string]any) any { return map[string]any{"arguments": call} })},
	{"call_envelope", mend, false, whole(func(t ownTool, _ string, call map[string]any) any {
		return map[string]any{"name": t.Name, "arguments": call}
	})},
	{"one_for_list", mend, false, func(r *rand.Rand, t ownTool, call map[string]any) []broken {
		var out []broken
		for _, f := range t.fields {
			if _, ok := call[f.name]; ok && f.kind == "texts" {
				bad, want := clone(call), clone(call)
				bad[f.name], want[f.name] = "one thing", []any{"one thing"}
				out = append(out, broken{args: bad, want: want})
			}
		}
		return out
	}},
	{"list_for_one", mend, false, eachField("text integer boolean choice", func(_ ownField, v any) (any, bool) { return []any{v}, true })},
	{"choice_spelling", mend, false, eachField("choice", func(_ ownField, v any) (any, bool) {
		return " " + strings.ToUpper(strings.NewReplacer("_", " ", "-", " ").Replace(v.(string))) + " ", true
	})},
	{"key_spelling", mend, false, func(r *rand.Rand, t ownTool, call map[string]any) []broken {
		var out []broken
		for _, name := range slices.Sorted(keys(call)) {
			v := call[name]
			other := snake(split(name)...)
			if other == name {
				other = camel(split(name)...)
			}
			bad := clone(call)
			delete(bad, name)
			bad[other] = v
			out = append(out, broken{args: bad, want: call})
		}
		return out
	}},
	{"tool_name", mend, false, func(_ *rand.Rand, t ownTool, call map[string]any) []broken {
		return []broken{
			{args: call, want: call, tool: " " + t.Name},
			{args: call, want: call, tool: "functions." + t.Name + ":3"},
			{args: call, want: call, tool: strings.ToUpper(strings.ReplaceAll(t.Name, "-", "_"))},
		}
	}},

	{"number_not_canonical", leave, false, eachField("integer", always("007"))},
	{"number_with_unit", leave, false, eachField("integer number", always("12 px"))},
	{"number_with_comma", leave, false, eachField("integer number", always("1,234"))},
	{"fraction", leave, false, eachField("integer", always(json.Number("2.5")))},
	{"fraction_text", leave, false, eachField("integer", always("2.5"))},
	{"word_for_boolean", leave, false, eachField("boolean", always("yes"))},
	{"number_for_boolean", leave, false, eachField("boolean", always(json.Number("1")))},
	{"blank", leave, false, eachField("integer boolean choice", always(""))},
	{"placeholder", leave, false, eachField("integer boolean choice", always("None"))},
	{"null_for_required", leave, false, eachField("integer text choice", func(f ownField, _ any) (any, bool) { return nil, f.required })},
	{"choice_typo", leave, false, eachField("choice", func(_ ownField, v any) (any, bool) { return v.(string)[1:], true })},
	{"choice_extended", leave, false, eachField("choice", func(_ ownField, v any) (any, bool) { return "not " + v.(string), true })},
	{"list_as_words", leave, false, eachField("texts", always("one, two"))},
	{"several_for_one", leave, false, eachField("text integer", always([]any{"a", "b"}))},
	{"object_for_text", leave, false, eachField("text", always(map[string]any{"a": json.Number("1")}))},
	{"boolean_for_text", leave, false, eachField("text", always(true))},
	{"fraction_for_text", leave, false, eachField("text", always(json.Number("1.10")))},
	{"number_for_list", leave, false, eachField("texts rows", always(json.Number("3")))},
	{"missing", leave, false, func(_ *rand.Rand, t ownTool, call map[string]any) []broken {
		var out []broken
		for _, f := range t.fields {
			bad := clone(call)
			delete(bad, f.name)
			out = append(out, broken{args: bad})
		}
		return out
	}},
	{"key_typo", leave, false, func(_ *rand.Rand, t ownTool, call map[string]any) []broken {
		var out []broken
		for _, name := range slices.Sorted(keys(call)) {
			v := call[name]
			bad := clone(call)
			delete(bad, name)
			bad[name[:2]+name[3:]] = v
			out = append(out, broken{args: bad})
		}
		return out
	}},
	{"unknown_key", leave, false, whole(func(_ ownTool, _ string, call map[string]any) any {
		bad := clone(call)
		bad["dry_run"] = true
		return bad
	})},
	{"cut_off", leave, false, func(r *rand.Rand, t ownTool, call map[string]any) []broken {
		text := string(raw(call))
		var out []broken
		for range 5 {
			if at := 1 + r.IntN(len(text)-1); at < len(text) {
				out = append(out, broken{args: cutText(text, at)})
			}
		}
		return out
	}},
	{"two_objects", leave, false, whole(func(_ ownTool, text string, _ map[string]any) any { return text + "\n" + text })},
	{"key_twice", leave, false, whole(func(t ownTool, text string, call map[string]any) any {
		if len(call) == 0 {
			return "{"
		}
		name := slices.Sorted(keys(call))[0]
		return strings.TrimSuffix(text, "}") + "," + string(raw(name)) + ":" + string(raw(call[name])) + "}"
	})},
	{"half_certain", leave, false, func(r *rand.Rand, t ownTool, call map[string]any) []broken {
		bad, slipped, guessed := clone(call), false, false
		for _, f := range t.fields {
			switch _, ok := bad[f.name]; {
			case ok && f.kind == "integer" && !slipped:
				bad[f.name], slipped = "41", true
			case ok && f.kind == "boolean" && !guessed:
				bad[f.name], guessed = "on", true
			}
		}
		if !slipped || !guessed {
			return nil
		}
		return []broken{{args: bad}}
	}},
	{"other_tool", leave, false, func(_ *rand.Rand, t ownTool, call map[string]any) []broken {
		return []broken{{args: call, tool: "delete" + t.Name[2:]}, {args: call, tool: t.Name + "_tool"}, {args: call, tool: t.Name[1:]}}
	}},

	{"unknown_key_where_open", keep, false, whole(func(t ownTool, _ string, call map[string]any) any {
		bad := clone(call)
		bad["trace"] = "x"
		return bad
	})},
	{"text_of_json", keep, false, eachField("text nullable", always(`[1, 2]`))},
	{"text_of_digits", keep, false, eachField("text nullable either", always("00042"))},
	{"text_of_fence", keep, false, eachField("text", always("```\n{}\n```"))},
}

// null for an optional field is mended for tools that read, and a guess for others.
func init() {
	null := func(f ownField, _ any) (any, bool) { return nil, !f.required }
	slips = append(slips,
		slip{"null_for_optional", mend, false, func(r *rand.Rand, t ownTool, call map[string]any) []broken {
			var out []broken
			for _, f := range t.fields {
				if _, ok := call[f.name]; ok && !f.required && t.Risk == "read" {
					bad, want := clone(call), clone(call)
					bad[f.name] = nil
					delete(want, f.name)
					out = append(out, broken{args: bad, want: want})
				}
			}
			return out
		}},
		slip{"null_for_optional_of_a_writer", leave, false, func(r *rand.Rand, t ownTool, call map[string]any) []broken {
			if t.Risk == "read" {
				return nil
			}
			return eachField("integer text boolean", null)(r, t, call)
		}})
}

func cutText(text string, at int) string {
	for at > 0 && text[at]&0xC0 == 0x80 {
		at--
	}
	return text[:max(at, 1)]
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func keys(m map[string]any) iter.Seq[string] { return maps.Keys(m) }

func snake(words ...string) string { return strings.Join(words, "_") }
func kebab(words ...string) string { return strings.Join(words, "-") }
func camel(words ...string) string {
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}

func split(name string) []string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte(' ')
		}
		if c == '_' || c == '-' {
			c = ' '
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return strings.Fields(b.String())
}

// python writes a value as Python's repr does.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(v) + "'"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, python(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(keys(v)) {
			parts = append(parts, python(k)+": "+python(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return string(raw(v))
	}
}

func raw(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func reread(v any) any {
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw(v)))
	if err != nil {
		panic(err)
	}
	return out
}

func clone(v map[string]any) map[string]any { return reread(v).(map[string]any) }
