// Package judge says whether an MCP server of a configuration works, by doing what its
// client does: it reads the client's file, makes a command or a URL of the entry, and
// has the Go SDK's own client shake hands, list the tools and call one.
//
// It is there so that bench/doctor does not have to believe mcpmend, and must therefore
// use nothing of it. What it knows of clients was written down a second time, from their
// documentation and from what they were seen to do; see habits.go.
package judge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Machine is what a client finds around it.
type Machine struct {
	// Home and Project are folders.
	Home, Project string
	// Env is what a terminal of the user has, as NAME=value.
	Env []string
}

// Works returns why a server of a client cannot be used, or nil if it can. Without a
// scope it is looked for in all places of the client. An empty name stands for the file as
// a whole, all of whose servers must then work.
func Works(ctx context.Context, m Machine, client, scope, server string) error {
	h, ok := habits[client]
	if !ok {
		return fmt.Errorf("nothing is known of %s", client)
	}
	entries, err := h.read(m, scope)
	if err != nil {
		return err
	}
	if server != "" {
		e, ok := entries[server]
		if !ok {
			return fmt.Errorf("%s has no server %q in its file", client, server)
		}
		return h.try(ctx, m, e)
	}
	for name, e := range entries {
		if err := h.try(ctx, m, e); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// try makes of an entry what the client makes of it, and uses it.
func (h *habit) try(ctx context.Context, m Machine, e entry) error {
	s, err := h.start(m, e)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, s.waits)
	defer stop()
	if s.url == "" {
		return s.run(ctx)
	}
	var errs []error
	for _, transport := range s.transports {
		err := use(ctx, s.dial(transport))
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", transport, err))
	}
	return errors.Join(errs...)
}

// A start is what a client starts or dials.
type start struct {
	argv []string
	dir  string
	// env is all a server gets: what the client has and hands on, what the entry has it
	// hand on besides, and what the entry sets.
	env, handed, set []string

	url        string
	transports []string // the first that works
	header     http.Header

	waits time.Duration
}

func (s *start) run(ctx context.Context) error {
	program, err := find(s.argv[0], s.dir, s.env)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, s.argv[1:]...)
	cmd.Args[0] = s.argv[0]
	cmd.Dir, cmd.Env = s.dir, s.env
	// A server that started others is ended with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = end
	cmd.WaitDelay = time.Second
	defer func() {
		if cmd.Process != nil {
			_ = end()
		}
	}()
	var said tail
	cmd.Stderr = &said
	if err := use(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	return nil
}

// find looks a program up as spawn does, in the PATH that the server is given.
func find(name, dir string, env []string) (string, error) {
	folders := []string{""}
	if !strings.Contains(name, "/") {
		folders = filepath.SplitList(variable(env, "PATH"))
	}
	for _, folder := range folders {
		file := filepath.Join(folder, name)
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("no program %q", name)
}

// variable is the value of the last of that name.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

func (s *start) dial(transport string) mcp.Transport {
	// A transport of its own: what this process has in its environment is no concern of
	// the client's.
	c := &http.Client{Transport: &headers{s.header, &http.Transport{}}}
	if transport == sse {
		return &mcp.SSEClientTransport{Endpoint: s.url, HTTPClient: c}
	}
	// The stream of the server's own is optional, and clients do without it.
	return &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: c, MaxRetries: -1, DisableStandaloneSSE: true}
}

type headers struct {
	add  http.Header
	next *http.Transport
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range h.add {
		r.Header[name] = values
	}
	return h.next.RoundTrip(r)
}

// use shakes hands, lists the tools and calls the first that says it only reads.
func use(ctx context.Context, t mcp.Transport) (err error) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "judge", Version: "1"}, nil).Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	// How a server ends is not judged.
	defer func() { _ = session.Close() }()
	var reads *mcp.Tool
	n := 0
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("listing its tools: %w", err)
		}
		n++
		if reads == nil && tool.Annotations != nil && tool.Annotations.ReadOnlyHint {
			reads = tool
		}
	}
	if n == 0 {
		return errors.New("it has no tools")
	}
	if reads == nil {
		return nil
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: reads.Name, Arguments: map[string]any{}})
	if err != nil {
		return fmt.Errorf("calling %s: %w", reads.Name, err)
	}
	if result.IsError {
		return fmt.Errorf("calling %s: the tool failed", reads.Name)
	}
	return nil
}

// tail keeps the last that a server said on stderr.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-500):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }
