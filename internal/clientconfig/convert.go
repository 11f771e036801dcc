package clientconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An entry that was copied from another client says the same in other names, and in
// other shapes: one list for a command and its arguments, one text for a list, an object
// for both. Convert reads it whatever client it was written for, and writes it for its own.

// A role is what a part of an entry is for.
type role string

const (
	asCommand     role = "command"
	asArgs        role = "args"
	asEnv         role = "env"
	asEnvFrom     role = "envFrom"
	asEnvFile     role = "envFile"
	asCwd         role = "cwd"
	asURL         role = "url"
	asHeaders     role = "headers"
	asHeadersFrom role = "headersFrom"
	asBearerFrom  role = "bearerFrom"
	asType        role = "type"
	asEnabled     role = "enabled"
	asDisabled    role = "disabled"
)

// anyNames are the names of all clients, and a few that people write. A client's own
// names come first.
var anyNames = map[string]role{
	"command": asCommand, "cmd": asCommand,
	"args": asArgs, "arguments": asArgs,
	"env": asEnv, "envs": asEnv, "environment": asEnv,
	"env_vars": asEnvFrom, "env_keys": asEnvFrom,
	"envFile": asEnvFile,
	"cwd":     asCwd, "working_directory": asCwd, "workingDirectory": asCwd,
	"url": asURL, "uri": asURL, "serverUrl": asURL, "httpUrl": asURL,
	"headers": asHeaders, "http_headers": asHeaders, "requestOptions": asHeaders,
	"env_http_headers": asHeadersFrom, "bearer_token_env_var": asBearerFrom,
	"type": asType, "transport": asType, "transportType": asType,
	"enabled": asEnabled, "disabled": asDisabled,
}

// roles are the names of one client; of one with dots, the first part.
func (e *Entry) roles() map[string]role {
	own := make(map[string]role)
	for r, name := range map[role]string{
		asCommand: e.Command, asArgs: e.Args, asEnv: e.Env, asEnvFrom: e.EnvFrom, asEnvFile: e.EnvFile, asCwd: e.Cwd,
		asHeaders: e.Headers, asHeadersFrom: e.HeadersFrom, asBearerFrom: e.BearerFrom, asType: e.Type,
		asEnabled: e.Enabled, asDisabled: e.Disabled,
	} {
		if name, _, _ = strings.Cut(name, "."); name != "" {
			own[name] = r
		}
	}
	for _, u := range e.URLs {
		own[u.Name] = asURL
	}
	return own
}

// A draft is what an entry was meant to say.
type draft struct {
	s Server
	// at is where each part stands, below the entry.
	at map[role]Path
	// clear: there is one way to read it.
	clear bool
}

// Convert returns the file with the entry at a path in the form that the client
// reads. Values that can stay keep their bytes, and so do parts we know nothing about.
// clear is false if the entry can be read in another way, too. What the client cannot say,
// or nobody can know, is refused with [ErrEdit].
func (f *File) Convert(path Path) (g *File, clear bool, err error) {
	n := f.doc.root.find(path)
	if n == nil || n.kind != object {
		return nil, false, f.refusal(path, "the entry is no object")
	}
	if n.borrowed {
		return nil, false, f.refusal(path, "the entry is shared with another")
	}
	d, err := f.Client.read(n)
	if err != nil {
		return nil, false, f.refusal(path, "%v", err)
	}
	d.s.Name.Text = f.nameOf(path, n)
	want, err := f.Client.rewritten(n, d)
	if err != nil {
		return nil, false, f.refusal(path, "%v", err)
	}
	g, err = f.rewrite(path, d, want)
	return g, d.clear, err
}

// nameOf is the name of the server at a path: that of the member, or what the entry of a
// list says.
func (f *File) nameOf(path Path, n *node) string {
	if parent := f.doc.root.find(path[:len(path)-1]); parent != nil && parent.kind == list {
		if name := n.get("name"); name != nil {
			return name.value
		}
		return ""
	}
	return path[len(path)-1]
}

