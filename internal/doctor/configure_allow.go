package doctor

import (
	"fmt"
	"slices"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// What somebody has to agree to before a server is started that no file of theirs
// has yet.

// unheardOf says what would be run or dialled that stands in no file of the user
// yet, or what speaks against it; "" if all is known.
func (d *Doctor) unheardOf(r *ConfigureRequest, s *clientconfig.Server, notice string) string {
	if notice != "" {
		notice = "; " + notice
	}
	// In a project the same command takes what it runs from the project's folder.
	elsewhere := s.URL.Text == "" && r.Scope != "" && r.Scope != "user"
	if notice == "" && !elsewhere && d.configured(s) {
		return ""
	}
	if s.URL.Text != "" {
		return "connect to " + secret.Scrub(s.URL.Text) + notice
	}
	words := agreedLine(r.Env, argvOf(s), hasCode(s.Client, "args", argvOf(s)) || hasCode(nil, "", values(s.Env))) // a variable can make a program do anything
	if r.Package != "" {
		kind, _ := r.packageKind()
		return fmt.Sprintf("fetch a package from %s and run it: %s%s", map[string]string{"npm": "npm", "pypi": "PyPI", "oci": "a container registry"}[kind], words, notice)
	}
	return "run " + words + notice
}

// configured: a file of the user, not one of a project, has the same program or
// address, so it has been run before.
func (d *Doctor) configured(s *clientconfig.Server) bool {
	same := func(x, y clientconfig.Value) bool { return x.Text == y.Text }
	for _, f := range d.System.Find() {
		for _, o := range f.Servers {
			if !f.Ignored && o.Scope == "user" && same(o.Command, s.Command) && same(o.URL, s.URL) && slices.EqualFunc(o.Args, s.Args, same) &&
				covers(o, "env", o.Env, s.Env) && covers(o, "headers", o.Headers, s.Headers) {
				return true
			}
		}
	}
	return false
}

// covers: each value that is wanted is there, in whatever spelling the client has
// for references, or is the variable of that very name. One of any other value
// could make the same program do something else, or hand it another secret.
func covers(s *clientconfig.Server, part string, there, wanted []clientconfig.Pair) bool {
	plain := func(value string) string {
		for _, r := range slices.Backward(s.Client.References(part, value)) {
			if r.Expanded && r.Source == clientconfig.Environment && !r.HasDefault {
				value = value[:r.Start] + "${" + r.Name + "}" + value[r.Start+len(r.Text):]
			}
		}
		return value
	}
	for _, w := range wanted {
		if !slices.ContainsFunc(there, func(t clientconfig.Pair) bool {
			return t.Name.Text == w.Name.Text && (plain(t.Value.Text) == w.Value.Text || w.Value.Text == "${"+w.Name.Text+"}")
		}) {
			return false
		}
	}
	return true
}

// notice is what speaks against a server; "" if nothing does.
func notice(known registry.Entry, s *clientconfig.Server) string {
	word, why := advisedAgainst(known, s)
	switch {
	case word == "":
		return ""
	case why == "":
		return "the registry calls it " + word
	}
	return "the registry calls it " + word + ": " + why
}
