package doctor

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// fixes returns what could be done about a finding, the best first.
func (d *Doctor) fixes(ctx context.Context, c *Case, f *Finding) []Fix {
	if c.file == nil {
		return sources{os: d.os(), self: d.Self}.fixes(ctx, c, f)
	}
	all := d.sources(c).fixes(ctx, c, f)
	for i := range all {
		switch fix := &all[i]; {
		case fix.Class == Never:
		case d.startsNew(c, *fix):
			fix.Class, fix.person = Ask, true
		case d.readsNew(c, *fix):
			fix.person = true
		}
	}
	return all
}

// sources is what this machine knows that may help in a case. Most of it is looked
// up only when a fix asks.
func (d *Doctor) sources(c *Case) sources {
	client := d.client(c)
	searched, _ := d.environment(client).lookup("PATH")
	folders := []string{d.System.Project, filepath.Dir(c.file.Path)}
	s := sources{
		os: d.os(), home: d.home(), system: d.System, project: d.System.Project,
		self: d.Self, withheld: d.Withheld, path: searched,
		answers: listens, siblings: filesIn, usedBy: workedIn,
		exists:  func(path string) bool { _, err := os.Stat(path); return err == nil },
		dotenv:  func() []machine.DotenvName { return machine.DotenvNames(folders...) },
		ports:   func(ctx context.Context) machine.Ports { return composePorts(ctx, folders) },
		lost:    func(name string) bool { return d.whyWithout(client, name) != "" },
		desktop: d.fromDesktop(client), waits: d.waits(client, c.server),
	}
	if d.Programs != nil {
		s.programs = d.Programs.Find
	}
	for _, v := range d.ofClient(client).list {
		if name, value, _ := strings.Cut(v, "="); value != "" {
			s.names = append(s.names, name)
		}
	}
	if c.server == nil {
		return s
	}
	s.speaks = func(ctx context.Context) clientconfig.Transport { return d.transport(ctx, c) }
	if entry, there := d.published(c.server); there {
		s.page = entry.Help()
	}
	s.variables = d.known(c.server)
	return s
}

// transport finds out by trying what the URL of an entry speaks; Unknown if nobody
// may be asked.
func (d *Doctor) transport(ctx context.Context, c *Case) clientconfig.Transport {
	if d.Probe == nil || d.Static || d.needsApproval(c.server, c.file) {
		return clientconfig.Unknown
	}
	start, found := d.start(c.server, c.file)
	if firstBroken(found) != nil {
		return clientconfig.Unknown
	}
	start.Transport, start.Timeout = clientconfig.Unknown, d.timeout()
	return d.Probe(ctx, start).Transport
}

// composePorts are those of the first folder that has a compose file.
func composePorts(ctx context.Context, folders []string) machine.Ports {
	for _, dir := range folders {
		if dir == "" {
			continue
		}
		if ports, err := machine.PublishedPorts(ctx, dir); err == nil && len(ports) > 0 {
			return ports
		}
	}
	return nil
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
