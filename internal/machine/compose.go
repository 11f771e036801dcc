package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
)

// Published is a port of a container that can be reached from this machine.
type Published struct {
	Service string
	// Target is the port inside the container, Published the one outside; 0 if docker
	// chooses it.
	Target, Published int
	// HostIP is the address it is published on; "" is every one.
	HostIP   string
	Protocol string // "tcp" or "udp"
	// Inactive is set for a service whose profiles are not switched on.
	Inactive bool
	// File and Line are where the service stands; Line is 0 if it was not found.
	File string
	Line int
}

// isLocal: it can be reached as localhost.
func (p Published) isLocal() bool {
	ip := net.ParseIP(p.HostIP)
	return p.HostIP == "" || ip.IsUnspecified() || ip.IsLoopback()
}

// Ports are the published ports of a compose project.
type Ports []Published

// Match finds the service that somebody meant who was refused at this port of the
// machine: the port is right inside the container and published under another number. It is
// only found if there is exactly one, and nobody publishes the refused port
// itself, for then that service is merely down.
func (ps Ports) Match(refused int) (Published, bool) {
	for _, inactive := range []bool{false, true} {
		var match []Published
		for _, p := range ps {
			switch {
			case p.Inactive != inactive || p.Protocol != "tcp" || !p.isLocal():
			case p.Published == refused:
				return Published{}, false
			case p.Target == refused:
				match = append(match, p)
			}
		}
		switch {
		case len(match) == 1 && match[0].Published != 0:
			return match[0], true
		case len(match) > 0:
			return Published{}, false
		}
	}
	return Published{}, false
}

const (
	maxCompose = 1 << 20
	// How far includes are followed.
	maxComposeDepth = 4
	maxComposeFiles = 30
)

// composeNames are the files that docker compose looks for, in its order.
var (
	composeNames     = []string{"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"}
	composeOverrides = []string{"compose.override.yml", "compose.override.yaml", "docker-compose.override.yml", "docker-compose.override.yaml"}
)

// PublishedPorts reads the compose files of a folder as docker compose would, with
// COMPOSE_FILE, the override file, the .env file, profiles and included files. It
// starts nothing, asks no network, and reads regular files below dir only. A folder
// without compose files has no ports, which is no error.
//
// An error names the file and not what is wrong in it: that could quote a value.
func PublishedPorts(ctx context.Context, dir string) (Ports, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	quietCompose()
	c := composeReader{root: dir, seen: make(map[string]bool)}
	env := c.environment(dir, ownEnviron())
	files := composeFiles(dir, env)
	if len(files) == 0 {
		return nil, nil
	}
	if first := filepath.Dir(files[0]); first != dir { // paths count from there
		dir, env = first, c.environment(first, env)
	}
	if err := c.read(ctx, dir, files, env, 0); err != nil {
		return nil, err
	}
	return c.ports, nil
}

// quietCompose keeps the loader from writing its warnings to our standard error.
var quietCompose = sync.OnceFunc(func() { logrus.SetOutput(io.Discard) })

// composeFiles are those that COMPOSE_FILE names, or those that are found.
func composeFiles(dir string, env types.Mapping) []string {
	var files []string
	separator := cmp.Or(env["COMPOSE_PATH_SEPARATOR"], string(os.PathListSeparator))
	for name := range strings.SplitSeq(env["COMPOSE_FILE"], separator) {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		files = append(files, name)
	}
	if len(files) > 0 {
		return files
	}
	if main := firstOf(dir, composeNames); main != "" {
		files = append(files, main)
		if override := firstOf(dir, composeOverrides); override != "" {
			files = append(files, override)
		}
	}
	return files
}

func firstOf(dir string, names []string) string {
	for _, name := range names {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file
		}
	}
	return ""
}

func ownEnviron() types.Mapping {
	env := make(types.Mapping)
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			env[name] = value
		}
	}
	return env
}

// A composeReader collects the ports of a project and its includes.
type composeReader struct {
	root  string
	seen  map[string]bool
	ports Ports
}

// environment adds to env what the .env file of a folder sets and env does not.
func (c *composeReader) environment(dir string, env types.Mapping) types.Mapping {
	file, err := c.inside(filepath.Join(dir, ".env"))
	if err != nil {
		return env
	}
	data, err := ReadPlain(file, maxDotenv)
	if err != nil {
		return env
	}
	set, err := dotenv.UnmarshalBytesWithLookup(data, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	if err != nil {
		return env
	}
	env = env.Clone()
	for name, value := range set {
		if _, ok := env[name]; !ok {
			env[name] = value
		}
	}
	return env
}

// inside resolves a path and refuses one that leads out of the project.
func (c *composeReader) inside(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(c.root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", errors.New("outside of the project")
	}
	return real, nil
}

func (c *composeReader) read(ctx context.Context, dir string, files []string, env types.Mapping, depth int) error {
	if depth > maxComposeDepth || len(c.seen)+len(files) > maxComposeFiles || ctx.Err() != nil {
		return ctx.Err()
	}
	details := types.ConfigDetails{WorkingDir: dir, Environment: env}
	for _, f := range files {
		file, err := c.inside(f)
		if err != nil {
			return fmt.Errorf("%s: cannot be read", f)
		}
		data, err := ReadPlain(file, maxCompose)
		if err != nil {
			return fmt.Errorf("%s: cannot be read", f)
		}
		c.seen[file] = true
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: f, Content: data})
	}
	project, includes, err := c.load(ctx, details)
	if err != nil {
		return fmt.Errorf("%s: docker compose would not accept it", files[0])
	}
	for _, services := range []types.Services{project.Services, project.DisabledServices} {
		for _, name := range slices.Sorted(maps.Keys(services)) {
			_, active := project.Services[name]
			c.add(services[name], !active, details.ConfigFiles)
		}
	}
	for _, include := range includes {
		c.include(ctx, dir, include, env, depth)
	}
	return nil
}

