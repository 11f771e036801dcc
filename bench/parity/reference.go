package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

// What a server makes up anew each time, and nothing else, is left out.
var (
	clock   = regexp.MustCompile(`\d{1,2}:\d\d:\d\d( [AP]M)?`)
	moment  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`)
	logText = regexp.MustCompile(`"level":"[a-z]+","data":"[^"]*"`)
	taskID  = regexp.MustCompile(`[0-9a-f]{32}`)
)

// everything calls every tool of server-everything.
func everything(ctx context.Context, w *world) ([]finding, error) {
	npm, err := w.rig.NPM(ctx)
	if err != nil {
		return nil, err
	}
	argv, err := npm.Argv("mcp-server-everything", "stdio")
	if err != nil {
		return nil, err
	}
	return playAll(ctx, everythingScript,
		w.stdio("stdio direct", argv...),
		w.run("stdio → run → stdio", append([]string{"--"}, argv...)...),
		w.front("HTTP → run → stdio", append([]string{"--"}, argv...)...))
}

// toolCalls has one or more calls for every tool.
var toolCalls = []struct {
	name, arguments string
	masks           []*regexp.Regexp
}{
	{name: "echo", arguments: `{"message":"caf\u00e9 <b> \ud83d\ude00"}`},
	{name: "echo", arguments: `{"message":7}`}, // refused
	{name: "get-annotated-message", arguments: `{"messageType":"error","includeImage":true}`},
	{name: "get-env", arguments: `{}`},
	{name: "get-resource-links", arguments: `{"count":3}`},
	{name: "get-resource-reference", arguments: `{"resourceType":"Text","resourceId":1}`, masks: []*regexp.Regexp{clock}},
	{name: "get-structured-content", arguments: `{"location":"Chicago"}`},
	{name: "get-sum", arguments: `{"a":1.5,"b":2}`},
	{name: "get-tiny-image", arguments: `{}`},
	{name: "gzip-file-as-resource", arguments: `{"name":"x.gz","data":"data:text/plain;base64,SGVsbG8=","outputType":"resource"}`},
	{name: "toggle-simulated-logging", arguments: `{}`, masks: []*regexp.Regexp{logText}},
	{name: "toggle-simulated-logging", arguments: `{}`, masks: []*regexp.Regexp{logText}},
	{name: "toggle-subscriber-updates", arguments: `{}`},
	{name: "toggle-subscriber-updates", arguments: `{}`},
	{name: "trigger-long-running-operation", arguments: `{"duration":1,"steps":4}`},
	{name: "get-roots-list", arguments: `{}`},
	{name: "trigger-elicitation-request", arguments: `{}`},
	{name: "trigger-url-elicitation", arguments: `{"url":"https://example.com/","elicitationId":"fixed"}`},
	{name: "trigger-sampling-request", arguments: `{"prompt":"caf\u00e9","maxTokens":10}`},
	{name: "no-such-tool", arguments: `{}`},
}

