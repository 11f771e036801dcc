//go:build !linux

package upstream

import "os/exec"

// awaitExit returns when the process has ended. Here it is reaped on the way, so
// the Wait that follows returns at once.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }
