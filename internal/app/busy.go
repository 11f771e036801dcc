package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
)

// busy says whether a running copy of the same server may hold what this one
// could not have. It only looks.
func (p *prober) busy(kind fault.Kind) string {
	switch kind {
	case fault.PortInUse, fault.ResourceLocked, fault.SpawnConflict:
	default:
		return ""
	}
	if len(p.start.Command) == 0 {
		return ""
	}
	script := launcher(p.start.Command[0], p.start.Dir)
	for _, other := range runningProcesses() {
		if other.runs(p.start.Command, p.start.Dir) || other.launchedBy(script, p.start.Command[1:]) {
			return fmt.Sprintf("process %d runs the same command", other.pid)
		}
	}
	return ""
}

// process is a running process of this user that we did not start.
type process struct {
	pid  int
	argv []string
	dir  string // where it works, "" if that is not known
}

// runs reports whether the process is the command, or an interpreter that was
// given it.
func (r *process) runs(command []string, dir string) bool {
	if !r.runsArguments(command) {
		return false
	}
	if !relative(command[1:], dir) {
		return true // wherever it runs, it is the same program on the same arguments
	}
	if dir == "" {
		dir, _ = os.Getwd()
	}
	return r.dir == "" || sameFile(r.dir, dir)
}

func (r *process) runsArguments(command []string) bool {
	// "npx" becomes "node /usr/bin/npx", a script "sh script" or "env node script".
	for skip := range min(3, len(r.argv)) {
		if slices.Equal(r.argv[skip+1:], command[1:]) && sameProgram(r.argv[skip], command[0]) {
			return true
		}
	}
	if len(r.argv) == 0 || programName(command[0]) != "npx" {
		return false
	}
	// npm writes over its own command line.
	rest := slices.DeleteFunc(slices.Clone(command[1:]), func(a string) bool { return a == "-y" || a == "--yes" })
	return strings.TrimRight(strings.Join(r.argv, " "), " ") == "npm exec "+strings.Join(rest, " ")
}

// launcher is the text of a shell script that stands for a server, "" if the
// command is something else.
func launcher(command, dir string) string {
	if filepath.Base(command) == command {
		return ""
	}
	if !filepath.IsAbs(command) {
		command = filepath.Join(dir, command)
	}
	const most = 64 << 10
	if info, err := os.Stat(command); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return ""
	}
	text, err := os.ReadFile(command)
	if err != nil {
		return ""
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	if !strings.HasPrefix(first, "#!") || !strings.HasSuffix(strings.TrimSpace(first), "sh") {
		return ""
	}
	return rest
}

// launchedBy reports whether the process may be what a launcher turned into: its
// program stands in the script, and every argument there or behind the command.
func (r *process) launchedBy(script string, args []string) bool {
	if script == "" || len(r.argv) == 0 || !filepath.IsAbs(r.argv[0]) && len(r.argv) < 2 || !strings.Contains(script, r.argv[0]) {
		return false
	}
	return !slices.ContainsFunc(r.argv[1:], func(a string) bool { return !strings.Contains(script, a) && !slices.Contains(args, a) })
}

func sameProgram(a, b string) bool {
	return a == b || programName(a) == programName(b) && (filepath.Base(a) == a || filepath.Base(b) == b || sameFile(a, b))
}

// programName is the name of a program without its folder and what installers put
// behind it: the file of npx is npx-cli.js.
func programName(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".exe", ".cmd", ".js", "-cli"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// relative reports whether an argument names a file that depends on where the
// program runs.
func relative(args []string, dir string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		if a == "" || strings.HasPrefix(a, "-") || filepath.IsAbs(a) {
			return false
		}
		_, err := os.Stat(filepath.Join(dir, a))
		return err == nil || strings.HasPrefix(a, ".") || strings.HasSuffix(a, ".js") || strings.HasSuffix(a, ".py")
	})
}
