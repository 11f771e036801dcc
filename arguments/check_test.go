package arguments

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func compiled(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatalf("Compile(%s): %v", schema, err)
	}
	return s
}

const issueSchema = `{
	"type": "object",
	"properties": {
		"title":  {"type": "string", "minLength": 3, "pattern": "^[A-Z]"},
		"number": {"type": "integer", "minimum": 1, "maximum": 100},
		"state":  {"type": "string", "enum": ["open", "closed"]},
		"labels": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
		"when":   {"type": "string", "format": "date-time"},
		"who":    {"type": "object", "properties": {"apiKey": {"type": "string"}, "id": {"type": "integer"}}, "required": ["id"]},
		"either": {"anyOf": [{"type": "integer"}, {"type": "null"}]}
	},
	"required": ["title"],
	"additionalProperties": false
}`

func TestCheckNamesEveryProblem(t *testing.T) {
	s := compiled(t, issueSchema)
	for _, tc := range []struct {
		args string
		want []Problem
	}{
		{`{"title":"Abc"}`, nil},
		{`{"title":"Abc","number":100,"labels":[],"either":null}`, nil},
		{`{}`, []Problem{{Path: "/title", Keyword: "required", Expected: "string"}}},
		{``, []Problem{{Path: "/title", Keyword: "required", Expected: "string"}}},
		{`{"title":"Abc","number":"5"}`, []Problem{{Path: "/number", Keyword: "type", Received: `"5"`, Expected: "integer"}}},
		{`{"title":"Abc","number":101}`, []Problem{{Path: "/number", Keyword: "maximum", Received: "101", Expected: "at most 100"}}},
		{`{"title":"ab"}`, []Problem{
			{Path: "/title", Keyword: "minLength", Received: `"ab"`, Expected: "at least 3 characters"},
			{Path: "/title", Keyword: "pattern", Received: `"ab"`, Expected: "text matching ^[A-Z]"},
		}},
		{`{"title":"Abc","state":"opne","x":1}`, []Problem{
			{Path: "/state", Keyword: "enum", Received: `"opne"`, Expected: `one of "open","closed"`},
			{Path: "/x", Keyword: "additionalProperties", Received: "1", Expected: "no such field"},
		}},
		{`{"title":"Abc","labels":"a"}`, []Problem{{Path: "/labels", Keyword: "type", Received: `"a"`, Expected: "array of string"}}},
		{`{"title":"Abc","either":"x"}`, []Problem{{Path: "/either", Keyword: "type", Received: `"x"`, Expected: "integer or null"}}},
		{`{"title":"Abc","who":{"apiKey":5}}`, []Problem{
			{Path: "/who/apiKey", Keyword: "type", Received: "(hidden)", Expected: "string"},
			{Path: "/who/id", Keyword: "required", Expected: "integer"},
		}},
		{`{"title":"Abc","when":"tomorrow"}`, []Problem{{Path: "/when", Keyword: "format", Received: `"tomorrow"`, Expected: "date-time", Warning: true}}},
		{`[]`, []Problem{{Keyword: "type", Received: "[]", Expected: "object"}}},
		{`{"title":"Abc"`, []Problem{{Keyword: "syntax", Received: "an object is not closed: the text ends too early", Expected: "one complete JSON object"}}},
		{`{"title":"Abc","who":{"id":1,"id":2}}`, []Problem{{Path: "/who/id", Keyword: "duplicate", Received: `the key "id" is given twice`, Expected: "each key once"}}},
	} {
		if diff := cmp.Diff(tc.want, s.Check([]byte(tc.args))); diff != "" {
			t.Errorf("Check(%s) (-want +got):\n%s", tc.args, diff)
		}
	}
}

func TestCheckSaysTheSameEveryTime(t *testing.T) {
	s := compiled(t, issueSchema)
	args := []byte(`{"z":1,"y":2,"x":3,"number":"5","state":1,"labels":[1,2,"3",4,5,6,7,8,9,10,11,12],"who":{}}`)
	first := s.Check(args)
	for range 50 {
		if diff := cmp.Diff(first, s.Check(args)); diff != "" {
			t.Fatalf("Check differs between runs (-first +now):\n%s", diff)
		}
	}
}

func TestCheckPicksTheBranchThatWasMeant(t *testing.T) {
	s := compiled(t, `{"properties": {"shape": {"oneOf": [
		{"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
		{"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
		{"type": "string"}
	]}}}`)
	want := []Problem{{Path: "/shape/side", Keyword: "required", Expected: "number"}}
	if diff := cmp.Diff(want, s.Check([]byte(`{"shape":{"kind":"square","radius":3}}`))); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
}

func TestNumbersAreExact(t *testing.T) {
	s := compiled(t, `{"properties": {"id": {"const": 9007199254740993}, "n": {"multipleOf": 0.1}}}`)
	if p := s.Check([]byte(`{"id":9007199254740993,"n":0.3}`)); p != nil {
		t.Errorf("Check = %v, want none", p)
	}
	if p := s.Check([]byte(`{"id":9007199254740992}`)); len(p) != 1 {
		t.Errorf("Check = %v, want the neighbour of a big integer rejected", p)
	}
}

