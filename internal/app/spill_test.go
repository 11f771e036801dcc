package app

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpmend/mcpmend/internal/secret"
)

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestAServersStderrPassesWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		s := newSpill(&out, secret.New("correct-horse-battery-staple"), false)
		for _, line := range []string{"ready\n", "it is correct-ho\n", "rse-battery-staple\n", "\x1b[1mdone\n"} {
			fmt.Fprint(s, line)
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
		}
		s.drain(time.Minute)
		if want := "ready\nit is [hidden]\n[hidden]\n\x1b[1mdone\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}

func TestALineIsNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		s := newSpill(&out, secret.New("correct-horse-battery-staple"), false)
		fmt.Fprint(s, "ready\n")
		time.Sleep(spillRest + time.Millisecond)
		if out.String() != "ready\n" {
			t.Errorf("after 3 ms there is %q", out.String())
		}
		// What may be half a secret waits for the other half, and not for long.
		fmt.Fprint(s, "it is correct-ho\n")
		time.Sleep(100 * time.Millisecond)
		if want := "ready\nit is [hidden]\n"; out.String() != want {
			t.Errorf("after 100 ms there is %q, want %q", out.String(), want)
		}
		// Nor does it if such lines never end.
		start, was := time.Now(), len(out.String())
		for len(out.String()) == was {
			fmt.Fprint(s, "correct-horse-\n")
			if time.Sleep(20 * time.Millisecond); time.Since(start) > time.Second {
				t.Fatal("held back for more than a second")
			}
		}
		s.drain(time.Minute)
	})
}

func TestATerminalObeysNoServer(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\r\nnext\n":             "plain\ttext\r\nnext\n",
		"\x1b[31mred\x1b[0m\n":              "red\n",
		"\x1b[2J\x1b]52;c;ZXZpbA==\x07 x\n": `\x1b[2J\x1b]52;c;ZXZpbA==\x07 x` + "\n",
		"over\rwritten\b\n":                 `over\x0dwritten\x08` + "\n",
		"\u009b2J \u202eevil grüße\n":       `\x9b2J \u202eevil grüße` + "\n",
		"\x9b2J\xff\n":                      `\x9b2J\xff` + "\n",
	} {
		var out buffer
		s := newSpill(&out, nil, true)
		_, _ = io.WriteString(s, text)
		s.drain(10 * time.Second)
		if out.String() != want {
			t.Errorf("%q is shown as %q, want %q", text, out.String(), want)
		}
	}
}

// never is a client that does not read.
type never struct{ blocked chan struct{} }

func (n never) Write(p []byte) (int, error) { <-n.blocked; return len(p), nil }

func TestAClientThatDoesNotReadBlocksNobody(t *testing.T) {
	n := never{make(chan struct{})}
	s := newSpill(n, nil, false)
	for range 100 {
		fmt.Fprintln(s, strings.Repeat("x", 64<<10))
	}
	s.mu.Lock()
	if len(s.waiting) > spillLimit {
		t.Errorf("%d bytes wait, want at most %d", len(s.waiting), spillLimit)
	}
	s.mu.Unlock()
	close(n.blocked)
	s.drain(10 * time.Second)
}