// read makes sense of an entry, whatever client it was written for.
func (c *Client) read(n *node) (*draft, error) {
	d := &draft{at: make(map[role]Path), clear: true}
	parts := make(map[role]*node)
	own := c.Entry.roles()
	take := func(r role, value *node, at Path) error {
		if value.kind == null {
			return nil
		}
		if parts[r] != nil {
			return fmt.Errorf("%s and %s say the same", d.at[r], at)
		}
		parts[r], d.at[r] = value, at
		return nil
	}
	for _, m := range n.members {
		if n.member(m.name).start != m.start {
			return nil, fmt.Errorf("%q is there twice", m.name)
		}
		r, known := own[m.name]
		if !known && !slices.Contains(c.Entry.Also, m.name) {
			r, known = anyNames[m.name]
		}
		var err error
		switch {
		case !known:
		case r == asHeaders && m.name == "requestOptions":
			if inner := m.value.get("headers"); inner != nil {
				err = take(r, inner, Path{m.name, "headers"})
			}
		case m.name == "transport" && m.value.kind == object: // all of it one level down
			for _, inner := range m.value.members {
				if r, known := anyNames[inner.name]; known && err == nil {
					err = take(r, inner.value, Path{m.name, inner.name})
				}
			}
		default:
			err = take(r, m.value, Path{m.name})
		}
		if err != nil {
			return nil, err
		}
	}
	return d, d.fill(c, parts)
}

// fill reads the parts of an entry.
func (d *draft) fill(c *Client, parts map[role]*node) error {
	s := &d.s
	words, err := d.commandLine(parts)
	if err != nil {
		return err
	}
	if len(words) > 0 {
		s.Command.Text, s.Args = words[0], values(words[1:])
	}
	for r, to := range map[role]*Value{asCwd: &s.Cwd, asEnvFile: &s.EnvFile, asURL: &s.URL} {
		if n := parts[r]; n != nil {
			if n.kind != text {
				return fmt.Errorf("%s is %s", d.at[r], n.kind)
			}
			to.Text = n.value
		}
	}
	for r, to := range map[role]*[]Pair{asEnv: &s.Env, asHeaders: &s.Headers, asHeadersFrom: &s.HeadersFrom} {
		if *to, err = d.pairs(r, parts[r], *to); err != nil {
			return err
		}
	}
	if n := parts[asEnvFrom]; n != nil {
		names, err := scalars(n)
		if err != nil {
			return fmt.Errorf("%s: %w", d.at[asEnvFrom], err)
		}
		s.EnvFrom = values(names)
	}
	if n := parts[asBearerFrom]; n != nil {
		if n.kind != text || c.Entry.BearerFrom == "" {
			return fmt.Errorf("%s has no way to take a token from a variable", c.Name)
		}
		delete(d.at, asBearerFrom) // it stays as it is
	}
	for r, off := range map[role]string{asEnabled: "false", asDisabled: "true"} {
		if n := parts[r]; n != nil {
			if n.kind != boolean {
				return fmt.Errorf("%s is %s", d.at[r], n.kind)
			}
			s.Disabled = s.Disabled || strings.EqualFold(n.value, off)
		}
	}
	return d.transport(c, parts[asType])
}

// commandLine puts the program and its arguments together, from any of the ways in which
// clients write them.
func (d *draft) commandLine(parts map[role]*node) (words []string, err error) {
	switch n := parts[asCommand]; {
	case n == nil:
	case n.kind == list:
		if words, err = scalars(n); err != nil {
			return nil, err
		}
		if len(words) == 0 {
			return nil, errors.New("the command is an empty list")
		}
	case n.kind == object && n.get("path") != nil && n.get("path").kind == text:
		words = []string{n.get("path").value}
		for r, name := range map[role]string{asArgs: "args", asEnv: "env"} {
			inner := n.get(name)
			if inner == nil || inner.kind == null {
				continue
			}
			if parts[r] != nil {
				return nil, fmt.Errorf("the entry has %q twice", name)
			}
			parts[r], d.at[r] = inner, append(slices.Clone(d.at[asCommand]), name)
		}
	case n.kind == text && parts[asArgs] == nil && isCommandLine(n.value):
		var clear, ok bool
		if words, clear, ok = SplitWords(n.value); !ok {
			return nil, errors.New("the command has a quote that does not close")
		}
		d.clear = d.clear && clear
	case n.kind == text && n.value != "":
		words = []string{n.value}
	default:
		return nil, fmt.Errorf("the command is %s", n.kind)
	}
	n := parts[asArgs]
	if n == nil {
		return words, nil
	}
	if len(words) == 0 {
		return nil, errors.New("there are arguments and no command")
	}
	if n.kind == text {
		args, clear, ok := SplitWords(n.value)
		if !ok && strings.TrimSpace(n.value) != "" {
			return nil, errors.New("the arguments have a quote that does not close")
		}
		d.clear = d.clear && clear
		return append(words, args...), nil
	}
	args, err := scalars(n)
	return append(words, args...), err
}

