// Package cli is what a person types: one file for each command. It turns words
// into options for the packages below and what comes back into lines, or JSON,
// and an exit code.
//
// Standard output is for the answer. Progress, questions and errors go to
// standard error, so that the answer can be piped on.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Env is the world a command runs in.
type Env struct {
	Args    []string // without the program's name
	Environ []string
	// Stdin is read to ask a person something, and only if it is a terminal. The
	// protocol of "run" and "mcp" does not pass through here.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Alone: the process is ours, so what servers leave behind in it may be ended.
	Alone bool
}

// Exit codes. 3, 4 and 5 are those of the MCP inspector.
const (
	OK          = 0   // healthy, or healed
	Failed      = 1   // a problem remains
	Misused     = 2   // what was typed makes no sense
	SignIn      = 3   // all that is missing is a sign-in
	Unreachable = 4   // a server is dead or cannot be reached
	ToolError   = 5   // the tool that was called answered with an error
	Pending     = 10  // there is something to change, and it was not changed
	Interrupted = 130 // stopped by the person, as a shell counts it
)

// usageError is a mistake in what was typed.
type usageError struct {
	text string
	hint string // a command that helps; "" is the help of the command that was typed
}

func (e usageError) Error() string { return e.text }

func misused(format string, args ...any) error {
	return usageError{text: fmt.Sprintf(format, args...)}
}

// exitError ends a command that has already said what there is to say.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exit is the result of a command that has said everything.
func exit(code int) error {
	if code == OK {
		return nil
	}
	return exitError(code)
}

// hinted is an error with a line of advice.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// Main runs one command and returns the exit code.
func Main(ctx context.Context, env Env) int {
	p := &program{env: env, done: ctx.Done(), end: func() {}}
	defer func() { p.end() }()
	root := p.root()
	command, err := root.ExecuteContextC(ctx)
	var usage usageError
	var quiet exitError
	var advice hinted
	hint, code := "", Failed
	switch {
	case err == nil:
		return OK
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.As(err, &usage):
		hint, code = usage.hint, Misused
		if hint == "" {
			hint = command.CommandPath() + " --help"
		}
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err, code = errors.New("interrupted"), Interrupted
	}
	if errors.As(err, &advice) {
		hint = advice.hint
	}
	p.json = p.json || wantsJSON(env.Args)
	p.complain(topLevel(command), err, hint, code)
	return code
}

// wantsJSON looks for --json by itself: flags are not read any further than to the
// one that is wrong.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json")
}

// topLevel is the name of a command of the table: "registry" for "registry update".
func topLevel(c *cobra.Command) string {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	return c.Name()
}

// complain says what is wrong on one line, and on the next what may help. Whoever
// wants JSON gets it as JSON, too.
func (p *program) complain(command string, err error, hint string, code int) {
	text := plain(err.Error())
	fmt.Fprintf(p.env.Stderr, "mcpmend: error: %s\n", text)
	if hint != "" {
		fmt.Fprintf(p.env.Stderr, "mcpmend: hint: %s\n", hint)
	}
	if p.json {
		j := errorJSON{answer: answerTo(command, code)}
		j.Error.Message, j.Error.Hint = text, hint
		_ = p.printJSON(j) // there is nobody left to tell
	}
}

func lookupEnv(environ []string, name string) string {
	for _, e := range environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
