package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Token is the secret that HTTP clients must present, and where a person finds
// it. given is one the user set and wins; else it is read from file, which is made
// for its owner alone if it does not exist. file "" means the state folder.
func Token(given, file string) (token, where string, err error) {
	if given != "" {
		if len(given) < leastToken {
			return "", "", fmt.Errorf("MCPMEND_TOKEN is too short to protect anything: it needs at least %d characters", leastToken)
		}
		return given, "MCPMEND_TOKEN", nil
	}
	if file == "" {
		dir, err := stateFolder(os.Getenv)
		if err != nil {
			return "", "", err
		}
		file = filepath.Join(dir, "token")
	}
	token, err = readToken(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(file)
	}
	return token, file, err
}

// leastToken is how many characters a token has at least.
const leastToken = 16

// readToken reads a token that is its owner's alone.
func readToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	// The mode of what is no file, such as a pipe from a password manager, says nothing;
	// nor does that of a file on Windows.
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return "", fmt.Errorf("the token in %s can be read by others (mode %03o); type chmod 600 for it, and make a new one if others may have seen it", file, mode.Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < leastToken {
		return "", fmt.Errorf("the token in %s is too short to protect anything: it needs at least %d characters", file, leastToken)
	}
	return token, nil
}

func makeToken(file string) (token, where string, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return Token("", file) // another process was first
	}
	if err != nil {
		return "", "", err
	}
	token = rand.Text()
	_, werr := f.WriteString(token + "\n")
	return token, file, errors.Join(werr, f.Close())
}
