package clinic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// CheckInput is what check_health takes.
type CheckInput struct {
	Servers  []string `json:"servers,omitempty" jsonschema:"names; all if left out"`
	Clients  []string `json:"clients,omitempty" jsonschema:"ids such as claude-code or cursor; all if left out"`
	AutoHeal bool     `json:"auto_heal,omitempty" jsonschema:"mend what is broken"`
	Confirm  string   `json:"confirm,omitempty" jsonschema:"plan of the last answer, only once the user has agreed to it"`
}

// TestInput is what test_connection takes.
type TestInput struct {
	Server   string `json:"server" jsonschema:"its name in the client's file"`
	Client   string `json:"client,omitempty" jsonschema:"id; all that have the server if left out"`
	AutoHeal bool   `json:"auto_heal,omitempty" jsonschema:"mend it if it is broken"`
	Confirm  string `json:"confirm,omitempty" jsonschema:"plan of the last answer, only once the user has agreed to it"`
}

// HealInput is what heal_server takes.
type HealInput struct {
	Server      string `json:"server" jsonschema:"its name in the client's file"`
	Client      string `json:"client,omitempty" jsonschema:"id; all that have the server if left out"`
	MaxAttempts int    `json:"max_attempts,omitempty" jsonschema:"how many fixes to try; 3 if left out"`
	Confirm     string `json:"confirm,omitempty" jsonschema:"plan of the last answer, only once the user has agreed to it"`
}

// HealthOutput is what check_health, test_connection and heal_server answer.
type HealthOutput struct {
	Verdict string `json:"verdict"`
	// Servers are those with problems first.
	Servers []Server `json:"servers"`
	Notes   []string `json:"notes,omitempty"`
	approvable

	patients []*patient
	// named: a server was asked for by its name, so all is said of it.
	named bool
}

// A patient is a case as it was found, and what was tried.
type patient struct {
	found   *doctor.Case
	healing *doctor.Healing // nil if nothing was
}

// needy: something is not as it should be, whether or not we can do something about it.
func (p *patient) needy() bool {
	now := p.found
	if p.healing != nil && len(p.healing.Drafts) == 0 {
		now = p.healing.Case
	}
	return isIll(now) || slices.Contains([]doctor.State{doctor.Degraded, doctor.Shadowed, doctor.Pending}, now.State)
}

// isIll: healing may help, or can say what would.
func isIll(c *doctor.Case) bool {
	switch c.State {
	case doctor.Dead, doctor.Unresponsive, doctor.SignIn, doctor.Skipped, doctor.Unreadable, doctor.Misplaced:
		return true
	case doctor.Degraded:
		return c.Cause != nil && slices.ContainsFunc(c.Cause.Fixes, func(f doctor.Fix) bool { return f.Class != doctor.Never })
	}
	return false
}

func (c *clinic) checkHealth(ctx context.Context, v *visit, in CheckInput) answer {
	out := &HealthOutput{patients: admit(c.find(ctx, in.Servers, in.clients()))}
	out.note(in.Servers)
	if in.AutoHeal {
		c.heal(ctx, v, out, 0)
	}
	return out.finish()
}

func (c *clinic) testConnection(ctx context.Context, v *visit, in TestInput) answer {
	out := c.examine(ctx, v, in.Server, in.clients())
	if in.AutoHeal {
		c.heal(ctx, v, out, 0)
	}
	return out.finish()
}

func (c *clinic) healServer(ctx context.Context, v *visit, in HealInput) answer {
	out := c.examine(ctx, v, in.Server, in.clients())
	c.heal(ctx, v, out, in.MaxAttempts)
	return out.finish()
}

// note says which names were not found, and what to do about servers that wait.
// Where a file cannot be read, a name may be in there.
func (o *HealthOutput) note(names []string) {
	has := func(is func(*doctor.Case) bool) bool {
		return slices.ContainsFunc(o.patients, func(p *patient) bool { return is(p.found) })
	}
	for _, name := range names {
		if !has(func(c *doctor.Case) bool { return c.Name == "" || c.Name == name || clean(c.Name) == name }) {
			o.Notes = append(o.Notes, fmt.Sprintf("there is no server %q; list_servers has the names", clean(name)))
		}
	}
	if has(func(c *doctor.Case) bool { return c.State == doctor.Pending }) {
		o.Notes = append(o.Notes, "pending: it comes with the project and is started only if the person agrees; test_connection asks them")
	}
}

