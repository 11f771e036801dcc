package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
)

// mostTools is how many tools the large providers of models take, of all servers
// together.
const mostTools = 128

// toolName is what the large providers take for a name. MCP itself allows dots and
// 128 characters.
var toolName = pattern(`^[A-Za-z0-9_-]{1,64}$`)

// judgeTools says what clients and the providers of models would not take of a
// server's tools. The server itself is well: one bad tool of a good server can make
// a provider refuse everything, and only says a number.
func judgeTools(tools []Tool) []Finding {
	if len(tools) == 0 {
		f := ofTools(AtTools, kindNoTools, nil)
		f.Explanation = "The server lists no tools, so a model cannot do anything with it."
		return []Finding{f}
	}
	var names, schemas []string
	var firstName, firstSchema string
	seen := make(map[string]int)
	for _, t := range tools {
		if seen[t.Name]++; seen[t.Name] == 2 {
			names = append(names, fmt.Sprintf("%s is listed twice", called(t.Name)))
			firstName = cmp.Or(firstName, t.Name)
		}
		if !toolName().MatchString(t.Name) && seen[t.Name] == 1 {
			names = append(names, badName(t.Name))
			firstName = cmp.Or(firstName, t.Name)
		}
		if why := rejected(t.InputSchema); why != "" {
			schemas = append(schemas, called(t.Name)+": "+why)
			firstSchema = cmp.Or(firstSchema, t.Name)
		}
	}
	var found []Finding
	if len(schemas) > 0 {
		f := ofTools(AtSchemas, fault.SchemaRejected, schemas)
		f.pieces.Tool = firstSchema
		f.Explanation = "Providers of models refuse a schema like this, and with it every request that has the tool in its list."
		found = append(found, f)
	}
	if len(names) > 0 {
		f := ofTools(AtSchemas, fault.ToolNameInvalid, names)
		f.pieces.Tool = firstName
		f.Explanation = "Providers of models take names of up to 64 letters, digits, _ and -, each of them once."
		found = append(found, f)
	}
	if len(tools) > mostTools {
		f := ofTools(AtSchemas, fault.TooManyTools, []string{strconv.Itoa(len(tools)) + " tools"})
		f.Explanation = fmt.Sprintf("Providers of models take %d tools of all servers together.", mostTools)
		found = append(found, f)
	}
	return found
}

// ofTools is a finding without a place; the case has one.
func ofTools[K ~string](stage Stage, kind K, evidence []string) Finding {
	const most = 5
	if n := len(evidence) - most; n > 0 {
		evidence = append(evidence[:most:most], fmt.Sprintf("and %d more", n))
	}
	f := finding(stage, kind, Warning, Place{})
	f.Evidence = evidence
	return f
}

// called is a tool's name, safe to be shown: it is the server's text.
func called(name string) string {
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return strconv.Quote(name)
}

func badName(name string) string {
	switch {
	case name == "":
		return "a tool has no name"
	case len(name) > 64:
		return fmt.Sprintf("%s has %d characters", called(name), len(name))
	}
	return called(name) + " has characters that are not taken"
}

// rejected says why a provider would refuse a schema, "" if it would not.
func rejected(schema []byte) string {
	var root any
	if len(schema) == 0 {
		return "no schema"
	}
	if json.Unmarshal(schema, &root) != nil {
		return "the schema is not JSON"
	}
	top, ok := root.(map[string]any)
	if !ok {
		return "the schema is not an object"
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		if _, there := top[word]; there {
			return word + " at the top"
		}
	}
	if kind, there := top["type"]; !there {
		return "no type at the top"
	} else if kind != "object" {
		return "the type at the top is not object"
	}
	c := &schemaCheck{root: root}
	why := strconv.Quote(c.look(root, "", 0)) // names of properties are the server's text, too
	if why = why[1 : len(why)-1]; len(why) > 200 {
		why = "…" + strings.ToValidUTF8(why[len(why)-200:], "")
	}
	return why
}

// schemaCheck walks through one schema. Beyond its limits it finds nothing wrong.
type schemaCheck struct {
	root  any
	nodes int
}

const (
	deepestSchema  = 64
	largestSchema  = 20_000
	longestAliases = 32
)

