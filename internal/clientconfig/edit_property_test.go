package clientconfig

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A writer makes up files as people have them: servers between settings of other
// kinds, comments, blank lines, values on one line or on many, tabs or spaces,
// Windows line ends, a byte order mark.
type writer struct {
	*rand.Rand
	format  Format
	unit    string
	newline string
	dashIn  bool // YAML: dashes further in than their key
	lines   []string
}

func (w *writer) maybe(n int) bool { return w.IntN(n) == 0 }

func (w *writer) line(depth int, s string) {
	w.lines = append(w.lines, strings.Repeat(w.unit, depth)+s)
}

// noise is what may stand between two entries.
func (w *writer) noise(depth int) {
	mark := map[Format]string{JSONC: "// ", TOML: "# ", YAML: "# "}[w.format]
	if mark != "" && w.maybe(4) {
		w.line(depth, mark+"note "+strconv.Itoa(w.IntN(100))+`: "it's" {1} [2], #3`)
	}
	if w.maybe(6) {
		w.lines = append(w.lines, "")
	}
}

// tail is what may stand behind a value.
func (w *writer) tail() string {
	if !w.maybe(4) {
		return ""
	}
	return map[Format]string{JSONC: " // why, {", TOML: " # why, [", YAML: " # why: {"}[w.format]
}

var words = []string{"npx", "-y", "@scope/server", "/home/ada/a b", "https://example.com/mcp?a=b#c", "${TOKEN}", "it's", `say "hi"`, "größe", "x:y", "8080", "true", "", "a, b", "[x]", "{y}", "#z", "C:\\dir", "=", "-", "null", "\t"}

func (w *writer) word() string { return words[w.IntN(len(words))] }

func (w *writer) scalar(s string) string {
	switch {
	case w.format == TOML && w.maybe(3) && isLiteralTOML(s):
		return "'" + s + "'"
	case w.format == TOML:
		return quoteTOML(s)
	case w.format == YAML && w.maybe(3) && isLiteralTOML(strings.ReplaceAll(s, "'", "")):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case w.format == YAML && w.maybe(2):
		return (&document{}).scalarYAML(s)
	}
	return quoteJSON(s)
}

func (w *writer) list(n int) []string {
	l := make([]string, n)
	for i := range l {
		l[i] = w.scalar(w.word())
	}
	return l
}

// document returns a file with some servers under a key.
func (w *writer) document(key string) string {
	switch w.format {
	case TOML:
		w.toml(key)
	case YAML:
		w.yaml(key)
	default:
		w.json(key)
	}
	text := strings.Join(w.lines, w.newline)
	if w.maybe(2) {
		text += w.newline
	}
	if w.maybe(4) {
		text = byteOrderMark + text
	}
	return text
}

