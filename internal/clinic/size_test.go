package clinic

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// newPractice is a machine with 20 servers of Claude Code, and the real doctor: s03
// dies for want of a variable, and the client skips s07, whose arguments are one text.
// plain writes short paths instead of those of this machine.
func newPractice(t *testing.T) (p Practice, plain *strings.Replacer) {
	t.Helper()
	home := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	servers := make(map[string]any)
	for i := range 20 {
		var args any = []string{"--server", fmt.Sprint(i)}
		if i == 7 {
			args = "--server 7 --folder notes"
		}
		servers[fmt.Sprintf("s%02d", i)] = map[string]any{"command": exe, "args": args, "env": map[string]any{"GITHUB_TOKEN": canary}}
	}
	b, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	info := &doctor.Info{}
	var tools []doctor.Tool
	for i := range 12 {
		info.Tools = append(info.Tools, fmt.Sprintf("search_things_%d", i))
		tools = append(tools, doctor.Tool{Name: info.Tools[i], InputSchema: []byte(`{"type":"object"}`)})
	}
	inJSON := func(path string) string { return strings.ReplaceAll(path, `\`, `\\`) }
	plain = strings.NewReplacer(inJSON(home), "/home/me", home, "/home/me", inJSON(exe), "/usr/bin/server", exe, "/usr/bin/server")
	return Of(&doctor.Doctor{
		System: clientconfig.System{OS: runtime.GOOS, Home: home, Root: filepath.Join(home, "root"), Getenv: func(string) string { return "" }},
		Store:  &clientconfig.Store{Dir: filepath.Join(home, "state")},
		Probe: func(_ context.Context, s doctor.Start) doctor.Sighting {
			if s.Command[2] == "3" {
				return doctor.Sighting{
					Steps: []doctor.Step{{Stage: doctor.AtStart}},
					Fault: &fault.Fault{Kind: fault.Unknown, Evidence: fault.Evidence{Exited: true, ExitCode: 1, Stderr: []string{
						"node:internal/process/promises:394", "Error: NOTION_API_KEY environment variable is required", "    at main (/srv/index.js:12:9)"}}},
				}
			}
			return doctor.Sighting{Steps: []doctor.Step{{Stage: doctor.AtStart, OK: true}, {Stage: doctor.AtHandshake, OK: true}, {Stage: doctor.AtTools, OK: true}}, Info: info, Tools: tools}
		},
	}), plain
}

// An agent pays for the tools in every session, and for an answer when it is in
// trouble already.
func TestToolsAndAnswersAreShort(t *testing.T) {
	practice, plain := newPractice(t)
	a := connect(t, practice, "2025-11-25", nil)
	size := func(v any) int {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	list, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := size(list)
	for _, tool := range list.Tools {
		tool.OutputSchema = nil
	}
	t.Logf("tools/list: %d bytes, %d without output schemas", whole, size(list))
	if whole > 8500 {
		t.Errorf("tools/list has %d bytes", whole)
	}
	for _, test := range []struct {
		tool       string
		arguments  map[string]any
		data, text int    // bytes at most
		once       string // is said once in each
	}{
		{"check_health", map[string]any{}, 2200, 1400, "The server needs NOTION_API_KEY"},
		{"check_health", map[string]any{"auto_heal": true}, 3000, 2200, "The server needs NOTION_API_KEY"},
		{"check_health", map[string]any{"auto_heal": true}, 3000, 2200, "Claude Code ignores this entry"},
		{"heal_server", map[string]any{"server": "s03"}, 800, 700, "set NOTION_API_KEY before"},
		{"heal_server", map[string]any{"server": "s07"}, 1400, 1200, `+      "args"`},
		{"test_connection", map[string]any{"server": "s01"}, 400, 350, "search_things_3"},
		{"configure_server", map[string]any{"name": "new", "package": "npm:@example/new", "secrets": []string{"API_KEY"}, "clients": []string{"claude-code"}}, 900, 850, "fetch a package"},
		{"list_servers", map[string]any{}, 4300, 3500, "Claude Code ignores this entry"},
		{"explain_error", map[string]any{"error": "spawn npx ENOENT"}, 350, 300, "was not found"},
	} {
		r := a.call(t, test.tool, test.arguments, nil)
		text := plain.Replace(r.Content[0].(*mcp.TextContent).Text)
		b, err := json.Marshal(r.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		data := plain.Replace(string(b))
		t.Logf("%-16s %-24.24s data %4d, text %4d bytes", test.tool, fmt.Sprint(test.arguments), len(data), len(text))
		if len(data) > test.data || len(text) > test.text {
			t.Errorf("%s %v: %d bytes of data, %d of text; at most %d and %d\n%s\n%s", test.tool, test.arguments, len(data), len(text), test.data, test.text, data, text)
		}
		if d, x := strings.Count(strings.ReplaceAll(data, `\"`, `"`), test.once), strings.Count(text, test.once); d != 1 || x != 1 {
			t.Errorf("%s %v: %q is said %d times in the data and %d times in the text\n%s\n%s", test.tool, test.arguments, test.once, d, x, data, text)
		}
	}
}
