package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// Values of variables are never read here. What is written into a file is a
// reference by name, and only where the client replaces it.

// reference spells a reference to a variable of the environment as the client
// does in a part of an entry; "" if it has no way.
func (t *treatment) reference(part, name string) string {
	if t.client.ID == "kiro" { // wants each name approved in its settings
		return ""
	}
	return t.client.Refer(part, clientconfig.Reference{Name: name})
}

// help is the page of the registry for a variable, which the finding gets, too.
func (t *treatment) help(name string) string {
	for _, v := range t.variables {
		if v.Name == name && v.Help != "" {
			if t.f.Help == "" {
				t.f.Help = v.Help
			}
			return v.Help
		}
	}
	return t.f.Help
}

// setVariable says what a person has to do about a variable that the server misses.
func (t *treatment) setVariable(name string) Fix {
	entry := fmt.Sprintf("under %q of %q in %s", t.client.Entry.Env, t.c.Name, t.c.At.File)
	switch kept := withholds(t.client, &environ{os: t.os}, name, ""); {
	case t.client.Entry.EnvFrom != "" && kept:
		return t.set(name, "", "in your environment and name it under %q of %q in %s", t.client.Entry.EnvFrom, t.c.Name, t.c.At.File)
	case t.client.Entry.Env != "" && kept: // nothing else reaches its servers
		return t.set(name, "", "%s", entry)
	case t.client.Entry.Env != "" && t.client.GUI:
		where, run := t.forClient(name)
		return t.set(name, run, "%s, or %s", entry, where)
	}
	where, run := t.forClient(name)
	return t.set(name, run, "%s", where)
}

// forClient says where a variable is set for the client itself, and the line that
// does it, if there is one.
func (t *treatment) forClient(name string) (where, run string) {
	switch {
	case t.desktop && t.os.IsWindows():
		return fmt.Sprintf("for your account in the settings of Windows, and start %s again", t.client.Name), ""
	case t.desktop && t.os == "darwin":
		if isPlainName(name) && t.lost != nil && t.lost(name) {
			run = fmt.Sprintf(`launchctl setenv %s "$%s"`, name, name) // with the value that the terminal has
		}
		return fmt.Sprintf("for all apps by launchctl setenv, and start %s again", t.client.Name), run
	case t.desktop:
		return "for all apps in ~/.config/environment.d, and sign in to the desktop again", ""
	case t.client.GUI:
		return fmt.Sprintf("in the environment that %s is started with", t.client.Name), ""
	case isPlainName(name) && !t.os.IsWindows():
		run = "export " + name + "="
	}
	return fmt.Sprintf("before %s starts", t.client.Name), run
}

// isPlainName: a shell can set a variable of this name. Others come from entries that
// list what they want, and a line with one would be another line.
func isPlainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
}

// set is a fix for a person, with what else is known about the variable.
func (t *treatment) set(name, run, format string, args ...any) Fix {
	does := "set " + name
	if name == "" {
		does = "set the variable that the server asks for"
	}
	does += " " + fmt.Sprintf(format, args...)
	if file := t.dotenvWith(name); file != "" {
		does += fmt.Sprintf("; it stands in %s, which %s does not read", file, t.client.Name)
	}
	if help := t.help(name); help != "" {
		does += "; get one at " + help
	}
	return never("set_variable", run, "%s", does)
}

// dotenvWith is the .env file that gives a variable a value, "" if none does.
func (t *treatment) dotenvWith(name string) string {
	if t.dotenv == nil {
		return ""
	}
	for _, d := range t.dotenv() {
		if d.Name == name && !d.Empty {
			return d.File
		}
	}
	return ""
}

func unsetVariable(_ context.Context, t *treatment) []Fix {
	name := t.f.pieces.Variable
	var fixes []Fix
	for _, other := range nearNames(name, t.names) {
		var edits []Edit
		for _, p := range parts(t.server) {
			for _, r := range t.client.References(p.kind, p.Text) {
				if spelt := t.reference(p.kind, other); r.Expanded && r.Source == clientconfig.Environment && r.Name == name && spelt != "" {
					edits = append(edits, t.setValue(p.Value, strings.ReplaceAll(p.Text, r.Text, spelt)))
					break
				}
			}
		}
		if len(edits) > 0 {
			does := fmt.Sprintf("refer to %s, which is set, instead of %s", other, name)
			fixes = append(fixes, t.fix("reference_other_name", Ask, does, edits...)...)
		}
	}
	// The client looks for it in its own environment, so the entry cannot set it.
	where, run := t.forClient(name)
	return or(fixes, t.set(name, run, "%s", where))
}

