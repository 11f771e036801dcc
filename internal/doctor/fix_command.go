package doctor

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// maxPrograms is how many places of one program are tried: more than the attempts
// that healing makes would only be noise.
const maxPrograms = 3

func commandNotFound(ctx context.Context, t *treatment) []Fix {
	if t.server == nil {
		return []Fix{t.install(t.f.pieces.Command)}
	}
	command := t.server.Command.Text
	if strings.ContainsAny(command, `/\`) {
		if fixes := t.splitPath(); fixes != nil {
			return fixes
		}
		return []Fix{never("by_hand", "", "correct the path at %s: there is no %s", t.where(), command)}
	}
	var fixes []Fix
	found := t.find(ctx, command)
	for _, p := range found[:min(len(found), maxPrograms)] {
		fixes = append(fixes, t.firstInPath("absolute_path", p, argvOf(t.server)[1:])...)
	}
	return or(fixes, t.install(command))
}

// splitPath takes the arguments out of a command that begins with the path of a
// program. A path may hold spaces, so the file system has the last word.
func (t *treatment) splitPath() []Fix {
	words, _, ok := clientconfig.SplitWords(t.server.Command.Text)
	if !ok || len(words) < 2 || t.fileExists(t.server.Command.Text) || !t.fileExists(words[0]) {
		return nil
	}
	return t.splitLine(words)
}

// firstInPath runs a program by its absolute path, with its folder first in PATH.
// The path alone is not enough: npx asks PATH for node, and finds another one.
func (t *treatment) firstInPath(fix string, p machine.Found, args []string) []Fix {
	edits := []Edit{t.setLine(append([]string{p.Path}, args...)...)}
	does := "use " + p.Path
	if p.From != "" {
		does += " (" + p.From + ")"
	}
	if t.client.Entry.Env != "" {
		edits = append(edits, t.pathFirst(t.os.Dir(p.Path)))
		does += " and put its folder first in the server's PATH"
	}
	return t.fix(fix, Auto, does, edits...)
}

// pathFirst puts a folder before everything else in the PATH of the entry. What
// follows is what the entry says, a reference to the client's own PATH, or that
// PATH as it is.
func (t *treatment) pathFirst(folder string) Edit {
	name, was := t.pathVariable()
	rest := was
	if rest == "" {
		rest = t.reference("env", name)
	}
	if rest == "" {
		rest = t.path
	}
	if rest == "" {
		return t.setEnv(name, was, folder)
	}
	folders := slices.DeleteFunc(strings.Split(rest, t.os.ListSeparator()), func(f string) bool { return f == folder })
	return t.setEnv(name, was, strings.Join(append([]string{folder}, folders...), t.os.ListSeparator()))
}

// pathVariable is PATH as the entry spells it; Windows does not mind the case.
func (t *treatment) pathVariable() (name, value string) {
	for _, p := range t.server.Env {
		if p.Name.Text == "PATH" || t.os.IsWindows() && strings.EqualFold(p.Name.Text, "PATH") {
			return p.Name.Text, p.Value.Text
		}
	}
	return "PATH", ""
}

// installPages are where programs that start servers come from.
var installPages = map[string][2]string{
	"npx":     {"Node.js, which brings npx", "https://nodejs.org/en/download"},
	"npm":     {"Node.js, which brings npm", "https://nodejs.org/en/download"},
	"node":    {"Node.js", "https://nodejs.org/en/download"},
	"uvx":     {"uv, which brings uvx", "https://docs.astral.sh/uv/getting-started/installation/"},
	"uv":      {"uv", "https://docs.astral.sh/uv/getting-started/installation/"},
	"python":  {"Python", "https://www.python.org/downloads/"},
	"python3": {"Python", "https://www.python.org/downloads/"},
	"pipx":    {"pipx", "https://pipx.pypa.io/stable/installation/"},
	"docker":  {"Docker", "https://docs.docker.com/get-started/get-docker/"},
	"podman":  {"Podman", "https://podman.io/docs/installation"},
	"bun":     {"Bun", "https://bun.sh/docs/installation"},
	"bunx":    {"Bun, which brings bunx", "https://bun.sh/docs/installation"},
	"deno":    {"Deno", "https://docs.deno.com/runtime/getting_started/installation/"},
	"java":    {"Java", "https://adoptium.net/installation/"},
	"dotnet":  {".NET", "https://dotnet.microsoft.com/download"},
	"go":      {"Go", "https://go.dev/doc/install"},
	"cargo":   {"Rust", "https://www.rust-lang.org/tools/install"},
}

func (t *treatment) install(command string) Fix {
	if command == "" {
		return never("install_program", "", "install the program that the server needs")
	}
	if page, ok := installPages[programName(command)]; ok {
		if t.f.Help == "" {
			t.f.Help = page[1]
		}
		return never("install_program", "", "install %s: %s", page[0], page[1])
	}
	if t.file == nil {
		return never("install_program", "", "install %q, or give its absolute path", command)
	}
	return never("install_program", "", "install %q, or write its absolute path as %q at %s", command, t.client.Entry.Command, t.where())
}

// innerCommandNotFound is a program that the server, not the client, looks for.
func innerCommandNotFound(ctx context.Context, t *treatment) []Fix {
	inner := t.f.pieces.Command
	if unknown := t.f.pieces.Subcommand; unknown != "" { // another path to it would not help
		to := "the program"
		if inner != "" {
			to = strconv.Quote(inner)
		}
		return []Fix{never("install_program", "", "install what adds %q to %s, or correct the arguments at %s", unknown, to, t.where())}
	}
	if t.server != nil && (inner == "" || inner == t.server.Command.Text) {
		return commandNotFound(ctx, t)
	}
	if found := t.find(ctx, inner); t.server != nil && len(found) > 0 && t.client.Entry.Env != "" {
		does := fmt.Sprintf("put the folder of %s first in the server's PATH", found[0].Path)
		return or(t.fix("path_order", Auto, does, t.pathFirst(t.os.Dir(found[0].Path))), t.install(inner))
	}
	return []Fix{t.install(inner)}
}

func notExecutable(_ context.Context, t *treatment) []Fix {
	file := t.f.pieces.Path
	if file == "" && t.server != nil {
		file = t.server.Command.Text
	}
	run := ""
	if !t.os.IsWindows() {
		run = "chmod +x " + t.quote(file)
	}
	return []Fix{never("make_executable", run, "make %s executable, if you trust it", file)}
}

// scriptMissing offers another path only where exactly one file can be meant.
func scriptMissing(_ context.Context, t *treatment) []Fix {
	missing := t.f.pieces.Path
	byHand := never("by_hand", "", "correct the path at %s: there is no %s", t.where(), missing)
	if t.server == nil || t.siblings == nil || missing == "" {
		return []Fix{byHand}
	}
	if i := slices.IndexFunc(t.server.Args, func(a clientconfig.Value) bool {
		return strings.HasPrefix(a.Text, "~/") && strings.HasSuffix(missing, a.Text)
	}); i >= 0 && t.home != "" && t.fileExists(t.home+t.server.Args[i].Text[1:]) {
		meant := t.home + t.server.Args[i].Text[1:]
		return or(t.fix("script_path", Ask, fmt.Sprintf("write %s, since nobody replaces the ~", meant), t.setValue(t.server.Args[i], meant)), byHand)
	}
	near := t.nearFiles(missing)
	i := slices.IndexFunc(t.server.Args, func(a clientconfig.Value) bool { return a.Text == missing })
	if len(near) != 1 || i < 0 {
		return []Fix{byHand}
	}
	return or(t.fix("script_path", Ask, fmt.Sprintf("use %s, which is there", near[0]), t.setValue(t.server.Args[i], near[0])), byHand)
}

// dependsOnFolder: which folder was meant is known to the user alone.
func dependsOnFolder(_ context.Context, t *treatment) []Fix {
	does := fmt.Sprintf("write the absolute path at %s", t.where())
	if path := t.f.pieces.Path; t.fileExists(path) {
		does += fmt.Sprintf(", which is %s if you mean the one in this folder", path)
	}
	if t.client.Entry.Cwd != "" {
		does += fmt.Sprintf("; or name the folder under %q", t.client.Entry.Cwd)
	}
	return []Fix{never("by_hand", "", "%s", does)}
}

// nearFiles are files that a missing one may have become: the same name with
// another ending of the same language, or in a folder that builds go to.
func (t *treatment) nearFiles(missing string) []string {
	slashed := missing
	if t.os.IsWindows() {
		slashed = strings.ReplaceAll(missing, `\`, "/")
	}
	dir, name := path.Split(slashed)
	stem := strings.TrimSuffix(name, path.Ext(name))
	endings := []string{path.Ext(name)}
	if slices.Contains([]string{".js", ".mjs", ".cjs"}, path.Ext(name)) {
		endings = []string{".js", ".mjs", ".cjs"}
	}
	above := path.Dir(strings.TrimSuffix(dir, "/"))
	folders := []string{strings.TrimSuffix(dir, "/")}
	for _, build := range []string{"dist", "build", "lib", "out"} {
		folders = append(folders, path.Join(dir, build), path.Join(above, build))
	}
	var near []string
	for _, folder := range folders {
		for _, file := range t.siblings(folder) {
			ending := path.Ext(file)
			if strings.EqualFold(strings.TrimSuffix(file, ending), stem) && slices.Contains(endings, ending) && folder+"/"+file != slashed {
				near = append(near, folder+"/"+file)
			}
		}
	}
	slices.Sort(near)
	return slices.Compact(near)
}

func folderMissing(_ context.Context, t *treatment) []Fix {
	return []Fix{never("by_hand", "", "correct the working folder at %s: there is no %s", t.where(), t.f.pieces.Path)}
}

func windowsShim(_ context.Context, t *treatment) []Fix {
	if t.server == nil || programName(t.server.Command.Text) == "cmd" {
		return nil
	}
	words := append([]string{"cmd", "/c"}, argvOf(t.server)...)
	return t.fix("cmd_c", Auto, fmt.Sprintf("start %s through cmd /c", t.server.Command.Text), t.setLine(words...))
}

// commandQuoting removes quotes that are part of a word: JSON has its own. Where a
// path with spaces goes through cmd, the program can be started without it.
func commandQuoting(_ context.Context, t *treatment) []Fix {
	byHand := never("by_hand", "", "write the program as one text and each argument as another, without quotes inside, at %s", t.where())
	if t.server == nil || t.server.Command.Path == nil {
		return []Fix{byHand}
	}
	words := argvOf(t.server)
	bare := slices.Clone(words)
	for i, w := range words {
		for _, q := range []string{`"`, `'`} {
			if inner, ok := strings.CutPrefix(w, q); ok && strings.HasSuffix(inner, q) && strings.Count(w, q) == 2 {
				bare[i] = strings.TrimSuffix(inner, q)
			}
		}
	}
	if !slices.Equal(words, bare) {
		return or(t.fix("quoting", Auto, "remove the quotes that became part of the words", t.setLine(bare...)), byHand)
	}
	if at, _ := started(words); at > 0 && strings.Contains(words[at], " ") {
		return or(t.fix("quoting", Ask, "start the program without cmd, which cuts its path at the space", t.setLine(words[at:]...)), byHand)
	}
	return []Fix{byHand}
}

