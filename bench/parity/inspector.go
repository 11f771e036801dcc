package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// inspector runs MCP Inspector's command line, which is the TypeScript SDK's
// client as people know it, against a server and against mcpmend in front of it.
func inspector(ctx context.Context, w *world) ([]finding, error) {
	npm, err := w.rig.NPM(ctx)
	if err != nil {
		return nil, err
	}
	everything, err := npm.Argv("mcp-server-everything", "stdio")
	if err != nil {
		return nil, err
	}
	small, err := w.rig.Go(ctx, rig.Small)
	if err != nil {
		return nil, err
	}
	found := finding{Way: "Inspector → run → stdio, and → HTTP front"}
	type question struct {
		server []string
		ask    []string
	}
	questions := []question{
		{[]string{small}, []string{"--method", "tools/list"}},
		{[]string{small}, []string{"--method", "tools/call", "--tool-name", "blob", "--tool-arg", "size=100"}},
		{everything, []string{"--method", "tools/list"}},
		{everything, []string{"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=café"}},
		{everything, []string{"--method", "resources/list"}},
	}
	if w.quick {
		questions = questions[:2]
	}
	for _, c := range questions {
		wrong, err := w.inspect(ctx, npm, c.server, c.ask)
		if err != nil {
			return nil, err
		}
		found.Compared += 2
		found.Wrong = append(found.Wrong, wrong...)
	}
	return []finding{found}, nil
}

func (w *world) inspect(ctx context.Context, npm *rig.NPM, server, ask []string) (wrong []string, err error) {
	direct, err := inspect(ctx, npm, stdioEntry(server), ask)
	if err != nil {
		return nil, err
	}
	front, url, err := w.startFront(ctx, nil, append([]string{"--"}, server...)...)
	if err != nil {
		return nil, err
	}
	defer front.Stop()
	for name, entry := range map[string]any{
		"stdio": stdioEntry(append([]string{w.mcpmend, "run", "--"}, server...)),
		"HTTP":  map[string]any{"type": "streamable-http", "url": url},
	} {
		through, err := inspect(ctx, npm, entry, ask)
		text := differ(direct, through)
		if err != nil {
			text = err.Error()
		}
		if text != "" {
			wrong = append(wrong, fmt.Sprintf("%s, %s: %s", name, strings.Join(ask, " "), text))
		}
	}
	return wrong, nil
}

func stdioEntry(argv []string) any {
	return map[string]any{"type": "stdio", "command": argv[0], "args": argv[1:]}
}

// inspect asks one question. The server is given in a configuration file, as the
// command line of the Inspector loses the "--" of ours.
func inspect(ctx context.Context, npm *rig.NPM, entry any, ask []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"it": entry}})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mcpmend-inspector-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return nil, err
	}
	argv, err := npm.Argv("mcp-inspector", append([]string{"--cli", "--config", file, "--server", "it"}, ask...)...)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(npm.Environ(), "MCP_INSPECTOR_SECRET_STORE=memory") // or it asks for a keychain
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mcp-inspector %s: %w\n%s%s", strings.Join(argv[2:], " "), err, out, stderr.Bytes())
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, errors.New("mcp-inspector printed nothing")
	}
	return out, nil
}
