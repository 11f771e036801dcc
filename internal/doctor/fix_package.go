package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

type value = clientconfig.Value

// runner is the package runner of an entry: "npx", "uvx", or "". It is the same
// one behind cmd /c and in its longer spelling.
func (t *treatment) runner() string {
	name, _ := t.runnerAt()
	return name
}

// runnerAt returns the runner and where in the command line its own arguments
// begin.
func (t *treatment) runnerAt() (string, int) {
	if t.server == nil || t.server.Command.Path == nil {
		return "", 0
	}
	words := argvOf(t.server)
	i := 0
	if t.base(words[0]) == "cmd" && len(words) > 2 && strings.EqualFold(words[1], "/c") {
		i = 2
	}
	switch name := t.base(words[i]); {
	case name == "npx" || name == "uvx":
		return name, i + 1
	case name == "uv" && len(words) > i+2 && words[i+1] == "tool" && words[i+2] == "run":
		return "uvx", i + 3
	case name == "uv" && len(words) > i+1 && words[i+1] == "run":
		return "uv run", i + 2
	}
	return "", 0
}

// withRunnerArgs puts arguments before those that the runner has.
func (t *treatment) withRunnerArgs(args ...string) Edit {
	_, at := t.runnerAt()
	return t.setLine(slices.Insert(argvOf(t.server), at, args...)...)
}

func npxWithoutYes(_ context.Context, t *treatment) []Fix {
	if t.runner() != "npx" {
		return nil
	}
	return t.fix("npx_yes", Auto, "add -y, so that npx does not wait for an answer that nobody can give", t.withRunnerArgs("-y"))
}

// packageNotFound lowers the case of an npm name, since npm has no others. No other
// name is ever tried: one that looks like it may belong to somebody else.
func packageNotFound(_ context.Context, t *treatment) []Fix {
	name := t.f.pieces.Package
	run := ""
	if t.runner() == "npx" && name != "" {
		run = "npm view " + t.quote(name) + " name version"
	}
	if name == "" && t.runner() == "npx" {
		// What npx said may name nothing; it was asked for one package.
		args, _ := runner(argvOf(t.server))
		if i, _ := npmPackage(args); i >= 0 {
			name = args[i] + " at " + t.where()
		}
	}
	byHand := never("by_hand", run, "correct the name of the package %s with the server's own documentation; a similar name may be somebody else's", orElse(name, "at "+t.where()))
	if t.runner() != "npx" {
		return []Fix{byHand}
	}
	for _, a := range t.server.Args {
		if !npmName().MatchString(a.Text) {
			continue
		}
		bare, version := a.Text, ""
		if i := strings.LastIndex(a.Text, "@"); i > 0 {
			bare, version = a.Text[:i], a.Text[i:]
		}
		if lower := strings.ToLower(bare); lower != bare {
			return or(t.fix("lower_case_package", Ask, fmt.Sprintf("write %s for %s: names in npm have no capitals", lower, bare), t.setValue(a, lower+version)), byHand)
		}
		break // what follows are arguments of the server
	}
	return []Fix{byHand}
}

var npmName = pattern(`^(@[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*(@[\w.^~<>=*-]+)?$`)

// cacheCorrupt removes one folder that npx makes again. It has to be what it is
// said to be, and nobody may be at work in it.
func cacheCorrupt(_ context.Context, t *treatment) []Fix {
	folder := fault.RemedyIn(t.evidence()).NpxFolder
	if folder == "" || t.runner() != "npx" {
		return []Fix{never("by_hand", "", "remove what the broken installation left behind and start again")}
	}
	byHand := never("by_hand", "rm -r "+t.quote(folder), "remove %s, which npx makes again", folder)
	if t.os == "windows" {
		byHand.Run = "rmdir /s " + t.quote(folder)
	}
	if !t.isOurs(folder) || t.usedBy == nil {
		return []Fix{byHand}
	}
	used, known := t.usedBy(folder)
	if used {
		byHand.Does += "; a running process works in it, so end that first"
		return []Fix{byHand}
	}
	class := Auto
	if !known {
		class = Ask
	}
	clean := func(context.Context) error { return removeNpxFolder(t.home, folder) }
	return []Fix{{Name: "clear_npx_folder", Class: class, Does: fmt.Sprintf("remove %s, which npx makes again", folder), clean: clean}, byHand}
}

// isOurs reports whether a folder lies below the user's home: the text that names
// it is the server's.
func (t *treatment) isOurs(folder string) bool {
	return t.home != "" && isBelow(t.home, folder)
}

func isBelow(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// removeNpxFolder removes a folder ".../_npx/<hash>" that is a real one, and really
// below home: a link on the way to it could lead anywhere.
func removeNpxFolder(home, folder string) error {
	hash := filepath.Base(folder)
	parent, err := filepath.EvalSymlinks(filepath.Dir(folder))
	if err != nil {
		return err
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return err
	}
	if filepath.Base(parent) != "_npx" || !npxHash().MatchString(hash) || !isBelow(home, parent) {
		return fmt.Errorf("%s is no folder of npx", folder)
	}
	// Root keeps links from leading the removal elsewhere.
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(hash); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no folder", folder)
	}
	return root.RemoveAll(hash)
}

var npxHash = pattern(`^[0-9a-f]{8,64}$`)

