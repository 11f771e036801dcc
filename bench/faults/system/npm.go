package system

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcpmend/mcpmend/bench/faults/oracle"
)

// The proxies that npm offers, pinned: a benchmark that moves under one's feet
// compares nothing.
var pinned = []string{"mcp-remote@0.15.1", "mcp-proxy@6.7.19", "supergateway@4.0.0", "mcp-hub@4.2.1"}

// InstallNPM installs the pinned proxies into the user's cache, once, and
// returns them.
func InstallNPM(ctx context.Context) ([]*System, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "mcpmend-bench", "faults-npm")
	done := filepath.Join(dir, "installed")
	want := strings.Join(pinned, " ")
	if have, _ := os.ReadFile(done); string(have) != want {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		args := append([]string{"install", "--silent", "--no-audit", "--no-fund", "--prefix", dir}, pinned...)
		if out, err := exec.CommandContext(ctx, "npm", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("npm install: %v: %s", err, tail(out))
		}
		if err := os.WriteFile(done, []byte(want), 0o644); err != nil {
			return nil, err
		}
	}
	bin := func(name string) string { return filepath.Join(dir, "node_modules", ".bin", name) }
	return []*System{remote(bin("mcp-remote")), proxy(bin("mcp-proxy")), gateway(bin("supergateway")), hub(bin("mcp-hub"))}, nil
}

func address(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) + "/mcp" }

// remote brings a stdio client to an HTTP server.
func remote(bin string) *System {
	return &System{Name: "mcp-remote", Trust: oracle.TrustNone, LegacyOnly: true, Stdio: func(u Upstream) []string {
		if u.URL == "" {
			return nil
		}
		argv := []string{bin, u.URL, "--allow-http", "--transport", "http-only", "--silent"}
		if u.Secret != "" {
			argv = append(argv, "--header", "Authorization: Bearer "+u.Secret)
		}
		return argv
	}}
}

// proxy brings HTTP clients to a stdio server.
func proxy(bin string) *System {
	return &System{Name: "mcp-proxy", Trust: oracle.TrustNone, LegacyOnly: true, Port: func(u Upstream, port int, _ string) ([]string, string) {
		if u.Command == nil {
			return nil, ""
		}
		argv := []string{bin, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--server", "stream",
			"--requestTimeout", strconv.FormatInt(u.Deadline.Milliseconds(), 10), "--"}
		return append(argv, u.Command...), address(port)
	}}
}

// gateway does either.
func gateway(bin string) *System {
	return &System{
		Name: "supergateway", Trust: oracle.TrustNone, LegacyOnly: true,
		Stdio: func(u Upstream) []string {
			if u.URL == "" {
				return nil
			}
			argv := []string{bin, "--streamableHttp", u.URL, "--logLevel", "none"}
			if u.Secret != "" {
				argv = append(argv, "--oauth2Bearer", u.Secret)
			}
			return argv
		},
		Port: func(u Upstream, port int, _ string) ([]string, string) {
			if u.Command == nil {
				return nil, ""
			}
			return []string{bin, "--stdio", shellQuote(u.Command), "--outputTransport", "streamableHttp", "--stateful",
				"--port", strconv.Itoa(port), "--logLevel", "none"}, address(port)
		},
	}
}

func shellQuote(argv []string) string {
	var quoted []string
	for _, a := range argv {
		quoted = append(quoted, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

// hub gathers servers behind one endpoint of the old HTTP+SSE transport.
func hub(bin string) *System {
	return &System{
		Name: "mcp-hub", Trust: oracle.TrustNone, LegacyOnly: true, SSE: true, Prefix: "l__",
		Port: func(u Upstream, port int, dir string) ([]string, string) {
			entry := map[string]any{"url": u.URL}
			if u.Command != nil {
				entry = map[string]any{"command": u.Command[0], "args": u.Command[1:]}
			}
			if u.Secret != "" {
				entry["headers"] = map[string]string{"Authorization": "Bearer " + u.Secret}
			}
			data, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"l": entry}})
			file := filepath.Join(dir, "hub.json")
			if os.WriteFile(file, data, 0o600) != nil {
				return nil, ""
			}
			return []string{bin, "--port", strconv.Itoa(port), "--config", file}, address(port)
		},
	}
}
