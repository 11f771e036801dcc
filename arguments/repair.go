package arguments

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Call is one call of a tool, before it is sent.
type Call struct {
	// Tool is the name it is called by, needed to recognise a call wrapped in
	// its own arguments.
	Tool string
	// Arguments is the value of "arguments" as it came, of whatever JSON type.
	Arguments []byte
	// Risk of the tool. The zero value is Destructive.
	Risk Risk
	// Policy for mending. The zero value is Balanced.
	Policy Policy
}

// Outcome is what can be said of a call's arguments.
type Outcome uint8

const (
	// Invalid: the schema rejects them, and what is meant is not certain.
	Invalid Outcome = iota
	// Withheld: they could be mended, but the policy does not allow it for this tool.
	Withheld
	// Mended: they were invalid and now are valid.
	Mended
	// Valid: the schema accepts them, or could not be asked.
	Valid
)

func (o Outcome) String() string {
	return [...]string{"invalid", "withheld", "mended", "valid"}[min(o, Valid)]
}

// Result is what became of a call's arguments.
type Result struct {
	Outcome Outcome
	// Arguments to send. Unless Outcome is Mended they are the bytes that came
	// in; for Invalid and Withheld, whether to send them is the caller's choice.
	Arguments []byte
	// Suggested is what would be sent if the policy allowed it. Only for Withheld.
	Suggested []byte
	// Changes lists what was, or would be, changed.
	Changes []Change
	// Problems lists what was wrong with the arguments as they came in; for
	// Valid there can only be warnings.
	Problems []Problem
}

// Repair checks the arguments of a call and mends them if what is meant is
// certain. It never returns an error: a call it cannot help with comes back as
// it was.
func (s *Schema) Repair(call Call) Result {
	first := s.examine(call.Arguments)
	result := Result{Outcome: Invalid, Arguments: call.Arguments}
	if first.valid() {
		result.Outcome = Valid
		if first.formats == nil && first.unchecked == "" {
			return result
		}
	}
	for _, f := range first.findings(s) {
		result.Problems = append(result.Problems, f.Problem)
	}
	if call.Policy == Off || first.unchecked != "" {
		return result
	}
	m := mender{schema: s, call: call}
	m.start(first)
	if len(m.results) != 1 || m.exhausted {
		return result
	}
	result.Changes = m.results[0].changes
	rules := make([]Rule, len(result.Changes))
	for i, c := range result.Changes {
		rules[i] = c.Rule
	}
	switch {
	case call.Policy.Permits(call.Risk, rules...):
		result.Outcome, result.Arguments = Mended, m.results[0].args
	case result.Outcome == Valid:
		result.Changes = nil // a format is no reason to hold up a call
	default:
		result.Outcome, result.Suggested = Withheld, m.results[0].args
	}
	return result
}

// Bounds on the search. Real calls need one plan and one or two rounds.
const (
	maxPlans  = 16
	maxTries  = 24
	maxRounds = 4
	maxEdits  = 256
)

// mender looks for the valid calls that can be reached without loss. Only if
// there is exactly one has it been meant.
type mender struct {
	schema    *Schema
	call      Call
	tries     int
	exhausted bool
	results   []mended
}

type mended struct {
	args    []byte
	changes []Change
}

func (m *mender) start(first verdict) {
	args := m.call.Arguments
	if len(args) == 0 {
		args = []byte("{}") // what absent arguments were checked as
	}
	if first.valid() {
		m.settle(args, first, nil)
		return
	}
	if _, ok := first.value.(map[string]any); ok && first.broken == nil {
		m.search(args, first, nil, 1)
		return
	}
	if out, change, ok := fromText(args); ok {
		m.follow(out, []Change{change}, 0)
	}
}

// search tries every plan for what the verdict objects to.
func (m *mender) search(args []byte, v verdict, changes []Change, round int) {
	for _, p := range m.plans(v.tree, v.value) {
		if m.tries++; m.tries > maxTries {
			m.exhausted = true
			return
		}
		if out, made, ok := p.apply(args); ok {
			m.follow(out, append(slices.Clip(changes), made...), round)
		}
	}
	if out, change, ok := m.unwrapCall(args, v); ok {
		m.follow(out, append(slices.Clip(changes), change), round)
	}
}

// follow looks at a call after a round of changes.
func (m *mender) follow(args []byte, changes []Change, round int) {
	switch v := m.schema.examine(args); {
	case v.unchecked != "" || v.broken != nil:
	case v.valid():
		m.settle(args, v, changes)
	case round < maxRounds:
		m.search(args, v, changes, round+1)
	}
}