func deprecated(_ context.Context, t *treatment) []Fix {
	said := ""
	if len(t.f.Evidence) > 0 {
		said = ": " + t.f.Evidence[0]
	}
	return []Fix{never("by_hand", "", "decide whether to go on with a server that is no longer maintained%s", said)}
}

// dependencyBreak: version 2 of the Python SDK took a module away that many servers
// import and did not pin.
func dependencyBreak(_ context.Context, t *treatment) []Fix {
	byHand := never("by_hand", "", "pin an earlier version of the server or of %s, or wait for its makers", orElse(t.f.pieces.Package, "what it depends on"))
	if name := t.runner(); name != "uvx" && name != "uv run" || !fault.RemedyIn(t.evidence()).FastMCP {
		return []Fix{byHand}
	}
	pinned := func(word string) bool { return strings.HasPrefix(word, "mcp<") || strings.HasPrefix(word, "mcp==") }
	if slices.ContainsFunc(argvOf(t.server), pinned) {
		return []Fix{byHand}
	}
	does := `add --with "mcp<2": the server needs the first version of the Python SDK`
	return or(t.fix("pin_mcp", Auto, does, t.withRunnerArgs("--with", "mcp<2")), byHand)
}

func missingDependency(_ context.Context, t *treatment) []Fix {
	return []Fix{never("install_program", "", "install %s for the interpreter that runs the server, as its documentation says", orElse(t.f.pieces.Package, "what is missing"))}
}

// runtimeVersion puts a newer runtime first, where there is one.
func runtimeVersion(ctx context.Context, t *treatment) []Fix {
	if t.server == nil {
		return []Fix{t.install("node")}
	}
	runner := t.runner()
	if python := fault.RemedyIn(t.evidence()).Python; python != "" && (runner == "uvx" || runner == "uv run") && !slices.Contains(argvOf(t.server), "--python") {
		return t.fix("python_version", Auto, fmt.Sprintf("add --python %q, which the server's package asks for", python), t.withRunnerArgs("--python", python))
	}
	if version := fault.RemedyIn(t.evidence()).DotNet; version != "" {
		return []Fix{never("install_program", "", "install .NET %s: https://dotnet.microsoft.com/download", version)}
	}
	runtime := "node"
	if strings.HasPrefix(t.base(t.server.Command.Text), "python") || strings.HasPrefix(runner, "uv") {
		runtime = "python3"
	}
	var fixes []Fix
	found := t.find(ctx, runtime)
	// The one that was installed with the program is the likeliest to fit.
	if beside := t.folder(t.server.Command.Text) + "/" + runtime; strings.ContainsAny(t.server.Command.Text, `/\`) && t.fileExists(beside) {
		found = slices.DeleteFunc(found, func(p program) bool { return p.path == beside })
		found = append([]program{{path: beside}}, found...)
	}
	// The one that it runs on already is not a newer one.
	running := t.inPath(runtime)
	found = slices.DeleteFunc(found, func(p program) bool { return p.path == running })
	for _, p := range found[:min(len(found), maxPrograms)] {
		fixes = append(fixes, t.newerRuntime(p, runtime)...)
	}
	byHand := t.install(runtime)
	byHand.Does = "install a newer version of what runs the server: " + strings.TrimPrefix(byHand.Does, "install ")
	return or(fixes, byHand)
}

// inPath is the program that the server finds by this name, "" if that is not known.
func (t *treatment) inPath(name string) string {
	_, path := t.pathVariable()
	for _, folder := range strings.Split(orElse(path, t.path), t.listSeparator()) {
		if file := folder + "/" + name; folder != "" && t.fileExists(file) {
			return file
		}
	}
	return ""
}

// newerRuntime runs the same program with another runtime. A program that comes
// with the runtime, such as npx, is taken from the same folder.
func (t *treatment) newerRuntime(p program, runtime string) []Fix {
	if t.client.Entry.Env == "" {
		return nil
	}
	folder := t.folder(p.path)
	edits := []Edit{t.pathFirst(folder)}
	command := t.server.Command.Text
	if strings.ContainsAny(command, `/\`) {
		beside := folder + "/" + t.base(command)
		switch {
		case t.base(command) == runtime:
			edits = append(edits, t.setLine(append([]string{p.path}, argvOf(t.server)[1:]...)...))
		case t.base(command) == "npx" && t.fileExists(beside):
			edits = append(edits, t.setLine(append([]string{beside}, argvOf(t.server)[1:]...)...))
		}
	}
	does := fmt.Sprintf("put %s first in the server's PATH, where %s is %s", folder, runtime, orElse(p.version, "another one"))
	return t.fix("path_order", Auto, does, edits...)
}

func encoding(_ context.Context, t *treatment) []Fix {
	byHand := never("by_hand", "", "set PYTHONUTF8=1 for the server")
	if t.server == nil || t.client.Entry.Env == "" {
		return []Fix{byHand}
	}
	if _, set := envOf(t.server, "PYTHONUTF8"); set {
		return []Fix{t.reportIt("report it to the makers of the server: it writes text in the wrong character set")}
	}
	return or(t.fix("python_utf8", Auto, "set PYTHONUTF8=1, so that Python writes UTF-8", t.setEnv("PYTHONUTF8", "", "1")), byHand)
}
