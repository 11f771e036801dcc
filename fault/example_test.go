package fault_test

import (
	"encoding/json"
	"fmt"

	"github.com/mcpmend/mcpmend/fault"
)

// The client saw only that the connection closed; the server said why.
func ExampleDiagnose() {
	d := fault.Diagnose(fault.Evidence{
		Text:     "MCP error -32000: Connection closed",
		Exited:   true,
		ExitCode: 1,
		Stderr:   []string{"Error: BRAVE_API_KEY environment variable is required"},
		Moment:   fault.AtHandshake,
	})
	fmt.Println(d.Kind, d.Pieces.Variable, d.Retryable)
	fmt.Println("hint:", d.SuggestedFix)
	// Output:
	// missing_env_var BRAVE_API_KEY false
	// hint: set BRAVE_API_KEY in the env block of the server's configuration entry
}

// The server died after it was handed the whole call. Whether the call may be
// sent again depends on what the tool does, and on whose word that is.
func ExampleDecide() {
	annotations := json.RawMessage(`{"readOnlyHint": true}`)
	for _, policy := range []fault.Policy{{}, {Trust: fault.TrustReadOnly}} {
		effect, byUser := policy.Effect("search", annotations)
		d := fault.Decide(fault.Attempt{Effect: effect, ByUser: byUser, Delivery: fault.Silent})
		fmt.Printf("%s: %s, outcome %s\n", effect, d.Action, d.Outcome)
	}
	// Output:
	// destructive: settle, outcome unknown
	// read-only: send again, outcome unknown
}
