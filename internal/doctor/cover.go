package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// A cover is the files that can be code in an entry of a project: whoever can change
// one of them can change what is run.
//
// How each program reads its arguments cannot be known. So every text of an entry (the
// command line, the values of variables, the files of variables) is taken apart into
// whatever could be a path, also inside a line for a shell, and what leads to a file is
// covered unless it is known to be data. An interpreter, a shell or a tool that builds
// takes more than what is named: then it is the whole project.
type cover struct {
	at    site     // where the entry is started, with its variables
	roots []string // the folders of the project
	home  string
	sums  *fileSums
	look  *oneLook
	// skipped are files of clients, whose entries have approvals of their own, and our
	// own folder.
	skipped map[string]bool
	// unopened are files of variables outside of the project: named, and not looked into
	// before somebody has agreed.
	unopened map[string]bool

	// runsFiles: something in the command takes code out of files or folders. fetches: a
	// package from a registry is run, and nothing else.
	runsFiles, fetches bool

	named     map[string]string // file → how the entry calls it
	mentioned map[string]string // the same for files that only a named one mentions
	written   map[string]bool   // named files that the server may write, by where they are named
	queue     []string          // named files that have not been looked into
	folders   []coveredFolder
	whole     bool
	walked    []walkedFile
	bytes     int64
	followed  int
	unbounded string
	envFiles  []envFile
}

// The bounds of what is covered. Named files have their own, since a program may be
// large.
const (
	mostFiles      = 2000
	mostBytes      = 20 << 20
	mostNamed      = 500
	mostNamedBytes = 64 << 20
	mostEntries    = 20_000 // folders and what is left out, too
	mostFollowed   = 20_000 // what could be a path
	mostGroups     = 100
)

// A oneLook remembers for the time of one look what is in the folders and where paths
// lead to: a project may have thousands of entries. What it says is enough to hold an
// entry back, and not to start one. It may be nil, which remembers nothing.
type oneLook struct {
	mutex   sync.Mutex
	folders map[coveredFolder]*folderContent
	paths   map[string]fs.FileInfo // nil where there is nothing
}

