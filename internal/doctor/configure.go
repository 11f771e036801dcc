package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
)

// A ConfigureRequest is a server to add. It is one of Package, URL and Command.
//
// In arguments, values of variables, headers and the URL, ${NAME} is a variable of
// the user's environment, and is written in the spelling of each client.
type ConfigureRequest struct {
	// Name is that of the entry.
	Name string
	// Package is what npx, uvx or docker run: "npm:@scope/x", "pypi:x", "oci:x". A
	// name without a kind is one of npm.
	Package string
	URL     string
	// Transport is that of a URL; Unknown finds out.
	Transport clientconfig.Transport
	// Command is a program and its arguments.
	Command []string
	// Args are more arguments, for a package.
	Args []string
	// Env are variables, each as NAME=value. A value that looks like a secret is
	// refused: it has been on a command line, or in a model's hands.
	Env []string
	// Secrets are names of variables. The entry refers to them, in a client that
	// can; their values are not read.
	Secrets []string
	// Values are secrets for clients that cannot refer to a variable and therefore
	// keep them in clear. A person has typed them.
	Values map[string]string
	// Headers are sent to a URL, each as "Name: value".
	Headers []string
	// Clients by ID; none means all that are here.
	Clients []string
	// Scope is that of the file: "user" if it is "".
	Scope string
	// Replace allows to replace a different entry of that name.
	Replace bool
	// Anyway writes an entry that does not work (yet).
	Anyway bool
	// DryRun starts nothing, fetches nothing and writes nothing.
	DryRun bool
	// Hold does everything but write; what would be written is in the Drafts.
	Hold bool
	// Allow is asked before something is started or dialled that no file of the user
	// has yet; what says what, exactly. nil refuses, and the request becomes a plan.
	Allow func(what string) bool
	// Heal says how far healing may go.
	Heal HealOptions
}

// A Configuration is what became of a request to add a server.
type Configuration struct {
	Server string `json:"server"`
	// Planned: nothing was started and nothing was written.
	Planned bool `json:"planned,omitempty"`
	// Refused is why nothing was done at all; "" if something was.
	Refused string `json:"refused,omitempty"`
	// Needs is what somebody has to agree to first, such as a command that would be
	// run for the first time.
	Needs string `json:"needs,omitempty"`
	// Notes are what one should know: a deprecation, a secret kept in clear.
	Notes   []string     `json:"notes,omitempty"`
	Clients []*Placement `json:"clients"`
}

// Placed says what became of an entry in one file.
type Placed string

// What becomes of an entry.
const (
	Written   Placed = "written"
	Unchanged Placed = "unchanged" // it is there already, the same
	Intended  Placed = "planned"
	Differs   Placed = "differs" // another entry has that name
	Failing   Placed = "failing" // it does not work, so it was not written
	Declined  Placed = "refused" // this client cannot have it
)

// A Placement is a server in one client.
type Placement struct {
	Client string `json:"client"`
	Scope  string `json:"scope"`
	File   string `json:"file,omitempty"`
	Status Placed `json:"status"`
	// Why says more, in a sentence; "" if the status says it all.
	Why string `json:"why,omitempty"`
	// Clear are the variables whose values this client would keep in clear, since it
	// cannot refer to them.
	Clear []string `json:"clear,omitempty"`
	// Entry is the entry as it is or would be, with secrets hidden.
	Entry any `json:"entry,omitempty"`
	// Healing is the record of trying it: what was wrong, what was done about it,
	// and how it is now. nil if it was not tried.
	Healing *Healing `json:"healing,omitempty"`
	// Case is how it was found, nil if it was not tried.
	Case *Case `json:"case,omitempty"`
	Diff *Diff `json:"diff,omitempty"`
	// Undo is the ID of the change, "" if nothing was written.
	Undo   string `json:"undo,omitempty"`
	Reload string `json:"reload,omitempty"`
	// Draft is what would be written, nil if nothing would.
	Draft *Draft `json:"-"`

	file *clientconfig.File // as it is on disk
}

