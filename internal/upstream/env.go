package upstream

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// ownSecrets are the keys with which we ourselves may speak to a model. A
// server has no business with them, unless its own entry names them: that cannot be
// seen in an environment, so whoever knows the entry says so.
var ownSecrets = []string{
	"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
	"MISTRAL_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "AZURE_OPENAI_API_KEY",
}

// PassedOn is the environment for a server that a client starts through us: what
// the client gave us, since a wrapped server's token arrives that way, less what
// is ours alone. also are names of keys to pass on all the same.
func PassedOn(environ []string, also ...string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "MCPMEND_") || IsModelKey(name) && !slices.Contains(also, name)
	})
}

// IsModelKey reports whether a variable holds the key of a model by its name.
func IsModelKey(name string) bool { return slices.Contains(ownSecrets, name) }

// harmless are the variables programs need to find their files and no more.
var harmless = []string{
	"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA",
	"PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// Configured is the environment for a server that a gateway starts: what its
// entry says, and of ours only what is on a short list.
func Configured(environ, entry []string) []string {
	out := slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		return !slices.Contains(harmless, name)
	})
	return append(out, entry...)
}

// secretsIn hides the secrets of an environment and a command line in what a server
// writes: its last words go to a model, and a server may well print the token it was given.
func secretsIn(environ, command []string) *secret.Hider {
	h := secret.New()
	h.AddEnviron(environ)
	h.AddArgs(command)
	return h
}

// lookPathIn finds a program in the PATH of the given environment.
func lookPathIn(name string, environ []string) (string, error) {
	path, found := "", false
	for _, e := range environ {
		key, value, _ := strings.Cut(e, "=")
		if key == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(key, "PATH") {
			path, found = value, true
		}
	}
	if environ == nil || found && path == os.Getenv("PATH") {
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			continue // the current directory is no place to find a server by accident
		}
		if full, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return full, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
