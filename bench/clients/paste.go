package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/bench/testserver/witness/testimony"
)

// pasteGoal is how many of the entries whose meaning is certain have to be converted.
const pasteGoal = 95 // per cent

// A form is how people find an entry written down: for a command and for a URL, under
// the key of the client that it was made for.
type form struct {
	name, key     string
	local, remote string
	// comments and trailing commas stand in it.
	commented bool
}

// ARGS is a list of texts and ENV an object in all of them.
var forms = []form{
	{name: "claude", key: "mcpServers",
		local:  `{"command": "WITNESS", "args": ["JOURNAL", "two words"], "env": {"WITNESS_KEY": "v"}}`,
		remote: `{"type": "http", "url": "URL", "headers": {"X-Witness": "key"}}`},
	{name: "one text", key: "mcpServers", // as many pages write it
		local:  `{"command": "WITNESS", "args": "JOURNAL plain", "env": {"WITNESS_KEY": "v"}}`,
		remote: `{"url": "URL", "headers": {"X-Witness": "key"}}`},
	{name: "vscode", key: "servers",
		local:  `{"type": "stdio", "command": "WITNESS", "args": ["JOURNAL", "two words"], "env": {"WITNESS_KEY": "v"}}`,
		remote: `{"type": "http", "url": "URL", "headers": {"X-Witness": "key"}}`},
	{name: "codex", key: "mcp_servers",
		local:  `{"command": "WITNESS", "args": ["JOURNAL", "two words"], "env": {"WITNESS_KEY": "v"}, "startup_timeout_sec": 20}`,
		remote: `{"url": "URL", "http_headers": {"X-Witness": "key"}}`},
	{name: "opencode", key: "mcp",
		local:  `{"type": "local", "command": ["WITNESS", "JOURNAL", "two words"], "environment": {"WITNESS_KEY": "v"}, "enabled": true}`,
		remote: `{"type": "remote", "url": "URL", "headers": {"X-Witness": "key"}, "enabled": true}`},
	{name: "zed", key: "context_servers",
		local:  `{"source": "custom", "command": {"path": "WITNESS", "args": ["JOURNAL", "two words"], "env": {"WITNESS_KEY": "v"}}}`,
		remote: `{"url": "URL", "headers": {"X-Witness": "key"}}`},
	{name: "gemini", key: "mcpServers",
		local:  `{"command": "WITNESS", "args": ["JOURNAL", "two words"], "env": {"WITNESS_KEY": "v"}, "timeout": 30000, "trust": true}`,
		remote: `{"httpUrl": "URL", "headers": {"X-Witness": "key"}, "timeout": 30000}`},
	{name: "documentation", key: "mcpServers", commented: true,
		local:  `{"command": "WITNESS", "args": ["JOURNAL", "two words"], "env": {"WITNESS_KEY": "v"}}`,
		remote: `{"type": "streamable-http", "url": "URL", "headers": {"X-Witness": "key"}}`},
}

// A paste is one form in one client's file.
type paste struct {
	r       *rule
	f       *form
	remote  bool
	foreign bool // under the form's own key, which is not the client's
	beside  bool // the file has a server of its own, and settings
	syntax  bool // in the syntax of the form, which is not the file's
}

func (p paste) String() string {
	what, where, beside := "a command", "under "+p.r.key, "alone"
	if p.remote {
		what = "a URL"
	}
	if p.foreign {
		where = "under " + p.f.key
	}
	if p.beside {
		beside = "beside a server"
	}
	if p.syntax {
		where += " in another syntax"
	}
	return fmt.Sprintf("%s: %s of %s %s, %s", p.r.id, what, p.f.name, where, beside)
}

// certain: there is one way to read it, and the client can say it. A file in another
// syntax has to be written anew by whoever pasted it. LibreChat takes a URL without a type
// for the older HTTP, and nobody asks a URL of a project before it is approved.
func (p paste) certain() bool {
	asSSE := p.r.id == "librechat" && !p.foreign && !strings.Contains(p.f.remote, `"type"`) && !strings.Contains(p.f.remote, "httpUrl")
	return !p.syntax && (!p.remote || p.r.url != "" && !asSSE)
}

