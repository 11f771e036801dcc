package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSaysWhichSchemasAProviderRefuses(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{"type": "object"}`, ""},
		{`{"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", null]}}, "required": ["a"], "additionalProperties": false}`, ""},
		{`{"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}}`, ""},
		{`{"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}`, ""},
		{`{"type": "object", "properties": {"type": {"type": "string"}, "items": {"type": "array", "items": {}}}}`, ""},
		{`{"type": "object", "properties": {"a": true, "b": {"$ref": "https://example.com/x"}}}`, ""},
		{``, "no schema"},
		{`null`, "the schema is not an object"},
		{`{}`, "no type at the top"},
		{`{"type": "string"}`, "the type at the top is not object"},
		{`{"type": "object", "oneOf": [{"required": ["a"]}]}`, "oneOf at the top"},
		{`{"anyOf": [{"type": "object"}]}`, "anyOf at the top"},
		{`{"type": "object", "properties": []}`, "/properties has to be an object"},
		{`{"type": "object", "required": true}`, "/required has to be a list of names"},
		{`{"type": "object", "properties": {"a": {"type": "any"}}}`, "/properties/a/type has to be a type or a list of types"},
		{`{"type": "object", "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}}`, "/properties/a/exclusiveMinimum has to be a number"},
		{`{"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}}`, "/properties/a/items has to be a schema"},
		{`{"type": "object", "properties": {"a": {"type": "string", "properties": {}}}}`, "/properties/a has properties and is no object"},
		{`{"type": "object", "properties": {"a": "string"}}`, "/properties/a is not a schema"},
		{`{"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}}`, "/properties/a/$ref leads nowhere"},
		{`{"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}`, "/$defs/A/$ref leads back to itself"},
		{`{"type": "object", "properties": {"a": {"anyOf": []}}}`, "/properties/a/anyOf has to be a list of schemas"},
	} {
		if got := rejected([]byte(test.schema)); got != test.want {
			t.Errorf("%s: %q, want %q", test.schema, got, test.want)
		}
	}
}

func TestAnEndlessSchemaIsNotFollowedToItsEnd(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 1000) + `{"type":"any"}` + strings.Repeat("}}", 1000)
	if got := rejected([]byte(deep)); got != "" {
		t.Errorf("%q, want nothing", got)
	}
}

func TestToolsAreJudgedTogether(t *testing.T) {
	good := []byte(`{"type": "object"}`)
	many := make([]Tool, mostTools+1)
	for i := range many {
		many[i] = Tool{Name: fmt.Sprint("tool-", i), InputSchema: good}
	}
	for _, test := range []struct {
		name  string
		tools []Tool
		want  map[string][]string // evidence by id
	}{
		{"fine", []Tool{{Name: "a", InputSchema: good}, {Name: "b_C-9", InputSchema: good}}, nil},
		{"none", nil, map[string][]string{"tools.none": nil}},
		{"names", []Tool{{Name: "a b", InputSchema: good}, {Name: strings.Repeat("x", 65), InputSchema: good}, {InputSchema: good}, {Name: "d", InputSchema: good}, {Name: "d", InputSchema: good}},
			map[string][]string{"schemas.tool_name_invalid": {`"a b" has characters that are not taken`, `"` + strings.Repeat("x", 65) + `" has 65 characters`, "a tool has no name", `"d" is listed twice`}}},
		{"schemas", []Tool{{Name: "a", InputSchema: []byte("{}")}, {Name: "b", InputSchema: good}}, map[string][]string{"schemas.schema_rejected": {`"a": no type at the top`}}},
		{"too many", many, map[string][]string{"schemas.too_many_tools": {"129 tools"}}},
		{"just enough", many[1:], nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got map[string][]string
			for _, f := range judgeTools(test.tools) {
				if got == nil {
					got = make(map[string][]string)
				}
				got[f.ID] = f.Evidence
				if f.Severity != Warning || f.Explanation == "" || f.ID != string(f.Stage)+"."+f.Kind {
					t.Errorf("finding %+v", f)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
