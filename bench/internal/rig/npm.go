package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// pinned are the npm packages. Node comes as one of them because the
// conformance suite and the Inspector need a newer one than most machines have.
var pinned = []string{
	nodePackage() + "@24.21.0",
	"@modelcontextprotocol/conformance@0.2.0-alpha.12",
	"@modelcontextprotocol/inspector@2.12.0",
	"@modelcontextprotocol/sdk@1.32.2",
	"@modelcontextprotocol/server-everything@2026.8.31",
	"@modelcontextprotocol/server-filesystem@2026.8.31",
	"@modelcontextprotocol/server-memory@2026.8.31",
	"@modelcontextprotocol/server-sequential-thinking@2026.8.31",
}

func nodePackage() string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return "node-" + runtime.GOOS + "-" + arch
}

// NPM is the folder of installed packages.
type NPM struct {
	dir string
}

// NPM installs the pinned packages if they are not there yet.
func (r *Rig) NPM(ctx context.Context) (*NPM, error) {
	return r.Install(ctx, "npm", pinned...)
}

// Install puts packages, each with its version, into a folder of their own, if they
// are not there yet. Argv and Node need the package of Node among them.
func (r *Rig) Install(ctx context.Context, folder string, packages ...string) (*NPM, error) {
	unlock, err := r.lock(folder)
	if err != nil {
		return nil, err
	}
	defer unlock()
	n := &NPM{dir: filepath.Join(r.dir, folder)}
	// Written last, so that an interrupted installation is done again.
	stamp := filepath.Join(n.dir, "installed")
	want := strings.Join(packages, "\n")
	if got, err := os.ReadFile(stamp); err == nil && string(got) == want {
		return n, nil
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, err
	}
	// A registry that does not answer should be known within minutes, not after npm's
	// usual five for each try.
	args := append([]string{"install", "--prefix", n.dir, "--save-exact", "--no-audit", "--no-fund", "--fetch-timeout=60000"}, packages...)
	cmd := exec.CommandContext(ctx, "npm", args...)
	cmd.Dir = n.dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install: %w\n%s", err, tail(text))
	}
	return n, os.WriteFile(stamp, []byte(want), 0o644)
}

// Program is the file behind a command of an installed package.
func (n *NPM) Program(command string) (string, error) {
	return filepath.EvalSymlinks(filepath.Join(n.dir, "node_modules", ".bin", command))
}

// Argv returns the command line that runs a program of an installed package
// under the pinned Node, with no npx or shell in between.
func (n *NPM) Argv(program string, args ...string) ([]string, error) {
	script, err := n.Program(program)
	if err != nil {
		return nil, err
	}
	return append([]string{n.node(), script}, args...), nil
}

// Node is the pinned Node itself.
func (n *NPM) Node() string { return n.node() }

// Folder is where a package is installed.
func (n *NPM) Folder(pkg string) string {
	return filepath.Join(n.dir, "node_modules", filepath.FromSlash(pkg))
}

// Npx returns the command line people write in their configuration:
// npx, which starts a shell, which starts node.
func (n *NPM) Npx(program string, args ...string) []string {
	return append([]string{"npx", "--no-install", "--prefix", n.dir, program}, args...)
}

// Version reports the installed version of a package.
func (n *NPM) Version(pkg string) (string, error) {
	text, err := os.ReadFile(filepath.Join(n.dir, "node_modules", pkg, "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct{ Version string }
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", err
	}
	if manifest.Version == "" {
		return "", errors.New(pkg + ": no version in package.json")
	}
	return manifest.Version, nil
}

// Environ is the current environment with the pinned Node first in PATH.
func (n *NPM) Environ() []string {
	return append(os.Environ(), "PATH="+filepath.Dir(n.node())+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func (n *NPM) node() string {
	return filepath.Join(n.dir, "node_modules", nodePackage(), "bin", "node")
}

// NodeOf returns a Node of another version, installed if it is not there yet.
func (r *Rig) NodeOf(ctx context.Context, version string) (string, error) {
	unlock, err := r.lock("node")
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(r.dir, "node-"+version)
	node := filepath.Join(dir, "node_modules", nodePackage(), "bin", "node")
	if _, err := os.Stat(node); err == nil {
		return node, nil
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-save", "--no-audit", "--no-fund", nodePackage()+"@"+version)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, tail(text))
	}
	return node, nil
}
