package clientconfig

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tailscale/hujson"
)

// A Client is a program that reads MCP servers from files of its own.
type Client struct {
	// ID is what a person types, such as "claude-code".
	ID string
	// Name is what its makers call it.
	Name string
	// GUI is set for an app started from a desktop: it has neither the PATH nor the
	// variables that the start files of a shell set, such as nvm's or a token.
	GUI bool
	// AsksShell is set for one that starts the user's login shell to get them after
	// all. There is none to ask on Windows.
	AsksShell bool
	// Inherits says what a server sees of the client's environment: "all",
	// "no-secrets", "few" or "sdk"; "" when it is not known.
	Inherits string
	// AppendsPath is set for one that puts a PATH of the entry behind its own, in which
	// programs are then found first.
	AppendsPath bool
	// Waits is for how many seconds it waits for a server to start; 0 when that is not
	// known. WaitsVariable is a variable of its environment that changes it, in
	// milliseconds.
	Waits         int
	WaitsVariable string
	// Files are the places it reads, Ignored those that people write to and it
	// does not read.
	Files   []Place
	Ignored []Place
	// Off are lists, in files of its own, of servers that it is told not to use. With a
	// scope they are about servers of that scope only.
	Off []Place
	// Entry says how it spells a server.
	Entry Entry
	// Refuses are the problems of an entry or a key for which the client loses its whole
	// file. For any other it ignores the entry, or for a name it does not know that part.
	Refuses []Kind
	// Trust says in which folders it uses servers at all; nil for every one.
	Trust *Trust
	// Variables says what it replaces in values. Zero: nothing.
	Variables Variables
	// Reload is what a person has to do after a change.
	Reload string
	// SignIn is the command that signs in to a server, whose name comes last. ""
	// where it is done inside the client.
	SignIn string
}

// A Place is one row of the table: a file on one system, for one scope.
type Place struct {
	OS     string // as in GOOS, "" for all
	Scope  string // user, project, local, system, remote, cli
	Path   string // not expanded, see clients.jsonc
	Format Format
	Strict bool // JSON without comments and trailing commas
	// NoTrailingComma is for a client that skips comments and is strict about the rest.
	NoTrailingComma bool
	// NoBOM is for one that loses a file over a byte order mark.
	NoBOM bool
	Key   Path // where the servers stand
	List  bool // they are a list of entries with a name
	// Nested is the name of a second container inside the first ("" for none):
	// opencode reads servers below mcp and below mcp.servers.
	Nested string
	// Upward means that folders above the project are read, too.
	Upward bool
	// Unless is a path; if that file exists, this one is not read.
	Unless string
	// Instead is where the servers of an ignored place belong, for people.
	Instead string
}

// Format is the grammar of a file.
type Format string

// The formats. JSONC is JSON with comments and trailing commas.
const (
	JSON  Format = "json"
	JSONC Format = "jsonc"
	TOML  Format = "toml"
	YAML  Format = "yaml"
)

// Transport is how a client talks to a server.
type Transport string

// The transports. Unknown is that of a URL whose client finds out by trying.
const (
	Unknown   Transport = ""
	Stdio     Transport = "stdio"
	HTTP      Transport = "http" // Streamable HTTP
	SSE       Transport = "sse"  // the older HTTP with server-sent events
	WebSocket Transport = "ws"
)

// An Entry holds the names a client gives to the parts of a server; "" where it
// has none. A dot goes one level down.
type Entry struct {
	Command     string
	CommandList bool   // Command is a list that holds the arguments, too
	CommandPath string // older files: Command is an object and this its program
	Args        string
	Env         string
	EnvFrom     string // a list of variables handed through by name
	EnvFile     string
	Cwd         string
	URLs        []URLName // the first that is present wins
	Headers     string
	HeadersFrom string // header → name of a variable
	BearerFrom  string // name of a variable with the token
	Type        string
	// Types are the spellings of each transport, the one to write first.
	Types map[Transport][]string
	// FallsBack: the client speaks the older HTTP with a server that refuses the
	// newer one, whatever the type says.
	FallsBack bool
	// Without a type the client skips the entry.
	URLNeedsType, CommandNeedsType bool
	Enabled, Disabled              string
	// Apart: a part for commands beside a URL is an error, and the other way round.
	Apart bool
	// Needs are further names without which the client ignores an entry with a command,
	// URLNeeds one with a URL.
	Needs, URLNeeds []string
	// Untyped is what a URL without a type is taken for, Unknown if the client finds out.
	Untyped Transport
	// Kinds are the kinds that values of other names must have: boolean, number, text,
	// list or object.
	Kinds map[string]string
	// Timeout is how long the client waits for the server to start, in TimeoutUnit.
	Timeout, TimeoutUnit string
	// Also are further names this client understands.
	Also []string
	// NotOurs tells entries that are no servers of the user: one that has only
	// these keys, or one of these types.
	NotOurs struct{ Keys, Types []string }
}

// A URLName is a field that holds a URL, and what it implies.
type URLName struct {
	Name      string
	Transport Transport // Unknown if the type or the server decides
}

//go:embed clients.jsonc
var clientTable []byte

var loadClients = sync.OnceValue(func() []*Client {
	standard, err := hujson.Standardize(slices.Clone(clientTable))
	if err != nil {
		panic(fmt.Sprintf("clients.jsonc: %v", err)) // embedded, so a test has seen it first
	}
	var clients []*Client
	d := json.NewDecoder(strings.NewReader(string(standard)))
	d.DisallowUnknownFields()
	if err := d.Decode(&clients); err != nil {
		panic(fmt.Sprintf("clients.jsonc: %v", err))
	}
	return clients
})

// Clients returns all clients we know, in the order of the table. They are
// shared; do not change them.
func Clients() []*Client { return slices.Clone(loadClients()) }

// ByID returns the client with that id, or nil.
func ByID(id string) *Client {
	for _, c := range loadClients() {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// speaksURL reports whether the client can reach a server by URL at all.
func (c *Client) speaksURL() bool { return len(c.Entry.URLs) > 0 }

// transport translates the client's spelling of a type.
func (e *Entry) transport(typ string) (Transport, bool) {
	for transport, names := range e.Types {
		if slices.Contains(names, typ) {
			return transport, true
		}
	}
	return Unknown, false
}

// names are all names that may stand at the top of an entry.
func (e *Entry) names() []string {
	names := slices.Clone(e.Also)
	for _, u := range e.URLs {
		names = append(names, u.Name)
	}
	for _, n := range []string{
		e.Command, e.Args, e.Env, e.EnvFrom, e.EnvFile, e.Cwd, e.Headers, e.HeadersFrom, e.BearerFrom,
		e.Type, e.Enabled, e.Disabled, e.Timeout,
	} {
		if n, _, _ = strings.Cut(n, "."); n != "" {
			names = append(names, n)
		}
	}
	return names
}
