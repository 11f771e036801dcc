package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// change writes another command into a file and returns the ID of the change.
func change(t *testing.T, s *Store, path string) string {
	t.Helper()
	f := open(path)
	command := "a"
	if f.Server("a").Command.Text == "a" {
		command = "b"
	}
	f, err := f.Set(Path{"mcpServers", "a", "command"}, command)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// ids are those of the history of a file, the oldest first.
func ids(t *testing.T, s *Store, path string) []string {
	t.Helper()
	all, err := s.History()
	if err != nil {
		t.Fatal(err)
	}
	var of []string
	for _, c := range slices.Backward(all) {
		if c.Path == path {
			of = append(of, c.ID)
		}
	}
	return of
}

func TestOldChangesAreForgottenBeyondTheLastOfEachFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := aFile(t, sample)
		quiet := filepath.Join(filepath.Dir(f.Path), "quiet.json")
		put(t, quiet, sample)
		first := change(t, s, quiet)
		var made []string
		for range KeptChanges + 5 {
			time.Sleep(time.Hour)
			made = append(made, change(t, s, f.Path))
		}
		if got := ids(t, s, f.Path); !slices.Equal(got, made) {
			t.Fatalf("%d changes of the last days are left, want all %d", len(got), len(made))
		}

		// The next day the month of two of them is over.
		time.Sleep(KeptFor - time.Duration(KeptChanges+2)*time.Hour - time.Minute)
		made = append(made, change(t, s, f.Path))
		if got := ids(t, s, f.Path); !slices.Equal(got, made[2:]) {
			t.Errorf("%d changes are left, want the %d of the last 30 days", len(got), len(made)-2)
		}

		time.Sleep(2 * KeptFor)
		made = append(made, change(t, s, f.Path))
		if got, want := ids(t, s, f.Path), made[len(made)-KeptChanges:]; !slices.Equal(got, want) {
			t.Errorf("%d changes are left, want the last %d", len(got), KeptChanges)
		}
		if got := ids(t, s, quiet); !slices.Equal(got, []string{first}) {
			t.Errorf("the only change of another file is gone: %v", got)
		}
		if _, err := s.Restore(t.Context(), first); err != nil || content(t, quiet) != sample {
			t.Errorf("an old change that is listed cannot be undone: %v", err)
		}
		wantClean(t, s, f.Path)
	})
}

// Half of a forgotten change would be listed, and could not be undone.
func TestBeingStoppedWhileForgettingLeavesNoHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := aFile(t, sample)
		for range KeptChanges + 3 {
			change(t, s, f.Path)
			time.Sleep(time.Second)
		}
		time.Sleep(2 * KeptFor)
		stops := 0
		s.Step = func(step string) error {
			if strings.HasPrefix(step, "forget") {
				stops++
				return errStop
			}
			return nil
		}
		change(t, s, f.Path) // is no failure: the file was written
		if stops != 1 {
			t.Fatalf("stopped %d times, want once", stops)
		}
		s.Step = nil
		for _, id := range ids(t, s, f.Path) {
			if _, err := s.Before(id); err != nil {
				t.Errorf("%s is listed and has no copy: %v", id, err)
			}
		}
		change(t, s, f.Path)
		if got := ids(t, s, f.Path); len(got) != KeptChanges {
			t.Errorf("%d changes are left after the next write, want %d", len(got), KeptChanges)
		}
		wantClean(t, s, f.Path)
	})
}
