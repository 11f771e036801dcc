package cli_test

import (
	"bytes"
	"context"
	"os"
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
