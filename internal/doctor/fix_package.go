package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// argv is the command line of the entry, nil if there is none that could be edited.
func (t *treatment) argv() []string {
	if t.server == nil || t.server.Command.Path == nil {
		return nil
	}
	return argvOf(t.server)
}

func (t *treatment) launch() launch { return launchOf(t.argv()) }

func npxWithoutYes(_ context.Context, t *treatment) []Fix {
	l := t.launch()
	if l.runner != "npx" {
		return nil
	}
	return t.fix("npx_yes", Auto, "add -y, so that npx does not wait for an answer that nobody can give", t.setLine(l.with("-y")...))
}

// packageNotFound lowers the case of an npm name, since npm has no others. No other
// name is ever tried: one that looks like it may belong to somebody else.
func packageNotFound(_ context.Context, t *treatment) []Fix {
	name := t.f.pieces.Package
	l := t.launch()
	run := ""
	if l.runner == "npx" && name != "" {
		run = t.typed("npm view", name, "name", "version")
	}
	if name == "" && l.runner == "npx" && l.id != "" {
		name = l.id + " at " + t.where() // what npx said may name nothing; it was asked for one package
	}
	byHand := never("by_hand", run, "correct the name of the package %s with the server's own documentation; a similar name may be somebody else's", cmp.Or(name, "at "+t.where()))
	written, version, ok := npmName(l.id)
	lower := strings.ToLower(written)
	if l.runner != "npx" || !ok || lower == written || l.at > len(t.server.Args) {
		return []Fix{byHand}
	}
	word := t.server.Args[l.at-1]
	corrected := strings.TrimSuffix(word.Text, l.id) + lower + version
	return or(t.fix("lower_case_package", Ask, fmt.Sprintf("write %s for %s: names in npm have no capitals", lower, written), t.setValue(word, corrected)), byHand)
}

// npmName takes the name of an npm package and its version apart. ok is false for a
// folder, a URL or a repository, which may be called anything.
func npmName(id string) (name, version string, ok bool) {
	m := npmPackage().FindStringSubmatch(id)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

var npmPackage = pattern(`^((?:@[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)(@[\w.^~<>=*-]+)?$`)

// cacheCorrupt removes one folder that npx makes again. It has to be what it is
// said to be, and nobody may be at work in it.
func cacheCorrupt(_ context.Context, t *treatment) []Fix {
	folder := fault.RemedyIn(t.evidence()).NpxFolder
	if folder == "" || t.launch().runner != "npx" {
		return []Fix{never("by_hand", "", "remove what the broken installation left behind and start again")}
	}
	byHand := never("by_hand", "rm -r "+t.quote(folder), "remove %s, which npx makes again", folder)
	if t.os.IsWindows() {
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
	byHand := never("by_hand", "", "pin an earlier version of the server or of %s, or wait for its makers", cmp.Or(t.f.pieces.Package, "what it depends on"))
	l := t.launch()
	if !l.isUV() || !fault.RemedyIn(t.evidence()).FastMCP {
		return []Fix{byHand}
	}
	pinned := func(word string) bool { return strings.HasPrefix(word, "mcp<") || strings.HasPrefix(word, "mcp==") }
	if slices.ContainsFunc(l.words, pinned) {
		return []Fix{byHand}
	}
	does := `add --with "mcp<2": the server needs the first version of the Python SDK`
	return or(t.fix("pin_mcp", Auto, does, t.setLine(l.with("--with", "mcp<2")...)), byHand)
}

func missingDependency(_ context.Context, t *treatment) []Fix {
	return []Fix{never("install_program", "", "install %s for the interpreter that runs the server, as its documentation says", cmp.Or(t.f.pieces.Package, "what is missing"))}
}

// runtimeVersion puts a newer runtime first, where there is one.
func runtimeVersion(ctx context.Context, t *treatment) []Fix {
	if t.server == nil {
		return []Fix{t.install("node")}
	}
	l := t.launch()
	if python := fault.RemedyIn(t.evidence()).Python; python != "" && l.isUV() && !l.told("--python", "-p") {
		return t.fix("python_version", Auto, fmt.Sprintf("add --python %q, which the server's package asks for", python), t.setLine(l.with("--python", python)...))
	}
	if version := fault.RemedyIn(t.evidence()).DotNet; version != "" {
		return []Fix{never("install_program", "", "install .NET %s: https://dotnet.microsoft.com/download", version)}
	}
	runtime := "node"
	if strings.HasPrefix(programName(t.server.Command.Text), "python") || l.isUV() {
		runtime = "python3"
	}
	var fixes []Fix
	found := t.find(ctx, runtime)
	// The one that was installed with the program is the likeliest to fit.
	if beside := t.os.Dir(t.server.Command.Text) + "/" + runtime; strings.ContainsAny(t.server.Command.Text, `/\`) && t.fileExists(beside) {
		found = slices.DeleteFunc(found, func(p machine.Found) bool { return p.Path == beside })
		found = append([]machine.Found{{Path: beside}}, found...)
	}
	// The one that it runs on already is not a newer one.
	running := t.inPath(runtime)
	found = slices.DeleteFunc(found, func(p machine.Found) bool { return p.Path == running })
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
	for _, folder := range t.os.Folders(cmp.Or(path, t.path)) {
		if file := t.os.Join(folder, name); t.fileExists(file) {
			return file
		}
	}
	return ""
}

// newerRuntime runs the same program with another runtime. A program that comes
// with the runtime, such as npx, is taken from the same folder.
func (t *treatment) newerRuntime(p machine.Found, runtime string) []Fix {
	if t.client.Entry.Env == "" {
		return nil
	}
	folder := t.os.Dir(p.Path)
	edits := []Edit{t.pathFirst(folder)}
	command := t.server.Command.Text
	if strings.ContainsAny(command, `/\`) {
		beside := folder + "/" + programName(command)
		switch {
		case programName(command) == runtime:
			edits = append(edits, t.setLine(append([]string{p.Path}, argvOf(t.server)[1:]...)...))
		case programName(command) == "npx" && t.fileExists(beside):
			edits = append(edits, t.setLine(append([]string{beside}, argvOf(t.server)[1:]...)...))
		}
	}
	does := fmt.Sprintf("put %s first in the server's PATH, where %s is %s", folder, runtime, cmp.Or(p.Version, "another one"))
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
