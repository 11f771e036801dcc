package clinic

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

var update = flag.Bool("update", false, "rewrite the samples in docs/AGENTS.md")

const notesFile = `{
  "mcpServers": {
    "notes": {
      "command": "HOME/bin/notes",
      "args": "--folder HOME/notes",
      "env": {
        "NOTES_TOKEN": "` + canary + `"
      }
    }
  }
}
`

func TestTheSamplesInTheDocsAreReal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the samples have the paths of another system")
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"bin/notes": "", ".claude.json": strings.ReplaceAll(notesFile, "HOME", home)} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a := connect(t, Of(&doctor.Doctor{
		System: clientconfig.System{OS: "linux", Home: home, Root: filepath.Join(home, "root"), Getenv: func(string) string { return "" }},
		Store:  &clientconfig.Store{Dir: filepath.Join(home, "state")},
		Probe: func(context.Context, doctor.Start) doctor.Sighting {
			return doctor.Sighting{Steps: []doctor.Step{{Stage: doctor.AtTools, OK: true}}, Info: &doctor.Info{Tools: []string{"add_note", "find_notes"}},
				Tools: []doctor.Tool{{Name: "add_note", InputSchema: []byte(`{"type":"object"}`)}, {Name: "find_notes", InputSchema: []byte(`{"type":"object"}`)}}}
		},
	}), "2025-11-25", nil)
	samples := make(map[string]string)
	var out HealthOutput
	r := a.call(t, "heal_server", map[string]any{"server": "notes"}, &out)
	samples["heal_server"] = r.Content[0].(*mcp.TextContent).Text
	plan := out.Approval.Plan
	out = HealthOutput{}
	r = a.call(t, "heal_server", map[string]any{"server": "notes", "confirm": plan}, &out)
	samples["heal_server confirm"] = r.Content[0].(*mcp.TextContent).Text
	plain := strings.NewReplacer(home, "/home/me", plan, "plan-skym3sh4g4753o6ef3cmtg5kkr", out.Servers[0].Undo[0], "d498a1")

	path := filepath.Join("..", "..", "docs", "AGENTS.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)(<!-- answer: ([a-z_ ]+) -->\n```\n)(.*?)(```\n)")
	found := 0
	now := block.ReplaceAllFunc(doc, func(b []byte) []byte {
		m := block.FindSubmatch(b)
		found++
		want := plain.Replace(samples[string(m[2])])
		if diff := cmp.Diff(want, string(m[3])); diff != "" && !*update {
			t.Errorf("%s in docs/AGENTS.md (-real +docs):\n%s", m[2], diff)
		}
		return slices.Concat(m[1], []byte(want), m[4])
	})
	if found != len(samples) {
		t.Errorf("%d of %d samples are in the docs", found, len(samples))
	}
	if *update {
		if err := os.WriteFile(path, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
