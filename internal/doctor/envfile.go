package doctor

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// An envFile is a file of variables that an entry of a project names.
type envFile struct {
	name string
	// lines are what stands in a file of the project. One outside of it is not opened
	// before somebody has agreed.
	lines   []string
	outside bool
}

// mostVariables is how large a file of variables may be that a person is shown.
const mostVariables = 64 << 10

// readEnvFile reads the variables of a file that an entry names, if it lies in the
// project.
func (c *cover) readEnvFile(name, path string) [][2]string {
	path = filepath.Clean(path)
	shown := envFile{name: name}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path // it is not there, or its folder is not
	}
	var variables [][2]string
	if shown.outside = !c.inside(path) || !insideReal(c.roots, real); shown.outside {
		c.unopened[path], c.unopened[real] = true, true
	} else if text, err := machine.ReadPlain(path, mostVariables); err == nil {
		c.named[path] = name
		variables = envVariables(string(text))
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" {
				shown.lines = append(shown.lines, line)
			}
		}
	} else if info, err := os.Stat(path); err == nil && info.Size() > mostVariables {
		c.tooMany("has a file of variables that is too large to be shown")
	}
	c.envFiles = append(c.envFiles, shown)
	return variables
}

// mayOpen reports whether the file of variables that an entry of a project names may be
// read: it is part of the project, or somebody has agreed.
func (d *Doctor) mayOpen(s *clientconfig.Server, f *clientconfig.File, x *expansion) bool {
	path := x.envFilePath()
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return insideReal(d.projectRoots(s, ""), path) || d.Approvals != nil && d.Approvals.allows(d.approvalKey(s, f))
}

// insideReal: a path without links is in one of the folders, wherever these lie.
func insideReal(roots []string, real string) bool {
	for _, root := range roots {
		if r, err := filepath.EvalSymlinks(root); err == nil && isBelow(r, real) {
			return true
		}
	}
	return false
}

var envFileOption = pattern(`--env-file(?:-if-exists)?(?:=|\s+|\x00)["']?([^\s"'\x00]+)`)

// envFileOptions are the files of variables in the options of node, docker, uv and
// others.
func envFileOptions(argv []string) []string {
	var names []string
	for _, m := range envFileOption().FindAllStringSubmatch(strings.Join(argv, "\x00"), -1) {
		names = append(names, m[1])
	}
	return names
}

// envFilePath is the file that the entry names for variables.
func (x *expansion) envFilePath() string {
	at := site{environ: *x.env, dir: x.dir}
	return at.absolute(x.expand("envFile", "", x.server.EnvFile))
}

// envFile are the variables of the file that the entry names for them. An entry of a
// project that nobody has agreed to gets none from a file outside of the project.
func (x *expansion) envFile() [][2]string {
	if x.server.EnvFile.Text == "" || x.sealed {
		return nil
	}
	return readEnvFile(x.envFilePath())
}

// readEnvFile reads the lines NAME=value of a file; a file that cannot be read has
// none.
func readEnvFile(path string) [][2]string {
	text, err := machine.ReadPlain(path, 1<<20)
	if err != nil {
		return nil
	}
	return envVariables(string(text))
}

func envVariables(text string) [][2]string {
	var out [][2]string
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		out = append(out, [2]string{name, value})
	}
	return out
}
