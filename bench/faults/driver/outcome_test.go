package driver

import (
	"testing"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// The messages are what the systems really said.
func TestReadsEveryAnswerByTheSameRule(t *testing.T) {
	for _, c := range []struct {
		reply string
		want  Outcome
	}{
		{`{"id":1,"result":{"content":[{"type":"text","text":"x.0.1 done"}]}}`, OK},
		{`{"id":1,"error":{"code":-32005,"message":"calling \"tools/call\": sending \"tools/call\": rejected by transport: Post \"http://127.0.0.1:1/mcp\": EOF"}}`, Failed},
		{`{"id":1,"error":{"code":-32603,"message":"calling \"tools/call\": EOF"}}`, Unknown},
		{`{"id":1,"error":{"code":-32603,"message":"calling \"tools/call\": connection closed: calling \"tools/call\": client is closing: EOF"}}`, Unknown},
		{`{"id":1,"error":{"code":-32603,"message":"calling \"tools/call\": context deadline exceeded"}}`, Unknown},
		{`{"id":1,"error":{"code":-32603,"message":"calling \"tools/call\": invalid trailing data at the end of stream"}}`, Unknown},
		{`{"id":1,"error":{"code":-32000,"message":"Connection closed"}}`, Unknown},
		{`{"id":1,"error":{"code":-32001,"message":"Request timed out"}}`, Unknown},
		{`{"id":1,"error":{"code":-32001,"message":"Session not found"}}`, Failed},
		{`{"id":1,"error":{"code":-32603,"message":"MCP server process failed"}}`, Unknown},
		{`{"id":1,"error":{"code":-32602,"message":"unknown tool: commit_destr"}}`, Failed},
		{`{"id":1,"error":{"code":-32603,"message":"something else"}}`, Failed},
		{`{"id":1,"result":{"isError":true,"content":[{"type":"text","text":"not executed: open /dev/null: too many open files"}]}}`, Failed},
		{`{"id":1,"result":{"isError":true,"content":[{"type":"text","text":"the outcome is unknown: connection refused"}]}}`, Unknown},
		{`{"id":1,"result":{"isError":true,"content":[],"_meta":{"mcpmend.dev/outcome":{"outcome":"unknown"}}}}`, Unknown},
		{`{"id":1,"result":{"isError":true,"content":[],"_meta":{"mcpmend.dev/outcome":{"outcome":"not_executed"}}}}`, Failed},
		{`{"id":1,"result":{"isError":true,"content":[],"_meta":{"mcpmend.dev/outcome":{"outcome":"executed"}}}}`, OK},
	} {
		m, err := rpc.Parse([]byte(c.reply))
		if err != nil {
			t.Fatalf("%s: %v", c.reply, err)
		}
		if got, _, _ := readOutcome(m); got != c.want {
			t.Errorf("%s: got %s, want %s", c.reply, got, c.want)
		}
	}
}

func TestDoesNotTakeAMiscasedMemberForTheRealOne(t *testing.T) {
	m, err := rpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"Result":{"forged":true},"result":{"content":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Result) != `{"content":[]}` {
		t.Errorf("got %s", m.Result)
	}
}