// load runs the loader with everything switched off that would read files of its
// own accord. It is somebody else's program on somebody else's file: should it
// panic, the file is as good as unreadable.
func (c *composeReader) load(ctx context.Context, details types.ConfigDetails) (project *types.Project, includes []any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the loader gave up")
		}
	}()
	options := func(o *loader.Options) {
		o.SetProjectName("mcpmend", true)
		o.SkipInclude = true
		o.SkipNormalization = true
		o.SkipConsistencyCheck = true
		o.SkipResolveEnvironment = true
		o.SkipResolveLabels = true
		o.ResolvePaths = false
		o.ResourceLoaders = []loader.ResourceLoader{c}
		for name := range strings.SplitSeq(details.Environment["COMPOSE_PROFILES"], ",") {
			if name = strings.TrimSpace(name); name != "" {
				o.Profiles = append(o.Profiles, name)
			}
		}
	}
	opts := loader.ToOptions(&details, []func(*loader.Options){options})
	model, err := loader.LoadModelWithContext(ctx, details, options)
	if err != nil {
		return nil, nil, err
	}
	includes, _ = model["include"].([]any)
	delete(model, "include")
	project, err = loader.ModelToProject(model, opts, details)
	return project, includes, err
}

// include reads what an entry of "include" names, if it is a file of the project.
// One that cannot be read leaves the others as they are.
func (c *composeReader) include(ctx context.Context, dir string, entry any, env types.Mapping, depth int) {
	var paths []string
	below := ""
	switch e := entry.(type) {
	case string:
		paths = []string{e}
	case map[string]any:
		switch p := e["path"].(type) {
		case string:
			paths = []string{p}
		case []any:
			for _, one := range p {
				if s, ok := one.(string); ok {
					paths = append(paths, s)
				}
			}
		}
		below, _ = e["project_directory"].(string)
	}
	if len(paths) == 0 || strings.Contains(paths[0], "://") || len(paths) > maxComposeFiles {
		return
	}
	for i, p := range paths {
		if !filepath.IsAbs(p) {
			paths[i] = filepath.Join(dir, p)
		}
	}
	switch {
	case below == "":
		below = filepath.Dir(paths[0])
	case !filepath.IsAbs(below):
		below = filepath.Join(dir, below)
	}
	if file, err := c.inside(paths[0]); err != nil || c.seen[file] {
		return
	}
	_ = c.read(ctx, below, paths, c.environment(below, env), depth+1)
}

// The three methods below let the loader read files that are extended from, and
// keep it from reading anything else.

// Accept takes every path, so that the loader's own reader is never asked.
func (c *composeReader) Accept(string) bool { return true }

// Load finds a file of the project. A relative path counts from the file it stands
// in; the loader does not say which, so those that we know are tried.
func (c *composeReader) Load(_ context.Context, path string) (string, error) {
	candidates := []string{path}
	if !filepath.IsAbs(path) {
		candidates = []string{filepath.Join(c.root, path)}
		for file := range c.seen {
			candidates = append(candidates, filepath.Join(filepath.Dir(file), path))
		}
		slices.Sort(candidates[1:])
	}
	for _, candidate := range candidates {
		file, err := c.inside(candidate)
		if err != nil {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() <= maxCompose && len(c.seen) < maxComposeFiles {
			c.seen[file] = true
			return file, nil
		}
	}
	return "", errors.New("not a file of the project")
}

// Dir is the folder that paths in such a file count from.
func (c *composeReader) Dir(path string) string { return filepath.Dir(path) }

func (c *composeReader) add(s types.ServiceConfig, inactive bool, files []types.ConfigFile) {
	file, line := serviceLine(s.Name, files)
	for _, p := range s.Ports {
		// A range outside for one port inside means that docker chooses.
		published, err := strconv.ParseUint(p.Published, 10, 16)
		if err != nil {
			published = 0
		}
		protocol := p.Protocol
		if protocol == "" {
			protocol = "tcp"
		}
		c.ports = append(c.ports, Published{
			Service: s.Name, Target: int(p.Target), Published: int(published), HostIP: p.HostIP,
			Protocol: protocol, Inactive: inactive, File: file, Line: line,
		})
	}
}

// serviceLine finds where a service begins; the last file that has it wins, as its
// ports do.
func serviceLine(name string, files []types.ConfigFile) (string, int) {
	key := regexp.MustCompile(`^\s+["']?` + regexp.QuoteMeta(name) + `["']?\s*:`)
	for _, f := range slices.Backward(files) {
		services := false
		number := 0
		for text := range strings.Lines(string(f.Content)) {
			number++
			switch {
			case strings.HasPrefix(text, "services:"):
				services = true
			case services && key.MatchString(text):
				return f.Filename, number
			case services && len(text) > 0 && !strings.ContainsRune(" \t\r\n#-", rune(text[0])):
				services = false
			}
		}
	}
	return files[0].Filename, 0
}
