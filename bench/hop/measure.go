package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/interleave"
)

// A size of results, and how many calls make a block that is long enough to
// measure and short enough for the machine not to change meanwhile.
type resultSize struct {
	name  string
	bytes int
	calls int
	slow  bool // too slow for a quick run
}

var sizes = []resultSize{
	{name: "100 B", bytes: 100, calls: 400},
	{name: "10 KB", bytes: 10_000, calls: 200},
	{name: "1 MB", bytes: 1_000_000, calls: 8, slow: true},
}

const (
	rounds      = 24
	quickRounds = interleave.MinRounds
)

// The ways, in the order of the table. The last one is mcpmend again.
const (
	direct = iota
	copyWay
	floorWay
	mcpmendWay
	bridgeWay
	mcpmendAgain
)

var wayNames = []string{"direct", "copy", "floor", "mcpmend", "bridge", "mcpmend again"}

// transport knows how to put each gateway in front of the small server.
type transport struct {
	name string
	// open starts the way and connects. The child is the process whose CPU counts.
	open func(ctx context.Context, w *world, way int, server string) (driver, *child.Child, error)
	// server starts what all ways share and returns what they are to connect to.
	server func(ctx context.Context, w *world) (target string, stop func(), err error)
	// sdk is the transport of a bare go-sdk client.
	sdk func(target string) mcp.Transport
}

var stdioTransport = transport{
	name: "stdio",
	open: func(_ context.Context, w *world, way int, server string) (driver, *child.Child, error) {
		argv := map[int][]string{
			direct:       {server},
			copyWay:      {w.self, "copy", server},
			floorWay:     {w.self, "floor", server},
			mcpmendWay:   {w.mcpmend, "run", "--", server},
			mcpmendAgain: {w.mcpmend, "run", "--", server},
			bridgeWay:    {w.self, "bridge", server},
		}[way]
		c, err := child.Start(argv, "", nil)
		if err != nil {
			return nil, nil, err
		}
		return newLineDriver(c.Stdin, c.Stdout), c, nil
	},
	server: func(_ context.Context, w *world) (string, func(), error) { return w.small, func() {}, nil },
	sdk: func(target string) mcp.Transport {
		return &mcp.CommandTransport{Command: exec.Command(target)}
	},
}

var httpTransport = transport{
	name: "http",
	open: func(ctx context.Context, w *world, way int, server string) (driver, *child.Child, error) {
		argv := map[int][]string{
			copyWay:      {w.self, "copy-http", server},
			floorWay:     {w.self, "floor-http", server},
			mcpmendWay:   {w.mcpmend, "run", "--http", "127.0.0.1:0", "--no-token", server},
			mcpmendAgain: {w.mcpmend, "run", "--http", "127.0.0.1:0", "--no-token", server},
			bridgeWay:    {w.self, "bridge-http", server},
		}[way]
		if argv == nil {
			d, err := newHTTPDriver(server)
			return d, nil, err
		}
		c, url, err := startFront(ctx, argv)
		if err != nil {
			return nil, nil, err
		}
		d, err := newHTTPDriver(url)
		return d, c, err
	},
	server: func(ctx context.Context, w *world) (string, func(), error) {
		c, addr, err := child.ServeHTTP(ctx, []string{w.small, "-http", "ADDR"})
		if err != nil {
			return "", nil, err
		}
		return "http://" + addr + "/mcp", func() { _, _ = c.Stop() }, nil
	},
	sdk: func(target string) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: target} },
}

// startFront starts a gateway that says on stderr where it listens.
func startFront(ctx context.Context, argv []string) (*child.Child, string, error) {
	c, err := child.Start(argv, "", nil)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	url, err := c.Line(ctx, "listening on ")
	if err != nil {
		_, stopErr := c.Stop()
		return nil, "", errors.Join(err, stopErr)
	}
	return c, url, nil
}

// A series is what was measured of one way.
type series struct {
	driver  driver
	process *child.Child // the gateway, or the server itself, or nil
	counts  bool         // it is the gateway, whose CPU time is asked for
	request *request

	all []time.Duration // latency of every call
	p50 []float64       // of each block, in µs
	cpu []float64       // of the gateway, per call of each block, in µs
}

