package clinic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// ConfigureInput is what configure_server takes.
type ConfigureInput struct {
	Name      string            `json:"name" jsonschema:"of the new entry"`
	Package   string            `json:"package,omitempty" jsonschema:"npm:NAME, pypi:NAME or oci:IMAGE"`
	URL       string            `json:"url,omitempty" jsonschema:"of a remote server"`
	Transport string            `json:"transport,omitempty" jsonschema:"http or sse, for a url; found out if left out"`
	Command   string            `json:"command,omitempty" jsonschema:"a program"`
	Args      []string          `json:"args,omitempty" jsonschema:"for the package or command"`
	Env       map[string]string `json:"env,omitempty" jsonschema:"no secrets; ${NAME} refers to the user's environment"`
	Secrets   []string          `json:"secrets,omitempty" jsonschema:"names of variables that hold secrets; the entry refers to them"`
	Headers   map[string]string `json:"headers,omitempty" jsonschema:"for a url; write a secret as ${NAME}"`
	Clients   []string          `json:"clients,omitempty" jsonschema:"ids such as claude-code or cursor; all that are here if left out"`
	Scope     string            `json:"scope,omitempty" jsonschema:"user (if left out), project or local"`
	Replace   bool              `json:"replace,omitempty" jsonschema:"replace a different entry of that name"`
	DryRun    bool              `json:"dry_run,omitempty" jsonschema:"start and write nothing, show what would be written"`
	Confirm   string            `json:"confirm,omitempty" jsonschema:"plan of the last answer, only once the user has agreed to it"`
}

// ConfigureOutput is what configure_server answers.
type ConfigureOutput struct {
	Verdict string      `json:"verdict"`
	Notes   []string    `json:"notes,omitempty"`
	Clients []Placement `json:"clients"`
	// Tools are those of the new server, in whichever client it was tried first.
	Tools []string `json:"tools,omitempty"`
	approvable
}

// A Placement is the server in one client.
type Placement struct {
	Server
	Status string `json:"status"`
	Why    string `json:"why,omitempty"`
	// Diff is what would be written, unless that is asked about.
	Diff string `json:"diff,omitempty"`
}

func (c *clinic) configureServer(ctx context.Context, v *visit, in ConfigureInput) answer {
	r := in.request()
	r.Hold = true
	r.Allow = func(what string) bool { return v.agreed["start "+what] }
	r.Heal.Later = true
	r.Heal.Allow = func(of *doctor.Case, f doctor.Fix) bool { return v.may(c.fixItem(of, f)) }
	got := c.Configure(ctx, r)
	switch {
	case got.Needs != "":
		v.may(in.startItem(got, in.typed(c.within(in.Scope))))
		return in.answer(got)
	case in.DryRun:
		return in.answer(got)
	}
	keep := func(ctx context.Context, v *visit) answer {
		c.Keep(ctx, got, func(d *doctor.Draft) bool {
			return v.may(item{key: writeKey(d), what: fmt.Sprintf("Write %s, so that it has %s", d.Diff.File, in.Name), diff: d.Diff.Text, terminal: in.typed(c.within(in.Scope))})
		})
		return in.answer(got)
	}
	out := keep(ctx, v)
	if v.onlyWrites() {
		v.then = keep
	}
	return out
}

// startItem is what has to be agreed to before something new is started. What
// works without a change may then be written as it was shown.
func (in *ConfigureInput) startItem(got *doctor.Configuration, terminal string) item {
	it := item{key: "start " + got.Needs, person: true, what: "Try a new server, " + in.Name + ": " + doctor.Agreeable(got.Needs), terminal: terminal}
	for _, p := range got.Clients {
		if p.Draft != nil {
			it.also = append(it.also, writeKey(p.Draft))
			it.diff += p.Draft.Diff.Text
		}
	}
	if it.diff != "" {
		it.what += "; and write it if it works"
	}
	return it
}

