// Package registry knows what the official MCP registry says about a server.
//
// The registry has no lookup by package, so [Registry.Update] reads the whole
// list once and keeps a small index of its own; later runs ask only for what has
// changed since. It is called only when the user says so. All other methods work on that index and on a table that is
// built into the program. They never touch the network, and without an index
// they find less, which is no error.
//
// What the registry holds was written by publishers whom nobody has examined. It
// is good for names and for questions to the user. It is never a reason to run
// something else than what is configured, and its text is cleaned of anything
// that could do harm on a terminal.
package registry

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Official is the base URL of the official registry.
const Official = "https://registry.modelcontextprotocol.io"

// A Registry answers questions about servers. The zero value knows the built-in
// table only. Its methods may be called by several goroutines at once.
type Registry struct {
	// BaseURL is where Update asks: the address before "/v0.1/servers", or one that
	// ends in "/servers" itself. "" is Official.
	BaseURL string
	// Dir is the folder that the index is kept in; it is made if need be. "" keeps
	// no index.
	Dir string
	// Client makes the requests; nil is one with limits of its own.
	Client *http.Client

	mu    sync.Mutex
	index *index // nil before it was looked for

	pause time.Duration // between attempts; 0 is a second. For tests.
}

// Status is what the publisher or the registry says about using a server.
type Status string

// The states of an entry. One that says nothing is Active.
const (
	Active     Status = "active"
	Deprecated Status = "deprecated"
	Deleted    Status = "deleted" // taken out, often because it is harmful
)

// An Entry is the newest version of one server.
type Entry struct {
	// Name is unique in the registry, such as "io.github.user/weather". Entries that
	// are only known from the built-in table have a plain name, such as "github".
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
	Status      Status `json:"status,omitempty"`
	// StatusMessage says why it is not active, in the words of the publisher.
	StatusMessage string    `json:"statusMessage,omitempty"`
	Repository    string    `json:"repository,omitempty"`
	Website       string    `json:"website,omitempty"`
	Updated       time.Time `json:"updated,omitzero"`
	Packages      []Package `json:"packages,omitempty"`
	Remotes       []Remote  `json:"remotes,omitempty"`
	// BuiltIn is set if the registry itself was not heard about it.
	BuiltIn bool `json:"-"`
}

// A Package is one way to install and run a server.
type Package struct {
	// Type is "npm", "pypi", "oci", "nuget", "mcpb" or whatever comes next.
	Type       string `json:"type"`
	Identifier string `json:"identifier"`
	Version    string `json:"version,omitempty"`
	// Runtime is the program that should run it, such as "npx"; "" if not said.
	Runtime string `json:"runtime,omitempty"`
	// Transport is "stdio", "streamable-http" or "sse".
	Transport        string     `json:"transport,omitempty"`
	RuntimeArguments []Argument `json:"runtimeArguments,omitempty"`
	Arguments        []Argument `json:"arguments,omitempty"`
	Variables        []Variable `json:"variables,omitempty"`
}

// A Remote is a URL where a server runs.
type Remote struct {
	Type    string     `json:"type"` // "streamable-http" or "sse"
	URL     string     `json:"url"`  // may have {variables}
	Headers []Variable `json:"headers,omitempty"`
	// Gone says why this URL should not be used any more; "" if it may.
	Gone string `json:"gone,omitempty"`
}

// An Argument is something on the command line.
type Argument struct {
	// Name is the flag with its dashes, "" for a positional argument.
	Name string `json:"name,omitempty"`
	// Hint names the value of a positional argument, Value is one that is fixed.
	Hint        string   `json:"hint,omitempty"`
	Value       string   `json:"value,omitempty"`
	Description string   `json:"description,omitempty"`
	Default     string   `json:"default,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Secret      bool     `json:"secret,omitempty"`
	Repeated    bool     `json:"repeated,omitempty"`
}

// A Variable is an environment variable, or a header, that a server reads.
type Variable struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Default is never set for a secret.
	Default string `json:"default,omitempty"`
	// Format is "string", "number", "boolean" or "filepath"; "" is a string.
	Format   string   `json:"format,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Required bool     `json:"required,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
	// Help is the page where one gets the value; "" if not known.
	Help string `json:"help,omitempty"`
	// Or are other ways to give the same: names of variables, or flags with their
	// dashes.
	Or []string `json:"or,omitempty"`
	// Mistaken are names that people set in its place and that are not read.
	Mistaken []string `json:"mistaken,omitempty"`
}

