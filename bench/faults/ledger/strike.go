package ledger

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is how long a held phase waits for one more operation before it takes
// those present for all that will come: a system under test may let fewer
// through at once than the plan asks for.
const quiet = 150 * time.Millisecond

// points keeps count of the faults of a plan and of the operations held at them.
type points struct {
	faults []Fault
	book   *Book
	dir    string

	mu   sync.Mutex
	used []int           // strikes of each fault so far, here and in earlier instances
	met  map[string]bool // operations that a repeated fault has struck
	held []*hold         // operations waiting at each fault

	stopped chan struct{} // closed when a stopped process goes on
	first   bool          // no instance ran before this one
}

// hold is a crowd of operations at one phase.
type hold struct {
	arrived int
	ready   chan struct{}   // closed when the crowd is complete
	order   []chan struct{} // for a shuffle: closed one by one
	timer   *time.Timer
}

func newPoints(dir string, book *Book, faults []Fault, before []Line, first bool) *points {
	n := len(faults)
	p := &points{faults: faults, book: book, dir: dir, used: make([]int, n), met: map[string]bool{}, held: make([]*hold, n), stopped: make(chan struct{}), first: first}
	for i := range faults {
		p.used[i] = struck(before, i)
	}
	for _, l := range before {
		if l.Kind == Fired {
			p.met[l.Op] = true
		}
	}
	return p
}

// match returns the faults that strike op at this phase, in the order of the
// plan, and records each. Held operations wait here, and one strikes for all.
func (p *points) match(at Phase, c *call) []Fault {
	var hits []Fault
	for i, f := range p.faults {
		if f.At != at || !p.applies(i, f, c) {
			continue
		}
		if f.Hold > 1 && !p.wait(i, f) {
			continue
		}
		if p.claim(i, f, c) {
			hits = append(hits, f)
		}
	}
	return hits
}

func (p *points) applies(i int, f Fault, c *call) bool {
	p.mu.Lock()
	spent := f.Times >= 0 && p.used[i] >= max(f.Times, 1)
	p.mu.Unlock()
	switch {
	case spent, f.Later && p.first:
		return false
	case c == nil:
		return true
	case c.index < 0: // warming up
		return false
	}
	if f.Op != Any {
		return f.Op == c.index
	}
	if f.Every == 0 {
		return true
	}
	// By index, and each operation once only: whoever sends it again shall meet
	// a server that works.
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.index%f.Every == f.Every-1 && !p.met[c.op]
}

// claim takes one of the fault's strikes, across all instances: the book says
// how many were used up, and a lock keeps two processes from using the same.
func (p *points) claim(i int, f Fault, c *call) bool {
	if f.Do == Gather {
		return true
	}
	if f.Times >= 0 {
		unlock := p.lock()
		defer unlock()
		lines, _ := readLines(strikesPath(p.dir))
		used := struck(lines, i)
		p.mu.Lock()
		p.used[i] = used + 1
		p.mu.Unlock()
		if used >= max(f.Times, 1) {
			return false
		}
	}
	line := Line{Kind: Fired, Note: fmt.Sprintf("%d %s %s", i, f.At, f.Do)}
	if c != nil {
		p.mu.Lock()
		p.met[c.op] = true
		p.mu.Unlock()
		line.Op, line.Tool = c.op, c.tool
	}
	p.book.Write(true, line)
	return true
}

