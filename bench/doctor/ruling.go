package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/doctor/judge"
	"github.com/mcpmend/mcpmend/bench/internal/realclient"
)

// What mcpmend claims by a state. Of a server that it has not started it claims nothing,
// and one that is degraded works in some clients and not in others.
var (
	claimsWell   = []string{"healthy"}
	claimsBroken = []string{"dead", "unresponsive", "sign-in", "skipped", "unreadable", "misplaced"}
)

// ruling has the judge look at the server, and notes where mcpmend says something else.
func (e *examiner) ruling(ctx context.Context, state string) (why, err error) {
	journal, err := os.ReadFile(e.world.words["JOURNAL"])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	why = judge.Works(ctx, judge.Machine{Home: e.world.path("home"), Project: e.world.path("project"), Env: e.world.env}, e.setup.Client, e.setup.Scope, e.setup.Server)
	// What the judge has run was not mcpmend.
	if journal == nil {
		err = os.Remove(e.world.words["JOURNAL"])
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = os.WriteFile(e.world.words["JOURNAL"], journal, 0o644)
	}
	if why != nil {
		why = errors.New(e.world.unfill(why.Error()))
	}
	switch {
	case why != nil && slices.Contains(claimsWell, state):
		e.v.Differs = append(e.v.Differs, fmt.Sprintf("mcpmend says %s, the judge: %v", state, why))
	case why == nil && slices.Contains(claimsBroken, state):
		e.v.Differs = append(e.v.Differs, fmt.Sprintf("mcpmend says %s, and the judge can use it", state))
	}
	return why, err
}

// secondOpinion has the judge look at a server that nobody has mended yet.
func (e *examiner) secondOpinion(ctx context.Context, state string) error {
	if !slices.Contains(claimsWell, state) && !slices.Contains(claimsBroken, state) {
		return nil
	}
	// A package runner that was asked installs, and the set-up is another one then.
	if slices.ContainsFunc(e.setup.Parts, func(p part) bool { return p.kind == "npm" }) {
		return nil
	}
	if limit, err := time.ParseDuration(e.setup.Timeout); err == nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	_, err := e.ruling(ctx, state)
	return err
}

// realSays is what the real client said of a server that mcpmend says is mended.
type realSays struct {
	Client    string `json:"client"`
	Connected bool   `json:"connected"`
	Text      string `json:"text,omitempty"`
}

// askReal shows the mended file to the client whose file it is, in a copy of the home
// folder: clients write to theirs.
func (e *examiner) askReal(ctx context.Context) error {
	if e.real == nil || e.setup.Server == "" {
		return nil
	}
	home := e.world.path("real-home")
	if err := errors.Join(os.RemoveAll(home), os.CopyFS(home, os.DirFS(e.world.path("home")))); err != nil {
		return err
	}
	env := []string{"PATH=" + e.world.path("bin") + ":" + e.tools.path, "TMPDIR=" + e.world.path("tmp")}
	for _, v := range e.setup.Env {
		env = append(env, e.world.fill(v))
	}
	// Clients give up early on a busy machine, which is no fault of the file: best of two.
	for range 2 {
		out := e.real.Connect(ctx, realclient.Setup{Home: home, Project: e.world.path("project"), Env: env, Timeout: time.Minute})
		if out.Err != nil {
			return out.Err
		}
		v := e.real.Verdict(out, e.setup.Server)
		e.v.Real = &realSays{e.real.ID, v.State == realclient.OK, strings.TrimSpace(e.world.unfill(v.Text))}
		if e.v.Real.Connected {
			break
		}
	}
	return nil
}
