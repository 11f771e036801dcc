package transcripts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

var update = flag.Bool("update", false, "write down what is heard now")

// A file says on its first lines what it guards against. Its sections are
//
//	run       flags for mcpmend run, and behind -- the npm program with its arguments;
//	          $DIR is an empty folder with one file, hello.txt
//	calls     params of tools/call, one a line
//	answers   the results, one a line
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
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
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			flags, program, _ := strings.Cut(strings.ReplaceAll(section(a, "run"), "$DIR", dir), "--\n")
			words := strings.Fields(program)
			server, err := npm.Argv(words[0], words[1:]...)
			if err != nil {
				t.Fatal(err)
			}
			argv := append([]string{"run"}, strings.Fields(flags)...)
			got := converse(t, exec.CommandContext(t.Context(), mend, append(append(argv, "--"), server...)...), strings.ReplaceAll(section(a, "calls"), "$DIR", dir))
			got = strings.ReplaceAll(got, dir, "$DIR")
			if *update {
				setSection(a, "answers", got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(section(a, "answers"), got); diff != "" {
				t.Errorf("other answers than written down (-want +got):\n%s", diff)
			}
		})
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setSection(a *txtar.Archive, name, text string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(text)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
}

// converse introduces a client, has it list the tools and make the calls, and
// returns the results.
func converse(t *testing.T, cmd *exec.Cmd, calls string) string {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Wait()
	}()
	answers := bufio.NewReaderSize(out, 1<<20)
	id := 0
	ask := func(method, params string) json.RawMessage {
		id++
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for {
			line, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%s %s: %v", method, params, err)
			}
			var m struct {
				ID     *int
				Method string
				Result json.RawMessage
				Error  json.RawMessage
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			switch {
			case m.ID == nil || *m.ID != id || m.Method != "":
			case m.Error != nil:
				return m.Error
			default:
				return m.Result
			}
		}
	}
	ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"transcript","version":"1"}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ask("tools/list", `{}`)
	var b strings.Builder
	for call := range strings.Lines(calls) {
		if call = strings.TrimSpace(call); call != "" {
			var line bytes.Buffer
			if err := json.Compact(&line, ask("tools/call", call)); err != nil {
				t.Fatal(err)
			}
			b.WriteString(line.String() + "\n")
		}
	}
	return b.String()
}
