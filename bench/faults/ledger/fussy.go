package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// The fussy tools have a schema with types, and know more than it says: level is
// an enumeration, and which seasons there are only the tool knows. They refuse
// before anything is begun.
const (
	Fussy            = "fussy"       // no annotations; refuses with a result that is an error
	FussyReadOnly    = "fussy_ro"    // readOnlyHint; the same
	FussyDestructive = "fussy_destr" // destructiveHint; refuses with -32602
)

var (
	// Levels stand in the schema, Seasons do not.
	Levels  = []string{"low", "normal", "high"}
	Seasons = []string{"spring", "summer", "autumn", "winter"}
)

func isFussy(tool string) bool { return tool == Fussy || strings.HasPrefix(tool, Fussy+"_") }

func fussyDefinition(name string) map[string]any {
	text := map[string]any{"type": "string"}
	tool := map[string]any{
		"name": name, "description": "Files a report for a season and tells somebody.",
		// Open on purpose: what a schema forbids, nobody else has to.
		"inputSchema": map[string]any{
			"type": "object", "required": []string{"op_id", "level", "season"},
			"properties": map[string]any{
				"op_id": text, "season": text, "text": text, "comment": text, "path": text, "attachment": text,
				"recipient": text, "cc": text, "api_token": text,
				"level":   map[string]any{"type": "string", "enum": Levels},
				"amount":  map[string]any{"type": "number"},
				"dry_run": map[string]any{"type": "boolean"},
			},
		},
	}
	switch name {
	case FussyReadOnly:
		tool["annotations"] = annotations[ReadOnly]
	case FussyDestructive:
		tool["annotations"] = annotations[Destructive]
	}
	return tool
}

// Refusal is what a fussy tool says of its arguments, before any rant.
func Refusal(tool, op, level, season string) string {
	return fmt.Sprintf("Invalid arguments for tool %s: level %q and season %q of %s do not make sense", tool, level, season, op)
}

// refuse is the answer to a call whose arguments a fussy tool does not like.
func (s *server) refuse(c *call) *rpc.Message {
	if !isFussy(c.tool) {
		return nil
	}
	fine := slices.Contains(Levels, c.args.Level) && slices.Contains(Seasons, c.args.Season)
	if fine && s.plan.Fussy != "all" {
		return nil
	}
	text := Refusal(c.tool, c.op, c.args.Level, c.args.Season) + strings.ReplaceAll(s.plan.Rant, "{{op}}", c.op)
	if c.tool == FussyDestructive {
		return rpc.Refuse(c.id, -32602, "%s", text)
	}
	return rpc.Answer(c.id, toolError("%s", text))
}

// mostEvidence is how much of the arguments goes into the book: more than any
// caller of these tools sends.
const mostEvidence = 16 << 10

// evidence is what the book keeps of a call's arguments: all, where it matters
// what they were.
func (s *server) evidence(c *call) string {
	if !isFussy(c.tool) && s.plan.Fussy == "" {
		return ""
	}
	return string(c.raw[:min(len(c.raw), mostEvidence)])
}