func (c *schemaCheck) look(v any, at string, depth int) string {
	c.nodes++
	schema, ok := v.(map[string]any)
	if _, truth := v.(bool); truth || depth > deepestSchema || c.nodes > largestSchema {
		return ""
	}
	if !ok {
		return cmp.Or(at, "the top") + " is not a schema"
	}
	for _, word := range slices.Sorted(maps.Keys(schema)) {
		if want, known := keywords[word]; known && !want.fits(schema[word]) {
			return at + "/" + word + " has to be " + want.words
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		if why := c.follow(ref); why != "" {
			return at + "/$ref " + why
		}
	}
	if kind, ok := schema["type"].(string); ok && kind != "object" && schema["properties"] != nil {
		return cmp.Or(at, "the top") + " has properties and is no object"
	}
	return c.below(schema, at, depth)
}

// below looks at the schemas inside a schema.
func (c *schemaCheck) below(schema map[string]any, at string, depth int) string {
	for _, word := range slices.Sorted(maps.Keys(schema)) {
		inner := at + "/" + word
		switch word {
		case "properties", "$defs", "definitions", "patternProperties":
			named, _ := schema[word].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				if why := c.look(named[name], inner+"/"+name, depth+1); why != "" {
					return why
				}
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := schema[word].([]any)
			for i, one := range list {
				if why := c.look(one, inner+"/"+strconv.Itoa(i), depth+1); why != "" {
					return why
				}
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			if why := c.look(schema[word], inner, depth+1); why != "" {
				return why
			}
		}
	}
	return ""
}

// follow goes where a reference within the schema leads.
func (c *schemaCheck) follow(ref string) string {
	for range longestAliases {
		pointer, local := strings.CutPrefix(ref, "#")
		if !local || pointer != "" && !strings.HasPrefix(pointer, "/") {
			return "" // another document or a name; we cannot tell
		}
		target, ok := c.at(pointer)
		if !ok {
			return "leads nowhere"
		}
		schema, _ := target.(map[string]any)
		next, again := schema["$ref"].(string)
		if !again {
			return ""
		}
		ref = next
	}
	return "leads back to itself"
}

func (c *schemaCheck) at(pointer string) (any, bool) {
	v := c.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch in := v.(type) {
		case map[string]any:
			inner, ok := in[part]
			if !ok {
				return nil, false
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// A keyword of JSON Schema and what its value has to be. Only those are here that
// are really got wrong: older drafts allowed some of it.
type keyword struct {
	words string
	fits  func(any) bool
}

var keywords = map[string]keyword{
	"type":             {"a type or a list of types", isType},
	"properties":       {"an object", isObject},
	"$defs":            {"an object", isObject},
	"definitions":      {"an object", isObject},
	"required":         {"a list of names", isNames},
	"enum":             {"a list", isList},
	"items":            {"a schema", isSchema},
	"anyOf":            {"a list of schemas", isFilledList},
	"oneOf":            {"a list of schemas", isFilledList},
	"allOf":            {"a list of schemas", isFilledList},
	"minimum":          {"a number", isNumber},
	"maximum":          {"a number", isNumber},
	"exclusiveMinimum": {"a number", isNumber},
	"exclusiveMaximum": {"a number", isNumber},
	"minLength":        {"a number", isNumber},
	"maxLength":        {"a number", isNumber},
	"description":      {"a text", isText},
	"pattern":          {"a text", isText},
}

var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func isType(v any) bool {
	if list, ok := v.([]any); ok {
		return len(list) > 0 && !slices.ContainsFunc(list, func(one any) bool { s, ok := one.(string); return !ok || !slices.Contains(typeNames, s) })
	}
	s, ok := v.(string)
	return ok && slices.Contains(typeNames, s)
}

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }
func isList(v any) bool   { _, ok := v.([]any); return ok }
func isNumber(v any) bool { _, ok := v.(float64); return ok }
func isText(v any) bool   { _, ok := v.(string); return ok }

func isSchema(v any) bool {
	_, truth := v.(bool)
	return truth || isObject(v)
}

func isFilledList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0
}

func isNames(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(one any) bool { return !isText(one) })
}
