//go:build !unix

package app

import (
	"os"
	"os/exec"
)

// execServer runs the server on our own handles and ends as it ends: this system
// cannot replace one program by another.
func execServer(command, environ []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState == nil {
			return err
		}
		os.Exit(cmd.ProcessState.ExitCode())
	}
	os.Exit(0)
	return nil
}
