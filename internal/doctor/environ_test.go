package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

func TestAServerIsGivenWhatItsClientGives(t *testing.T) {
	environ := []string{
		"HOME=/home/u", "PATH=/home/u/.nvm/bin:/usr/bin", "GITHUB_TOKEN=t", "PLAIN=p", "LANG=C.UTF-8", "https_proxy=http://p",
		"DATABASE_URL=d", "ADDRESS=https://me:word@host", "MCPMEND_TOKEN=x",
	}
	const home, shell, url, address = "HOME=/home/u", "PATH=/home/u/.nvm/bin:/usr/bin", "DATABASE_URL=d", "ADDRESS=https://me:word@host"
	everything := environ[:len(environ)-1]
	linux := "PATH=" + machine.OS("linux").GUIPath()
	for _, test := range []struct {
		client, os string
		want       []string
	}{
		{"claude-code", "linux", everything},
		{"copilot-cli", "linux", everything},
		{"gemini-cli", "linux", []string{home, shell, "PLAIN=p", "LANG=C.UTF-8", "https_proxy=http://p"}},
		{"codex", "linux", []string{home, shell, "LANG=C.UTF-8"}},
		// The desktop has not read the start files of the shell.
		{"lm-studio", "linux", []string{home, "LANG=C.UTF-8", "https_proxy=http://p", linux}},
		{"lm-studio", "darwin", []string{home, "https_proxy=http://p", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}},
		{"lm-studio", "windows", everything},
		{"claude-desktop", "linux", []string{home, linux}},
		{"claude-desktop", "darwin", []string{home, "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}},
		{"claude-desktop", "windows", []string{home, shell}},
		// These ask the login shell when the desktop starts them.
		{"vscode", "linux", everything},
		{"vscode", "darwin", everything},
		{"cline", "linux", []string{home, shell}},
	} {
		d := &Doctor{System: clientconfig.System{OS: test.os}, Environ: environ}
		if diff := cmp.Diff(test.want, d.environment(clientconfig.ByID(test.client)).list); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", test.client, test.os, diff)
		}
	}
}

// The words say whose doing it is that a variable does not arrive, and never what is
// in it.
func TestAVariableThatDoesNotArriveIsExplained(t *testing.T) {
	environ := []string{"HOME=/home/u", "MY_TOKEN=hunter2", "MODE=hunter2", "EMPTY="}
	for _, test := range []struct{ client, os, name, want string }{
		{"claude-desktop", "linux", "MY_TOKEN", "Claude Desktop hands only HOME, PATH and a few others on to its servers"},
		{"lm-studio", "linux", "MY_TOKEN", "LM Studio is started by the desktop and does not get it"},
		{"lm-studio", "darwin", "MODE", "LM Studio is started by the desktop and does not get it"},
		{"lm-studio", "windows", "MODE", ""},
		{"lm-studio", "linux", "HOME", ""},
		{"lm-studio", "linux", "EMPTY", ""},
		{"lm-studio", "linux", "NOWHERE", ""},
		{"cursor", "linux", "MY_TOKEN", ""},
		{"claude-code", "linux", "MY_TOKEN", ""},
		{"gemini-cli", "linux", "MY_TOKEN", "Gemini CLI keeps what looks like a secret from its servers"},
		{"gemini-cli", "linux", "MODE", ""},
		{"codex", "linux", "MODE", "Codex hands only HOME, PATH and a few others on to its servers"},
	} {
		d := &Doctor{System: clientconfig.System{OS: test.os}, Environ: environ}
		got := d.whyWithout(clientconfig.ByID(test.client), test.name)
		if want := strings.TrimSuffix("is set in this terminal, but "+test.want, "is set in this terminal, but "); got != want {
			t.Errorf("%s, %s on %s: %q, want %q", test.name, test.client, test.os, got, want)
		}
	}
}

func TestAnotherClientsEnvironmentCanBeTriedOn(t *testing.T) {
	s, f := entry(t, "claude-code", "user", servers(`{"command": "tool"}`))
	d := &Doctor{System: clientconfig.System{OS: "linux"}, Environ: []string{"MY_TOKEN=t", "PLAIN=p"}, As: clientconfig.ByID("gemini-cli")}
	st, _ := d.start(s, f)
	if diff := cmp.Diff([]string{"PLAIN=p"}, st.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestNamesOfVariablesHaveNoCaseOnWindows(t *testing.T) {
	e := &environ{os: "windows", list: []string{"Path=old"}}
	e.set("PATH", "new")
	if got, _ := e.lookup("path"); got != "new" || len(e.list) != 1 {
		t.Errorf("path is %q in %v, want new alone", got, e.list)
	}
	u := &environ{os: "linux", list: []string{"Path=old"}}
	u.set("PATH", "new")
	if _, ok := u.lookup("path"); ok || len(u.list) != 2 {
		t.Errorf("on Linux names with other case are other variables: %v", u.list)
	}
}