func (w *writer) json(key string) {
	var object func(depth int, last bool, label string, members []func(last bool))
	comma := func(last bool) string {
		if last && (w.format == JSON || w.maybe(2)) {
			return ""
		}
		return ","
	}
	object = func(depth int, last bool, label string, members []func(bool)) {
		if len(members) == 0 {
			w.line(depth, label+"{}"+comma(last)+w.tail())
			return
		}
		w.line(depth, label+"{"+w.tail())
		for i, m := range members {
			w.noise(depth + 1)
			m(i == len(members)-1)
		}
		w.noise(depth + 1)
		w.line(depth, "}"+comma(last)+w.tail())
	}
	field := func(depth int, name, value string) func(bool) {
		return func(last bool) { w.line(depth, quoteJSON(name)+": "+value+comma(last)+w.tail()) }
	}
	server := func(name string) func(bool) {
		return func(last bool) {
			if w.maybe(4) {
				w.line(2, quoteJSON(name)+`: {"command": "x", "args": [`+strings.Join(w.list(2), ",")+`]}`+comma(last)+w.tail())
				return
			}
			members := []func(bool){
				field(3, "command", w.scalar(w.word())),
				field(3, "args", "["+strings.Join(w.list(w.IntN(4)), ", ")+"]"),
				field(3, "unknown/~", "12345678901234567890"),
			}
			if w.maybe(2) {
				members = append(members, func(last bool) {
					w.line(3, `"env": {`)
					w.line(4, `"A": `+w.scalar(w.word())+","+w.tail())
					w.line(4, `"B": `+w.scalar(w.word())+comma(true)+w.tail())
					w.line(3, "}"+comma(last))
				})
			}
			w.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			object(2, last, quoteJSON(name)+": ", members)
		}
	}
	var servers []func(bool)
	for i := range w.IntN(4) {
		servers = append(servers, server(fmt.Sprintf("s%d", i)))
	}
	top := []func(bool){
		field(1, "theme", w.scalar(w.word())),
		func(last bool) { object(1, last, quoteJSON(key)+": ", servers) },
		field(1, "numbers", "[1.0, 1e3, -0]"),
	}
	w.Shuffle(len(top), func(i, j int) { top[i], top[j] = top[j], top[i] })
	object(0, true, "", top)
	// The end of the document takes no comma.
	for i := len(w.lines) - 1; i >= 0; i-- {
		if rest, ok := strings.CutPrefix(w.lines[i], "},"); ok {
			w.lines[i] = "}" + rest
			break
		}
	}
}

func (w *writer) toml(key string) {
	pair := func(name, value string) { w.line(0, name+" = "+value+w.tail()) }
	w.noise(0)
	pair("theme", w.scalar(w.word()))
	for i := range w.IntN(4) {
		name := fmt.Sprintf("s%d", i)
		w.noise(0)
		if w.maybe(4) {
			w.line(0, "["+key+"]")
			if slices.Contains(w.lines[:len(w.lines)-1], "["+key+"]") {
				w.lines = w.lines[:len(w.lines)-1]
				continue
			}
			pair(name, "{ command = "+w.scalar(w.word())+", args = ["+strings.Join(w.list(2), ", ")+"] }")
			pair(name+"d.command", w.scalar(w.word()))
			continue
		}
		w.line(0, "["+key+"."+name+"]"+w.tail())
		pair("command", w.scalar(w.word()))
		w.noise(0)
		if w.maybe(2) {
			w.line(0, "args = [")
			for _, a := range w.list(1 + w.IntN(3)) {
				w.line(1, a+","+w.tail())
			}
			w.line(0, "]"+w.tail())
		} else {
			pair("args", "["+strings.Join(w.list(w.IntN(3)), ", ")+"]")
		}
		pair(`"unknown key"`, "1979-05-27T07:32:00Z")
		if w.maybe(2) {
			w.noise(0)
			w.line(0, "["+key+"."+name+".env]")
			pair("A", w.scalar(w.word()))
			pair("B", w.scalar(w.word()))
		}
	}
	w.noise(0)
	w.line(0, "[other]")
	pair("x.y", "0x1F")
}

func (w *writer) yaml(key string) {
	field := func(depth int, name, value string) {
		w.line(depth, name+": "+value+w.tail())
		w.noise(depth)
	}
	w.noise(0)
	field(0, "theme", w.scalar(w.word()))
	n := w.IntN(4)
	if n == 0 {
		w.line(0, key+":"+[]string{"", " {}", " null"}[w.IntN(3)]+w.tail())
	} else {
		w.line(0, key+":"+w.tail())
	}
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		if w.maybe(4) {
			field(1, name, "{cmd: x, args: ["+strings.Join(w.list(2), ", ")+"]}")
			continue
		}
		w.noise(1)
		w.line(1, name+":"+w.tail())
		field(2, "cmd", w.scalar(w.word()))
		if w.maybe(2) {
			w.line(2, "args:"+w.tail())
			for _, a := range w.list(1 + w.IntN(3)) {
				depth := 2
				if w.dashIn {
					depth = 3
				}
				w.line(depth, "- "+a+w.tail())
			}
		} else {
			field(2, "args", "["+strings.Join(w.list(w.IntN(3)), ", ")+"]")
		}
		field(2, "unknown key", "0x1F")
		if w.maybe(3) {
			w.line(2, "text: |")
			w.line(3, "# not a comment")
			w.lines = append(w.lines, "")
			w.line(3, "end: of it")
		}
		if w.maybe(2) {
			w.line(2, "envs:"+w.tail())
			field(3, "A", w.scalar(w.word()))
			field(3, "B", w.scalar(w.word()))
		}
	}
	w.noise(0)
	field(0, "other", "{x: [1.0, 1e3]}")
}

