package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// awkward are arguments that a careless writer spoils.
var awkward = []string{"plain", "two words", `a "quote"`, `back\slash`, "it's", "größe", "--flag=x,y", "#no comment", "//nor this", ""}

// A variation moves files of a client by variables, or uses a place that is only
// read when another one is not there.
type variation struct {
	client, name string
	variables    []string
	only         string // path of the table; "" for all that apply
}

var variations = []variation{
	{"claude", "at the usual places", nil, ""},
	{"claude", "with CLAUDE_CONFIG_DIR", []string{"CLAUDE_CONFIG_DIR=DIR/moved"}, ""},
	{"gemini", "at the usual places", nil, ""},
	{"opencode", "at the usual places", nil, ""},
	{"opencode", "with OPENCODE_CONFIG and OPENCODE_CONFIG_DIR", []string{"OPENCODE_CONFIG=DIR/moved/own.json", "OPENCODE_CONFIG_DIR=DIR/moved"}, ""},
	{"copilot", "at the usual places", nil, ""},
	{"copilot", "in .github", nil, ".github/mcp.json"},
	{"codex", "at the usual places", nil, ""},
	{"codex", "with CODEX_HOME", []string{"CODEX_HOME=DIR/moved"}, ""},
}

// newFiles has clientconfig create a file at every place that the table names, with
// servers of each kind, and the client use them all at once.
func newFiles(ctx context.Context, w *world, c *realclient.Client) (*finding, error) {
	f := &finding{}
	for _, v := range variations {
		if v.client != c.ID || w.quick && v.variables != nil {
			continue
		}
		h, err := w.home(c, v.variables...)
		if err != nil {
			return nil, err
		}
		for i, place := range h.client().Files {
			path := h.system.Path(place)
			if path == "" || place.Scope == "system" || v.only != "" && place.Path != v.only || v.only == "" && place.Unless != "" {
				continue
			}
			if err := h.addAll(ctx, path, place, fmt.Sprintf("p%d", i)); err != nil {
				return nil, err
			}
		}
		if err := h.understood(ctx, f, v.name); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// addAll writes servers of each kind to a place.
func (h *home) addAll(ctx context.Context, path string, place clientconfig.Place, prefix string) error {
	file := clientconfig.New(path, h.client(), h.setup.Project, place)
	if _, err := os.Stat(path); err == nil {
		file = clientconfig.Open(path, h.client(), h.setup.Project, place)
	}
	for _, s := range []*clientconfig.Server{
		h.local(prefix+"-plain", nil),
		h.local(prefix+"-args", awkward),
		h.local(prefix+"-env", []string{"x"}, "PLAIN=a b", `ODD=c:\d "e" #f`, "API_TOKEN=not-a-real-one"),
		h.far(prefix+"-http", clientconfig.HTTP),
		h.far(prefix+"-sse", clientconfig.SSE),
	} {
		next, err := file.Add(s)
		if errors.Is(err, clientconfig.ErrEdit) && s.Transport == clientconfig.SSE {
			continue // codex and opencode have no way to say it
		}
		if err != nil {
			return err
		}
		file = next
		h.want = append(h.want, s)
	}
	_, err := h.store.Save(ctx, file)
	return err
}