func (p *points) lock() func() {
	f, err := os.OpenFile(filepath.Join(p.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return func() {}
	}
	syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	return func() { f.Close() }
}

// struck counts the strikes of fault i in the book.
func struck(lines []Line, i int) int {
	name, n := strconv.Itoa(i), 0
	for _, l := range lines {
		if first, _, _ := strings.Cut(l.Note, " "); l.Kind == Fired && first == name {
			n++
		}
	}
	return n
}

// wait holds an operation until its fault has enough of them. It returns true
// for those that may strike: the first to have come, or each in turn for a
// shuffle. The others go on, unless the strike is the end of the process: then
// they must not get any further.
func (p *points) wait(i int, f Fault) bool {
	p.mu.Lock()
	h := p.held[i]
	if h == nil {
		h = &hold{ready: make(chan struct{})}
		h.timer = time.AfterFunc(quiet, func() { p.release(i, h) })
		p.held[i] = h
	}
	h.arrived++
	h.timer.Reset(quiet)
	mine := make(chan struct{})
	h.order = append(h.order, mine)
	first := len(h.order) == 1
	full := h.arrived >= f.Hold
	p.mu.Unlock()
	if full {
		p.release(i, h)
	}
	<-h.ready
	switch {
	case f.Do == Shuffle:
		<-mine
		return true
	case first:
		return true
	case f.Do == Exit, f.Do == Kill, f.Do == Segfault, f.Do == ExhaustMem:
		select {} // for the little time that is left
	case f.Do == Stop:
		<-p.stopped
	}
	return false
}

// release ends a hold; later operations begin a new one.
func (p *points) release(i int, h *hold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[i] != h {
		return
	}
	p.held[i] = nil
	h.timer.Stop()
	close(h.ready)
	// A fixed permutation is as good as a random one and easier to repeat:
	// last come, first served.
	order := h.order
	go func() {
		for k := len(order) - 1; k >= 0; k-- {
			close(order[k])
			time.Sleep(50 * time.Microsecond)
		}
	}()
}

// strike does what concerns the whole process. Whatever concerns one answer
// only is left to the transport that writes it.
func (s *server) strike(f Fault, c *call) {
	switch f.Do {
	case Exit:
		s.freeze()
		os.Exit(f.N)
	case Kill:
		s.freeze()
		die(syscall.SIGKILL)
	case Segfault:
		s.freeze()
		fmt.Fprintln(os.Stderr, "ledger: segmentation violation (core dumped)")
		die(syscall.SIGSEGV)
	case Stop:
		s.freeze()
		stopSelf()
		s.thaw()
		close(s.points.stopped)
	case Sleep:
		time.Sleep(time.Duration(f.N) * time.Millisecond)
	case Hang:
		select {}
	case CloseStdin:
		// A poll under way would keep the pipe open; the reader closes it itself.
		s.deaf.Store(true)
	case CloseStdout:
		s.loop.Lock()
		unix.Close(1)
		s.loop.Unlock()
	case ExhaustMem:
		s.freeze()
		exhaustMemory(f.Text)
	case ExhaustFds:
		exhaustFiles()
	case Fork:
		s.fork(f.N)
	case Flood:
		go flood(f.N)
	case Print:
		s.write([]byte(f.Text))
	case Notify:
		s.notify(f.N)
	case Ask:
		s.ask()
	case LoseSession:
		s.loseSessions()
	}
}

// freeze stops the reader between two reads, so that a request is either in the
// book as received or still in the pipe when the process goes: a request in a
// buffer of ours would be counted as unread though nobody can tell.
func (s *server) freeze() { s.reading.Lock() }
func (s *server) thaw()   { s.reading.Unlock() }

// stopSelf does not return before the process is made to go on. A signal to the
// whole process could be taken by another thread, while this one runs on.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}

func die(sig syscall.Signal) {
	if sig != syscall.SIGKILL {
		// The Go runtime turns a SIGSEGV it did not cause into a panic; the
		// kernel's own default is the real thing.
		resetSignal(sig)
	}
	syscall.Kill(os.Getpid(), sig)
	select {}
}

// exhaustMemory moves the process into a memory cgroup and eats until the
// kernel ends it.
func exhaustMemory(cgroup string) {
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		fmt.Fprintln(os.Stderr, "ledger: cgroup:", err)
		os.Exit(70)
	}
	var eaten [][]byte
	for {
		page := make([]byte, 1<<20)
		for i := 0; i < len(page); i += 4096 {
			page[i] = 1
		}
		eaten = append(eaten, page)
		runtime.KeepAlive(eaten)
	}
}

func exhaustFiles() {
	lim := syscall.Rlimit{}
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim)
	lim.Cur = 3
	syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim)
}

// fork starts children that carry the episode's mark, so that they can be found
// even if a system gave this server an environment of its own.
func (s *server) fork(n int) {
	for range n {
		cmd := exec.Command("sleep", "600")
		cmd.Env = append(os.Environ(), Marker+"="+s.points.dir)
		cmd.Start()
	}
}

func flood(n int) {
	chunk := []byte(strings.Repeat("flood ", 10_000))
	for n > 0 {
		w, err := os.Stderr.Write(chunk[:min(n, len(chunk))])
		if err != nil {
			return
		}
		n -= w
	}
}