// Given reports whether the variable, or something that stands in for it, is set.
// has tells which variables are; args is the command line.
func (v Variable) Given(has func(name string) bool, args []string) bool {
	if has(v.Name) {
		return true
	}
	return slices.ContainsFunc(v.Or, func(or string) bool {
		if !strings.HasPrefix(or, "-") {
			return has(or)
		}
		return slices.ContainsFunc(args, func(arg string) bool {
			return arg == or || strings.HasPrefix(arg, or+"=")
		})
	})
}

// Package finds the server that is published as this package. The identifier may
// carry a version, as on a command line: "name@1.2", "name==1.2", "image:tag".
func (r *Registry) Package(registryType, identifier string) (Entry, bool) {
	return r.lookup(packageKey(registryType, identifier))
}

// Remote finds the server that runs at this URL. Query and fragment do not matter;
// they are where people put their keys.
func (r *Registry) Remote(rawURL string) (Entry, bool) {
	key := remoteKey(rawURL)
	if key == "" {
		return Entry{}, false
	}
	if e, ok := r.lookup(key); ok {
		return e, true
	}
	return r.load().template(strings.TrimPrefix(key, "url:"))
}

// Named finds a server by its name in the registry, such as "io.github.user/weather".
func (r *Registry) Named(name string) (Entry, bool) {
	var l row
	if line := r.load().names()[name]; line != nil && json.Unmarshal(line, &l) == nil {
		return l.Entry, true
	}
	for _, e := range builtin {
		if e.Name == name {
			return e.clone(), true
		}
	}
	return Entry{}, false
}

// Len is how many servers the index has, 0 without one.
func (r *Registry) Len() int { return bytes.Count(r.load().rows, []byte("\n")) }

