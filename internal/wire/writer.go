package wire

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// ErrFull: the peer does not read, and more than the queue may hold is waiting.
var ErrFull = errors.New("the peer does not read what is sent to it")

// ErrClosed: the stream has been closed on our side.
var ErrClosed = errors.New("the stream is closed")

// Receipt follows one message on its way into the kernel. The zero value is ready.
type Receipt struct {
	// mu is held while bytes move, which takes a moment and never waits for the
	// peer, so that Drop and the first byte cannot both win.
	mu       sync.Mutex
	dropped  bool
	accepted atomic.Int64
	size     atomic.Int64 // length of the JSON, without the line break; 0 until sending began
	from     atomic.Int64 // where in the stream it begins; meaningful once a byte was accepted
}

// From is where in the stream the message begins, in bytes, if any of it was sent.
func (r *Receipt) From() (offset int64, begun bool) {
	return r.from.Load(), r.Accepted() > 0
}

// Accepted is how many bytes of the message the kernel has taken so far. Where
// the system does not tell while a write waits, all that was offered counts.
//
// It waits for a write that is under way, which itself does not wait. A message
// can be read, and its reader die of it, before the goroutine that wrote it has
// come back from the kernel; asked without waiting, the answer would be that
// nothing was sent, and the message would be sent again.
func (r *Receipt) Accepted() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted.Load()
}

// Whole reports whether the kernel took all of the message's JSON.
func (r *Receipt) Whole() bool {
	size := r.size.Load()
	return size > 0 && r.Accepted() >= size
}

// Drop keeps the message from being sent if none of it has been: when Accepted
// is 0 afterwards, it will stay so.
func (r *Receipt) Drop() {
	r.mu.Lock()
	r.dropped = true
	r.mu.Unlock()
}

// errDropped: Drop came before the first byte.
var errDropped = errors.New("dropped before it was sent")

// LineWriter writes messages to a stdio stream, one a line, without ever making
// the caller wait for the peer to read.
//
// A message is written on the caller's goroutine while the pipe has room. What
// does not fit is left to a goroutine that lives as long as the jam does. So an
// idle stream costs no goroutine, a stopped peer blocks nobody, and senders do
// not wait for each other's bytes.
type LineWriter struct {
	file *os.File
	raw  syscall.RawConn // nil where a write cannot be tried without waiting

	mu      sync.Mutex
	busy    bool // somebody is writing: a sender or the pump
	queue   []outgoing
	waiting int // bytes in queue
	limit   int
	err     error
	idle    chan struct{} // closed when the pump ends; nil while nobody asked

	written atomic.Int64 // bytes that the kernel has taken in all

	// Used only by whoever is busy.
	current outgoing
	scratch *buffer // where parts are put together; nil while nobody is busy
	try     attempt
}

type outgoing struct {
	msg     Message
	id      []byte // written in place of the message's own id, nil to keep it
	receipt *Receipt
	sent    int // bytes of the line already written
}

// queueLimit bounds what waits for a peer that has stopped reading.
const queueLimit = 2 * DefaultLimit

// NewLineWriter writes to file, which should be a pipe or a socket in
// non-blocking mode; for other files the jam is always left to the goroutine.
func NewLineWriter(file *os.File) *LineWriter {
	w := &LineWriter{file: file, limit: queueLimit}
	if canTry(file) {
		w.raw, _ = file.SyscallConn()
	}
	w.try.init(&w.written)
	return w
}

// Written is how many bytes the kernel has taken so far.
func (w *LineWriter) Written() int64 { return w.written.Load() }

// Send writes the message with its id replaced by id (nil keeps it) and takes
// over ownership of it. It returns at once. An error means that no byte of this
// message was or will be written. receipt may be nil.
func (w *LineWriter) Send(m Message, id []byte, receipt *Receipt) error {
	if m.buf == nil { // else it lies where a reader found it on one line
		m.Raw = OneLine(m.Raw)
	}
	o := outgoing{msg: m, id: id, receipt: receipt}
	if receipt != nil {
		receipt.size.Store(int64(o.size() - 1))
	}
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	if w.busy {
		defer w.mu.Unlock()
		if w.waiting+o.size() > w.limit {
			return ErrFull
		}
		w.queue = append(w.queue, o)
		w.waiting += o.size()
		return nil
	}
	w.busy = true
	w.mu.Unlock()

	w.current = o
	done, err := w.attempt(&w.current)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		begun := w.current.sent > 0
		w.fail(err)
		if !begun {
			return w.err
		}
		return nil // the receipt tells how far it got
	}
	if !done {
		w.queue = append(w.queue, outgoing{})
		copy(w.queue[1:], w.queue)
		w.queue[0] = w.current
		w.waiting += o.size()
	}
	if len(w.queue) > 0 {
		go w.pump()
		return nil
	}
	w.rest()
	return nil
}

