// Package cli is what a person types: one file for each command. It turns words
// into options for package app and what comes back into lines and an exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// Env is the world a command runs in. Standard input and output belong to the
// protocol and are not in it.
type Env struct {
	Args    []string // without the program's name
	Environ []string
	Stdout  io.Writer
	Stderr  io.Writer
}

// Exit codes.
const (
	OK      = 0
	Failed  = 1
	Misused = 2
)

// usageError is a mistake in what was typed.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

const help = `mcpmend keeps an AI agent's MCP servers working.

  mcpmend run [flags] -- COMMAND ARGS...   stand in front of a server that is started
  mcpmend run [flags] URL                  stand in front of a server that is running
  mcpmend version                          print the version

'mcpmend run --help' lists the flags.
`

// Main runs one command and returns the exit code.
func Main(ctx context.Context, env Env) int {
	err := dispatch(ctx, env)
	var usage usageError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "mcpmend: error: %s\nmcpmend: hint: mcpmend --help\n", usage.text)
		return Misused
	}
	fmt.Fprintf(env.Stderr, "mcpmend: error: %v\n", err)
	return Failed
}

func dispatch(ctx context.Context, env Env) error {
	if len(env.Args) == 0 {
		fmt.Fprint(env.Stdout, help)
		return nil
	}
	command, rest := env.Args[0], env.Args[1:]
	env.Args = rest
	switch command {
	case "run":
		return run(ctx, env)
	case "version", "--version":
		fmt.Fprintln(env.Stdout, "mcpmend", version())
		return nil
	case "help", "--help", "-h":
		fmt.Fprint(env.Stdout, help)
		return nil
	}
	return usageError{fmt.Sprintf("unknown command %q", command)}
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
