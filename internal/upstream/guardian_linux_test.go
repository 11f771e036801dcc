package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shells are those of this machine that could be /bin/sh somewhere.
func shells(t *testing.T) map[string]string {
	found := map[string]string{"sh": "/bin/sh"}
	for _, name := range []string{"dash", "bash", "busybox"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		found[name] = filepath.Join(t.TempDir(), "sh") // busybox goes by the name it is called
		if err := os.Symlink(path, found[name]); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestAGuardianKillsWhatIsStillThere(t *testing.T) {
	for name, shell := range shells(t) {
		for _, ownGroup := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, own group %v", name, ownGroup), func(t *testing.T) {
				g := startGuardian(shell)
				if g == nil {
					t.Fatal("it does not start")
				}
				kept, ended := family(t, ownGroup), family(t, ownGroup)
				g.started('+', kept[0])
				g.started('+', ended[0])
				g.ended(kept[0])
				g.tell(fmt.Sprintf("+ %d 1\n", kept[0])) // a number that another process has had
				g.dismiss()
				eventually(t, func() bool { return !lives(ended[0]) && !lives(ended[1]) })
				if !lives(kept[0]) || !lives(kept[1]) {
					t.Error("it killed what had ended for it, or what only has the number of another")
				}
			})
		}
	}
}

func TestTheKernelEndsAServerOnlyWithoutAGuardian(t *testing.T) {
	if startGuardian("/no/such/shell") != nil {
		t.Fatal("a guardian without a shell")
	}
	for _, guard := range []*guardian{nil, startGuardian("/bin/sh")} {
		spec := &Spec{DieWithUs: true, Reaper: &Reaper{guardian: guard, live: make(map[int][]int)}}
		tree := newTree(exec.Command("true"), spec)
		if err := tree.start(); err != nil {
			t.Fatal(err)
		}
		tree.reap()
		if byKernel := tree.SysProcAttr.Pdeathsig != 0; byKernel == (guard != nil) {
			t.Errorf("guardian %v, ended by the kernel %v", guard != nil, byKernel)
		}
		guard.dismiss()
	}
}

// family is a shell and its child.
func family(t *testing.T, ownGroup bool) [2]int {
	t.Helper()
	c := exec.Command("sh", "-c", "sleep 600; true")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: ownGroup}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var below []int
	eventually(t, func() bool {
		below = children(c.Process.Pid)
		return len(below) == 1
	})
	t.Cleanup(func() {
		_ = c.Process.Kill()
		if lives(below[0]) {
			_ = syscall.Kill(below[0], syscall.SIGKILL)
		}
		_ = c.Wait()
	})
	return [2]int{c.Process.Pid, below[0]}
}

func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, happened func() bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("waited in vain")
		}
	}
}
