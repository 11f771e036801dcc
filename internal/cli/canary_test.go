package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/cli"
)

// Secrets that nothing gives away but that they are known: by the entry's variables, its
// arguments and headers.
var canarySecrets = map[string]string{
	"DEMO_API_KEY":     "vulture/plum-walnut+kite&zebra",
	"DEMO_PRIVATE_KEY": "marmot-basket-one\nlantern-pepper-two\nthimble-orchard-three",
	"--password":       "quince-harbour-saddle-77",
	"Authorization":    "Bearer mustard.velvet.compass.trout",
}

// leaks are the ways in which a server prints what it was given.
func leaks(secret string) []string {
	quoted, _ := json.Marshal(map[string]string{"v": secret})
	wrap := func(s, between string) string {
		var parts []string
		for len(s) > 16 {
			parts, s = append(parts, s[:16]), s[16:]
		}
		return strings.Join(append(parts, s), between)
	}
	b64 := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	return []string{
		secret, string(quoted), url.QueryEscape(secret), url.PathEscape(secret),
		b64, base64.RawURLEncoding.EncodeToString([]byte(secret)),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		wrap(b64, "\n"), wrap(hex.EncodeToString([]byte(secret)), "\n    "), wrap(secret, "\n[demo] "), wrap(secret, "\" +\n  \""),
		"value:\n  " + secret,
	}
}

// forbidden are the parts of all that which may be shown nowhere.
func forbidden() map[string]string {
	parts := make(map[string]string)
	for name, secret := range canarySecrets {
		secret = strings.TrimPrefix(secret, "Bearer ")
		for _, line := range strings.Split(secret, "\n") {
			for i, text := range []string{line, url.QueryEscape(line), hex.EncodeToString([]byte(line)), strings.ToUpper(hex.EncodeToString([]byte(line)))} {
				for at := 0; at+10 <= len(text); at += 5 {
					parts[text[at:at+10]] = fmt.Sprintf("%s, encoding %d", name, i)
				}
			}
		}
		for shift := range 3 { // what is inside of base64, by alignment
			text := base64.StdEncoding.EncodeToString([]byte("xxx"[:shift] + secret))
			for at := 4; at+10 <= len(text)-4; at += 5 {
				parts[text[at:at+10]] = name + ", base64"
			}
		}
	}
	return parts
}

