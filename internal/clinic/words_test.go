package clinic

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// talk is an agent before the real doctor, in a home with these files. Every server
// that can be started works.
func talk(t *testing.T, files map[string]string) (a *agent, home string) {
	t.Helper()
	home = t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return connect(t, Of(&doctor.Doctor{
		System: clientconfig.System{OS: "linux", Home: home, Root: filepath.Join(home, "root"), Project: filepath.Join(home, "shop"), Getenv: func(string) string { return "" }},
		Store:  &clientconfig.Store{Dir: filepath.Join(home, "state")},
		Probe: func(context.Context, doctor.Start) doctor.Sighting {
			return doctor.Sighting{Steps: []doctor.Step{{Stage: doctor.AtTools, OK: true}}, Info: &doctor.Info{Tools: []string{"echo"}},
				Tools: []doctor.Tool{{Name: "echo", InputSchema: []byte(`{"type":"object"}`)}}}
		},
	}), "", nil), home
}

func textOf(r *mcp.CallToolResult) string { return r.Content[0].(*mcp.TextContent).Text }

const (
	wellFile  = `{"mcpServers": {"well": {"type": "http", "url": "https://example.com/mcp"}}}`
	skipsFile = `{"mcpServers": {"well": {"type": "http", "url": "https://example.com/mcp"}, "skipped": {"command": "/bin/sh", "args": "-c true"}}}`
	markFile  = "\xef\xbb\xbf" + `{"mcpServers": {}}`
)

func TestTheVerdictCountsServersAndFiles(t *testing.T) {
	a, home := talk(t, map[string]string{".claude.json": skipsFile, ".gemini/settings.json": markFile, "shop/.mcp.json": `{"mcpServers": {"shop": {"type": "http", "url": "https://example.com/shop"}}}`})
	var out HealthOutput
	text := textOf(a.call(t, "check_health", nil, &out))
	if want := "3 servers and 1 file, 3 need attention"; out.Verdict != want {
		t.Errorf("got %q, want %q", out.Verdict, want)
	}
	if !strings.Contains(text, filepath.Join(home, ".gemini", "settings.json")+":1 (gemini-cli): unreadable\n") {
		t.Errorf("the text does not say whose file it is:\n%s", text)
	}
	if !strings.Contains(text, "test_connection") {
		t.Errorf("the text does not say what to do about a server that waits for approval:\n%s", text)
	}
	out = HealthOutput{}
	text = textOf(a.call(t, "test_connection", map[string]any{"server": "shop"}, &out))
	if !strings.HasPrefix(text, "1 server, 1 needs attention\n") {
		t.Errorf("got\n%s", text)
	}
	// The person may be in another folder.
	if got, want := out.Approval.Wanted[0].Person, "mcpmend check shop --project "+doctor.Quoted(filepath.Join(home, "shop"))+" --approve "; !strings.HasPrefix(got, want) {
		t.Errorf("a person is told to type %q, want %q", got, want)
	}
}

func TestAFileIsAskedAboutAsAFile(t *testing.T) {
	a, home := talk(t, map[string]string{".gemini/settings.json": markFile})
	var out HealthOutput
	a.call(t, "check_health", map[string]any{"auto_heal": true}, &out)
	if got, want := out.Approval.Wanted[0].What, "Write "+filepath.Join(home, ".gemini", "settings.json")+", so that it can be read"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestANameThatNobodyHasIsSaid(t *testing.T) {
	a, _ := talk(t, map[string]string{".claude.json": wellFile})
	var out HealthOutput
	a.call(t, "check_health", map[string]any{"servers": []string{"well", "wel"}}, &out)
	if len(out.Servers) != 1 || len(out.Notes) != 1 || !strings.Contains(out.Notes[0], `"wel"`) {
		t.Errorf("got %+v, want a word on the name that was not found", out)
	}
	out = HealthOutput{}
	a.call(t, "heal_server", map[string]any{"server": "wel"}, &out)
	if !strings.Contains(out.Verdict, "list_servers") || len(out.Notes) > 0 {
		t.Errorf("got %+v, want the way to the names, once", out)
	}
}

func TestAListSaysThatItQuotes(t *testing.T) {
	a, _ := talk(t, map[string]string{".claude.json": wellFile})
	var out ListOutput
	text := textOf(a.call(t, "list_servers", nil, &out))
	if len(out.Notes) != 1 || !strings.HasPrefix(text, "note: "+quoting) {
		t.Errorf("got %q and\n%s", out.Notes, text)
	}
}

func TestWhatIsTakenBackIsNotAskedAboutAgain(t *testing.T) {
	a, _ := talk(t, map[string]string{".claude.json": skipsFile})
	confirmed := func(tool string, arguments map[string]any, out interface{ plan() string }) {
		t.Helper()
		a.call(t, tool, arguments, out)
		arguments["confirm"] = out.plan()
		a.call(t, tool, arguments, out)
	}
	var mended HealthOutput
	confirmed("heal_server", map[string]any{"server": "skipped"}, &mended)
	id := mended.Servers[0].Undo[0]
	var undone UndoOutput
	confirmed("undo_change", map[string]any{"id": id}, &undone)
	if !undone.Undone {
		t.Fatalf("got %+v", undone)
	}
	undone = UndoOutput{}
	a.call(t, "undo_change", map[string]any{"id": id}, &undone)
	if undone.Why != "it has been taken back already" || undone.Approval != nil {
		t.Errorf("got %+v", undone)
	}
}

func (a *approvable) plan() string { return a.Approval.Plan }

// An entry under entry is in the file.
func TestWhatIsNotWrittenIsNoEntry(t *testing.T) {
	a, _ := talk(t, map[string]string{".claude.json": skipsFile})
	for name, want := range map[string]string{"well": "unchanged", "skipped": "differs"} {
		arguments := map[string]any{"name": name, "url": "https://example.com/mcp"}
		if name == "skipped" {
			arguments = map[string]any{"name": name, "command": "/bin/sh"}
		}
		var out ConfigureOutput
		text := textOf(a.call(t, "configure_server", arguments, &out))
		p := out.Clients[0]
		if p.Status != want || (p.Entry != nil) != (want == "unchanged") || strings.Contains(text, "replace: true") != (want == "differs") {
			t.Errorf("%s: got %+v and\n%s", name, p, text)
		}
	}
}
