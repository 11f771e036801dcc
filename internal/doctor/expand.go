package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// start is what the client would make of an entry, and what is wrong with the
// variables in it.
func (d *Doctor) start(s *clientconfig.Server, f *clientconfig.File) (Start, []Finding) {
	x, as := d.expansion(s, f)
	x.sealed = s.EnvFile.Text != "" && ofProject(s, f) && !d.mayOpen(s, f, x)
	st := Start{Transport: s.Transport, Dir: d.folder(as, s, x)}
	if s.URL.Text != "" {
		st.URL = x.expand("url", "", s.URL)
		st.Header = x.headers()
	} else if s.Command.Text != "" {
		st.Command = []string{x.expand("command", "", s.Command)}
		for _, a := range s.Args {
			st.Command = append(st.Command, x.expand("args", "", a))
		}
		st.Env = x.variables(d.environment(as)).list
		st.anywhere = s.Cwd.Text == "" && !ofProject(s, f) && s.Scope != "local" && !as.GUI && d.System.Project != ""
	}
	st.refers = x.refers
	return st, x.found
}

// expansion of an entry, and the client in whose environment it is started.
func (d *Doctor) expansion(s *clientconfig.Server, f *clientconfig.File) (*expansion, *clientconfig.Client) {
	client := s.Client
	if client == nil {
		client = f.Client
	}
	as := cmp.Or(d.As, client)
	x := &expansion{doctor: d, client: client, as: as, server: s, env: d.ofClient(as), dir: d.home()}
	if d.System.Project != "" && (ofProject(s, f) || s.Scope == "local") {
		x.dir = d.System.Project
	}
	return x, as
}

// folder is where a server is started: where its entry says, and else where the client
// works, as far as that is ours to follow. An entry of a project belongs to that folder,
// and so does one that the user has made for it. Any other of the user's own is started
// in the home folder, though a client in a terminal would start it in the project: a
// project can steer many a program that is started in it (npx obeys the .npmrc there,
// python -m prefers a module that lies there, and either may stand behind any number of
// other programs), and the client has asked whether the folder can be trusted. We have
// not.
func (d *Doctor) folder(c *clientconfig.Client, s *clientconfig.Server, x *expansion) string {
	if s.Cwd.Text == "" {
		return x.dir
	}
	at := site{environ: *x.env, dir: x.dir}
	if d.System.Project != "" && !c.GUI {
		at.dir = d.System.Project
	}
	return at.absolute(x.expand("cwd", "", s.Cwd))
}

// expansion replaces the variables of one entry as its client does, and notes
// what is wrong with them.
type expansion struct {
	doctor *Doctor
	client *clientconfig.Client
	as     *clientconfig.Client // in whose environment it is started
	server *clientconfig.Server
	env    *environ // of as
	dir    string   // what the paths in it are relative to
	found  []Finding
	refers []string // what was looked up, as NAME=value
	sealed bool     // the file of variables is not opened
}

// expand is a value as the client hands it on. part says where it stands in the
// entry, and variable is its name if it is one of the entry's own.
func (x *expansion) expand(part, variable string, v clientconfig.Value) string {
	var out strings.Builder
	rest := 0
	for _, r := range x.client.References(part, v.Text) {
		out.WriteString(v.Text[rest:r.Start])
		rest = r.Start + len(r.Text)
		out.WriteString(x.resolve(part, variable, v, r))
	}
	out.WriteString(v.Text[rest:])
	x.look(part, variable, v)
	return out.String()
}

func (x *expansion) resolve(part, variable string, v clientconfig.Value, r clientconfig.Reference) string {
	if !r.Expanded {
		x.foreign(part, variable, v, r)
		return r.Text
	}
	switch r.Source {
	case clientconfig.Asked, clientconfig.Secret:
		x.asked(v, r)
		return r.Text
	case clientconfig.Builtin:
		switch r.Name {
		case "workspaceFolder":
			return x.doctor.System.Project
		case "userHome":
			return x.doctor.home()
		}
		x.asked(v, r)
		return r.Text
	}
	if value, ok := x.env.lookup(r.Name); ok {
		x.refers = append(x.refers, r.Name+"="+value)
		return value
	}
	if r.HasDefault {
		x.refers = append(x.refers, r.Name+"="+r.Default)
		return r.Default
	}
	x.unset(part, variable, v, r)
	if x.client.Variables.Unset == "kept" {
		return r.Text
	}
	return ""
}

// unset notes a reference to a variable that the client does not have.
func (x *expansion) unset(part, variable string, v clientconfig.Value, r clientconfig.Reference) {
	if part == "args" && x.own(r.Name) {
		return // the entry sets it, so the server may look it up by itself
	}
	becomes := "nothing stands in its place"
	if x.client.Variables.Unset == "kept" {
		becomes = "the server is given the text " + r.Text
	}
	f := x.finding(kindUnset, part, variable, v, r)
	why := x.doctor.whyUnset(x.as, r.Name)
	if why == "" {
		why = "is not set in the environment of " + x.as.Name
	}
	f.Explanation = fmt.Sprintf("%s %s, so %s.", r.Name, why, becomes)
	x.found = append(x.found, f)
}

