package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/registry"
)

// fixes returns what could be done about a finding, the best first.
func (d *Doctor) fixes(ctx context.Context, c *Case, f *Finding) []Fix {
	if c.file == nil {
		return sources{os: d.goos(), self: d.Self}.fixes(ctx, c, f)
	}
	return d.sources(c).fixes(ctx, c, f)
}

// sources is what this machine knows that may help in a case. Most of it is looked
// up only when a fix asks.
func (d *Doctor) sources(c *Case) sources {
	client := c.file.Client
	if d.As != nil {
		client = d.As
	}
	env := d.environment(client)
	searched, _ := env.lookup("PATH")
	folders := []string{d.System.Project, filepath.Dir(c.file.Path)}
	s := sources{
		os: d.goos(), home: d.home(), system: d.System, project: d.System.Project,
		self: d.Self, withheld: d.Withheld, path: searched, near: nearNames,
		answers: listens, siblings: filesIn, usedBy: workedIn,
		exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
	}
	s.programs = func(ctx context.Context, name string) []program {
		if d.Programs == nil {
			return nil
		}
		var found []program
		for _, f := range d.Programs.Find(ctx, name) {
			found = append(found, program{f.Path, f.From, f.Version})
		}
		return found
	}
	s.lost = func(name string) bool { return d.whyWithout(client, name) != "" }
	s.desktop = d.fromDesktop(client)
	s.waits = d.waits(client, c.server)
	for _, v := range d.ofClient(client).list {
		if name, value, _ := strings.Cut(v, "="); value != "" {
			s.names = append(s.names, name)
		}
	}
	for _, n := range machine.DotenvNames(folders...) {
		if !n.Empty {
			s.dotenv = append(s.dotenv, envName{n.Name, n.File})
		}
	}
	s.ports = func(ctx context.Context) []publishedPort { return composePorts(ctx, folders) }
	if c.server == nil {
		return s
	}
	s.speaks = func(ctx context.Context) clientconfig.Transport { return d.transport(ctx, c) }
	if entry, there := d.published(c.server); there {
		s.page = entry.Help()
	}
	for _, v := range d.known(c.server) {
		given := v.Given(func(name string) bool { _, there := envOf(c.server, name); return there }, argvOf(c.server))
		s.variables = append(s.variables, variable{
			name: v.Name, required: v.Required, secret: v.Secret, otherwise: given, mistaken: v.Mistaken, help: v.Help,
		})
	}
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

// known are the variables that the registry has for the package or the URL of an
// entry.
func (d *Doctor) known(s *clientconfig.Server) []registry.Variable {
	entry, there := d.published(s)
	if !there {
		return nil
	}
	if s.URL.Text != "" {
		r, _ := entry.FindRemote(s.URL.Text)
		return r.Headers
	}
	kind, id := packageOf(argvOf(s))
	p, _ := entry.Find(kind, id)
	return p.Variables
}

// published finds the entry of the registry for a server.
func (d *Doctor) published(s *clientconfig.Server) (registry.Entry, bool) {
	if d.Registry == nil {
		return registry.Entry{}, false
	}
	if s.URL.Text != "" {
		return d.Registry.Remote(s.URL.Text)
	}
	kind, id := packageOf(argvOf(s))
	if id == "" {
		return registry.Entry{}, false
	}
	return d.Registry.Package(kind, id)
}

// deprecation: the registry says that a server should not be used any more. It is
// said and nothing else: what replaces it is another program.
func (d *Doctor) deprecation(s *clientconfig.Server) []Finding {
	entry, _ := d.published(s)
	word := map[registry.Status]string{registry.Deprecated: "deprecated", registry.Deleted: "deleted"}[entry.Status]
	why := entry.StatusMessage
	if remote, there := entry.FindRemote(s.URL.Text); there && remote.Gone != "" && s.URL.Text != "" {
		word, why = "gone", remote.Gone
	}
	if word == "" {
		return nil
	}
	f := finding(AtResolve, kindDeprecated, Warning, s.At)
	f.Explanation = fmt.Sprintf("This server is marked as %s.", word)
	if why != "" {
		f.Evidence = []string{why}
	}
	f.Help = entry.Help()
	return []Finding{f}
}

// packageOf says which package a command line runs, and of which registry.
func packageOf(argv []string) (kind, id string) {
	if len(argv) > 2 && programName(argv[0]) == "cmd" && strings.EqualFold(argv[1], "/c") {
		argv = argv[2:]
	}
	if len(argv) < 2 {
		return "", ""
	}
	args := argv[1:]
	switch programName(argv[0]) {
	case "npx", "bunx", "pnpx":
		return "npm", firstWord(args, "-p", "--package", "-c", "--call")
	case "npm", "pnpm", "yarn", "bun":
		if slices.Contains([]string{"exec", "dlx", "x"}, args[0]) {
			return "npm", firstWord(args[1:], "-p", "--package")
		}
	case "uvx":
		return "pypi", firstWord(args, "--from", "--with", "--python", "-p", "--index-url")
	case "uv":
		if len(args) > 2 && args[0] == "tool" && args[1] == "run" {
			return "pypi", firstWord(args[2:], "--from", "--with", "--python", "-p")
		}
	case "pipx":
		if args[0] == "run" {
			return "pypi", firstWord(args[1:], "--spec", "--python")
		}
	case "docker", "podman":
		if args[0] == "run" {
			return "oci", firstWord(args[1:], "-e", "--env", "-v", "--volume", "--mount", "--name", "--network", "--env-file", "-p", "--publish", "-w", "--workdir", "--entrypoint", "-u", "--user", "--add-host", "--platform", "--pull")
		}
	}
	return "", ""
}

// firstWord is the first argument that is no flag and no flag's value.
func firstWord(args []string, withValue ...string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(withValue, args[i]):
			i++
		case strings.HasPrefix(args[i], "-"):
		default:
			return args[i]
		}
	}
	return ""
}

// composePorts are those of the first folder that has a compose file.
func composePorts(ctx context.Context, folders []string) []publishedPort {
	for _, dir := range folders {
		if dir == "" {
			continue
		}
		published, err := machine.PublishedPorts(ctx, dir)
		if err != nil || len(published) == 0 {
			continue
		}
		var ports []publishedPort
		for _, p := range published {
			ports = append(ports, publishedPort{p.Service, p.Target, p.Published})
		}
		return ports
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
