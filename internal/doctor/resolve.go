package doctor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// Kinds of the resolve rung that package fault has no word for.
const (
	kindScriptMissing        = "script_missing"
	kindCwdMissing           = "cwd_missing"
	kindWindowsShim          = "windows_shim"
	kindNpxWithoutYes        = "npx_without_yes"
	kindDockerDetached       = "docker_detached"
	kindDockerNotInteractive = "docker_not_interactive"
	kindDependsOnFolder      = "depends_on_folder"
)

// resolve looks for what an entry wants to run, in the environment that it will
// have. It starts nothing.
func (d *Doctor) resolve(s *clientconfig.Server, st Start) []Finding {
	if len(st.Command) == 0 {
		return nil
	}
	return resolve(site{environ: environ{os: d.os(), list: st.Env}, dir: st.Dir, stat: os.Stat, open: openFile}, s, st.Command)
}

func openFile(name string) (io.ReadCloser, error) { return machine.OpenPlain(name) }

// site is the place where a program is looked for. It knows the rules of a system
// that need not be this one.
type site struct {
	environ
	dir  string
	stat func(string) (fs.FileInfo, error)
	open func(string) (io.ReadCloser, error)
}

func resolve(at site, s *clientconfig.Server, command []string) []Finding {
	if f, bad := at.folderMissing(s); bad {
		return []Finding{f}
	}
	var found []Finding
	add := func(f Finding, bad bool) {
		if bad {
			found = append(found, f)
		}
	}
	file, f, bad := at.program(s, command[0])
	add(f, bad)
	add(at.shim(s, command[0], file))
	add(at.scriptMissing(s, command))
	launch := launchOf(command)
	add(upperCasePackage(s, launch))
	add(npxAsks(s, launch))
	found = append(found, docker(s, command)...)
	return found
}

// folderMissing: nothing starts in a folder that is not there, and the system
// would blame the program.
func (at *site) folderMissing(s *clientconfig.Server) (Finding, bool) {
	if s.Cwd.Text == "" {
		return Finding{}, false
	}
	info, err := at.stat(at.dir)
	if err == nil && info.IsDir() {
		return Finding{}, false
	}
	f := resolving(kindCwdMissing, Broken, s, s.Cwd)
	f.pieces.Path = at.dir
	f.Evidence = []string{secret.Scrub(at.dir) + " is not there"}
	f.Explanation = "The working folder of the entry does not exist, so nothing can be started in it."
	if err == nil {
		f.Evidence = []string{secret.Scrub(at.dir) + " is not a folder"}
		f.Explanation = "The working folder of the entry is a file, so nothing can be started in it."
	}
	if strings.HasPrefix(s.Cwd.Text, "~") {
		f.Explanation = "No shell replaces the ~ in the working folder, so it does not exist as it is written."
	}
	return f, true
}

// dependsOnFolder: the command names a file by a relative path, and the client starts it
// in whatever folder it works in. That it is not there where we would start it says
// nothing.
func (d *Doctor) dependsOnFolder(s *clientconfig.Server, st Start) (Finding, bool) {
	if !st.anywhere || len(st.Command) == 0 {
		return Finding{}, false
	}
	at := site{environ: environ{os: d.os(), list: st.Env}, dir: st.Dir}
	script, _ := at.script(st.Command)
	for i, w := range st.Command {
		relative := strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../") || (i == 0 && at.isPath(w) || i == script) && !at.os.IsAbs(w) && !strings.HasPrefix(w, "~")
		if !relative || at.isLine(w) {
			continue
		}
		if _, err := os.Stat(at.absolute(w)); err == nil {
			continue
		}
		f := resolving(kindDependsOnFolder, Warning, s, argument(s, i))
		f.pieces.Command, f.pieces.Path = st.Command[0], at.os.Join(d.System.Project, w)
		f.Explanation = fmt.Sprintf("%s is a relative path, so which file it is depends on the folder that %s is opened in. It was not started.", secret.Scrub(w), s.Client.Name)
		return f, true
	}
	return Finding{}, false
}

