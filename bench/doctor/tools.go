package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

const patientPackage = "github.com/mcpmend/mcpmend/bench/testserver/patient"

// tools are the programs that the set-ups are made with.
type tools struct {
	mcpmend, patient, node, npx, python, shell string
	path                                       string // what a terminal has behind its own bin
	nowhere                                    string // a URL that nobody answers
	oldNode                                    func() (string, error)

	release func() error
}

// newTools builds what is needed and keeps a copy in dir: a benchmark of another tree
// may build its own into the rig meanwhile.
func newTools(ctx context.Context, dir string) (*tools, error) {
	r, err := rig.Open()
	if err != nil {
		return nil, err
	}
	t := &tools{shell: "/bin/sh"}
	if t.mcpmend, err = r.Mcpmend(ctx); err != nil {
		return nil, err
	}
	if t.patient, err = r.Go(ctx, patientPackage); err != nil {
		return nil, err
	}
	for _, program := range []*string{&t.mcpmend, &t.patient} {
		data, err := os.ReadFile(*program)
		if err != nil {
			return nil, err
		}
		*program = filepath.Join(dir, filepath.Base(*program))
		if err := os.WriteFile(*program, data, 0o755); err != nil {
			return nil, err
		}
	}
	addr, release, err := closedPort()
	if err != nil {
		return nil, err
	}
	t.nowhere, t.release = "http://"+addr, release
	folders := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	t.node, t.npx = look("node"), look("npx")
	for _, p := range []string{t.npx, t.node} {
		if p != "" {
			folders = append([]string{filepath.Dir(p)}, folders...)
		}
	}
	t.path = strings.Join(folders, ":")
	// Not a shim of a version manager, which wants the home of its user.
	for _, p := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if _, err := os.Stat(p); err == nil && t.python == "" {
			t.python = p
		}
	}
	if _, err := os.Stat("/bin/bash"); err == nil {
		t.shell = "/bin/bash"
	}
	t.oldNode = sync.OnceValues(func() (string, error) { return r.NodeOf(ctx, "10.24.1") })
	return t, nil
}

func look(name string) string {
	p, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return p
}

// has returns errVoid if the machine lacks something.
func (t *tools) has(need string) error {
	ok := true
	switch need {
	case "node":
		ok = t.node != ""
	case "npx":
		ok = t.npx != "" && t.node != ""
	case "python":
		ok = t.python != ""
	case "bash":
		ok = t.shell == "/bin/bash"
	case "ipv6":
		l, err := net.Listen("tcp6", "[::1]:0")
		if ok = err == nil; ok {
			l.Close()
		}
	case "old-node":
		if _, err := t.oldNode(); err != nil {
			return fmt.Errorf("%w: no old Node: %v", errVoid, err)
		}
	default:
		return fmt.Errorf("unknown need %q", need)
	}
	if !ok {
		return fmt.Errorf("%w: no %s on this machine", errVoid, need)
	}
	return nil
}
