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

// ill: something can be done about it, or has to be, and is not done.
func (p *patient) ill() bool {
	if p.healing != nil && len(p.healing.Drafts) == 0 {
		return isIll(p.healing.Case)
	}
	return isIll(p.found)
}

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
		if one.State != doctor.Pending || !v.may(item{
			key: "run " + one.Approve, person: true,
			what:     fmt.Sprintf("Start what the project file %s names, which nobody has approved yet: %s", one.At.File, secret.Scrub(one.Runs)),
			terminal: doctor.Typed("check", []string{one.Name}, "--approve", one.Approve),
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
		what:     fmt.Sprintf("Mend %s in %s: %s", nameOf(of), of.At.File, secret.Scrub(f.Does)),
		terminal: doctor.Typed("heal", []string{of.Name}),
		person:   f.NeedsPerson(),
	}
	for _, draft := range c.Preview(of, f) {
		it.key += "\x00" + draft.ID
		it.also = append(it.also, writeKey(draft))
		it.diff += draft.Diff.Text
	}
	return it
}

func nameOf(c *doctor.Case) string {
	if c.Name == "" {
		return "the file"
	}
	return c.Name
}

func (c *clinic) writeAll(ctx context.Context, v *visit, out *HealthOutput) {
	for _, p := range out.patients {
		if p.healing != nil {
			c.write(ctx, v, p.healing)
		}
	}
}

// write writes what healing came to, if all of it was agreed to. Healing that has
// nothing to write is done.
func (c *clinic) write(ctx context.Context, v *visit, h *doctor.Healing) {
	may := true
	for _, draft := range h.Drafts {
		may = v.may(item{
			key:      writeKey(draft),
			what:     fmt.Sprintf("Write %s, so that %s works", draft.Diff.File, nameOf(h.Case)),
			diff:     draft.Diff.Text,
			terminal: doctor.Typed("heal", []string{h.Server}),
		}) && may
	}
	changed := h.Fixed || len(h.Drafts) > 0 // else it only needed more time
	h.Fixed = false                         // until it is written
	if !may {
		return
	}
	for len(h.Drafts) > 0 {
		change, err := c.Write(ctx, h.Drafts[0])
		switch {
		case change.Done:
			h.Undo = append(h.Undo, change.ID)
		case errors.Is(err, clientconfig.ErrNoChange): // somebody else has made the very same change
		case err != nil:
			h.Person = fmt.Sprintf("%s was not written: %v; ask again", h.Drafts[0].Diff.File, err)
			return
		}
		h.Drafts = h.Drafts[1:]
	}
	h.Fixed = changed && !isIll(h.Case)
	if client := clientconfig.ByID(h.Client); client != nil {
		h.Reload = client.Reload
	}
}

// finish turns what was found into what is answered.
func (o *HealthOutput) finish() answer {
	o.Servers = []Server{}
	var well []Server
	servers, files, ill, readable := 0, 0, 0, false
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
		if p.ill() {
			ill++
		}
	}
	o.Servers = append(o.Servers, well...)
	if slices.ContainsFunc(o.Servers, Server.quotes) && !slices.Contains(o.Notes, quoting) {
		o.Notes = append(o.Notes, quoting)
	}
	o.Verdict = verdict(servers, files, ill)
	if readable {
		o.Verdict += "; a file can be read again: call this tool once more for the servers in it"
	}
	return o
}

func verdict(servers, files, ill int) string {
	var of []string
	if servers > 0 {
		of = append(of, count(servers, "server"))
	}
	if files > 0 {
		of = append(of, count(files, "broken file"))
	}
	all := strings.Join(of, " and ")
	switch {
	case all == "":
		return "no server of that name, or none at all, in the files of the clients on this machine"
	case ill == 0:
		return all + ", none needs attention"
	case ill == 1:
		return all + ", 1 needs attention"
	}
	return fmt.Sprintf("%s, %d need attention", all, ill)
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