// Configure adds a server to the files of clients. It is tried first, in the
// environment of each client and from a file that exists in memory only; what does
// not work is healed there; and only what works is written.
func (d *Doctor) Configure(ctx context.Context, r ConfigureRequest) *Configuration {
	c := &Configuration{Server: r.Name}
	wanted, err := r.server()
	var known registry.Entry
	if err == nil {
		known, _ = d.published(wanted)
		err = r.lacks(known)
	}
	if err != nil {
		c.Refused = err.Error()
		return c
	}
	if c.Clients, err = d.placements(r.Clients, r.Scope); err != nil {
		c.Refused = err.Error()
		return c
	}
	notice := notice(known, wanted)
	if notice != "" {
		c.Notes = append(c.Notes, notice)
	}
	for _, p := range c.Clients {
		p.draft(c, &r, wanted)
	}
	if !slices.ContainsFunc(c.Clients, func(p *Placement) bool { return p.Status == Intended }) {
		return c
	}
	if r.DryRun {
		c.Planned = true
		return c
	}
	if what := d.unheardOf(&r, wanted, notice); what != "" && (r.Allow == nil || !r.Allow(what)) {
		c.Planned, c.Needs = true, what
		return c
	}
	for _, p := range c.Clients {
		if p.Status == Intended {
			d.place(ctx, &r, p)
		}
	}
	return c
}

// firstStart is how long a package may take that has to be fetched. Who kills npx
// in the middle of it leaves half of a package behind.
const firstStart = time.Minute

// place tries a drafted entry, mends it if need be, and writes it.
func (d *Doctor) place(ctx context.Context, r *ConfigureRequest, p *Placement) {
	try := *d
	if r.URL == "" {
		try.Timeout = max(d.Timeout, firstStart)
	}
	after := p.Draft.file
	if s := after.Server(r.Name); s != nil {
		// Whoever asked for this very command has seen it.
		if err := d.approve(s, after); err != nil {
			p.Status, p.Why = Declined, err.Error()
			return
		}
	}
	c := try.reexamine(ctx, after, r.Name)
	if c == nil { // the entry was just added
		p.Status, p.Why = Declined, "the entry cannot be found in the file that it was added to"
		return
	}
	p.Case = c
	if !works(c) {
		try.Store = nil // what is healed is written below, in one piece with the entry
		o := r.Heal
		o.Hold = true
		p.Healing = try.Heal(ctx, c, o)
		p.Case = p.Healing.Case
		if f := p.Healing.Case.file; f != nil {
			p.Draft = NewDraft(p.file, f, r.Values)
			p.show(f, r)
		}
	}
	if !works(p.Case) && !r.Anyway {
		p.Status, p.Why = Failing, "it does not work, so it was not written"
		return
	}
	if p.Draft == nil {
		p.Status = Unchanged
		return
	}
	if !r.Hold {
		d.keep(ctx, p)
	}
}

// keep writes the draft of a placement.
func (d *Doctor) keep(ctx context.Context, p *Placement) {
	change, err := d.Write(ctx, p.Draft)
	if errors.Is(err, clientconfig.ErrNoChange) { // somebody else has just added the same
		p.Status, p.Draft = Unchanged, nil
		return
	}
	if change.Done || err == nil {
		p.Status, p.Undo, p.Draft = Written, change.ID, nil
		if p.Healing != nil {
			p.Healing.Fixed = works(p.Case)
			p.Healing.Planned = false
			p.Healing.Undo = []string{change.ID}
		}
	}
	if err != nil {
		p.Why = err.Error()
		if p.Undo == "" {
			p.Status = Declined
		}
	}
}

// Keep writes what a request with Hold has left unwritten, as far as may says so;
// nil means all of it.
func (d *Doctor) Keep(ctx context.Context, c *Configuration, may func(*Draft) bool) {
	for _, p := range c.Clients {
		if p.Draft == nil || p.Status != Intended || may != nil && !may(p.Draft) {
			continue
		}
		c.Planned = false
		d.keep(ctx, p)
	}
}

// works: the client can use the server, or could if somebody signed in.
func works(c *Case) bool {
	switch c.State {
	case Healthy, Degraded, SignIn, InUse, Unchecked:
		return true
	}
	return false
}

