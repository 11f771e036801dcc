package upstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	converse(t, newStdioStage(t), "", flushLeft(script))
}

// A client that was asked something and never came back would otherwise keep the
// server's call open for ever.
func TestACallWhoseClientDoesNotComeBackWithAnAnswerIsCancelled(t *testing.T) {
	const asked = `
		alice is a modern client
		alice > {"id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}
		server < {"id":"$probe","method":"server/discover","params":"$_"}
		server > {"id":"$probe","error":{"code":-32601,"message":"Method not found"}}
		server < {"id":"$init","method":"initialize","params":"$_"}
		server > {"id":"$init","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}
		server < {"method":"notifications/initialized"}
		server < {"id":"$call","method":"tools/call","params":{"name":"t"}}
		server/$call > {"id":"q","method":"elicitation/create","params":{"message":"?"}}
		alice < {"id":1,"result":{"resultType":"input_required","requestState":"$state","inputRequests":"$_"}}`
	for name, rest := range map[string]string{
		"not before ten minutes": `
		9m59s pass
		alice > {"id":2,"method":"tools/call","params":{"name":"t","requestState":"$state","inputResponses":{"input":{"action":"accept"}}}}
		server < {"id":"q","result":{"action":"accept"}}
		# From here on it is a call like any other.
		20m pass
		server > {"id":"$call","result":{"content":[]}}
		alice < {"id":2,"result":{"resultType":"complete","content":[]}}`,
		"but then": `
		10m1s pass
		server < {"method":"notifications/cancelled","params":{"requestId":"$call"}}
		alice > {"id":2,"method":"tools/call","params":{"name":"t","requestState":"$state","inputResponses":{"input":{"action":"accept"}}}}
		alice < {"id":2,"error":{"code":-32602,"message":"unknown or expired requestState"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				converse(t, newBubbleStage(), "", flushLeft(asked+rest))
				time.Sleep(time.Minute) // whoever watches the server sees that it is closed
			})
		})
	}
}

// flushLeft is a script as it stands in a txtar file.
func flushLeft(script string) string { return strings.ReplaceAll(script, "\n\t\t", "\n") }