// Search returns up to limit servers with every word of text in their name, title,
// description or packages; those with the words in their name come first. Deleted
// ones are left out.
func (r *Registry) Search(text string, limit int) []Entry {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 || limit <= 0 {
		return nil
	}
	found := r.load().search(words)
	for _, e := range builtin {
		if score(&e, words) > 0 && !slices.ContainsFunc(found, func(f Entry) bool { return samePackage(f, e) }) {
			found = append(found, e.clone())
		}
	}
	slices.SortStableFunc(found, func(a, b Entry) int {
		if d := score(&b, words) - score(&a, words); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return found[:min(limit, len(found))]
}

// Age says how old the index is; false if there is none.
func (r *Registry) Age() (time.Duration, bool) {
	ix := r.load()
	if ix.head.Checked.IsZero() {
		return 0, false
	}
	return max(time.Since(ix.head.Checked), 0), true
}

// Find returns the package of an entry that was looked up by it.
func (e Entry) Find(registryType, identifier string) (Package, bool) {
	key := packageKey(registryType, identifier)
	for _, p := range e.Packages {
		if key != "" && packageKey(p.Type, p.Identifier) == key {
			return p, true
		}
	}
	return Package{}, false
}

// FindRemote returns the remote of an entry that was looked up by it.
func (e Entry) FindRemote(rawURL string) (Remote, bool) {
	key := remoteKey(rawURL)
	for _, m := range e.Remotes {
		if key != "" && (remoteKey(m.URL) == key || fits(m.URL, strings.TrimPrefix(key, "url:"))) {
			return m, true
		}
	}
	return Remote{}, false
}

// Help is the first page that helps to get what the entry needs: where a token is
// made, or else the website or the repository.
func (e Entry) Help() string {
	for _, p := range e.Packages {
		for _, v := range p.Variables {
			if v.Help != "" && (v.Required || v.Secret) {
				return v.Help
			}
		}
	}
	for _, m := range e.Remotes {
		for _, v := range m.Headers {
			if v.Help != "" {
				return v.Help
			}
		}
	}
	if e.Website != "" {
		return e.Website
	}
	return e.Repository
}

// lookup asks the index first, since it is newer; the built-in table adds what
// the registry has no place for.
func (r *Registry) lookup(key string) (Entry, bool) {
	if key == "" {
		return Entry{}, false
	}
	e, ok := r.load().find(key)
	b, known := builtinByKey(key)
	switch {
	case !ok:
		return b, known
	case known:
		enrich(&e, b)
	}
	return e, true
}

// enrich adds to an entry of the registry what we know better: help pages, other
// ways to give a value, wrong names, and all variables if the registry names none.
func enrich(e *Entry, b Entry) {
	for i := range e.Packages {
		p := &e.Packages[i]
		known, ok := b.Find(p.Type, p.Identifier)
		if !ok {
			continue
		}
		if len(p.Variables) == 0 {
			p.Variables = known.Variables
			continue
		}
		for j := range p.Variables {
			v := &p.Variables[j]
			for _, k := range known.Variables {
				if k.Name == v.Name {
					v.Or, v.Mistaken = k.Or, k.Mistaken
					if v.Help == "" {
						v.Help = k.Help
					}
				}
			}
		}
	}
	for i := range e.Remotes {
		if known, ok := b.FindRemote(e.Remotes[i].URL); ok {
			e.Remotes[i].Gone = known.Gone
		}
	}
}

// keys are what an entry can be found by.
func (e *Entry) keys() []string {
	var keys []string
	add := func(key string) {
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, p := range e.Packages {
		add(packageKey(p.Type, p.Identifier))
	}
	for _, m := range e.Remotes {
		add(remoteKey(m.URL))
	}
	return keys
}

func (e Entry) clone() Entry {
	e.Packages = slices.Clone(e.Packages)
	for i := range e.Packages {
		e.Packages[i].Variables = slices.Clone(e.Packages[i].Variables)
	}
	e.Remotes = slices.Clone(e.Remotes)
	return e
}

// packageKey is how a package is called in the index: its name as its own registry
// would compare it, without a version. "" if it is no name.
func packageKey(registryType, identifier string) string {
	id := strings.TrimSpace(identifier)
	kind := strings.ToLower(strings.TrimSpace(registryType))
	switch kind {
	case "npm":
		id = strings.ToLower(id)
		if at := strings.LastIndex(id, "@"); at > 0 {
			id = id[:at]
		}
	case "pypi":
		// As PEP 503 compares names. What follows a name on uvx's command line is a
		// version ("@1.2", "==1.2", ">=1"), extras or a marker.
		id = strings.ToLower(id)
		if end := strings.IndexAny(id, "@=<>!~[; "); end >= 0 {
			id = id[:end]
		}
		id = strings.Join(strings.FieldsFunc(id, func(c rune) bool { return strings.ContainsRune("-_.", c) }), "-")
	case "oci":
		id, _, _ = strings.Cut(strings.ToLower(id), "@")
		if colon := strings.LastIndex(id, ":"); colon > strings.LastIndex(id, "/") {
			id = id[:colon]
		}
		for _, prefix := range []string{"https://", "docker.io/", "index.docker.io/", "library/"} {
			id = strings.TrimPrefix(id, prefix)
		}
	case "nuget":
		id, _, _ = strings.Cut(strings.ToLower(id), "@")
	}
	if id == "" || kind == "" {
		return ""
	}
	return kind + ":" + id
}

// remoteKey is how a URL is called in the index; "" if it is none. A URL that
// begins with a variable could be anybody's and has no key.
func remoteKey(raw string) string {
	if strings.HasPrefix(raw, "{") {
		return ""
	}
	raw, _, _ = strings.Cut(raw, "#")
	raw, _, _ = strings.Cut(raw, "?")
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return ""
	}
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	}
	host = strings.ToLower(host)
	host = strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
	if host == "" {
		return ""
	}
	return "url:" + host + strings.TrimRight("/"+path, "/")
}

// fits reports whether an address, as in a key, could come from a URL with
// variables. A variable stands for a part of a host name or of a path.
func fits(template, address string) bool {
	want := strings.TrimPrefix(remoteKey(template), "url:")
	if !strings.Contains(want, "{") {
		return false
	}
	for {
		before, after, variable := strings.Cut(want, "{")
		rest, ok := strings.CutPrefix(address, before)
		if !variable {
			return ok && rest == ""
		}
		_, after, closed := strings.Cut(after, "}")
		if !ok || !closed {
			return false
		}
		end := strings.IndexAny(rest, "./")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return false
		}
		want, address = after, rest[end:]
	}
}

// clean makes foreign text fit to be shown: one line, no control characters, not
// longer than limit bytes or so.
func clean(s string, limit int) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t' || c == '\r':
			return ' '
		case c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029' || c == '\ufeff' ||
			c >= '\u200b' && c <= '\u200f' || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069' ||
			c == '\ufffd':
			return -1
		}
		return c
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	cut := 0
	for i := range s {
		if i > limit-len("…") {
			break
		}
		cut = i
	}
	return strings.TrimSpace(s[:cut]) + "…"
}

// cleanURL keeps a web address that can be shown, and nothing else.
func cleanURL(s string) string {
	if len(s) > 512 || s != clean(s, 512) || strings.Contains(s, " ") {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return s
}