// draft prepares the change of one file, or says why there is none.
func (p *Placement) draft(c *Configuration, r *ConfigureRequest, wanted *clientconfig.Server) {
	decline := func(status Placed, why string) { p.Status, p.Why = status, why }
	s, clear, err := spell(p.file.Client, p.Scope, wanted, r)
	p.Clear = clear
	if err != nil {
		decline(Declined, err.Error())
		return
	}
	if i := slices.IndexFunc(p.file.Problems, func(pr clientconfig.Problem) bool {
		return problemStages[pr.Kind].severity == Broken && pr.Server == ""
	}); i >= 0 {
		decline(Declined, fmt.Sprintf("the file has to be mended first, see %s: %s",
			Typed("check", nil, "--client", p.Client), fileFinding(p.file, p.file.Problems[i]).Explanation))
		return
	}
	old := p.file.Server(r.Name)
	after, err := p.file.Replace(s)
	if err != nil {
		decline(Declined, plainError(err))
		return
	}
	p.show(after, r)
	draft := NewDraft(p.file, after, r.Values)
	if draft == nil || old != nil && sameServer(old, after.Server(r.Name)) && !brokenEntry(p.file, r.Name) {
		decline(Unchanged, "")
		return
	}
	p.Diff = &draft.Diff
	if old != nil && !r.Replace {
		decline(Differs, fmt.Sprintf("%s has another server called %q", p.file.Client.Name, r.Name))
		return
	}
	for _, name := range clear {
		c.Notes = append(c.Notes, fmt.Sprintf("%s keeps %s in clear, since it cannot refer to a variable", p.file.Client.Name, name))
	}
	if kept := kept(after.Server(r.Name)); old != nil && kept != "" {
		c.Notes = append(c.Notes, fmt.Sprintf("%s keeps %s of the old entry", p.file.Client.Name, kept))
	}
	p.Status, p.Draft = Intended, draft
}

// brokenEntry: the client cannot use the entry, so it says something else than what
// could be read of it.
func brokenEntry(f *clientconfig.File, name string) bool {
	return slices.ContainsFunc(f.Problems, func(pr clientconfig.Problem) bool {
		return pr.Server == name && problemStages[pr.Kind].severity == Broken
	})
}

// kept are the members of an entry that a request says nothing about. One of them
// may let tools run without a question, which was decided for another program.
func kept(s *clientconfig.Server) string {
	var names []string
	if s != nil {
		for _, o := range s.Other {
			if o.Name.Text != "name" { // which some clients write into the entry, too
				names = append(names, o.Name.Text)
			}
		}
	}
	return strings.Join(names, ", ")
}

// show fills in what can be seen of a changed file.
func (p *Placement) show(after *clientconfig.File, r *ConfigureRequest) {
	if s := after.Server(r.Name); s != nil {
		p.Entry = entryShown(after, s, r.Values)
	}
	if p.Draft != nil {
		p.Diff = &p.Draft.Diff
	}
}

// plainError is a refusal to edit without the words for programmers.
func plainError(err error) string {
	text := err.Error()
	if _, why, ok := strings.Cut(text, ": "); ok && errors.Is(err, clientconfig.ErrEdit) {
		return why
	}
	return text
}

func sameServer(a, b *clientconfig.Server) bool {
	value := func(x, y clientconfig.Value) bool { return x.Text == y.Text }
	pair := func(x, y clientconfig.Pair) bool { return x.Name.Text == y.Name.Text && x.Value.Text == y.Value.Text }
	return b != nil && value(a.Command, b.Command) && value(a.URL, b.URL) && value(a.Cwd, b.Cwd) && a.Transport == b.Transport && a.Disabled == b.Disabled &&
		slices.EqualFunc(a.Args, b.Args, value) && slices.EqualFunc(a.EnvFrom, b.EnvFrom, value) &&
		slices.EqualFunc(a.Env, b.Env, pair) && slices.EqualFunc(a.Headers, b.Headers, pair) && slices.EqualFunc(a.HeadersFrom, b.HeadersFrom, pair)
}