// resolving is a finding about one value of an entry.
func resolving[K ~string](kind K, severity Severity, s *clientconfig.Server, v clientconfig.Value) Finding {
	f := finding(AtResolve, kind, severity, place(v.At))
	if v.At.Line == 0 {
		f.At = place(s.At)
	}
	f.problem = &clientconfig.Problem{Kind: clientconfig.Kind(kind), At: v.At, Path: v.Path, Server: s.Name.Text}
	return f
}

// program finds the file that a command stands for, or says why there is none.
func (at *site) program(s *clientconfig.Server, command string) (string, Finding, bool) {
	file, err := at.search().Find(command)
	missing := errors.Is(err, machine.ErrProgramMissing)
	switch {
	case missing && at.isLine(command):
		f := resolving(clientconfig.CommandHoldsArgs, Broken, s, s.Command)
		f.Stage, f.ID = AtShape, string(AtShape)+"."+f.Kind
		f.Explanation = problemWords(s.Client, *f.problem)
		return "", f, true
	case missing:
		f := resolving(fault.CommandNotFound, Broken, s, s.Command)
		f.pieces.Command = command
		f.Evidence, f.Explanation = at.notFound(s, command)
		return "", f, true
	case err != nil:
		f := resolving(fault.PermissionDenied, Broken, s, s.Command)
		f.pieces.Command, f.pieces.Path = command, file
		f.Evidence = []string{secret.Scrub(file) + " " + err.Error()}
		f.Explanation = fmt.Sprintf("The command leads to a file that %s.", err)
		return "", f, true
	}
	if interpreter, missing := at.interpreterMissing(file); missing {
		f := resolving(fault.CommandNotFound, Broken, s, s.Command)
		f.pieces.Command = interpreter
		f.Evidence = []string{secret.Scrub(file) + " wants to be run by " + interpreter, at.searched()}
		f.Explanation = fmt.Sprintf("The program is there, but it is a script for %q, and that is not found in the PATH that %s gives its servers.", interpreter, s.Client.Name)
		return file, f, true
	}
	return file, Finding{}, false
}

// isLine reports whether a command that is not there would be with its first word
// alone.
func (at *site) isLine(command string) bool {
	word, _, more := strings.Cut(strings.TrimSpace(command), " ")
	if !more || at.os.IsWindows() && at.isPath(word) { // C:\Program Files has a space
		return false
	}
	_, err := at.search().Find(word)
	return err == nil
}

func (at *site) notFound(s *clientconfig.Server, command string) (evidence []string, explanation string) {
	if at.isPath(command) {
		explanation = "There is no file where the command points to."
		if strings.HasPrefix(command, "~") {
			explanation = "No shell replaces the ~ in the command, so there is no such file."
		}
		return []string{secret.Scrub(at.absolute(command)) + " is not there"}, explanation
	}
	return []string{at.searched()}, fmt.Sprintf("%q is not in the PATH that %s gives its servers.", command, s.Client.Name)
}

// searched says where was looked, without all of it.
func (at *site) searched() string {
	value, ok := at.lookup("PATH")
	if !ok || value == "" {
		return "the PATH is empty"
	}
	const most = 200
	if len(value) > most {
		dirs := at.os.Folders(value)
		kept := min(len(dirs), 4)
		return fmt.Sprintf("PATH: %s and %d more", strings.Join(dirs[:kept], at.os.ListSeparator()), len(dirs)-kept)
	}
	return "PATH: " + value
}

// search looks for programs with this site's PATH.
func (at *site) search() machine.Search {
	path, _ := at.lookup("PATH")
	endings, _ := at.lookup("PATHEXT")
	return machine.Search{OS: at.os, Path: path, Dir: at.dir, Endings: endings, Stat: at.stat}
}

func (at *site) isPath(command string) bool { return at.os.IsPath(command) }

