package main

import (
	"context"
	"maps"
	"slices"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/bench/testserver/witness/testimony"
)

// handed compares what a server sees of the client's environment with what we
// believe: a plain variable, one that is called like a secret, and a secret with an
// innocent name.
func handed(ctx context.Context, w *world, c *realclient.Client) (*finding, error) {
	const plain, named, hidden = testimony.Prefix + "PLAIN", testimony.Prefix + "MY_TOKEN", testimony.Prefix + "LOOKS"
	h, err := w.home(c, plain+"=x", named+"=x", hidden+"=ghp_0123456789abcdefghijklmnopqrstuvwxyz")
	if err != nil {
		return nil, err
	}
	place := h.client().Files[0]
	content := `{"` + place.Key[0] + `": {"a": {"command": "WITNESS", "args": ["JOURNAL"]}}}`
	switch c.ID {
	case "codex":
		content = "[mcp_servers.a]\ncommand = \"WITNESS\"\nargs = [\"JOURNAL\"]\n"
	case "opencode":
		content = `{"mcp": {"a": {"type": "local", "command": ["WITNESS", "JOURNAL"]}}}`
	}
	if _, err := h.write(place, content); err != nil {
		return nil, err
	}
	f := &finding{}
	out := c.Connect(ctx, h.setup)
	if out.Err != nil {
		return nil, out.Err
	}
	lines, err := testimony.Read(h.journal("a"))
	if err != nil {
		return nil, err
	}
	f.check(len(lines) > 0, "the server was not started: exit %d\n%s\n%s", out.Exit, out.Stdout, out.Stderr)
	if len(lines) == 0 {
		return f, nil
	}
	want := map[string][]string{"all": {hidden, named, plain}, "no-secrets": {plain}, "few": nil, "sdk": nil}[h.client().Inherits]
	got := slices.Sorted(maps.Keys(lines[0].Env))
	f.check(slices.Equal(got, want), "the server sees %q, and %q says %q", got, h.client().Inherits, want)
	return f, nil
}
