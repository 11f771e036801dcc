package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/mcpmend/mcpmend/internal/cli"
)

func TestThePublishedSchemaIsTheOneInTheProgram(t *testing.T) {
	const published = "../../docs/schema/mcpmend-1.json"
	inside, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(published, inside, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	outside, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(inside, outside) {
		t.Errorf("%s is not internal/cli/schema.json; copy it", published)
	}
}

// A terminal or a log shows JSON, too, and obeys what stands in it.
func TestJSONHidesNothingAndTurnsNothingAround(t *testing.T) {
	const name = "a\u202eb\u2066c\u009bd\u200fe\U000e0041f\x7fg\x1bh\ufeffi ✓ü�"
	home := t.TempDir()
	quoted, err := json.Marshal(name)
	if err != nil {
		t.Fatal(err)
	}
	file := `{"mcpServers": {` + string(quoted) + `: {"command": "x"}}}`
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cli.Main(t.Context(), cli.Env{
		Args: []string{"check", "--static", "--json", "--project", home}, Environ: []string{"HOME=" + home, "USERPROFILE=" + home}, Stdout: &out, Stderr: &errs,
	})
	for _, r := range out.String() {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%U is written as it is", r)
		}
	}
	var answer struct {
		Cases []struct {
			Name string `json:"server"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Cases) != 1 || answer.Cases[0].Name != name {
		t.Errorf("got %+v, %v; want the name %+q whole, in\n%s", answer, err, name, out.String())
	}
	if !strings.Contains(out.String(), "✓ü�") {
		t.Errorf("harmless letters are escaped:\n%s", out.String())
	}
}

func TestAnInterruptedCommandSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	home := t.TempDir()
	var out, errs bytes.Buffer
	code := cli.Main(ctx, cli.Env{
		Args: []string{"check", "--project", home}, Environ: []string{"HOME=" + home, "USERPROFILE=" + home}, Stdout: &out, Stderr: &errs,
	})
	if code != cli.Interrupted || out.Len() > 0 || errs.String() != "mcpmend: error: interrupted\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}
