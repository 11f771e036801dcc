package arguments

import (
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A Problem is one thing that is wrong with the arguments of a call.
type Problem struct {
	// Path is a JSON pointer to the value, or to where a missing one belongs.
	// The empty path is the arguments as a whole.
	Path string `json:"path"`
	// Keyword is the word of the schema that is violated, such as "type",
	// "required" or "enum". Besides there are "syntax" (not JSON), "duplicate"
	// (a key given twice) and "limit" (too deep or too large to check).
	Keyword string `json:"keyword"`
	// Received is the value as JSON, shortened, and hidden where the name of
	// its field says that it is a secret. Empty when there is none. For what
	// could not be read at all it says why.
	Received string `json:"received,omitempty"`
	// Expected says what the schema wants there.
	Expected string `json:"expected"`
	// Warning marks what is no reason to refuse a call: a "format", which
	// servers treat as a remark, and what we could not check.
	Warning bool `json:"warning,omitempty"`
}

// Check returns everything that is wrong with the arguments, ordered by path,
// or nothing. Absent arguments are an empty object. At most 64 problems are
// listed.
func (s *Schema) Check(args []byte) []Problem {
	found := s.examine(args).findings(s)
	if len(found) == 0 {
		return nil
	}
	problems := make([]Problem, len(found))
	for i, f := range found {
		problems[i] = f.Problem
	}
	return problems
}

const (
	maxProblems = 64
	// maxFindings are collected before the first problems are picked, in an
	// order that does not depend on chance.
	maxFindings = 10_000
)

// verdict is what one look at the arguments says.
type verdict struct {
	value any
	// broken is why the bytes could not be read.
	broken *syntaxError
	// tree holds the engine's objections; formats those of "format" alone.
	tree, formats *jsonschema.ValidationError
	// unchecked says why the engine was not asked, or gave up.
	unchecked string
}

func (v verdict) valid() bool { return v.broken == nil && v.tree == nil }

func (s *Schema) examine(args []byte) verdict {
	if len(args) == 0 {
		args = []byte("{}")
	}
	value, nodes, broken := decode(args)
	if broken != nil {
		return verdict{broken: broken}
	}
	v := verdict{value: value}
	if _, ok := value.(map[string]any); !ok {
		// MCP wants an object, also where the schema does not say so.
		v.tree = &jsonschema.ValidationError{SchemaURL: s.root.Location, ErrorKind: &kind.Type{Got: typeOf(value), Want: []string{"object"}}}
		return v
	}
	if !s.cost.affordable(s.root, value, nodes, len(args)) {
		v.unchecked = "checking it would take too long"
		return v
	}
	v.ask(s)
	return v
}

// ask runs the engine. A panic of it is our failing, not the call's.
func (v *verdict) ask(s *Schema) {
	defer func() {
		if p := recover(); p != nil {
			v.tree, v.formats = nil, nil
			v.unchecked = fmt.Sprintf("the check failed: %v", p)
		}
	}()
	v.tree = validate(s.root, v.value)
	if v.tree != nil && endless(v.tree) {
		v.tree = nil
		v.unchecked = "the schema refers to itself without end"
		return
	}
	if s.strict == nil {
		return
	}
	// With formats asserted a call may also become valid: two branches of a
	// oneOf may differ in nothing else.
	v.formats = validate(s.strict, v.value)
	if v.tree != nil && v.formats == nil {
		v.tree = nil
	}
}

// endless reports a cycle that shows only at run time: where a dynamic reference
// leads depends on the way to it. It is a fault of the schema, not of the call.
func endless(e *jsonschema.ValidationError) bool {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	return slices.ContainsFunc(e.Causes, endless)
}

func validate(s *jsonschema.Schema, value any) *jsonschema.ValidationError {
	if err := s.Validate(value); err != nil {
		return err.(*jsonschema.ValidationError)
	}
	return nil
}
