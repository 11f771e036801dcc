// Command mcpmend keeps an AI agent's MCP servers working.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpmend/mcpmend/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A client that stops reading is noticed by the write, not by a signal. The
	// signal is caught and not ignored, because servers would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := cli.Main(ctx, cli.Env{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Alone:   true,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
	})
	stop()
	os.Exit(code)
}
