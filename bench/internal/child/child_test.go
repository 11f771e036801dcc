package child

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

func TestALineOfStderrIsWaitedFor(t *testing.T) {
	c, err := Start([]string{"sh", "-c", `echo noise >&2; echo "x: listening on http://here" >&2; cat`}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Line(t.Context(), "listening on "); got != "http://here" {
		t.Errorf("Line = %q, %v; want the URL", got, err)
	}
	state, err := c.Hangup()
	if err != nil || !state.Success() {
		t.Errorf("Hangup: %v, %v; want a clean end", state, err)
	}
}

func TestAProcessThatNeverSaysItIsQuoted(t *testing.T) {
	c, err := Start([]string{"sh", "-c", "echo cannot bind >&2"}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.Line(ctx, "listening on "); err == nil || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("Line: %v; want an error with the process's own words", err)
	}
}

func TestDescendantsAreFoundByTheirMark(t *testing.T) {
	const mark = "CHILD_TEST_MARK=7f3a"
	// The grandchild leaves the process group and outlives its parent.
	c, err := Start([]string{"sh", "-c", "setsid sleep 60 & echo started >&2; exec cat"}, "", append(os.Environ(), mark))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Line(t.Context(), "started"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Hangup(); err != nil {
		t.Fatal(err)
	}
	left, err := Marked(mark)
	if err != nil || len(left) != 1 || !strings.Contains(left[0].Command, "sleep 60") {
		t.Errorf("Marked = %v, %v; want the sleeping grandchild", left, err)
	}
	for _, p := range left {
		if process, err := os.FindProcess(p.PID); err == nil {
			_ = process.Kill()
		}
	}
}

func TestCPUTimeIsFinerThanATick(t *testing.T) {
	c, err := Start([]string{"sh", "-c", `while read -r line; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo; done`}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	var spent []time.Duration
	answer := make([]byte, 1)
	for range 2 {
		if _, err := c.Stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Stdout.Read(answer); err != nil {
			t.Fatal(err)
		}
		cpu, err := CPU(c.PID())
		if err != nil {
			t.Fatal(err)
		}
		spent = append(spent, cpu)
	}
	if d := spent[1] - spent[0]; d <= 0 || d%(10*time.Millisecond) == 0 {
		t.Errorf("CPU time went from %v to %v; want it to grow by less than whole ticks", spent[0], spent[1])
	}
}
