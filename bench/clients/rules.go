package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// A rule is how one client reads its file: written down here from its documentation, its
// source and what it was seen to do, without a look at internal/clientconfig. It is
// stricter than many clients are, since a file that satisfies it satisfies them.
type rule struct {
	id, path, format, key string
	list                  bool
	// refuses: one entry that it cannot use makes it lose all of them.
	refuses bool
	// top are the keys that may stand at the top; nil for any.
	top []string

	command, args, env, url, headers string
	// words: the command is one list with its arguments. needsArgs: an entry with a
	// command and no arguments is not used.
	words, needsArgs bool
	// object: the command may be an object with path, args and env.
	object bool
	// types are the values of "type" and what they stand for; nil if it is not looked at.
	types map[string]string
	// needsType: an entry without a type is not used, by command or by URL.
	commandNeedsType, urlNeedsType bool
	// untyped is what a URL without a type is taken for, "" if the client finds out.
	untyped string
	// needs are further names that an entry must have, by command and by URL.
	needs, urlNeeds []string
	// apart: parts for commands must not stand beside a URL, nor the other way round.
	apart bool
	// own is an entry of this client as its documentation writes one.
	own string
}

var httpTypes = map[string]string{"stdio": "stdio", "http": "http", "sse": "sse"}

var rules = []rule{
	usual("claude-desktop", ".config/Claude/claude_desktop_config.json", func(r *rule) { r.format, r.url = "json", "" }),
	usual("claude-code", ".claude.json", func(r *rule) {
		r.format, r.urlNeedsType = "json", true
		r.types = map[string]string{"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse", "ws": "ws"}
	}),
	usual("cursor", ".cursor/mcp.json", func(r *rule) {}),
	usual("vscode", ".config/Code/User/mcp.json", func(r *rule) { r.key, r.types = "servers", httpTypes }),
	usual("copilot-cli", ".copilot/mcp-config.json", func(r *rule) {
		r.types = map[string]string{"local": "stdio", "stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse"}
	}),
	usual("windsurf", ".codeium/windsurf/mcp_config.json", func(r *rule) { r.url = "serverUrl" }),
	usual("zed", ".config/zed/settings.json", func(r *rule) { r.key, r.object = "context_servers", true }),
	usual("cline", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", func(r *rule) {
		r.refuses, r.untyped = true, "sse"
		r.types = map[string]string{"stdio": "stdio", "streamableHttp": "http", "sse": "sse"}
	}),
	usual("continue", ".continue/config.yaml", func(r *rule) {
		r.format, r.list, r.refuses, r.headers = "yaml", true, true, "requestOptions.headers"
		r.types = map[string]string{"stdio": "stdio", "streamable-http": "http", "sse": "sse"}
		r.own = "name: mine\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: own\n    command: WITNESS\n    args: [\"OWN\"]\n"
	}),
	{
		id: "codex", path: ".codex/config.toml", format: "toml", key: "mcp_servers", refuses: true, apart: true,
		command: "command", args: "args", env: "env", url: "url", headers: "http_headers",
		own: "model = \"gpt-5\"\n\n[mcp_servers.own]\ncommand = \"WITNESS\"\nargs = [\"OWN\"]\n",
	},
	usual("gemini-cli", ".gemini/settings.json", func(r *rule) { r.format = "commented" }),
	{
		id: "goose", path: ".config/goose/config.yaml", format: "yaml", key: "extensions",
		command: "cmd", args: "args", env: "envs", url: "uri", headers: "headers", needsArgs: true,
		types: map[string]string{"stdio": "stdio", "streamable_http": "http"}, commandNeedsType: true, urlNeedsType: true,
		needs: []string{"name", "enabled"}, urlNeeds: []string{"name", "enabled", "description"},
		own: "GOOSE_PROVIDER: openai\nextensions:\n  own:\n    name: own\n    enabled: true\n    type: stdio\n    cmd: WITNESS\n    args: [\"OWN\"]\n",
	},
	usual("lm-studio", ".lmstudio/mcp.json", func(r *rule) {}),
	usual("junie", ".junie/mcp/mcp.json", func(r *rule) {}),
	usual("kiro", ".kiro/settings/mcp.json", func(r *rule) {}),
	{
		id: "opencode", path: ".config/opencode/opencode.json", format: "jsonc", key: "mcp", refuses: true,
		command: "command", words: true, env: "environment", url: "url", headers: "headers",
		types: map[string]string{"local": "stdio", "remote": "http"}, commandNeedsType: true, urlNeedsType: true,
		own: "{\n  \"theme\": \"system\",\n  \"mcp\": {\n    \"own\": {\"type\": \"local\", \"command\": [\"WITNESS\", \"OWN\"]}\n  }\n}\n",
	},
	usual("warp", ".warp/.mcp.json", func(r *rule) {}),
	usual("librechat", "librechat.yaml", func(r *rule) {
		r.format, r.refuses, r.needsArgs, r.untyped = "yaml", true, true, "sse"
		r.top = []string{"version", "cache", "interface", "endpoints", "mcpServers", "mcpSettings"}
		r.types = map[string]string{"stdio": "stdio", "streamable-http": "http", "http": "http", "sse": "sse", "websocket": "ws"}
		r.own = "version: 1.2.8\nmcpServers:\n  own:\n    command: WITNESS\n    args: [\"OWN\"]\n"
	}),
}

