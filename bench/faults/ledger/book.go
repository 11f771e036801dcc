package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Kind says what a line of the book records.
type Kind string

const (
	// Start: an instance of the server came up. Note holds its listening address.
	Start Kind = "start"
	// Init: a client initialized or discovered.
	Init Kind = "init"
	// Recv: the request was read, whole. Nothing has been done about it.
	Recv Kind = "recv"
	// Begin and Commit enclose the effect.
	Begin  Kind = "begin"
	Commit Kind = "commit"
	// Reply: the whole answer was handed to the kernel.
	Reply Kind = "reply"
	// Refused: the request was turned away before anything ran.
	Refused Kind = "refused"
	// Cancelled: the client took the request back.
	Cancelled Kind = "cancelled"
	// Fired: a fault struck. Note holds its number in the plan and what it did.
	Fired Kind = "fired"
)

// Line is one line of the book.
type Line struct {
	Kind Kind
	At   time.Duration // CLOCK_MONOTONIC, the same clock in every process
	Pid  int
	Op   string // the caller's op_id, "-" when the line is about no operation
	Tool string
	Note string
}

// Now reads the clock that the book is written with.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// Book is the ledger of effects: an append-only file that every instance of
// the server writes to. A line is one write to a file opened O_APPEND, so lines
// of two processes do not mix, and nothing is ever de-duplicated. The strikes
// have a file of their own, because each strike needs to know of the others.
type Book struct {
	mu      sync.Mutex
	file    *os.File
	strikes *os.File
}

func bookPath(dir string) string    { return filepath.Join(dir, "book") }
func strikesPath(dir string) string { return filepath.Join(dir, "strikes") }

// OpenBook opens the book in dir, creating it when it is not there.
func OpenBook(dir string) (*Book, error) {
	const flags = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	f, err := os.OpenFile(bookPath(dir), flags, 0o644)
	if err != nil {
		return nil, err
	}
	strikes, err := os.OpenFile(strikesPath(dir), flags, 0o644)
	if err != nil {
		return nil, err
	}
	// The entry of a new file is durable only once its directory is.
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
	return &Book{file: f, strikes: strikes}, nil
}

// Write appends lines of one kind with one write, and syncs when an effect
// depends on it.
func (b *Book) Write(sync bool, lines ...Line) error {
	var buf bytes.Buffer
	now, pid := Now(), os.Getpid()
	for _, l := range lines {
		fmt.Fprintf(&buf, "%s\t%d\t%d\t%s\t%s\t%s\n", l.Kind, now, pid, dash(l.Op), dash(l.Tool), strings.ReplaceAll(l.Note, "\n", " "))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	file := b.file
	if lines[0].Kind == Fired {
		file = b.strikes
	}
	if _, err := file.Write(buf.Bytes()); err != nil {
		return err
	}
	if sync {
		return file.Sync()
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ReadBook reads the whole book of dir, strikes and all, in the order of time;
// a book not yet begun is empty.
func ReadBook(dir string) ([]Line, error) {
	lines, err := readLines(bookPath(dir))
	if err != nil {
		return nil, err
	}
	strikes, err := readLines(strikesPath(dir))
	if err != nil {
		return nil, err
	}
	lines = append(lines, strikes...)
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
	return lines, nil
}

func readLines(path string) ([]Line, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseBook(data)
}

func parseBook(data []byte) ([]Line, error) {
	var lines []Line
	scan := bufio.NewScanner(bytes.NewReader(data))
	for scan.Scan() {
		f := strings.SplitN(scan.Text(), "\t", 6)
		if len(f) != 6 {
			return nil, fmt.Errorf("ledger: torn line %q", scan.Text())
		}
		at, err1 := strconv.ParseInt(f[1], 10, 64)
		pid, err2 := strconv.Atoi(f[2])
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("ledger: bad line %q", scan.Text())
		}
		lines = append(lines, Line{Kind: Kind(f[0]), At: time.Duration(at), Pid: pid, Op: f[3], Tool: f[4], Note: f[5]})
	}
	return lines, scan.Err()
}

// Await reads the book of dir again and again until ready says yes or ctx ends.
func Await(ctx context.Context, dir string, ready func([]Line) bool) ([]Line, error) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	size := int64(-1)
	for {
		if now := sizeOf(bookPath(dir)) + sizeOf(strikesPath(dir)); now != size {
			size = now
			lines, err := ReadBook(dir)
			if err == nil && ready(lines) {
				return lines, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func sizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

// Count counts the lines of one kind.
func Count(lines []Line, kind Kind) int {
	n := 0
	for _, l := range lines {
		if l.Kind == kind {
			n++
		}
	}
	return n
}

// LastPid is the process that wrote the latest start line, 0 when none did.
func LastPid(lines []Line) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Kind == Start {
			return lines[i].Pid
		}
	}
	return 0
}
