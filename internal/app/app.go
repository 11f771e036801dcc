// Package app puts the parts together: it starts them, stops them, and holds no
// logic of its own.
package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/front"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/secret"
	"github.com/mcpmend/mcpmend/internal/upstream"
)

// RunOptions say which server to stand in front of, and where.
type RunOptions struct {
	// Command or URL of the server; one of the two.
	Command []string
	URL     string
	// Header is sent to URL with every request, each entry as "Name: value".
	Header []string
	// HTTP is the address to listen on; "" serves the client on stdin and stdout.
	HTTP string
	// Token is what clients must present over HTTP; "" lets everybody in.
	Token string
	// Policy, Stateful and MaxCall say how calls are treated; see guard.Options.
	Policy   fault.Policy
	Stateful bool
	MaxCall  time.Duration
	// StartTimeout, HungAfter and LostAfter say when a server is given up; see
	// guard.Spec. DrainTimeout is how long calls may still take when we are told to
	// stop, 0 for five seconds.
	StartTimeout, HungAfter, LostAfter, DrainTimeout time.Duration
	// Arguments says what is done about arguments that do not fit; Repair is its
	// policy by name.
	Arguments guard.ArgumentOptions
	Repair    string
	Model     ModelOptions
	// Environ is the environment we were started with. The server gets it without our
	// own settings and without keys of models, except for those that PassEnv names.
	Environ []string
	PassEnv []string
	// Log is where a person reads; the server's stderr goes there as well, without
	// secrets. Terminal says that it is one.
	Log      io.Writer
	Terminal bool
}

const (
	// stopping is how long servers may take to end when we do.
	stopping = 5 * time.Second
	// defaultDrain is how long calls may still take before that.
	defaultDrain = 5 * time.Second
)

// Run stands in front of one server until ctx is done or the client has gone.
func Run(ctx context.Context, o RunOptions) error {
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = defaultDrain
	}
	reaper := upstream.NewReaper(len(o.Command) > 0)
	defer reaper.End()
	slim()
	header, err := parseHeader(o.Header)
	if err != nil {
		return err
	}
	o.Arguments.Policy = arguments.Policy(o.Repair)
	if err := advise(&o.Arguments, o.Model, o.hider()); err != nil {
		return err
	}
	// One that never blocks: a client need not read what we say on stderr.
	log := newSpill(o.Log, o.hider(), o.Terminal)
	defer log.drain(time.Second)
	pass := passEnv(o.Environ, o.Command, o.PassEnv)
	server, err := guard.New(guard.Spec{
		Command:   o.Command,
		Env:       upstream.PassedOn(o.Environ, pass...),
		Withheld:  upstream.Withheld(o.Environ, pass...),
		Stderr:    log,
		DieWithUs: true,
		Reaper:    reaper,
		URL:       o.URL,
		Header:    header,

		StartTimeout: o.StartTimeout, HungAfter: o.HungAfter, LostAfter: o.LostAfter,
	}, guard.Options{Policy: o.Policy, Stateful: o.Stateful, MaxCall: o.MaxCall, Arguments: o.Arguments, OnEvent: tellPerson(log)})
	if err != nil {
		return err
	}
	cat := catalogue.Of(server)
	defer func() {
		last, cancel := context.WithTimeout(context.Background(), stopping)
		defer cancel()
		_ = cat.Close(last)
	}()
	if o.HTTP != "" {
		return serveHTTP(ctx, cat, o)
	}
	in, out := front.Pipes()
	return serveStdio(ctx, &front.Stdio{Catalogue: cat, In: in, Out: out, DrainTimeout: o.DrainTimeout})
}

// hider knows what the server is given, and may repeat.
func (o *RunOptions) hider() *secret.Hider {
	h := secret.New()
	h.AddEnviron(o.Environ)
	h.AddArgs(o.Command)
	h.Add("url", o.URL)
	h.Know("token", o.Token)
	for _, header := range o.Header {
		h.AddHeader(header)
	}
	return h
}

// serveStdio returns when ctx is done even if the client's pipe cannot be
// interrupted, as is the case with a terminal.
func serveStdio(ctx context.Context, s *front.Stdio) error {
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(s.DrainTimeout + stopping):
		return nil
	}
}

func serveHTTP(ctx context.Context, cat *catalogue.Catalogue, o RunOptions) error {
	addr := o.HTTP
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
		addr = net.JoinHostPort("127.0.0.1", port) // all addresses only if they are named
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "mcpmend: listening on http://%s/mcp\n", l.Addr())
	h := &front.HTTP{Catalogue: cat, Token: o.Token, DrainTimeout: o.DrainTimeout}
	return h.Serve(ctx, l)
}

// Exec replaces us by the server itself, where the system can do that.
func Exec(command, environ, pass []string) error {
	return execServer(command, upstream.PassedOn(environ, passEnv(environ, command, pass)...))
}

// passEnv are the keys of models that a server gets all the same: those that were named,
// and those that the registry names for it, which is only asked if there are others.
func passEnv(environ, command, named []string) []string {
	if len(command) == 0 || len(upstream.Withheld(environ, named...)) == 0 {
		return named
	}
	known := ownRegistry(lookup(environ))
	if known == nil {
		return named
	}
	return append(slices.Clone(named), doctor.Takes(known, command)...)
}