func (in *ConfigureInput) request() doctor.ConfigureRequest {
	r := doctor.ConfigureRequest{
		Name: in.Name, Package: in.Package, URL: in.URL, Transport: clientconfig.Transport(in.Transport), Args: in.Args, Secrets: in.Secrets,
		Clients: in.clients(), Scope: in.Scope, Replace: in.Replace, DryRun: in.DryRun,
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

// typed is the same as a person would type it, with these flags besides.
func (in *ConfigureInput) typed(flags []string) string {
	words := append([]string{"mcpmend", "configure", in.Name}, flags...)
	flag := func(name, value string) {
		if value != "" {
			words = append(words, name, value)
		}
	}
	flag("--client", strings.Join(in.Clients, ","))
	flag("--scope", in.Scope)
	flag("--transport", in.Transport)
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
	return secret.Scrub(doctor.Quoted(append(words, in.Args...)...))
}

// answer turns what became of the request into what is answered.
func (in *ConfigureInput) answer(got *doctor.Configuration) *ConfigureOutput {
	out := &ConfigureOutput{Clients: []Placement{}}
	for _, n := range got.Notes {
		out.Notes = append(out.Notes, shown(n))
	}
	if got.Refused != "" {
		out.Verdict = "nothing was done: " + shown(got.Refused)
		return out
	}
	tally := make(map[doctor.Placed]int)
	for _, p := range got.Clients {
		tally[p.Status]++
		one := in.placement(p)
		if out.Tools == nil {
			out.Tools = one.Tools
		}
		one.Tools = nil
		out.Clients = append(out.Clients, one)
	}
	if slices.ContainsFunc(out.Clients, func(p Placement) bool { return p.quotes() }) {
		out.Notes = append(out.Notes, quoting)
	}
	var parts []string
	for _, status := range []doctor.Placed{doctor.Written, doctor.Unchanged, doctor.Intended, doctor.Differs, doctor.Failing, doctor.Declined} {
		if n := tally[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s in %s", status, count(n, "client")))
		}
	}
	out.Verdict = clean(in.Name) + ": " + strings.Join(parts, ", ")
	return out
}

func (in *ConfigureInput) placement(p *doctor.Placement) Placement {
	one := Placement{Status: string(p.Status), Why: shown(p.Why)}
	switch {
	case p.Healing != nil:
		h := *p.Healing
		h.Fixed = p.Status == doctor.Written && !isIll(h.Case)
		one.Server = healed(h.Case, &h)
	case p.Case != nil:
		one.Server = full(p.Case)
	}
	one.Server.Server, one.Client, one.At, one.Scope = "", p.Client, clean(p.File), ""
	if p.Diff != nil && (in.DryRun || p.Status == doctor.Differs) {
		one.Diff = shownDiff(p.Diff.Text)
	}
	one.Entry, one.Runs, one.Undo, one.Reload = nil, "", nil, ""
	switch p.Status {
	case doctor.Written, doctor.Unchanged:
		one.Entry = shownValue(p.Entry)
	case doctor.Differs:
		one.Why += "; replace: true replaces it"
	}
	if p.Undo != "" {
		one.Undo, one.Reload = []string{p.Undo}, p.Reload
	}
	return one
}

func (o *ConfigureOutput) text() string {
	var p page
	p.line("%s", o.Verdict)
	p.notes(o.Notes)
	for i := range o.Clients {
		one := &o.Clients[i]
		how := one.Status
		if one.State != "" {
			how += ", " + one.State
		}
		p.line("%s: %s, %s", one.Client, how, one.At)
		if one.Why != "" {
			p.line("  %s", one.Why)
		}
		one.details(&p)
		p.WriteString(one.Diff)
	}
	if len(o.Tools) > 0 {
		p.line("tools: %s", strings.Join(o.Tools, ", "))
	}
	o.lines(&p)
	return p.String()
}
