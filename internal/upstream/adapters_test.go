package upstream

import (
	"fmt"
	"strings"
	"testing"
)

// A server that answers every answer with another question would otherwise keep the
// client, and whoever sits before it, busy for ever.
func TestAServerThatAsksWithoutEndIsGivenUp(t *testing.T) {
	const hello = `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"a","version":"1"}}`
	script := `
		alice is a legacy client
		alice > {"id":0,"method":"initialize","params":` + hello + `}
		server < {"id":"$init","method":"initialize","params":"$_"}
		server > {"id":"$init","error":{"code":-32601,"message":"Method not found"}}
		server < {"id":"$probe","method":"server/discover","params":"$_"}
		server > {"id":"$probe","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}
		alice < {"id":0,"result":"$_"}
		alice > {"id":1,"method":"tools/call","params":{"name":"t"}}
		server < {"id":"$call0","method":"tools/call","params":"$_"}`
	for round := range 10 {
		script += strings.NewReplacer("%d", fmt.Sprint(round), "%n", fmt.Sprint(round+1)).Replace(`
		server > {"id":"$call%d","result":{"resultType":"input_required","requestState":"s%d","inputRequests":{"k":{"method":"roots/list"}}}}
		alice/1 < {"id":"$q%d","method":"roots/list"}
		alice > {"id":"$q%d","result":{"roots":[]}}
		server < {"id":"$call%n","method":"tools/call","params":{"name":"t","requestState":"s%d","inputResponses":{"k":{"roots":[]}},"_meta":"$_"}}`)
	}
	script += `
		server > {"id":"$call10","result":{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}}
		alice < {"id":1,"fault":{"delivery":"started","text":"the server keeps asking for input"}}`
	converse(t, newStdioStage(t), "", strings.ReplaceAll(script, "\n\t\t", "\n"))
}
