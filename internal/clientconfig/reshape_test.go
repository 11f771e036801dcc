package clientconfig

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
)

func TestRenamingChangesTheNameAlone(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		for _, path := range f.doc.root.paths(nil, func(n *node) bool { return true })[1:] {
			parent, last := f.doc.root.find(path[:len(path)-1]), path[len(path)-1]
			if parent.kind != object || f.doc.format == YAML && strings.Contains(last, " ") {
				continue // what needs no quotes in YAML is not always left without
			}
			g, err := f.Rename(path, "renamed")
			if err != nil {
				t.Errorf("%v\n%s", err, f.Bytes())
				return
			}
			back, err := g.Rename(append(slices.Clone(path[:len(path)-1]), "renamed"), last)
			if err != nil {
				t.Errorf("back: %v\n%s", err, g.Bytes())
				return
			}
			if diff := cmp.Diff(string(f.Bytes()), string(back.Bytes())); diff != "" {
				t.Errorf("there and back of %s (-before +after):\n%s", path, diff)
				return
			}
			if sibling := parent.members[0].name; sibling != last {
				if _, err := f.Rename(path, sibling); !errors.Is(err, ErrEdit) {
					t.Errorf("renaming %s to its sibling %q: got %v, want ErrEdit", path, sibling, err)
				}
			}
		}
	})
}

func TestStrictLeavesAllButCommentsAndCommas(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		g, err := f.Strict()
		if f.doc.format == TOML || f.doc.format == YAML {
			if !errors.Is(err, ErrEdit) {
				t.Errorf("got %v, want ErrEdit", err)
			}
			return
		}
		if err != nil {
			t.Errorf("%v\n%s", err, f.Bytes())
			return
		}
		after := strings.TrimPrefix(string(g.Bytes()), byteOrderMark)
		if !json.Valid([]byte(after)) {
			t.Errorf("not strict:\n%s", after)
		}
		standard, err := hujson.Standardize([]byte(strings.TrimPrefix(string(f.Bytes()), byteOrderMark) + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if diff := cmp.Diff(words(string(standard)), words(after)); diff != "" {
			t.Errorf("more than comments and commas went (-want +got):\n%s", diff)
		}
		if rewritten(f.Bytes(), g.Bytes()) > strings.Count(string(f.Bytes()), "//")+strings.Count(string(f.Bytes()), ",") {
			t.Errorf("%s\nbecame\n%s", f.Bytes(), g.Bytes())
		}
		if f.doc.format == JSON && string(f.Bytes()) != string(g.Bytes()) {
			t.Errorf("strict JSON was changed:\n%s\nbecame\n%s", f.Bytes(), g.Bytes())
		}
	})
}

func TestWrappingMovesLinesIn(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		once, err := f.Wrap("key")
		if err != nil {
			t.Errorf("%v\n%s", err, f.Bytes())
			return
		}
		if f.doc.format != TOML && !linesKept(f.Bytes(), once.Bytes()) {
			t.Errorf("\n%s\nbecame\n%s", f.Bytes(), once.Bytes())
			return
		}
		twice, err := once.Wrap("key")
		if err != nil {
			t.Errorf("twice: %v\n%s", err, once.Bytes())
			return
		}
		back, err := twice.Unnest(Path{"key", "key"})
		if err != nil {
			t.Errorf("un-nesting: %v\n%s", err, twice.Bytes())
			return
		}
		if diff := cmp.Diff(string(once.Bytes()), string(back.Bytes())); diff != "" {
			t.Errorf("wrapping and un-nesting (-before +after):\n%s", diff)
		}
	})
}

// linesKept reports whether all lines are still there in order, whatever their
// indentation.
func linesKept(before, after []byte) bool {
	old := strings.Split(strings.TrimPrefix(string(before), byteOrderMark), "\n")
	for line := range strings.SplitSeq(strings.TrimPrefix(string(after), byteOrderMark), "\n") {
		if len(old) > 0 && strings.TrimSpace(line) == strings.TrimSpace(old[0]) {
			old = old[1:]
		}
	}
	return len(old) == 0
}

