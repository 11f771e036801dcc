package clinic_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/app"
)

const canary = "ghp_c4n4ryC4N4RYc4n4ryC4N4RYc4n4ry123456"

// The test's own program is also the clinic, and the servers that it examines.
func TestMain(m *testing.M) {
	switch os.Getenv("CLINIC_TEST_ROLE") {
	case "clinic":
		dir, err := os.Getwd()
		if err == nil {
			environ := append(os.Environ(), "CLINIC_TEST_ROLE=")
			err = app.ServeClinic(context.Background(), app.DoctorOptions{Environ: environ, Project: dir}, "v0")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "server":
		serve()
	}
	os.Exit(m.Run())
}

// serve is a server with one tool, that wants a variable.
func serve() {
	if slices.Contains(os.Args, "-fail") {
		fmt.Fprintln(os.Stderr, "Error: something is broken in here")
		os.Exit(1)
	}
	if address := os.Getenv("DEMO_HANG"); address != "" {
		conn, err := net.Dial("tcp", address) // whoever listens sees us live
		if err != nil {
			os.Exit(1)
		}
		defer conn.Close()
		_, _ = io.Copy(io.Discard, conn) // until they hang up, whatever happens to standard input
		os.Exit(1)
	}
	if os.Getenv("DEMO_TOKEN") == "" {
		fmt.Fprintln(os.Stderr, "Error: DEMO_TOKEN environment variable is required")
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "signing in with", os.Getenv("DEMO_TOKEN"))
	if note := os.Getenv("DEMO_STARTED"); note != "" {
		_ = os.WriteFile(note, nil, 0o600)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "demo", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	if s.Run(context.Background(), &mcp.StdioTransport{}) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// A machine is a home and a project, and an agent that is connected to the real
// program in it over real pipes.
type machine struct {
	home, project string
	agent         *mcp.ClientSession
	questions     []string
}

func newMachine(t *testing.T, version string, reply func(question string) string) *machine {
	t.Helper()
	m := &machine{home: t.TempDir()}
	m.project = filepath.Join(m.home, "project")
	if err := os.Mkdir(m.project, 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Dir = m.project
	cmd.Env = append(os.Environ(), "CLINIC_TEST_ROLE=clinic", "HOME="+m.home, "USERPROFILE="+m.home, "APPDATA="+filepath.Join(m.home, "roaming"),
		"XDG_CONFIG_HOME="+filepath.Join(m.home, ".config"), "MCPMEND_STATE="+filepath.Join(m.home, "state"), "DEMO_TOKEN="+canary)
	var said bytes.Buffer
	cmd.Stderr = &said
	var o mcp.ClientOptions
	if reply != nil {
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			m.questions = append(m.questions, r.Params.Message)
			return &mcp.ElicitResult{Action: reply(r.Params.Message)}, nil
		}
	}
	m.agent, err = mcp.NewClient(&mcp.Implementation{Name: "agent"}, &o).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	t.Cleanup(func() {
		m.agent.Close()
		if strings.Contains(said.String(), canary) {
			t.Errorf("a secret on stderr: %s", said.String())
		}
	})
	return m
}

func (m *machine) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) call(t *testing.T, tool string, arguments map[string]any) map[string]any {
	t.Helper()
	r, err := m.agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	whole, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(whole)+strings.Join(m.questions, ""), canary) {
		t.Errorf("%s shows a secret: %s %s", tool, whole, m.questions)
	}
	if r.IsError {
		t.Fatalf("%s: %s", tool, whole)
	}
	return r.StructuredContent.(map[string]any)
}

// entry is a server of ours in a file of Claude Code; args is JSON.
func entry(t *testing.T, args string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name, err := json.Marshal(exe)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{
  "mcpServers": {
    "demo": {
      "command": %s,
      "args": %s,
      "env": {
        "CLINIC_TEST_ROLE": "server",
        "DEMO_TOKEN": %q
      }
    }
  }
}
`, name, args, canary)
}

var eras = []string{"2025-11-25", "2026-07-28"}

func TestARealServerIsMendedOverStdio(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			m := newMachine(t, version, func(string) string { return "accept" })
			file := filepath.Join(m.home, ".claude.json")
			m.write(t, file, entry(t, `"-test.run=none"`)) // a text where a list has to be
			out := m.call(t, "check_health", nil)
			server := out["servers"].([]any)[0].(map[string]any)
			if server["state"] != "skipped" || server["cause"].(map[string]any)["id"] != "shape.args_as_string" {
				t.Fatalf("got %v, want the cause", server)
			}
			out = m.call(t, "check_health", map[string]any{"auto_heal": true})
			h := out["servers"].([]any)[0].(map[string]any)
			if h["fixed"] != true || h["state"] != "healthy" || len(m.questions) != 1 {
				t.Fatalf("got %v after %q, want it fixed after one question", h, m.questions)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if want := entry(t, `["-test.run=none"]`); string(b) != want {
				t.Errorf("the file is\n%s, want\n%s", b, want)
			}
			id := h["undo"].([]any)[0]
			if out := m.call(t, "undo_change", map[string]any{"id": id}); out["undone"] != true {
				t.Errorf("got %v", out)
			}
			if b, _ := os.ReadFile(file); string(b) != entry(t, `"-test.run=none"`) {
				t.Errorf("after undo the file is\n%s", b)
			}
		})
	}
}

func TestTwoServersOfOneFileAreBothMended(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			m := newMachine(t, version, nil)
			file := filepath.Join(m.home, ".claude.json")
			one := entry(t, `"-test.run=none"`)
			inner := one[strings.Index(one, `    "demo"`):strings.LastIndex(one, "\n  }\n}")]
			m.write(t, file, strings.Replace(one, inner, inner+",\n"+strings.Replace(inner, "demo", "other", 1), 1))
			arguments := map[string]any{"auto_heal": true}
			out := m.call(t, "check_health", arguments)
			arguments["confirm"] = out["approval"].(map[string]any)["plan"]
			out = m.call(t, "check_health", arguments)
			for _, h := range out["servers"].([]any) {
				if h := h.(map[string]any); h["fixed"] != true {
					t.Errorf("got %v, want it fixed", h)
				}
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), `["-test.run=none"]`); n != 2 {
				t.Errorf("%d entries are mended in\n%s", n, b)
			}
		})
	}
}

// Codex hands few variables on, so a server that works in a terminal misses its
// token there. Naming the variable in the entry is for a person to decide.
func TestAVariableIsHandedOnOnlyIfAPersonAgrees(t *testing.T) {
	codex := func(t *testing.T, m *machine) string {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(m.home, ".codex", "config.toml")
		if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		m.write(t, file, fmt.Sprintf("[mcp_servers.demo]\ncommand = %q\nenv = { CLINIC_TEST_ROLE = \"server\" }\n", exe))
		return file
	}
	heal := func(t *testing.T, m *machine, more map[string]any) (out, h map[string]any) {
		arguments := map[string]any{"server": "demo"}
		maps.Copy(arguments, more)
		out = m.call(t, "heal_server", arguments)
		return out, out["servers"].([]any)[0].(map[string]any)
	}
	written := func(t *testing.T, file string) bool {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(b), `env_vars = ["DEMO_TOKEN"]`)
	}
	for _, version := range eras {
		for _, action := range []string{"accept", "decline"} {
			t.Run(version+" "+action, func(t *testing.T) {
				m := newMachine(t, version, func(string) string { return action })
				file := codex(t, m)
				_, h := heal(t, m, nil)
				if want := action == "accept"; h["fixed"] != want || written(t, file) != want || len(m.questions) != 1 {
					t.Errorf("got %v after %q", h, m.questions)
				}
				kind := h["attempts"].([]any)[0].(map[string]any)["kind"]
				if kind != "missing_env_var" {
					t.Errorf("the first diagnosis is %v", kind)
				}
			})
		}
		t.Run(version+" nobody to ask", func(t *testing.T) {
			m := newMachine(t, version, nil)
			file := codex(t, m)
			out, h := heal(t, m, nil)
			approval := out["approval"].(map[string]any)
			if h["fixed"] != false || written(t, file) || approval["plan"] != nil {
				t.Errorf("got %v, want nothing done and nothing that a program could confirm", out)
			}
			wanted := approval["wanted"].([]any)[0].(map[string]any)
			if person := fmt.Sprint(wanted["person"]); !strings.Contains(person, "mcpmend heal demo") {
				t.Errorf("a person is told %q", person)
			}
		})
	}
}

func TestAProjectsCommandWaitsForAPerson(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			answer := "decline"
			m := newMachine(t, version, func(string) string { return answer })
			started := filepath.Join(m.home, "started")
			text := strings.Replace(entry(t, `[]`), `"DEMO_TOKEN"`, fmt.Sprintf(`"DEMO_STARTED": %q, "DEMO_TOKEN"`, started), 1)
			text = strings.Replace(text, canary, "${DEMO_TOKEN}", 1)
			m.write(t, filepath.Join(m.project, ".mcp.json"), text)
			state := func() any {
				return m.call(t, "test_connection", map[string]any{"server": "demo"})["servers"].([]any)[0].(map[string]any)["state"]
			}
			if got := state(); got != "pending" {
				t.Errorf("declined: got %v", got)
			}
			if _, err := os.Stat(started); err == nil {
				t.Fatal("the command ran although the person declined")
			}
			answer = "accept"
			if got := state(); got != "healthy" {
				t.Errorf("accepted: got %v", got)
			}
			if n := len(m.questions); n != 2 || state() != "healthy" || len(m.questions) != n {
				t.Errorf("asked %d times; an approval is remembered", len(m.questions))
			}
		})
	}
}

func TestANewServerIsAddedOnceItWorks(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			m := newMachine(t, version, func(string) string { return "accept" })
			file := filepath.Join(m.home, ".claude.json")
			m.write(t, file, "{}\n")
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			arguments := map[string]any{
				"name": "demo", "command": exe, "clients": []string{"claude-code"}, "secrets": []string{"DEMO_TOKEN"}, "args": []string{"-fail"}, "env": map[string]any{"CLINIC_TEST_ROLE": "server"},
			}
			out := m.call(t, "configure_server", arguments)
			p := out["clients"].([]any)[0].(map[string]any)
			if b, _ := os.ReadFile(file); p["status"] != "failing" || string(b) != "{}\n" {
				t.Errorf("got %v, want a server that does not work not to be written", p)
			}
			delete(arguments, "args")
			out = m.call(t, "configure_server", arguments)
			p = out["clients"].([]any)[0].(map[string]any)
			if b, _ := os.ReadFile(file); p["status"] != "written" || !strings.Contains(string(b), `"DEMO_TOKEN": "${DEMO_TOKEN}"`) {
				t.Errorf("got %v and\n%s", p, b)
			}
		})
	}
}

func TestAnswersComeAlsoAfterTheEndOfInput(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for range 5 { // the end used to win some of the time
		cmd := exec.Command(exe)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), "CLINIC_TEST_ROLE=clinic", "HOME="+home, "USERPROFILE="+home, "MCPMEND_STATE="+filepath.Join(home, "state"))
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"explain_error","arguments":{"error":"spawn npx ENOENT"}}}
`)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), `"name":"mcpmend"`) || !strings.Contains(string(out), `"structuredContent":{"kind":"command_not_found"`) {
			t.Fatalf("got %q, want two answers", out)
		}
	}
}