// stat looks where a path leads to; nil if nowhere.
func (o *oneLook) stat(path string) fs.FileInfo {
	if o == nil {
		info, err := os.Stat(path)
		if err != nil {
			return nil
		}
		return info
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	info, known := o.paths[path]
	if !known {
		info, _ = os.Stat(path)
		if o.paths == nil || len(o.paths) > 10*mostFollowed {
			o.paths = make(map[string]fs.FileInfo)
		}
		o.paths[path] = info
	}
	return info
}

// content goes through a folder, or remembers what was in it.
func (o *oneLook) content(f coveredFolder, read func() *folderContent) *folderContent {
	if o == nil {
		return read()
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	content := o.folders[f]
	if content == nil {
		if o.folders == nil {
			o.folders = make(map[coveredFolder]*folderContent)
		}
		content = read()
		o.folders[f] = content
	}
	return content
}

// folderContent is what is in a folder that is covered.
type folderContent struct {
	files     []folderFile
	links     []string        // folders elsewhere
	left      map[string]bool // names of files that are left out
	entries   int
	bytes     int64
	unbounded string

	mutex sync.Mutex
	leave map[string][]lead // see leaving
}

type folderFile struct {
	path string
	sum  fileSum
	made bool
}

// leaving are the paths in the files of a folder that lead out of the project, or to
// what is left out of it, and to something that is there.
func (content *folderContent) leaving(c *cover) []lead {
	content.mutex.Lock()
	defer content.mutex.Unlock()
	key := strings.Join(append([]string{c.at.dir}, c.roots...), "\x00")
	found, known := content.leave[key]
	if known {
		return found
	}
	for _, file := range content.files {
		if isDocument(file.path) {
			continue
		}
		for _, name := range file.sum.leads {
			left := content.left[path.Base(name)]
			if !left && !strings.Contains(name, "..") && !c.at.os.IsAbs(name) && !strings.Contains(name, "node_modules/") {
				continue
			}
			for _, l := range mentions(file.path, name, c.at.dir) {
				if file, info := c.find(l); info != nil && (!c.inside(file) || c.leftOut(file)) {
					found = append(found, l)
				}
			}
		}
	}
	if content.leave == nil {
		content.leave = make(map[string][]lead)
	}
	content.leave[key] = found
	return found
}

type coveredFolder struct {
	dir, name string
	flat      bool // without the folders in it
}

type walkedFile struct {
	group, path, hash string
	inside, made      bool
}

// cover finds what an approval of an entry with a command has to cover.
func (d *Doctor) cover(s *clientconfig.Server, f *clientconfig.File, look *oneLook) *cover {
	x, as := d.expansion(s, f)
	x.sealed = true
	dir := d.folder(as, s, x)
	c := &cover{
		look: look, home: filepath.Clean(d.home()), named: make(map[string]string), mentioned: make(map[string]string), written: make(map[string]bool),
		skipped: d.clientFiles(s), unopened: make(map[string]bool), roots: d.projectRoots(s, dir),
	}
	if c.sums = new(fileSums); d.Approvals != nil {
		c.sums = &d.Approvals.sums
	}
	argv := []string{x.expand("command", "", s.Command)}
	for _, a := range s.Args {
		argv = append(argv, x.expand("args", "", a))
	}
	var env [][2]string
	for _, p := range s.Env {
		env = append(env, [2]string{p.Name.Text, x.expand("env", p.Name.Text, p.Value)})
	}
	given := d.environment(as)
	if s.EnvFile.Text != "" {
		for _, pair := range c.readEnvFile(s.EnvFile.Text, x.envFilePath()) {
			given.set(pair[0], pair[1])
			env = append(env, pair)
		}
	}
	c.at = site{environ: *x.variables(given), dir: dir}
	for _, name := range envFileOptions(argv) {
		env = append(env, c.readEnvFile(name, c.at.absolute(name))...)
	}
	c.commandLine(argv)
	for _, pair := range env {
		c.variable(pair[0], pair[1], argv)
	}
	c.settle()
	return c
}

// projectRoots are the folders that count as the project of an entry, none of them in
// another.
func (d *Doctor) projectRoots(s *clientconfig.Server, dir string) []string {
	var roots []string
	for _, root := range []string{projectOf(s.File), d.System.Project, dir} {
		if root == "" || filepath.Dir(root) == root { // the root of a file system is no project
			continue
		}
		root = filepath.Clean(root)
		if !slices.ContainsFunc(roots, func(r string) bool { return r == root || isBelow(r, root) }) {
			roots = append(slices.DeleteFunc(roots, func(r string) bool { return isBelow(root, r) }), root)
		}
	}
	return roots
}

// projectOf is the folder that a file of a project belongs to: the one around it, or
// around the folder that a client has for its settings. "" for no file.
func projectOf(file string) string {
	if file == "" {
		return ""
	}
	dir := filepath.Dir(file)
	if strings.HasPrefix(filepath.Base(dir), ".") {
		dir = filepath.Dir(dir)
	}
	return dir
}

// clientFiles are the project's files for clients, by which no approval is broken: an
// entry has its own, and healing or wrapping one must not end those of the others.
func (d *Doctor) clientFiles(s *clientconfig.Server) map[string]bool {
	files := map[string]bool{s.File: true}
	for _, c := range clientconfig.Clients() {
		for _, p := range slices.Concat(c.Files, c.Ignored) {
			if path := d.System.Path(p); path != "" && p.Scope != "user" {
				files[path] = true
			}
		}
	}
	if d.Approvals != nil {
		files[filepath.Dir(d.Approvals.File)] = true
	}
	return files
}

// commandLine takes a command line apart.
func (c *cover) commandLine(argv []string) {
	var flat []string
	for _, w := range argv {
		flat = append(flat, shellWords(w)...)
	}
	for i, w := range flat {
		name := programName(w)
		rest := launchOf(flat[i:])
		_, docker := dockerRun(flat[i:])
		switch {
		case runsFiles(name):
			c.runsFiles = true
		case rest.registry != "" && (c.isLocal(rest.id) || rest.told("-c", "--call", "--with-editable", "--directory", "--project", "--prefix")):
			c.runsFiles = true
		case docker:
			c.fetches = true
			c.runsFiles = c.runsFiles || c.mounts(flat[i:])
		case rest.registry != "":
			c.fetches = true
		case fetches(name), name == "docker", name == "podman": // npm start, docker compose
			c.runsFiles = true
		}
	}
	c.fetches = c.fetches && !c.runsFiles
	c.whole = c.runsFiles
	code := false // an interpreter or an option stands before that is followed by code
	for i, w := range argv {
		c.text(w, lead{dir: c.at.dir, program: i == 0, code: code})
		code = slices.Contains(codeOptions, w) || runsFiles(programName(w))
	}
	for _, w := range flat[:min(len(flat), mostNamed)] {
		c.program(w, false)
	}
}

// codeOptions are followed by a folder from which code is taken.
var codeOptions = []string{
	"-C", "-I", "-L", "-d", "-f", "--directory", "--project", "--prefix", "--cwd", "--dir", "--workdir", "--file", "--makefile",
	"-cp", "-classpath", "--class-path", "-p", "--module-path", "--package-path", "--manifest-path", "--with-editable", "--from", "--with",
}

// isLocal: a package that is not fetched but stands in a folder.
func (c *cover) isLocal(id string) bool {
	id = strings.TrimPrefix(id, "file:")
	if strings.HasPrefix(id, ".") || c.at.os.IsAbs(id) {
		return true
	}
	_, err := os.Stat(c.at.absolute(id))
	return err == nil && !strings.HasPrefix(id, "@")
}

// mounts: a container sees the project's files.
func (c *cover) mounts(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.ContainsFunc(slices.Collect(candidates(w, c.at)), func(t string) bool {
			path := filepath.Clean(c.at.absolute(t))
			info, err := os.Stat(path)
			return err == nil && info.IsDir() && (c.inside(path) || slices.ContainsFunc(c.roots, func(r string) bool { return isBelow(path, r) }))
		})
	})
}

