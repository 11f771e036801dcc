package arguments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds on schemas. The largest of 3,183 real ones stays under a quarter of
// each.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
	maxSchemaNodes = 20_000
)

// ErrTooComplex is the reason of [Compile] when a schema exceeds what we are
// willing to spend on it. Such a tool is called unchecked.
var ErrTooComplex = errors.New("the schema is too large or too complex to check")

// Schema is a compiled tool schema. It does not change, and any number of
// goroutines may use it at once.
type Schema struct {
	// root ignores "format", which servers treat as a remark. strict asserts
	// it, and is nil when no format occurs.
	root   *jsonschema.Schema
	strict *jsonschema.Schema
	// at finds the part of a schema that an error names.
	at   map[string]*jsonschema.Schema
	cost cost
	// source is the schema as the server wrote it.
	source []byte
}

// Compile makes a schema ready for use. Drafts 4, 6, 7, 2019-09 and 2020-12 are
// understood; without "$schema" it is 2020-12, as MCP says, and draft 7 where
// that fails. References to anything outside the schema are an error, and so is
// what is too complex; both leave the tool uncheckable, not unusable.
func Compile(schema []byte) (*Schema, error) {
	if len(schema) > maxSchemaBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooComplex, len(schema))
	}
	// Twice: the compiler keeps what it is given, and formats are taken out of one.
	strict, err := compile(schema)
	if err != nil {
		return nil, err
	}
	s := &Schema{root: strict, source: bytes.Clone(schema)}
	parts := reach(strict)
	for _, part := range parts {
		if part.Format != nil && s.strict == nil {
			s.strict = strict
		}
	}
	if s.strict != nil {
		if s.root, err = compile(schema); err != nil {
			return nil, err
		}
		for _, part := range parts {
			tolerate(part)
		}
		parts = reach(s.root)
		for _, part := range parts {
			part.Format = nil
		}
	}
	s.at = make(map[string]*jsonschema.Schema, len(parts))
	for _, part := range parts {
		tolerate(part)
		s.at[part.Location] = part
	}
	if s.cost, err = estimate(s.root); err != nil {
		return nil, err
	}
	return s, nil
}

const schemaURL = "mcpmend:///schema.json"

// compile runs the compiler of the engine, whose panics become errors.
func compile(schema []byte) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			compiled, err = nil, fmt.Errorf("compiling the schema: %v", p)
		}
	}()
	doc, err := parseSchema(schema)
	if err != nil {
		return nil, err
	}
	root, isObject := doc.(map[string]any)
	declared := false
	if isObject {
		if declared = knownDraft(root["$schema"]); !declared {
			delete(root, "$schema")
		}
	}
	compiled, err = compileAs(doc, jsonschema.Draft2020)
	var unlike *jsonschema.SchemaValidationError
	if errors.As(err, &unlike) && !declared {
		// Lists under "items" and other habits of draft 7 are common in
		// schemas that do not name their draft.
		if older, err7 := compileAs(doc, jsonschema.Draft7); err7 == nil {
			return older, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	return compiled, nil
}

func compileAs(doc any, draft *jsonschema.Draft) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	c.AssertFormat()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// noLoader keeps a schema from reading files or the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("references outside the schema are not followed")
}

func knownDraft(v any) bool {
	name, _ := v.(string)
	name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://"), "#")
	switch name {
	case "json-schema.org/draft-04/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema",
		"json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema":
		return true
	}
	return false
}

func parseSchema(schema []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("reading the schema: more text after its end")
	}
	nodes := 0
	if err := measure(doc, 1, &nodes); err != nil {
		return nil, err
	}
	return doc, nil
}

// measure refuses what would be dear to compile. The decoder above is bounded
// by the size alone; the compiler recurses, and computes with every number.
func measure(v any, depth int, nodes *int) error {
	*nodes++
	if depth > maxSchemaDepth || *nodes > maxSchemaNodes {
		return fmt.Errorf("%w: more than %d levels or %d parts", ErrTooComplex, maxSchemaDepth, maxSchemaNodes)
	}
	switch v := v.(type) {
	case json.Number:
		d := decoder{data: []byte(v)}
		if _, err := d.number(); err != nil {
			return fmt.Errorf("%w: %v", ErrTooComplex, err)
		}
	case []any:
		for _, item := range v {
			if err := measure(item, depth+1, nodes); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := measure(item, depth+1, nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// tolerate takes out what cannot be checked: a pattern our engine does not
// understand matches everything, and where it decides which keys are known,
// every key is.
func tolerate(s *jsonschema.Schema) {
	if p, ok := s.Pattern.(*pattern); ok && p.re == nil {
		s.Pattern = nil
	}
	for re := range s.PatternProperties {
		if p, ok := re.(*pattern); ok && p.re == nil {
			delete(s.PatternProperties, re)
			s.AdditionalProperties = nil
			s.UnevaluatedProperties = nil
		}
	}
}
