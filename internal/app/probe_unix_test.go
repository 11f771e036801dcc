//go:build unix

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// playVar makes the test binary one of the servers below.
const playVar = "MCPMEND_TEST_PLAY"

func TestMain(m *testing.M) {
	if role := os.Getenv(playVar); role != "" {
		play(role)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// roles are more of what the test binary can be; one that returns is a good server.
var roles = map[string]func(value string){}

// atEnd is what a server does before it leaves.
var atEnd = func() {}

// play is a server with a quirk.
func play(role string) {
	quirk, value, _ := strings.Cut(role, "=")
	if do := roles[quirk]; do != nil {
		do(value)
	}
	switch quirk {
	case "dies":
		fmt.Fprintln(os.Stderr, "Error: NOTION_TOKEN environment variable is required")
		os.Exit(3)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hangs":
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "still loading, token is "+os.Getenv("SOME_TOKEN"))
		child := exec.Command("sleep", "600")
		if err := child.Start(); err == nil {
			_ = os.WriteFile(value, []byte(strconv.Itoa(child.Process.Pid)), 0o600)
		}
		select {}
	case "fetches":
		d, _ := time.ParseDuration(value)
		time.Sleep(d) // as a package runner on its first start
	case "fetches late":
		d, _ := time.ParseDuration(value)
		time.Sleep(d)
		server := exec.Command("sleep", "600") // now it has a child, as a runner that is done
		_ = server.Start()
		time.Sleep(d)
	case "noisy":
		fmt.Println("Server is ready!")
	case "babbles":
		fmt.Println("Server is ready!")
		select {}
	case "relapses":
		if f, err := os.OpenFile(value, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = f.Close()
			quirk = "once"
		}
	case "locked":
		f, err := os.OpenFile(value, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000")
			os.Exit(1)
		}
		_ = f.Close()
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if quirk == "stays" {
				select {}
			}
			atEnd()
			return
		}
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Cursor string
				Name   string
			}
		}
		if json.Unmarshal(line, &q) != nil || q.ID == nil || q.Method == "" {
			continue
		}
		if quirk == "speechless" && q.Method == "tools/list" {
			os.Exit(7)
		}
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", q.ID, reply(quirk, q.Method, q.Params.Cursor, q.Params.Name))
		if quirk == "once" {
			os.Exit(7)
		}
	}
}

