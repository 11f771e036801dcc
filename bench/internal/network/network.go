// Package network makes networks of their own, in which packets can be lost. They need
// root; nothing of this machine's own network is touched.
package network

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

	"golang.org/x/sys/unix"
)

// ServerAddress is where the server's machine is, and a port to listen on.
const ServerAddress = "10.77.2.2:8080"

// A Network is three machines in a row, each a network namespace: the client's, a router
// and the server's. All of it goes with the processes that hold the namespaces.
type Network struct {
	client, router, server int // a process in each
	holders                []*exec.Cmd
}

// New makes a network. Its processes have the environment env.
func New(ctx context.Context, env []string) (*Network, error) {
	n := &Network{}
	if err := n.build(ctx, env); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Network) build(ctx context.Context, env []string) error {
	for _, pid := range []*int{&n.client, &n.router, &n.server} {
		cmd := exec.Command("sleep", "600")
		cmd.Env = env
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
		if err := cmd.Start(); err != nil {
			return err
		}
		*pid = cmd.Process.Pid
		n.holders = append(n.holders, cmd)
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
		if err := do(ctx, step.in, strings.Fields(step.command)...); err != nil {
			return err
		}
	}
	return n.Pass(ctx, true)
}

// Close ends the processes that hold the network.
func (n *Network) Close() {
	for _, cmd := range n.holders {
		cmd.Process.Kill()
		cmd.Wait()
	}
	n.holders = nil
}

// AtClient is argv on the client's machine, AtServer on the server's. The process that is
// started becomes argv's own.
func (n *Network) AtClient(argv ...string) []string { return inside(n.client, argv...) }
func (n *Network) AtServer(argv ...string) []string { return inside(n.server, argv...) }

func inside(pid int, argv ...string) []string {
	return append([]string{"nsenter", "--net=/proc/" + strconv.Itoa(pid) + "/ns/net", "--"}, argv...)
}

func do(ctx context.Context, in int, argv ...string) error {
	argv = inside(in, argv...)
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// Pass lets the router forward packets, or drop them without a word.
func (n *Network) Pass(ctx context.Context, yes bool) error {
	return do(ctx, n.router, "sh", "-c", fmt.Sprintf("echo %d > /proc/sys/net/ipv4/ip_forward", map[bool]int{true: 1}[yes]))
}

// Dial connects from the client's machine. A socket stays in the namespace of the thread
// that made it.
func (n *Network) Dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
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
