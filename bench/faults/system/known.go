package system

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// Direct is the bare go-sdk client; self is this program.
func Direct(self string) *System {
	return &System{Name: "direct", Trust: oracle.TrustNone, Ours: true, Stdio: func(u Upstream) []string {
		return append([]string{self, "direct", "--deadline", u.Deadline.String()}, target(u)...)
	}}
}

// Naive is the proxy that always tries again; self is this program.
func Naive(self string) *System {
	return &System{Name: "naive", Trust: oracle.TrustNone, Ours: true, Relays: true, Stdio: func(u Upstream) []string {
		return append([]string{self, "naive", "--patience", (u.Deadline / 4).String()}, target(u)...)
	}}
}

func target(u Upstream) []string {
	if u.URL != "" {
		return []string{u.URL}
	}
	return append([]string{"--"}, u.Command...)
}

// Mend is mcpmend, told how far to trust annotations. It is not at hand with a
// trust that this build of it cannot be told.
func Mend(binary string, trust oracle.Trust) (*System, error) {
	help, _ := exec.Command(binary, "run", "--help").CombinedOutput()
	knows := func(flag string) bool { return strings.Contains(string(help), flag) }
	name := "mcpmend"
	if trust != oracle.TrustNone {
		name += "/" + string(trust)
		if !knows("--trust") {
			return nil, fmt.Errorf("%s: this build has no --trust", name)
		}
	}
	run := func(extra ...string) func(Upstream) []string {
		return func(u Upstream) []string {
			argv := append([]string{binary, "run"}, extra...)
			if knows("--trust") {
				argv = append(argv, "--trust", string(trust))
			}
			if u.Deadline > 0 && knows("--timeout") {
				argv = append(argv, "--timeout", u.Deadline.String())
			}
			argv = append(argv, u.Flags...)
			if u.Secret != "" && knows("--header") {
				argv = append(argv, "--header", "Authorization: Bearer "+u.Secret)
			}
			if u.Model != nil {
				argv = append(argv, "--model", u.Model.Name, "--model-provider", u.Model.Provider, "--model-url", u.Model.URL)
			}
			for _, tool := range u.ReadOnly {
				argv = append(argv, "--tool", tool+"=read-only")
			}
			return append(argv, target(u)...)
		}
	}
	s := &System{
		Name: name, Trust: trust, Ours: true, Relays: true, Models: knows("--model"), Stdio: run(),
		URL: regexp.MustCompile(`listening on (http://\S+)`),
	}
	if knows("--http") {
		s.HTTP = run("--http", "127.0.0.1:0", "--no-token")
	}
	return s, nil
}

// Custom is any command line that speaks MCP over stdio. The words {command}
// and {url} stand for the server; without either, the command or URL is
// appended. It is put before legacy servers only, which everyone can talk to.
func Custom(name, line string) *System {
	words := strings.Fields(line)
	return &System{Name: name, Trust: oracle.TrustNone, LegacyOnly: true, Stdio: func(u Upstream) []string {
		var argv []string
		placed := false
		for _, w := range words {
			switch {
			case w == "{command}":
				if u.Command == nil {
					return nil
				}
				argv, placed = append(argv, u.Command...), true
			case w == "{url}":
				if u.URL == "" {
					return nil
				}
				argv, placed = append(argv, u.URL), true
			case w == "{deadline}":
				argv = append(argv, u.Deadline.Round(time.Millisecond).String())
			default:
				argv = append(argv, w)
			}
		}
		if !placed {
			argv = append(argv, target(u)...)
		}
		return argv
	}}
}
