package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
)

// networks are about what happens between a client and a server over HTTP.
func networks() []situation {
	const long = 60 * time.Second
	overTLS := func(id, name, server string, era2026, fullOnly bool, flags ...string) situation {
		return situation{id: id, name: name, server: server, wait: long, quick: 12 * time.Second, fullOnly: fullOnly, play: func(ctx context.Context, s *side) error {
			argv := append([]string{s.gosdk, "-http", "ADDR", "-cert", s.certs.Cert, "-key", s.certs.Key}, flags...)
			url, _, err := s.serve(ctx, "https", argv...)
			if err != nil {
				return err
			}
			c, err := s.web(url)
			if c != nil {
				c.modern = era2026
			}
			return oneCall(ctx, s, c, err, "wait")
		}}
	}
	odd := func(id, name string, wait, quick time.Duration, play func(ctx context.Context, s *side, c *conn) error, flags ...string) situation {
		return situation{id: id, name: name, server: byHand + ", HTTP/1.1", wait: wait, quick: quick, play: func(ctx context.Context, s *side) error {
			url, _, err := s.serve(ctx, "http", with([]string{s.odd, "-http", "ADDR"}, flags...)...)
			if err != nil {
				return err
			}
			c, err := s.web(url)
			if err := opened(ctx, c, err, ""); err != nil {
				return err
			}
			return play(ctx, s, c)
		}}
	}
	return []situation{
		overTLS("tls.h1", "a silent call of 60 s over HTTP/1.1 with TLS, era 2025-11-25", goSDK+", HTTP/1.1", false, true, "-h1"),
		overTLS("tls.h2", "a silent call of 60 s over HTTP/2 with TLS, era 2025-11-25", goSDK+", HTTP/2", false, false),
		overTLS("tls.h1.modern", "a silent call of 60 s over HTTP/1.1 with TLS, era 2026-07-28", goSDK+", HTTP/1.1", true, true, "-h1", "-stateless"),
		overTLS("tls.h2.modern", "a silent call of 60 s over HTTP/2 with TLS, era 2026-07-28", goSDK+", HTTP/2", true, false, "-stateless"),
		odd("http.get-hangs", "GET is never answered, a call of 20 s", 20*time.Second, 8*time.Second, oneOpenCall, "-get-hangs"),
		odd("http.closes", "each connection serves one request, 40 calls in a row", 0, 0, func(ctx context.Context, _ *side, c *conn) error {
			for i := range 40 {
				if err := works(ctx, c, "wait"); err != nil {
					return fmt.Errorf("call %d: %w", i+1, err)
				}
				if err := sleep(ctx, 50*time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		}, "-closes"),
		inFull(odd("http.trickle", "the body of a reply comes in ten pieces, 4 s apart", 40*time.Second, 0, func(ctx context.Context, _ *side, c *conn) error {
			return works(ctx, c, "wait")
		}, "-trickle", "4s")),
		odd("http.one", "a server that does one thing at a time runs a call of 60 s", long, 12*time.Second, oneOpenCall, "-one-thing"),
		{id: "outage.call", name: "no packet passes for 20 s during a call", server: goSDK + ", HTTP/1.1", wait: 20 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error { return outage(ctx, s, true) }},
		{id: "outage.idle", name: "no packet passes for 20 s, a call is made meanwhile", server: goSDK + ", HTTP/1.1", wait: 20 * time.Second, fullOnly: true,
			play: func(ctx context.Context, s *side) error { return outage(ctx, s, false) }},
	}
}

// oneOpenCall makes one call of the situation's time on an open connection.
func oneOpenCall(ctx context.Context, s *side, c *conn) error {
	return expect(ctx, []*raw.Pending{c.call("wait", `"key":"0","seconds":`+secs(s.wait))}, func(int) string { return "done 0" })
}

// outage makes a call of 5 s to a server behind a router that passes nothing on for the
// situation's time. The outage begins in the call, or before it.
func outage(ctx context.Context, s *side, inCall bool) error {
	n, err := newNetwork(ctx, s)
	if err != nil {
		return fmt.Errorf("%w: a network of its own: %v", errCannot, err)
	}
	url, err := n.serve(ctx, s)
	if err != nil {
		return err
	}
	s.clock()
	c, err := n.connect(s, url)
	if err := opened(ctx, c, err, "wait"); err != nil {
		return err
	}
	var call *raw.Pending
	start := func() { call = c.call("wait", `"key":"0","seconds":5`) }
	if inCall {
		start()
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	if err := n.pass(ctx, false); err != nil {
		return err
	}
	if !inCall {
		start()
	}
	if err := sleep(ctx, s.wait); err != nil {
		return err
	}
	if err := n.pass(ctx, true); err != nil {
		return err
	}
	if err := expect(ctx, []*raw.Pending{call}, func(int) string { return "done 0" }); err != nil {
		return err
	}
	return works(ctx, c, "wait")
}

// A network is three machines in a row, each a network namespace: the client's, a router
// and the server's. Nothing of this machine's own network is touched, and all of it goes
// with the processes that hold the namespaces.
type network struct {
	client, router, server int // a process in each
}

const serverAddress = "10.77.2.2:8080"

func newNetwork(ctx context.Context, s *side) (*network, error) {
	n := &network{}
	for _, pid := range []*int{&n.client, &n.router, &n.server} {
		c, err := child.StartWith([]string{"sleep", "600"}, s.dir, s.env(), func(cmd *exec.Cmd) { cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET })
		if err != nil {
			return nil, err
		}
		*pid = c.PID()
		s.adopt(c)
	}
	steps := []struct {
		in      int
		command string
	}{
		{n.router, "ip link add left type veth peer name eth0 netns " + strconv.Itoa(n.client)},
		{n.router, "ip link add right type veth peer name eth0 netns " + strconv.Itoa(n.server)},
		{n.router, "ip addr add 10.77.1.1/24 dev left"},
		{n.router, "ip addr add 10.77.2.1/24 dev right"},
		{n.router, "ip link set left up"},
		{n.router, "ip link set right up"},
		{n.client, "ip addr add 10.77.1.2/24 dev eth0"},
		{n.client, "ip link set eth0 up"},
		{n.client, "ip route add default via 10.77.1.1"},
		{n.server, "ip addr add 10.77.2.2/24 dev eth0"},
		{n.server, "ip link set eth0 up"},
		{n.server, "ip route add default via 10.77.2.1"},
	}
	for _, step := range steps {
		if err := n.do(ctx, step.in, strings.Fields(step.command)...); err != nil {
			return nil, err
		}
	}
	return n, n.pass(ctx, true)
}

// inside is argv in the namespace of a process.
func inside(pid int, argv ...string) []string {
	return append([]string{"nsenter", "--net=/proc/" + strconv.Itoa(pid) + "/ns/net", "--"}, argv...)
}

func (n *network) do(ctx context.Context, in int, argv ...string) error {
	argv = inside(in, argv...)
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// pass lets the router forward packets, or drop them without a word.
func (n *network) pass(ctx context.Context, yes bool) error {
	return n.do(ctx, n.router, "sh", "-c", fmt.Sprintf("echo %d > /proc/sys/net/ipv4/ip_forward", map[bool]int{true: 1}[yes]))
}

func (n *network) serve(ctx context.Context, s *side) (url string, err error) {
	c, err := child.Start(inside(n.server, s.gosdk, "-http", serverAddress), s.dir, s.env())
	if err != nil {
		return "", err
	}
	s.adopt(c)
	for {
		conn, err := n.dial(ctx, "tcp", serverAddress)
		if err == nil {
			return "http://" + serverAddress + "/mcp", conn.Close()
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return "", fmt.Errorf("the server does not listen: %w\n%s", err, c.Said())
		}
	}
}

func (n *network) connect(s *side, url string) (*conn, error) {
	if s.through {
		return s.pipe(nil, inside(n.client, s.mcpmend, "run", url))
	}
	return s.direct(url, n.dial)
}

// dial connects from the client's namespace. A socket stays in the namespace of the thread
// that made it.
func (n *network) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	away, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", n.client))
	if err != nil {
		return nil, err
	}
	defer away.Close()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
	// The thread has to come back and go on: it may be the one that started a child, which
	// the kernel would end with it.
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		panic(back) // everything from here on would be in the wrong network
	}
	return conn, err
}