// settle takes a valid call, and puts right the one format that can be.
func (m *mender) settle(args []byte, v verdict, changes []Change) {
	if v.formats != nil {
		p := plan(dateTimes(v.formats, nil))
		if out, made, ok := p.apply(args); ok && len(made) > 0 {
			if now := m.schema.examine(out); now.valid() && now.formats == nil {
				args, changes = out, append(slices.Clip(changes), made...)
			}
		}
	}
	if len(changes) == 0 {
		return
	}
	for _, r := range m.results {
		if bytes.Equal(r.args, args) {
			return
		}
	}
	m.results = append(m.results, mended{args, changes})
}

// A plan is a set of edits that answers everything the engine objected to.
type plan []edit

func (p plan) apply(args []byte) ([]byte, []Change, bool) {
	if len(p) > maxEdits {
		return nil, nil, false
	}
	// Within an operation by place: the engine's order is that of a map. Members
	// that are added stay in the order of the schema.
	slices.SortStableFunc(p, func(a, b edit) int {
		if order := cmp.Or(cmp.Compare(a.op, b.op), comparePaths(a.path, b.path)); order != 0 || a.op == insert {
			return order
		}
		return cmp.Compare(a.key, b.key)
	})
	var changes []Change
	for _, e := range p {
		out, change, ok := splice(args, e)
		if !ok {
			return nil, nil, false
		}
		args, changes = out, append(changes, change)
	}
	return args, changes, true
}

// plans lists the ways to answer an objection. Where several things are wrong
// each needs an answer; where one of several branches would do, each is a way.
func (m *mender) plans(e *jsonschema.ValidationError, value any) []plan {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return m.either(sameShape(e, value), value)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return nil // it fits too many, and nothing was wrongly written
		}
		return m.either(sameShape(e, value), value)
	case *kind.Contains, *kind.MinContains, *kind.PropertyNames, *kind.Not:
		return nil
	}
	if len(e.Causes) == 0 {
		return m.answers(e, value)
	}
	ways := []plan{nil}
	for _, cause := range e.Causes {
		ways = m.combine(ways, m.plans(cause, value))
		if len(ways) == 0 || len(ways[0]) > maxEdits {
			return nil
		}
	}
	return ways
}

func (m *mender) either(causes []*jsonschema.ValidationError, value any) []plan {
	var ways []plan
	for _, cause := range causes {
		for _, way := range m.plans(cause, value) {
			// Branches often want the same: text decoded, then they differ. But
			// a value that only one of them gives would choose the branch.
			if !slices.ContainsFunc(ways, way.equal) && !way.inserts() {
				ways = append(ways, way)
			}
		}
	}
	if len(ways) > maxPlans {
		m.exhausted = true
		return nil
	}
	return ways
}

// sameShape drops the branches that want something else than an object or a
// list where another branch takes it: that one was meant, and what is wrong is
// inside.
func sameShape(e *jsonschema.ValidationError, root any) []*jsonschema.ValidationError {
	value, _ := at(root, e.InstanceLocation)
	if typ := typeOf(value); typ != "object" && typ != "array" {
		return e.Causes
	}
	var alike []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		if _, ok := cause.ErrorKind.(*kind.Type); !ok || len(cause.InstanceLocation) > len(e.InstanceLocation) {
			alike = append(alike, cause)
		}
	}
	if len(alike) == 0 {
		return e.Causes
	}
	return alike
}

func (m *mender) combine(ways, answers []plan) []plan {
	if len(ways)*len(answers) > maxPlans {
		m.exhausted = true
		return nil
	}
	var out []plan
	for _, way := range ways {
		for _, answer := range answers {
			if joined, ok := way.join(answer); ok {
				out = append(out, joined)
			}
		}
	}
	return out
}

func (p plan) equal(o plan) bool { return slices.EqualFunc(p, o, edit.equal) }

func (p plan) inserts() bool {
	return slices.ContainsFunc(p, func(e edit) bool { return e.op == insert })
}

func (p plan) join(other plan) (plan, bool) {
	out := slices.Clip(p)
next:
	for _, e := range other {
		for _, have := range out {
			if have.equal(e) {
				continue next
			}
			if have.clashes(e) {
				return nil, false
			}
		}
		out = append(out, e)
	}
	return out, true
}
