package clinic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// CheckInput is what check_health takes.
type CheckInput struct {
	Servers  []string `json:"servers,omitempty" jsonschema:"names of servers; all if left out"`
	Clients  []string `json:"clients,omitempty" jsonschema:"ids of clients such as claude-code or cursor; all if left out"`
	AutoHeal bool     `json:"auto_heal,omitempty" jsonschema:"mend what is broken; writes need approval"`
	Confirm  string   `json:"confirm,omitempty" jsonschema:"the plan of an earlier answer, once the user has agreed to it"`
}

// TestInput is what test_connection takes.
type TestInput struct {
	Server   string `json:"server" jsonschema:"the name of the server in its client's file"`
	Client   string `json:"client,omitempty" jsonschema:"id of a client; all that have the server if left out"`
	AutoHeal bool   `json:"auto_heal,omitempty" jsonschema:"mend it if it is broken; writes need approval"`
	Confirm  string `json:"confirm,omitempty" jsonschema:"the plan of an earlier answer, once the user has agreed to it"`
}

// HealInput is what heal_server takes.
type HealInput struct {
	Server      string `json:"server" jsonschema:"the name of the server in its client's file"`
	Client      string `json:"client,omitempty" jsonschema:"id of a client; all that have the server if left out"`
	MaxAttempts int    `json:"max_attempts,omitempty" jsonschema:"how many fixes are tried; 3 if left out"`
	Confirm     string `json:"confirm,omitempty" jsonschema:"the plan of an earlier answer, once the user has agreed to it"`
}

// HealthOutput is what check_health, test_connection and heal_server answer.
type HealthOutput struct {
	Verdict string `json:"verdict"`
	// Servers are as they were found.
	Servers []Server `json:"servers"`
	// Healings are the record of what was tried, for those that were broken.
	Healings []Healing `json:"healings,omitempty"`
	approvable

	found  []*doctor.Case
	healed []*doctor.Healing
}

func (c *clinic) checkHealth(ctx context.Context, v *visit, in CheckInput) *HealthOutput {
	which := doctor.Which{Servers: in.Servers, Clients: in.Clients}
	out := &HealthOutput{found: c.Check(ctx, which, false).Cases}
	if in.AutoHeal {
		c.heal(ctx, v, out, 0)
	}
	return out.finish()
}

func (c *clinic) testConnection(ctx context.Context, v *visit, in TestInput) *HealthOutput {
	out := &HealthOutput{found: c.examine(ctx, v, in.Server, in.Client)}
	if in.AutoHeal {
		c.heal(ctx, v, out, 0)
	}
	return out.finish()
}

func (c *clinic) healServer(ctx context.Context, v *visit, in HealInput) *HealthOutput {
	out := &HealthOutput{found: c.examine(ctx, v, in.Server, in.Client)}
	c.heal(ctx, v, out, in.MaxAttempts)
	return out.finish()
}

// examine looks at a server by name. A command of a project is shown to a person
// first.
func (c *clinic) examine(ctx context.Context, v *visit, name, client string) []*doctor.Case {
	which := doctor.Which{Servers: []string{name}}
	if client != "" {
		which.Clients = []string{client}
	}
	cases := c.Check(ctx, which, false).Cases
	again := false
	for _, one := range cases {
		if one.State != doctor.Pending {
			continue
		}
		if v.may(item{
			key: "run " + one.Approve, person: true,
			what:     fmt.Sprintf("Start what the project file %s names, which nobody has approved yet: %s", one.At.File, secret.Scrub(one.Runs)),
			terminal: "mcpmend test " + quote(name) + " --approve " + one.Approve,
		}) {
			again = c.Approve(one.Approve) == nil || again
		}
	}
	if again {
		cases = c.Check(ctx, which, false).Cases
	}
	return cases
}

// heal tries to mend what is broken, and writes what was agreed to.
func (c *clinic) heal(ctx context.Context, v *visit, out *HealthOutput, attempts int) {
	for _, one := range out.found {
		if !broken(one) {
			continue
		}
		h := c.Heal(ctx, one, doctor.HealOptions{
			MaxAttempts: attempts,
			Hold:        true,
			Allow:       func(of *doctor.Case, f doctor.Fix) bool { return v.may(c.fixItem(of, f)) },
		})
		h.Fixed = false // until it is written
		out.healed = append(out.healed, h)
		c.write(ctx, v, h)
	}
	if v.onlyWrites() {
		v.then = func(ctx context.Context, v *visit) answer {
			for _, h := range out.healed {
				if len(h.Drafts) > 0 {
					c.write(ctx, v, h)
				}
			}
			return out.finish()
		}
	}
}

