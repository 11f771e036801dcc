package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/machine"
)

// A script is a file of a project that an entry names and that is run: its content
// is as good as an argument, since whoever writes the project can change either.
// What it imports cannot be told, nor what a folder or a package.json leads to.
type script struct {
	name string // as the entry has it, its ending filled in
	mark string // of name and content
}

// scripts are those of one entry whose arguments are expanded and started in dir:
// the program, and every argument with the look of code. Data, which may change all
// the time, is left out. Files outside of the project are the user's own.
func (d *Doctor) scripts(s *clientconfig.Server, x *expansion, dir string) []script {
	at := site{environ: *x.env, dir: dir}
	roots := []string{dir, d.System.Project, projectOf(s.File)}
	var found []script
	left := int64(markedSize)
	bind := func(name string, sort func(string, *os.File) bool) bool {
		file := at.absolute(name)
		if !slices.ContainsFunc(roots, func(root string) bool { return inside(root, file) }) {
			return false
		}
		mark, ok := markOf(name, file, sort, &left)
		if ok && !slices.ContainsFunc(found, func(f script) bool { return f.mark == mark }) {
			found = append(found, script{name, mark})
		}
		return ok
	}
	if command := x.expand("command", "", s.Command); at.isPath(command) {
		bind(command, func(string, *os.File) bool { return true })
	}
	for _, a := range s.Args {
		word := x.expand("args", "", a)
		if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
			word = value
		}
		if word != "" && !bind(word, isCode) {
			bind(word+".js", isCode) // which node leaves out
		}
	}
	return found
}

// projectOf is the folder that a file of a project belongs to: the one around it, or
// around the folder that a client has for its settings.
func projectOf(file string) string {
	dir := filepath.Dir(file)
	if file == "" || strings.HasPrefix(filepath.Base(dir), ".") {
		dir = filepath.Dir(dir)
	}
	return dir
}

// inside reports whether a file is in a folder. The root of the file system is none
// that could be a project.
func inside(root, file string) bool {
	return root != "" && filepath.Dir(root) != root && isBelow(root, file)
}

var codeEndings = []string{
	".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".py", ".pyw", ".pyz", ".rb", ".pl", ".php", ".lua", ".sh", ".bash", ".zsh", ".fish",
	".ps1", ".bat", ".cmd", ".exe", ".jar", ".wasm", ".go", ".dart", ".ex", ".exs", ".kts", ".groovy", ".jl", ".r", ".swift", ".cs", ".csx", ".dll",
}

// isCode tells scripts from data by their names, and by a first line that says what
// runs them.
func isCode(name string, f *os.File) bool {
	if slices.Contains(codeEndings, strings.ToLower(path.Ext(filepath.ToSlash(name)))) {
		return true
	}
	var start [2]byte
	n, _ := f.ReadAt(start[:], 0)
	return string(start[:n]) == "#!"
}

// markedSize is how much is read of all files of an entry: a project that nobody has
// agreed to yet must not keep us busy by naming a large one again and again. Of what
// is larger, a program rather than a script, size and time count as well.
const markedSize = 16 << 20

// markOf stands for a name and the content of its file, of which it reads as much as
// is left; not ok if that is no plain file, or not of the sort.
func markOf(name, file string, sort func(string, *os.File) bool, left *int64) (mark string, ok bool) {
	f, err := machine.OpenPlain(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !sort(name, f) {
		return "", false
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d:%s%d:", len(name), name, info.Size())
	if info.Size() > *left {
		fmt.Fprint(sum, info.ModTime().UnixNano())
	}
	n, err := io.Copy(sum, io.LimitReader(f, *left))
	if *left -= n; err != nil {
		return "", false
	}
	return hex.EncodeToString(sum.Sum(nil)), true
}

// changed are the scripts of an entry that are not as they were when it was
// approved; none if it never was.
func (a *Approvals) changed(b bond) []string {
	if len(b.scripts) == 0 {
		return nil
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	lines, err := a.read()
	if err != nil {
		return nil
	}
	var known []string
	approved := false
	for hash, line := range lines {
		if line.word == wordApproved && (hash == b.base || line.base == b.base) {
			approved = true
			known = append(known, line.marks...)
		}
	}
	if !approved {
		return nil
	}
	var all, changed []string
	for _, s := range b.scripts {
		all = append(all, s.name)
		if !slices.Contains(known, s.mark) {
			changed = append(changed, s.name)
		}
	}
	if changed == nil { // each was approved, and not together
		return all
	}
	return changed
}
