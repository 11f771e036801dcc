package rig

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestInstallsWhatIsPinned(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the network the first time")
	}
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	npm, err := r.NPM(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pinned {
		name, want := p[:strings.LastIndexByte(p, '@')], p[strings.LastIndexByte(p, '@')+1:]
		if got, err := npm.Version(name); got != want {
			t.Errorf("%s: got version %q, %v; want %s", name, got, err, want)
		}
	}
	cmd := exec.Command("sh", "-c", "node --version")
	cmd.Env = npm.Environ()
	if got, err := cmd.Output(); strings.TrimSpace(string(got)) != "v24.21.0" {
		t.Errorf("node --version = %q, %v; want the pinned one", got, err)
	}
}

func TestAnInterruptedInstallationIsDoneAgain(t *testing.T) {
	t.Setenv("MCPMEND_BENCH_CACHE", t.TempDir())
	bin := t.TempDir()
	// An npm that fails the first time and works the second.
	script := "#!/bin/sh\n[ -e " + bin + "/seen ] || { touch " + bin + "/seen; echo offline >&2; exit 1; }\necho >> " + bin + "/runs\n"
	if err := os.WriteFile(bin+"/npm", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.NPM(t.Context()); err == nil || !strings.Contains(err.Error(), "offline") {
		t.Fatalf("first NPM: got %v, want an error with npm's own words", err)
	}
	for range 2 {
		if _, err := r.NPM(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if runs, err := os.ReadFile(bin + "/runs"); string(runs) != "\n" {
		t.Errorf("npm worked %q times, %v; want once", runs, err)
	}
}
