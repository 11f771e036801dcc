//go:build unix

package clientconfig

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe without a writer would wait for one.
func TestAPipeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	wantUnreadable(t, path, "not a regular file")
}

func TestADeviceIsNotRead(t *testing.T) { wantUnreadable(t, "/dev/zero", "not a regular file") }
