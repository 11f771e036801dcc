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

func TestWhatOthersWroteIsNoMarkdownInAReport(t *testing.T) {
	evil := "x](http://evil) ![i](http://evil/i.png) <img src=x> @everyone `c` **b** | c"
	c := &Case{
		Name: evil, Client: "cursor", State: Dead, Runs: evil,
		At:     Place{File: "/p/<b>/" + evil + ".json", Line: 1},
		Info:   &Info{Name: evil, Version: "1 [a](b)"},
		Ladder: []Step{{Stage: AtStart, Note: evil}},
		Cause: &Finding{ID: "start.unknown", Stage: AtStart, Severity: Broken, Explanation: "It said " + evil + "\n# and _more_ of my_own_name, [hidden].",
			Evidence: []string{"stderr: " + evil}, Fixes: []Fix{{Does: "type " + evil, Class: Never}}},
	}
	got := c.Markdown(Machine{}, "")
	inFence := false
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "```") {
			inFence = !inFence
		}
		if inFence {
			continue
		}
		shown := withoutCode(line)
		for _, live := range []string{"](", "![", "<img", "<b>", "**b**", " _more_", "\n# "} {
			if strings.Contains(unescape(shown), live) {
				t.Errorf("%q is alive in %s", live, line)
			}
		}
	}
	for _, want := range []string{"my_own_name", "[hidden].", "`start.unknown`"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// withoutCode drops code spans.
func withoutCode(line string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.ReplaceAll(line, "\\`", ""), "`") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// unescape drops every escaped sign.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
