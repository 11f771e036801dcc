package doctor

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// fixes returns what could be done about a finding, the best first.
func (d *Doctor) fixes(ctx context.Context, c *Case, f *Finding) []Fix {
	return d.sources(c).fixes(ctx, c, f)
}

// sources are what this machine can say about a case.
func (d *Doctor) sources(c *Case) sources {
	s := sources{
		os: d.System.OS, home: d.System.Home, system: d.System, project: d.System.Project,
		exists:   func(path string) bool { _, err := os.Stat(path); return err == nil },
		siblings: filesIn,
		answers:  listens,
		usedBy:   workedIn,
	}
	if s.os == "" {
		s.os = runtime.GOOS
	}
	if s.home == "" {
		s.home, _ = os.UserHomeDir()
	}
	for _, pair := range d.Environ {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" {
			s.names = append(s.names, name)
		}
	}
	if c.server != nil && c.server.URL.Text != "" && d.Probe != nil && !d.Static && c.saw != nil {
		s.speaks = func(ctx context.Context) clientconfig.Transport {
			return d.speaks(ctx, c.server.URL.Text, WrapOptions{})
		}
	}
	return s
}

// filesIn lists the names of plain files in a folder.
func filesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names
}

// listens reports whether somebody takes a connection. Nothing is sent.
func listens(ctx context.Context, host string, port int) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// workedIn reports whether a process runs a program of a folder or stands in it.
// It can only be known where there is a /proc.
func workedIn(folder string) (used, known bool) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) == 0 {
		return false, false
	}
	for _, p := range processes {
		if p == "/proc/"+strconv.Itoa(os.Getpid()) {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		if strings.Contains(string(command), folder) {
			return true, true
		}
		if cwd, err := os.Readlink(filepath.Join(p, "cwd")); err == nil && (cwd == folder || strings.HasPrefix(cwd, folder+"/")) {
			return true, true
		}
	}
	return false, true
}
