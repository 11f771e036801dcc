package doctor

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/internal/machine"
)

// hostile are names that a file of somebody else could have.
var hostile = []string{
	"--yes", "-x", "--", "my server", "two  spaces", " ", "it's", `say "hi"`, "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a&touch pwned", "a|touch pwned",
	"a\ntouch pwned\n", "a\rtouch pwned", "x\\' ; touch pwned ; '", `\`, `x\`, `\\'`, `'\''`, "!!", "a!b", "~root", "=ls", "*", "{a,b}", "#x", "$HOME", "${HOME}", "%PATH%",
	"\x1b]0;x\x07", "git\u200bhub", "\u202egpj", "\U000E0041", "a\u00a0b", "\xff\xfe", "über", "-\n;touch pwned", ">x", "<x", "a=b", "x\u2028y",
}

// What a person pastes is what the shell understands: the very words, and nothing
// is run.
func TestAPastedLineIsTheVeryWords(t *testing.T) {
	found := 0
	for _, shell := range []string{"bash", "zsh", "fish", "dash", "sh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		found++
		exact := shell == "bash" || shell == "zsh"
		for _, name := range hostile {
			dir := t.TempDir()
			// The flags stand before the names if a name could be taken for one.
			want := []string{name, "--plan"}
			if strings.HasPrefix(name, "-") {
				want = []string{"--plan", "--", name}
			}
			c := exec.Command(path, "-c", typedOn("linux", `printf %s\\0`, []string{name}, "--plan"))
			c.Dir = dir
			out, err := c.Output()
			got := strings.TrimSuffix(string(out), "\x00")
			// Not every shell knows how to write what cannot be seen.
			if exact || !strings.Contains(quoteOn("linux", name), "$'") {
				if err != nil || got != strings.Join(want, "\x00") {
					t.Errorf("%s, %q: got %q %v, want %q", shell, name, got, err, want)
				}
			}
			if left, _ := exec.Command("ls", "-A", dir).Output(); len(left) > 0 {
				t.Errorf("%s, %q: the line has made %s", shell, name, left)
			}
		}
	}
	if found == 0 {
		t.Skip("there is no shell here")
	}
}

func TestLinesForAPerson(t *testing.T) {
	for _, test := range []struct {
		os, command string
		names       []string
		flags       []string
		want        string
	}{
		{"linux", "heal", []string{"gh"}, nil, "mcpmend heal gh"},
		{"linux", "heal", []string{""}, nil, "mcpmend heal"},
		{"linux", "heal", []string{""}, []string{"--client", "codex"}, "mcpmend heal --client codex"},
		{"linux", "heal", []string{"--yes"}, nil, "mcpmend heal -- --yes"},
		{"linux", "heal", []string{"gh", "--yes"}, []string{"--plan"}, "mcpmend heal --plan -- gh --yes"},
		{"linux", "check", []string{"--yes"}, []string{"--approve", "hash"}, "mcpmend check --approve hash -- --yes"},
		{"linux", "heal", []string{"a b'; rm -rf ~"}, nil, `mcpmend heal 'a b'\''; rm -rf ~'`},
		{"linux", "heal", []string{"a\nb"}, nil, `mcpmend heal $'a\012b'`},
		{"linux", "heal", []string{"@scope/pkg"}, nil, "mcpmend heal @scope/pkg"},
		{"windows", "heal", []string{"gh"}, nil, "mcpmend heal gh"},
		{"windows", "heal", []string{"--yes"}, nil, "mcpmend heal -- --yes"},
		{"windows", "heal", []string{"my server & calc"}, nil, `mcpmend heal "my server & calc"`},
		{"windows", "heal", []string{"it's"}, nil, `mcpmend heal "it's"`},
		{"windows", "heal", []string{`a" & calc`}, nil, `mcpmend heal "a? & calc"`},
		{"windows", "heal", []string{"$(calc) `calc` %PATH% ”;calc\n"}, nil, `mcpmend heal "?(calc) ?calc? ?PATH? ?;calc?"`},
		{"windows", "heal", []string{`a b\`}, nil, `mcpmend heal "a b\\"`},
		{"windows", "heal", []string{"@scope,x"}, nil, `mcpmend heal "@scope,x"`},
	} {
		if got := typedOn(machine.OS(test.os), "mcpmend "+test.command, test.names, test.flags...); got != test.want {
			t.Errorf("%s, %s %q: got %s, want %s", test.os, test.command, test.names, got, test.want)
		}
	}
}
