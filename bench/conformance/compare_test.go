package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesEveryDifference(t *testing.T) {
	direct, through := outcomes{}, outcomes{}
	both := func(id string, d, th outcome) {
		direct.add("s", id, d)
		through.add("s", id, th)
	}
	ok := outcome{Status: passed}
	both("same", ok, ok)
	both("lost", ok, outcome{Status: failed, Text: "expected 400"})
	both("won", outcome{Status: warned}, ok)
	both("log", outcome{Status: "INFO"}, ok) // never seen directly
	both("twice", ok, ok)
	both("twice", ok, outcome{Status: skipped})
	direct.add("s", "gone", ok)
	through.add("s", "new", outcome{Status: failed, Text: "boom"})

	want := []difference{
		{Check: "s/gone", Direct: passed, Through: absent},
		{Check: "s/log", Direct: absent, Through: passed, Better: true},
		{Check: "s/lost", Direct: passed, Through: failed, Text: "expected 400"},
		{Check: "s/new", Direct: absent, Through: failed, Text: "boom"},
		{Check: "s/twice#2", Direct: passed, Through: skipped},
		{Check: "s/won", Direct: warned, Through: passed, Better: true},
	}
	if diff := cmp.Diff(want, compare(direct, through)); diff != "" {
		t.Errorf("compare (-want +got):\n%s", diff)
	}
}

func TestReadsWhatTheSuiteWrites(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name, "checks.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("server-ping-2026-11-15T02-06-12-741Z", `[{"id":"ping","status":"SUCCESS"},{"id":"seen","status":"INFO"}]`)
	write("auth/basic-cimd-2026-11-15T02-07-18-341Z", `[{"id":"token","status":"FAILURE","errorMessage":"no token"}]`)

	got, err := readResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := outcomes{
		{Scenario: "ping", ID: "ping"}:             {Status: passed},
		{Scenario: "auth/basic-cimd", ID: "token"}: {Status: failed, Text: "no token"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("readResults (-want +got):\n%s", diff)
	}
}

func TestAnEmptyResultFolderIsAnError(t *testing.T) {
	// Two empty sets are equal, so a suite that never ran would look perfect.
	if got, err := readResults(t.TempDir()); err == nil {
		t.Errorf("readResults = %v, want an error", got)
	}
}