func admit(cases []*doctor.Case) []*patient {
	var ps []*patient
	for _, one := range cases {
		ps = append(ps, &patient{found: one})
	}
	return ps
}

// find examines servers by the names under which they were shown.
func (c *clinic) find(ctx context.Context, names, clients []string) []*doctor.Case {
	which := doctor.Which{Servers: names, Clients: clients}
	cases := c.Check(ctx, which, false).Cases
	if len(cases) > 0 || len(names) == 0 {
		return cases
	}
	which.Servers = nil
	for _, one := range c.Check(ctx, which, true).Cases {
		if one.Name != "" && slices.Contains(names, clean(one.Name)) {
			which.Servers = append(which.Servers, one.Name)
		}
	}
	if which.Servers == nil {
		return nil
	}
	return c.Check(ctx, which, false).Cases
}

// examine looks at a server by name. A command of a project is shown to a person
// first.
func (c *clinic) examine(ctx context.Context, v *visit, name string, clients []string) *HealthOutput {
	look := func() []*doctor.Case { return c.find(ctx, []string{name}, clients) }
	out := &HealthOutput{patients: admit(look()), named: true}
	approved := false
	for _, p := range out.patients {
		one := p.found
		known := "which nobody has approved yet"
		if len(one.Changed) > 0 {
			known = "which is no longer what you approved"
		}
		if one.State != doctor.Pending || !v.may(item{
			key: "run " + one.Approve, person: true,
			what:     fmt.Sprintf("Start what the project file %s names, %s: %s", one.At.File, known, doctor.Agreeable(one.Runs)),
			terminal: c.typed("check", one, "--approve", one.Approve),
		}) {
			continue
		}
		if err := c.Approve(one.Approve); err != nil {
			out.Notes = append(out.Notes, shown(fmt.Sprintf("the approval could not be kept: %v", err)))
			continue
		}
		approved = true
	}
	if approved {
		out.patients = admit(look())
	}
	return out
}

// heal tries to mend what is broken, and writes what was agreed to. All is tried
// before anything is written: what was agreed to is a change of a file as it was.
func (c *clinic) heal(ctx context.Context, v *visit, out *HealthOutput, attempts int) {
	for _, p := range out.patients {
		if !isIll(p.found) {
			continue
		}
		p.healing = c.Heal(ctx, p.found, doctor.HealOptions{
			MaxAttempts: attempts,
			Hold:        true,
			Later:       true,
			Allow:       func(of *doctor.Case, f doctor.Fix) bool { return v.may(c.fixItem(of, f)) },
		})
	}
	c.writeAll(ctx, v, out)
	if v.onlyWrites() {
		v.then = func(ctx context.Context, v *visit) answer {
			c.writeAll(ctx, v, out)
			return out.finish()
		}
	}
}

// fixItem is a fix that a person has to agree to before it is tried. Whoever
// agrees has seen what it changes, so it may be written if it works.
func (c *clinic) fixItem(of *doctor.Case, f doctor.Fix) item {
	it := item{
		key:      "fix " + strings.Join([]string{f.Name, of.Client, of.At.File, of.Name, f.Does}, "\x00"),
		what:     fmt.Sprintf("Mend %s: %s", whereOf(of), secret.Scrub(f.Does)),
		terminal: c.typed("heal", of),
		person:   f.NeedsPerson(),
	}
	for _, draft := range c.Preview(of, f) {
		it.key += "\x00" + draft.ID
		it.also = append(it.also, writeKey(draft))
		it.diff += draft.Diff.Text
	}
	return it
}

func whereOf(c *doctor.Case) string {
	if c.Name == "" {
		return c.At.File
	}
	return c.Name + " in " + c.At.File
}

// typed is a command line about a case for a person to type, in whatever folder.
func (c *clinic) typed(command string, of *doctor.Case, flags ...string) string {
	return doctor.Typed(command, []string{of.Name}, append(c.within(of.Scope), flags...)...)
}

// within are the flags without which a command does not see files of a scope.
func (c *clinic) within(scope string) []string {
	if c.Project != "" && (scope == "project" || scope == "local") {
		return []string{"--project", c.Project}
	}
	return nil
}

