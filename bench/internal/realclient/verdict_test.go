package realclient

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the pinned versions print; the words are theirs.
func TestVerdictsOfRecordedOutputs(t *testing.T) {
	for _, test := range []struct {
		name, client string
		out          Output
		want         map[string]Verdict
	}{
		{
			"claude", "claude",
			Output{Stdout: "Checking MCP server health…\n\n" +
				"good: /bin/small a - b - ✔ Connected\n" +
				"gone: /nope  - ✘ Failed to connect — ENOENT: no such file or directory, posix_spawn '/nope'\n" +
				"far: http://127.0.0.1:9/mcp (HTTP) - ✘ Failed to connect — ECONNREFUSED: Unable to connect. Is the computer able to access the url?\n" +
				"mine: /bin/small  - ⏸ Pending approval (run `claude` to approve)\n\n" +
				"[Contains warnings] User config (available in all your projects)\nLocation: /home/.claude.json\n" +
				" └ [Warning] [odd] mcpServers.odd: Skipped — invalid MCP server config for \"odd\": args: expected array, received string\n"},
			map[string]Verdict{
				"good": {OK, "Connected"},
				"gone": {Failed, "Failed to connect — ENOENT: no such file or directory, posix_spawn '/nope'"},
				"far":  {Failed, "Failed to connect — ECONNREFUSED: Unable to connect. Is the computer able to access the url?"},
				"mine": {NotChecked, "Pending approval (run `claude` to approve)"},
				"odd":  {Absent, "[Warning] [odd] mcpServers.odd: Skipped — invalid MCP server config for \"odd\": args: expected array, received string"},
			},
		},
		{
			"gemini", "gemini",
			Output{Stderr: "Configured MCP servers:\n\n✓ good: /bin/small a b (stdio) - Connected\n✗ gone: /nope  (stdio) - Disconnected\n○ off: http://127.0.0.1:9/mcp (http) - Disabled\n✓ odd: http://127.0.0.1:8/mcp (streamable-http) - Connected\n"},
			map[string]Verdict{"good": {OK, "Connected"}, "gone": {Failed, "Disconnected"}, "off": {NotChecked, "Disabled"}, "odd": {OK, "Connected"}, "nobody": {Absent, ""}},
		},
		{
			"gemini, file refused", "gemini",
			Output{Exit: 52, Stderr: "Error in /home/.gemini/settings.json: Expected double-quoted property name in JSON at position 65 (line 1 column 66)\nPlease fix the configuration file(s) and try again.\n"},
			map[string]Verdict{"any": {Absent, "Error in /home/.gemini/settings.json: Expected double-quoted property name in JSON at position 65 (line 1 column 66)"}},
		},
		{
			"opencode", "opencode",
			Output{Stdout: "┌  MCP Servers\n│\n●  ✓ good \x1b[90mconnected\n│      \x1b[90m/bin/small\n│\n●  ✗ gone \x1b[90mfailed\n│      ENOENT: no such file or directory, posix_spawn '/nope'\n│      \x1b[90m/nope\n│\n└  2 server(s)\n"},
			map[string]Verdict{"good": {OK, "connected"}, "gone": {Failed, "failed: ENOENT: no such file or directory, posix_spawn '/nope'"}, "nobody": {Absent, ""}},
		},
		{
			"copilot", "copilot",
			Output{Stdout: `{"mcpServers":{"on":{"command":"x","enabled":true},"off":{"command":"x","enabled":false}}}`},
			map[string]Verdict{"on": {NotChecked, "enabled"}, "off": {NotChecked, "disabled"}, "nobody": {Absent, ""}},
		},
		{
			"codex", "codex",
			Output{Stdout: `[{"name":"on","enabled":true},{"name":"off","enabled":false}]`},
			map[string]Verdict{"on": {NotChecked, "enabled"}, "off": {NotChecked, "disabled"}, "nobody": {Absent, ""}},
		},
		{
			"codex doctor", "codex",
			Output{kind: examination, Exit: 1, Stdout: `{"checks":{"mcp.config":{"status":"fail","details":{
				"gone":"stdio command \"nope\" is not resolvable (not found on PATH)",
				"configured servers":"4","disabled servers":"0",
				"far":"bearer token env var KEY is not set",
				"optional reachability failed":["far: http://127.0.0.1:9/mcp (HEAD connect failed; GET connect failed)"]}}}}`},
			map[string]Verdict{
				"gone": {Failed, `stdio command "nope" is not resolvable (not found on PATH)`},
				"far":  {Failed, "bearer token env var KEY is not set; http://127.0.0.1:9/mcp (HEAD connect failed; GET connect failed)"},
				"good": {NotChecked, "no complaint"},
			},
		},
		{
			"codex doctor, file refused", "codex",
			Output{kind: examination, Exit: 1, Stdout: `{"checks":{"config.load":{"status":"fail","summary":"config could not be loaded","details":{"line":"19"}}}}`},
			map[string]Verdict{"any": {Absent, "config could not be loaded"}},
		},
		{
			"a client that was killed", "claude", Output{TimedOut: true, Exit: -1},
			map[string]Verdict{"any": {Absent, "no answer within the time"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := ByID(test.client)
			got := make(map[string]Verdict)
			for name := range test.want {
				got[name] = c.Verdict(test.out, name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
