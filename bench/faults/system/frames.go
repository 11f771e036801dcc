package system

import (
	"bufio"
	"bytes"
	"io"
	"sync"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// frames writes messages as lines.
type frames struct {
	mu sync.Mutex
	w  io.Writer
}

func newFrames(w io.Writer) *frames { return &frames{w: w} }

func (f *frames) send(m *rpc.Message) error { return f.raw(m.Encode()) }

func (f *frames) raw(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.w.Write(append(bytes.Clone(line), '\n'))
	return err
}

// eachFrame reads lines until r ends and hands on those that are messages.
func eachFrame(r io.Reader, use func(*rpc.Message)) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if m, bad := rpc.Parse(line); bad == nil {
			use(m)
		}
		if err != nil {
			return
		}
	}
}
