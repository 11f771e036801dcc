package machine

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDotenvNamesAreNamesOnly(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{".env": "\ufeff# comment\r\n" +
		"PLAIN=canary\r\n" +
		"export EXPORTED=canary\n" +
		"  SPACED = canary # comment\n" +
		"SINGLE='can\\'\n" +
		"DOUBLE=\"can\\\"ary\n" + // goes on
		"INSIDE_DOUBLE=canary\n" +
		"end\" # comment\n" +
		"CERT='-----BEGIN-----\n" +
		"INSIDE_CERT=canary\n" +
		"-----END-----'\n" +
		"AFTER=canary=more\n" +
		"EMPTY=\n" +
		"EMPTY_TOO=\"\"\n" +
		"EMPTY_THREE= # nothing\n" +
		"#COMMENTED=canary\n" +
		"no name here\n" +
		"2BAD=canary\n" +
		"exportFOO=canary\n" +
		"=canary\n" +
		"BACKTICK=`a\n" +
		"b`\n" +
		"OPEN=\"never closed\n" +
		"LAST=canary"})
	var got []string
	for _, n := range DotenvNames(dir) {
		if n.File != filepath.Join(dir, ".env") {
			t.Errorf("%s is in %q", n.Name, n.File)
		}
		text := fmt.Sprintf("%d %s", n.Line, n.Name)
		if n.Empty {
			text += " empty"
		}
		got = append(got, text)
	}
	want := []string{
		"2 PLAIN", "3 EXPORTED", "4 SPACED", "5 SINGLE", "6 DOUBLE", "9 CERT", "12 AFTER",
		"13 EMPTY empty", "14 EMPTY_TOO empty", "15 EMPTY_THREE empty", "19 exportFOO", "21 BACKTICK", "23 OPEN", "24 LAST",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDotenvFilesThatSetSomethingAreRead(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	plant(t, a, map[string]string{
		".env": "A=1", ".env.production": "P=1", ".env.local": "L=1", ".env.development.local": "DL=1",
		".env.example": "NO=1", ".env.local.sample": "NO=1", ".envrc": "NO=1", "env": "NO=1", ".env.template": "NO=1", ".env.test/": "",
	})
	plant(t, b, map[string]string{".env": "B=1"})
	var got []string
	for _, n := range DotenvNames(a, b, a, filepath.Join(b, "none"), "") {
		got = append(got, n.Name)
	}
	if diff := cmp.Diff([]string{"A", "L", "DL", "P", "B"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAHugeDotenvFileIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{".env": "A=" + strings.Repeat("x", maxDotenv), ".env.local": "B=1"})
	if got := DotenvNames(dir); len(got) != 1 || got[0].Name != "B" {
		t.Errorf("got %+v", got)
	}
}

func FuzzDotenvNames(f *testing.F) {
	f.Add([]byte("A=1\nexport B='x\ny'\n"))
	f.Add([]byte("A=\"\\"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Count(data, []byte("\n")) + 1
		last := 0
		for _, n := range dotenvNames(data) {
			if n.Line <= last || n.Line > lines || !isVariableName(n.Name) {
				t.Fatalf("%+v after line %d of %d", n, last, lines)
			}
			last = n.Line
			text := bytes.Split(data, []byte("\n"))[n.Line-1]
			if !bytes.Contains(text, []byte(n.Name)) {
				t.Fatalf("%+v is not in %q", n, text)
			}
		}
	})
}
