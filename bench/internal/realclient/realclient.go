// Package realclient runs the MCP clients that people use, as npm has them, and
// reads what they say of the servers in their files.
//
// A client is installed once, in a pinned version, into the cache of the rig. It
// then runs in a home and a project folder that the caller has filled, with an
// environment made from nothing: no variable and no file of this machine's user is
// seen. Updates and telemetry are off, and what would leave the machine is sent to a
// proxy that is not there. Nobody has to be signed in.
//
// The project folder counts as trusted. Every client but opencode otherwise leaves
// the servers of a project alone, and Gemini CLI even those of the user.
package realclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// A Client is one of the real clients. Install comes before everything else.
type Client struct {
	// ID is the command people type, such as "claude".
	ID string
	// Config is its ID in internal/clientconfig.
	Config string
	// Package and Version are what is installed from npm.
	Package, Version string

	script  bool     // needs Node
	list    []string // arguments that list the servers
	doctor  []string // arguments that examine the set-up, nil for most
	env     []string
	trust   func(s Setup) (args, env []string, err error)
	connect func(ctx context.Context, c *Client, s Setup) Output // nil if list connects

	argv []string // the program, once installed
	path string   // PATH of the client
}

// All returns the clients, each time new ones.
func All() []*Client {
	return []*Client{
		{
			ID: "claude", Config: "claude-code", Package: "@anthropic-ai/claude-code", Version: "2.1.325",
			list: []string{"mcp", "list"},
			env:  []string{"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
			trust: func(Setup) ([]string, []string, error) {
				return []string{"--settings", `{"enableAllProjectMcpServers":true}`}, nil, nil
			},
		},
		{
			ID: "gemini", Config: "gemini-cli", Package: "@google/gemini-cli", Version: "0.61.0", script: true,
			list: []string{"mcp", "list"},
			// It starts itself a second time to ask for more memory, which takes a second.
			env:   []string{"GEMINI_CLI_NO_RELAUNCH=true", "GEMINI_TELEMETRY_ENABLED=false"},
			trust: func(Setup) ([]string, []string, error) { return nil, []string{"GEMINI_CLI_TRUST_WORKSPACE=true"}, nil },
		},
		{
			ID: "opencode", Config: "opencode", Package: "opencode-ai", Version: "1.18.33",
			list: []string{"mcp", "list"},
			env:  []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
		},
		{
			ID: "copilot", Config: "copilot-cli", Package: "@github/copilot", Version: "1.0.102", script: true,
			list:  []string{"mcp", "list", "--json"},
			env:   []string{"COPILOT_AUTO_UPDATE=false", "COPILOT_OFFLINE=true"},
			trust: trustCopilot, connect: connectCopilot,
		},
		{
			ID: "codex", Config: "codex", Package: "@openai/codex", Version: "0.166.0", script: true,
			list: []string{"mcp", "list", "--json"}, doctor: []string{"doctor", "--json"},
			trust: func(s Setup) ([]string, []string, error) {
				return []string{"-c", fmt.Sprintf("projects={%q={trust_level=\"trusted\"}}", s.Project)}, nil, nil
			},
			connect: connectCodex,
		},
	}
}

// ByID returns the client with that ID, or nil.
func ByID(id string) *Client {
	for _, c := range All() {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Install makes the client ready to run. It needs the npm registry the first time;
// without it the error wraps [ErrUnavailable].
func (c *Client) Install(ctx context.Context) error {
	r, err := rig.Open()
	if err != nil {
		return err
	}
	node, err := r.NPM(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	installed, err := r.Install(ctx, "client-"+c.ID, c.Package+"@"+c.Version)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if got, err := installed.Version(c.Package); got != c.Version {
		return fmt.Errorf("%s: version %s is installed, want %s (%w)", c.ID, got, c.Version, err)
	}
	program, err := installed.Program(c.ID)
	if err != nil {
		return err
	}
	c.argv = []string{program}
	if c.script {
		c.argv = []string{node.Node(), program}
	}
	c.path = strings.Join([]string{filepath.Dir(node.Node()), "/usr/local/bin", "/usr/bin", "/bin"}, string(os.PathListSeparator))
	if c.ID == "copilot" {
		// It unpacks 235 MB for each home otherwise.
		c.env = append(c.env, "COPILOT_PKG_CACHE_HOME="+filepath.Join(installed.Folder("."), "unpacked"))
	}
	return nil
}

// Installed reports whether Install has succeeded.
func (c *Client) Installed() bool { return c.argv != nil }

// ErrUnavailable: npm could not install the client, so nothing is known about it.
var ErrUnavailable = errors.New("cannot be installed from npm here")

// A Setup is what a client finds.
type Setup struct {
	// Home and Project are folders, given by absolute paths without symbolic links.
	// The client may write to both.
	Home, Project string
	// Env is added to the environment of the client, such as a PATH of its own.
	Env []string
	// Timeout ends the client and all it has started; 0 is a minute.
	Timeout time.Duration
}

// An Output is what a client did.
type Output struct {
	// Command is what a person would have typed.
	Command        string
	Stdout, Stderr string
	Exit           int // -1 if it was killed or did not start
	Took           time.Duration
	TimedOut       bool
	// Err is why it could not be run at all, nil if it was.
	Err error

	kind kind
}

// kind is how an Output is to be read.
type kind int

const (
	listing kind = iota
	examination
	connection
)

// List runs the command that lists the servers. claude, gemini and opencode start
// them and say whether they could; copilot and codex only read their files.
func (c *Client) List(ctx context.Context, s Setup) Output {
	return c.run(ctx, s, listing, c.list)
}

// Doctor runs the client's own examination. Only codex has one; HasDoctor tells.
func (c *Client) Doctor(ctx context.Context, s Setup) Output {
	if !c.HasDoctor() {
		return Output{Exit: -1, Err: fmt.Errorf("%s has no doctor", c.ID)}
	}
	return c.run(ctx, s, examination, c.doctor)
}

// HasDoctor reports whether Doctor can be called.
func (c *Client) HasDoctor() bool { return c.doctor != nil }

// Connect has the client start its servers and shake hands with them: by List where
// that does it, by a session without a model elsewhere.
func (c *Client) Connect(ctx context.Context, s Setup) Output {
	if c.connect == nil {
		return c.List(ctx, s)
	}
	return c.connect(ctx, c, s)
}

// Run runs any other command of the client.
func (c *Client) Run(ctx context.Context, s Setup, args ...string) Output {
	return c.run(ctx, s, listing, args)
}

// trustCopilot uses the file that its question "do you trust this folder" writes;
// there is no flag for it. A file that is there is left alone.
func trustCopilot(s Setup) (args, env []string, err error) {
	path := filepath.Join(s.Home, ".copilot", "config.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	_, err = fmt.Fprintf(f, "{\"trusted_folders\": [%q]}\n", s.Project)
	return nil, nil, errors.Join(err, f.Close())
}
