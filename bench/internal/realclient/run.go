package realclient

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const usualTimeout = time.Minute

// run starts the client with stdin at its end and waits for it.
func (c *Client) run(ctx context.Context, s Setup, k kind, args []string) Output {
	ctx, stop := context.WithTimeout(ctx, s.timeout())
	defer stop()
	cmd, err := c.command(ctx, s, args)
	if err != nil {
		return Output{Exit: -1, Err: err}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	out := Output{
		Command: c.ID + " " + strings.Join(args, " "), kind: k,
		Stdout: stdout.String(), Stderr: stderr.String(),
		Exit: -1, Took: time.Since(start), TimedOut: errors.Is(ctx.Err(), context.DeadlineExceeded),
	}
	if cmd.ProcessState == nil {
		out.Err = err
		return out
	}
	out.Exit = cmd.ProcessState.ExitCode()
	sweep(cmd)
	return out
}

// command is the client in a process group of its own, which is killed with the
// context: a server that hangs would otherwise stay behind.
func (c *Client) command(ctx context.Context, s Setup, args []string) (*exec.Cmd, error) {
	if c.argv == nil {
		return nil, errors.New(c.ID + " is not installed")
	}
	env := append(c.environ(s), c.env...)
	argv := c.argv
	if c.trust != nil {
		more, vars, err := c.trust(s)
		if err != nil {
			return nil, err
		}
		argv, env = append(argv[:len(argv):len(argv)], more...), append(env, vars...)
	}
	argv = append(argv[:len(argv):len(argv)], args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.Project, append(env, s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what has left the group and still holds stdout
	return cmd, nil
}

// sweep ends what a client has left in its group. Nothing is there most of the time.
func sweep(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func (c *Client) environ(s Setup) []string {
	const nowhere = "http://127.0.0.1:9" // the discard port
	const here = "127.0.0.1,localhost,::1"
	in := func(name string) string { return filepath.Join(s.Home, name) }
	return []string{
		"HOME=" + s.Home, "USER=bench", "LOGNAME=bench", "SHELL=/bin/sh", "PATH=" + c.path,
		"LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "CI=1",
		"XDG_CONFIG_HOME=" + in(".config"), "XDG_DATA_HOME=" + in(".local/share"),
		"XDG_STATE_HOME=" + in(".local/state"), "XDG_CACHE_HOME=" + in(".cache"),
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "ALL_PROXY=" + nowhere, "NO_PROXY=" + here,
		"http_proxy=" + nowhere, "https_proxy=" + nowhere, "all_proxy=" + nowhere, "no_proxy=" + here,
	}
}

func (s Setup) timeout() time.Duration {
	if s.Timeout == 0 {
		return usualTimeout
	}
	return s.Timeout
}