// leaky is a server that tells what it knows wherever it can.
func leaky(args []string) {
	told := leaked(args)
	fmt.Fprintln(os.Stderr, told)
	if len(args) > 0 && args[0] == "-dies" {
		fmt.Fprintln(os.Stderr, "Error: login failed")
		os.Exit(1)
	}
	fmt.Println(strings.ReplaceAll(told, "{", "("))
	server := mcp.NewServer(&mcp.Implementation{Name: "demo " + os.Getenv("DEMO_API_KEY"), Version: "1 " + os.Getenv("DEMO_API_KEY")}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "tell", Description: told}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: told}}}, nil, nil
	})
	type numbers struct {
		A int `json:"a"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "refuse", Description: "Refuses."}, func(context.Context, *mcp.CallToolRequest, numbers) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("invalid arguments: a must be below 3; %s", told)
	})
	mcp.AddTool(server, &mcp.Tool{Name: "die", Description: "Ends."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, told)
		os.Exit(1)
		return nil, nil, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
}

func leaked(args []string) string {
	var all []string
	for name := range canarySecrets {
		secret := os.Getenv(name)
		for i, arg := range args {
			if arg == name && i+1 < len(args) {
				secret = args[i+1]
			}
		}
		if secret != "" {
			all = append(all, leaks(secret)...)
		}
	}
	return "[demo] I was given\n[demo] " + strings.Join(all, "\n[demo] and ") + "\n[demo] that is all"
}

func TestNoOutletShowsACanary(t *testing.T) {
	// A server over HTTP that repeats what it was sent.
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		http.Error(w, "[demo] not allowed: "+strings.Join(leaks(secret), "\n[demo] and "), http.StatusForbidden)
	}))
	defer echo.Close()
	var prompts safeBuffer
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&prompts, r.Body)
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"{\"corrected\": false, \"reason\": \"no\"}"},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()

	env := map[string]string{"DEMO_API_KEY": canarySecrets["DEMO_API_KEY"], "DEMO_PRIVATE_KEY": canarySecrets["DEMO_PRIVATE_KEY"]}
	password := []string{"--password", canarySecrets["--password"]}
	config, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{
		"lives":  map[string]any{"command": "demo", "args": append([]string{"-leaky"}, password...), "env": env},
		"dies":   map[string]any{"command": "demo", "args": append([]string{"-leaky", "-dies"}, password...), "env": env},
		"remote": map[string]any{"type": "http", "url": echo.URL + "/mcp?api_key=" + url.QueryEscape(canarySecrets["--password"]), "headers": map[string]string{"Authorization": canarySecrets["Authorization"]}},
	}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	home, file := homeWith(t, string(config))
	// One that heal mends, so that there are diffs, backups and a history.
	cursor := filepath.Join(home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(cursor), 0o755); err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(config), `"mcpServers"`, `"servers"`, 1)
	if err := os.WriteFile(cursor, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}

	parts, outlets, shown := forbidden(), 0, 0
	look := func(outlet, text string) {
		outlets++
		for part, what := range parts {
			if i := strings.Index(text, part); i >= 0 {
				shown++
				t.Errorf("%s shows %q of %s: …%s…", outlet, part, what, text[max(0, i-60):min(len(text), i+60)])
				return
			}
		}
	}
	environ := append(os.Environ(), "HOME="+home, "MCPMEND_STATE="+filepath.Join(home, "state"))
	typed := func(args ...string) string {
		var out, errs bytes.Buffer
		cli.Main(t.Context(), cli.Env{Args: args, Environ: environ, Stdout: &out, Stderr: &errs})
		name := strings.Join(args, " ")
		look(name+" (stdout)", out.String())
		look(name+" (stderr)", errs.String())
		return out.String() + errs.String()
	}
	for _, line := range []string{
		"check -v", "check --json", "check --static -v", "list", "list --json", "clients -v", "test lives -v", "test lives --json", "test lives --call tell", "test lives --call tell --json",
		"test lives --call refuse --json", "test dies -v", "test remote -v", "test remote --json", "report lives", "report lives --json", "report dies", "report dies --json", "report remote",
		"heal --plan", "heal --plan --json", "heal --yes", "wrap lives --plan", "wrap lives --yes", "check lives -v", "unwrap lives --yes", "remove dies --yes", "history", "history -v", "history --json", "undo", "undo --json",
	} {
		text := typed(strings.Fields(line)...)
		if strings.Contains(text, "unknown flag") || strings.Contains(text, "unknown command") {
			t.Errorf("mcpmend %s: %s", line, text)
		}
		if strings.HasPrefix(line, "report") && !strings.Contains(text, "hidden]") && !strings.Contains(text, "[DEMO_") && !strings.Contains(text, "[Authorization]") {
			t.Errorf("mcpmend %s has nothing to hide, so this shows nothing:\n%s", line, text)
		}
	}

	// The agent's tools.
	replies, logs := converse(t, environ, []string{"mcp"},
		call(1, "check_health", `{}`), call(2, "test_connection", `{"server":"lives"}`), call(3, "test_connection", `{"server":"remote"}`), call(4, "heal_server", `{"server":"dies"}`),
		call(5, "list_servers", `{}`), call(6, "explain_error", `{"server":"dies","text":"Error: login failed"}`), call(7, "undo_change", `{}`))
	look("agent tools", replies)
	look("mcp (stderr)", logs)
	if strings.Count(replies, `"id":`) < 8 {
		t.Errorf("the agent got too few answers:\n%s", replies)
	}

	// run: what it says itself, and what of the server passes through to stderr. A tool's
	// result is the server's word to its own client, and passes as it is.
	given := append(environ, "DEMO_API_KEY="+env["DEMO_API_KEY"], "DEMO_PRIVATE_KEY="+env["DEMO_PRIVATE_KEY"])
	server := append([]string{"--", "demo", "-leaky"}, password...)
	replies, logs = converse(t, given, append([]string{"run"}, server...), call(1, "die", `{}`), call(2, "die", `{}`))
	_, replies, _ = strings.Cut(replies, "\n") // how it introduces itself
	look("run, a call that died (stdout)", replies)
	look("run (stderr)", logs)
	if !strings.Contains(logs, "I was given") || !strings.Contains(replies, "[demo]") {
		t.Errorf("nothing of the server's words passes:\n%s\n%s", replies, logs)
	}
	replies, logs = converse(t, given, append([]string{"run", "--", "demo", "-leaky", "-dies"}, password...), call(1, "tell", `{}`))
	look("run, dead at start (stdout)", replies)
	look("run, dead at start (stderr)", logs)
	replies, logs = converse(t, given, []string{"run", "--header", "Authorization: " + canarySecrets["Authorization"], echo.URL + "/mcp"}, call(1, "tell", `{}`))
	look("run URL (stdout)", replies)
	look("run URL (stderr)", logs)

	// What a model is asked. It is asked about arguments that do not fit.
	replies, logs = converse(t, append(given, "MCPMEND_MODEL_KEY=k"), append([]string{"run", "--model", "m", "--model-url", model.URL + "/v1"}, server...),
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, call(2, "refuse", `{"a":"many","password":`+quote(canarySecrets["DEMO_API_KEY"])+`}`), call(3, "refuse", `{"a":`+quote("x "+canarySecrets["DEMO_API_KEY"])+`}`))
	look("run --model (stderr)", logs)
	look("model prompts", prompts.String())
	if !strings.Contains(prompts.String(), "refuse") {
		t.Errorf("the model was not asked:\n%s\n%s", prompts.String(), replies)
	}

	// Names of everything that is kept; contents but for the copies of the user's own files.
	err = filepath.WalkDir(filepath.Join(home, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		look("name of a kept file", path)
		if !d.IsDir() && !strings.Contains(path, "backups") {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			look(filepath.Base(path)+" in the state folder", string(text))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d of %d outlets show a canary; %s", shown, outlets, file)
}

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

func call(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// converse starts mcpmend, greets it and makes each call when the one before is answered.
func converse(t *testing.T, environ, args []string, calls ...string) (replies, logs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	mcpmend := exec.CommandContext(ctx, "mcpmend", args...)
	mcpmend.Env = environ
	var errs safeBuffer
	mcpmend.Stderr = &errs
	in, err := mcpmend.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := mcpmend.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := mcpmend.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	read := json.NewDecoder(io.TeeReader(out, &all))
	answered := func(id int) {
		for {
			var m struct {
				ID json.RawMessage `json:"id"`
			}
			if err := read.Decode(&m); err != nil {
				t.Errorf("mcpmend %s: %v", args[0], err)
				return
			}
			if string(m.ID) == fmt.Sprint(id) {
				return
			}
		}
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	answered(0)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, c := range calls {
		fmt.Fprintln(in, c)
		answered(i + 1)
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = mcpmend.Wait()
	return all.String(), errs.String()
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestAServerWithoutTheKeyOfAModelIsToldTheFlag(t *testing.T) {
	home, _ := homeWith(t, "{}")
	environ := append(os.Environ(), "HOME="+home, "OPENAI_API_KEY=one-of-the-users-own")
	replies, logs := converse(t, environ, []string{"run", "--", "demo", "-need", "OPENAI_API_KEY"}, call(1, "add", `{"a":1,"b":2}`))
	if want := "--pass-env OPENAI_API_KEY"; !strings.Contains(replies, want) || !strings.Contains(logs, want) {
		t.Errorf("no %q in\n%s\nor\n%s", want, replies, logs)
	}
	replies, _ = converse(t, environ, []string{"run", "--pass-env", "OPENAI_API_KEY", "--", "demo", "-need", "OPENAI_API_KEY"}, call(1, "add", `{"a":1,"b":2}`))
	if !strings.Contains(replies, `"text":"3"`) {
		t.Errorf("with the flag: %s", replies)
	}
}
