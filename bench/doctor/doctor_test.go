package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/rogpeppe/go-internal/txtar"
)

func setups(t *testing.T) []*setup {
	t.Helper()
	all, err := loadSetups(testdata)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestThereAreEnoughSetups(t *testing.T) {
	broken, quick := 0, 0
	clients := map[string]bool{}
	for _, s := range setups(t) {
		if !s.healthy() {
			broken++
		}
		if s.Quick {
			quick++
		}
		clients[s.Client] = true
		if clientconfig.ByID(s.Client) == nil {
			t.Errorf("%s: no client is called %q", s.Name, s.Client)
		}
		if !s.healthy() && len(s.Words) == 0 && !slices.Contains(s.States, "disabled") && !slices.Contains(s.States, "pending") && !slices.Contains(s.States, "absent") && !slices.Contains(s.States, "unchecked") {
			t.Errorf("%s: no words name its cause", s.Name)
		}
	}
	if broken < 100 || quick < 20 {
		t.Errorf("%d broken set-ups and %d quick ones, want at least 100 and 20", broken, quick)
	}
	for _, c := range clientconfig.Clients() {
		if !clients[c.ID] {
			t.Errorf("no set-up for %s", c.Name)
		}
	}
}

func TestEverySeedKindHasASetup(t *testing.T) {
	var causes []string
	for _, s := range setups(t) {
		causes = append(causes, s.Causes...)
	}
	for _, kind := range []string{
		"command_not_found", "connection_refused", "timeout", "auth_failed", "missing_env_var", "transport_mismatch", "permission_denied", "unknown",
		"server_crashed", "server_hung", "stdout_pollution", "package_not_found", "package_cache_corrupt", "dependency_break", "runtime_version",
		"runtime_arch", "command_quoting", "docker_unavailable", "protocol_version", "rate_limited", "tls", "dns", "proxy", "host_header_rejected",
		"port_in_use", "resource_locked", "encoding", "disk", "schema_rejected", "tool_name_invalid", "too_many_tools", "wrong_endpoint", "missing_dependency",
	} {
		if !slices.ContainsFunc(causes, func(c string) bool { return strings.HasSuffix(c, "."+kind) }) {
			t.Errorf("no set-up has the cause %s", kind)
		}
	}
}

func TestACauseIsRightAtItsStage(t *testing.T) {
	for _, test := range []struct {
		causes []string
		id     string
		want   bool
	}{
		{[]string{"resolve.command_not_found"}, "resolve.command_not_found", true},
		{[]string{"resolve.command_not_found"}, "start.command_not_found", false},
		{[]string{"*.timeout"}, "handshake.timeout", true},
		{[]string{"*.timeout"}, "call.timeout", false},
		{[]string{"*.timeout", "*.server_hung"}, "start.server_hung", true},
		{[]string{"none"}, "", true},
		{[]string{"none"}, "shape.wrong_key", false},
		{[]string{"*.timeout"}, "", false},
	} {
		if got := right(test.causes, test.id); got != test.want {
			t.Errorf("right(%v, %q) = %v, want %v", test.causes, test.id, got, test.want)
		}
	}
}

func TestAllWordsNameACause(t *testing.T) {
	fill := func(s string) string { return strings.ReplaceAll(s, "{{A.port}}", "5432") }
	for text, want := range map[string]bool{
		"connect ECONNREFUSED 127.0.0.1:5432": true,
		"Connection refused at port 5432":     true,
		"ECONNREFUSED":                        false,
		"port 5432":                           false,
	} {
		if got := names(fill, []string{"{{A.port}}", "refused|ECONNREFUSED"}, text); got != want {
			t.Errorf("names in %q = %v, want %v", text, got, want)
		}
	}
}

// theWorld is a small machine to do harm to.
func theWorld(t *testing.T) *world {
	t.Helper()
	s, err := parseSetup("harm", []byte("# harm\nclient: cursor\ncause: none\nstate: healthy\n-- home/a.json --\n{\"key\": \"{{SECRET}}\"}\n-- home/b.json --\n{{BOM CRLF}}\n{\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w, err := newWorld(t.Context(), &tools{shell: "/bin/sh", path: os.Getenv("PATH")}, s, dir, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestSeesEveryKindOfDamage(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(w *world) error
		want string
	}{
		"a byte":   {func(w *world) error { return os.WriteFile(w.path("home/a.json"), []byte("{}"), 0o644) }, "home/a.json"},
		"the mode": {func(w *world) error { return os.Chmod(w.path("home/a.json"), 0o600) }, "home/a.json has mode -rw------- instead of -rw-r--r--"},
		"a link": {func(w *world) error {
			if err := os.Rename(w.path("home/a.json"), w.path("tmp/a.json")); err != nil {
				return err
			}
			return os.Symlink(w.path("tmp/a.json"), w.path("home/a.json"))
		}, "home/a.json"},
		"gone": {func(w *world) error { return os.Remove(w.path("home/a.json")) }, "home/a.json is gone"},
		"new":  {func(w *world) error { return os.WriteFile(w.path("home/c.json.bak"), nil, 0o644) }, "home/c.json.bak is new"},
	} {
		t.Run(name, func(t *testing.T) {
			w := theWorld(t)
			before, err := w.snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if err := test.harm(w); err != nil {
				t.Fatal(err)
			}
			after, err := w.snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, after.differences(before)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesProgramsThatMustNotRun(t *testing.T) {
	w := theWorld(t)
	if got := w.journal(); len(got) != 0 {
		t.Fatalf("journal = %q before anything was run", got)
	}
	cmd := exec.Command(w.path("bin/npx"), "-y", "weather-mcp")
	if err := cmd.Run(); err == nil {
		t.Error("the npx that takes notes should fail")
	}
	if diff := cmp.Diff([]string{"npx -y weather-mcp"}, w.journal()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestFindsSecretsInStateButNotInBackups(t *testing.T) {
	w := theWorld(t)
	e := &examiner{world: w, setup: w.setup, v: &verdict{}, contents: map[string]bool{}}
	if _, err := e.look(); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(w.path("home/a.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"before": string(config), "log": "the token is " + w.secrets[0], "note-" + w.secrets[1]: ""} {
		if err := os.WriteFile(filepath.Join(w.path("state"), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.searchState(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"secret 1 in state file log", "secret 2 in name of a state file"}, e.v.Leaks); diff != "" {
		t.Errorf("leaks (-want +got):\n%s", diff)
	}
}

func TestFilesSurviveTheTemplate(t *testing.T) {
	for _, text := range []string{"", "{}\n", "{}", "\ufeff{\r\n}\r\n", "a\r\nb\r\n"} {
		if got := decode([]byte(encode(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	w := theWorld(t)
	text := "command {{HOME}}/srv with {{SECRET}} and {{SECRET2}}"
	if got := w.unfill(w.fill(text)); got != text {
		t.Errorf("%q became %q", text, got)
	}
}

func TestUpdateChangesOnlyTheWantedFile(t *testing.T) {
	before := "# about\nclient: cursor\n-- home/a --\nx\n-- want/home/a --\ny\n"
	got := string(updated([]byte(before), map[string]string{"want/home/a": "z\n"}))
	if want := strings.Replace(before, "y\n", "z\n", 1); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(txtar.Parse([]byte(got)).Files) != 2 {
		t.Errorf("files were lost: %q", got)
	}
}