func TestEveryDraftInUseIsUnderstood(t *testing.T) {
	for name, schema := range map[string]string{
		"2020-12":              `{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"p":{"prefixItems":[{"type":"integer"}]}}}`,
		"2019-09":              `{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"p":{"items":[{"type":"integer"}]}}}`,
		"draft 7":              `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"p":{"items":[{"type":"integer"}]}}}`,
		"draft 6":              `{"$schema":"http://json-schema.org/draft-06/schema#","properties":{"p":{"items":[{"type":"integer"}]}}}`,
		"draft 4":              `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"p":{"items":[{"type":"integer"}]}}}`,
		"none, as 2020-12":     `{"properties":{"p":{"prefixItems":[{"type":"integer"}]}}}`,
		"none, as draft 7":     `{"properties":{"p":{"items":[{"type":"integer"}]}}}`,
		"one nobody knows":     `{"$schema":"https://example.com/house-style","properties":{"p":{"prefixItems":[{"type":"integer"}]}}}`,
		"references, draft 7":  `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"i":{"type":"integer"}},"properties":{"p":{"items":{"$ref":"#/definitions/i"}}}}`,
		"references by anchor": `{"$defs":{"i":{"$anchor":"int","type":"integer"}},"properties":{"p":{"items":{"$ref":"#int"}}}}`,
	} {
		s := compiled(t, schema)
		if p := s.Check([]byte(`{"p":[1]}`)); p != nil {
			t.Errorf("%s: Check = %v, want none", name, p)
		}
		if p := s.Check([]byte(`{"p":["x"]}`)); len(p) != 1 {
			t.Errorf("%s: Check = %v, want one problem", name, p)
		}
	}
}

// A format may only ever help: it never turns a call away, and never makes two
// branches of a oneOf look alike.
func TestFormatsNeverBlock(t *testing.T) {
	s := compiled(t, `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{
		"mail": {"type":"string","format":"email"},
		"at":   {"oneOf":[{"type":"string","format":"ipv4"},{"type":"string","format":"date"}]}}}`)
	for _, args := range []string{`{"mail":"nobody"}`, `{"at":"10.0.0.1"}`} {
		for _, p := range s.Check([]byte(args)) {
			if !p.Warning {
				t.Errorf("Check(%s) blocks: %v", args, p)
			}
		}
	}
}

// Branches fail for a format, and then for other reasons: none of it blocks.
func TestEchoesOfAFormatAreNoProblems(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"anyOf":[{"type":"string","format":"email","maxLength":100},{"type":"string","minLength":50},{"type":"integer"}]}}}`)
	want := []Problem{{Path: "/a", Keyword: "format", Received: `"x"`, Expected: "email", Warning: true}}
	if diff := cmp.Diff(want, s.Check([]byte(`{"a":"x"}`))); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
}

func TestPatternsOfOtherEnginesAreUnderstoodOrLeftUnchecked(t *testing.T) {
	for _, tc := range []struct {
		pattern, good, bad string // bad is empty where nothing can be checked
	}{
		{`^\\u0041+$`, "AAA", "B"},
		{`^[\\w-.]+$`, "a-b.c", "a b"},
		{`^[[]x$`, "[x", "x"},
		{`^(?<year>\\d{4})$`, "2026", "26"},
		{`^(?!foo)`, "foo", ""},
		{`(a)\\1`, "b", ""},
		{`^[^]$`, "anything", ""},
		{`(`, "anything", ""},
	} {
		s, err := Compile(fmt.Appendf(nil, `{"properties":{"p":{"pattern":"%s"}}}`, tc.pattern))
		if err != nil {
			t.Errorf("Compile with pattern %s: %v", tc.pattern, err)
			continue
		}
		if p := s.Check(fmt.Appendf(nil, `{"p":%q}`, tc.good)); p != nil {
			t.Errorf("pattern %s rejects %q: %v", tc.pattern, tc.good, p)
		}
		if tc.bad != "" && s.Check(fmt.Appendf(nil, `{"p":%q}`, tc.bad)) == nil {
			t.Errorf("pattern %s accepts %q", tc.pattern, tc.bad)
		}
	}
}

func TestKeysBehindAnUnknownPatternAreLeftAlone(t *testing.T) {
	s := compiled(t, `{"patternProperties":{"^(?!x)":{"type":"integer"}},"additionalProperties":false}`)
	if p := s.Check([]byte(`{"xa":"text"}`)); p != nil {
		t.Errorf("Check = %v, want none: which keys the pattern means is not known", p)
	}
}

func TestCacheCompilesADefinitionOnceAndForgetsTheOldest(t *testing.T) {
	c := NewCache(2)
	schema := func(i int) []byte { return fmt.Appendf(nil, `{"title":"%d"}`, i) }
	first, err := c.Compile(schema(1))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if again, _ := c.Compile(schema(1)); again != first {
				t.Error("the same definition was compiled twice")
			}
		})
	}
	wg.Wait()
	c.Compile(schema(2))
	c.Compile(schema(3))
	if again, _ := c.Compile(schema(1)); again == first {
		t.Error("the cache grows without bound")
	}
	if n := len(c.items); n != 2 || c.order.Len() != 2 {
		t.Errorf("cache holds %d and %d entries, want 2", n, c.order.Len())
	}
	big := NewCache(0)
	for i := range 100 {
		big.Compile(fmt.Appendf(nil, `{"title":"%d","description":"%s"}`, i, strings.Repeat("x", 200<<10)))
	}
	if big.bytes > maxCacheBytes || len(big.items) == 0 {
		t.Errorf("cache holds %d bytes in %d entries", big.bytes, len(big.items))
	}
	if _, err := c.Compile([]byte(strings.Repeat(" ", maxSchemaBytes+1))); !errors.Is(err, ErrTooComplex) {
		t.Errorf("Compile of a huge schema: %v, want ErrTooComplex", err)
	}
}