func reply(quirk, method, cursor, name string) string {
	switch method {
	case "initialize":
		if quirk == "refuses" {
			return `"error":{"code":-32602,"message":"Unsupported protocol version"}`
		}
		return `"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"player","version":"1.2"}}`
	case "tools/list":
		switch {
		case quirk == "toolless":
			return `"error":{"code":-32601,"message":"Method not found"}`
		case quirk == "circles":
			return `"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"` + cursor + `x"}`
		case cursor == "":
			return `"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}}],"nextCursor":"2"}`
		}
		return `"result":{"tools":[{"name":"two","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		if name != "one" {
			return `"result":{"isError":true,"content":[{"type":"text","text":"no such tool"}]}`
		}
		return `"result":{"content":[{"type":"text","text":"done"}]}`
	}
	return `"error":{"code":-32601,"message":"Method not found"}`
}

// playing is a Start of the test binary in one of its roles.
func playing(t *testing.T, role string) doctor.Start {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Start{
		Command: []string{self, "-test.run=none"},
		Env:     []string{playVar + "=" + role, "PATH=" + os.Getenv("PATH"), "SOME_TOKEN=canary-0123456789"},
		Timeout: 20 * time.Second,
	}
}

// until waits for something that will happen soon.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestClimbsAllRungsOfAServerThatWorks(t *testing.T) {
	start := playing(t, "good")
	start.Call = &doctor.Call{Tool: "one", Arguments: []byte(`{"a":1}`)}
	saw := Probe(t.Context(), start)
	if saw.Fault != nil {
		t.Fatalf("fault %v, want none; stderr %q", saw.Fault, saw.Fault.Stderr)
	}
	want := []string{"start ok", "pure ok", "handshake ok", "tools ok", "call ok"}
	if diff := cmp.Diff(want, rungs(saw.Steps)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	info := &doctor.Info{Name: "player", Version: "1.2", Protocol: "2025-06-18", Transport: "stdio", Tools: []string{"one", "two"}}
	if diff := cmp.Diff(info, saw.Info); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	if saw.Transport != clientconfig.Stdio || len(saw.Tools) != 2 || string(saw.Tools[1].InputSchema) != `{"type":"object"}` {
		t.Errorf("transport %q, tools %+v", saw.Transport, saw.Tools)
	}
	if saw.ToolError || !strings.Contains(string(saw.Result), "done") {
		t.Errorf("result %s, tool error %v", saw.Result, saw.ToolError)
	}
}

func TestSaysHowFarABrokenServerGot(t *testing.T) {
	for _, test := range []struct {
		role  string
		rungs []string
		kind  fault.Kind
		check func(*testing.T, doctor.Sighting)
	}{
		{"dies", []string{"start broken"}, fault.MissingEnvVar, func(t *testing.T, saw doctor.Sighting) {
			if !saw.Fault.Exited || saw.Fault.ExitCode != 3 || len(saw.Fault.Stderr) != 1 {
				t.Errorf("evidence %+v, want exit code 3 and a line of stderr", saw.Fault.Evidence)
			}
		}},
		{"killed", []string{"start broken"}, fault.ServerCrashed, func(t *testing.T, saw doctor.Sighting) {
			if saw.Fault.Signal != "SIGKILL" {
				t.Errorf("signal %q, want SIGKILL", saw.Fault.Signal)
			}
		}},
		{"refuses", []string{"start ok", "pure ok", "handshake broken"}, fault.ProtocolVersion, func(t *testing.T, saw doctor.Sighting) {
			if saw.Fault.RPCCode != -32602 {
				t.Errorf("code %d, want -32602", saw.Fault.RPCCode)
			}
		}},
		{"speechless", []string{"start ok", "pure ok", "handshake ok", "tools broken"}, fault.ServerCrashed, func(t *testing.T, saw doctor.Sighting) {
			if saw.Fault.ExitCode != 7 || saw.Info == nil {
				t.Errorf("exit code %d, info %v; want 7 and what the server said before", saw.Fault.ExitCode, saw.Info)
			}
		}},
	} {
		t.Run(test.role, func(t *testing.T) {
			saw := Probe(t.Context(), playing(t, test.role))
			if saw.Fault == nil || saw.Fault.Kind != test.kind {
				t.Fatalf("fault %+v, want %s", saw.Fault, test.kind)
			}
			if diff := cmp.Diff(test.rungs, rungs(saw.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			test.check(t, saw)
		})
	}
}

func TestAServerThatHasToBeStartedTwiceIsNotWell(t *testing.T) {
	p := &prober{start: playing(t, "relapses="+filepath.Join(t.TempDir(), "seen")), began: time.Now()}
	if flt := p.open(); flt != nil {
		t.Fatal(flt)
	}
	defer p.close()
	result, flt := p.ask(t.Context(), "initialize", []byte("{}"))
	if flt != nil {
		t.Fatal(flt)
	}
	p.introduced(result)
	// Once its end was noticed the session starts another.
	until(t, "the end is noticed", func() bool { return p.lost.Load() != nil })
	if flt := p.list(t.Context()); flt == nil || flt.ExitCode != 7 {
		t.Fatalf("fault %+v, want the end of the first process", flt)
	}
}

func TestNoiseIsRecordedAndReadPast(t *testing.T) {
	saw := Probe(t.Context(), playing(t, "noisy"))
	if saw.Fault != nil {
		t.Fatal(saw.Fault)
	}
	want := []string{"start ok", "pure broken", "handshake ok", "tools ok"}
	if diff := cmp.Diff(want, rungs(saw.Steps)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Server is ready!"}, saw.Noise); diff != "" {
		t.Errorf("noise (-want +got):\n%s", diff)
	}
}

func TestNoiseIsNotWhyNothingCame(t *testing.T) {
	start := playing(t, "babbles")
	start.Timeout = 500 * time.Millisecond
	saw := Probe(t.Context(), start)
	if saw.Fault == nil || saw.Fault.Kind != fault.Timeout || fault.Diagnose(saw.Fault.Evidence).Kind != fault.Timeout {
		t.Fatalf("fault %+v, want a timeout", saw.Fault)
	}
	if diff := cmp.Diff([]string{"start ok", "pure broken", "handshake broken"}, rungs(saw.Steps)); diff != "" || len(saw.Noise) != 1 {
		t.Errorf("noise %q, steps (-want +got):\n%s", saw.Noise, diff)
	}
}

func TestAServerWithoutToolsIsNoFault(t *testing.T) {
	if saw := Probe(t.Context(), playing(t, "toolless")); saw.Fault != nil || len(saw.Tools) != 0 {
		t.Errorf("fault %v, tools %v; want neither", saw.Fault, saw.Tools)
	}
}

func TestAListThatRunsInCirclesEnds(t *testing.T) {
	saw := Probe(t.Context(), playing(t, "circles"))
	if saw.Fault != nil || len(saw.Tools) != mostPages {
		t.Errorf("fault %v, %d tools; want %d", saw.Fault, len(saw.Tools), mostPages)
	}
}

func TestAToolThatFailsIsNoFaultOfTheServer(t *testing.T) {
	start := playing(t, "good")
	start.Call = &doctor.Call{Tool: "other"}
	if saw := Probe(t.Context(), start); saw.Fault != nil || !saw.ToolError {
		t.Errorf("fault %v, tool error %v; want the latter alone", saw.Fault, saw.ToolError)
	}
}

func TestAHungServerEndsInTimeWithAllItStarted(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pid")
	start := playing(t, "hangs="+note)
	start.Timeout = 1500 * time.Millisecond
	began := time.Now()
	saw := Probe(t.Context(), start)
	if took := time.Since(began); took > start.Timeout+3*time.Second {
		t.Errorf("took %v, want little more than %v", took, start.Timeout)
	}
	if saw.Fault == nil || saw.Fault.Kind != fault.Timeout {
		t.Fatalf("fault %+v, want a timeout", saw.Fault)
	}
	if diff := cmp.Diff([]string{"start ok", "pure ok", "handshake broken"}, rungs(saw.Steps)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"still loading, token is [SOME_TOKEN]"}, saw.Fault.Stderr); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
	gone(t, note)
}

func TestAPackageRunnerIsNotEndedInTheMiddleOfAnInstallation(t *testing.T) {
	for _, test := range []struct {
		program string
		works   bool
	}{{"npx", true}, {"server", false}} {
		s := playing(t, "fetches=1500ms")
		link := filepath.Join(t.TempDir(), test.program)
		if err := os.Symlink(s.Command[0], link); err != nil {
			t.Fatal(err)
		}
		s.Command[0], s.Timeout = link, 200*time.Millisecond
		saw := Probe(t.Context(), s)
		if works := saw.Fault == nil; works != test.works {
			t.Errorf("%s that is silent for 1.5 s with a limit of 0.2 s: works %v (%v), want %v", test.program, works, saw.Fault, test.works)
		}
	}
}

func TestAServerThatWasFetchedHasItsTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nobody sees there when a runner is done")
	}
	s := playing(t, "fetches late=1400ms")
	link := filepath.Join(t.TempDir(), "npx")
	if err := os.Symlink(s.Command[0], link); err != nil {
		t.Fatal(err)
	}
	s.Command[0], s.Timeout = link, 2*time.Second
	if saw := Probe(t.Context(), s); saw.Fault != nil {
		t.Errorf("fetched for 1.4 s, answers 1.4 s later, and has 2 s: %v", saw.Fault)
	}
}

func TestNothingIsLeftWhenTheCallerGoesAway(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan doctor.Sighting)
	go func() { done <- Probe(ctx, playing(t, "hangs="+note)) }()
	until(t, "it runs", func() bool {
		text, err := os.ReadFile(note)
		return err == nil && len(text) > 0
	})
	began := time.Now()
	cancel()
	saw := <-done
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v to come back", took)
	}
	if saw.Fault == nil || saw.Fault.Delivery != fault.Cancelled {
		t.Errorf("fault %+v, want one that says it was given up", saw.Fault)
	}
	gone(t, note)
}

func TestRecognisesWhatALauncherBecame(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("start", "#!/bin/sh\nexport A=1\nexec /opt/bin/server --port 3000 \"$@\"\n")
	write("script.js", "#!/usr/bin/env node\n// exec /opt/bin/server --port 3000\n")
	for _, test := range []struct {
		command, args string
		argv          []string
		want          bool
	}{
		{"./start", "", []string{"/opt/bin/server", "--port", "3000"}, true},
		{"./start", "-v", []string{"/opt/bin/server", "--port", "3000", "-v"}, true},
		{"./start", "", []string{"/opt/bin/server", "--port", "3001"}, false},
		{"./start", "", []string{"/opt/bin/other", "--port", "3000"}, false},
		{"./start", "", []string{"server"}, false},
		{"./script.js", "", []string{"/opt/bin/server", "--port", "3000"}, false},
		{"start", "", []string{"/opt/bin/server", "--port", "3000"}, false},
	} {
		other := process{argv: test.argv}
		if got := other.launchedBy(launcher(test.command, dir), strings.Fields(test.args)); got != test.want {
			t.Errorf("%q is what %s %s became: %v, want %v", test.argv, test.command, test.args, got, test.want)
		}
	}
}

// gone fails the test if the process whose number stands in the file lives.
func gone(t *testing.T, note string) {
	t.Helper()
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(text))
	if stat, err := os.ReadFile("/proc/" + string(text) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
		return // dead, and nobody has asked for it yet
	}
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d is still there", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestAServerThatIgnoresTheEndIsNotWaitedForLong(t *testing.T) {
	start := playing(t, "stays")
	began := time.Now()
	if saw := Probe(t.Context(), start); saw.Fault != nil {
		t.Fatal(saw.Fault)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestTellsWhatCannotBeStarted(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct {
		start doctor.Start
		kind  fault.Kind
	}{
		"a missing program":        {doctor.Start{Command: []string{"no-such-program-here"}}, fault.CommandNotFound},
		"a missing working folder": {doctor.Start{Command: []string{"sh"}, Dir: filepath.Join(folder, "none")}, fault.ConfigInvalid},
		"a folder":                 {doctor.Start{Command: []string{folder}}, fault.CommandNotFound},
		"another scheme":           {doctor.Start{URL: "ws://example.invalid/?token=canary"}, fault.ConfigInvalid},
		"a header without a colon": {doctor.Start{URL: "http://example.invalid", Header: []string{"canary"}}, fault.ConfigInvalid},
		"nothing":                  {doctor.Start{}, fault.ConfigInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			saw := Probe(t.Context(), test.start)
			if saw.Fault == nil || saw.Fault.Kind != test.kind {
				t.Fatalf("fault %+v, want %s", saw.Fault, test.kind)
			}
			if diff := cmp.Diff([]string{"start broken"}, rungs(saw.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if strings.Contains(fmt.Sprintf("%+v %v", saw, saw.Fault), "canary") {
				t.Errorf("a secret is shown: %+v", saw)
			}
		})
	}
}

func TestARelativeCommandIsLookedForInItsFolder(t *testing.T) {
	start := playing(t, "good")
	dir := t.TempDir()
	if err := os.Symlink(start.Command[0], filepath.Join(dir, "server")); err != nil {
		t.Fatal(err)
	}
	start.Command[0], start.Dir = "./server", dir
	if saw := Probe(t.Context(), start); saw.Fault != nil {
		t.Errorf("fault %v, want none", saw.Fault)
	}
}

func TestNamesARunningCopyOfTheSameServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who runs what")
	}
	lock := filepath.Join(t.TempDir(), "lock")
	start := playing(t, "locked="+lock)
	// A shell starts it and ends, so that it is nobody's child: our own would be
	// passed over. It reads a pipe that we hold, and ends when we do.
	copyOf := exec.Command("sh", append([]string{"-c", `exec 3<&0; "$@" <&3 >/dev/null & echo $!`, "sh"}, start.Command...)...)
	copyOf.Env = start.Env
	hold, err := copyOf.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Close() })
	out, err := copyOf.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := copyOf.Start(); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(out)
	pid := strings.TrimSpace(string(said))
	until(t, "it holds the lock", func() bool {
		_, err := os.Stat(lock)
		return err == nil
	})
	if state, err := copyOf.Process.Wait(); err != nil || !state.Success() {
		t.Fatalf("the shell: %v, %v", state, err)
	}
	saw := Probe(t.Context(), start)
	if saw.Fault == nil || saw.Fault.Kind != fault.PortInUse {
		t.Fatalf("fault %+v, want %s", saw.Fault, fault.PortInUse)
	}
	if want := "process " + pid + " runs the same command"; saw.Busy != want {
		t.Errorf("busy %q, want %q", saw.Busy, want)
	}
	start.Command = append(start.Command, "-test.v=false")
	if saw := Probe(t.Context(), start); saw.Busy != "" {
		t.Errorf("busy %q for another command, want nothing", saw.Busy)
	}
}

func TestOurOwnProcessesKeepNobodyBusy(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	start := playing(t, "locked="+lock)
	start.Command = append(start.Command, "-test.timeout=9m") // unlike what other tests leave to end by itself
	ours := exec.Command(start.Command[0], start.Command[1:]...)
	ours.Env = start.Env
	hold, err := ours.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = hold.Close()
		_ = ours.Wait()
	}()
	until(t, "it holds the lock", func() bool {
		_, err := os.Stat(lock)
		return err == nil
	})
	if saw := Probe(t.Context(), start); saw.Fault == nil || saw.Busy != "" {
		t.Errorf("fault %v, busy %q; want a fault and nobody to blame", saw.Fault, saw.Busy)
	}
}

func TestRecognisesTheSameCommand(t *testing.T) {
	npx := []string{"npx", "-y", "@scope/server", "/data"}
	for _, test := range []struct {
		argv    []string
		command []string
		want    bool
	}{
		{[]string{"npx", "-y", "@scope/server", "/data"}, npx, true},
		{[]string{"node", "/usr/bin/npx", "-y", "@scope/server", "/data"}, npx, true},
		{[]string{"node", "/opt/node/lib/npm/bin/npx-cli.js", "-y", "@scope/server", "/data"}, npx, true},
		{[]string{"npm exec @scope/server /data"}, npx, true},
		{[]string{"npm exec @scope/server /other"}, npx, false},
		{[]string{"npx", "-y", "@scope/server"}, npx, false},
		{[]string{"vim", "/data"}, npx, false},
		{[]string{"/a/server"}, []string{"/b/server"}, false},
		{nil, npx, false},
	} {
		other := process{argv: test.argv}
		if got := other.runs(test.command, ""); got != test.want {
			t.Errorf("%q runs %q: %v, want %v", test.argv, test.command, got, test.want)
		}
	}
}