// pastes are those into the files of some clients, or of all. With --quick it is files
// alone that have a server of their own, which can break, and each form under its own key.
func pastes(only string, quick bool) []paste {
	var all []paste
	for i := range rules {
		if only != "" && !slices.Contains(strings.Split(only, ","), rules[i].id) {
			continue
		}
		for j := range forms {
			r, f := &rules[i], &forms[j]
			for _, remote := range []bool{false, true} {
				for _, beside := range []bool{false, true} {
					if quick && !beside {
						continue
					}
					if !quick || f.key == r.key {
						all = append(all, paste{r: r, f: f, remote: remote, beside: beside})
					}
					if f.key != r.key {
						all = append(all, paste{r: r, f: f, remote: remote, foreign: true, beside: beside})
					}
				}
			}
			if toml := r.format == "toml"; toml != (f.name == "codex") {
				all = append(all, paste{r: r, f: f, foreign: true, beside: true, syntax: true})
			}
		}
	}
	return all
}

// A pasted is what became of a paste.
type pasted struct {
	paste
	// worked: the client had its own servers before.
	worked, broke, converted bool
	why                      string
}

// pasteAll pastes every form into every client's file, has mcpmend heal them, and
// asks before and after: our rules for all of them, and the client for those that run
// here.
func pasteAll(ctx context.Context, w *world, real map[string]*realclient.Client, only string) ([]*pasted, error) {
	all := pastes(only, w.quick)
	results := make([]*pasted, len(all))
	failures := make([]error, len(all))
	room := make(chan struct{}, 2*atOnce)
	var wait sync.WaitGroup
	for i, p := range all {
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			if failures[i] = ctx.Err(); failures[i] == nil {
				results[i], failures[i] = w.paste(ctx, p, real[p.r.id])
			}
		})
	}
	wait.Wait()
	return results, errors.Join(failures...)
}

// asked says whether the real client judges a paste: with --quick two of them.
func (w *world) asked(p paste) bool {
	if !p.beside || p.syntax {
		return false
	}
	return !w.quick || !p.remote && (p.foreign || p.f.key == p.r.key) && slices.Contains([]string{"one text", "opencode"}, p.f.name)
}

func (w *world) paste(ctx context.Context, p paste, c *realclient.Client) (*pasted, error) {
	dir, err := os.MkdirTemp(w.dir, "paste-")
	if err != nil {
		return nil, err
	}
	setup := realclient.Setup{Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}
	h := &home{w: w, c: c, dir: dir, setup: setup}
	path := filepath.Join(setup.Home, p.r.path)
	if p.r.id == "librechat" {
		path = filepath.Join(setup.Project, p.r.path)
	}
	for _, folder := range []string{filepath.Dir(path), setup.Home, setup.Project, filepath.Join(dir, "journals")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	if p.r.id == "gemini-cli" { // it uses no servers elsewhere
		trust := fmt.Sprintf("{%q: \"TRUST_FOLDER\"}\n", setup.Project)
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "trustedFolders.json"), []byte(trust), 0o644); err != nil {
			return nil, err
		}
	}
	url := w.remote.url("http", filepath.Base(dir))
	content := strings.NewReplacer("WITNESS_KEY", "WITNESS_KEY", "WITNESS", w.witness, "JOURNAL", h.journal("pasted"), "OWN", h.journal("own"), "URL", url).Replace(p.text())
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return nil, err
	}
	want := launch{argv: []string{w.witness, h.journal("pasted"), "two words"}, env: map[string]string{"WITNESS_KEY": "v"}, transport: "stdio"}
	if p.f.name == "one text" {
		want.argv[2] = "plain"
	}
	if p.remote {
		want = launch{url: url, headers: map[string]string{"X-Witness": "key"}, transport: "http"}
	}
	if !w.asked(p) {
		c = nil
	}
	result := &pasted{paste: p}
	_, why := h.judged(ctx, p, c, path, launch{})
	result.worked = why == ""
	heals := 2 // the second must find nothing to spoil
	if w.quick {
		heals = 1
	}
	for range heals {
		if err := h.heal(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		result.converted, why = h.judged(ctx, p, c, path, want)
		result.broke = result.broke || why != "" && result.worked
		if result.broke || !result.converted {
			now, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			result.why = fmt.Sprintf("%s\n%s\nbecame\n%s", why, content, now)
		}
	}
	return result, nil
}