// A client prints a warning into the pipe, or is cut off in the middle of a line. The
// session goes on, and a call that is under way gets its answer.
func TestALineThatIsNoMessageEndsNothing(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	home := t.TempDir()
	text := strings.Replace(entry(t, `[]`), `"DEMO_TOKEN"`, fmt.Sprintf(`"DEMO_HANG": %q, "DEMO_TOKEN"`, listener.Addr()), 1)
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "CLINIC_TEST_ROLE=clinic", "HOME="+home, "USERPROFILE="+home, "MCPMEND_STATE="+filepath.Join(home, "state"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, 1<<20)
	answer := func(id, holds string) {
		t.Helper()
		if !answers.Scan() {
			t.Fatalf("the session is over, and call %s has no answer", id)
		}
		if got := answers.Text(); !strings.Contains(got, `"id":`+id+`,`) || !strings.Contains(got, holds) {
			t.Fatalf("got %s, want the answer to call %s with %s in it", got, id, holds)
		}
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test_connection","arguments":{"server":"demo"}}}`)
	answer("1", `"name":"mcpmend"`)
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "(node:1) Warning: something is deprecated\n\n\x00\xff\n42\n[]\n{}\n"+
		`{"jsonrpc":"2.0","method":5}`+"\n"+
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":`)
	answer("3", `"code":-32700`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"an answer to nothing"}}
{"jsonrpc":"2.0","id":9,"error":"no object"}
{"jsonrpc":"2.0","id":4,"method":5}`)
	answer("4", `"code":-32600`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"explain_error","arguments":{"error":"spawn npx ENOENT"}}}`)
	answer("5", "command_not_found")
	server.Close()
	answer("2", `"server":"demo"`)
	in.Close()
	if answers.Scan() {
		t.Errorf("nobody has asked for %s", answers.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the clinic ended with %v", err)
	}
}

// An agent is stopped, or its terminal closed, while a server is under examination
// that hangs. Nothing of ours may live on.
func TestNothingIsLeftRunningWhenTheAgentIsGone(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	home := t.TempDir()
	text := strings.Replace(entry(t, `[]`), `"DEMO_TOKEN"`, fmt.Sprintf(`"DEMO_HANG": %q, "DEMO_TOKEN"`, listener.Addr()), 1)
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "CLINIC_TEST_ROLE=clinic", "HOME="+home, "USERPROFILE="+home, "MCPMEND_STATE="+filepath.Join(home, "state"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"check_health","arguments":{"auto_heal":true}}}`)
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	began := time.Now()
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the clinic ended with %v", err)
	}
	t.Logf("the clinic ended after %v", time.Since(began))
	server.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := server.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server lives on")
	}
	t.Logf("the server ended after %v", time.Since(began))
}
