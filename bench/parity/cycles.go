package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// A launch is a way people start servers.
type launch struct {
	name   string
	argv   []string
	cycles int
	env    []string
}

// cycles starts and stops servers behind mcpmend and looks for what stayed.
func cycles(ctx context.Context, w *world) ([]finding, error) {
	small, err := w.rig.Go(ctx, rig.Small)
	if err != nil {
		return nil, err
	}
	npm, err := w.rig.NPM(ctx)
	if err != nil {
		return nil, err
	}
	many, few := 1000, 20
	if w.quick {
		many, few = 40, 2
	}
	var all []finding
	for _, l := range []launch{
		{name: "Go server", argv: []string{small}, cycles: many, env: os.Environ()},
		// The shell stays, and the server is its child.
		{name: "sh -c 'server; true'", argv: []string{"sh", "-c", small + "; true"}, cycles: many / 2, env: os.Environ()},
		// A grandchild that nobody tells to stop and that keeps stdout open.
		{name: "sh -c 'sleep & server; true'", argv: []string{"sh", "-c", "sleep 987 & " + small + "; true"}, cycles: many / 2, env: os.Environ()},
		{name: "npx", argv: npm.Npx("mcp-server-everything", "stdio"), cycles: few, env: npm.Environ()},
	} {
		for _, run := range []func(context.Context, launch) (finding, error){w.runCycles, w.sessionCycles} {
			found, err := run(ctx, l)
			if err != nil {
				found.Wrong = append(found.Wrong, err.Error())
			}
			all = append(all, found)
		}
	}
	return all, nil
}

// runCycles starts and stops mcpmend itself. Every other time it is told by a signal,
// the rest of the times by closing its stdin.
func (w *world) runCycles(ctx context.Context, l launch) (finding, error) {
	found := finding{Way: "run: " + l.name, Compared: l.cycles}
	mark := newMark()
	start := time.Now()
	for i := range l.cycles {
		c, err := child.Start(append([]string{w.mcpmend, "run", "--"}, l.argv...), "", append(l.env, mark))
		if err != nil {
			return found, err
		}
		stop := c.Stop
		if i%2 == 0 {
			stop = c.Hangup
		}
		if err := visit(ctx, raw.Stdio(c.Stdin, c.Stdout, func() error { _, err := stop(); return err })); err != nil {
			found.Wrong = append(found.Wrong, fmt.Sprintf("cycle %d: %v", i, err))
		}
	}
	found.Note = fmt.Sprintf("%.0f ms each", time.Since(start).Seconds()*1000/float64(l.cycles))
	found.Wrong = append(found.Wrong, leftover(ctx, mark, nil)...)
	return found, nil
}

// sessionCycles keeps one mcpmend on HTTP, and has client sessions come and go.
// Each legacy session has a server process of its own.
func (w *world) sessionCycles(ctx context.Context, l launch) (finding, error) {
	found := finding{Way: "sessions of run --http: " + l.name, Compared: l.cycles}
	warm, err := w.sessions(ctx, l, min(5, l.cycles))
	if err != nil {
		return found, err
	}
	after, err := w.sessions(ctx, l, l.cycles)
	if err != nil {
		return found, err
	}
	found.Wrong = append(after.wrong, after.leftProcesses...)
	// A pool or a cache may settle a little higher; a leak shows as many.
	slack := max(2, l.cycles/100)
	if after.fds > warm.fds+slack {
		found.Wrong = append(found.Wrong, fmt.Sprintf("%d file descriptors after a few sessions, %d after all", warm.fds, after.fds))
	}
	if after.goroutines > warm.goroutines+slack {
		found.Wrong = append(found.Wrong, fmt.Sprintf("%d goroutines after a few sessions, %d after all", warm.goroutines, after.goroutines))
	}
	found.Note = fmt.Sprintf("fds %d → %d, goroutines %d → %d", warm.fds, after.fds, warm.goroutines, after.goroutines)
	return found, nil
}

// state is what a host looks like once its sessions are gone.
type state struct {
	fds, goroutines int
	leftProcesses   []string
	wrong           []string
}

func (w *world) sessions(ctx context.Context, l launch, n int) (s state, err error) {
	mark := newMark()
	front, url, err := w.startFront(ctx, append(l.env, mark, "GOTRACEBACK=all"), append([]string{"--"}, l.argv...)...)
	if err != nil {
		return s, err
	}
	for i := range n {
		if err := visit(ctx, raw.HTTP(url)); err != nil {
			s.wrong = append(s.wrong, fmt.Sprintf("session %d: %v", i, err))
		}
	}
	s.leftProcesses = leftover(ctx, mark, front)
	if s.fds, err = child.FDs(front.PID()); err != nil {
		return s, err
	}
	if s.goroutines, err = front.Goroutines(); err != nil {
		return s, err
	}
	return s, nil
}

// visit is a short session: handshake, one call, goodbye.
func visit(ctx context.Context, client *raw.Client) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := client.Handshake(ctx)
	if err == nil {
		_, err = client.Call(ctx, `1`, "tools/list", `{}`)
	}
	if closing := client.Close(); err == nil {
		err = closing
	}
	return err
}

func newMark() string { return "PARITY_CYCLE=" + rand.Text() }

// leftover waits a moment for the last processes to go, and names those that
// do not: all that carry the mark, except the host, and the host's zombies.
func leftover(ctx context.Context, mark string, host *child.Child) []string {
	var left []string
	for deadline := time.Now().Add(3 * time.Second); ; {
		marked, err := child.Marked(mark)
		if err != nil {
			return []string{err.Error()}
		}
		left = nil
		for _, p := range marked {
			if host == nil || p.PID != host.PID() {
				left = append(left, "left behind: "+p.String())
			}
		}
		if host != nil {
			zombies, err := child.Zombies(host.PID())
			if err != nil {
				return []string{err.Error()}
			}
			for _, p := range zombies {
				left = append(left, "never waited for: "+p.String())
			}
		}
		if len(left) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			return left
		}
		time.Sleep(20 * time.Millisecond)
	}
}
