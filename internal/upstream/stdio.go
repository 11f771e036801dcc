package upstream

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// drainTime is how long a process's last words may take after it is gone.
const drainTime = 250 * time.Millisecond

// stdioLink is a server running as our child, spoken to over its pipes.
//
// Three goroutines belong to it, all parked in the poller while it is idle: one
// reads stdout, one reads stderr, one waits for the process. The last one is the
// owner of its end: whatever goes wrong first, wait sees it through.
type stdioLink struct {
	duplex
	cmd    *processTree
	in     *wire.LineWriter
	out    *os.File
	unread *os.File // a second read end of the child's stdin; nil where unsupported
	tail   *tail
	junk   *tail

	spec    *Spec
	began   time.Time
	ended   func(why *fault.Fault, wasReady bool)
	closing atomic.Bool                 // we are ending it
	leaving chan struct{}               // closed when we begin to
	ready   atomic.Bool                 // the handshake has succeeded
	verdict atomic.Pointer[fault.Fault] // why we killed it, if we did
	heard   atomic.Int64                // when it last showed a sign of life, in nanoseconds
	// heldBack: its client does not read, so we do not read what it writes.
	heldBack atomic.Bool
	liveness liveness

	readDone chan struct{} // stdout has ended
	exited   chan struct{} // the process has ended; it may not be reaped yet
	goneCh   chan struct{} // nothing is left
	endOnce  sync.Once
}

// startStdio starts the program. An error means that nothing was started.
func startStdio(spec *Spec, hear receiver, ended func(*fault.Fault, bool)) (*stdioLink, *fault.Fault) {
	environ := spec.Env
	if environ == nil {
		environ = os.Environ()
	}
	hide := secretsIn(environ, spec.Command)
	l := &stdioLink{
		tail:     newTail(spec.Stderr, hide),
		junk:     newTail(nil, hide),
		spec:     spec,
		began:    time.Now(),
		ended:    ended,
		readDone: make(chan struct{}),
		exited:   make(chan struct{}),
		goneCh:   make(chan struct{}),
	}
	l.duplex.self, l.duplex.hear, l.duplex.hide = l, hear, hide
	l.leaving = make(chan struct{})
	pipes, err := openPipes()
	if err != nil {
		return nil, startFault(spec, err)
	}
	path, err := lookup(spec)
	if err != nil {
		pipes.closeAll()
		return nil, startFault(spec, err)
	}
	l.cmd = newTree(&exec.Cmd{
		Path:   path,
		Args:   spec.Command,
		Dir:    spec.Dir,
		Env:    spec.Env,
		Stdin:  pipes.childIn,
		Stdout: pipes.childOut,
		Stderr: pipes.childErr,
	}, spec)
	if err := l.cmd.start(); err != nil {
		pipes.closeAll()
		return nil, startFault(spec, err)
	}
	pipes.closeChildOutputs()
	l.unread = keepUnread(pipes.childIn)
	l.out = pipes.out
	l.in = wire.NewLineWriter(pipes.in)
	l.duplex.write = l.in.Send
	go l.read(spec.MaxMessage)
	go l.tail.follow(pipes.err)
	go l.wait()
	return l, nil
}

// lookup finds the program in the PATH the server is given, which need not be
// ours. A path with a folder in it starts where the program does.
func lookup(spec *Spec) (string, error) {
	name := spec.Command[0]
	if filepath.Base(name) != name {
		if spec.Dir == "" || filepath.IsAbs(name) {
			return exec.LookPath(name)
		}
		if path, err := filepath.Abs(filepath.Join(spec.Dir, name)); err == nil {
			return exec.LookPath(path)
		}
	}
	return lookPathIn(name, spec.Env)
}

func startFault(spec *Spec, err error) *fault.Fault {
	return &fault.Fault{
		Delivery: fault.Unsent,
		Evidence: fault.Evidence{
			Text:    fmt.Sprintf("cannot start %q: %v", spec.Command[0], unwrapExec(err)),
			Errno:   errnoName(err),
			Command: spec.Command[0],
			Moment:  fault.AtStart,
		},
		Cause: err,
	}
}

