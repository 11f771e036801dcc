package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/app"
)

const runHelp = `mcpmend run [flags] -- COMMAND ARGS...
mcpmend run [flags] URL

Stands in front of one MCP server. The client sees the server as it is: its name,
its tools, its notifications. It speaks on stdin and stdout unless --http is given.

  --http ADDR       listen for Streamable HTTP on ADDR, path /mcp; 127.0.0.1:0 picks a port
  --token-file F    file with the token HTTP clients must present; made if it is missing
                    (default: token in mcpmend's state folder; MCPMEND_TOKEN wins over both)
  --no-token        let every HTTP client in
  --trust T         believe what the server says about its tools when a call may have to be
                    sent again: none (default), read-only, all
  --tool NAME=EFFECT  your own word on one tool: read-only, idempotent, unstated, destructive
  --stateful        the server remembers things; after a restart say so instead of calling
  --timeout D       longest time for one call, all attempts together (default 15m)
  --repair P        mend arguments that do not fit: balanced (default), strict, off
  --errors full     explain wrong arguments at full length from the first time on
  --forward-invalid pass on arguments that cannot be mended instead of refusing them
  --model NAME      ask this model about arguments that cannot be mended (default: nobody);
                    with --model-provider openai or anthropic, --model-url BASE for others
                    that speak like them, and the key in MCPMEND_MODEL_KEY; or sampling,
                    for the model that the client lends
  --header 'N: V'   send this header to URL; may be given several times

MCPMEND_OFF=1 starts the server directly and steps out of the way.
`

// values is a flag that may be given several times.
type values []string

func (v *values) String() string     { return strings.Join(*v, ", ") }
func (v *values) Set(s string) error { *v = append(*v, s); return nil }

func run(ctx context.Context, env Env) error {
	var o app.RunOptions
	var tokenFile string
	var noToken bool
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.HTTP, "http", "", "")
	flags.StringVar(&tokenFile, "token-file", "", "")
	flags.BoolVar(&noToken, "no-token", false, "")
	flags.Var((*values)(&o.Header), "header", "")
	flags.BoolVar(&o.Stateful, "stateful", false, "")
	flags.DurationVar(&o.MaxCall, "timeout", 0, "")
	flags.BoolVar(&o.Arguments.Forward, "forward-invalid", false, "")
	flags.Func("repair", "", func(word string) error {
		if !slices.Contains([]string{"off", "strict", "balanced"}, word) {
			return errors.New("choose balanced, strict or off")
		}
		o.Repair = word
		return nil
	})
	flags.Func("errors", "", func(word string) error {
		if word != "full" && word != "short" {
			return errors.New("choose short or full")
		}
		o.Arguments.Full = word == "full"
		return nil
	})
	flags.StringVar(&o.Model.Name, "model", "", "")
	flags.StringVar(&o.Model.Provider, "model-provider", "openai", "")
	flags.StringVar(&o.Model.URL, "model-url", "", "")
	flags.Func("trust", "", func(word string) error { return setTrust(&o.Policy, word) })
	flags.Func("tool", "", func(word string) error { return setEffect(&o.Policy, word) })
	if err := flags.Parse(env.Args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(env.Stdout, runHelp)
			return nil
		}
		return usageError{err.Error()}
	}
	if err := target(&o, env.Args, flags.Args()); err != nil {
		return err
	}
	if lookupEnv(env.Environ, "MCPMEND_OFF") == "1" {
		if o.URL != "" {
			return usageError{"MCPMEND_OFF starts a command directly; a URL has none"}
		}
		return app.Exec(o.Command, env.Environ)
	}
	o.Environ, o.Log = env.Environ, env.Stderr
	o.Model.Key = lookupEnv(env.Environ, "MCPMEND_MODEL_KEY")
	if o.HTTP != "" && !noToken {
		token, where, err := app.Token(lookupEnv(env.Environ, "MCPMEND_TOKEN"), tokenFile)
		if err != nil {
			return err
		}
		o.Token = token
		fmt.Fprintf(env.Stderr, "mcpmend: clients must present the token in %s\n", where)
	}
	return app.Run(ctx, o)
}

func setTrust(p *fault.Policy, word string) error {
	p.Trust = fault.Trust(word)
	switch p.Trust {
	case fault.TrustNone, fault.TrustReadOnly, fault.TrustAll:
		return nil
	}
	return errors.New("choose none, read-only or all")
}

func setEffect(p *fault.Policy, word string) error {
	name, text, _ := strings.Cut(word, "=")
	var effect fault.Effect
	if err := effect.UnmarshalText([]byte(text)); err != nil || name == "" {
		return errors.New("write NAME=EFFECT, with an effect such as read-only")
	}
	if p.Tools == nil {
		p.Tools = make(map[string]fault.Effect)
	}
	p.Tools[name] = effect
	return nil
}

// target tells a command from a URL. What stands behind "--" is always a command;
// without it, whatever is no URL is one.
func target(o *app.RunOptions, all, rest []string) error {
	dashed := len(rest) > 0 && len(all) > len(rest) && all[len(all)-len(rest)-1] == "--"
	if len(rest) == 0 {
		return usageError{"run needs a command or a URL"}
	}
	u, err := url.Parse(rest[0])
	if dashed || err != nil || u.Scheme != "http" && u.Scheme != "https" {
		o.Command = rest
		return nil
	}
	if len(rest) > 1 {
		return usageError{fmt.Sprintf("unexpected %q behind the URL", rest[1])}
	}
	o.URL = rest[0]
	return nil
}

func lookupEnv(environ []string, name string) string {
	for _, e := range environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