// attempt writes as much as fits without waiting.
func (w *LineWriter) attempt(o *outgoing) (done bool, err error) {
	if w.raw == nil {
		return false, nil
	}
	for o.sent < o.size() {
		chunk := w.chunk(o)
		n, err := w.try.write(w.raw, o, chunk, false)
		if err == errDropped {
			return true, nil
		}
		if err != nil || n < len(chunk) {
			return false, err
		}
	}
	o.msg.Release()
	return true, nil
}

// pump writes the queue, waiting as long as the peer makes it wait.
func (w *LineWriter) pump() {
	for {
		w.mu.Lock()
		if w.err != nil {
			w.fail(w.err)
			w.mu.Unlock()
			return
		}
		if len(w.queue) == 0 {
			w.rest()
			w.mu.Unlock()
			return
		}
		w.current = w.queue[0]
		w.queue[0] = outgoing{}
		w.queue = w.queue[1:]
		w.waiting -= w.current.size()
		w.mu.Unlock()
		if err := w.finish(&w.current); err != nil && err != errDropped {
			w.mu.Lock()
			w.fail(err)
			w.mu.Unlock()
			return
		}
	}
}

// finish writes what is left of o, however long that takes.
func (w *LineWriter) finish(o *outgoing) (err error) {
	for o.sent < o.size() {
		chunk := w.chunk(o)
		if w.raw != nil {
			_, err = w.try.write(w.raw, o, chunk, true)
		} else {
			err = o.write(w.file, chunk, &w.written)
		}
		if err != nil {
			return err
		}
	}
	o.msg.Release()
	return nil
}

// fail makes err the last word of the stream. The caller holds mu.
func (w *LineWriter) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.queue, w.waiting = nil, 0
	w.rest()
}

// rest says that nobody is writing any more. The caller holds mu.
func (w *LineWriter) rest() {
	w.busy = false
	w.current = outgoing{}
	if len(w.queue) == 0 {
		w.queue = nil
	}
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
	if w.scratch != nil {
		w.scratch.release()
		w.scratch = nil
	}
}

// Idle returns a channel that is closed when nothing waits to be written.
func (w *LineWriter) Idle() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil {
		return w.idle
	}
	idle := make(chan struct{})
	if w.busy {
		w.idle = idle
	} else {
		close(idle)
	}
	return idle
}

// Close closes the stream. What still waits is not written.
func (w *LineWriter) Close() error {
	w.mu.Lock()
	if w.err == nil {
		w.err = ErrClosed
	}
	w.mu.Unlock()
	return w.file.Close()
}

// coalesce is up to where copying parts together is cheaper than another write.
const coalesce = 16 << 10

// chunk is the next run of bytes of o to write. Small messages come as one run.
func (w *LineWriter) chunk(o *outgoing) []byte {
	if w.scratch == nil {
		w.scratch = newBuffer(min(o.size(), coalesce))
	}
	if len(w.scratch.b) < min(o.size(), coalesce) {
		w.scratch.release()
		w.scratch = newBuffer(coalesce)
	}
	whole := w.scratch.b[:0]
	skip := o.sent
	for _, part := range o.parts() {
		if skip >= len(part) {
			skip -= len(part)
			continue
		}
		part = part[skip:]
		skip = 0
		room := coalesce - len(whole)
		if len(part) > room {
			if len(whole) == 0 {
				return part
			}
			return append(whole, part[:room]...)
		}
		whole = append(whole, part...)
	}
	return whole
}

var lineBreak = []byte{'\n'}

func (o *outgoing) parts() [4][]byte {
	if o.id == nil || o.msg.id.End == 0 {
		return [4][]byte{o.msg.Raw, nil, nil, lineBreak}
	}
	return [4][]byte{o.msg.Raw[:o.msg.id.Start], o.id, o.msg.Raw[o.msg.id.End:], lineBreak}
}

func (o *outgoing) size() int {
	n := len(o.msg.Raw) + 1
	if o.id != nil && o.msg.id.End != 0 {
		n += len(o.id) - (o.msg.id.End - o.msg.id.Start)
	}
	return n
}

// withdrawn reports whether o must not be begun. The caller holds the receipt's mu.
func (o *outgoing) withdrawn() bool {
	return o.sent == 0 && o.receipt.dropped
}

// write is a write that may wait, for systems where nothing else exists. What
// the kernel has taken of it cannot be told meanwhile, so all of it is assumed.
func (o *outgoing) write(file *os.File, chunk []byte, total *atomic.Int64) error {
	if r := o.receipt; r != nil {
		r.mu.Lock()
		if o.withdrawn() {
			r.mu.Unlock()
			return errDropped
		}
		if o.sent == 0 {
			r.from.Store(total.Load())
		}
		r.accepted.Store(int64(o.sent + len(chunk)))
		r.mu.Unlock()
	}
	n, err := file.Write(chunk)
	o.sent += n
	total.Add(int64(n))
	if o.receipt != nil {
		o.receipt.accepted.Store(int64(o.sent))
	}
	return err
}
