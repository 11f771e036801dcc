package judge

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMain is also the server: a real one, that wants a variable if it is told so.
func TestMain(m *testing.M) {
	want := os.Getenv("JUDGE_SERVER")
	if want == "" {
		os.Exit(m.Run())
	}
	if name, value, ok := strings.Cut(want, "="); ok && os.Getenv(name) != value {
		fmt.Fprintf(os.Stderr, "%s is %q\n", name, os.Getenv(name))
		os.Exit(1)
	}
	if err := server().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

func TestUsesNothingOfMcpmend(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/mcpmend/mcpmend"
	for line := range bytes.Lines(out) {
		if p := strings.TrimSpace(string(line)); strings.HasPrefix(p, ours) && p != ours+"/bench/doctor/judge" {
			t.Errorf("the judge imports %s", p)
		}
	}
}

func server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "well"}}}, nil, nil
		})
	return s
}

func TestJudgesAsTheClientWould(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	one := func(*http.Request) *mcp.Server { return server() }
	older := httptest.NewServer(mcp.NewSSEHandler(one, nil))
	defer older.Close()
	newer := httptest.NewServer(mcp.NewStreamableHTTPHandler(one, nil))
	defer newer.Close()
	for _, test := range []struct {
		name, client, file, text string
		want                     string // part of why it cannot be used, "" if it can
	}{
		{"a command", "claude-code", "~/.claude.json", `{"mcpServers": {"s": {"command": "SELF", "env": {"JUDGE_SERVER": "-"}}}}`, ""},
		{"arguments as a text", "claude-code", "~/.claude.json", `{"mcpServers": {"s": {"command": "SELF", "args": "a"}}}`, "args is no list"},
		{"a comment", "claude-code", "~/.claude.json", `{"mcpServers": {"s": {"command": "SELF"}}} // mine`, "more than one value"},
		{"a comment that is read", "vscode", "~/.config/Code/User/mcp.json", `{"servers": {/* "x": 1 */ "s": {"command": "SELF", "args": ["a//b",], "env": {"JUDGE_SERVER": "-"}},}} // mine`, ""},
		{"a comment that gemini skips", "gemini-cli", "~/.gemini/settings.json", `{"mcpServers": {"s": {"command": "SELF", "env": {"JUDGE_SERVER": "-"}}}} // mine`, ""},
		{"a comma that gemini does not", "gemini-cli", "~/.gemini/settings.json", `{"mcpServers": {"s": {"command": "SELF",}}}`, "invalid character"},
		{"a mark that gemini cannot read", "gemini-cli", "~/.gemini/settings.json", "\ufeff" + `{"mcpServers": {"s": {"command": "SELF"}}}`, "invalid character"},
		{"another's key", "vscode", "~/.config/Code/User/mcp.json", `{"mcpServers": {"s": {"command": "SELF"}}}`, "no server"},
		{"a reference", "cursor", "~/.cursor/mcp.json", `{"mcpServers": {"s": {"command": "SELF", "env": {"JUDGE_SERVER": "A=b", "A": "${env:THEIRS}"}}}}`, ""},
		{"another's reference", "cursor", "~/.cursor/mcp.json", `{"mcpServers": {"s": {"command": "SELF", "env": {"JUDGE_SERVER": "A=b", "A": "${THEIRS}"}}}}`, "A is"},
		{"no PATH of a terminal", "claude-desktop", "~/.config/Claude/claude_desktop_config.json", `{"mcpServers": {"s": {"command": "there"}}}`, "no program"},
		{"the PATH of a terminal", "claude-code", "~/.claude.json", `{"mcpServers": {"s": {"command": "there", "env": {"JUDGE_SERVER": "-"}}}}`, ""},
		{"a variable that codex keeps", "codex", "~/.codex/config.toml", "[mcp_servers.s]\ncommand = 'SELF'\nenv = { JUDGE_SERVER = 'THEIRS=b' }\n", "THEIRS is"},
		{"a variable that codex hands on", "codex", "~/.codex/config.toml", "[mcp_servers.s]\ncommand = 'SELF'\nenv = { JUDGE_SERVER = 'THEIRS=b' }\nenv_vars = ['THEIRS']\n", ""},
		{"a list", "continue", "~/.continue/config.yaml", "mcpServers:\n  - name: s\n    command: SELF\n    env: {JUDGE_SERVER: '-'}\n", ""},
		{"an object for a list", "continue", "~/.continue/config.yaml", "mcpServers:\n  s:\n    command: SELF\n", "the servers are"},
		{"a URL", "gemini-cli", "~/.gemini/settings.json", `{"mcpServers": {"s": {"httpUrl": "NEWER"}}}`, ""},
		{"a URL without a type", "claude-code", "~/.claude.json", `{"mcpServers": {"s": {"url": "NEWER"}}}`, "passes over"},
		{"the older HTTP", "cline", "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", `{"mcpServers": {"s": {"type": "sse", "url": "OLDER"}}}`, ""},
		{"the wrong HTTP", "cline", "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", `{"mcpServers": {"s": {"type": "streamableHttp", "url": "OLDER"}}}`, "streamable HTTP"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := Machine{Home: t.TempDir(), Project: t.TempDir()}
			bin := filepath.Join(m.Home, "bin")
			m.Env = []string{"HOME=" + m.Home, "PATH=" + bin + ":/usr/bin:/bin", "THEIRS=b"}
			name := filepath.Join(m.Home, strings.TrimPrefix(test.file, "~/"))
			for _, dir := range []string{bin, filepath.Dir(name)} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(self, filepath.Join(bin, "there")); err != nil {
				t.Fatal(err)
			}
			text := strings.NewReplacer("SELF", self, "NEWER", newer.URL, "OLDER", older.URL).Replace(test.text)
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			switch err := Works(t.Context(), m, test.client, "", "s"); {
			case err == nil && test.want != "":
				t.Errorf("it can be used, want %q", test.want)
			case err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestTakesCommentsOut(t *testing.T) {
	got := string(withoutComments([]byte("{\"a\": \"// no \\\" /* no */\", // yes\n\"b\": [1, 2, /* yes */ ],\n}"), true))
	if diff := cmp.Diff("{\"a\": \"// no \\\" /* no */\", \n\"b\": [1, 2]}", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