// judged reports whether the pasted server is used as it was meant, and why the
// client has none of its own, "" if it has.
func (h *home) judged(ctx context.Context, p paste, c *realclient.Client, path string, want launch) (bool, string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return false, err.Error()
	}
	found, err := p.r.servers(data)
	if err != nil {
		return false, "our rules: " + err.Error()
	}
	if _, ok := found["own"]; p.beside && !ok {
		return false, "our rules: the server that was there is not used"
	}
	launched, ok := found["pasted"]
	asMeant := ok && launched.equal(want)
	if c == nil {
		return asMeant, ""
	}
	out := c.Connect(ctx, h.setup)
	if v := c.Verdict(out, "own"); v.State != realclient.OK {
		return false, fmt.Sprintf("%s says of its own server: %s %q %v", c.ID, v.State, v.Text, out.Err)
	}
	if want.url == "" && want.argv == nil {
		return false, ""
	}
	if v := c.Verdict(out, "pasted"); v.State != realclient.OK {
		return false, ""
	}
	if p.remote {
		return asMeant && h.w.remote.seen(want.url) == "key", ""
	}
	lines, err := testimony.Read(h.journal("pasted"))
	return asMeant && err == nil && slices.ContainsFunc(lines, func(l testimony.Line) bool {
		return l.Greeting != "" && slices.Equal(l.Args, want.argv[2:]) && maps.Equal(l.Env, want.env)
	}), ""
}

// heal runs mcpmend as a person who agrees to everything.
func (h *home) heal(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, h.w.mcpmend, "heal", "--yes")
	cmd.Dir = h.setup.Project
	cmd.Env = []string{"HOME=" + h.setup.Home, "PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/sh", "NO_COLOR=1"}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if bytes.Contains(out, []byte("panic:")) {
		return fmt.Errorf("mcpmend: %s", out)
	}
	return nil
}

// text is the file after somebody has pasted.
func (p paste) text() string {
	entry, key := p.f.local, p.r.key
	if p.remote {
		entry = p.f.remote
	}
	if p.foreign {
		key = p.f.key
	}
	if p.syntax {
		return p.otherSyntax(key, entry)
	}
	switch p.r.format {
	case "toml":
		return p.inTOML(key, entry)
	case "yaml":
		return p.inYAML(key, entry)
	}
	return p.inJSON(key, entry)
}

func (p paste) inJSON(key, entry string) string {
	block := fmt.Sprintf("%q: %s", "pasted", entry)
	comma := ""
	if p.f.commented {
		block, comma = "// the server of this page\n    "+block, ","
	}
	whole := fmt.Sprintf("  %q: {\n    %s%s\n  }", key, block, comma)
	switch {
	case !p.beside:
		return "{\n" + whole + "\n}\n"
	case !p.foreign: // the entry is put before the one that is there
		return strings.Replace(p.r.own, "    \"own\"", "    "+block+",\n    \"own\"", 1)
	}
	return strings.TrimSuffix(strings.TrimRight(p.r.own, "\n"), "\n}") + ",\n" + whole + "\n}\n"
}

func (p paste) inTOML(key, entry string) string {
	text := ""
	if p.f.commented {
		text = "# the server of this page\n"
	}
	text += tomlOf(key, decode(entry))
	if p.beside {
		return p.r.own + "\n" + text
	}
	return text
}

func tomlOf(key string, entry map[string]any) string {
	data, err := toml.Marshal(map[string]any{key: map[string]any{"pasted": entry}})
	if err != nil {
		panic(err) // of our own
	}
	text := strings.Replace(string(data), fmt.Sprintf("[%s]\n", key), "", 1)
	return text
}

