package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
	"github.com/mcpmend/mcpmend/internal/secret"
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
	if s := after.Server(r.Name); s != nil && d.Approvals != nil && d.needsApproval(s, after) {
		// Whoever asked for this very command has seen it.
		if err := d.Approvals.Approve(d.fingerprint(s, after)); err != nil {
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

// placements finds the file of each client that an entry of that scope goes to.
func (d *Doctor) placements(ids []string, scope string) ([]*Placement, error) {
	if scope == "" {
		scope = "user"
	}
	named := len(ids) > 0 && !slices.Contains(ids, "all")
	if !named {
		ids = nil
	}
	for _, id := range ids {
		if clientconfig.ByID(id) == nil {
			return nil, fmt.Errorf("there is no client called %q; 'mcpmend clients' lists them", id)
		}
	}
	var ps []*Placement
	for _, c := range (Which{Clients: ids}).clients() {
		f := d.fileFor(c, scope, named)
		switch {
		case f != nil && slices.ContainsFunc(ps, func(p *Placement) bool { return p.File == f.Path }):
			// Two clients read the same file; one entry is enough for both.
		case f != nil:
			ps = append(ps, &Placement{Client: c.ID, Scope: scope, File: f.Path, Reload: c.Reload, file: f})
		case named:
			return nil, fmt.Errorf("%s has no file of the scope %q here", c.Name, scope)
		}
	}
	if len(ps) == 0 {
		return nil, errors.New("no client was found here; name one with its ID, 'mcpmend clients' lists them")
	}
	return ps, nil
}

// fileFor is the file of a client for a scope: the one that is there, or one that
// would be made. A client that was not named has to be here, which shows in a
// file or a folder of its own.
func (d *Doctor) fileFor(c *clientconfig.Client, scope string, named bool) *clientconfig.File {
	var first *clientconfig.File
	here := named
	for _, place := range c.Files {
		path := d.System.Path(place)
		if path == "" || strings.Contains(filepath.Base(path), "*") {
			continue
		}
		_, err := os.Lstat(path)
		exists := err == nil
		here = here || exists && place.Scope != "project" || d.ownFolder(path, place)
		if place.Scope != scope {
			continue
		}
		if exists {
			return clientconfig.Open(path, c, d.System.Project, place)
		}
		if first == nil {
			first = clientconfig.New(path, c, d.System.Project, place)
		}
	}
	if !here {
		return nil
	}
	return first
}

// ownFolder reports whether the folder of a file is there and is not one that
// everybody has.
func (d *Doctor) ownFolder(path string, place clientconfig.Place) bool {
	dir := filepath.Dir(path)
	if place.Scope == "project" || dir == d.System.Project || dir == d.System.Path(clientconfig.Place{Path: "~"}) {
		return false
	}
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
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
		decline(Declined, "the file has to be mended first: "+p.file.Problems[i].String())
		return
	}
	old := p.file.Server(r.Name)
	after, err := p.file.Replace(s)
	if err != nil {
		decline(Declined, plainError(err))
		return
	}
	p.show(after, r)
	if old != nil && sameServer(old, after.Server(r.Name)) {
		p.Diff = nil
		decline(Unchanged, "")
		return
	}
	draft := NewDraft(p.file, after, r.Values)
	if draft == nil {
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

// server turns a request into an entry in no client's words.
func (r *ConfigureRequest) server() (*clientconfig.Server, error) {
	if r.Name == "" || strings.ContainsFunc(r.Name, func(c rune) bool { return c < ' ' }) {
		return nil, errors.New("a server needs a name")
	}
	if strings.HasPrefix(r.Name, "-") {
		return nil, errors.New("the name of a server cannot begin with a dash: on a command line it would be a flag")
	}
	given := 0
	for _, there := range []bool{r.Package != "", r.URL != "", len(r.Command) > 0} {
		if there {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("give one of a package, a URL and a command")
	}
	s := &clientconfig.Server{Name: text(r.Name), Transport: r.Transport}
	var err error
	if s.Env, err = r.variables(); err != nil {
		return nil, err
	}
	for _, h := range r.Headers {
		name, value, ok := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		if !ok || r.URL == "" {
			return nil, errors.New("headers are for URLs, each as 'Name: value'")
		}
		if secret.Args([]string{"--header", h})[1] != h {
			return nil, fmt.Errorf("the header %s would hold a secret in clear: write ${NAME} for a variable that has it", name)
		}
		s.Headers = append(s.Headers, clientconfig.Pair{Name: text(strings.TrimSpace(name)), Value: text(value)})
	}
	switch {
	case r.URL != "":
		u, err := url.Parse(r.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("a URL begins with http:// or https:// and has a host")
		}
		if len(r.Args) > 0 || len(s.Env) > 0 {
			return nil, errors.New("a URL takes no arguments and no variables; send a header")
		}
		s.URL = text(r.URL)
		return s, nil
	case r.Package != "":
		err = r.runPackage(s)
	default:
		s.Command, s.Args = text(r.Command[0]), texts(append(slices.Clone(r.Command[1:]), r.Args...))
	}
	if err != nil {
		return nil, err
	}
	words := argvOf(s)
	for i, shown := range secret.Args(words) {
		if shown != words[i] {
			return nil, fmt.Errorf("argument %d looks like a secret: name a variable with it under secrets, or write ${NAME}", i)
		}
	}
	return s, nil
}

// variables are those of the request, a secret as a reference to itself.
func (r *ConfigureRequest) variables() ([]clientconfig.Pair, error) {
	var env []clientconfig.Pair
	for _, e := range r.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !variableName().MatchString(name) {
			return nil, errors.New("a variable is written as NAME=value")
		}
		if secret.Args([]string{e})[0] != e {
			return nil, fmt.Errorf("%s would hold a secret in clear: name it as a secret (--secret %s), and the entry refers to it", name, name)
		}
		env = append(env, clientconfig.Pair{Name: text(name), Value: text(value)})
	}
	for _, name := range r.Secrets {
		if !variableName().MatchString(name) {
			return nil, errors.New("a secret is given by the name of its variable")
		}
		env = append(env, clientconfig.Pair{Name: text(name), Value: text("${" + name + "}")})
	}
	return env, nil
}

var (
	variableName = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// A package's name comes from anywhere and stands where a flag could.
	packageName = pattern(`^@?[A-Za-z0-9][A-Za-z0-9._~:/@=\[\],-]*$`)
)

// runPackage is how a package of each kind is run.
func (r *ConfigureRequest) runPackage(s *clientconfig.Server) error {
	kind, id := r.packageKind()
	if !packageName().MatchString(id) {
		return errors.New("that is no name of a package")
	}
	switch kind {
	case "npm":
		s.Command, s.Args = text("npx"), texts([]string{"-y", id})
	case "pypi":
		s.Command, s.Args = text("uvx"), texts([]string{id})
	case "oci":
		s.Command, s.Args = text("docker"), texts([]string{"run", "-i", "--rm"})
		for _, e := range s.Env {
			s.Args = append(s.Args, text("-e"), e.Name)
		}
		s.Args = append(s.Args, text(id))
	default:
		return fmt.Errorf("packages of the kind %q are not known; npm, pypi and oci are", kind)
	}
	s.Args = append(s.Args, texts(r.Args)...)
	return nil
}

func (r *ConfigureRequest) packageKind() (kind, id string) {
	if kind, id, ok := strings.Cut(r.Package, ":"); ok {
		return kind, id
	}
	return "npm", r.Package
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

// lacks says what the registry demands and the request does not have.
func (r *ConfigureRequest) lacks(known registry.Entry) error {
	pkg, ok := known.Find(r.packageKind())
	if !ok || r.Anyway {
		return nil
	}
	var missing []string
	for _, v := range pkg.Variables {
		if !v.Required || v.Default != "" || v.Given(r.sets, r.Args) {
			continue
		}
		word := v.Name
		if v.Secret {
			word += " (secret)"
		}
		if v.Help != "" {
			word += ", see " + v.Help
		}
		missing = append(missing, word)
	}
	if len(r.Args) == 0 {
		for _, a := range pkg.Arguments {
			if name := cmp.Or(a.Name, a.Hint); a.Required && a.Value == "" && a.Default == "" && name != "" {
				missing = append(missing, "the argument "+name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("it needs %s", strings.Join(missing, "; "))
}

// sets reports whether a variable is in the request.
func (r *ConfigureRequest) sets(name string) bool {
	return slices.Contains(r.Secrets, name) || slices.ContainsFunc(r.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
}

// unheardOf says what would be run or dialled that stands in no file of the user
// yet, or what speaks against it; "" if all is known.
func (d *Doctor) unheardOf(r *ConfigureRequest, s *clientconfig.Server, notice string) string {
	if notice != "" {
		notice = "; " + notice
	}
	if notice == "" && d.configured(s) {
		return ""
	}
	if s.URL.Text != "" {
		return "connect to " + secret.Scrub(s.URL.Text) + notice
	}
	words := runs(argvOf(s), "")
	if len(r.Env) > 0 { // a variable can make a program do anything
		words = strings.Join(secret.Args(r.Env), " ") + " " + words
	}
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

// reference finds ${NAME} in the values of a request.
var reference = pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// spell writes an entry as one client does. It returns the variables that the
// client would keep in clear.
func spell(c *clientconfig.Client, scope string, wanted *clientconfig.Server, r *ConfigureRequest) (*clientconfig.Server, []string, error) {
	s := *wanted
	var clear []string
	var failed error
	respell := func(part, value string) string {
		return reference().ReplaceAllStringFunc(value, func(ref string) string {
			name := ref[2 : len(ref)-1]
			for _, source := range []clientconfig.Source{clientconfig.Environment, clientconfig.Secret} {
				if own := c.Refer(part, clientconfig.Reference{Name: name, Source: source}); own != "" {
					return own
				}
			}
			typed, ok := r.Values[name]
			switch {
			case scope == "project":
				failed = fmt.Errorf("%s cannot refer to a variable in %s, and %s must not stand in clear in a file that is shared", c.Name, part, name)
				return ref
			case !ok:
				failed = fmt.Errorf("%s cannot refer to a variable in %s and would keep %s in clear; a person has to type it: mcpmend configure, with --secret %s", c.Name, part, name, name)
			}
			if !slices.Contains(clear, name) {
				clear = append(clear, name)
			}
			return typed
		})
	}
	s.Args = nil
	for _, a := range wanted.Args {
		s.Args = append(s.Args, text(respell("args", a.Text)))
	}
	s.URL.Text = respell("url", wanted.URL.Text)
	s.Env, s.EnvFrom = nil, nil
	for _, p := range wanted.Env {
		if m := reference().FindStringSubmatch(p.Value.Text); m != nil && m[0] == p.Value.Text && m[1] == p.Name.Text && c.Entry.EnvFrom != "" {
			s.EnvFrom = append(s.EnvFrom, p.Name)
			continue
		}
		s.Env = append(s.Env, clientconfig.Pair{Name: p.Name, Value: text(respell("env", p.Value.Text))})
	}
	s.Headers, s.HeadersFrom = nil, nil
	for _, p := range wanted.Headers {
		if m := reference().FindStringSubmatch(p.Value.Text); m != nil && m[0] == p.Value.Text && c.Entry.HeadersFrom != "" {
			s.HeadersFrom = append(s.HeadersFrom, clientconfig.Pair{Name: p.Name, Value: text(m[1])})
			continue
		}
		s.Headers = append(s.Headers, clientconfig.Pair{Name: p.Name, Value: text(respell("headers", p.Value.Text))})
	}
	return &s, clear, failed
}

func text(s string) clientconfig.Value { return clientconfig.Value{Text: s} }

func texts(words []string) []clientconfig.Value {
	var vs []clientconfig.Value
	for _, w := range words {
		vs = append(vs, text(w))
	}
	return vs
}