func madeUp(seed uint64, format Format) *File {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &writer{Rand: r, format: format, unit: []string{"  ", "    ", "\t"}[r.IntN(3)], newline: []string{"\n", "\r\n"}[r.IntN(2)], dashIn: r.IntN(2) == 0}
	if format == YAML {
		w.unit = []string{"  ", "    "}[r.IntN(2)]
	}
	key := map[Format]string{JSON: "mcpServers", JSONC: "mcp", TOML: "mcp_servers", YAML: "extensions"}[format]
	return fileOf(format, w.document(key))
}

// eachMadeUp runs a property on many files of every format.
func eachMadeUp(t *testing.T, property func(t *testing.T, f *File, r *rand.Rand)) {
	files := uint64(120)
	if testing.Short() {
		files = 50
	}
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			for seed := range files {
				f := madeUp(seed, format)
				for _, p := range f.Problems {
					if p.Kind == Unparsable {
						t.Fatalf("seed %d: %s\n%s", seed, p, f.Bytes())
					}
				}
				property(t, f, rand.New(rand.NewPCG(seed, 2)))
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// paths returns where the values of some kind stand.
func (n *node) paths(at Path, pick func(*node) bool) []Path {
	var found []Path
	if pick(n) {
		found = append(found, at)
	}
	for i := range n.members {
		found = append(found, n.members[i].value.paths(at.then(n.members[i].name), pick)...)
	}
	for i, e := range n.elements {
		found = append(found, e.paths(at.then(strconv.Itoa(i)), pick)...)
	}
	return found
}

// changed returns the lines that are not common to the beginning and the end of
// two files.
func changed(before, after []byte) (old, new []string) {
	old, new = strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	for len(old) > 0 && len(new) > 0 && old[0] == new[0] {
		old, new = old[1:], new[1:]
	}
	for len(old) > 0 && len(new) > 0 && old[len(old)-1] == new[len(new)-1] {
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	return old, new
}

func TestChangingOneValueChangesOneLine(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		all := f.doc.root.paths(nil, func(n *node) bool { return n.kind == text })
		for _, path := range all {
			if n := f.doc.root.find(path); n.end < 0 {
				continue // a text over several lines, refused elsewhere
			}
			value := words[r.IntN(len(words))] + "new"
			g, err := f.Set(path, value)
			if err != nil {
				t.Errorf("%v\n%s", err, f.Bytes())
				return
			}
			if old, new := changed(f.Bytes(), g.Bytes()); len(old) != 1 || len(new) != 1 {
				t.Errorf("setting %s to %q changed\n%q\ninto\n%q", path, value, old, new)
				return
			}
			was := f.doc.root.find(path).value
			back, err := g.Set(path, was)
			if err != nil {
				t.Errorf("setting %s back: %v", path, err)
				return
			}
			// Other quotes may be left, and nothing else.
			if old, new := changed(f.Bytes(), back.Bytes()); len(old) > 1 || len(new) > 1 || back.doc.root.find(path).value != was {
				t.Errorf("setting %s back left\n%q\nof\n%q", path, new, old)
			}
		}
	})
}

// onlyAdded reports whether all old lines are still there in order, but for one
// that may have got a comma.
func onlyAdded(before, after []byte) bool {
	old, new := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	commas := 0
	for _, line := range new {
		if len(old) == 0 {
			break
		}
		bare := func(s string) string { return strings.TrimRight(s, "\r\n") }
		if bare(line) == bare(old[0]) {
			old = old[1:]
		} else if withoutAComma(bare(line), bare(old[0])) {
			commas++
			old = old[1:]
		}
	}
	return commas <= 1 && (len(old) == 0 || len(old) == 1 && old[0] == "")
}

func withoutAComma(line, shorter string) bool {
	if len(line) != len(shorter)+1 {
		return false
	}
	for i := range line {
		if line[i] == ',' && line[:i]+line[i+1:] == shorter {
			return true
		}
	}
	return false
}

func TestAddingAServerAddsItsOwnLines(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		entry := Object{{"command", "npx"}, {"args", []string{"-y", "it's"}}, {"env", Object{{"A", "b: c"}}}, {"timeout", 30}, {"x", true}}
		path := f.ServerPath("new server")
		g, err := f.Set(path, entry)
		if err != nil {
			t.Errorf("%v\n%s", err, f.Bytes())
			return
		}
		if !onlyAdded(f.Bytes(), g.Bytes()) {
			// An empty container is opened, which changes its line.
			if c := f.doc.root.find(path[:1]); c != nil && len(c.members) > 0 {
				t.Errorf("adding a server to\n%s\ngave\n%s", f.Bytes(), g.Bytes())
				return
			}
		}
		if wantCRLF := strings.Contains(string(f.Bytes()), "\r\n"); wantCRLF && strings.Count(string(g.Bytes()), "\n") != strings.Count(string(g.Bytes()), "\r\n") {
			t.Errorf("mixed line ends:\n%q", g.Bytes())
		}
		h, err := g.Remove(path)
		if err != nil {
			t.Errorf("removing it again: %v\n%s", err, g.Bytes())
			return
		}
		same := func(b []byte) string {
			s := strings.TrimRight(string(b), "\r\n")
			if f.doc.format == TOML { // the blank line between two tables is nobody's
				s = strings.NewReplacer("\r\n\r\n", "\n", "\r\n", "\n", "\n\n", "\n").Replace(s)
			}
			return s
		}
		if c := f.doc.root.find(path[:1]); c != nil && len(c.members) > 0 && same(h.Bytes()) != same(f.Bytes()) {
			t.Errorf("adding and removing a server turned\n%s\ninto\n%s", f.Bytes(), h.Bytes())
		}
	})
}

