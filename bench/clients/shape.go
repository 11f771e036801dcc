package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// shapes are entries as people copy them from one client to the other: under
// mcpServers, for opencode, for codex.
var shapes = []struct {
	name, usual, opencode, codex string
}{
	{"a URL without a type", `{"url": "URL"}`, `{"url": "URL"}`, `url = "URL"`},
	{"the type streamable-http", `{"type": "streamable-http", "url": "URL"}`, `{"type": "streamable-http", "url": "URL"}`, "type = \"streamable-http\"\nurl = \"URL\""},
	{"the type http", `{"type": "http", "url": "URL"}`, `{"type": "http", "url": "URL"}`, "type = \"http\"\nurl = \"URL\""},
	{"a command without a type", `{"command": "WITNESS", "args": ["JOURNAL"]}`, `{"command": ["WITNESS", "JOURNAL"]}`, "command = \"WITNESS\"\nargs = [\"JOURNAL\"]"},
	{"the type stdio", `{"type": "stdio", "command": "WITNESS", "args": ["JOURNAL"]}`, `{"type": "stdio", "command": ["WITNESS", "JOURNAL"]}`, "type = \"stdio\"\ncommand = \"WITNESS\"\nargs = [\"JOURNAL\"]"},
	{"the type local", `{"type": "local", "command": "WITNESS", "args": ["JOURNAL"]}`, `{"type": "local", "command": ["WITNESS", "JOURNAL"]}`, "type = \"local\"\ncommand = \"WITNESS\"\nargs = [\"JOURNAL\"]"},
	{"arguments as one text", `{"command": "WITNESS", "args": "JOURNAL"}`, `{"type": "local", "command": "WITNESS JOURNAL"}`, "command = \"WITNESS\"\nargs = \"JOURNAL\""},
	{"no arguments", `{"command": "WITNESS"}`, `{"type": "local", "command": ["WITNESS"]}`, `command = "WITNESS"`},
}

// shape compares our judgement of an entry with the client's: one in which we see
// nothing wrong is used, one in which we do is not. It also looks at files that we
// say the client ignores.
func shape(ctx context.Context, w *world, c *realclient.Client) (*finding, error) {
	f := &finding{}
	for _, s := range shapes {
		h, err := w.home(c)
		if err != nil {
			return nil, err
		}
		place := h.client().Files[0]
		content := `{"` + place.Key[0] + `": {"a": ` + s.usual + "}}\n"
		switch c.ID {
		case "codex":
			content = "[mcp_servers.a]\n" + s.codex + "\n"
		case "opencode":
			content = `{"mcp": {"a": ` + s.opencode + "}}\n"
		}
		path, err := h.write(place, content)
		if err != nil {
			return nil, err
		}
		file := clientconfig.Open(path, h.client(), h.setup.Project, place)
		out := c.Connect(ctx, h.setup)
		v := c.Verdict(out, "a")
		want := !breaks(file)
		f.check((v.State == realclient.OK) == want, "%s: we see %v, and the client says %s %q (%v)", s.name, file.Problems, v.State, v.Text, out.Err)
		if v.State != realclient.OK {
			f.note("does not use %s: %s %q", s.name, v.State, v.Text)
		}
	}
	return f, ignored(ctx, w, c, f)
}

// ignored writes a server to every place that we say is ignored.
func ignored(ctx context.Context, w *world, c *realclient.Client, f *finding) error {
	h, err := w.home(c)
	if err != nil {
		return err
	}
	for _, place := range h.client().Ignored {
		if _, err := h.write(place, `{"mcpServers": {"ignored": {"command": "WITNESS", "args": ["JOURNAL"]}}}`); err != nil {
			return err
		}
	}
	if len(h.client().Ignored) == 0 {
		return nil
	}
	out := c.List(ctx, h.setup)
	v := c.Verdict(out, "ignored")
	f.check(v.State == realclient.Absent, "a file that we say is ignored: %s %q", v.State, v.Text)
	return out.Err
}

// breaks reports whether we would say that the client cannot use the entry. A name it
// does not know beside a command or a URL is a remark.
func breaks(file *clientconfig.File) bool {
	for _, p := range file.Problems {
		s := file.Server(p.Server)
		if p.Kind == clientconfig.WrongName && s != nil && (s.Command.Text != "" || s.URL.Text != "") {
			continue
		}
		return true
	}
	return false
}

// write puts a file at a place. WITNESS, JOURNAL and URL stand for the server "a".
func (h *home) write(place clientconfig.Place, content string) (string, error) {
	content = strings.NewReplacer("WITNESS", h.w.witness, "JOURNAL", h.journal("a"),
		"URL", h.w.remote.url(clientconfig.HTTP, filepath.Base(h.dir))).Replace(content)
	path := h.system.Path(place)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(content), 0o644)
}