func (p paste) inYAML(key, entry string) string {
	var lines []string
	if p.f.commented {
		lines = append(lines, "# the server of this page")
	}
	fields := yamlOf(decode(entry))
	if p.r.list && !p.foreign {
		lines = append(lines, "- name: pasted")
	} else {
		lines = append(lines, "pasted:")
	}
	for _, line := range strings.Split(strings.TrimRight(fields, "\n"), "\n") {
		lines = append(lines, "  "+line)
	}
	block := "  " + strings.Join(lines, "\n  ") + "\n"
	head := ""
	if p.r.id == "librechat" {
		head = "version: 1.2.8\n"
	}
	if p.r.id == "continue" {
		head = "name: mine\nversion: 0.0.1\nschema: v1\n"
	}
	switch {
	case !p.beside:
		return head + key + ":\n" + block
	case !p.foreign:
		return p.r.own + block
	}
	return p.r.own + key + ":\n" + block
}

func yamlOf(entry map[string]any) string {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(entry), e.Close()); err != nil {
		panic(err)
	}
	return out.String()
}

// otherSyntax is TOML below JSON or YAML, and JSON below TOML.
func (p paste) otherSyntax(key, entry string) string {
	if p.f.name == "codex" {
		return p.r.own + "\n" + tomlOf(key, decode(entry))
	}
	return p.r.own + "\n" + fmt.Sprintf("{\n  %q: {\"pasted\": %s}\n}\n", key, entry)
}

func decode(entry string) (fields map[string]any) {
	d := json.NewDecoder(strings.NewReader(entry))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		panic(err)
	}
	for name, v := range fields {
		if n, ok := v.(json.Number); ok {
			i, _ := n.Int64()
			fields[name] = i
		}
	}
	return fields
}

// A matrix is the figures of all pastes.
type matrix struct {
	Files     int      `json:"files"`
	Worked    int      `json:"worked"` // before
	Broke     int      `json:"broke"`
	Certain   int      `json:"certain"`
	Converted int      `json:"converted"`
	Asked     int      `json:"asked"` // judged by the real client, too
	Why       []string `json:"why,omitempty"`

	cells map[[2]string][2]int // client, form → converted, certain
}

func (w *world) matrix(all []*pasted, real map[string]*realclient.Client) *matrix {
	m := &matrix{Files: len(all), cells: make(map[[2]string][2]int)}
	for _, p := range all {
		cell := m.cells[[2]string{p.r.id, p.f.name}]
		if p.worked {
			m.Worked++
		}
		if w.asked(p.paste) && real[p.r.id] != nil {
			m.Asked++
		}
		switch {
		case p.broke:
			m.Broke++
			m.Why = append(m.Why, "BROKE "+p.String()+": "+p.why)
		case p.certain() && !p.converted:
			m.Why = append(m.Why, "not converted: "+p.String()+": "+p.why)
		}
		if p.certain() {
			m.Certain++
			cell[1]++
			if p.converted {
				m.Converted++
				cell[0]++
			}
		}
		m.cells[[2]string{p.r.id, p.f.name}] = cell
	}
	return m
}

func (m *matrix) reached() bool { return m.Broke == 0 && m.Converted*100 >= m.Certain*pasteGoal }

func (m *matrix) print(verbose bool) {
	fmt.Printf("\n%-15s", "pasted into")
	for _, f := range forms {
		fmt.Printf(" %13s", f.name)
	}
	fmt.Println()
	for _, r := range rules {
		fmt.Printf("%-15s", r.id)
		for _, f := range forms {
			cell := m.cells[[2]string{r.id, f.name}]
			fmt.Printf(" %13s", fmt.Sprintf("%d/%d", cell[0], cell[1]))
		}
		fmt.Println()
	}
	for i, why := range m.Why {
		if i == 8 && !verbose {
			fmt.Printf("\n... and %d more\n", len(m.Why)-i)
			break
		}
		fmt.Printf("\n%s\n", strings.ReplaceAll(why, "\n", "\n    "))
	}
}

// figures is the end of the last line.
func (m *matrix) figures() string {
	return fmt.Sprintf("%d pasted (%d judged by real clients), %d worked before, %d of them not after, %d of %d converted",
		m.Files, m.Asked, m.Worked, m.Broke, m.Converted, m.Certain)
}
