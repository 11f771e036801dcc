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
)

// resolve looks for what an entry wants to run, in the environment that it will
// have. It starts nothing.
func (d *Doctor) resolve(s *clientconfig.Server, st Start) []Finding {
	if len(st.Command) == 0 {
		return nil
	}
	return resolve(site{environ: environ{os: d.goos(), list: st.Env}, dir: st.Dir, stat: os.Stat, open: openFile}, s, st.Command)
}

func openFile(name string) (io.ReadCloser, error) { return os.Open(name) }

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
	add(upperCasePackage(s, command))
	add(npxAsks(s, command))
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

// resolving is a finding about one value of an entry.
func resolving(kind string, severity Severity, s *clientconfig.Server, v clientconfig.Value) Finding {
	f := finding(AtResolve, kind, severity, v.At)
	if v.At.Line == 0 {
		f.At = place(s.At)
	}
	f.problem = &clientconfig.Problem{Kind: clientconfig.Kind(kind), At: v.At, Path: v.Path, Server: s.Name.Text}
	return f
}

// program finds the file that a command stands for, or says why there is none.
func (at *site) program(s *clientconfig.Server, command string) (string, Finding, bool) {
	file, flaw := at.find(command)
	switch {
	case file == "" && at.isLine(command):
		f := resolving(string(clientconfig.CommandHoldsArgs), Broken, s, s.Command)
		f.Stage, f.ID = AtShape, string(AtShape)+"."+f.Kind
		f.Explanation = problemWords(s.Client, *f.problem)
		return "", f, true
	case file == "":
		f := resolving(string(fault.CommandNotFound), Broken, s, s.Command)
		f.pieces.Command = command
		f.Evidence, f.Explanation = at.notFound(s, command)
		return "", f, true
	case flaw != "":
		f := resolving(string(fault.PermissionDenied), Broken, s, s.Command)
		f.pieces.Command, f.pieces.Path = command, file
		f.Evidence = []string{secret.Scrub(file) + " " + flaw}
		f.Explanation = fmt.Sprintf("The command leads to a file that %s.", flaw)
		return "", f, true
	}
	if interpreter, missing := at.interpreterMissing(file); missing {
		f := resolving(string(fault.CommandNotFound), Broken, s, s.Command)
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
	if !more || at.os == "windows" && at.isPath(word) { // C:\Program Files has a space
		return false
	}
	file, flaw := at.find(word)
	return file != "" && flaw == ""
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
		dirs := at.folders()
		kept := min(len(dirs), 4)
		return fmt.Sprintf("PATH: %s and %d more", strings.Join(dirs[:kept], at.separator()), len(dirs)-kept)
	}
	return "PATH: " + value
}

func (at *site) separator() string {
	if at.os == "windows" {
		return ";"
	}
	return ":"
}

// folders are those of the PATH. An empty one would mean the current folder, which
// is no place to find a server by accident.
func (at *site) folders() []string {
	value, _ := at.lookup("PATH")
	return slices.DeleteFunc(strings.Split(value, at.separator()), func(dir string) bool { return dir == "" })
}

