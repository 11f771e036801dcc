package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
	"github.com/mcpmend/mcpmend/bench/testserver/witness/testimony"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// world is what all clients share.
type world struct {
	quick            bool
	parts            string // those to run, "" for all
	dir              string
	witness, mcpmend string
	remote           *remote
}

func newWorld(ctx context.Context, quick bool) (*world, error) {
	r, err := rig.Open()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mcpmend-clients-")
	if err != nil {
		return nil, err
	}
	// Clients compare paths as texts, so a link in them would be a difference.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	w := &world{quick: quick, dir: dir, remote: newRemote()}
	for _, program := range []struct {
		path  *string
		build func() (string, error)
	}{
		{&w.witness, func() (string, error) { return r.Go(ctx, rig.Witness) }},
		{&w.mcpmend, func() (string, error) { return r.Mcpmend(ctx) }},
	} {
		built, err := program.build()
		if err == nil {
			*program.path, err = w.keep(built)
		}
		if err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// keep copies a program, since another benchmark may build it anew while we run.
func (w *world) keep(program string) (string, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, filepath.Base(program))
	return path, os.WriteFile(path, data, 0o755)
}

func (w *world) close() {
	w.remote.server.Close()
	_ = os.RemoveAll(w.dir)
}

// A home is the folders of one client for one question.
type home struct {
	w      *world
	c      *realclient.Client
	dir    string
	setup  realclient.Setup
	system clientconfig.System
	store  *clientconfig.Store
	// want are the servers that the client should have.
	want []*clientconfig.Server
	// gone are names that it must not have any more.
	gone []string
}

// home makes empty folders. The variables are seen by the client and by us; DIR in
// their values is the folder above home and project.
func (w *world) home(c *realclient.Client, variables ...string) (*home, error) {
	dir, err := os.MkdirTemp(w.dir, c.ID+"-")
	if err != nil {
		return nil, err
	}
	h := &home{w: w, c: c, dir: dir, store: &clientconfig.Store{Dir: filepath.Join(dir, "backups")}}
	h.setup = realclient.Setup{Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}
	env := make(map[string]string)
	for _, pair := range variables {
		name, value, _ := strings.Cut(strings.ReplaceAll(pair, "DIR", dir), "=")
		env[name] = value
		h.setup.Env = append(h.setup.Env, name+"="+value)
	}
	h.system = clientconfig.System{Home: h.setup.Home, Project: h.setup.Project, Getenv: func(name string) string { return env[name] }}
	for _, folder := range []string{h.setup.Home, h.setup.Project, filepath.Join(dir, "journals")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *home) client() *clientconfig.Client { return clientconfig.ByID(h.c.Config) }

func (h *home) journal(name string) string { return filepath.Join(h.dir, "journals", name) }

// local is a witness with arguments and an environment. Pairs are NAME=value.
func (h *home) local(name string, args []string, env ...string) *clientconfig.Server {
	s := &clientconfig.Server{Name: text(name), Command: text(h.w.witness), Args: texts(append([]string{h.journal(name)}, args...))}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		s.Env = append(s.Env, clientconfig.Pair{Name: text(testimony.Prefix + name), Value: text(value)})
	}
	return s
}

// far is a server by URL that wants a header.
func (h *home) far(name string, transport clientconfig.Transport) *clientconfig.Server {
	key := filepath.Base(h.dir) + "-" + name
	return &clientconfig.Server{
		Name: text(name), URL: text(h.w.remote.url(transport, key)), Transport: transport,
		Headers: []clientconfig.Pair{{Name: text(header), Value: text("the key of " + name)}},
	}
}

func text(s string) clientconfig.Value { return clientconfig.Value{Text: s} }

func texts(all []string) (values []clientconfig.Value) {
	for _, s := range all {
		values = append(values, text(s))
	}
	return values
}

// understood has the client connect to its servers and compares what they saw with
// what was meant.
func (h *home) understood(ctx context.Context, f *finding, what string) error {
	listed := h.c.List(ctx, h.setup)
	if listed.Err != nil {
		return listed.Err
	}
	var want []string
	for _, s := range h.want {
		want = append(want, s.Name.Text)
	}
	slices.Sort(want)
	got := h.c.Listed(listed)
	f.check(slices.Equal(want, got), "%s: %s lists %q, want %q\n%s\n%s", what, h.c.ID, got, want, listed.Stdout, listed.Stderr)
	connected := listed
	if _, checks := h.c.Verdicts(listed)[first(want)]; !checks || h.c.Verdict(listed, first(want)).State == realclient.NotChecked {
		if connected = h.c.Connect(ctx, h.setup); connected.Err != nil {
			return connected.Err
		}
	}
	for _, s := range h.want {
		v := h.c.Verdict(connected, s.Name.Text)
		f.check(v.State == realclient.OK, "%s: %s says of %s: %s %q", what, h.c.ID, s.Name.Text, v.State, v.Text)
		if s.URL.Text != "" {
			got, want := h.w.remote.seen(s.URL.Text), s.Headers[0].Value.Text
			f.check(got == want, "%s: %s was asked with the header %q, want %q", what, s.Name.Text, got, want)
			continue
		}
		if err := h.compare(f, what, s); err != nil {
			return err
		}
	}
	for _, name := range h.gone {
		lines, err := testimony.Read(h.journal(name))
		if err != nil {
			return err
		}
		f.check(len(lines) == 0, "%s: %s was removed and is started", what, name)
	}
	return nil
}

// compare looks at what a local server saw.
func (h *home) compare(f *finding, what string, s *clientconfig.Server) error {
	lines, err := testimony.Read(h.journal(s.Name.Text))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(lines, func(l testimony.Line) bool { return l.Greeting != "" })
	f.check(i >= 0, "%s: nobody has greeted %s", what, s.Name.Text)
	if i < 0 {
		return nil
	}
	saw := lines[i]
	var args []string
	for _, a := range s.Args[1:] {
		args = append(args, a.Text)
	}
	f.check(slices.Equal(saw.Args, args), "%s: %s was started with %q, want %q", what, s.Name.Text, saw.Args, args)
	env := make(map[string]string)
	for _, p := range s.Env {
		env[p.Name.Text] = p.Value.Text
	}
	f.check(fmt.Sprint(saw.Env) == fmt.Sprint(env), "%s: %s was started with the environment %q, want %q", what, s.Name.Text, saw.Env, env)
	return nil
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// header is what servers by URL are asked with.
const header = "X-Witness"

// remote is a witness for servers by URL, one for each path.
type remote struct {
	server *httptest.Server
	mu     sync.Mutex
	asked  map[string]string // URL → header of the last request
}

func newRemote() *remote {
	r := &remote{asked: make(map[string]string)}
	server := mcp.NewServer(&mcp.Implementation{Name: "remote witness", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "nothing"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/http/", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	mux.Handle("/sse/", mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.asked[req.URL.Path] = req.Header.Get(header)
		r.mu.Unlock()
		mux.ServeHTTP(w, req)
	}))
	return r
}

func (r *remote) url(transport clientconfig.Transport, key string) string {
	return r.server.URL + "/" + string(transport) + "/" + key
}

// seen is the header that a URL was last asked with.
func (r *remote) seen(url string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[strings.TrimPrefix(url, r.server.URL)]
}
