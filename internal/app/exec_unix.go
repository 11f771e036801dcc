//go:build unix

package app

import (
	"os/exec"
	"syscall"
)

func execServer(command, environ []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, command, environ)
}
