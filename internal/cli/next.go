package cli

import (
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

// What to type next. Such lines are pasted, so each looks at what was looked at.

// nextStep is the last line: what to type now, and the words before it.
func nextStep(r *doctor.Report, asked selection, servers []string) (words, command string) {
	var fixable, pending, signIn, dead *doctor.Case
	bare := 0                                    // healthy, and not behind us
	for _, c := range slices.Backward(r.Cases) { // so that the first one is named
		switch {
		case canHeal(c):
			fixable = c
		case c.State == doctor.Pending:
			pending = c
		case c.State == doctor.SignIn:
			signIn = c
		case standingOf(c) == broken && c.Name != "":
			dead = c
		case c.State == doctor.Healthy && !c.Wrapped():
			bare++
		}
	}
	switch {
	case fixable != nil:
		return "Next:", asked.line("heal", servers, "--plan")
	case pending != nil:
		return "Next:", asked.about("check", pending.Name, "--approve", pending.Approve)
	case dead != nil:
		return "Next:", asked.about("test", dead.Name)
	case signIn != nil:
		return "Next: sign in, then", asked.about("check", signIn.Name)
	case bare > 0:
		return "Keep them that way:", asked.line("wrap", servers)
	}
	return "", ""
}

// canHeal reports whether healing would have something to try.
func canHeal(c *doctor.Case) bool {
	able := func(f doctor.Finding) bool {
		return slices.ContainsFunc(f.Fixes, func(x doctor.Fix) bool { return x.Class == doctor.Auto || x.Class == doctor.Ask })
	}
	return c.Cause != nil && able(*c.Cause) || slices.ContainsFunc(c.Also, able)
}

// healLine is what heals one case.
func (v view) healLine(c *doctor.Case, withClient bool) string {
	if withClient || c.Name == "" {
		return v.asked.about("heal", c.Name, "--client", c.Client)
	}
	return v.asked.about("heal", c.Name)
}

// needsClient reports whether the name alone says more than this case.
func needsClient(cases []*doctor.Case, c *doctor.Case) bool {
	return slices.ContainsFunc(cases, func(o *doctor.Case) bool { return o.Name == c.Name && o.Client != c.Client })
}

// line is a command that looks at the same files, in the same way.
func (o selection) line(command string, servers []string, more ...string) string {
	var flags []string
	for _, id := range o.clients {
		flags = append(flags, "--client", id)
	}
	for _, scope := range o.scopes {
		flags = append(flags, "--scope", scope)
	}
	if o.as != "" {
		flags = append(flags, "--as", o.as)
	}
	flags = append(flags, o.inProject()...)
	return doctor.Typed(command, servers, append(flags, more...)...)
}

// inProject is what a command needs that is not typed in the project itself.
func (o selection) inProject() []string {
	if o.project == "" {
		return nil
	}
	return []string{"--project", o.project}
}

// about is a command about one server. To "test" some names are a command or a URL,
// and it would start that.
func (o selection) about(command, server string, flags ...string) string {
	if command == "test" && (strings.HasPrefix(server, "-") || isURL(server)) {
		command, flags = "check", append(flags, "--verbose")
	}
	return doctor.Typed(command, []string{server}, append(flags, o.inProject()...)...)
}
