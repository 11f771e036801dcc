package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestATokenProtects(t *testing.T) {
	if _, _, err := Token("fifteen-letters", ""); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("a token of 15 characters: %v", err)
	}
	if token, where, err := Token("sixteen-letters!", ""); err != nil || token != "sixteen-letters!" || where != "MCPMEND_TOKEN" {
		t.Errorf("a token of 16 characters: %q from %s, %v", token, where, err)
	}
	file := filepath.Join(t.TempDir(), "token")
	made, _, err := Token("", file)
	if err != nil || len(made) < leastToken {
		t.Fatalf("made %q, %v", made, err)
	}
	if again, _, err := Token("", file); err != nil || again != made {
		t.Errorf("read again: %q, %v; want %q", again, err, made)
	}
	if err := os.WriteFile(file, []byte("fifteen-letters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Token("", file); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("a file with a token of 15 characters: %v", err)
	}
}

func TestATokenFileIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files there have no such mode")
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a token that is long enough\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o660: false, 0o666: false, 0o602: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Token("", file); (err == nil) != good {
			t.Errorf("mode %03o: %v", mode, err)
		}
	}
}
