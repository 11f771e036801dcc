package doctor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/internal/machine"
)

// What can be told of programs, texts and files by looking at them: whether they run
// code, name it, or are it.

// fileRunners are programs that run what is in files or in the folder they are started
// in: shells, interpreters, and tools that build.
var fileRunners = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range strings.Fields(`sh bash zsh dash fish ksh csh tcsh ash busybox cmd powershell pwsh nu xonsh
		node nodejs bun deno tsx ts-node nodemon electron esbuild vite-node zx python pythonw py pypy ipython ruby jruby irb perl php lua luajit java javaw
		jshell kotlin kotlinc scala groovy dotnet mono csi fsi rscript r julia elixir mix iex erl escript ghc runghc runhaskell stack cabal swift dart flutter
		tclsh wish expect guile racket sbcl clisp clojure clj lein bb ocaml dune nim v crystal zig awk gawk mawk osascript wscript cscript wasmtime wasmer node-gyp
		make gmake cmake ninja just task rake bundle bundler gem gradle gradlew mvn mvnw ant sbt cargo go composer artisan npm pnpm yarn lerna nx turbo
		poetry pdm hatch rye pipenv conda mamba micromamba pixi tox nox invoke fab meson bazel buck docker-compose nix nix-shell nix-build devbox mise direnv
		gcc clang tcc ansible-playbook terraform vim nvim emacs`) {
		all[name] = true
	}
	return all
}()

// runsFiles reports whether a program of that name does, whatever its version.
func runsFiles(name string) bool {
	return fileRunners[name] || fileRunners[strings.TrimRight(name, "0123456789.-")]
}

// shellWords are the words of a text as a shell might see them, without knowing which
// shell: it is cut wherever one could end.
func shellWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`;|&()<>{}", r) })
}

// writtenTo is where a shell writes to, which is not what it runs.
var writtenTo = pattern(`>>?\s*["']?[\w./${}~-]+`)

// candidates are what could be a path in a text, as seen from a site.
func candidates(text string, at site) iter.Seq[string] {
	cuts := "\"'`;|&()<>{}[],=#!?*"
	if !at.os.IsWindows() {
		cuts += `\:`
	}
	return func(yield func(string) bool) {
		seen := make(map[string]bool)
		try := func(t string) bool {
			if t == "" || len(t) > 4096 || strings.Contains(t, "://") || seen[t] || len(seen) > 10_000 {
				return true
			}
			seen[t] = true
			return yield(t)
		}
		text = writtenTo().ReplaceAllString(text, " ")
		texts := []string{text}
		if strings.Contains(text, "$") {
			texts = append(texts, os.Expand(text, func(name string) string {
				value, _ := at.lookup(name)
				if name == "PWD" {
					value = at.dir
				}
				return value
			}))
		}
		for _, text := range texts {
			if !try(text) {
				return
			}
			// What stands behind the "=" of an option may hold anything.
			if _, value, ok := strings.Cut(text, "="); ok && !try(value) {
				return
			}
			for _, t := range strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune(cuts, r) }) {
				if rest, ok := strings.CutPrefix(t, "~/"); ok {
					home, _ := at.lookup("HOME")
					t = filepath.Join(home, rest)
				}
				if !try(strings.TrimPrefix(t, "@")) {
					return
				}
				if len(t) < 3 || t[0] != '-' {
					continue
				}
				for i := 2; i < min(len(t), 5); i++ { // -Ilib, -sfbuild.mk
					if !try(t[i:]) {
						return
					}
				}
			}
		}
	}
}

// isInstalled: a place for programs that were installed for everybody on the machine.
func isInstalled(path string) bool {
	return slices.ContainsFunc(installedPlaces, func(dir string) bool { return path == dir || isBelow(dir, path) })
}

var installedPlaces = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/snap", "/etc", "/dev", "/proc", "/sys", "/run",
	"/System", "/Library", "/Applications", `C:\Windows`, `C:\Program Files`, `C:\Program Files (x86)`,
}

// installed are the files that say what is installed in a folder for packages, which is
// too much to be covered itself; not ok for any other folder, and for one without such a
// file.
func installed(dir string) (locks []string, ok bool) {
	find := func(dir string, patterns ...string) {
		for _, pattern := range patterns {
			found, _ := filepath.Glob(filepath.Join(escapeGlob(dir), filepath.FromSlash(pattern)))
			locks = append(locks, found...)
		}
	}
	switch filepath.Base(dir) {
	case "node_modules":
		find(dir, ".package-lock.json", ".yarn-integrity", ".yarn-state.yml", ".pnpm/lock.yaml")
		find(filepath.Dir(dir), "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")
	case "venv", ".venv", "env", ".env", "virtualenv", ".virtualenv":
		find(dir, "pyvenv.cfg")
		if locks == nil {
			return nil, false
		}
		for _, packages := range []string{"lib/python*/site-packages/", "Lib/site-packages/"} {
			find(dir, packages+"*.pth", packages+"*customize.py", packages+"*.dist-info/RECORD")
		}
	}
	return locks, locks != nil
}

// isInstalledPackage: a path leads into a folder that installed takes for one.
func isInstalledPackage(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/node_modules/") || strings.Contains(filepath.ToSlash(path), "/site-packages/")
}

