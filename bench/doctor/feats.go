package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// feats are promises about many servers, none, and commands of strangers.
func feats(ctx context.Context, t *tools, dir string, random *rand.Rand) []feat {
	in := func(name string, parts []part, files ...txtar.File) (*world, error) {
		return newWorld(ctx, t, &setup{Name: name, Parts: parts, Files: files}, filepath.Join(dir, name), random)
	}
	return []feat{
		timed("nothing installed", func() (string, error) { return nothingInstalled(ctx, t, in) }),
		timed("20 servers, one hangs", func() (text string, err error) {
			// It is about time, and the machine may be busy with something else: best of three.
			for try := range 3 {
				if text, err = oneHangs(ctx, t, in, fmt.Sprintf("twenty-%d", try)); err == nil {
					break
				}
			}
			return text, err
		}),
		timed("an approval is for one command", func() (string, error) { return approvalIsBound(ctx, t, in) }),
	}
}

type maker func(name string, parts []part, files ...txtar.File) (*world, error)

func nothingInstalled(ctx context.Context, t *tools, in maker) (string, error) {
	w, err := in("nothing", nil)
	if err != nil {
		return "", err
	}
	defer w.close()
	said, err := w.run(ctx, t.mcpmend, "check")
	if err != nil {
		return "", err
	}
	text := strings.ToLower(said.text())
	if said.exit != 0 || !strings.Contains(text, "mcpmend ") || !strings.Contains(text, "no ") {
		return "", fmt.Errorf("exit %d, and what is said does not help: %s", said.exit, said.text())
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said.text()), "\n")
	return fmt.Sprintf("exit 0, %q and %d more lines", first, strings.Count(strings.TrimSpace(said.text()), "\n")), nil
}

const (
	hangTimeout = 5 * time.Second
	slowest     = 1500 * time.Millisecond // what the slowest healthy server takes
	margin      = time.Second             // for starting twenty processes
)

func oneHangs(ctx context.Context, t *tools, in maker, name string) (string, error) {
	entries := map[string]any{}
	for i := range 20 {
		var args []string
		switch i {
		case 3:
			args = []string{"-hang"}
		case 11:
			args = []string{"-slow", slowest.String()}
		}
		entries[fmt.Sprintf("server-%02d", i)] = map[string]any{"command": t.patient, "args": append([]string{}, args...)}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return "", err
	}
	w, err := in(name, nil, txtar.File{Name: "home/.claude.json", Data: config})
	if err != nil {
		return "", err
	}
	defer w.close()
	var all bytes.Buffer
	shown := map[string]time.Duration{}
	start := time.Now()
	healthyLine := regexp.MustCompile(`(server-\d\d)\b[^\n\r]*\bhealthy`)
	said, err := w.atTerminal(ctx, "", func(piece []byte) {
		all.Write(piece)
		for _, m := range healthyLine.FindAllSubmatch(all.Bytes(), -1) {
			if _, ok := shown[string(m[1])]; !ok {
				shown[string(m[1])] = time.Since(start)
			}
		}
	}, t.mcpmend, "check", "--timeout", hangTimeout.String())
	if err != nil {
		return "", err
	}
	var last time.Duration
	for _, at := range shown {
		last = max(last, at)
	}
	text := fmt.Sprintf("ended after %.1f s of %.0f + 1; %d of 19 healthy ones shown, the last after %.2f s (the slowest takes %.1f s)",
		said.took.Seconds(), hangTimeout.Seconds(), len(shown), last.Seconds(), slowest.Seconds())
	if said.took > hangTimeout+time.Second || len(shown) != 19 || last > slowest+margin {
		return text, fmt.Errorf("too late")
	}
	return text, nil
}

// approvalIsBound approves a project's command, has the project change it, and looks
// whether the new one is run.
func approvalIsBound(ctx context.Context, t *tools, in maker) (string, error) {
	config := func(args string) txtar.File {
		return txtar.File{Name: "project/.mcp.json", Data: []byte(`{"mcpServers": {"helper": {"command": "{{HOME}}/srv/canary", "args": [` + args + `]}}}` + "\n")}
	}
	canary := txtar.File{Name: "home/srv/canary", Data: []byte("#!/bin/sh\necho \"run $*\" >> {{JOURNAL}}\nexec {{PATIENT}}\n")}
	w, err := in("approval", nil, config(`"--read"`), canary)
	if err != nil {
		return "", err
	}
	defer w.close()
	look := func(flags ...string) (*caseOf, error) {
		said, err := w.run(ctx, append([]string{t.mcpmend, "check", "--json"}, flags...)...)
		if err != nil {
			return nil, err
		}
		var found checked
		if err := json.Unmarshal(said.out, &found); err != nil {
			return nil, err
		}
		for _, c := range found.Cases {
			if c.Client == "claude-code" && c.Server == "helper" {
				return c, nil
			}
		}
		return nil, fmt.Errorf("nothing said of it")
	}
	first, err := look()
	if err != nil {
		return "", err
	}
	if first.State != "pending" || len(w.journal()) != 0 {
		return "", fmt.Errorf("state %s and run %q before it was approved", first.State, w.journal())
	}
	second, err := look("--approve", first.Approve)
	if err != nil {
		return "", err
	}
	if second.State != "healthy" || len(w.journal()) == 0 {
		return "", fmt.Errorf("state %s after it was approved", second.State)
	}
	if err := os.Remove(w.words["JOURNAL"]); err != nil {
		return "", err
	}
	if err := w.write([]txtar.File{config(`"--write"`)}); err != nil {
		return "", err
	}
	third, err := look()
	if err != nil {
		return "", err
	}
	if third.State != "pending" || len(w.journal()) != 0 {
		return "", fmt.Errorf("another command of the same name: state %s, run %q", third.State, w.journal())
	}
	return "pending, approved, changed: pending again and not run", nil
}