// believable measures again, a few times, if the machine was too restless.
func (w *world) believable(ctx context.Context, t transport, size resultSize) (r *result, err error) {
	attempts := 3
	if w.quick {
		attempts = 2
	}
	for range attempts {
		if r, err = w.measure(ctx, t, size); err != nil || r.void() == "" {
			break
		}
	}
	return r, err
}

// measure compares all ways for one size of result.
func (w *world) measure(ctx context.Context, t transport, size resultSize) (*result, error) {
	target, stop, err := t.server(ctx, w)
	if err != nil {
		return nil, err
	}
	defer stop()
	calls, n := size.calls, rounds
	if w.quick {
		calls, n = calls/5, quickRounds
	}
	var ways []*series
	defer func() {
		for _, s := range ways {
			_ = s.stop()
		}
	}()
	for way := range wayNames {
		s, err := w.open(ctx, t, way, target, size.bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", wayNames[way], err)
		}
		ways = append(ways, s)
		// Buffers grow and code is paged in before anything counts.
		for range 2 {
			if err := s.block(calls, size.bytes); err != nil {
				return nil, fmt.Errorf("%s: %w", wayNames[way], err)
			}
		}
		s.all, s.p50, s.cpu = nil, nil, nil
	}
	var blocks []func() error
	for way, s := range ways {
		blocks = append(blocks, func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.block(calls, size.bytes); err != nil {
				return fmt.Errorf("%s: %w", wayNames[way], err)
			}
			return nil
		})
	}
	if err := interleave.Rounds(n, blocks); err != nil {
		return nil, err
	}
	bare, err := bareSDK(ctx, t.sdk(target), size.bytes, calls)
	if err != nil {
		return nil, fmt.Errorf("bare go-sdk client: %w", err)
	}
	return summarize(t.name, size.name, ways, bare), nil
}

func (w *world) open(ctx context.Context, t transport, way int, target string, size int) (*series, error) {
	d, gateway, err := t.open(ctx, w, way, target)
	if err != nil {
		return nil, err
	}
	s := &series{driver: d, process: gateway, request: newRequest(size), counts: way != direct}
	if err := handshake(d); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *series) stop() error {
	if s.process == nil {
		return nil
	}
	_, err := s.process.Stop()
	return err
}

// block makes calls and notes what they took.
func (s *series) block(calls, size int) error {
	runtime.LockOSThread() // the driver blocks in system calls
	defer runtime.UnlockOSThread()
	before, err := s.cpuNow()
	if err != nil {
		return err
	}
	took := make([]time.Duration, 0, calls)
	for range calls {
		message := s.request.fresh()
		start := time.Now()
		n, err := s.driver.call(message)
		took = append(took, time.Since(start))
		if err != nil {
			return err
		}
		if n < size {
			return fmt.Errorf("the reply has %d bytes, want a result of %d", n, size)
		}
	}
	// The gateway's threads look for more work for a moment before they sleep, and
	// are only accounted for when they do.
	time.Sleep(500 * time.Microsecond)
	after, err := s.cpuNow()
	if err != nil {
		return err
	}
	s.all = append(s.all, took...)
	slices.Sort(took)
	s.p50 = append(s.p50, micros(took[len(took)/2]))
	s.cpu = append(s.cpu, micros(after-before)/float64(calls))
	return nil
}

func (s *series) cpuNow() (time.Duration, error) {
	if !s.counts {
		return 0, nil
	}
	return child.CPU(s.process.PID())
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// bareSDK is the latency of an ordinary go-sdk client with nothing in between.
func bareSDK(ctx context.Context, t mcp.Transport, size, calls int) ([]time.Duration, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "hop", Version: "1"}, nil)
	session, err := client.Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	var took []time.Duration
	for range calls * 2 {
		start := time.Now()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "blob", Arguments: map[string]any{"size": size}})
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	return took[calls:], nil // the first half warms up
}