// escapeGlob makes a path of a pattern stand for itself.
func escapeGlob(path string) string {
	if filepath.Separator != '/' {
		return path // nothing can be escaped there
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// dataEndings are those of files that servers write while they run.
var dataEndings = []string{
	".log", ".pid", ".db", ".sqlite", ".sqlite3", ".db-wal", ".db-shm", ".db-journal", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal",
	".sqlite3-wal", ".sqlite3-shm", ".sqlite3-journal", ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp",
}

func hasDataEnding(path string) bool {
	return slices.Contains(dataEndings, strings.ToLower(filepath.Ext(path)))
}

// isData: a named file of the project that is no code in this entry: its ending says so
// to a package that was fetched. An interpreter runs a file of any name, and so does the
// system if it may be executed.
func (c *cover) isData(path string, l lead) bool {
	info := c.look.stat(path)
	return c.fetches && !l.program && !l.code && hasDataEnding(path) && info != nil && info.Mode().Perm()&0o111 == 0
}

// isMade: a running server has made the file, as far as its name tells: data, or the
// byte code that Python keeps of a source. An approved server may make those without
// being asked about again; that somebody else has is asked about.
func isMade(path string) bool {
	return hasDataEnding(path) || filepath.Ext(path) == ".pyc" && isByteCodeOf(path)
}

// isByteCodeOf: Python would take the byte code for what it has made of the source
// beside it, since it has the source's time and size in it.
func isByteCodeOf(path string) bool {
	module, _, ok := strings.Cut(filepath.Base(path), ".")
	cache := filepath.Dir(path)
	if !ok || filepath.Base(cache) != "__pycache__" {
		return false
	}
	f, err := machine.OpenPlain(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [16]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return false
	}
	source, err := os.Stat(filepath.Join(filepath.Dir(cache), module+".py"))
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(head[at:]) }
	return err == nil && number(4) == 0 && number(8) == uint32(source.ModTime().Unix()) && number(12) == uint32(source.Size())
}

// isBinary: a program in machine code.
func isBinary(path string) bool {
	f, err := machine.OpenPlain(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	n, _ := f.ReadAt(head[:], 0)
	return isMachineCode(head[:n])
}

func isMachineCode(head []byte) bool {
	return slices.ContainsFunc([]string{"\x7fELF", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "MZ\x90\x00"}, func(magic string) bool {
		return bytes.HasPrefix(head, []byte(magic))
	})
}

// fileSums knows the content of files, so that a project with thousands of entries is
// not read for each of them. It may be used by several goroutines at once.
type fileSums struct {
	mutex sync.Mutex
	known map[string]fileSum
}

// A fileSum is what a key needs to know of the content of a file.
type fileSum struct {
	hash  string
	leads []string // what could be paths in it
	many  bool     // there are more than could be followed
	size  int64
	time  time.Time
}

// mostLeads is how many paths that leave its folder a file may mention.
const mostLeads = 2000

// settled is how long a file has to be as it is before its time is enough to know it
// again: two changes in a row may have the same time.
const settled = 2 * time.Second

// of reads a file. One that cannot be read has a sum, too: that it can be read later is
// a change.
func (s *fileSums) of(path string) fileSum {
	info, err := os.Stat(path)
	if err != nil {
		return fileSum{hash: "missing"}
	}
	s.mutex.Lock()
	known, ok := s.known[path]
	s.mutex.Unlock()
	if ok && known.size == info.Size() && known.time.Equal(info.ModTime()) {
		return known
	}
	now := time.Now()
	sum := readSum(path)
	if sum.time.Before(now.Add(-settled)) && sum.hash != "unreadable" {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.known == nil || len(s.known) > 10*mostFiles {
			s.known = make(map[string]fileSum)
		}
		s.known[path] = sum
	}
	return sum
}

func readSum(path string) fileSum {
	f, err := machine.OpenPlain(path)
	if err != nil {
		return fileSum{hash: "unreadable"}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileSum{hash: "unreadable"}
	}
	sum := fileSum{size: info.Size(), time: info.ModTime()}
	h := sha256.New()
	if sum.size > mostNamedBytes { // too large to be covered, which is noticed by its size
		sum.hash = "large"
		return sum
	}
	text, err := io.ReadAll(io.LimitReader(io.TeeReader(f, h), mostBytes))
	if err == nil {
		_, err = io.Copy(h, io.LimitReader(f, mostNamedBytes))
	}
	if err != nil {
		return fileSum{hash: "unreadable"}
	}
	sum.hash = hex.EncodeToString(h.Sum(nil))
	if !isMachineCode(text) {
		sum.leads, sum.many = leadsOf(string(text))
	}
	return sum
}

// isDocument: it is written for people, and mentions many files.
func isDocument(path string) bool {
	return slices.Contains([]string{".md", ".rst", ".adoc", ".html", ".svg"}, strings.ToLower(filepath.Ext(path)))
}

// leadsOf are the words of a file that look like paths: those that may lead somewhere
// else, and some of the others. many says that there are more of the first.
func leadsOf(text string) (leads []string, many bool) {
	const mostOthers = 500
	seen := make(map[string]bool)
	leaving, others := 0, 0
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`;|&()<>{}[],=:#!?*$\\", r) }) {
		if len(w) < 2 || len(w) > 1024 || !strings.ContainsAny(w, "/.") || seen[w] || strings.HasPrefix(w, "//") {
			continue
		}
		if strings.Contains(w, "..") || strings.Count(w, "/") > 1 && w[0] == '/' || strings.Contains(w, "node_modules/") {
			leaving++
		} else if others++; others > mostOthers {
			continue
		}
		if leaving > mostLeads {
			return leads, true
		}
		seen[w] = true
		leads = append(leads, w)
	}
	return leads, false
}
