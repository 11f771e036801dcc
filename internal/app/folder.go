package app

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
)

// stateFolder is where we keep what must outlive the process: MCPMEND_STATE, or
// the system's place for such things.
func stateFolder(getenv func(string) string) (string, error) {
	if dir := getenv("MCPMEND_STATE"); dir != "" {
		if !filepath.IsAbs(dir) {
			// It would be another one in each folder, and a project could bring its own.
			return "", errors.New("MCPMEND_STATE has to be an absolute path")
		}
		return dir, nil
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // others are to be ignored
		return filepath.Join(dir, "mcpmend"), nil
	}
	if dir := getenv("LOCALAPPDATA"); dir != "" && runtime.GOOS == "windows" {
		return filepath.Join(dir, "mcpmend", "state"), nil
	}
	home := homeFolder(getenv)
	if home == "" {
		return "", errors.New("there is no home folder to keep state in: set MCPMEND_STATE")
	}
	return filepath.Join(home, ".local", "state", "mcpmend"), nil
}

// homeFolder is the user's, "" if nobody says which.
func homeFolder(getenv func(string) string) string {
	if runtime.GOOS == "windows" {
		return getenv("USERPROFILE")
	}
	return getenv("HOME")
}

// lookup reads a variable of an environment that need not be our own.
func lookup(environ []string) func(string) string {
	return func(name string) string {
		for i := len(environ) - 1; i >= 0; i-- {
			if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
				return value
			}
		}
		return ""
	}
}
