package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// liberties are what people and editors write that not every client reads.
var liberties = []struct {
	name, json, toml string
}{
	{"a comment", "{\n  // mine\n  \"KEY\": {\"a\": ENTRY} /* all */\n}\n", "# mine\nENTRY # all\n"},
	{"a trailing comma", "{\n  \"KEY\": {\n    \"a\": ENTRY,\n  },\n}\n", ""},
	{"a byte order mark", "\ufeff{\"KEY\": {\"a\": ENTRY}}\n", "\ufeffENTRY\n"},
}

// grammar compares our table with the client: a file in which we see a problem is one
// that it refuses, and the other way round.
func grammar(ctx context.Context, w *world, c *realclient.Client) (*finding, error) {
	f := &finding{}
	for _, liberty := range liberties {
		h, err := w.home(c)
		if err != nil {
			return nil, err
		}
		place := h.client().Files[slices.IndexFunc(h.client().Files, func(p clientconfig.Place) bool { return p.Scope == "user" && h.system.Path(p) != "" })]
		template, entry := liberty.json, `{"command": "WITNESS", "args": ["JOURNAL"]}`
		switch c.ID {
		case "codex":
			template, entry = liberty.toml, "[mcp_servers.a]\ncommand = \"WITNESS\"\nargs = [\"JOURNAL\"]"
		case "opencode":
			entry = `{"type": "local", "command": ["WITNESS", "JOURNAL"]}`
		}
		if template == "" {
			continue
		}
		content := strings.NewReplacer("WITNESS", w.witness, "JOURNAL", h.journal("a")).Replace(
			strings.NewReplacer("KEY", place.Key[0], "ENTRY", entry).Replace(template))
		path := h.system.Path(place)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, err
		}
		read := clientconfig.Open(path, h.client(), h.setup.Project, place)
		out := c.List(ctx, h.setup)
		if out.Err != nil {
			return nil, out.Err
		}
		v := c.Verdict(out, "a")
		accepts := v.State == realclient.OK || v.State == realclient.NotChecked
		f.check(accepts == (len(read.Problems) == 0), "%s: the client says %s %q, and we see %v", liberty.name, v.State, v.Text, read.Problems)
		if !accepts {
			f.note("refuses the whole file for %s", liberty.name)
		}
	}
	return f, nil
}