// fixItem is a fix that a person has to agree to before it is tried. Whoever
// agrees has seen what it changes, so it may be written if it works.
func (c *clinic) fixItem(of *doctor.Case, f doctor.Fix) item {
	it := item{
		key:      "fix " + strings.Join([]string{f.Name, of.Client, of.At.File, of.Name, f.Does}, "\x00"),
		what:     fmt.Sprintf("Mend %s in %s: %s", cmpName(of), of.At.File, secret.Scrub(f.Does)),
		terminal: "mcpmend heal " + quote(of.Name),
		person:   f.NeedsPerson(),
	}
	for _, draft := range c.Preview(of, f) {
		it.key += "\x00" + draft.ID
		it.also = append(it.also, "write "+draft.ID)
		it.diff += secret.Scrub(draft.Diff.Text)
	}
	return it
}

func cmpName(c *doctor.Case) string {
	if c.Name == "" {
		return "the file"
	}
	return c.Name
}

// write writes what healing came to, if all of it was agreed to.
func (c *clinic) write(ctx context.Context, v *visit, h *doctor.Healing) {
	may := true
	for _, draft := range h.Drafts {
		may = v.may(item{
			key:      "write " + draft.ID,
			what:     fmt.Sprintf("Write %s, so that %s works", draft.Diff.File, cmpName(h.Case)),
			diff:     secret.Scrub(draft.Diff.Text),
			terminal: "mcpmend heal " + quote(h.Server),
		}) && may
	}
	if !may {
		return
	}
	for _, draft := range h.Drafts {
		change, err := c.Write(ctx, draft)
		if change.ID != "" && (err == nil || change.Done) {
			h.Undo = append(h.Undo, change.ID)
		}
		if err != nil {
			h.Person = fmt.Sprintf("%s was not written: %v; ask again", draft.Diff.File, err)
			return
		}
	}
	h.Drafts = nil
	h.Fixed = !broken(h.Case)
	if client := clientconfig.ByID(h.Client); client != nil && len(h.Undo) > 0 {
		h.Reload = client.Reload
	}
}

// broken: something can be done about it, or has to be.
func broken(c *doctor.Case) bool {
	switch c.State {
	case doctor.Dead, doctor.Unresponsive, doctor.SignIn, doctor.Skipped, doctor.Unreadable, doctor.Misplaced:
		return true
	case doctor.Degraded:
		return c.Cause != nil && slices.ContainsFunc(c.Cause.Fixes, func(f doctor.Fix) bool { return f.Class != doctor.Never })
	}
	return false
}