func (at *site) isPath(command string) bool {
	return strings.Contains(command, "/") || at.os == "windows" && strings.Contains(command, `\`)
}

func (at *site) isAbsolute(name string) bool {
	if at.os != "windows" {
		return strings.HasPrefix(name, "/")
	}
	return len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/') || strings.HasPrefix(name, `\\`)
}

func (at *site) join(dir, name string) string {
	if at.os == "windows" {
		return strings.TrimRight(dir, `\/`) + `\` + name
	}
	return path.Join(dir, name)
}

// absolute is a path as seen from the folder in which the server starts.
func (at *site) absolute(name string) string {
	if at.isAbsolute(name) || at.dir == "" {
		return name
	}
	return at.join(at.dir, name)
}

// find looks for a program. With a file comes what keeps it from being run, if
// anything does.
func (at *site) find(command string) (file, flaw string) {
	if at.isPath(command) {
		return at.candidate(at.absolute(command))
	}
	var second, why string
	for _, dir := range at.folders() {
		file, flaw := at.candidate(at.join(dir, command))
		switch {
		case file != "" && flaw == "":
			return file, ""
		case file != "" && second == "" && flaw != isFolder:
			second, why = file, flaw // a better one may follow
		}
	}
	return second, why
}

const (
	isFolder    = "is a folder"
	notAProgram = "is no plain file"
	mayNotRun   = "may not be executed"
)

// candidate looks at one file, on Windows with each of the endings of programs.
func (at *site) candidate(name string) (file, flaw string) {
	names := []string{name}
	if at.os == "windows" {
		names = at.withEndings(name)
	}
	for _, n := range names {
		info, err := at.stat(n)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return n, "is in a folder that may not be searched"
		case err != nil:
			continue
		case info.IsDir():
			file, flaw = n, isFolder
			continue
		case !info.Mode().IsRegular(): // to look into a pipe is to wait for ever
			return n, notAProgram
		case at.os != "windows" && info.Mode().Perm()&0o111 == 0:
			return n, mayNotRun
		}
		return n, ""
	}
	return file, flaw
}

func (at *site) withEndings(name string) []string {
	endings, ok := at.lookup("PATHEXT")
	if !ok || endings == "" {
		endings = ".COM;.EXE;.BAT;.CMD"
	}
	var out []string
	for ending := range strings.SplitSeq(strings.ToLower(endings), ";") {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return []string{name}
		}
		out = append(out, name+ending)
	}
	return out
}

// interpreterMissing reads the first line of a script.
func (at *site) interpreterMissing(file string) (string, bool) {
	if at.os == "windows" {
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
	found, flaw := at.find(words[0])
	return words[0], found == "" || flaw != ""
}

// bareSpawn are the clients that start a program on Windows by itself. They cannot
// start a batch file, and "cmd /c" helps; for the others it would be one too many.
var bareSpawn = []string{"claude-desktop", "claude-code", "copilot-cli", "cline"}

// shim: on Windows npx is a batch file, which only a command processor can run.
func (at *site) shim(s *clientconfig.Server, command, file string) (Finding, bool) {
	if at.os != "windows" || !slices.Contains(bareSpawn, s.Client.ID) {
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
	v := s.Command
	if i-1 < len(s.Args) && i >= 1 {
		v = s.Args[i-1]
	}
	f := resolving(kindScriptMissing, Broken, s, v)
	f.pieces.Command, f.pieces.Path = command[0], file
	f.Evidence = []string{secret.Scrub(file) + " is not there"}
	f.Explanation = fmt.Sprintf("%s is told to run a script that does not exist.", programName(command[0]))
	switch {
	case folder:
		f.Explanation = fmt.Sprintf("%s is told to work in a folder that does not exist.", programName(command[0]))
	case strings.HasPrefix(command[i], "~"):
		f.Explanation = "No shell replaces the ~ in the path of the script, so there is no such file."
	case !at.isAbsolute(command[i]):
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

// runner is the part of a command line from npx on, and where it begins: it may
// stand behind "cmd /c". It is nil if there is none.
func runner(command []string) (args []string, from int) {
	if programName(command[0]) == "cmd" && len(command) > 2 && strings.EqualFold(command[1], "/c") {
		command, from = command[2:], 2
	}
	if programName(command[0]) != "npx" {
		return nil, 0
	}
	return command[1:], from + 1
}

// npmPackage is the index of the package in the arguments of npx, -1 if there is
// none. yes reports whether npx was told not to ask before it.
func npmPackage(args []string) (index int, yes bool) {
	named := -1
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-y" || a == "--yes":
			yes = true
		case (a == "-p" || a == "--package") && i+1 < len(args):
			i++
			if named < 0 {
				named = i
			}
		case a == "-c" || a == "--call":
			return named, yes
		case a == "--":
		case strings.HasPrefix(a, "-"):
		default:
			if named >= 0 {
				return named, yes
			}
			return i, yes
		}
	}
	return named, yes
}

// npxAsks: without -y npx asks whether it may install the package, and nobody
// answers.
func npxAsks(s *clientconfig.Server, command []string) (Finding, bool) {
	args, from := runner(command)
	if args == nil {
		return Finding{}, false
	}
	i, yes := npmPackage(args)
	if i < 0 || yes || slices.Contains(args, "--no-install") || slices.Contains(args, "--no") {
		return Finding{}, false
	}
	f := resolving(kindNpxWithoutYes, Warning, s, argument(s, from+i))
	f.pieces.Command, f.pieces.Package = command[0], args[i]
	f.Explanation = "Without -y npx asks before it installs the package for the first time, and nobody can answer."
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
func upperCasePackage(s *clientconfig.Server, command []string) (Finding, bool) {
	args, from := runner(command)
	i, _ := npmPackage(args)
	if i < 0 {
		return Finding{}, false
	}
	name := args[i]
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	if strings.ToLower(name) == name || strings.ContainsAny(name, `:\`) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") ||
		strings.Contains(name, "/") && !strings.HasPrefix(name, "@") {
		return Finding{}, false // a folder, a URL or a repository may have any name
	}
	f := resolving(string(fault.PackageNotFound), Broken, s, argument(s, from+i))
	f.pieces.Command, f.pieces.Package = command[0], args[i]
	f.Evidence = []string{args[i] + " has capital letters"}
	f.Explanation = fmt.Sprintf("The npm registry takes no capital letters in names, so there is no %q.", name)
	return f, true
}

// docker looks at the options of "docker run": a server is spoken to over its
// standard input, so it has to have one and stay in the foreground.
func docker(s *clientconfig.Server, command []string) []Finding {
	name := programName(command[0])
	if name != "docker" && name != "podman" {
		return nil
	}
	run := slices.Index(command, "run")
	if run < 0 {
		return nil
	}
	detached, interactive, value := -1, false, false
	for i := run + 1; i < len(command); i++ {
		a := command[i]
		if value {
			value = false
			continue
		}
		if !strings.HasPrefix(a, "-") {
			break // the image; what follows is the server's
		}
		long, is, hasValue := strings.Cut(a, "=")
		switch {
		case long == "--detach" && is != "false":
			detached = i
		case long == "--interactive" && is != "false":
			interactive = true
		case strings.HasPrefix(a, "--"):
			value = !hasValue && !slices.Contains(dockerSwitches, a)
		default:
			for j, c := range a[1:] {
				switch c {
				case 'd':
					detached = i
				case 'i':
					interactive = true
				case 't', 'P', 'q':
				default: // one that takes a value, in the rest of the word or in the next
					value = j+2 == len(a)
				}
				if !strings.ContainsRune("ditPq", c) {
					break
				}
			}
		}
	}
	var found []Finding
	if detached >= 0 {
		f := resolving(kindDockerDetached, Broken, s, argument(s, detached))
		f.pieces.Command = command[0]
		f.Evidence = []string{command[detached]}
		f.Explanation = name + " is told to run the server in the background, where nobody can speak to it."
		found = append(found, f)
	}
	if !interactive {
		f := resolving(kindDockerNotInteractive, Broken, s, argument(s, run))
		f.pieces.Command = command[0]
		f.Evidence = []string{"no -i after run"}
		f.Explanation = fmt.Sprintf("Without -i %s gives the server no standard input, so it never hears a word.", name)
		found = append(found, f)
	}
	return found
}
