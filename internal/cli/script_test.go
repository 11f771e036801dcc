package cli_test

import (
	"context"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpmend/mcpmend/internal/cli"
)

// The scripts type what a person could type. "mcpmend" is the real program, from
// this build, in a home of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mcpmend": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			defer stop()
			os.Exit(cli.Main(ctx, cli.Env{
				Args: os.Args[1:], Environ: os.Environ(), Alone: true,
				Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			}))
		},
		"args": func() { args() },
		"demo": demo,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			home := env.WorkDir + "/home"
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			return os.MkdirAll(home, 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":     exits,
			"settle":    settle,
			"validates": validates,
			"hides":     hides,
			"pastes":    pastes,
			"approval":  approval,
			"registry":  serveRegistry,
		},
	})
}

// A sample is a block of a page behind a comment that names a script and the file
// of it that the block shows, below the line that was typed. Four backticks stand
// around output that has three of its own.
var samples = []*regexp.Regexp{
	regexp.MustCompile("<!-- output: (\\S+) (\\S+) -->\n+```console\n(.*)\n((?s:.*?))```\n"),
	regexp.MustCompile("<!-- output: (\\S+) (\\S+) -->\n+````console\n(.*)\n((?s:.*?))````\n"),
}

// It stands below TestScripts, so that one run with -update is enough.
func TestSamplesInTheDocumentationAreRealOutput(t *testing.T) {
	for _, page := range []string{"README.md", "docs/DOCTOR.md"} {
		file := "../../" + page
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		shown, found := string(text), 0
		for _, sample := range samples {
			for _, m := range sample.FindAllStringSubmatch(shown, -1) {
				found++
				want := archived(t, "testdata/script/"+m[1]+".txtar", m[2])
				if *update {
					shown = strings.Replace(shown, m[0], strings.TrimSuffix(m[0], m[4]+fenceOf(m[0]))+want+fenceOf(m[0]), 1)
				} else if m[4] != want {
					t.Errorf("%s of %s: %s shows\n%s\nand the program\n%s", m[2], m[1], page, m[4], want)
				}
			}
		}
		// A comment with a typing mistake must not make a sample one that nobody checks.
		if meant := strings.Count(shown, "```console\n"); found == 0 || found != meant {
			t.Errorf("%s has %d blocks of console, and %d of them are samples", page, meant, found)
		}
		if *update {
			if err := os.WriteFile(file, []byte(shown), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fenceOf is the line that ends a block.
func fenceOf(block string) string { return block[strings.LastIndex(block, "\n`")+1:] }
