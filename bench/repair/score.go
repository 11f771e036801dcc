package main

import (
	"bytes"
	"fmt"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/bench/internal/toolset"
)

// The outcomes of a case.
const (
	repaired  = "repaired"
	missed    = "missed"
	wrong     = "WRONG"     // mended into something else than was meant
	refused   = "refused"   // rightly left alone, and not sent
	forwarded = "passed on" // rightly left alone, and the server may judge it
	unsafe    = "UNSAFE"    // sent although its meaning was a guess
	passed    = "valid"
	changed   = "CHANGED"  // a valid call that was not sent as it came
	rejected  = "REJECTED" // a valid call that was not sent
)

// lossless is the policy of scoring the rules themselves: what a policy
// withholds counts as done.
const lossless = "lossless"

// scorer puts the cases of a set before package arguments.
type scorer struct {
	tools    map[string]toolset.Tool
	catalogs map[string][]string
	cache    *arguments.Cache
}

// decision is what became of a call.
type decision struct {
	sent   bool // as valid or mended; what is passed on unmended is not
	mended bool
	tool   string
	args   []byte
}

// outcome scores one case. The policy may turn a repair into a suggestion.
func (s *scorer) outcome(c toolset.Case, policy string) (string, error) {
	d, err := s.decide(c, policy)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.ID, err)
	}
	verdict := c.Verdict
	if verdict == "repair" && c.Policy[policy] == "suggest" {
		verdict = "must_not_repair"
	}
	// A read-only tool may judge for itself, and so may any server whose
	// schema has no objection but a format.
	lenient := c.Risk == "read" || c.ValidatorMode == "assert_format"
	switch {
	case verdict == "repair" && !d.sent:
		return missed, nil
	case verdict == "repair" && !d.mended && c.ValidatorMode == "assert_format":
		return missed, nil
	case verdict == "repair":
		if toolset.Same(d.args, c.Expected) && (c.ExpectedTool == "" || d.tool == c.ExpectedTool) {
			return repaired, nil
		}
		return wrong, nil
	case verdict == "must_not_repair" && d.mended,
		verdict == "must_not_repair" && d.sent && !lenient:
		return unsafe, nil
	case verdict == "must_not_repair" && lenient:
		return forwarded, nil
	case verdict == "must_not_repair":
		return refused, nil
	case !d.sent:
		return rejected, nil
	case d.mended || !bytes.Equal(d.args, c.Arguments):
		return changed, nil
	default:
		return passed, nil
	}
}

func (s *scorer) decide(c toolset.Case, policy string) (decision, error) {
	name, schema, catalogue := c.Tool, c.InputSchema, c.Catalog
	if c.ToolID != "" {
		tool, ok := s.tools[c.ToolID]
		if !ok {
			return decision{}, fmt.Errorf("no tool %q in this set", c.ToolID)
		}
		name, schema, catalogue = tool.Name, tool.InputSchema, s.catalogs[tool.Project]
	}
	compiled, err := s.cache.Compile(schema)
	if err != nil {
		return decision{}, err
	}
	call := arguments.Call{Tool: name, Arguments: c.Arguments, Risk: toolset.RiskOf(c.Risk), Policy: arguments.Policy(policy)}
	if policy == lossless {
		call.Policy = arguments.Balanced
	}
	d := decision{tool: c.ToolCalled}
	if c.ToolCalled != name {
		found, ok := arguments.RepairName(c.ToolCalled, catalogue)
		if !ok || policy != lossless && !call.Policy.Permits(call.Risk, arguments.RuleToolName) {
			return d, nil
		}
		d.tool, d.mended = found, true
		if found != name {
			return decision{sent: true, mended: true, tool: found, args: c.Arguments}, nil
		}
	}
	r := compiled.Repair(call)
	switch {
	case r.Outcome == arguments.Valid:
		d.sent, d.args = true, r.Arguments
	case r.Outcome == arguments.Mended:
		d.sent, d.mended, d.args = true, true, r.Arguments
	case r.Outcome == arguments.Withheld && policy == lossless:
		d.sent, d.mended, d.args = true, true, r.Suggested
	default:
		d.mended = false
	}
	return d, nil
}