// usual is a client that reads what Claude Desktop made common.
func usual(id, path string, but func(*rule)) rule {
	r := rule{id: id, path: path, format: "jsonc", key: "mcpServers", command: "command", args: "args", env: "env", url: "url", headers: "headers"}
	but(&r)
	if r.own == "" {
		r.own = "{\n  \"KEY\": {\n    \"own\": {\"command\": \"WITNESS\", \"args\": [\"OWN\"]}\n  }\n}\n"
		r.own = strings.ReplaceAll(r.own, "KEY", r.key)
	}
	return r
}

// A launch is what a client makes of an entry.
type launch struct {
	argv         []string
	env, headers map[string]string
	url          string
	transport    string // "" if the client finds out
}

func (l launch) equal(m launch) bool {
	return fmt.Sprint(l.argv) == fmt.Sprint(m.argv) && maps.Equal(l.env, m.env) && maps.Equal(l.headers, m.headers) && l.url == m.url &&
		(l.transport == m.transport || l.transport == "")
}

// servers are those that the client would use. With an error it has none of them, and
// perhaps does not start.
func (r *rule) servers(data []byte) (map[string]launch, error) {
	root, err := parse(r.format, data)
	if err != nil {
		return nil, err
	}
	for name := range root {
		if r.top != nil && !strings.Contains(" "+strings.Join(r.top, " ")+" ", " "+name+" ") {
			return nil, fmt.Errorf("%q is not known", name)
		}
	}
	entries, err := r.entries(root[r.key])
	if err != nil {
		return nil, err
	}
	found := make(map[string]launch)
	for name, value := range entries {
		l, err := r.launch(value)
		switch {
		case err == nil:
			found[name] = l
		case r.refuses:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return found, nil
}

func (r *rule) entries(value any) (map[string]any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if !r.list {
			return v, nil
		}
	case []any:
		if !r.list {
			break
		}
		all := make(map[string]any)
		for _, e := range v {
			entry, _ := e.(map[string]any)
			name, ok := entry["name"].(string)
			if !ok {
				return nil, errors.New("a server without a name")
			}
			all[name] = entry
		}
		return all, nil
	}
	return nil, fmt.Errorf("the servers are a %T", value)
}

func (r *rule) launch(value any) (l launch, err error) {
	e, ok := value.(map[string]any)
	if !ok {
		return l, fmt.Errorf("the entry is a %T", value)
	}
	typ, typed := "", false
	if r.types != nil {
		if text, there := e["type"]; there {
			word, _ := text.(string)
			if typ, typed = r.types[word]; !typed {
				return l, fmt.Errorf("the type %v", text)
			}
		}
	}
	_, byCommand := e[r.command]
	url, byURL := e[r.url]
	if r.id == "gemini-cli" && e["httpUrl"] != nil {
		url, byURL, typ, typed = e["httpUrl"], true, "http", true
	}
	switch {
	case byCommand && !(byURL && typ != "" && typ != "stdio"):
		return r.local(e, typed)
	case byURL && r.url != "":
		return r.remote(e, url, typ, typed)
	}
	return l, errors.New("neither a command nor a URL")
}

func (r *rule) local(e map[string]any, typed bool) (l launch, err error) {
	if r.commandNeedsType && !typed {
		return l, errors.New("no type")
	}
	if inner, ok := e[r.command].(map[string]any); ok && r.object {
		e = map[string]any{"command": inner["path"], "args": inner["args"], "env": inner["env"]}
	}
	if l.argv, err = listOf(e[r.command]); r.words && err != nil || r.words && len(l.argv) == 0 {
		return l, fmt.Errorf("the command: %w", err)
	}
	if !r.words {
		program, ok := e[r.command].(string)
		args, err := listOf(e[r.args])
		if _, there := e[r.args]; !ok || err != nil || !there && r.needsArgs {
			return l, errors.New("the command or its arguments")
		}
		l.argv = append([]string{program}, args...)
	}
	for _, name := range r.needs {
		if _, there := e[name]; !there {
			return l, fmt.Errorf("no %s", name)
		}
	}
	if _, there := e[r.headers]; r.apart && there {
		return l, errors.New("headers beside a command")
	}
	l.transport = "stdio"
	l.env, err = pairsOf(e[r.env])
	return l, err
}

func (r *rule) remote(e map[string]any, url any, typ string, typed bool) (l launch, err error) {
	if r.urlNeedsType && !typed {
		return l, errors.New("no type")
	}
	for _, name := range r.urlNeeds {
		if _, there := e[name]; !there {
			return l, fmt.Errorf("no %s", name)
		}
	}
	_, env := e[r.env]
	_, args := e[r.args]
	if r.apart && (env || args) {
		return l, errors.New("parts of a command beside a URL")
	}
	var ok bool
	if l.url, ok = url.(string); !ok {
		return l, errors.New("the URL")
	}
	if l.transport = typ; !typed {
		l.transport = r.untyped
	}
	var headers any = e
	for _, name := range strings.Split(r.headers, ".") {
		inner, _ := headers.(map[string]any)
		headers = inner[name]
	}
	l.headers, err = pairsOf(headers)
	return l, err
}

func listOf(value any) (list []string, err error) {
	if value == nil {
		return nil, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("a %T and no list", value)
	}
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("a %T in a list of texts", item)
		}
		list = append(list, text)
	}
	return list, nil
}