// absolute is a path as seen from the folder in which the server starts.
func (at *site) absolute(name string) string { return at.search().Absolute(name) }

// interpreterMissing reads the first line of a script.
func (at *site) interpreterMissing(file string) (string, bool) {
	if at.os.IsWindows() {
		return "", false
	}
	r, err := at.open(file)
	if err != nil {
		return "", false
	}
	defer r.Close()
	line, _ := bufio.NewReaderSize(io.LimitReader(r, 256), 256).ReadSlice('\n')
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return "", false
	}
	words := strings.Fields(string(rest))
	if len(words) > 0 && path.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
	}
	if len(words) == 0 {
		return "", false
	}
	_, err = at.search().Find(words[0])
	return words[0], err != nil
}

// bareSpawn are the clients that start a program on Windows by itself. They cannot
// start a batch file, and "cmd /c" helps; for the others it would be one too many.
var bareSpawn = []string{"claude-desktop", "claude-code", "copilot-cli", "cline"}

// shim: on Windows npx is a batch file, which only a command processor can run.
func (at *site) shim(s *clientconfig.Server, command, file string) (Finding, bool) {
	if !at.os.IsWindows() || !slices.Contains(bareSpawn, s.Client.ID) {
		return Finding{}, false
	}
	if ending := strings.ToLower(filepath.Ext(file)); ending != ".cmd" && ending != ".bat" {
		return Finding{}, false
	}
	f := resolving(kindWindowsShim, Broken, s, s.Command)
	f.pieces.Command, f.pieces.Path = command, file
	f.Evidence = []string{programName(command) + " is a batch file"}
	f.Explanation = fmt.Sprintf("%s starts programs directly, and Windows runs the batch file %s only through cmd.", s.Client.Name, programName(command))
	return f, true
}

// interpreters are programs whose first argument that is no option is a script.
var interpreters = []string{"node", "nodejs", "python", "python3", "py", "deno", "bun", "ruby", "php", "perl", "tsx", "ts-node", "sh", "bash", "zsh"}

// options of interpreters that are followed by a value, and those after which
// there is no script.
var (
	takeValue = []string{"-r", "--require", "--import", "--loader", "--env-file", "-W", "-X", "--conditions", "-C"}
	noScript  = []string{"-e", "--eval", "-c", "-m", "-p", "--print", "-"}
	verbs     = []string{"run", "x", "exec"}
)

// scriptMissing: the interpreter is there and what it should run is not.
func (at *site) scriptMissing(s *clientconfig.Server, command []string) (Finding, bool) {
	i, folder := at.script(command)
	if i < 0 {
		return Finding{}, false
	}
	file := at.absolute(command[i])
	for _, ending := range []string{"", ".js", ".cjs", ".mjs", ".json"} { // node leaves them out
		if _, err := at.stat(file + ending); !errors.Is(err, fs.ErrNotExist) {
			return Finding{}, false
		}
	}
	f := resolving(kindScriptMissing, Broken, s, argument(s, i))
	f.pieces.Command, f.pieces.Path = command[0], file
	f.Evidence = []string{secret.Scrub(file) + " is not there"}
	f.Explanation = fmt.Sprintf("%s is told to run a script that does not exist.", programName(command[0]))
	switch {
	case folder:
		f.Explanation = fmt.Sprintf("%s is told to work in a folder that does not exist.", programName(command[0]))
	case strings.HasPrefix(command[i], "~"):
		f.Explanation = "No shell replaces the ~ in the path of the script, so there is no such file."
	case !at.os.IsAbs(command[i]):
		f.Explanation = fmt.Sprintf("The path of the script is relative, and there is no such file in %s, where %s starts the server.", secret.Scrub(at.dir), s.Client.Name)
	}
	return f, true
}

