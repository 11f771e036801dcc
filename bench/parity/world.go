package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
	"github.com/mcpmend/mcpmend/internal/upstream"
)

// world holds the programs, and knows the ways in which a client reaches a server.
type world struct {
	quick   bool
	rig     *rig.Rig
	mcpmend string
}

func newWorld(ctx context.Context, quick bool) (*world, error) {
	r, err := rig.Open()
	if err != nil {
		return nil, err
	}
	mcpmend, err := r.Mcpmend(ctx)
	hideOurs()
	return &world{quick: quick, rig: r, mcpmend: mcpmend}, err
}

// hideOurs takes from our own environment what mcpmend would keep from a server, so
// that both sides start theirs with the same.
func hideOurs() {
	kept := upstream.PassedOn(os.Environ())
	for _, e := range os.Environ() {
		if !slices.Contains(kept, e) {
			name, _, _ := strings.Cut(e, "=")
			_ = os.Unsetenv(name)
		}
	}
}

// patience bounds each single step, so that a lost message is a finding and
// not a hang.
const patience = 30 * time.Second

// A way connects a client to a server.
type way struct {
	name string
	// ordered is false if messages reach the client on several streams, which
	// have no order among each other.
	ordered bool
	connect func(context.Context) (*raw.Client, error)
}

// stdio starts argv and talks to it.
func (w *world) stdio(name string, argv ...string) way {
	return way{name: name, ordered: true, connect: func(context.Context) (*raw.Client, error) {
		c, err := child.Start(argv, "", nil)
		if err != nil {
			return nil, err
		}
		return raw.Stdio(c.Stdin, c.Stdout, func() error {
			_, err := c.Stop()
			return err
		}), nil
	}}
}

// run is mcpmend on stdio in front of target: a URL, or "--" and a command.
func (w *world) run(name string, target ...string) way {
	return w.stdio(name, append([]string{w.mcpmend, "run", "--repair", "off"}, target...)...)
}

// front is mcpmend on HTTP in front of target.
func (w *world) front(name string, target ...string) way {
	return way{name: name, connect: func(ctx context.Context) (*raw.Client, error) {
		c, url, err := w.startFront(ctx, nil, target...)
		if err != nil {
			return nil, err
		}
		client := raw.HTTP(url)
		return client.Closing(func() error {
			_, err := c.Stop()
			return err
		}), nil
	}}
}

func (w *world) startFront(ctx context.Context, env []string, target ...string) (*child.Child, string, error) {
	argv := append([]string{w.mcpmend, "run", "--repair", "off", "--http", "127.0.0.1:0", "--no-token"}, target...)
	c, err := child.Start(argv, "", env)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	url, err := c.Line(ctx, "mcpmend: listening on ")
	if err != nil {
		_, stopErr := c.Stop()
		return nil, "", errors.Join(err, stopErr)
	}
	return c, url, nil
}

// overHTTP is a server that already listens at url, without mcpmend.
func overHTTP(name, url string) way {
	return way{name: name, connect: func(context.Context) (*raw.Client, error) { return raw.HTTP(url), nil }}
}