func pairsOf(value any) (map[string]string, error) {
	if value == nil {
		return nil, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a %T and no object", value)
	}
	all := make(map[string]string)
	for name, v := range object {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%s is a %T", name, v)
		}
		all[name] = text
	}
	return all, nil
}

// parse reads a file whose top has to be an object. "commented" is strict JSON from which
// comments are taken.
func parse(format string, data []byte) (root map[string]any, err error) {
	switch format {
	case "toml":
		err = toml.Unmarshal(data, &root)
	case "yaml":
		err = yaml.Unmarshal(data, &root)
	default:
		if format != "json" {
			data = withoutComments(data, format == "jsonc")
		}
		d := json.NewDecoder(bytes.NewReader(data))
		if err = d.Decode(&root); err == nil {
			if _, more := d.Token(); more != io.EOF {
				err = errors.New("more than one value")
			}
		}
	}
	return root, err
}

// withoutComments takes comments out of JSON, and trailing commas if they are allowed.
func withoutComments(data []byte, commas bool) []byte {
	var out []byte
	for i := 0; i < len(data); i++ {
		rest := data[i:]
		switch {
		case data[i] == '"':
			end := 1
			for end < len(rest)-1 && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			out = append(out, rest[:end+1]...)
			i += end
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				return out
			}
			i += n - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest, []byte("*/"))
			if n < 0 {
				return out
			}
			i += n + 1
		case commas && (data[i] == '}' || data[i] == ']'):
			out = bytes.TrimRight(out, " \t\r\n")
			out = append(bytes.TrimSuffix(out, []byte(",")), data[i])
		default:
			out = append(out, data[i])
		}
	}
	return out
}