func TestAddingAMemberAddsItsOwnLine(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		for _, s := range f.Servers {
			g, err := f.Set(s.Path.then("type"), "http")
			if err != nil {
				t.Errorf("%v\n%s", err, f.Bytes())
				return
			}
			old, new := changed(f.Bytes(), g.Bytes())
			if !onlyAdded(f.Bytes(), g.Bytes()) && (len(old) != 1 || len(new) != 1) {
				t.Errorf("adding a member of %s changed\n%q\ninto\n%q", s.Path, old, new)
				return
			}
			for _, name := range []string{f.Client.Entry.Env, "made.up"} {
				if _, err := f.Set(s.Path.then(name, "NEW"), "value"); err != nil {
					t.Errorf("%v\n%s", err, f.Bytes())
					return
				}
			}
		}
	})
}

func TestRemovingTakesOnlyItsOwnLines(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		all := f.doc.root.paths(nil, func(n *node) bool { return true })[1:]
		for _, path := range all {
			g, err := f.Remove(path)
			if err != nil {
				t.Errorf("%v\n%s", err, f.Bytes())
				return
			}
			if rewritten(f.Bytes(), g.Bytes()) > 1 {
				t.Errorf("removing %s changed\n%s\ninto\n%s", path, f.Bytes(), g.Bytes())
				return
			}
		}
	})
}

// rewritten counts the lines of a shorter file that are not, in order, lines of
// the longer one: a line that lost its comma, or a value beside others.
func rewritten(before, after []byte) int {
	old, new := changed(before, after)
	count := 0
	for _, line := range new {
		if i := slices.Index(old, line); i >= 0 {
			old = old[i+1:]
		} else if strings.TrimSpace(line) != "" {
			count++
		}
	}
	return count
}
