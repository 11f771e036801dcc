package doctor

import (
	"strings"
	"testing"
	"time"
)

func TestAReportCannotBeBrokenOutOfByAServer(t *testing.T) {
	c := &Case{
		Name: "files", Client: "cursor", State: Dead, Runs: "npx `x`",
		At:     Place{File: "/home/me/.cursor/mcp.json", Line: 4},
		Ladder: []Step{{Stage: AtResolve, OK: true}, {Stage: AtStart, Note: "a | b\nc", Took: 1200 * time.Microsecond}},
		Cause: &Finding{ID: "start.unknown", Stage: AtStart, Severity: Broken, Explanation: "It ended.",
			Evidence: []string{"stderr: \x1b]0;title\a\u202eturned\r", "stderr: ```", "stderr: # not a headline", "stderr: Authorization: Bearer " + strings.Repeat("abc123", 4)}},
	}
	got := c.Markdown(Machine{Version: "v1", System: "linux/amd64"}, "/home/me")
	for _, want := range []string{"### files: dead at start", "~/.cursor/mcp.json:4", `a \| b c`, "````text\n", "| start | **failed** | 1ms"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"abc123abc123", "/home/me", "\x1b", "\a", "\r", "\u202e"} {
		if strings.Contains(got, not) {
			t.Errorf("%q in\n%q", not, got)
		}
	}
}
