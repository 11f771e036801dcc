package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/child"
	"github.com/mcpmend/mcpmend/bench/internal/raw"
	"github.com/mcpmend/mcpmend/bench/internal/rig"
)

// junk are the kinds of the hostile server.
var junk = []string{
	"stray-line", "json-log", "json-text", "blank", "escape", "half-line", "half-glued", "trailing",
	"invalid-utf8", "bom", "id-null", "unknown-id", "unknown-ids", "case-variant", "duplicate-id",
	"duplicate-id-of-held", "result-and-error", "batch", "answered-twice", "10000-lines",
	"100000-deep", "100000-reply", "17-mib-line", "17-mib-json", "1-gib-line", "1-gib-json",
}

// ownID are the kinds that are a broken message with the id of the call itself.
var ownID = map[string]bool{"half-line": true, "case-variant": true, "duplicate-id": true, "result-and-error": true}

// hostile has the server write one kind of junk after another in one session, with a
// call open all the while, and wants that nobody notices.
func hostile(ctx context.Context, w *world) ([]finding, error) {
	server, err := w.rig.Go(ctx, rig.Hostile)
	if err != nil {
		return nil, err
	}
	onStdio, err := child.Start([]string{w.mcpmend, "run", "--", server}, "", nil)
	if err != nil {
		return nil, err
	}
	stdio := w.endure(ctx, "stdio → run → stdio", raw.Stdio(onStdio.Stdin, onStdio.Stdout, stopper(onStdio)), onStdio)

	front, url, err := w.startFront(ctx, nil, "--", server)
	if err != nil {
		return nil, err
	}
	http := w.endure(ctx, "HTTP → run → stdio", raw.HTTP(url).Closing(stopper(front)), front)
	return []finding{stdio, http}, nil
}

func stopper(c *child.Child) func() error {
	return func() error {
		_, err := c.Stop()
		return err
	}
}

func (w *world) endure(ctx context.Context, name string, client *raw.Client, gateway *child.Child) finding {
	found := finding{Way: name}
	wrong := func(format string, args ...any) { found.Wrong = append(found.Wrong, fmt.Sprintf(format, args...)) }
	defer func() {
		if err := client.Close(); err != nil {
			wrong("closing: %v", err)
		}
	}()
	if _, err := client.Handshake(ctx); err != nil {
		wrong("handshake: %v", err)
		return found
	}
	for i, kind := range junk {
		if w.quick && strings.HasPrefix(kind, "1-gib") {
			continue
		}
		found.Compared++
		if text := provoke(ctx, client, i, kind); text != "" {
			wrong("%s: %s", kind, text)
		}
	}
	peak, err := peakMemory(gateway.PID())
	if err != nil {
		wrong("%v", err)
	}
	found.Note = fmt.Sprintf("peak memory of mcpmend %d MiB", peak>>20)
	return found
}

// provoke returns what went wrong with one kind of junk, or "".
func provoke(ctx context.Context, client *raw.Client, i int, kind string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	id := 1000 * (i + 1)
	held := client.Start(strconv.Itoa(id+1), "tools/call", `{"name":"hold","arguments":{}}`)
	// Over HTTP two calls may overtake each other.
	for {
		reply, err := client.Call(ctx, strconv.Itoa(id), "tools/call", `{"name":"held","arguments":{}}`)
		if err != nil {
			return fmt.Sprintf("holding a call: %v", err)
		}
		if bytes.Contains(reply, []byte(`"1 held"`)) {
			break
		}
	}
	emitted, err := client.Call(ctx, strconv.Itoa(id+2), "tools/call", fmt.Sprintf(`{"name":"emit","arguments":{"what":%q}}`, kind))
	if err != nil {
		return fmt.Sprintf("the call itself: %v", err)
	}
	if _, err := client.Call(ctx, strconv.Itoa(id+3), "tools/call", `{"name":"release","arguments":{}}`); err != nil {
		return fmt.Sprintf("the next call: %v", err)
	}
	released, err := held.Reply(ctx)
	if err != nil {
		return fmt.Sprintf("the call that was open: %v", err)
	}
	// A broken message that names the call may cost it its reply, if it is told so.
	told := ownID[kind] && bytes.Contains(emitted, []byte(`"isError":true`)) && !bytes.Contains(emitted, []byte("FORGED"))
	if !told && !bytes.Contains(emitted, []byte(`"emit `+kind+`"`)) {
		return fmt.Sprintf("the call got %.200q", emitted)
	}
	if !bytes.Contains(released, []byte(`"held and released"`)) {
		return fmt.Sprintf("the open call got %.200q", released)
	}
	for _, m := range client.Seen() {
		if bytes.Contains(m, []byte("FORGED")) || bytes.Contains(m, []byte(`"result"`)) {
			return fmt.Sprintf("the client got to see %.200q", m)
		}
	}
	return ""
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory is the most memory the process ever had in RAM.
func peakMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := highWater.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no VmHWM for process %d", pid)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10, err
}
