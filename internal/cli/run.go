package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/app"
)

// runFlags is what may stand between "run" and the server.
type runFlags struct {
	app.RunOptions
	tokenFile string
	noToken   bool
	anyone    bool
}

func runCommand(p *program) *cobra.Command {
	var o runFlags
	c := &cobra.Command{
		Use:         "run [flags] -- COMMAND ARGS...",
		Annotations: map[string]string{"use": "mcpmend run [flags] URL"},
		Short:       "stand in front of one server and keep it working",
		Long: `
Stands in front of one MCP server. The client sees the server as it is: its name,
its tools, its notifications. It speaks on stdin and stdout unless --http is given.
MCPMEND_OFF=1 starts the server directly and steps out of the way.`,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := target(&o.RunOptions, args, c.ArgsLenAtDash() == 0); err != nil {
				return err
			}
			return run(c.Context(), p.env, o)
		},
	}
	flags := c.Flags()
	// What follows the first word that is no flag belongs to the server, as in
	// "mcpmend run npx -y x".
	flags.SetInterspersed(false)
	flags.StringVar(&o.HTTP, "http", "", "listen for Streamable HTTP on `ADDR`, path /mcp; 127.0.0.1:0 picks a port")
	flags.StringVar(&o.tokenFile, "token-file", "", "`FILE` with the token HTTP clients must present; made if it is missing "+
		"(default: token in mcpmend's state folder; MCPMEND_TOKEN wins over both)")
	flags.BoolVar(&o.noToken, "no-token", false, "let every HTTP client in that runs on this machine")
	flags.BoolVar(&o.anyone, "allow-anyone", false, "with --no-token, also let those in that reach ADDR over a network")
	flags.Func("trust", "`T`: believe what the server says about its tools when a call may have to be sent again: "+
		"none (default), read-only, all", func(word string) error { return setTrust(&o.Policy, word) })
	flags.Func("tool", "your own word on one tool, as `NAME=EFFECT`: read-only, idempotent, unstated, destructive",
		func(word string) error { return setEffect(&o.Policy, word) })
	flags.BoolVar(&o.Stateful, "stateful", false, "the server remembers things; after a restart say so instead of calling")
	for _, limit := range []struct {
		to          *time.Duration
		name, usage string
	}{
		{&o.MaxCall, "timeout", "longest `TIME` for one call, all attempts together; progress extends it (default: no limit)"},
		{&o.StartTimeout, "start-timeout", "longest `TIME` for a start until the server has introduced itself (default: no limit)"},
		{&o.HungAfter, "hung-after", "replace a process that shows no sign of life for this `TIME` (default 5m)"},
		{&o.LostAfter, "lost-after", "give up a connection over which nothing is acknowledged for this `TIME` (default 2m)"},
		{&o.DrainTimeout, "drain-timeout", "when told to stop, let calls finish for this `TIME`, then answer the rest (default 5s)"},
	} {
		flags.Func(limit.name, limit.usage, func(word string) error { return setDuration(limit.to, word) })
	}
	flags.Func("repair", "mend arguments that do not fit by this `POLICY`: balanced (default), strict, off", func(word string) error {
		if !slices.Contains([]string{"off", "strict", "balanced"}, word) {
			return errors.New("choose balanced, strict or off")
		}
		o.Repair = word
		return nil
	})
	flags.Func("errors", "`LENGTH` of what is said about wrong arguments: short (default) grows when they come again, full", func(word string) error {
		if word != "full" && word != "short" {
			return errors.New("choose short or full")
		}
		o.Arguments.Full = word == "full"
		return nil
	})
	flags.BoolVar(&o.Arguments.Forward, "forward-invalid", false, "pass on arguments that cannot be mended instead of refusing them")
	flags.StringVar(&o.Model.Name, "model", "", "ask the model `NAME` about arguments that cannot be mended (default: nobody); its key is in MCPMEND_MODEL_KEY")
	flags.StringVar(&o.Model.Provider, "model-provider", "openai", "`WHO` speaks for the model: openai, anthropic, or sampling for the one that the client lends")
	flags.StringVar(&o.Model.URL, "model-url", "", "`BASE` of others that speak like them")
	flags.StringArrayVar(&o.PassEnv, "pass-env", nil, "pass this variable on, by its `NAME`, although it is a model's key; wrap adds it where an entry names one")
	flags.StringArrayVar(&o.Header, "header", nil, "send this header to URL, as `'NAME: VALUE'`; may be given several times")
	return c
}

func run(ctx context.Context, env Env, o runFlags) error {
	if lookupEnv(env.Environ, "MCPMEND_OFF") == "1" {
		if o.URL != "" {
			return misused("MCPMEND_OFF starts a command directly; a URL has none")
		}
		return app.Exec(o.Command, env.Environ, o.PassEnv)
	}
	o.Environ, o.Log, o.Terminal = env.Environ, env.Stderr, isTerminal(env.Stderr)
	o.Model.Key = lookupEnv(env.Environ, "MCPMEND_MODEL_KEY")
	if o.HTTP != "" && !o.noToken {
		token, where, err := app.Token(lookupEnv(env.Environ, "MCPMEND_TOKEN"), o.tokenFile)
		if err != nil {
			return err
		}
		o.Token = token
		fmt.Fprintf(env.Stderr, "mcpmend: clients must present the token in %s\n", where)
	}
	if o.HTTP != "" && o.noToken && !onLoopback(o.HTTP) {
		if !o.anyone {
			return misused("--no-token would let everybody in who can reach %s; add --allow-anyone if that is what you want", o.HTTP)
		}
		fmt.Fprintf(env.Stderr, "mcpmend: warning: whoever can reach %s can use this server, without a token\n", o.HTTP)
	}
	// What packages made when they were loaded is rubbish by now, and this process
	// stays for days: a megabyte for each server.
	debug.FreeOSMemory()
	return app.Run(ctx, o.RunOptions)
}

// onLoopback reports whether only this machine can reach an address. No host is
// 127.0.0.1.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
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

// setDuration reads a time that somebody typed.
func setDuration(to *time.Duration, word string) error {
	d, err := time.ParseDuration(word)
	if err != nil || d <= 0 {
		return errors.New("write a time such as 90s or 5m")
	}
	*to = d
	return nil
}

// target tells a command from a URL. What stands behind "--" is always a command;
// without it, whatever is no URL is one.
func target(o *app.RunOptions, args []string, dashed bool) error {
	if len(args) == 0 {
		return misused("run needs a command or a URL")
	}
	u, err := url.Parse(args[0])
	if dashed || err != nil || u.Scheme != "http" && u.Scheme != "https" {
		o.Command = args
		return nil
	}
	if len(args) > 1 {
		return misused("unexpected %q behind the URL", args[1])
	}
	o.URL = args[0]
	return nil
}
