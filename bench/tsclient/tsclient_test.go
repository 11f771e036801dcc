package tsclient

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/mcpmend/mcpmend/bench/internal/rig"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// TestMain turns the test binary into the server that dies at every call.
func TestMain(m *testing.M) {
	if os.Getenv("TSCLIENT_TEST_SERVER") == "1" {
		serve()
		return
	}
	os.Exit(m.Run())
}

func serve() {
	in := wire.NewLineReader(os.Stdin, 0, nil)
	for {
		m, err := in.Next()
		if err != nil {
			return
		}
		reply := func(result string) {
			answer := wire.NewResult(m.ID(), wire.OneLine([]byte(result)))
			_, _ = os.Stdout.Write(append(answer.Raw, '\n'))
		}
		switch m.Method() {
		case "initialize":
			reply(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"dies","version":"1"}}`)
		case "tools/list":
			reply(`{"tools":[
				{"name":"typed","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}},
				{"name":"untyped","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			os.Exit(9)
		}
	}
}

func TestTheTypeScriptClientSeesOurAnswer(t *testing.T) {
	r, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	npm, err := r.NPM(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mend, err := r.Mcpmend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), npm.Node(), "testdata/client.mjs", npm.Folder("@modelcontextprotocol/sdk"), mend, "run", "--", os.Args[0])
	cmd.Env = append(npm.Environ(), "TSCLIENT_TEST_SERVER=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte{'\n'})
	if len(lines) != 2 {
		t.Fatalf("got %d answers, want 2:\n%s", len(lines), out)
	}
	for _, line := range lines {
		var got struct {
			Name, Thrown string
			Result       struct {
				IsError           bool
				StructuredContent map[string]any
				Content           []struct{ Text string }
				Meta              map[string]map[string]any `json:"_meta"`
			}
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if got.Thrown != "" || !got.Result.IsError || len(got.Result.Content) == 0 {
			t.Errorf("%s: the client did not pass our answer on: %s", got.Name, line)
			continue
		}
		if outcome := got.Result.Meta["mcpmend.dev/outcome"]["outcome"]; outcome != "unknown" {
			t.Errorf("%s: outcome %v under _meta, want unknown", got.Name, outcome)
		}
		if structured := got.Result.StructuredContent != nil; structured != (got.Name == "untyped") {
			t.Errorf("%s: structuredContent is there: %v", got.Name, structured)
		}
	}
}