// pairs reads an object of texts, or a list of NAME=value.
func (d *draft) pairs(r role, n *node, to []Pair) ([]Pair, error) {
	switch {
	case n == nil:
	case n.kind == object:
		for _, m := range n.members {
			if m.value.kind != text && m.value.kind != number && m.value.kind != boolean {
				return nil, fmt.Errorf("%s of %s is %s", m.name, d.at[r], m.value.kind)
			}
			to = append(to, Pair{Value{Text: m.name}, Value{Text: m.value.value}})
		}
	case n.kind == list && r == asEnv:
		for _, e := range n.elements {
			name, value, ok := strings.Cut(e.value, "=")
			if e.kind != text || !ok || name == "" {
				return nil, fmt.Errorf("%s is a list of something else than NAME=value", d.at[r])
			}
			to = append(to, Pair{Value{Text: name}, Value{Text: value}})
		}
		d.clear = false
	default:
		return nil, fmt.Errorf("%s is %s", d.at[r], n.kind)
	}
	return to, nil
}

// transport finds out how the server is reached.
func (d *draft) transport(c *Client, typ *node) error {
	s := &d.s
	if typ != nil && typ.kind == text {
		s.Type.Text = typ.value
	}
	switch said := anyTransport(s.Type.Text); {
	case s.Command.Text == "" && s.URL.Text == "":
		return errors.New("there is neither a command nor a URL")
	case s.Command.Text != "" && s.URL.Text != "":
		return errors.New("there are a command and a URL")
	case s.URL.Text == "":
		s.Transport = Stdio
	case said == HTTP || said == SSE || said == WebSocket:
		s.Transport = said
	default:
		if at := d.at[asURL]; at[len(at)-1] == "httpUrl" {
			s.Transport = HTTP
		}
		for _, u := range c.Entry.URLs {
			if at := d.at[asURL]; len(at) == 1 && at[0] == u.Name && u.Transport != Unknown {
				s.Transport = u.Transport
			}
		}
	}
	return nil
}

// anyTransport reads the spellings of all clients.
func anyTransport(typ string) Transport {
	switch plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(typ)); plain {
	case "stdio", "local":
		return Stdio
	case "http", "streamablehttp", "streamable":
		return HTTP
	case "sse", "httpsse":
		return SSE
	case "ws", "websocket":
		return WebSocket
	}
	return Unknown // "remote" among others
}

// rewritten is what the client has to read in the place of a draft: the parts of which
// it is made, and those it cannot do without.
func (c *Client) rewritten(n *node, d *draft) (Object, error) {
	e := &c.Entry
	if e.Apart && d.s.URL.Text != "" && (len(d.s.Env) > 0 || len(d.s.EnvFrom) > 0 || d.s.Cwd.Text != "") ||
		e.Apart && d.s.URL.Text == "" && (len(d.s.Headers) > 0 || len(d.s.HeadersFrom) > 0) {
		return nil, errors.New("parts of a command and of a URL stand together")
	}
	want, err := c.entry(&d.s)
	if err != nil {
		return nil, err
	}
	if typ := n.get(e.Type); e.Type != "" && typ != nil && typ.kind == text {
		if t, known := e.transport(typ.value); known && t == d.s.speaks() {
			// Perhaps in another spelling, or where it could be left out.
			want = append(slices.DeleteFunc(want, func(m Member) bool { return m.Name == e.Type }), Member{e.Type, typ.value})
		}
	}
	switch there := func(name string) bool { return name != "" && n.get(name) != nil }; {
	case d.s.Disabled && e.Enabled != "" && (there(e.Enabled) || e.Disabled == ""):
		want = append(want, Member{e.Enabled, false})
	case d.s.Disabled && e.Disabled != "":
		want = append(want, Member{e.Disabled, true})
	case d.s.Disabled:
		return nil, fmt.Errorf("%s has no way to switch a server off", c.Name)
	}
	return c.complete(want, &d.s, func(name string) bool { return n.get(name) != nil }), nil
}

