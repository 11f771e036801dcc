//go:build unix

package mcpmend_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestClosingEndsTheWholeProcessGroup(t *testing.T) {
	tr := testServer(t)
	pidFile := t.TempDir() + "/pid"
	tr.Command = []string{"sh", "-c", `sleep 1000 & echo $! > "$0"; exec "$1"`, pidFile, os.Args[0]}
	s := connect(t, tr, "")
	if _, err := call(t, s, "echo", text{"x"}); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	var pid int
	data, _ := os.ReadFile(pidFile)
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		t.Fatalf("no pid of the grandchild: %q", data)
	}
	if err := syscall.Kill(pid, 0); err == nil && !isZombie(pid) {
		t.Errorf("grandchild %d is alive after Close", pid)
	}
}

// isZombie: killed and not yet reaped by whoever inherited it.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
