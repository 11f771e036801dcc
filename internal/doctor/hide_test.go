package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func TestADiffShowsAMarkThatCannotBeSeen(t *testing.T) {
	_, marked := entry(t, "gemini-cli", "user", "\ufeff{\"mcpServers\": {\"s\": {\"command\": \"x\"}}}\n")
	clean, err := marked.Unmarked()
	if err != nil {
		t.Fatal(err)
	}
	want := "-<BOM>{\"mcpServers\": {\"s\": {\"command\": \"x\"}}}\n+{"
	if got := DiffOf(marked, clean).Text; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %s", got, want)
	}
}

func TestADiffShowsTheChangeAndNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	text := `{
  "mcpServers": {
    "a": {
      "command": "serve",
      "args": [
        "--token",
        "canary-one",
        "--key=canary-two"
      ],
      "env": {"API_TOKEN": "canary-three", "LEVEL": "info"}
    },
    "b": {"url": "http://127.0.0.1:1/?key=canary-four", "headers": {"Authorization": "Bearer canary-five"}}
  }
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cursor := clientconfig.ByID("cursor")
	f := clientconfig.Open(path, cursor, "", cursor.Files[0])
	changed, err := f.Set(clientconfig.Path{"mcpServers", "a", "command"}, "/bin/serve")
	if err != nil {
		t.Fatal(err)
	}
	want := "--- " + path + "\n+++ " + path + `
@@ -1,7 +1,7 @@
 {
   "mcpServers": {
     "a": {
-      "command": "serve",
+      "command": "/bin/serve",
       "args": [
         "--token",
         "[hidden]",
`
	if diff := cmp.Diff(want, DiffOf(f, changed).Text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	gone := DiffOf(f, nil).Text
	if strings.Contains(gone, "canary") || !strings.Contains(gone, `-      "env": {"API_TOKEN": "[hidden]", "LEVEL": "info"}`) {
		t.Errorf("a file that goes away is shown as:\n%s", gone)
	}
	if same := DiffOf(f, f).Text; same != "" {
		t.Errorf("no change is shown as %q", same)
	}
}

func TestADiffShowsAPortBehindAPassword(t *testing.T) {
	_, f := entry(t, "claude-code", "user", `{"mcpServers": {"s": {"command": "x", "args": ["postgres://u:canaryhorse@127.0.0.1:5432/db"]}}}`+"\n")
	changed, err := f.Set(clientconfig.Path{"mcpServers", "s", "args", "0"}, "postgres://u:canaryhorse@127.0.0.1:54320/db")
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(DiffOf(f, changed).Text, "@@\n")
	want := `-{"mcpServers": {"s": {"command": "x", "args": ["postgres://[hidden]@127.0.0.1:5432/db"]}}}
+{"mcpServers": {"s": {"command": "x", "args": ["postgres://[hidden]@127.0.0.1:54320/db"]}}}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	h := (&Start{Command: []string{"x", "postgres://u:canaryhorse@127.0.0.1:5432/db"}}).hider()
	for _, line := range []string{"wrong password canaryhorse", "u:canaryhorse@127.0.0.1:5432/db refused", "cG9zdGdyZXM6Ly91OmNhbmFyeWhvcnNlQDEyNy4wLjAuMTo1NDMyL2Ri"} {
		if got := h.Text(line); strings.Contains(got, "canaryhorse") || got == line {
			t.Errorf("%q is shown as %q", line, got)
		}
	}
}

func TestWhatUndoingWouldBringBackIsHidden(t *testing.T) {
	const text = "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"true\",\n      \"args\": [\n        \"--password\",\n        \"canaryhorse\"\n      ]\n    }\n  }\n}\n"
	d := ward(t, map[string]string{"~/.claude.json": text}, healthy)
	f := d.only(t, "a").file
	f, err := f.Remove(f.ServerPath("a"))
	if err != nil {
		t.Fatal(err)
	}
	change, err := d.Store.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	draft, err := d.Undoing(change.ID)
	if err != nil || strings.Contains(draft.Diff.Text, "canary") || !strings.Contains(draft.Diff.Text, "--password") {
		t.Errorf("%v\n%s", err, draft.Diff.Text)
	}
}