// foreign notes a spelling that this client hands on as it is.
func (x *expansion) foreign(part, variable string, v clientconfig.Value, r clientconfig.Reference) {
	if r.Source == clientconfig.Builtin && r.Form == "{{NAME}}" {
		return // a template of the server's own
	}
	if part == "args" && (x.own(r.Name) || isShell(x.server.Command.Text)) {
		return // the server or the shell replaces it
	}
	f := x.finding(kindForeignReference, part, variable, v, r)
	if part == "args" && (r.Form == "$NAME" || r.Form == "%NAME%") {
		f.Severity = Warning // it may be meant as it stands
	}
	if r.Source == clientconfig.Environment {
		f.problem.Want = x.client.Refer(part, r)
	}
	f.Explanation = fmt.Sprintf("%s does not replace %s here; the server is given these very characters.", x.client.Name, r.Text)
	if f.problem.Want != "" {
		f.Explanation = fmt.Sprintf("%s does not know the spelling %s; it writes %s.", x.client.Name, r.Text, f.problem.Want)
	}
	x.found = append(x.found, f)
}

// asked notes what only the running client knows.
func (x *expansion) asked(v clientconfig.Value, r clientconfig.Reference) {
	f := x.finding(kindAsked, "", "", v, r)
	f.Severity = Warning
	f.Explanation = fmt.Sprintf("%s asks a person for %s or keeps it in a store of its own, so the server cannot be started from here.", x.client.Name, r.Name)
	x.found = append(x.found, f)
}

// finding is what all findings about a reference have in common. What stands in
// the environment of a server or in a header may be more than it needs; it is a
// cause only if the server then fails. Nothing works with a command, an argument
// or an address that is not there.
func (x *expansion) finding(kind, part, variable string, v clientconfig.Value, r clientconfig.Reference) Finding {
	f := finding(AtVariables, kind, Broken, place(v.At))
	if part == "env" || part == "headers" {
		f.Severity = Warning
	}
	f.pieces.Variable = r.Name
	f.entryVariable = variable
	f.problem = &clientconfig.Problem{Kind: clientconfig.Kind(kind), At: v.At, Path: v.Path, Server: x.server.Name.Text, Have: r.Text}
	if r.HasDefault {
		f.problem.Have = "${" + r.Name + ":-…}" // the default may be a secret
	}
	f.Evidence = []string{where(part, variable) + " refers to " + r.Name}
	return f
}

// where names a part of an entry in words.
func where(part, variable string) string {
	switch part {
	case "args":
		return "an argument"
	case "env":
		return "the variable " + variable
	case "headers":
		return "the header " + variable
	case "":
		return "the entry"
	}
	return "the " + part
}

// own reports whether the entry sets a variable itself.
func (x *expansion) own(name string) bool {
	return slices.ContainsFunc(x.server.Env, func(p clientconfig.Pair) bool { return x.env.same(p.Name.Text, name) }) ||
		slices.ContainsFunc(x.server.EnvFrom, func(v clientconfig.Value) bool { return x.env.same(v.Text, name) })
}

// headers are what the client sends along.
func (x *expansion) headers() []string {
	var out []string
	for _, h := range x.server.Headers {
		out = append(out, h.Name.Text+": "+x.expand("headers", h.Name.Text, h.Value))
	}
	for _, h := range x.server.HeadersFrom {
		value, ok := x.env.lookup(h.Value.Text)
		if !ok {
			x.unset("headers", h.Name.Text, h.Value, named(h.Value))
			continue
		}
		if h.Name.Text == "Authorization" && x.client.Entry.BearerFrom != "" && !strings.Contains(value, " ") {
			value = "Bearer " + value
		}
		out = append(out, h.Name.Text+": "+value)
	}
	return out
}

// named is a variable that stands in an entry by its name alone.
func named(v clientconfig.Value) clientconfig.Reference {
	return clientconfig.Reference{Text: v.Text, Name: v.Text, Expanded: true}
}

// variables is an environment with those of the entry.
func (x *expansion) variables(e *environ) *environ {
	for _, v := range x.server.EnvFrom {
		if value, ok := x.env.lookup(v.Text); ok {
			e.set(v.Text, value)
		} else {
			x.unset("env", v.Text, v, named(v))
		}
	}
	for _, pair := range x.envFile() {
		e.set(pair[0], pair[1])
	}
	for _, p := range x.server.Env {
		value := x.expand("env", p.Name.Text, p.Value)
		if own, there := e.lookup("PATH"); there && x.as.AppendsPath && strings.EqualFold(p.Name.Text, "PATH") {
			value = own + e.os.ListSeparator() + value
		}
		e.set(p.Name.Text, value)
	}
	return e
}
