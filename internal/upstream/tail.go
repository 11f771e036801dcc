package upstream

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// tail remembers the last lines a server wrote, within bounds, and passes
// everything on to whoever wants it all.
type tail struct {
	copyTo io.Writer     // nil if nobody does
	hide   *secret.Hider // what must not be shown

	mu   sync.Mutex
	ring [tailLines + tailContext]string
	next int

	src   *os.File
	done  chan struct{}
	heard atomic.Int64 // when something was last written, in nanoseconds
}

const (
	tailLines = 40
	// tailContext lines before those are remembered, too: the beginning of a secret that
	// goes on into the last ones may stand there.
	tailContext = 24

	tailWidth = 400 // bytes shown of one line; four times as many are remembered, and never an endless line
)

func newTail(copyTo io.Writer, hide *secret.Hider) *tail {
	return &tail{copyTo: copyTo, hide: hide, done: make(chan struct{})}
}

// follow reads src to its end. It always reads, so that a chatty server is never
// blocked by a full pipe.
func (t *tail) follow(src *os.File) {
	defer close(t.done)
	defer src.Close()
	t.mu.Lock()
	t.src = src
	t.mu.Unlock()
	r := bufio.NewReaderSize(src, 4<<10)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			t.heard.Store(time.Now().UnixNano())
			if t.copyTo != nil {
				_, _ = t.copyTo.Write(line)
			}
			t.note(line)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// end waits for the reading to finish, no longer than d.
func (t *tail) end(d time.Duration) {
	t.mu.Lock()
	src := t.src
	t.mu.Unlock()
	if src != nil {
		_ = src.SetReadDeadline(time.Now().Add(d))
	}
	select {
	case <-t.done:
	case <-time.After(2 * d):
	}
}

func (t *tail) note(line []byte) {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 {
		return
	}
	text := string(line[:min(len(line), 4*tailWidth)])
	t.mu.Lock()
	t.ring[t.next%len(t.ring)] = text
	t.next++
	t.mu.Unlock()
}

// lines are the last ones, oldest first, without secrets. These are hidden here
// and not when a line is noted, because most servers are chatty and few die.
func (t *tail) lines() []string {
	t.mu.Lock()
	var out []string
	for i := max(0, t.next-len(t.ring)); i < t.next; i++ {
		out = append(out, t.ring[i%len(t.ring)])
	}
	t.mu.Unlock()
	// Hidden in the whole, since a secret may go over several lines, and shortened then,
	// or half a secret would be left.
	out = t.hide.Lines(out)
	out = out[max(0, len(out)-tailLines):]
	for i, line := range out {
		out[i] = line[:min(len(line), tailWidth)]
	}
	return out
}
