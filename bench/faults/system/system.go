// Package system knows the systems under test: how each is started in front of
// an MCP server, how its clients reach it, and how it is stopped.
package system

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/driver"
	"github.com/mcpmend/mcpmend/bench/faults/ledger"
	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// Upstream is the server that a system is put in front of: a command, or a URL.
type Upstream struct {
	Command []string
	URL     string
	// Deadline of a call, for systems that can be told.
	Deadline time.Duration
	// Secret is a bearer token to send to the URL, "" for none.
	Secret string
	// Flags are added to mcpmend's command line.
	Flags []string
	// At makes a command line run on the machine of the system; nil is this one.
	At func(argv ...string) []string
	// Env is added to the system's environment.
	Env []string
	// Model is who may be asked about arguments, nil for nobody.
	Model *Model
	// ReadOnly are tools that the user says change nothing.
	ReadOnly []string
	// Record keeps what the system writes to stdout, in its directory.
	Record bool
}

// Model is an endpoint that answers like a model's API.
type Model struct {
	Name, Provider, URL, Key string
}

// System is one contestant.
type System struct {
	Name  string
	Trust oracle.Trust
	// Ours is true for the systems whose failure to meet the fault voids the run.
	Ours bool
	// Stdio and HTTP build the command line that serves one stdio client, or
	// listens for many. Nil, or a nil result, means that the system cannot.
	Stdio func(Upstream) []string
	HTTP  func(Upstream) []string
	// URL finds the address in what the system prints when it listens.
	URL *regexp.Regexp
	// Port is for systems that must be told where to listen: it returns the
	// command line and the address that will be theirs.
	Port func(u Upstream, port int, dir string) (argv []string, url string)
	// SSE: clients are served over the old HTTP+SSE transport.
	SSE bool
	// Prefix is what the system puts before the names of tools.
	Prefix string
	// LegacyOnly systems cannot stand before a modern server.
	LegacyOnly bool
	// Models is true when the system can be told to ask a model.
	Models bool
	// Relays is true when the system speaks both eras to its clients; all others
	// are spoken to in the legacy era.
	Relays bool
}

// ErrCannot: the system has no way to serve this kind of client or server.
var ErrCannot = errors.New("not offered by this system")

// Process is a running system.
type Process struct {
	system *System
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	record *os.File
	url    string
	exited chan struct{}
	once   sync.Once
}

// Start runs s in front of u. With many, clients come over HTTP.
func (s *System) Start(ctx context.Context, dir string, u Upstream, many bool) (*Process, error) {
	argv, url, err := s.commandLine(dir, u, many)
	if err != nil {
		return nil, err
	}
	if argv == nil {
		return nil, ErrCannot
	}
	if u.At != nil {
		argv = u.At(argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), ledger.Marker+"="+dir)
	cmd.Env = append(cmd.Env, u.Env...)
	// Pipes of our own: those of exec are closed by Wait under a reader's hands.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, log
	err = cmd.Start()
	childIn.Close()
	childOut.Close()
	log.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	p := &Process{system: s, cmd: cmd, in: in, out: out, url: url, exited: make(chan struct{})}
	go func() { cmd.Wait(); close(p.exited) }()
	if u.Record {
		if p.record, err = os.Create(filepath.Join(dir, "stdout")); err != nil {
			p.Stop()
			return nil, err
		}
		p.out = io.TeeReader(out, p.record)
	}
	switch {
	case url == askSystem:
		p.url, err = p.address(ctx, dir)
	case url != "":
		go io.Copy(io.Discard, out)
		err = p.awaitListening(ctx, dir)
	}
	if err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// askSystem stands for an address that the system will print.
const askSystem = "?"

// commandLine picks how s is started; the url is "" for stdio.
func (s *System) commandLine(dir string, u Upstream, many bool) (argv []string, url string, err error) {
	if s.Stdio != nil && !many {
		if argv := s.Stdio(u); argv != nil {
			return argv, "", nil
		}
	}
	if s.HTTP != nil {
		return s.HTTP(u), askSystem, nil
	}
	if s.Port != nil {
		port, err := freePort()
		if err != nil {
			return nil, "", err
		}
		argv, url := s.Port(u, port, dir)
		return argv, url, nil
	}
	return nil, "", ErrCannot
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// awaitListening waits until the system accepts connections.
func (p *Process) awaitListening(ctx context.Context, dir string) error {
	u, err := neturl.Parse(p.url)
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("tcp", u.Host); err == nil {
			c.Close()
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			text, _ := os.ReadFile(filepath.Join(dir, "stderr"))
			return fmt.Errorf("%s ended before it listened: %s", p.system.Name, tail(text))
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", p.system.Name, ctx.Err())
		}
	}
}

// address waits for the system to say where it listens, on stdout or stderr.
func (p *Process) address(ctx context.Context, dir string) (string, error) {
	found := make(chan string, 1)
	go func() {
		scan := bufio.NewScanner(p.out)
		for scan.Scan() {
			if m := p.system.URL.FindStringSubmatch(scan.Text()); m != nil {
				select {
				case found <- m[1]:
				default:
				}
			}
		}
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case url := <-found:
			return url, nil
		case <-tick.C:
			text, _ := os.ReadFile(filepath.Join(dir, "stderr"))
			if m := p.system.URL.FindSubmatch(text); m != nil {
				return string(m[1]), nil
			}
		case <-p.exited:
			text, _ := os.ReadFile(filepath.Join(dir, "stderr"))
			return "", fmt.Errorf("%s ended before it listened: %s", p.system.Name, tail(text))
		case <-ctx.Done():
			return "", fmt.Errorf("%s does not listen: %w", p.system.Name, ctx.Err())
		}
	}
}

func tail(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// Client connects one more client; over stdio there can be only one.
func (p *Process) Client(modern bool) *driver.Client {
	modern = modern && p.system.Relays
	var c *driver.Client
	switch {
	case p.system.SSE:
		c = driver.NewSSE(p.url)
	case p.url != "":
		c = driver.NewHTTP(p.url, modern)
	default:
		c = driver.NewStdio(p.in, p.out, modern)
	}
	c.Prefix = p.system.Prefix
	return c
}

// URL is where the system listens, "" when it does not.
func (p *Process) URL() string { return p.url }

// Pid of the system's own process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the system's process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Signal the system's process.
func (p *Process) Signal(sig syscall.Signal) { p.cmd.Process.Signal(sig) }

// Stop ends the system as a client would: its stdin is closed, and one that
// listens gets a SIGTERM. It returns how long the system took; one that does
// not go within twelve seconds is killed.
func (p *Process) Stop() time.Duration {
	begin := time.Now()
	p.once.Do(func() {
		p.in.Close()
		if p.url != "" {
			p.cmd.Process.Signal(syscall.SIGTERM)
		}
		select {
		case <-p.exited:
		case <-time.After(12 * time.Second):
			p.cmd.Process.Kill()
			<-p.exited
		}
	})
	return time.Since(begin)
}