func everythingScript(ctx context.Context, p *player) {
	p.begin(ctx)
	// The server adds tools once it knows the client's roots. It says so, but not
	// when it is done; asking for the roots is answered after that.
	p.quiet(ctx, `"settle"`, "tools/call", `{"name":"get-roots-list","arguments":{}}`)
	list := p.call(ctx, "tools/list", `1`, "tools/list", `{}`)
	called := map[string]bool{"simulate-research-query": true}
	for i, c := range toolCalls {
		called[c.name] = true
		params := fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":%d}}`, c.name, c.arguments, 1000+i)
		p.call(ctx, c.name+" "+c.arguments, fmt.Sprint(100+i), "tools/call", params, c.masks...)
	}
	p.note("tools without a call", strings.Join(missing(list, called), " "))
	p.researchTask(ctx)
	for i, c := range []struct{ method, params string }{
		{"resources/list", `{}`},
		{"resources/templates/list", `{}`},
		{"resources/read", `{"uri":"demo://resource/static/document/features.md"}`},
		{"resources/read", `{"uri":"demo://nowhere"}`},
		{"resources/subscribe", `{"uri":"demo://resource/dynamic/text/1"}`},
		{"resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/1"}`},
		{"prompts/list", `{}`},
		{"prompts/get", `{"name":"simple-prompt"}`},
		{"prompts/get", `{"name":"args-prompt","arguments":{"city":"Caf\u00e9","state":"<b>"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}`},
		{"logging/setLevel", `{"level":"debug"}`},
		{"ping", `{}`},
		{"no/such/method", `{}`},
	} {
		p.call(ctx, c.method+" "+c.params, fmt.Sprint(300+i), c.method, c.params)
	}
}

// researchTask calls the one tool that runs as a task (2025-11-25, experimental).
func (p *player) researchTask(ctx context.Context) {
	reply := p.call(ctx, "simulate-research-query", `200`, "tools/call",
		`{"name":"simulate-research-query","arguments":{"topic":"caf\u00e9"},"task":{"ttl":60000}}`, taskID, moment)
	var created struct {
		Result struct{ Task struct{ TaskID string } }
	}
	if err := json.Unmarshal(reply, &created); err != nil || created.Result.Task.TaskID == "" {
		p.note("task", "not created")
		return
	}
	p.call(ctx, "tasks/result", `201`, "tasks/result", fmt.Sprintf(`{"taskId":%q}`, created.Result.Task.TaskID), taskID, moment)
}

// missing lists the tools that the script does not call.
func missing(list []byte, called map[string]bool) []string {
	var l struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal(list, &l); err != nil || len(l.Result.Tools) == 0 {
		return []string{"(no list)"}
	}
	var names []string
	for _, t := range l.Result.Tools {
		if !called[t.Name] {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

// begin does the legacy handshake.
func (p *player) begin(ctx context.Context) {
	p.call(ctx, "initialize", `"init"`, "initialize", raw.Initialize)
	p.notify("notifications/initialized", "")
}

// quiet makes a call that is not compared.
func (p *player) quiet(ctx context.Context, id, method, params string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, _ = p.client.Call(ctx, id, method, params)
	p.client.Seen()
}

// note puts a finding of the script's own into the comparison.
func (p *player) note(name, text string) {
	p.played = append(p.played, exchange{name: name, reply: []byte(text)})
}

// servers plays short scripts with the other reference servers.
func servers(ctx context.Context, w *world) ([]finding, error) {
	npm, err := w.rig.NPM(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mcpmend-parity-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("café\r\nsecond line\n"), 0o644); err != nil {
		return nil, err
	}
	var all []finding
	for _, s := range []struct {
		program string
		args    []string
		script  script
	}{
		{"mcp-server-filesystem", []string{dir}, func(ctx context.Context, p *player) { filesystemScript(ctx, p, dir) }},
		{"mcp-server-memory", nil, memoryScript},
		{"mcp-server-sequential-thinking", nil, thinkingScript},
	} {
		argv, err := npm.Argv(s.program, s.args...)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(s.program, "mcp-server-")
		found, err := playAll(ctx, s.script,
			w.stdio(name+", stdio direct", argv...),
			w.run(name+", stdio → run → stdio", append([]string{"--"}, argv...)...))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func filesystemScript(ctx context.Context, p *player, dir string) {
	p.begin(ctx)
	p.call(ctx, "tools/list", `1`, "tools/list", `{}`)
	p.call(ctx, "list_allowed_directories", `2`, "tools/call", `{"name":"list_allowed_directories","arguments":{}}`)
	for i, c := range []string{
		`{"name":"read_text_file","arguments":{"path":"%s/a.txt"}}`,
		`{"name":"write_file","arguments":{"path":"%s/b.txt","content":"caf\u00e9\n"}}`,
		`{"name":"edit_file","arguments":{"path":"%s/b.txt","edits":[{"oldText":"caf\u00e9","newText":"tea"}],"dryRun":true}}`,
		`{"name":"list_directory","arguments":{"path":"%s"}}`,
		`{"name":"directory_tree","arguments":{"path":"%s"}}`,
		`{"name":"search_files","arguments":{"path":"%s","pattern":"*.txt"}}`,
		`{"name":"read_text_file","arguments":{"path":"%s/missing"}}`,
		`{"name":"read_text_file","arguments":{"path":"/etc/%s"}}`,
	} {
		params := fmt.Sprintf(c, dir)
		p.call(ctx, c, fmt.Sprint(10+i), "tools/call", params)
	}
}

func memoryScript(ctx context.Context, p *player) {
	p.begin(ctx)
	p.call(ctx, "tools/list", `1`, "tools/list", `{}`)
	for i, c := range []string{
		`{"name":"delete_entities","arguments":{"entityNames":["Ada","B\u00e9la"]}}`, // whatever another play left
		`{"name":"create_entities","arguments":{"entities":[{"name":"Ada","entityType":"person","observations":["caf\u00e9"]},{"name":"B\u00e9la","entityType":"person","observations":[]}]}}`,
		`{"name":"create_relations","arguments":{"relations":[{"from":"Ada","to":"B\u00e9la","relationType":"knows"}]}}`,
		`{"name":"read_graph","arguments":{}}`,
		`{"name":"search_nodes","arguments":{"query":"caf"}}`,
		`{"name":"add_observations","arguments":{"observations":[{"entityName":"Nobody","contents":["x"]}]}}`,
		`{"name":"delete_entities","arguments":{"entityNames":["Ada","B\u00e9la"]}}`,
	} {
		p.call(ctx, c, fmt.Sprint(10+i), "tools/call", c)
	}
}

func thinkingScript(ctx context.Context, p *player) {
	p.begin(ctx)
	p.call(ctx, "tools/list", `1`, "tools/list", `{}`)
	for i, c := range []string{
		`{"name":"sequentialthinking","arguments":{"thought":"caf\u00e9","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":2}}`,
		`{"name":"sequentialthinking","arguments":{"thought":"done","nextThoughtNeeded":false,"thoughtNumber":2,"totalThoughts":2}}`,
		`{"name":"sequentialthinking","arguments":{"thought":7}}`,
	} {
		p.call(ctx, c, fmt.Sprint(10+i), "tools/call", c)
	}
}