func TestReshaping(t *testing.T) {
	strict := func(f *File) (*File, error) { return f.Strict() }
	wrap := func(key string) func(*File) (*File, error) {
		return func(f *File) (*File, error) { return f.Wrap(key) }
	}
	unnest := func(path ...string) func(*File) (*File, error) {
		return func(f *File) (*File, error) { return f.Unnest(path) }
	}
	toObject := func(path ...string) func(*File) (*File, error) {
		return func(f *File) (*File, error) { return f.ListToObject(path) }
	}
	braces := func(f *File) (*File, error) { return f.Braces() }
	unmarked := func(f *File) (*File, error) { return f.Unmarked() }
	for _, test := range []struct {
		name   string
		format Format
		before string
		edit   func(*File) (*File, error)
		after  string // "" if it is refused
	}{
		{"a comment on a line of its own", JSON, "{\n  // gone\n  \"a\": 1, // gone, too\n  \"b\": [1, 2,],\n}\n", strict, "{\n  \"a\": 1,\n  \"b\": [1, 2]\n}\n"},
		{"a comment between values", JSON, `{"a": /* x */ 1, "u": "http://a//b,}"}`, strict, `{"a":  1, "u": "http://a//b,}"}`},
		{"a comment at the end", JSON, "{} // the end", strict, "{}"},
		{"a comma behind which a comment stands", JSON, "{\n\t\"a\": 1, // x\n\t// y\n}", strict, "{\n\t\"a\": 1\n}"},
		{"what cannot be parsed", JSON, "{\"a\" 1}", strict, ""},
		{"nothing at all", JSON, "", braces, "{}\n"},
		{"spaces", JSON, "  ", braces, "{}\n"},
		{"lines", JSON, "\r\n\r\n", braces, "{}\r\n\r\n"},
		{"a mark of the byte order", JSON, byteOrderMark, braces, byteOrderMark + "{}\n"},
		{"the mark taken away", JSON, byteOrderMark + "{} // x\r\n", unmarked, "{} // x\r\n"},
		{"no mark", TOML, "a = 1\n", unmarked, ""},
		{"braces for what has some", JSON, "{}", braces, ""},
		{"entries at the top", JSON, "{\n  \"a\": {\n    \"command\": \"x\"\n  }\n}\n", wrap("mcpServers"), "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"},
		{"entries on one line", JSON, `{"a": {"command": "x"}}`, wrap("mcpServers"), `{"mcpServers": {"a": {"command": "x"}}}`},
		{"tables at the top", TOML, "[a]\ncommand = 'x'\n[a.env]\nK = 'v'\n", wrap("mcp_servers"), "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a.env]\nK = 'v'\n"},
		{"a YAML file with a head", YAML, "---\n# all\na:\n  cmd: x\n\nb:\n  cmd: |\n    y\n", wrap("extensions"), "---\n# all\nextensions:\n  a:\n    cmd: x\n\n  b:\n    cmd: |\n      y\n"},
		{"a key inside itself", JSON, "{\n  \"s\": {\n    \"s\": {\n      \"a\": {\"command\": \"x\"}\n    }\n  }\n}", unnest("s", "s"), "{\n  \"s\": {\n    \"a\": {\"command\": \"x\"}\n  }\n}"},
		{"a key inside itself on one line", JSON, `{"s": {"s": {"a": {"command": "x"}}, "b": {}}}`, unnest("s", "s"), `{"s": {"a": {"command": "x"}, "b": {}}}`},
		{"beside others", JSON, "{\"s\": {\n  \"b\": {},\n  \"s\": {\n    \"a\": {}\n  },\n  \"c\": {}\n}}", unnest("s", "s"), "{\"s\": {\n  \"b\": {},\n  \"a\": {},\n  \"c\": {}\n}}"},
		{"beside one of the same name", JSON, `{"s": {"s": {"a": {}}, "a": {}}}`, unnest("s", "s"), ""},
		{"tables inside a table", TOML, "[s.s.a]\ncommand = 'x'\n[s.s.a.env]\n", unnest("s", "s"), "[s.a]\ncommand = 'x'\n[s.a.env]\n"},
		{"a list with names", JSON, "{\"s\": [\n  {\"name\": \"a\", \"command\": \"x\"},\n  {\n    \"name\": \"b\",\n    \"command\": \"y\"\n  }\n]}", toObject("s"), "{\"s\": {\n  \"a\": {\"command\": \"x\"},\n  \"b\": {\n    \"command\": \"y\"\n  }\n}}"},
		{"a list without a name", JSON, `{"s": [{"command": "x"}]}`, toObject("s"), ""},
		{"a list with a name twice", JSON, `{"s": [{"name": "a"}, {"name": "a"}]}`, toObject("s"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.edit(fileOf(test.format, test.before))
			if test.after == "" {
				if !errors.Is(err, ErrEdit) {
					t.Errorf("got %v, want ErrEdit", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, string(got.Bytes())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnEntryMovesWithAllItsMembers(t *testing.T) {
	code := ByID("claude-code")
	dir := t.TempDir()
	from := filepath.Join(dir, "settings.json")
	put(t, from, `{"theme": "dark", "mcpServers": {"a": {"command": "x", "args": ["1"], "mine": {"n": 12345678901234567890}}}}`)
	wrong := openIgnored(from, code, code.Ignored[0])
	right := New(filepath.Join(dir, "new.json"), code, "", code.Files[0])
	got, err := right.Adopt(wrong, "a")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		MCPServers map[string]json.RawMessage
	}
	if err := json.Unmarshal(got.Bytes(), &all); err != nil || !strings.Contains(string(all.MCPServers["a"]), "12345678901234567890") {
		t.Errorf("%v: %s", err, got.Bytes())
	}
	if _, err := got.Adopt(wrong, "a"); !errors.Is(err, ErrEdit) {
		t.Errorf("a second time: got %v, want ErrEdit", err)
	}
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
	if now := wrong.Again(); len(now.Servers) != 0 || now.Problems[0].Kind != Unreadable {
		t.Errorf("read again after it was removed: %v", now.Problems)
	}
}
