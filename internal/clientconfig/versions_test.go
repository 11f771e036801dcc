package clientconfig

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBothVersionsOfAChangeCanBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	old := `{"mcpServers": {"a": {"command": "one"}, "b": {"command": "two"}}}`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	store := &Store{Dir: t.TempDir()}
	cursor := ByID("cursor")
	f := Open(path, cursor, "", cursor.Files[0])
	changed, err := f.Remove(f.Server("a").Path)
	if err != nil {
		t.Fatal(err)
	}
	change, err := store.Save(t.Context(), changed)
	if err != nil {
		t.Fatal(err)
	}
	before, after, err := store.Versions(change.ID)
	if err != nil {
		t.Fatal(err)
	}
	if string(before.Bytes()) != old || before.Path != path || before.Server("a") == nil {
		t.Errorf("before: %s with %d servers: %s", before.Path, len(before.Servers), before.Bytes())
	}
	if after.Server("a") != nil || after.Server("b") == nil {
		t.Errorf("after: %d servers: %s", len(after.Servers), after.Bytes())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	made, err := New(path, cursor, "", cursor.Files[0]).Add(&Server{Name: Value{Text: "c"}, Command: Value{Text: "three"}})
	if err != nil {
		t.Fatal(err)
	}
	change, err = store.Save(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	if before, _, err := store.Versions(change.ID); before != nil || err != nil {
		t.Errorf("a file that was made had a version before: %v, %v", before, err)
	}
	if _, _, err := store.Versions("nothing"); err == nil {
		t.Error("a change that was never made has versions")
	}
}