// finish turns what was found into what is answered.
func (o *HealthOutput) finish() *HealthOutput {
	o.Servers, o.Healings = []Server{}, nil
	bad := 0
	readable := false
	for _, c := range o.found {
		o.Servers = append(o.Servers, server(c))
		if !broken(c) {
			continue
		}
		if len(o.Healings) == len(o.healed) { // not asked to heal
			bad++
			continue
		}
		h := o.healed[len(o.Healings)]
		record := healing(h)
		if len(h.Drafts) > 0 { // nothing of it is written, so all is as it was
			record.Now, record.Entry = server(c), c.Entry()
		}
		o.Healings = append(o.Healings, record)
		if len(h.Drafts) > 0 || broken(h.Case) {
			bad++
		}
		readable = readable || record.Fixed && c.Name == ""
	}
	switch {
	case len(o.found) == 0:
		o.Verdict = "no server of that name, or none at all, in the files of the clients on this machine"
	case bad == 0:
		o.Verdict = count(len(o.found), "server") + ", none needs attention"
	default:
		verb := "need"
		if bad == 1 {
			verb = "needs"
		}
		o.Verdict = fmt.Sprintf("%s, %d %s attention", count(len(o.found), "server"), bad, verb)
	}
	if readable {
		o.Verdict += "; a file can be read again: call this tool once more for the servers in it"
	}
	return o
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (o *HealthOutput) text() string {
	var b strings.Builder
	b.WriteString(o.Verdict + "\n")
	if len(o.Healings) == 0 {
		for i := range o.Servers {
			if s := &o.Servers[i]; s.State != string(doctor.Healthy) {
				s.line(&b)
			}
		}
	}
	for i := range o.Healings {
		o.Healings[i].line(&b)
	}
	o.lines(&b)
	return b.String()
}

// ConfigureInput is what configure_server takes.
type ConfigureInput struct {
	Name      string            `json:"name" jsonschema:"the name of the new entry"`
	Package   string            `json:"package,omitempty" jsonschema:"npm:NAME, pypi:NAME or oci:IMAGE; one of package, url and command"`
	URL       string            `json:"url,omitempty" jsonschema:"the address of a remote server"`
	Transport string            `json:"transport,omitempty" jsonschema:"http or sse, for a url; found out if left out"`
	Command   string            `json:"command,omitempty" jsonschema:"a program to start"`
	Args      []string          `json:"args,omitempty" jsonschema:"arguments of the package or the command"`
	Env       map[string]string `json:"env,omitempty" jsonschema:"variables that are no secrets; ${NAME} refers to one of the user's environment"`
	Secrets   []string          `json:"secrets,omitempty" jsonschema:"names of variables with secrets; the entry refers to them"`
	Headers   map[string]string `json:"headers,omitempty" jsonschema:"headers for a url; write a secret as ${NAME}"`
	Clients   []string          `json:"clients,omitempty" jsonschema:"ids of clients such as claude-code or cursor; all that are here if left out"`
	Scope     string            `json:"scope,omitempty" jsonschema:"user (if left out), project or local"`
	Replace   bool              `json:"replace,omitempty" jsonschema:"replace a different entry of that name"`
	DryRun    bool              `json:"dry_run,omitempty" jsonschema:"start nothing and write nothing; show what would be written"`
	Confirm   string            `json:"confirm,omitempty" jsonschema:"the plan of an earlier answer, once the user has agreed to it"`
}

// ConfigureOutput is what configure_server answers.
type ConfigureOutput struct {
	Verdict string      `json:"verdict"`
	Refused string      `json:"refused,omitempty"`
	Notes   []string    `json:"notes,omitempty"`
	Clients []Placement `json:"clients"`
	approvable
}

// A Placement is the server in one client.
type Placement struct {
	Client  string   `json:"client"`
	Scope   string   `json:"scope,omitempty"`
	File    string   `json:"file,omitempty"`
	Status  string   `json:"status"`
	Why     string   `json:"why,omitempty"`
	Entry   any      `json:"entry,omitempty"`
	Diff    string   `json:"diff,omitempty"`
	Healing *Healing `json:"healing,omitempty"`
	Now     *Server  `json:"now,omitempty"`
	Undo    string   `json:"undo,omitempty"`
	Reload  string   `json:"reload,omitempty"`
}

func (c *clinic) configureServer(ctx context.Context, v *visit, in ConfigureInput) *ConfigureOutput {
	r := in.request()
	r.Hold = true
	r.Allow = func(what string) bool { return v.agreed["start "+what] }
	r.Heal.Allow = func(of *doctor.Case, f doctor.Fix) bool { return v.may(c.fixItem(of, f)) }
	got := c.Configure(ctx, r)
	if got.Needs != "" {
		it := item{key: "start " + got.Needs, person: true, what: "Try a new server, " + in.Name + ": " + secret.Scrub(got.Needs), terminal: in.typed()}
		for _, p := range got.Clients {
			if p.Draft != nil { // what works without a change may be written as it was shown
				it.also = append(it.also, "write "+p.Draft.ID)
				it.diff += secret.Scrub(p.Draft.Diff.Text)
			}
		}
		if it.diff != "" {
			it.what += "; and write it if it works"
		}
		v.may(it)
		return configured(in.Name, got)
	}
	keep := func(ctx context.Context, v *visit) answer {
		c.Keep(ctx, got, func(d *doctor.Draft) bool {
			return v.may(item{
				key: "write " + d.ID, what: fmt.Sprintf("Write %s, so that it has %s", d.Diff.File, in.Name),
				diff: secret.Scrub(d.Diff.Text), terminal: in.typed(),
			})
		})
		return configured(in.Name, got)
	}
	if in.DryRun {
		return configured(in.Name, got)
	}
	out := keep(ctx, v).(*ConfigureOutput)
	if v.onlyWrites() {
		v.then = keep
	}
	return out
}

func (in *ConfigureInput) request() doctor.ConfigureRequest {
	r := doctor.ConfigureRequest{
		Name: in.Name, Package: in.Package, URL: in.URL, Transport: clientconfig.Transport(in.Transport), Args: in.Args, Secrets: in.Secrets,
		Clients: in.Clients, Scope: in.Scope, Replace: in.Replace, DryRun: in.DryRun,
	}
	if in.Command != "" {
		r.Command = append([]string{in.Command}, in.Args...)
		r.Args = nil
	}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		r.Env = append(r.Env, name+"="+in.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		r.Headers = append(r.Headers, name+": "+in.Headers[name])
	}
	return r
}

// typed is the same as a person would type it.
func (in *ConfigureInput) typed() string {
	words := []string{"mcpmend", "configure", in.Name}
	flag := func(name, value string) {
		if value != "" {
			words = append(words, name, value)
		}
	}
	flag("--client", strings.Join(in.Clients, ","))
	flag("--scope", in.Scope)
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		flag("--env", name+"="+in.Env[name])
	}
	for _, name := range in.Secrets {
		flag("--secret", name)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		flag("--header", name+": "+in.Headers[name])
	}
	if in.Replace {
		words = append(words, "--replace")
	}
	switch {
	case in.Package != "":
		words = append(words, in.Package)
	case in.URL != "":
		words = append(words, in.URL)
	}
	if in.Command != "" {
		words = append(words, "--", in.Command)
	} else if len(in.Args) > 0 {
		words = append(words, "--")
	}
	words = append(words, in.Args...)
	for i, w := range words {
		words[i] = quote(w)
	}
	return secret.Scrub(strings.Join(words, " "))
}

