package machine

import "os/exec"

const dontWait = 0

// There is no login shell on Windows, so these are never needed.
func ownSession(*exec.Cmd) {}

func killSession(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}