func unwrapExec(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (l *stdioLink) read(limit int) {
	r := wire.NewLineReader(l.out, limit, func(j wire.Junk) {
		l.heard.Store(time.Now().UnixNano())
		l.junk.note(j.Text)
		l.garbled(j)
	})
	for {
		m, err := r.Next()
		if err != nil {
			break
		}
		l.heard.Store(time.Now().UnixNano())
		if room := l.incoming(m); room != nil {
			l.holdBack(room)
		}
	}
	close(l.readDone)
	// It closed its output. An orderly exit follows within a moment; a process
	// that lives on can no longer be heard and is of no use. It may still have
	// something to put away, so it is asked before it is killed.
	select {
	case <-l.exited:
	case <-time.After(drainTime):
		l.end()
	}
}

// holdBack leaves the process's output unread while its client has no room for more,
// as a pipe between the two would.
func (l *stdioLink) holdBack(room func() <-chan struct{}) {
	full := room()
	if full == nil {
		return
	}
	alone, others := l.sole()
	if !alone {
		return // the others must not wait for this one
	}
	l.heldBack.Store(true)
	defer l.heldBack.Store(false)
	select {
	case <-full:
	case <-others:
	case <-l.leaving:
	}
	select {
	case <-l.exited: // what it wrote last may have waited for longer than it is given
		_ = l.out.SetReadDeadline(time.Now().Add(drainTime))
	default:
	}
}

// wait sees the process to its end: it learns of the exit, ends what the process
// left behind, lets the last output be read, and settles what was under way.
func (l *stdioLink) wait() {
	defer close(l.goneCh)
	awaitExit(l.cmd.Cmd)
	close(l.exited)
	killGroup(l.cmd) // the group outlives its leader
	l.cmd.reap()
	groupGone(l.cmd)
	_ = l.out.SetReadDeadline(time.Now().Add(drainTime))
	<-l.readDone
	l.tail.end(drainTime)
	why := l.obituary()
	if !l.closing.Load() {
		l.ended(&why, l.ready.Load())
	}
	_ = l.in.Close() // from here on nothing more is written, so what was can be judged
	proven := l.provenUnread()
	l.duplex.fail(why, func(f *flight) fault.Delivery {
		d := deliveredBy(f)
		if d == fault.Silent && proven(f) {
			return fault.Unread
		}
		return d
	})
	_ = l.out.Close()
	if l.unread != nil {
		_ = l.unread.Close()
	}
}

// obituary is the fault that says how the process ended.
func (l *stdioLink) obituary() fault.Fault {
	code, signal := exitStatus(l.cmd.ProcessState)
	if v := l.verdict.Load(); v != nil {
		f := *v
		f.Stderr, f.Stdout = l.tail.lines(), l.junk.lines()
		f.Hint = cmp.Or(missed(l.spec.Withheld, f.Stderr, f.Stdout), f.Hint)
		return f
	}
	text := fmt.Sprintf("%s ended with exit code %d", filepath.Base(l.cmd.Path), code)
	if signal != "" {
		text = fmt.Sprintf("%s was ended by %s", filepath.Base(l.cmd.Path), signal)
	}
	stderr, stdout := l.tail.lines(), l.junk.lines()
	return fault.Fault{Hint: missed(l.spec.Withheld, stderr, stdout), Evidence: fault.Evidence{
		Text:     text,
		Exited:   true,
		Command:  l.spec.Command[0],
		ExitCode: code,
		Signal:   signal,
		Stderr:   stderr,
		Stdout:   stdout,
		Moment:   fault.AtCall,
	}}
}

// provenUnread drains what the child never read from its stdin. A request of
// which at least a byte lies there cannot have been understood by anybody.
func (l *stdioLink) provenUnread() func(*flight) bool {
	left := l.leftUnread()
	return func(f *flight) bool { return left[f.id] }
}

// leftUnread reads back the requests that lie unread in the pipe.
func (l *stdioLink) leftUnread() map[uint64]bool {
	if l.unread == nil || waitingIn(l.unread) == 0 || l.readersAlive() {
		return nil
	}
	rest := make([]byte, waitingIn(l.unread))
	if _, err := io.ReadFull(l.unread, rest); err != nil {
		return nil
	}
	ids := make(map[uint64]bool)
	// The first line may have lost its beginning; its id is found from behind or
	// not at all, and not finding it only means that we claim less.
	for _, text := range bytes.Split(rest, []byte{'\n'}) {
		m, err := wire.Parse(bytes.TrimSpace(text))
		if err == nil && m.Kind == wire.Request {
			if f := l.find(m.ID()); f != nil {
				ids[f.id] = true
			}
		}
	}
	return ids
}

// wasUseful reports whether the process did something for a client, or lived for a
// while.
func (l *stdioLink) wasUseful() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.useful || time.Since(l.began) >= steadyAfter
}

func (l *stdioLink) room() <-chan struct{}   { return l.in.Room() }
func (l *stdioLink) attend()                 {}
func (l *stdioLink) speak(string)            {}
func (l *stdioLink) closed() <-chan struct{} { return l.goneCh }

func (l *stdioLink) settled() {
	l.ready.Store(true)
	l.spec.Reaper.note(l.cmd.Cmd)
}

// close ends the process in steps: its input ends, then it is asked, then it is
// killed. A stopped process can do none of that and is killed at once.
func (l *stdioLink) close() {
	l.endOnce.Do(func() {
		l.closing.Store(true)
		close(l.leaving)
		go l.end()
	})
}

// endInput ends the input of the process once it has taken what was sent to it.
func (l *stdioLink) endInput() {
	go func() {
		select {
		case <-l.in.Idle():
			l.cmd.remember()
			_ = l.in.Close()
		case <-l.exited:
		case <-l.leaving:
		}
	}()
}

func (l *stdioLink) end() {
	select {
	case <-l.in.Idle():
	case <-l.exited:
	case <-time.After(drainTime):
	}
	l.cmd.remember() // what it has started outlives its exit
	_ = l.in.Close()
	if l.leaves(l.spec.Grace) {
		return
	}
	termGroup(l.cmd)
	if l.leaves(l.spec.Grace / 2) {
		return
	}
	killGroup(l.cmd)
}

// leaves waits for the exit, up to the grace, and less if the process is stopped.
func (l *stdioLink) leaves(grace time.Duration) bool {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-l.exited:
			return true
		case <-deadline.C:
			return false
		case <-look.C:
			if stopped(l.cmd.Cmd) {
				killGroup(l.cmd)
			}
		}
	}
}
