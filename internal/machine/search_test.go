package machine

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFindsTheProgramThatAClientWould(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode here")
	}
	root := t.TempDir()
	plant(t, root, map[string]string{
		"a/tool": "", "b/tool*": "", "c/tool/": "", "d/only": "", "e/folder/": "", "b/a b*": "",
		"win/npx": "#!/bin/sh", "win/npx.cmd": "", "win/uv.exe": "", "win/readme.txt": "",
	})
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	path := func(separator string, dirs ...string) string {
		for i, d := range dirs {
			dirs[i] = at(d)
		}
		return strings.Join(dirs, separator)
	}
	for _, test := range []struct {
		name, path, dir, goos string
		want                  string
		err                   error
	}{
		{"tool", path(":", "none", "b"), "", "linux", "b/tool", nil},
		{"tool", path(":", "a", "b"), "", "linux", "b/tool", nil}, // a/tool may not be run, so the search goes on
		{"tool", path(":", "c", "b"), "", "darwin", "b/tool", nil},
		{"tool", path(":", "a"), "", "linux", "a/tool", errNotExecutable},
		{"tool", path(":", "c", "a"), "", "linux", "a/tool", errNotExecutable},
		{"tool", path(":", "c"), "", "linux", "", ErrProgramMissing}, // a folder of that name is nothing to be told of
		{at("c/tool"), "", "", "linux", "c/tool", errIsFolder},
		{"tool", path(":", "e"), "", "linux", "", ErrProgramMissing},
		{"tool", "", "", "linux", "", ErrProgramMissing},
		{"", path(":", "b"), "", "linux", "", ErrProgramMissing},
		{"a b", path(":", "b"), "", "linux", "b/a b", nil},
		{"./tool", path(":", "a"), at("b"), "linux", "b/tool", nil},
		{"../b/tool", "", at("a"), "linux", "b/tool", nil},
		{at("b/tool"), "", "/", "linux", "b/tool", nil},
		{at("d/only"), "", "/", "linux", "d/only", errNotExecutable},
		{"tool", "b", root, "linux", "b/tool", nil},            // a relative folder counts from where the client stands
		{"tool", ":", at("b"), "linux", "", ErrProgramMissing}, // the current folder is no place to find one by accident
		{"npx", path(";", "none", "win"), "", "windows", "win/npx.cmd", nil},
		{"npx.cmd", path(";", "win"), "", "windows", "win/npx.cmd", nil},
		{"uv", `"` + at("win") + `"`, "", "windows", "win/uv.exe", nil},
		{"readme.txt", path(";", "win"), "", "windows", "", ErrProgramMissing},
		{at("win/npx"), "", "", "windows", "win/npx.cmd", nil},
	} {
		got, err := Search{OS: OS(test.goos), Path: test.path, Dir: test.dir}.Find(test.name)
		want := test.want
		if want != "" {
			want = at(want)
		}
		if got != want || err != test.err {
			t.Errorf("%q in %q from %q on %s: %q, %v; want %q, %v", test.name, test.path, test.dir, test.goos, got, err, want, test.err)
		}
	}
}

func TestWindowsRunsWhatPATHEXTSays(t *testing.T) {
	root := t.TempDir()
	plant(t, root, map[string]string{"tool.py": "", "tool.PS1": "", "other.exe": ""})
	search := Search{OS: "windows", Path: root, Endings: ".PY;;.EXE"}
	for command, want := range map[string]string{"tool": "tool.py", "other": "other.exe", "tool.ps1": "", "none": ""} {
		file, err := search.Find(command)
		if file = filepath.Base(file); file != want && (want != "" || err != ErrProgramMissing) {
			t.Errorf("%s: %q, %v; want %q", command, file, err, want)
		}
	}
}