// variable takes the value of a variable apart.
func (c *cover) variable(name, value string, argv []string) {
	steers := steering().MatchString(name)
	if strings.EqualFold(name, "PATH") {
		for _, folder := range c.at.os.Folders(value) {
			path := filepath.Clean(c.at.absolute(folder))
			switch {
			case c.inside(path):
				c.whole = true
			case !c.at.os.IsAbs(folder):
				c.folder(path, lead{name: folder, code: true})
			}
		}
		for _, w := range argv {
			for _, t := range shellWords(w) {
				c.program(t, true)
			}
		}
		return
	}
	for _, t := range shellWords(value) {
		if runsFiles(programName(t)) {
			c.whole = true
		}
	}
	c.text(value, lead{dir: c.at.dir, code: steers, value: !steers})
}

// program looks for a word in the PATH. One that lies in the project is the project's,
// whoever has put its folder there; of those elsewhere, the ones count that the PATH of
// the entry leads to.
func (c *cover) program(word string, ofEntry bool) {
	if c.at.isPath(word) || word == "" {
		return
	}
	file, err := c.at.search().Find(word)
	if err != nil {
		return
	}
	if file = filepath.Clean(file); c.inside(file) || ofEntry {
		c.file(file, lead{name: word, program: true, abs: true})
	}
}

// A lead is something that may be the path of code, and where it was found.
type lead struct {
	name string // as it was written
	dir  string // what it is relative to
	// program: it is the command. code: it stands where code is expected, or in a
	// variable that makes programs run other code. mention: it was found in a file.
	// value: it is that of a variable that need not lead to code.
	program, code, mention, value bool
	abs                           bool // it does not depend on a folder
}

// text follows everything in a text that could be a path.
func (c *cover) text(text string, l lead) {
	for t := range candidates(text, c.at) {
		l.name = t
		c.follow(l)
	}
}

