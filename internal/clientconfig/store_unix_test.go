//go:build unix

package clientconfig

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestTheOwnerStays(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	s, f := aFile(t, sample)
	if err := os.Chown(f.Path, 12345, 54321); err != nil {
		t.Skip(err)
	}
	if _, err := s.Save(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 54321 {
		t.Errorf("the owner is now %d:%d", st.Uid, st.Gid)
	}
}

// A file may turn into a pipe between reading and writing.
func TestAPipeIsNotWritten(t *testing.T) {
	s, f := aFile(t, sample)
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(f.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), f); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
	if info, _ := os.Lstat(f.Path); info.Mode()&os.ModeNamedPipe == 0 {
		t.Error("the pipe is gone")
	}
}

func TestAPipeAmongTheRecordsIsNotWaitedFor(t *testing.T) {
	s, f := aFile(t, sample)
	c, err := s.Save(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.folder("abcdef"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(s.folder("abcdef"), "change.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := s.History()
	if err != nil || len(all) != 1 || all[0].ID != c.ID {
		t.Errorf("history %v, %v", all, err)
	}
}