// quote writes a word for a shell.
func quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@=,+%", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func configured(name string, got *doctor.Configuration) *ConfigureOutput {
	out := &ConfigureOutput{Refused: secret.Scrub(got.Refused), Clients: []Placement{}}
	for _, n := range got.Notes {
		out.Notes = append(out.Notes, secret.Scrub(n))
	}
	tally := make(map[doctor.Placed]int)
	for _, p := range got.Clients {
		tally[p.Status]++
		one := Placement{Client: p.Client, Scope: p.Scope, File: p.File, Status: string(p.Status), Why: secret.Scrub(p.Why), Entry: p.Entry, Undo: p.Undo}
		if p.Diff != nil {
			one.Diff = secret.Scrub(p.Diff.Text)
		}
		if p.Healing != nil {
			h := healing(p.Healing)
			h.Fixed = p.Status == doctor.Written && !broken(p.Healing.Case)
			one.Healing = &h
		}
		if p.Case != nil {
			s := server(p.Case)
			one.Now = &s
		}
		if p.Undo != "" {
			one.Reload = p.Reload
		}
		out.Clients = append(out.Clients, one)
	}
	if out.Refused != "" {
		out.Verdict = "nothing was done: " + out.Refused
		return out
	}
	var parts []string
	for _, status := range []doctor.Placed{doctor.Written, doctor.Unchanged, doctor.Intended, doctor.Differs, doctor.Failing, doctor.Declined} {
		if n := tally[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s in %s", status, count(n, "client")))
		}
	}
	out.Verdict = name + ": " + strings.Join(parts, ", ")
	return out
}

func (o *ConfigureOutput) text() string {
	var b strings.Builder
	b.WriteString(o.Verdict + "\n")
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "note: %s\n", oneLine(n))
	}
	for i := range o.Clients {
		p := &o.Clients[i]
		fmt.Fprintf(&b, "%s: %s, %s\n", p.Client, p.Status, oneLine(p.File))
		if p.Why != "" {
			fmt.Fprintf(&b, "  %s\n", oneLine(p.Why))
		}
		switch {
		case p.Healing != nil:
			p.Healing.line(&b)
		case p.Now != nil && p.Now.State != string(doctor.Healthy):
			p.Now.line(&b)
		}
		if p.Undo != "" {
			fmt.Fprintf(&b, "  undo_change id: %s; then: %s\n", p.Undo, p.Reload)
		} else if p.Diff != "" && o.Approval == nil {
			b.WriteString(p.Diff)
		}
	}
	o.lines(&b)
	return b.String()
}