// foreignReference respells references of other clients, or names the variable in
// the client's list of those that it hands on.
func foreignReference(_ context.Context, t *treatment) []Fix {
	var edits []Edit
	var names []string
	for _, p := range parts(t.server) {
		text, changed := p.Text, false
		for _, r := range t.client.References(p.kind, p.Text) {
			if r.Expanded || r.Source != clientconfig.Environment {
				continue
			}
			if spelt := t.reference(p.kind, r.Name); spelt != "" {
				text, changed = strings.ReplaceAll(text, r.Text, spelt), true
				names = append(names, r.Name)
			} else if p.kind == "env" && r.Text == p.Text && r.Name == p.name && t.client.Entry.EnvFrom != "" {
				edits = append(edits, t.handOn(p.name), t.removeEnv(p))
				names = append(names, r.Name)
			}
		}
		if changed {
			edits = append(edits, t.setValue(p.Value, text))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(edits) > 0 {
		does := fmt.Sprintf("write the reference to %s as %s does", strings.Join(names, ", "), t.client.Name)
		if fixes := t.fix("respell_reference", Auto, does, edits...); fixes != nil {
			return fixes
		}
	}
	return []Fix{never("set_variable", "", "%s does not replace variables here: write the value itself at %s, or start the server with a script that knows it", t.client.Name, t.where())}
}

// handOn adds a variable to the list of those that the client hands on by name.
func (t *treatment) handOn(name string) Edit {
	path := under(t.server.Path, t.client.Entry.EnvFrom)
	return t.editServer(path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		var names []string
		for _, v := range s.EnvFrom {
			names = append(names, v.Text)
		}
		if slices.Contains(names, name) {
			return f, nil
		}
		return f.SetTexts(under(s.Path, s.Client.Entry.EnvFrom), append(names, name))
	})
}

func (t *treatment) removeEnv(p part) Edit {
	return t.editServer(p.Path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if now, ok := envOf(s, p.name); !ok || now != p.Text {
			return nil, errOtherNow
		}
		if len(s.Env) == 1 { // an empty object says nothing
			return f.Remove(p.Path[:len(p.Path)-1])
		}
		return f.Remove(envPath(s, p.name))
	})
}

func placeholder(_ context.Context, t *treatment) []Fix {
	name := t.f.pieces.Variable
	does := fmt.Sprintf("put your own value at %s", t.where())
	if name != "" {
		does = fmt.Sprintf("put your own value for %s at %s", name, t.where())
	}
	if help := t.help(name); help != "" {
		does += "; get one at " + help
	}
	return []Fix{never("set_variable", "", "%s", does)}
}

func plainSecret(_ context.Context, t *treatment) []Fix {
	name := t.f.pieces.Variable
	if name == "" {
		name = "TOKEN"
	}
	spelt := t.reference("env", name)
	if spelt == "" {
		return []Fix{never("by_hand", "", "keep this entry in a file of your own rather than in the project: %s cannot refer to a variable there", t.client.Name)}
	}
	return []Fix{never("by_hand", "", "write %s at %s and set %s in your environment: this file is shared with others", spelt, t.where(), name)}
}

// missingVariable is a server that says itself which variable it wants.
func missingVariable(_ context.Context, t *treatment) []Fix {
	name := t.f.pieces.Variable
	if name == "" || t.server == nil {
		return []Fix{t.setVariable(name)}
	}
	_, inEntry := envOf(t.server, name)
	inEnvironment := slices.Contains(t.names, name)
	var pass []Edit // into the container, if there is one
	if d, ok := t.dockerRun(); ok && !d.passes(name) {
		pass = []Edit{t.setLine(d.withLast("-e", name)...)}
	}
	var fixes []Fix
	switch {
	case pass != nil && (inEntry || inEnvironment && t.client.Inherits == "all"):
		fixes = append(fixes, t.fix("docker_pass_env", Ask, fmt.Sprintf("add -e %s, so that docker passes it on into the container", name), pass...)...)
	case inEnvironment && !inEntry:
		fixes = append(fixes, t.refer("reference_same_name", name, name, pass)...)
	}
	if !inEntry {
		fixes = append(fixes, t.renamed(name)...)
		for _, other := range nearNames(name, t.names) {
			if other != name {
				fixes = append(fixes, t.refer("reference_other_name", name, other, pass)...)
			}
		}
	}
	return or(fixes, t.setVariable(name))
}

