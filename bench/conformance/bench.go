package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// startPatience bounds the start of a server or of mcpmend.
const startPatience = 15 * time.Second

// bench holds the programs that are compared.
type bench struct {
	suite   suite
	version string // of the suite
	server  string // path of go-sdk's everything server
	client  string // path of go-sdk's everything client
	onOurs  string // path of a client on mcpmend.Transport
	mcpmend string
}

func assemble(ctx context.Context, r *rig.Rig) (*bench, error) {
	npm, err := r.NPM(ctx)
	if err != nil {
		return nil, err
	}
	b := &bench{suite: suite{npm}}
	if b.version, err = npm.Version("@modelcontextprotocol/conformance"); err != nil {
		return nil, err
	}
	if b.server, err = r.Go(ctx, rig.EverythingServer); err != nil {
		return nil, err
	}
	if b.client, err = r.Go(ctx, rig.EverythingClient); err != nil {
		return nil, err
	}
	if b.onOurs, err = r.Go(ctx, rig.TestClient); err != nil {
		return nil, err
	}
	b.mcpmend, err = r.Mcpmend(ctx)
	return b, err
}

// serverSide compares the server suite: direct, and through mcpmend with the
// server behind HTTP and behind stdio.
func (b *bench) serverSide(ctx context.Context, rep *report, revision string) error {
	// The SDK's HTTP handler serves one era at a time.
	stateless := fmt.Sprintf("-stateless=%t", revision >= "2026-07-28")
	server, addr, err := b.serve(ctx, b.server, "-http", "ADDR", stateless)
	if err != nil {
		return err
	}
	defer server.Stop()
	direct, err := b.suite.server(ctx, revision, "http://"+addr+"/")
	if err != nil {
		return err
	}
	behind := []struct {
		way    string
		server []string
	}{
		{"mcpmend, server on HTTP", []string{"http://" + addr + "/"}},
		{"mcpmend, server on stdio", []string{"--", b.server}},
	}
	for _, through := range behind {
		found, err := b.throughFront(ctx, revision, through.server)
		if err != nil {
			return err
		}
		rep.add("server", revision, through.way, direct, found)
	}
	return nil
}

func (b *bench) serve(ctx context.Context, argv ...string) (*child.Child, string, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return child.ServeHTTP(ctx, argv)
}

func (b *bench) throughFront(ctx context.Context, revision string, server []string) (outcomes, error) {
	front, url, err := startFront(ctx, b.mcpmend, server)
	if err != nil {
		return nil, err
	}
	found, err := b.suite.server(ctx, revision, url)
	if _, stopErr := front.Stop(); err == nil {
		err = stopErr
	}
	return found, err
}

func startFront(ctx context.Context, mcpmend string, server []string) (*child.Child, string, error) {
	front, err := child.Start(append([]string{mcpmend, "run", "--http", "127.0.0.1:0", "--no-token"}, server...), "", nil)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	url, err := front.Line(ctx, "mcpmend: listening on ")
	if err != nil {
		_, _ = front.Stop()
	}
	return front, url, err
}

// The suite passes its environment on to the client command, and so these reach
// the copy of this program that stands in for the client.
const (
	gatewayVariable = "CONFORMANCE_THROUGH_GATEWAY"
	clientVariable  = "CONFORMANCE_THROUGH_CLIENT"
)

// clientSide compares the client suite: the SDK's own client, the same with
// mcpmend on the way to the mock server, and a client on our Transport.
func (b *bench) clientSide(ctx context.Context, rep *report, revision string) error {
	direct, err := b.suite.client(ctx, revision, b.client)
	if err != nil {
		return err
	}
	direct = direct.without(notForwarded)
	through, err := b.clientThroughGateway(ctx, revision)
	if err != nil {
		return err
	}
	rep.add("client", revision, "mcpmend run URL", direct, through.without(notForwarded))
	if through, err = b.suite.client(ctx, revision, b.onOurs); err != nil {
		return err
	}
	rep.add("client", revision, "client on mcpmend.Transport", direct, through.without(notForwarded))
	return nil
}

// notForwarded says which client scenarios cannot be compared. Those of
// authorization play the authorization server as well as the MCP server and hold the
// client to URLs and tokens that a layer in between has no business to pass on.
func notForwarded(scenario string) bool { return strings.HasPrefix(scenario, "auth/") }

func (o outcomes) without(drop func(scenario string) bool) outcomes {
	kept := outcomes{}
	for c, out := range o {
		if !drop(c.Scenario) {
			kept[c] = out
		}
	}
	return kept
}

func (b *bench) clientThroughGateway(ctx context.Context, revision string) (outcomes, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	os.Setenv(gatewayVariable, b.mcpmend)
	os.Setenv(clientVariable, b.client)
	defer os.Unsetenv(gatewayVariable)
	defer os.Unsetenv(clientVariable)
	return b.suite.client(ctx, revision, self)
}

// clientThrough is the client command of one scenario: mcpmend in front of the
// mock server at url, and the real client at its front.
func clientThrough(gateway, client, url string) (status int) {
	// A copy of this program must never take itself for the wrapper again.
	os.Unsetenv(gatewayVariable)
	front, frontURL, err := startFront(context.Background(), gateway, []string{url})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer front.Stop()
	cmd := exec.Command(client, frontURL)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