// follow looks whether there is a file or folder.
func (c *cover) follow(l lead) {
	if c.followed++; c.followed > mostFollowed {
		c.tooMany("names more than can be looked at")
		return
	}
	l.abs = c.at.os.IsAbs(l.name)
	path, info := c.find(l)
	switch {
	case info == nil || filepath.Dir(path) == path:
	case info.IsDir():
		c.folder(path, l)
	case info.Mode().IsRegular():
		c.file(path, l)
	}
}

// find is where a lead leads to; nil if there is nothing.
func (c *cover) find(l lead) (string, fs.FileInfo) {
	path := filepath.FromSlash(l.name)
	if !c.at.os.IsAbs(l.name) {
		path = filepath.Join(l.dir, path)
	}
	path = filepath.Clean(path)
	info := c.look.stat(path)
	if info != nil || c.inside(path) {
		return path, info
	}
	for _, ending := range leftOut {
		if info = c.look.stat(path + ending); info != nil {
			return path + ending, info
		}
	}
	return path, nil
}

// leftOut are endings that an interpreter adds by itself.
var leftOut = []string{".js", ".cjs", ".mjs", ".ts", ".json", ".node", ".py", ".rb", ".pm", ".lua", ".php"}

// file notes a file that is named.
func (c *cover) file(path string, l lead) {
	if c.unopened[path] || c.named[path] != "" {
		c.written[path] = c.written[path] && l.value
		return
	}
	inside := c.inside(path)
	switch {
	case !inside && isInstalled(path):
		return
	case inside && l.mention && !c.leftOut(path):
		c.mentioned[path] = l.name
		return
	case inside && c.isData(path, l):
		return
	case !inside && l.program && l.abs && isBinary(path): // an installed program is the user's
		return
	case !inside && l.mention && !l.abs && c.besides(path, l):
		return
	}
	if len(c.named) >= mostNamed {
		c.tooMany(fmt.Sprintf("names more than %d files", mostNamed))
		return
	}
	c.named[path], c.written[path] = l.name, l.value
	c.queue = append(c.queue, path)
	switch {
	case inside && !c.fetches:
		c.whole = true
	case !inside && !l.abs: // what lies beside it can be imported
		c.folder(filepath.Dir(path), lead{name: filepath.ToSlash(filepath.Dir(l.name)), code: true, mention: l.mention})
	}
}

// besides covers the folder of a file that is mentioned, since what lies beside it can be
// imported, and reports whether the file is covered by that.
func (c *cover) besides(path string, l lead) bool {
	dir := filepath.Dir(path)
	c.folder(dir, lead{name: filepath.ToSlash(filepath.Dir(l.name)), code: true, mention: true})
	return slices.ContainsFunc(c.folders, func(f coveredFolder) bool { return f.dir == dir || !f.flat && isBelow(f.dir, dir) })
}

// folder notes a folder from which code may be taken.
func (c *cover) folder(dir string, l lead) {
	above := slices.ContainsFunc(c.roots, func(r string) bool { return isBelow(dir, r) })
	switch {
	case c.inside(dir):
		c.whole = c.whole || l.code && !l.mention
		return
	case isInstalled(dir), dir == c.home, isBelow(dir, c.home):
		return
	case !l.code && !(c.runsFiles && !l.abs): // data, as far as can be told
		return
	case l.mention && (l.abs || above && !c.isParent(dir)): // a path that is only passed by
		return
	}
	if !slices.ContainsFunc(c.folders, func(f coveredFolder) bool { return f.dir == dir || !f.flat && isBelow(f.dir, dir) }) {
		c.folders = append(c.folders, coveredFolder{dir, strings.TrimSuffix(l.name, "/") + "/", above})
	}
}

// isParent: the folder around the project, if that is a place for one user's files.
func (c *cover) isParent(dir string) bool {
	info := c.look.stat(dir)
	return info != nil && info.Mode().Perm()&0o002 == 0 && slices.ContainsFunc(c.roots, func(r string) bool { return filepath.Dir(r) == dir })
}

func (c *cover) inside(path string) bool {
	return slices.ContainsFunc(c.roots, func(r string) bool { return path == r || isBelow(r, path) })
}