// refer gives the server a variable by reference to one of the environment.
func (t *treatment) refer(fix, name, other string, more []Edit) []Fix {
	does := fmt.Sprintf("hand %s of your environment on to the server", other)
	if other != name {
		does = fmt.Sprintf("hand %s of your environment on to the server as %s", other, name)
	}
	if spelt := t.reference("env", other); spelt != "" {
		return t.fix(fix, Ask, does+", as "+spelt, append([]Edit{t.setEnv(name, "", spelt)}, more...)...)
	}
	if other == name && t.client.Entry.EnvFrom != "" {
		return t.fix(fix, Ask, does+", by naming it under "+t.client.Entry.EnvFrom, append([]Edit{t.handOn(name)}, more...)...)
	}
	return nil
}

// renamed gives a variable of the entry the name that is asked for, where one has
// a name like it, or one that is known to be mistaken for it.
func (t *treatment) renamed(name string, mistaken ...string) []Fix {
	var have []string
	for _, p := range t.server.Env {
		have = append(have, p.Name.Text)
	}
	var fixes []Fix
	others := slices.DeleteFunc(slices.Clone(mistaken), func(m string) bool { return !slices.Contains(have, m) })
	for _, near := range nearNames(name, have) {
		if near != name && !slices.Contains(others, near) {
			others = append(others, near)
		}
	}
	for _, other := range others {
		edit := t.editServer(envPath(t.server, other), func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
			return f.Rename(envPath(s, other), name)
		})
		fixes = append(fixes, t.fix("rename_variable", Ask, fmt.Sprintf("rename %s to %s, which the server asks for", other, name), edit)...)
	}
	return fixes
}

// authFailed: nobody but the user has the right credentials. What can be seen is a
// variable that the registry knows by another name.
func authFailed(_ context.Context, t *treatment) []Fix {
	var fixes []Fix
	set := func(name string) bool { _, there := envOf(t.server, name); return there }
	if t.server != nil {
		for _, v := range t.variables {
			if v.Required && !v.Given(set, argvOf(t.server)) {
				t.help(v.Name)
				fixes = append(fixes, t.renamed(v.Name, v.Mistaken...)...)
			}
		}
	}
	does, run := "sign in to the server again", ""
	switch name, header := t.secretVariable(), t.secretHeader(); {
	case t.server == nil && t.evidence().HTTPStatus != 0:
		does = "send it a token that it accepts: --header 'Authorization: Bearer TOKEN'"
	case header != nil:
		does = fmt.Sprintf("renew the value of the header %q at %s", header.Name.Text, place(header.Value.At))
	case t.evidence().Challenge != "" && t.server != nil && t.server.URL.Path != nil:
		does = fmt.Sprintf("sign in to %q through %s", t.c.Name, t.client.Name)
		if t.client.SignIn != "" {
			run = t.typed(t.client.SignIn, t.c.Name)
		}
	case name != "":
		does = fmt.Sprintf("renew the value of %s", name)
		t.help(name)
	}
	if t.f.Help == "" {
		t.f.Help = t.page
	}
	if t.f.Help != "" {
		does += "; see " + t.f.Help
	}
	return or(fixes, never("sign_in", run, "%s", does))
}

// secretHeader is the header of the entry that holds what was not accepted, or nil:
// a client that was given one does not sign in by itself.
func (t *treatment) secretHeader() *clientconfig.Pair {
	if t.server == nil || t.evidence().HTTPStatus == 0 {
		return nil
	}
	i := slices.IndexFunc(t.server.Headers, func(h clientconfig.Pair) bool { return secret.Name(h.Name.Text) })
	if i < 0 {
		return nil
	}
	return &t.server.Headers[i]
}

// secretVariable is the variable of the entry that most likely holds what was not
// accepted.
func (t *treatment) secretVariable() string {
	for _, v := range t.variables {
		if _, there := envOf(t.server, v.Name); v.Secret && there {
			return v.Name
		}
	}
	if t.server != nil {
		for _, p := range t.server.Env {
			upper := strings.ToUpper(p.Name.Text)
			for _, word := range []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PAT"} {
				if strings.HasSuffix(upper, word) {
					return p.Name.Text
				}
			}
		}
	}
	return ""
}