// permissionDenied: a cache can be put elsewhere, everything else is the user's.
func permissionDenied(ctx context.Context, t *treatment) []Fix {
	denied := t.f.pieces.Path
	if t.server != nil && denied != "" && denied == t.server.Command.Text {
		return notExecutable(ctx, t)
	}
	byHand := never("by_hand", "", "let your user read and write %s", cmp.Or(denied, "what the server was denied"))
	if t.os == "darwin" {
		byHand.Does += fmt.Sprintf("; for a folder such as Documents, allow %s under System Settings > Privacy & Security > Files and Folders", t.client.Name)
	}
	if t.server == nil || t.home == "" {
		return []Fix{byHand}
	}
	slashed := strings.ReplaceAll(denied, `\`, "/")
	for _, cache := range []struct{ part, program, variable, folder string }{
		{"/.npm", "npx", "npm_config_cache", ".cache/mcpmend/npm"},
		{"/npm-cache", "npx", "npm_config_cache", ".cache/mcpmend/npm"},
		{"/uv", "uvx", "UV_CACHE_DIR", ".cache/mcpmend/uv"},
	} {
		if _, set := envOf(t.server, cache.variable); set || !strings.Contains(slashed, cache.part) || t.launch().runner != cache.program {
			continue
		}
		folder := t.home + "/" + cache.folder
		does := fmt.Sprintf("set %s to %s, since %s cannot be written", cache.variable, folder, denied)
		return or(t.fix("cache_dir", Ask, does, t.setEnv(cache.variable, "", folder)), byHand)
	}
	return []Fix{byHand}
}
