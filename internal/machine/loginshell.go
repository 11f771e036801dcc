package machine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// errNoLoginPath is returned if the login shell did not say its PATH.
var errNoLoginPath = errors.New("the login shell does not say its PATH")

const (
	shellLimit = 3 * time.Second
	// grace is what a shell that has answered gets to end by itself.
	grace = 200 * time.Millisecond
	// maxNoise is how much a start file may print before we stop listening.
	maxNoise = 4 << 20
)

// LoginPath is the PATH that the user's login shell has after all its start files,
// which is the one a terminal shows. The shell is asked once; it runs the user's
// own start files and a command that is always the same, so nothing from a
// configuration file ever reaches it. On Windows there are no start files and it
// is the variable PATH.
func (p *Programs) LoginPath(ctx context.Context) (string, error) {
	if p.OS.IsWindows() {
		return p.getenv("PATH"), nil
	}
	p.once.Do(func() { p.turn = make(chan struct{}, 1) })
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if p.asked {
		return p.path, p.err
	}
	path, err := p.askShell(ctx)
	if ctx.Err() != nil {
		return "", ctx.Err() // says nothing about the shell
	}
	p.asked, p.path, p.err = true, path, err
	return path, err
}

// askShell asks an interactive login shell first, since nvm and its like are set
// up in the interactive files. Some people's interactive files start another shell
// or a terminal multiplexer; then one that is only a login shell is asked.
func (p *Programs) askShell(ctx context.Context) (string, error) {
	limit := p.Timeout
	if limit == 0 {
		limit = shellLimit
	}
	shell := p.Shell
	if shell == "" {
		shell = p.getenv("SHELL")
	}
	if shell == "" {
		shell = "/bin/sh"
	}
	if !filepath.IsAbs(shell) || executable(shell, p.OS) != nil {
		return "", fmt.Errorf("%w: it cannot be started", errNoLoginPath)
	}
	flags := [][]string{{"-l", "-i"}, {"-l"}}
	switch filepath.Base(shell) {
	case "csh", "tcsh":
		flags = [][]string{{"-i"}, nil} // -l must stand alone there
	}
	for i, f := range flags {
		// Two thirds for the first, the rest for the second.
		attempt, cancel := context.WithTimeout(ctx, limit*time.Duration(2-i)/3)
		path, ok := p.shellPath(attempt, shell, f)
		cancel()
		if ok {
			return path, nil
		}
	}
	return "", errNoLoginPath
}

// shellPath starts a shell and reads what it prints between two marks; start files
// may print before and after.
func (p *Programs) shellPath(ctx context.Context, shell string, flags []string) (string, bool) {
	mark := "mcpmend" + rand.Text()
	ask := "printf %s " + mark + "; printenv PATH || /usr/bin/printenv PATH; printf %s " + mark
	r, w, err := os.Pipe()
	if err != nil {
		return "", false
	}
	defer r.Close()
	cmd := exec.Command(shell, append(flags, "-c", ask)...)
	cmd.Dir = p.home()
	cmd.Env = p.shellEnv(shell)
	cmd.Stdout = w
	ownSession(cmd)
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return "", false
	}
	// The leader is reaped last: until then nobody else gets its number, so that
	// killing its group hits what the start files have left running and nothing else.
	defer func() {
		killSession(cmd)
		_ = cmd.Wait()
	}()

	answer := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		readBetween(r, []byte(mark), answer)
	}()
	defer func() {
		_ = r.Close() // ends the reader
		<-ended
	}()
	select {
	case <-ctx.Done():
		return "", false
	case path := <-answer:
		select {
		case <-ended:
		case <-time.After(grace):
		}
		return path, path != ""
	case <-ended:
		select {
		case path := <-answer:
			return path, path != ""
		default:
			return "", false
		}
	}
}

// readBetween sends what stands between two marks, and reads on to the end, so
// that the writer is never kept waiting.
func readBetween(r *os.File, mark []byte, answer chan<- string) {
	var seen []byte
	buf := make([]byte, 32<<10)
	sent := false
	for total := 0; total < maxNoise; {
		n, err := r.Read(buf)
		total += n
		if !sent {
			seen = append(seen, buf[:n]...)
			if _, after, ok := bytes.Cut(seen, mark); ok {
				if path, _, ok := bytes.Cut(after, mark); ok {
					answer <- string(bytes.TrimRight(path, "\n"))
					sent = true
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// shellEnv is what a login gives a shell. Our own environment is left out: it may
// have been changed by a terminal, a project or a virtual environment.
func (p *Programs) shellEnv(shell string) []string {
	env := []string{
		"HOME=" + p.home(),
		"SHELL=" + shell,
		"PATH=" + p.OS.GUIPath(),
		"TERM=dumb",
		// No questions and no news, please.
		"DISABLE_AUTO_UPDATE=true",
		"ZSH_TMUX_AUTOSTART=false",
	}
	for _, name := range []string{"USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		if v := p.getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}