func (c *clinic) writeAll(ctx context.Context, v *visit, out *HealthOutput) {
	for _, p := range out.patients {
		if p.healing != nil {
			c.write(ctx, v, p)
		}
	}
}

// write writes what healing came to, if all of it was agreed to. Healing that has
// nothing to write is done.
func (c *clinic) write(ctx context.Context, v *visit, p *patient) {
	h, may := p.healing, true
	so := h.Server + " works"
	if h.Server == "" {
		so = "it can be read"
	}
	for _, draft := range h.Drafts {
		may = v.may(item{
			key:      writeKey(draft),
			what:     fmt.Sprintf("Write %s, so that %s", draft.Diff.File, so),
			diff:     draft.Diff.Text,
			terminal: c.typed("heal", p.found),
		}) && may
	}
	changed := h.Fixed || len(h.Drafts) > 0 // else it only needed more time
	h.Fixed = false                         // until it is written
	if !may {
		return
	}
	if client := clientconfig.ByID(h.Client); client != nil {
		h.Reload = client.Reload
	}
	drafts := h.Drafts
	h.Drafts = nil
	for _, draft := range drafts {
		change, err := c.Write(ctx, draft)
		switch {
		case change.Done:
			h.Undo = append(h.Undo, change.ID)
		case errors.Is(err, clientconfig.ErrNoChange): // somebody else has made the very same change
		case err != nil:
			h.Person = fmt.Sprintf("%s was not written: %v; ask again", draft.Diff.File, err)
			// What works with all of it need not work with a part.
			h.Case = c.again(ctx, p.found)
			h.Entry = h.Case.Entry()
			return
		}
	}
	h.Fixed = changed && !isIll(h.Case)
}

// again examines a case as its file is now. One that is not there any more is as it
// was found.
func (c *clinic) again(ctx context.Context, found *doctor.Case) *doctor.Case {
	which := doctor.Which{Clients: []string{found.Client}}
	if found.Name != "" {
		which.Servers = []string{found.Name}
	}
	for _, now := range c.Check(ctx, which, found.Name == "").Cases { // a file needs no start
		if now.Name == found.Name && now.Scope == found.Scope && now.At.File == found.At.File {
			return now
		}
	}
	return found
}

// finish turns what was found into what is answered.
func (o *HealthOutput) finish() answer {
	o.Servers = []Server{}
	var well []Server
	servers, files, needy, readable := 0, 0, 0, false
	for _, p := range o.patients {
		switch {
		case p.healing != nil:
			s := healed(p.found, p.healing)
			o.Servers = append(o.Servers, s)
			readable = readable || s.Fixed && s.Server == ""
		case o.named || p.found.Cause != nil || p.found.State == doctor.Pending:
			o.Servers = append(o.Servers, full(p.found))
		default:
			well = append(well, brief(p.found))
		}
		if p.found.Name == "" {
			files++
		} else {
			servers++
		}
		if p.needy() {
			needy++
		}
	}
	o.Servers = append(o.Servers, well...)
	if slices.ContainsFunc(o.Servers, Server.quotes) && !slices.Contains(o.Notes, quoting) {
		o.Notes = append(o.Notes, quoting)
	}
	o.Verdict = verdict(servers, files, needy)
	if servers+files == 0 && o.named {
		o.Verdict = "no server of that name; list_servers has the names"
	}
	if readable {
		o.Verdict += "; a file can be read again: call this tool once more for the servers in it"
	}
	return o
}

func verdict(servers, files, needy int) string {
	var of []string
	if servers > 0 {
		of = append(of, count(servers, "server"))
	}
	if files > 0 {
		of = append(of, count(files, "file"))
	}
	all := strings.Join(of, " and ")
	switch {
	case all == "":
		return nothing
	case needy == 0:
		return all + ", none needs attention"
	case needy == 1:
		return all + ", 1 needs attention"
	}
	return fmt.Sprintf("%s, %d need attention", all, needy)
}

func (o *HealthOutput) text() string {
	var p page
	p.line("%s", o.Verdict)
	p.notes(o.Notes)
	for i := range o.Servers {
		o.Servers[i].lines(&p)
	}
	o.lines(&p)
	return p.String()
}