// leftOut: a file of the project that is not covered unless something names it.
func (c *cover) leftOut(path string) bool { return c.skipped[path] || isInstalledPackage(path) }

func (c *cover) tooMany(why string) {
	if c.unbounded == "" {
		c.unbounded = why
	}
}

// settle follows what the named files mention, and goes through the folders, until
// nothing new is found.
func (c *cover) settle() {
	if !c.whole {
		c.settings()
	}
	roots := 0
	for i := 0; c.unbounded == ""; {
		switch {
		case len(c.queue) > 0:
			path := c.queue[0]
			c.queue = c.queue[1:]
			sum := c.sums.of(path)
			if sum.many {
				c.tooMany("mentions more than can be looked at")
			}
			for _, name := range sum.leads {
				for _, l := range mentions(path, name, c.at.dir) {
					c.follow(l)
				}
			}
		case c.whole && roots < len(c.roots):
			c.addFolder(coveredFolder{dir: c.roots[roots]})
			roots++
		case i < len(c.folders):
			c.addFolder(c.folders[i])
			i++
		case !c.whole && len(c.mentioned) > 0:
			for path, name := range c.mentioned {
				delete(c.mentioned, path)
				if c.named[path] == "" && len(c.named) < mostNamed {
					c.named[path] = name
					c.queue = append(c.queue, path)
				}
			}
		default:
			return
		}
	}
}

// mentions are the ways to read a path that stands in a file of an entry started in dir.
func mentions(file, name, dir string) []lead {
	l := lead{name: name, dir: filepath.Dir(file), mention: true, code: true}
	if l.dir == dir || filepath.IsAbs(name) {
		return []lead{l}
	}
	other := l
	other.dir = dir
	return []lead{l, other}
}

// settingsNames are files of a folder that tell package runners and build tools what
// to fetch, and from whom.
var settingsNames = strings.Fields(`.npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml
	pnpm-workspace.yaml bun.lock bun.lockb bunfig.toml deno.json deno.jsonc deno.lock node_modules/.package-lock.json
	pyproject.toml uv.toml uv.lock poetry.lock poetry.toml Pipfile Pipfile.lock pdm.lock requirements.txt setup.py setup.cfg .python-version
	.tool-versions .mise.toml mise.toml .envrc Gemfile Gemfile.lock .bundle/config Cargo.toml Cargo.lock .cargo/config.toml go.mod go.sum go.work
	composer.json composer.lock global.json NuGet.config nuget.config .config/dotnet-tools.json`)

// settingsNamed are names that many tools have for a file in which they look for more.
var settingsNamed = pattern(`^(?:\..*rc(?:\..*)?|.*\.config\.[a-z]+|.*\.toml)$`)

func (c *cover) settings() {
	for _, dir := range append(slices.Clone(c.roots), c.at.dir) {
		names := slices.Clone(settingsNames)
		if entries, err := os.ReadDir(dir); err == nil {
			for _, e := range entries[:min(len(entries), mostFiles)] {
				if settingsNamed().MatchString(e.Name()) {
					names = append(names, e.Name())
				}
			}
		}
		for _, name := range names {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && c.named[path] == "" && !c.skipped[path] {
				c.named[path] = name
				c.queue = append(c.queue, path)
			}
		}
	}
}

// addFolder covers the files of a folder.
func (c *cover) addFolder(f coveredFolder) {
	content := c.look.content(f, func() *folderContent {
		content := new(folderContent)
		c.walk(content, f, f.dir)
		return content
	})
	if content.unbounded != "" {
		c.tooMany(content.unbounded)
		return
	}
	for _, link := range content.links {
		if !c.inside(link) {
			c.folder(link, lead{name: link, code: true})
		}
	}
	for _, file := range content.files {
		if c.named[file.path] == "" && !c.unopened[file.path] {
			c.add(f, file)
		}
	}
	for _, l := range content.leaving(c) {
		c.follow(l)
	}
}

