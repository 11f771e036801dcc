package front

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpmend/mcpmend/internal/catalogue"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

func nowhere(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	server, err := guard.New(guard.Spec{Command: []string{"never-started"}}, guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return catalogue.Of(server)
}

func TestASessionEndsWhenNobodyUsesItForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := sessions{idle: time.Hour}
		c := nowhere(t)
		used, left, streaming := table.begin(c), table.begin(c), table.begin(c)
		table.leave(used)
		table.leave(left)
		lives := func(s *session) bool {
			table.mu.Lock()
			defer table.mu.Unlock()
			return table.byID[s.id] == s
		}
		for range 5 {
			time.Sleep(50 * time.Minute)
			synctest.Wait()
			if table.enter(used.id) == nil {
				t.Fatal("a session in use has ended")
			}
			table.leave(used)
		}
		if lives(left) {
			t.Error("a session that nobody used for four hours lives")
		}
		if !lives(streaming) {
			t.Error("a session with an open stream has ended")
		}
		table.leave(streaming)
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if !lives(streaming) {
			t.Error("a session has ended before its time")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if lives(streaming) || lives(used) {
			t.Error("a session that nobody used for an hour lives")
		}
		table.mu.Lock()
		defer table.mu.Unlock()
		if table.timer != nil || table.quiet.Len() != 0 {
			t.Error("something is left to watch")
		}
	})
}

// follow has an answer follow a stream inside a bubble, and returns the client's
// end of the connection. What is not read there is not written here.
func follow(t *testing.T, s *stream, after func(heard bool)) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // as ServeHTTP does
		a := answer{w: w, accept: accepts(r.Header)}
		after(a.follow(r, s, ending{}))
	})}
	go func() { _ = server.Serve(&oneConn{conn: ours, closed: make(chan struct{})}) }()
	t.Cleanup(func() {
		theirs.Close()
		server.Close()
	})
	return theirs
}

// fetch sends a request and returns the body, and when the headers arrived.
func fetch(t *testing.T, conn net.Conn, accept string) (body string, first time.Duration) {
	begun := time.Now()
	r, _ := http.NewRequest(http.MethodPost, "http://localhost/", nil)
	r.Header.Set("Accept", accept)
	if err := r.Write(conn); err != nil {
		t.Error(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Error(err)
		return "", 0
	}
	first = time.Since(begun)
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(all), first
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

const reply = `{"jsonrpc":"2.0","id":1,"result":{}}`

func answerAfter(d time.Duration, s *stream) {
	time.AfterFunc(d, func() {
		s.push(outgoing{msg: wire.NewResult([]byte("1"), []byte(`{}`)), reply: true})
	})
}

func TestALongCallIsAnsweredInJSONToAClientThatReadsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(1)
		conn := follow(t, s, func(heard bool) {
			if !heard {
				t.Error("the answer was not written")
			}
		})
		answerAfter(10*time.Minute, s)
		if body, first := fetch(t, conn, "application/json"); body != reply || first != 10*time.Minute {
			t.Errorf("got %q after %v", body, first)
		}
	})
}

func TestASilentCallShowsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(1)
		conn := follow(t, s, func(bool) {})
		answerAfter(time.Minute+time.Second, s)
		body, first := fetch(t, conn, "application/json, text/event-stream")
		if first != silence {
			t.Errorf("the first sign came after %v, want %v", first, silence)
		}
		if n := strings.Count(body, ": still here"); n != 4 {
			t.Errorf("got %d signs in a minute, want 4: %q", n, body)
		}
		if !strings.HasSuffix(body, "data: "+reply+"\n\n") {
			t.Errorf("got %q", body)
		}
	})
}

func TestAClientThatStopsReadingIsLeftAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(1)
		gone := make(chan bool, 1)
		conn := follow(t, s, func(heard bool) {
			gone <- heard
			panic(http.ErrAbortHandler)
		})
		r, _ := http.NewRequest(http.MethodPost, "http://localhost/", nil)
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		s.push(outgoing{msg: wire.NewNotification("notifications/message", nil)})
		if heard := <-gone; heard || time.Since(begun) != patience {
			t.Errorf("heard %v, after %v, want false after %v", heard, time.Since(begun), patience)
		}
	})
}