// ExplainInput is what explain_error takes.
type ExplainInput struct {
	Error    string `json:"error" jsonschema:"the message, with the last lines that the server wrote to stderr if there are any"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Command  string `json:"command,omitempty" jsonschema:"the program that was to run"`
}

// ExplainOutput is what explain_error answers.
type ExplainOutput struct {
	Kind        string  `json:"kind"`
	Title       string  `json:"title"`
	Explanation string  `json:"explanation"`
	Confidence  float64 `json:"confidence"`
	Fix         string  `json:"fix,omitempty"`
	Retry       bool    `json:"retry"`
	approvable
}

func (c *clinic) explainError(_ context.Context, _ *visit, in ExplainInput) *ExplainOutput {
	e := fault.Evidence{Text: in.Error, Command: in.Command}
	if in.ExitCode != nil {
		e.Exited, e.ExitCode = true, *in.ExitCode
		e.Text, e.Stderr = "", strings.Split(strings.TrimSpace(in.Error), "\n")
	}
	x := doctor.Explain(e)
	return &ExplainOutput{Kind: x.Kind, Title: x.Title, Explanation: x.Meaning, Confidence: x.Confidence, Fix: x.Remedy, Retry: x.Retryable}
}

func (o *ExplainOutput) text() string {
	text := fmt.Sprintf("%s (%s, %.0f %%): %s", o.Title, o.Kind, 100*o.Confidence, o.Explanation)
	if o.Fix != "" {
		text += "\nfix: " + o.Fix
	}
	return text
}

// ListInput is what list_servers takes.
type ListInput struct {
	Clients []string `json:"clients,omitempty" jsonschema:"ids of clients such as claude-code or cursor; all if left out"`
}

// ListOutput is what list_servers answers.
type ListOutput struct {
	Servers []Server `json:"servers"`
	approvable
}

func (c *clinic) listServers(ctx context.Context, _ *visit, in ListInput) *ListOutput {
	out := &ListOutput{Servers: []Server{}}
	for _, one := range c.Check(ctx, doctor.Which{Clients: in.Clients}, true).Cases {
		s := server(one)
		s.Entry = one.Entry()
		out.Servers = append(out.Servers, s)
	}
	return out
}

func (o *ListOutput) text() string {
	var b strings.Builder
	b.WriteString(count(len(o.Servers), "entry") + "\n")
	for i := range o.Servers {
		s := &o.Servers[i]
		fmt.Fprintf(&b, "%s: %s, %s\n", s.name(), s.State, oneLine(s.At))
	}
	return strings.Replace(b.String(), "entrys", "entries", 1)
}

// UndoInput is what undo_change takes.
type UndoInput struct {
	ID      string `json:"id" jsonschema:"the id of the change, from the undo of another answer"`
	Confirm string `json:"confirm,omitempty" jsonschema:"the plan of an earlier answer, once the user has agreed to it"`
}

// UndoOutput is what undo_change answers.
type UndoOutput struct {
	Undone bool   `json:"undone"`
	File   string `json:"file,omitempty"`
	Diff   string `json:"diff,omitempty"`
	// Undo takes this one back again.
	Undo   string `json:"undo,omitempty"`
	Why    string `json:"why,omitempty"`
	Reload string `json:"reload,omitempty"`
	approvable
}

func (c *clinic) undoChange(ctx context.Context, v *visit, in UndoInput) *UndoOutput {
	draft, err := c.Undoing(in.ID)
	if err != nil {
		return &UndoOutput{Why: secret.Scrub(err.Error())}
	}
	out := &UndoOutput{File: draft.Diff.File, Diff: secret.Scrub(draft.Diff.Text)}
	if !v.may(item{key: "undo " + draft.ID, what: "Take back the change " + in.ID + " of " + draft.Diff.File, diff: out.Diff, terminal: "mcpmend undo " + quote(in.ID)}) {
		return out
	}
	change, err := c.Undo(ctx, in.ID)
	switch {
	case errors.Is(err, clientconfig.ErrNoChange):
		out.Why = "it has been taken back already"
	case errors.Is(err, clientconfig.ErrChanged):
		out.Why = "the file was changed since by somebody else, at the same place"
	case err != nil && !change.Done:
		out.Why = secret.Scrub(err.Error())
	default:
		out.Undone, out.Undo = true, change.ID
		if client := clientconfig.ByID(change.Client); client != nil {
			out.Reload = client.Reload
		}
	}
	return out
}

func (o *UndoOutput) text() string {
	var b strings.Builder
	switch {
	case o.Undone:
		fmt.Fprintf(&b, "%s is as it was before; undo_change id: %s\n", o.File, o.Undo)
		if o.Reload != "" {
			fmt.Fprintf(&b, "then: %s\n", o.Reload)
		}
	case o.Why != "":
		fmt.Fprintf(&b, "not undone: %s\n", o.Why)
	}
	o.lines(&b)
	return b.String()
}
