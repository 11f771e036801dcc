package cli_test

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

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

// A sample is a block of the README behind a comment that names a script and the
// file of it that the block shows, below the line that was typed.
var sample = regexp.MustCompile("<!-- output: (\\S+) (\\S+) -->\n+```console\n(.*)\n((?s:.*?))```\n")

func TestSamplesInTheReadmeAreRealOutput(t *testing.T) {
	const file = "../../README.md"
	readme, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !sample.Match(readme) {
		t.Fatal("the README has no samples")
	}
	shown := string(readme)
	for _, m := range sample.FindAllStringSubmatch(shown, -1) {
		want := archived(t, "testdata/script/"+m[1]+".txtar", m[2])
		if *update {
			shown = strings.Replace(shown, m[0], strings.Replace(m[0], m[4], want, 1), 1)
		} else if m[4] != want {
			t.Errorf("%s of %s: the README shows\n%s\nand the program\n%s", m[2], m[1], m[4], want)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
