package realclient

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// install skips where npm cannot be reached: the clients are then not known.
func install(t *testing.T, c *Client) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the network the first time")
	}
	err := c.Install(t.Context())
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files are a home with one server that works, one whose program is missing, and
// one at a port where nobody listens; the project has a server of its own.
var files = map[string]map[string]string{
	"claude": {
		"home/.claude.json": `{"mcpServers":{"good":{"command":"SMALL"},"gone":{"command":"/no/such/program"},"far":{"type":"http","url":"http://127.0.0.1:9/mcp"}}}`,
		"project/.mcp.json": `{"mcpServers":{"mine":{"command":"SMALL"}}}`,
	},
	"gemini": {
		"home/.gemini/settings.json":    `{"mcpServers":{"good":{"command":"SMALL"},"gone":{"command":"/no/such/program"},"far":{"httpUrl":"http://127.0.0.1:9/mcp"}}}`,
		"project/.gemini/settings.json": `{"mcpServers":{"mine":{"command":"SMALL"}}}`,
	},
	"opencode": {
		"home/.config/opencode/opencode.json": `{"mcp":{"good":{"type":"local","command":["SMALL"]},"gone":{"type":"local","command":["/no/such/program"]},"far":{"type":"remote","url":"http://127.0.0.1:9/mcp"}}}`,
		"project/opencode.json":               `{"mcp":{"mine":{"type":"local","command":["SMALL"]}}}`,
	},
	"copilot": {
		"home/.copilot/mcp-config.json": `{"mcpServers":{"good":{"command":"SMALL","args":[]},"gone":{"command":"/no/such/program","args":[]},"far":{"type":"http","url":"http://127.0.0.1:9/mcp"}}}`,
		"project/.mcp.json":             `{"mcpServers":{"mine":{"command":"SMALL","args":[]}}}`,
	},
	"codex": {
		"home/.codex/config.toml":    "[mcp_servers.good]\ncommand = \"SMALL\"\n[mcp_servers.gone]\ncommand = \"/no/such/program\"\n[mcp_servers.far]\nurl = \"http://127.0.0.1:9/mcp\"\n",
		"project/.codex/config.toml": "[mcp_servers.mine]\ncommand = \"SMALL\"\n",
	},
}

func TestEveryClientTellsGoodFromBadServers(t *testing.T) {
	r, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	small, err := r.Go(t.Context(), rig.Small)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range All() {
		t.Run(c.ID, func(t *testing.T) {
			install(t, c)
			dir := t.TempDir()
			for name, text := range files[c.ID] {
				write(t, filepath.Join(dir, name), strings.ReplaceAll(text, "SMALL", small))
			}
			s := Setup{Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}
			out := c.Connect(t.Context(), s)
			got := make(map[string]State)
			for _, name := range []string{"good", "gone", "far", "mine", "nobody"} {
				v := c.Verdict(out, name)
				got[name] = v.State
				t.Logf("%s: %s: %s %q, %s", out.Command, name, v.State, v.Text, out.Took)
				if v.State == Failed && v.Text == "" {
					t.Errorf("%s failed without a word", name)
				}
			}
			want := map[string]State{"good": OK, "gone": Failed, "far": Failed, "mine": OK, "nobody": Absent}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("verdicts (-want +got):\n%s\nexit %d, %v\n%s\n%s", diff, out.Exit, out.Err, out.Stdout, out.Stderr)
			}
			if diff := cmp.Diff([]string{"far", "gone", "good", "mine"}, c.Listed(c.List(t.Context(), s))); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			if !c.HasDoctor() {
				return
			}
			out = c.Doctor(t.Context(), s)
			if good, gone := c.Verdict(out, "good"), c.Verdict(out, "gone"); good.State != NotChecked || gone.State != Failed {
				t.Errorf("doctor: good is %v, gone is %v in\n%s", good, gone, out.Stdout)
			}
		})
	}
}

func TestAnUnreadableFileIsNotAnAbsentServerWithoutAWord(t *testing.T) {
	broken := map[string]string{
		"claude": ".claude.json", "gemini": ".gemini/settings.json",
		"opencode": ".config/opencode/opencode.json", "codex": ".codex/config.toml",
	}
	for _, c := range All() {
		if broken[c.ID] == "" {
			continue // copilot
		}
		t.Run(c.ID, func(t *testing.T) {
			install(t, c)
			s := Setup{Home: t.TempDir(), Project: t.TempDir()}
			write(t, filepath.Join(s.Home, broken[c.ID]), "{ [ nonsense")
			out := c.List(t.Context(), s)
			if v := c.Verdict(out, "any"); v.State != Absent || v.Text == "" {
				t.Errorf("%+v; exit %d\n%s\n%s", v, out.Exit, out.Stdout, out.Stderr)
			}
		})
	}
}

func TestAHangingClientEndsWithAllItHasStarted(t *testing.T) {
	c := ByID("claude")
	install(t, c)
	s := Setup{Home: t.TempDir(), Project: t.TempDir(), Timeout: 2 * time.Second}
	mark := "REALCLIENT_MARK=" + filepath.Base(s.Home) + filepath.Base(filepath.Dir(s.Home))
	s.Env = []string{mark}
	write(t, filepath.Join(s.Home, ".claude.json"), `{"mcpServers":{"hangs":{"command":"sleep","args":["300"]}}}`)
	out := c.List(t.Context(), s)
	if !out.TimedOut || out.Took > 5*time.Second {
		t.Errorf("timed out: %v after %s\n%s", out.TimedOut, out.Took, out.Stdout)
	}
	left, err := child.Marked(mark)
	for deadline := time.Now().Add(5 * time.Second); len(left) > 0 && time.Now().Before(deadline); left, err = child.Marked(mark) {
		<-time.After(10 * time.Millisecond) // killed, and not yet reaped by init
	}
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
