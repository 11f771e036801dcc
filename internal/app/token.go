package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Token is the secret that HTTP clients must present, and where a person finds
// it. given is one the user set and wins; else it is read from file, which is made
// for its owner alone if it does not exist. file "" means the state folder.
func Token(given, file string) (token, where string, err error) {
	if given != "" {
		return given, "MCPMEND_TOKEN", nil
	}
	if file == "" {
		dir, err := stateFolder(os.Getenv)
		if err != nil {
			return "", "", err
		}
		file = filepath.Join(dir, "token")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(file)
	}
	if err != nil {
		return "", "", err
	}
	token = strings.TrimSpace(string(text))
	if len(token) < 16 {
		return "", "", fmt.Errorf("the token in %s is too short to protect anything", file)
	}
	return token, file, nil
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