// complete adds what the client cannot do without and the entry does not have.
func (c *Client) complete(o Object, s *Server, has func(string) bool) Object {
	for _, name := range c.Entry.needs(s) {
		if _, ok := o.find(Path{name}); ok || has(name) {
			continue
		}
		switch name {
		case "name":
			o = append(o, Member{name, s.Name.Text})
		case c.Entry.Enabled:
			o = append(o, Member{name, true})
		case c.Entry.Args:
			o = append(o, Member{name, []string{}})
		default:
			o = append(o, Member{name, ""})
		}
	}
	return o
}

// needs are the names without which the client ignores an entry.
func (e *Entry) needs(s *Server) []string {
	if s.URL.Text != "" || s.URL.Path != nil {
		return e.URLNeeds
	}
	return e.Needs
}

// rewrite makes the entry at a path say what is wanted.
func (f *File) rewrite(path Path, d *draft, want Object) (*File, error) {
	e, own := &f.Client.Entry, f.Client.Entry.roles()
	var err error
	var gone []Path
	for _, r := range slices.Sorted(maps.Keys(d.at)) {
		at := d.at[r]
		if _, ok := want.find(Path{at[0]}); ok && own[at[0]] == r {
			continue // it stays where it is
		}
		name := wantedName(e, r, want)
		switch {
		case len(at) == 1 && name != "" && f.doc.root.find(path.then(name)) == nil:
			if f, err = f.Rename(path.then(at...), name); err != nil {
				return nil, err
			}
		case r == asType && e.Type == "", r == asEnabled || r == asDisabled:
			// Nobody reads it here.
		case len(at) > 1 && at[0] == "command": // goes with the object it stands in
		default:
			gone = append(gone, path.then(at...))
		}
	}
	for _, m := range want {
		_, isObject := m.Value.(Object)
		if n := f.doc.root.find(path.then(m.Name)); n != nil && n.kind == object && !isObject && f.doc.format == TOML {
			if f, err = f.Remove(path.then(m.Name)); err != nil { // a table cannot become a value in its place
				return nil, err
			}
		}
		set := f.become
		if slices.Contains(e.needs(&d.s), m.Name) && f.doc.root.find(path.then(m.Name)) == nil {
			set = f.Set // even if there is nothing in it
		}
		if f, err = set(path.then(m.Name), m.Value); err != nil {
			return nil, err
		}
	}
	for _, at := range gone { // last, since a table of TOML goes with its last key
		if f.doc.root.find(at) == nil {
			continue
		}
		if f, err = f.Remove(at); err != nil {
			return nil, err
		}
		if above := f.doc.root.find(at[:len(at)-1]); len(at) > len(path)+1 && above != nil && above.isNothing() {
			if f, err = f.Remove(at[:len(at)-1]); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// wantedName is the name at the top of an entry under which a part is wanted, "" if it is
// not, or further down.
func wantedName(e *Entry, r role, want Object) string {
	for name, has := range e.roles() {
		if has != r {
			continue
		}
		if v, ok := want.find(Path{name}); ok {
			if _, deeper := v.(Object); deeper && r == asHeaders && strings.Contains(e.Headers, ".") {
				return ""
			}
			return name
		}
	}
	return ""
}

// scalars are the texts of a list. Numbers and truth values count as they are written.
func scalars(n *node) ([]string, error) {
	if n.kind != list {
		return nil, fmt.Errorf("there is %s and no list", n.kind)
	}
	var all []string
	for _, e := range n.elements {
		if e.kind != text && e.kind != number && e.kind != boolean {
			return nil, fmt.Errorf("%s stands in the list", e.kind)
		}
		all = append(all, e.value)
	}
	return all, nil
}

func values(texts []string) []Value {
	all := make([]Value, len(texts))
	for i, t := range texts {
		all[i].Text = t
	}
	return all
}

// SplitWords splits a line as a shell would, as far as quotes go. It is clear if
// there is only one way to read it.
func SplitWords(s string) (words []string, clear, ok bool) {
	clear = !strings.ContainsAny(s, "\"'\\$`*?~|&;<>()\n")
	var word strings.Builder
	inWord := false
	quote := rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, clear, quote == 0 && len(words) > 0
}
