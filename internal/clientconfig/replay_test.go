package clientconfig

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAChangeIsMadeAgainInAFileThatHasMovedOn(t *testing.T) {
	const (
		before = `{"a": 1, "mcpServers": {"x": {"command": "npx"}, "y": {"command": "npx -y y"}}}`
		after  = `{"a": 1, "mcpServers": {"x": {"command": "npx"}, "y": {"command": "npx", "args": ["-y", "y"]}}}`
	)
	for name, test := range map[string]struct{ now, want string }{
		"something else has changed": {
			`{"a": 2, /* new */ "mcpServers": {"y": {"command": "npx -y y"}, "z": {}}}`,
			`{"a": 2, /* new */ "mcpServers": {"y": {"command": "npx", "args": ["-y", "y"]}, "z": {}}}`,
		},
		"the value itself has changed": {`{"a": 1, "mcpServers": {"x": {"command": "npx"}, "y": {"command": "bunx y"}}}`, ""},
		"it is gone":                   {`{"a": 1, "mcpServers": {}}`, ""},
		"it cannot be read":            {`{"a": `, ""},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(text string) *File {
				path := filepath.Join(t.TempDir(), "mcp.json")
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				c := ByID("cursor")
				return Open(path, c, "", c.Files[0])
			}
			got, err := open(test.now).Replay(open(before), open(after))
			if test.want == "" {
				if !errors.Is(err, ErrChanged) {
					t.Fatalf("got %v and the error %v, want it refused", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Bytes()) != test.want {
				t.Errorf("got\n%s, want\n%s", got.Bytes(), test.want)
			}
		})
	}
}
