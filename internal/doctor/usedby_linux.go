package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// usedBy says whether a running process works in a folder: it is its working
// folder, or stands on its command line.
func usedBy(folder string) (used, known bool) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) == 0 {
		return false, false
	}
	for _, p := range processes {
		if cwd, err := os.Readlink(filepath.Join(p, "cwd")); err == nil && (cwd == folder || strings.HasPrefix(cwd, folder+"/")) {
			return true, true
		}
		if line, err := os.ReadFile(filepath.Join(p, "cmdline")); err == nil && bytes.Contains(line, []byte(folder)) {
			return true, true
		}
	}
	return false, true
}
