package cli_test

import (
	"context"
	"os"
	"os/signal"
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
				Args: os.Args[1:], Environ: os.Environ(),
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
		},
	})
}
