package upstream

import (
	"bufio"
	"io"
	"net"
	"os"
	"testing"
)

// puppetAddress turns the test binary into a server on stdio that has no mind of
// its own: what it hears goes to the test at this address, and what the test says
// it says. So a test reads as one conversation, and there is a real process in it.
const puppetAddress = "MCPMEND_UPSTREAM_PUPPET"

func TestMain(m *testing.M) {
	if address := os.Getenv(puppetAddress); address != "" {
		bePuppet(address)
	}
	os.Exit(m.Run())
}

func bePuppet(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(os.Stdout, conn)
		os.Exit(3) // the test wants it so
	}()
	_, _ = io.Copy(conn, os.Stdin)
	_ = conn.Close()
	os.Exit(0)
}

// Puppets are the processes of one command, in the order in which they are started.
type Puppets struct {
	// Command and Env start one more.
	Command, Env []string

	started chan *Puppet
}

// Puppet is one of them.
type Puppet struct {
	// Heard is what it gets to read, line by line. It is closed when its input ends.
	Heard chan string
	conn  net.Conn
}

// NewPuppets prepares a command whose processes are played by the test.
func NewPuppets(t *testing.T) *Puppets {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &Puppets{
		Command: []string{os.Args[0]},
		Env:     append(os.Environ(), puppetAddress+"="+l.Addr().String()),
		started: make(chan *Puppet, 100),
	}
	go func() {
		defer close(p.started)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			one := &Puppet{Heard: make(chan string, 1000), conn: conn}
			go one.listen()
			p.started <- one
		}
	}()
	return p
}

// Next waits for the next process to be started.
func (p *Puppets) Next(t *testing.T) *Puppet {
	t.Helper()
	return webAwait(t, p.started, "a process to be started")
}

func (p *Puppet) listen() {
	lines := bufio.NewScanner(p.conn)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.Heard <- lines.Text()
	}
	close(p.Heard)
}

// Say has the process write a line to its stdout.
func (p *Puppet) Say(line string) {
	_, _ = io.WriteString(p.conn, line+"\n") // a process that has ended says nothing
}

// Exit has it end in the middle of whatever it does.
func (p *Puppet) Exit() { _ = p.conn.Close() }

// Each runs play for every process, as it is started.
func (p *Puppets) Each(play func(*Puppet)) {
	for one := range p.started {
		go play(one)
	}
}