// script is the index of the argument that names the script, or the folder, that
// has to be there; -1 if there is none that can be told.
func (at *site) script(command []string) (index int, folder bool) {
	name := programName(command[0])
	if name == "uv" {
		for i := 1; i+1 < len(command); i++ {
			if command[i] == "--directory" || command[i] == "--project" {
				return i + 1, true
			}
		}
		return -1, false
	}
	if name == "java" {
		i := slices.Index(command, "-jar") + 1
		if i == 0 || i == len(command) {
			return -1, false
		}
		return i, false
	}
	if !slices.Contains(interpreters, strings.TrimRight(name, "0123456789.")) && !slices.Contains(interpreters, name) {
		return -1, false
	}
	for i := 1; i < len(command); i++ {
		a := command[i]
		switch {
		case slices.Contains(noScript, a):
			return -1, false
		case slices.Contains(takeValue, a):
			i++
		case strings.HasPrefix(a, "-"):
		case (name == "deno" || name == "bun") && slices.Contains(verbs, a):
		case at.looksLikeFile(a):
			return i, false
		default:
			return -1, false
		}
	}
	return -1, false
}

// looksLikeFile leaves out URLs and package names.
func (at *site) looksLikeFile(a string) bool {
	if strings.Contains(a, "://") || strings.HasPrefix(a, "npm:") || strings.HasPrefix(a, "jsr:") || strings.HasPrefix(a, "@") {
		return false
	}
	if at.isPath(a) {
		return true
	}
	switch path.Ext(a) {
	case ".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".php", ".pl", ".sh":
		return true
	}
	return false
}

// npxAsks: without -y npx asks whether it may install the package, and nobody
// answers.
func npxAsks(s *clientconfig.Server, l launch) (Finding, bool) {
	if l.runner != "npx" || l.id == "" || l.told("-y", "--yes", "--no", "--no-install") {
		return Finding{}, false
	}
	f := resolving(kindNpxWithoutYes, Warning, s, argument(s, l.at))
	f.pieces.Command, f.pieces.Package = l.words[0], l.id
	f.Explanation = "Without -y npx may ask before it installs the package for the first time, and nobody can answer."
	return f, true
}

// argument is the value of an entry that became this part of the command line.
func argument(s *clientconfig.Server, index int) clientconfig.Value {
	if index >= 1 && index-1 < len(s.Args) {
		return s.Args[index-1]
	}
	return s.Command
}

// upperCasePackage: npm has taken no package with capitals in its name since 2017,
// long before there were servers.
func upperCasePackage(s *clientconfig.Server, l launch) (Finding, bool) {
	if l.runner != "npx" {
		return Finding{}, false
	}
	name, _, ok := npmName(l.id)
	if !ok || strings.ToLower(name) == name {
		return Finding{}, false
	}
	f := resolving(fault.PackageNotFound, Broken, s, argument(s, l.at))
	f.pieces.Command, f.pieces.Package = l.words[0], l.id
	f.Evidence = []string{l.id + " has capital letters"}
	f.Explanation = fmt.Sprintf("The npm registry takes no capital letters in names, so there is no %q.", name)
	return f, true
}

// docker looks at the options of "docker run": a server is spoken to over its
// standard input, so it has to have one and stay in the foreground.
func docker(s *clientconfig.Server, command []string) []Finding {
	d, ok := dockerRun(command)
	if !ok {
		return nil
	}
	_, name := started(command)
	var found []Finding
	if d.detached >= 0 {
		f := resolving(kindDockerDetached, Broken, s, argument(s, d.detached))
		f.pieces.Command = command[0]
		f.Evidence = []string{command[d.detached]}
		f.Explanation = name + " is told to run the server in the background, where nobody can speak to it."
		found = append(found, f)
	}
	if !d.interactive {
		f := resolving(kindDockerNotInteractive, Broken, s, argument(s, d.first-1))
		f.pieces.Command = command[0]
		f.Evidence = []string{"no -i after run"}
		f.Explanation = fmt.Sprintf("Without -i %s gives the server no standard input, so it never hears a word.", name)
		found = append(found, f)
	}
	return found
}
