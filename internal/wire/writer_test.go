package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// pipe is a real pipe with our writer at one end. Nobody reads from the other
// until the test does.
func pipe(t testing.TB) (*LineWriter, *os.File) {
	t.Helper()
	r, f, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w := NewLineWriter(f)
	t.Cleanup(func() {
		_ = w.Close()
		_ = r.Close()
	})
	return w, r
}

// within fails the test if ch is not closed soon.
func within(t testing.TB, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(10 * time.Second):
		buf := make([]byte, 1<<16)
		t.Fatalf("%s: still not after 10 s\n%s", what, buf[:runtime.Stack(buf, true)])
	}
}

// sized is a message of n bytes, told apart by its id.
func sized(t testing.TB, id, n int) Message {
	t.Helper()
	head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"`, id)
	return mustParse(t, head+strings.Repeat(string(rune('a'+id%26)), max(0, n-len(head)-2))+`"}`)
}

func ids(t testing.TB, r io.Reader, n int) (got []string) {
	t.Helper()
	lr := NewLineReader(r, 0, func(j Junk) { t.Errorf("junk on the line: %v", j) })
	for range n {
		m, err := lr.Next()
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, string(m.ID()))
	}
	return got
}

func TestWritesMessagesWithOtherIDs(t *testing.T) {
	w, r := pipe(t)
	for _, m := range []struct{ raw, id, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"a"}`, ``, `{"jsonrpc":"2.0","id":1,"method":"a"}`},
		{`{"jsonrpc":"2.0","id":1,"method":"a"}`, `"long id"`, `{"jsonrpc":"2.0","id":"long id","method":"a"}`},
		{`{"method":"a","jsonrpc":"2.0","id":"long id"}`, `1`, `{"method":"a","jsonrpc":"2.0","id":1}`},
		{`{"jsonrpc":"2.0","method":"a"}`, `5`, `{"jsonrpc":"2.0","method":"a"}`},
		// Pretty-printed messages come from HTTP; on this stream a line is a message.
		{"{\"jsonrpc\":\"2.0\",\n\"id\":1,\r\n\"method\":\"a\\n\"\n}", `7`, "{\"jsonrpc\":\"2.0\", \"id\":7,  \"method\":\"a\\n\" }"},
	} {
		var id []byte
		if m.id != "" {
			id = []byte(m.id)
		}
		var receipt Receipt
		if receipt.Whole() {
			t.Error("a new receipt says all was sent")
		}
		if err := w.Send(mustParse(t, m.raw), id, &receipt); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 200)
		n, err := r.Read(got)
		if err != nil || string(got[:n]) != m.want+"\n" {
			t.Errorf("sending %q as %s wrote %q, %v", m.raw, m.id, got[:n], err)
		}
		if !receipt.Whole() || receipt.Accepted() != int64(len(m.want)+1) {
			t.Errorf("the receipt says %d of %d bytes, whole: %t", receipt.Accepted(), len(m.want)+1, receipt.Whole())
		}
	}
	within(t, w.Idle(), "idle")
}

func TestAPeerThatStopsReadingBlocksNobody(t *testing.T) {
	w, r := pipe(t)
	const n, size = 12, 1 << 20
	receipts := make([]Receipt, n)
	for i := range n { // nobody reads yet: a Send that waits for that waits for ever
		if err := w.Send(sized(t, i, size), nil, &receipts[i]); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-w.Idle():
		t.Error("idle with megabytes waiting")
	default:
	}
	if receipts[0].Accepted() == 0 || receipts[0].Whole() {
		t.Errorf("a pipe took %d of %d bytes", receipts[0].Accepted(), size)
	}
	if receipts[1].Accepted() != 0 {
		t.Errorf("%d bytes of the second message overtook the first", receipts[1].Accepted())
	}
	want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}
	if got := ids(t, r, n); !slices.Equal(got, want) {
		t.Errorf("arrived: %q", got)
	}
	within(t, w.Idle(), "idle after the jam")
	for i := range receipts {
		if !receipts[i].Whole() || receipts[i].Accepted() != size+1 {
			t.Errorf("receipt %d: %d bytes, whole: %t", i, receipts[i].Accepted(), receipts[i].Whole())
		}
	}
}

// What a receipt says decides whether a call may be sent again, so it must not
// lag behind what the kernel has taken.
func TestTheReceiptFollowsEveryByte(t *testing.T) {
	w, r := pipe(t)
	var first, second Receipt
	if err := w.Send(sized(t, 1, 1<<20), nil, &first); err != nil {
		t.Fatal(err)
	}
	if err := w.Send(sized(t, 2, 1<<20), nil, &second); err != nil {
		t.Fatal(err)
	}
	// The first one is read to its end and the second one just begun.
	if _, err := io.CopyN(io.Discard, r, 1<<20+1+100); err != nil {
		t.Fatal(err)
	}
	until(t, "100 bytes of the second message were read, so many it must own up to", func() bool { return second.Accepted() >= 100 })
	if second.Whole() || first.Accepted() != 1<<20+1 {
		t.Errorf("first: %d bytes, second: %d bytes", first.Accepted(), second.Accepted())
	}
}

// until waits for what another goroutine is about to do.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after 10 s", what)
		}
	}
}

func TestADroppedMessageIsNotSent(t *testing.T) {
	w, r := pipe(t)
	var receipts [4]Receipt
	for i := range receipts {
		if err := w.Send(sized(t, i, 1<<20), nil, &receipts[i]); err != nil {
			t.Fatal(err)
		}
	}
	receipts[0].Drop() // too late: its first bytes are in the pipe
	receipts[2].Drop()
	if got := ids(t, r, 3); !slices.Equal(got, []string{"0", "1", "3"}) {
		t.Errorf("arrived: %q", got)
	}
	within(t, w.Idle(), "idle")
	if receipts[2].Accepted() != 0 || receipts[2].Whole() {
		t.Errorf("%d bytes of the dropped message were sent", receipts[2].Accepted())
	}
}

// The message in front of a full pipe is in the writer's hands already, but none
// of it has left: whoever drops it and reads Accepted() == 0 may send it elsewhere.
func TestAMessageWaitingForAFullPipeCanBeDropped(t *testing.T) {
	w, r := pipe(t)
	full := stuff(t, w)
	var receipt Receipt
	if err := w.Send(sized(t, 1, 100), nil, &receipt); err != nil {
		t.Fatal(err)
	}
	until(t, "the writer has taken the message from its queue", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.queue) == 0
	})
	receipt.Drop()
	if receipt.Accepted() != 0 {
		t.Fatalf("a full pipe took %d bytes", receipt.Accepted())
	}
	if err := w.Send(sized(t, 2, 100), nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, int64(full)); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, r, 1); got[0] != "2" {
		t.Errorf("the dropped message %s was sent when the peer read again", got[0])
	}
	within(t, w.Idle(), "idle")
	if receipt.Accepted() != 0 {
		t.Errorf("%d bytes of it were sent", receipt.Accepted())
	}
}

// stuff fills the pipe to the last byte, past the writer, and says how much went in.
func stuff(t testing.TB, w *LineWriter) (n int) {
	t.Helper()
	if w.raw == nil {
		t.Skip("writes cannot be tried on this system")
	}
	for _, size := range []int{1 << 16, 4096, 1} {
		for {
			k, err := w.try.write(w.raw, &outgoing{}, make([]byte, size), false)
			if err != nil {
				t.Fatal(err)
			}
			if n += k; k == 0 {
				break
			}
		}
	}
	return n
}

func TestCloseEndsAJamAtOnce(t *testing.T) {
	w, _ := pipe(t)
	var receipts [3]Receipt
	for i := range receipts {
		if err := w.Send(sized(t, i, 4<<20), nil, &receipts[i]); err != nil {
			t.Fatal(err)
		}
	}
	idle := w.Idle()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, idle, "idle after Close")
	if err := w.Send(sized(t, 9, 100), nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close = %v", err)
	}
	if receipts[0].Whole() || receipts[1].Accepted() != 0 || receipts[2].Accepted() != 0 {
		t.Errorf("after Close: %d, %d, %d bytes", receipts[0].Accepted(), receipts[1].Accepted(), receipts[2].Accepted())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil || w.waiting != 0 {
		t.Errorf("%d messages are still held", len(w.queue))
	}
}

func TestCloseRacingWithSendersLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		w, r := pipe(t)
		go func() { _, _ = io.Copy(io.Discard, r) }()
		var senders sync.WaitGroup
		for i := range 4 {
			senders.Go(func() {
				for {
					if err := w.Send(sized(t, i, 10_000), nil, nil); err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Errorf("Send = %v", err)
						}
						return
					}
				}
			})
		}
		runtime.Gosched()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		senders.Wait()
		within(t, w.Idle(), "idle")
	}
	until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestADeadPeerIsAnError(t *testing.T) {
	w, r := pipe(t)
	_ = r.Close()
	err := w.Send(sized(t, 1, 100), nil, nil)
	if err == nil {
		t.Fatal("sending to nobody succeeded")
	}
	if again := w.Send(sized(t, 2, 100), nil, nil); again == nil {
		t.Error("and so did sending again")
	}
	within(t, w.Idle(), "idle")
}

func TestAPeerThatDiesInAJamIsAnError(t *testing.T) {
	w, r := pipe(t)
	for i := range 3 {
		if err := w.Send(sized(t, i, 1<<20), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	idle := w.Idle()
	_ = r.Close()
	within(t, idle, "the end of the jam")
	if err := w.Send(sized(t, 9, 100), nil, nil); err == nil || errors.Is(err, ErrClosed) {
		t.Errorf("Send = %v", err)
	}
}

func TestALongQueueHasNoRoomAndLosesNothing(t *testing.T) {
	w, r := pipe(t)
	for range 3 { // each jam finds as much room as the one before
		sent := 0
		for ; w.Room() == nil; sent++ {
			if err := w.Send(sized(t, sent, 300_000), nil, nil); err != nil || sent > 10 {
				t.Fatalf("message %d: %v", sent, err)
			}
		}
		if sent < 3 {
			t.Errorf("%d messages of 300 KB left no room", sent)
		}
		room := w.Room()
		// Whoever does not wait is not refused.
		if err := w.Send(sized(t, sent, 300_000), nil, nil); err != nil {
			t.Error(err)
		}
		sent++
		if got := ids(t, r, sent); len(got) != sent {
			t.Errorf("arrived: %q", got)
		}
		within(t, room, "room")
		within(t, w.Idle(), "idle")
		if w.Room() != nil {
			t.Error("no room in an empty queue")
		}
	}
}

func TestWhoWaitsForRoomIsToldOfTheEnd(t *testing.T) {
	for name, end := range map[string]func(*LineWriter, *os.File){
		"by us":       func(w *LineWriter, _ *os.File) { _ = w.Close() },
		"by the peer": func(_ *LineWriter, r *os.File) { _ = r.Close() },
	} {
		w, r := pipe(t)
		if err := w.Send(sized(t, 1, 4<<20), nil, nil); err != nil {
			t.Fatal(err)
		}
		room := w.Room()
		if room == nil {
			t.Fatalf("%s: 4 MB fit", name)
		}
		end(w, r)
		within(t, room, name)
	}
}

func TestManySendersShareAPipeWithoutMixingLines(t *testing.T) {
	w, r := pipe(t)
	const senders, each = 16, 200
	sizes := []int{50, 500, 5000, 17_000, 100_000}
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				id := fmt.Appendf(nil, "%d", s*each+i)
				m := sized(t, s*each+i, sizes[(s+i)%len(sizes)])
				if err := w.Send(m, id, nil); err != nil {
					t.Errorf("Send = %v", err)
				}
			}
		})
	}
	lines := bufio.NewReader(r)
	last := make([]int, senders)
	for range senders * each {
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		m := mustParse(t, text)
		var id int
		if _, err := fmt.Sscan(string(m.ID()), &id); err != nil {
			t.Fatal(err)
		}
		s, i := id/each, id%each
		if want := sized(t, id, sizes[(s+i)%len(sizes)]); string(want.Raw)+"\n" != text {
			t.Fatalf("message %d arrived as %s", id, abridge(text))
		}
		if i < last[s] {
			t.Errorf("message %d of sender %d arrived behind its message %d", i, s, last[s])
		}
		last[s] = i
	}
	wg.Wait()
	within(t, w.Idle(), "idle")
}

// What is queued while a sender is still writing must not overtake it when the
// pipe turns out to be too small.
func TestMessagesQueuedDuringAWriteStayBehindIt(t *testing.T) {
	w, r := pipe(t)
	if w.raw == nil {
		t.Skip("writes cannot be tried on this system")
	}
	var receipt Receipt
	receipt.mu.Lock() // stalls the first sender in the middle of its attempt
	var first sync.WaitGroup
	first.Go(func() {
		if err := w.Send(sized(t, 1, 1<<20), nil, &receipt); err != nil {
			t.Error(err)
		}
	})
	until(t, "the first sender is writing", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.busy
	})
	for i := 2; i < 5; i++ {
		if err := w.Send(sized(t, i, 100), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	receipt.mu.Unlock()
	first.Wait()
	if got := ids(t, r, 4); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
		t.Errorf("arrived: %q", got)
	}
	within(t, w.Idle(), "idle")
}

// A regular file cannot be tried without waiting; all goes through the pump.
func TestWritesToFilesThatCannotBeTried(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	w := NewLineWriter(f)
	var receipt, dropped Receipt
	dropped.Drop()
	for i, r := range []*Receipt{&receipt, &dropped, nil} {
		if err := w.Send(sized(t, i, 100_000), nil, r); err != nil {
			t.Fatal(err)
		}
	}
	within(t, w.Idle(), "idle")
	if !receipt.Whole() || dropped.Accepted() != 0 {
		t.Errorf("accepted %d and %d bytes", receipt.Accepted(), dropped.Accepted())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, f, 2); !slices.Equal(got, []string{"0", "2"}) {
		t.Errorf("the file holds %q", got)
	}
	_ = w.Close()
}

func TestAnIdleWriterHoldsLittle(t *testing.T) {
	w, r := pipe(t)
	go func() { _, _ = io.Copy(io.Discard, r) }()
	for range 20 {
		if err := w.Send(sized(t, 1, 15_000), []byte("7"), nil); err != nil {
			t.Fatal(err)
		}
	}
	within(t, w.Idle(), "idle")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.scratch != nil || w.queue != nil || w.busy {
		t.Errorf("a buffer: %t, %d messages, busy: %t", w.scratch != nil, cap(w.queue), w.busy)
	}
}

func TestSendingIntoARoomyPipeAllocatesNothing(t *testing.T) {
	w, r := pipe(t)
	m := sized(t, 1, 200)
	var receipt Receipt
	buf := make([]byte, 4096)
	id := []byte("12345")
	n := testing.AllocsPerRun(100, func() {
		if err := w.Send(m, id, &receipt); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(buf); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for one message", n)
	}
}

// A reader may act on a message before the writer's goroutine has come back from
// the kernel. Whoever asks then must not hear that nothing was sent.
func TestAMessageThatWasReadWasAccepted(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lw := NewLineWriter(w)
	defer lw.Close()
	m := NewRequest([]byte("1"), "tools/call", []byte(`{"name":"x"}`))
	receipts := make(chan *Receipt, 1)
	wrong := make(chan int, 1)
	const rounds = 20_000
	go func() {
		buf := make([]byte, 4096)
		for n := range rounds {
			if _, err := r.Read(buf); err != nil || !(<-receipts).Whole() {
				wrong <- n
				return
			}
		}
		wrong <- -1
	}()
	for range rounds {
		receipt := new(Receipt)
		receipts <- receipt
		if err := lw.Send(m.Clone(), nil, receipt); err != nil {
			t.Fatal(err)
		}
		if len(wrong) > 0 {
			break
		}
	}
	if n := <-wrong; n >= 0 {
		t.Errorf("message %d was read, and its receipt says that it was not sent", n)
	}
}
