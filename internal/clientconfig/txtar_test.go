package clientconfig

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests see into testdata")

// An archive is a txtar file: a comment, then files, each behind a line
// "-- name --".
type archive struct {
	comment string
	files   []archived
}

type archived struct{ name, data string }

func readArchive(t *testing.T, path string) *archive {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{}
	for line := range strings.SplitAfterSeq(string(data), "\n") {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if name, end := strings.CutSuffix(name, " --"); ok && end {
			a.files = append(a.files, archived{name: name})
		} else if len(a.files) == 0 {
			a.comment += line
		} else {
			a.files[len(a.files)-1].data += line
		}
	}
	return a
}

func (a *archive) file(name string) *archived {
	for i := range a.files {
		if a.files[i].name == name {
			return &a.files[i]
		}
	}
	return nil
}

// setting returns what a line "name: value" of the comment says.
func (a *archive) setting(name string) string {
	for line := range strings.SplitSeq(a.comment, "\n") {
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			return v
		}
	}
	return ""
}

func (a *archive) write(t *testing.T, path string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(a.comment)
	for _, f := range a.files {
		b.WriteString("-- " + f.name + " --\n" + f.data)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// archives runs a test for each file of a folder. The last file of an archive is
// what the test should see.
func archives(t *testing.T, pattern string, see func(*testing.T, *archive) string) {
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives match %s: %v", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a := readArchive(t, path)
			if a.file("want") == nil {
				a.files = append(a.files, archived{name: "want"})
			}
			want := a.file("want")
			got := see(t, a)
			if *update {
				want.data = got
				a.write(t, path)
			} else if got != want.data {
				t.Errorf("got:\n%s\nwant:\n%s", got, want.data)
			}
		})
	}
}

// unpack writes the files below "home/" and "project/" and returns a system that
// sees them and nothing of this machine.
func (a *archive) unpack(t *testing.T) System {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.files {
		if f.name == "want" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data := strings.NewReplacer("<dir>", filepath.ToSlash(dir), "<BOM>", byteOrderMark, "<CRLF>\n", "\r\n", "<no newline>\n", "").Replace(f.data)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	system := a.setting("os")
	if system == "" {
		system = "linux"
	}
	return System{OS: system, Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project"), Root: filepath.Join(dir, "root"),
		Getenv: func(string) string { return "" }}
}
