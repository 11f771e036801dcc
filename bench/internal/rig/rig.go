// Package rig keeps the programs the benchmarks run against: pinned npm
// packages with a Node that is new enough for them, the Go SDK's conformance
// programs, our own test servers, and mcpmend itself.
//
// Everything lives in one cache folder that outlives the run. The first run
// fills it and needs the network; later ones only check that it is complete.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Packages of Go programs that more than one benchmark starts.
const (
	EverythingServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"
	EverythingClient = "github.com/modelcontextprotocol/go-sdk/conformance/everything-client"
	Lossless         = "github.com/mcpmend/mcpmend/bench/testserver/lossless"
	Hostile          = "github.com/mcpmend/mcpmend/bench/testserver/hostile"
	TestClient       = "github.com/mcpmend/mcpmend/bench/testclient"
	Small            = "github.com/mcpmend/mcpmend/bench/testserver/small"
	Witness          = "github.com/mcpmend/mcpmend/bench/testserver/witness"
	GoSDK            = "github.com/mcpmend/mcpmend/bench/testserver/gosdk"
	Odd              = "github.com/mcpmend/mcpmend/bench/testserver/odd"
	mcpmend          = "github.com/mcpmend/mcpmend/cmd/mcpmend"
)

// A Rig is the cache folder. Several processes may use one at once.
type Rig struct {
	dir string
}

// Open returns the rig in $MCPMEND_BENCH_CACHE, or else in bench under the folder
// that .ci/run keeps its tools in, or else in mcpmend-bench under the user's cache
// folder. Nothing is installed until it is asked for.
func Open() (*Rig, error) {
	dir := os.Getenv("MCPMEND_BENCH_CACHE")
	if tools := os.Getenv("MCPMEND_TOOLS"); dir == "" && tools != "" {
		dir = filepath.Join(tools, "bench")
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(cache, "mcpmend-bench")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return nil, err
	}
	return &Rig{dir: dir}, nil
}

// Mcpmend returns the path of mcpmend, built from this tree unless
// $MCPMEND_BENCH_BINARY names another one to measure.
func (r *Rig) Mcpmend(ctx context.Context) (string, error) {
	if path := os.Getenv("MCPMEND_BENCH_BINARY"); path != "" {
		return exec.LookPath(path)
	}
	return r.Go(ctx, mcpmend)
}

// Go builds the Go program pkg and returns its path. The working directory must
// be inside this repository, whose go.work knows all the modules involved.
func (r *Rig) Go(ctx context.Context, pkg string) (string, error) {
	unlock, err := r.lock("go")
	if err != nil {
		return "", err
	}
	defer unlock()
	out := filepath.Join(r.dir, "bin", filepath.Base(pkg))
	// Stripped, as releases are: symbols would count in the memory figures.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return out, nil
}

// lock holds one part of the folder for this process. A benchmark killed in the
// middle releases it, as the kernel drops the lock with the process.
func (r *Rig) lock(part string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(r.dir, "."+part+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// tail returns the last lines of a program's output, for an error message.
func tail(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