// walk goes through a folder, as far as there is room.
func (c *cover) walk(into *folderContent, f coveredFolder, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		into.unbounded = "has a folder that cannot be read"
	}
	for _, e := range entries {
		if into.entries++; into.entries > mostEntries {
			into.unbounded = fmt.Sprintf("has more than %d files and folders", mostEntries)
		}
		path := filepath.Join(dir, e.Name())
		if c.skipped[path] {
			if into.left == nil {
				into.left = make(map[string]bool)
			}
			into.left[e.Name()] = true
		}
		if into.unbounded != "" || c.skipped[path] || slices.Contains(versionControl, e.Name()) {
			continue
		}
		info, err := os.Stat(path) // what a link leads to
		switch {
		case err != nil:
		case info.IsDir() && e.Type()&fs.ModeSymlink != 0:
			if real, err := filepath.EvalSymlinks(path); err == nil {
				into.links = append(into.links, real)
			}
		case info.IsDir():
			if locks, ok := installed(path); ok {
				for _, lock := range locks {
					if info, err := os.Stat(lock); err == nil {
						c.read(into, lock, info)
					}
				}
			} else if !f.flat {
				c.walk(into, f, path)
			}
		case info.Mode().IsRegular():
			c.read(into, path, info)
		}
	}
}

var versionControl = []string{".git", ".hg", ".svn"}

func (c *cover) read(into *folderContent, path string, info fs.FileInfo) {
	if into.bytes += info.Size(); len(into.files) >= mostFiles || into.bytes > mostBytes {
		into.unbounded = tooLarge
		return
	}
	file := folderFile{path, c.sums.of(path), isMade(path)}
	if file.sum.many && !isDocument(path) {
		into.unbounded = "mentions more than can be looked at"
	}
	into.files = append(into.files, file)
}

var tooLarge = fmt.Sprintf("has more than %d files or %d MB", mostFiles, mostBytes>>20)

// add covers one file of a folder.
func (c *cover) add(f coveredFolder, file folderFile) {
	if c.bytes += file.sum.size; len(c.walked) >= mostFiles || c.bytes > mostBytes {
		c.tooMany(tooLarge)
		return
	}
	w := walkedFile{path: file.path, hash: file.sum.hash, inside: c.inside(file.path), made: file.made}
	if w.group = f.name; w.group == "" {
		rel, _ := filepath.Rel(f.dir, file.path)
		first, _, deeper := strings.Cut(filepath.ToSlash(rel), "/")
		if w.group = first; deeper {
			w.group += "/"
		}
	}
	c.walked = append(c.walked, w)
}

// parts are what was found, each as a name and a hash of name and content: files
// outside of the project, those inside, and what a server makes while it runs.
func (c *cover) parts(h hasher) (outside, inside, made [][2]string) {
	left := int64(mostNamedBytes)
	for path, name := range c.named {
		sum := c.sums.of(path)
		if left -= sum.size; left < 0 {
			c.tooMany(fmt.Sprintf("names files of more than %d MB", mostNamedBytes>>20))
		}
		p := [2]string{name, h.sum([]string{path, sum.hash})}
		switch {
		case c.written[path]:
			made = append(made, p)
		case c.inside(path):
			inside = append(inside, p)
		default:
			outside = append(outside, p)
		}
	}
	if c.unbounded != "" {
		c.walked = nil // as many as there was room for
	}
	groups := make(map[walkedFile][]string) // by all but path and hash
	for _, w := range c.walked {
		kind := walkedFile{group: w.group, inside: w.inside, made: w.made}
		groups[kind] = append(groups[kind], w.path+"\x00"+w.hash)
	}
	for kind, files := range groups {
		slices.Sort(files)
		p := [2]string{kind.group, h.sum(files)}
		switch {
		case kind.made:
			made = append(made, p)
		case kind.inside:
			inside = append(inside, p)
		default:
			outside = append(outside, p)
		}
	}
	for _, list := range []*[][2]string{&outside, &inside, &made} {
		slices.SortFunc(*list, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
		if rest := *list; len(rest) > mostGroups {
			*list = append(rest[:mostGroups:mostGroups], [2]string{"other files", h.sum(rest[mostGroups:])})
		}
	}
	return outside, inside, made
}
