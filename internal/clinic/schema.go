package clinic

import (
	"encoding/json"
	"strings"
)

// The schemas of answers name what a program acts on, and of the rest only that it
// is there. Written out in full they were two thirds of tools/list, which some
// clients read to the model in every session; the protocol has no way to share a
// definition between tools. docs/AGENTS.md describes the rows.

const (
	approvalSchema = `{"type":"object","required":["status"]}`
	serverRows     = `{"type":"array","items":{"type":"object","required":["client","state"]}}`
	texts          = `{"type":"array","items":{"type":"string"}}`
)

var (
	healthSchema    = schema("verdict servers", `"verdict":{"type":"string"}`, `"servers":`+serverRows, `"notes":`+texts, `"approval":`+approvalSchema)
	configureSchema = schema("verdict clients", `"verdict":{"type":"string"}`, `"clients":{"type":"array","items":{"type":"object","required":["client","status"]}}`,
		`"notes":`+texts, `"tools":`+texts, `"approval":`+approvalSchema)
	explainSchema = schema("kind title explanation confidence retry", `"kind":{"type":"string"}`, `"title":{"type":"string"}`, `"explanation":{"type":"string"}`,
		`"confidence":{"type":"number"}`, `"fix":{"type":"string"}`, `"retry":{"type":"boolean"}`)
	listSchema = schema("servers", `"servers":`+serverRows, `"notes":`+texts)
	undoSchema = schema("undone", `"undone":{"type":"boolean"}`, `"file":{"type":"string"}`, `"undo":{"type":"string"}`, `"why":{"type":"string"}`,
		`"reload":{"type":"string"}`, `"approval":`+approvalSchema)
)

// schema is that of an object with these properties.
func schema(required string, properties ...string) json.RawMessage {
	names, err := json.Marshal(strings.Fields(required))
	if err != nil {
		panic(err) // they are written above
	}
	return json.RawMessage(`{"type":"object","required":` + string(names) + `,"properties":{` + strings.Join(properties, ",") + `}}`)
}
