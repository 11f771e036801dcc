package machine

import (
	"strings"
	"testing"
)

func TestADesktopApplicationHasAnotherPath(t *testing.T) {
	for goos, want := range map[OS]string{"darwin": "/opt/homebrew", "linux": "/.nvm"} {
		if path := goos.GUIPath(); strings.Contains(path, want) || !strings.Contains(path, "/usr/bin") {
			t.Errorf("on %s: %q", goos, path)
		}
	}
	if strings.Contains(OS("darwin").GUIPath(), "/usr/local") {
		t.Error("launchd has no /usr/local/bin")
	}
}
