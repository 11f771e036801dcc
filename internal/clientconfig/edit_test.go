package clientconfig

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Each archive holds a file and edits in its comment, and shows the file after
// them all, or why an edit was refused.
func TestEditsReadAsIfMadeByHand(t *testing.T) {
	archives(t, "edit/*.txtar", func(t *testing.T, a *archive) string {
		s := a.unpack(t)
		files := s.Find(ByID(a.setting("client")))
		if len(files) != 1 {
			t.Fatalf("there are %d files", len(files))
		}
		f := files[0]
		for line := range strings.SplitSeq(a.comment, "\n") {
			op, rest, _ := strings.Cut(line, ": ")
			var g *File
			var err error
			switch op {
			case "set":
				pointer, value, _ := strings.Cut(rest, " ")
				g, err = f.Set(pathOf(pointer), valueOf(t, value))
			case "remove":
				g, err = f.Remove(pathOf(rest))
			default:
				continue
			}
			if err != nil {
				if !errors.Is(err, ErrEdit) {
					t.Errorf("the error %v does not wrap ErrEdit", err)
				}
				return strings.ReplaceAll(filepath.ToSlash(err.Error()), filepath.ToSlash(filepath.Dir(s.Home))+"/", "") + "\n"
			}
			f = g
		}
		out := strings.NewReplacer(byteOrderMark, "<BOM>", "\r\n", "<CRLF>\n").Replace(string(f.Bytes()))
		if !strings.HasSuffix(out, "\n") {
			out += "<no newline>\n"
		}
		return out
	})
}

func pathOf(pointer string) Path {
	var p Path
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		p = append(p, strings.NewReplacer("~1", "/", "~0", "~", "~s", " ").Replace(name))
	}
	return p
}

// valueOf reads JSON and keeps the order of members.
func valueOf(t *testing.T, s string) any {
	t.Helper()
	doc, err := parse(JSON, []byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return doc.root.meaning()
}

func TestAnEditDoesNotTouchTheFileItCameFrom(t *testing.T) {
	f := fileOf(JSON, `{"mcpServers": {"a": {"command": "x"}}}`)
	g, err := f.Set(f.Servers[0].Command.Path, "y")
	if err != nil {
		t.Fatal(err)
	}
	if f.Servers[0].Command.Text != "x" || g.Servers[0].Command.Text != "y" {
		t.Errorf("before %q, after %q; want x and y", f.Servers[0].Command.Text, g.Servers[0].Command.Text)
	}
}

func TestANewFileIsMadeFromNothing(t *testing.T) {
	for _, id := range []string{"cursor", "codex", "goose", "continue", "claude-code"} {
		c := ByID(id)
		f := New("f", c, "/p", c.Files[0])
		entry := Object{{c.Entry.Command, "npx"}, {"args", []string{"-y"}}}
		if c.Files[0].List {
			entry = append(Object{{"name", "a"}}, entry...)
		}
		g, err := f.Set(f.ServerPath("a"), entry)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if s := g.Server("a"); s == nil || s.Command.Text != "npx" || len(s.Args) != 1 {
			t.Errorf("%s: a new file reads\n%s", id, g.Bytes())
		}
	}
}

func TestAFileThatDidNotParseIsNotEdited(t *testing.T) {
	for _, format := range formats {
		f := fileOf(format, "{ [ \x01")
		if g, err := f.Set(Path{"a"}, "b"); !errors.Is(err, ErrEdit) {
			t.Errorf("%s: got %v and %v, want ErrEdit", format, g, err)
		}
		if g, err := f.Remove(Path{"a"}); !errors.Is(err, ErrEdit) {
			t.Errorf("%s: got %v and %v, want ErrEdit", format, g, err)
		}
	}
}

// What cannot be written is found out by reading the result.
func TestAnEditThatWouldMeanSomethingElseIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		format Format
		data   string
		value  any
	}{
		{"TOML has no null", TOML, "a = 'x'\n", nil},
		{"nor inside a list", TOML, "a = 'x'\n", []any{nil}},
		{"broken UTF-8 in JSON", JSON, `{"a": "x"}`, "\xff"},
		{"broken UTF-8 in TOML", TOML, "a = 'x'\n", "\xff"},
		{"broken UTF-8 in YAML", YAML, "a: x\n", "\xff"},
		{"a number that is none", JSON, `{"a": "x"}`, json.Number("1}, {")},
		{"a value of a strange type", JSON, `{"a": "x"}`, struct{}{}},
		{"one name twice", JSON, `{"a": "x"}`, Object{{"b", 1}, {"b", 2}}},
	} {
		f := fileOf(test.format, test.data)
		if g, err := f.Set(Path{"a"}, test.value); !errors.Is(err, ErrEdit) {
			t.Errorf("%s: got %v and %v, want ErrEdit", test.name, g, err)
		}
	}
}

func TestPathsThatLeadNowhereAreRefused(t *testing.T) {
	for format, data := range map[Format]string{
		JSON: `{"a": "x", "l": [1]}`, JSONC: `{"a": "x", "l": [1],}`, TOML: "a = 'x'\nl = [1]\n", YAML: "a: x\nl: [1]\n",
	} {
		f := fileOf(format, data)
		for _, path := range []Path{nil, {"a", "b"}, {"a", "b", "c"}, {"l", "5"}, {"l", "x"}, {"l", "-1"}, {"l", "01"}} {
			if g, err := f.Set(path, "y"); !errors.Is(err, ErrEdit) {
				t.Errorf("%s: setting %s gives %v and %v, want ErrEdit", format, path, g, err)
			}
			if g, err := f.Remove(path); !errors.Is(err, ErrEdit) {
				t.Errorf("%s: removing %s gives %v and %v, want ErrEdit", format, path, g, err)
			}
		}
	}
}

func TestAFileItsClientCannotParseIsNotEdited(t *testing.T) {
	s := (&archive{files: []archived{{"home/.gemini/settings.json", `<BOM>{"mcpServers": {}}`}}}).unpack(t)
	f := s.Find(ByID("gemini-cli"))[0]
	if g, err := f.Add(&Server{Name: v("a"), Command: v("x")}); !errors.Is(err, ErrEdit) {
		t.Errorf("adding to a file with a byte order mark gives %v, want ErrEdit; the file would be\n%s", err, g.Bytes())
	}
}
