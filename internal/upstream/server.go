package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Spec says how to reach a server: either a command or a URL.
type Spec struct {
	// Command is the program and its arguments. It never passes through a shell.
	Command []string
	// Dir is where the program starts, "" for our own working directory.
	Dir string
	// Env is its whole environment; nil gives it ours.
	Env []string
	// Withheld are names of variables that we have and Env leaves out; a server that
	// fails over one of them gets that said.
	Withheld []string
	// Stderr takes a copy of what it writes to stderr. May be nil.
	Stderr io.Writer
	// DieWithUs has the kernel end the process when ours is killed. It binds the
	// child to the thread that started it, which is only safe in a program that
	// never ends threads; so the binary sets it and the library does not. Linux.
	DieWithUs bool
	// OwnGroup keeps the process away from our terminal: it gets a process group of
	// its own even if we have one. Unix.
	OwnGroup bool
	// Reaper ends what the process leaves behind. May be nil.
	Reaper *Reaper

	// URL of a server that is reached over HTTP.
	URL string
	// Header is sent with every request to URL, and to no other origin.
	Header http.Header

	// OnHealth is told when the state of the server changes. It must not block.
	// May be nil.
	OnHealth func(before, after Health)

	// MaxMessage is the largest message in bytes, 0 for wire.DefaultLimit.
	MaxMessage int
	// Grace is how long a process may take to leave once its input has ended, and
	// half of it how long once it was asked to, before it is killed; 0 for two
	// seconds.
	Grace time.Duration
	// StartTimeout bounds start and handshake together. 0 is no limit while the
	// process exists: package runners download on first use.
	StartTimeout time.Duration
	// HungAfter is how long a process may show no sign of life before it is replaced,
	// 0 for five minutes; see liveness.
	HungAfter time.Duration
	// LostAfter is how long a connection may go without an acknowledgement by TCP
	// before it counts as lost, 0 for two minutes.
	LostAfter time.Duration
	// ProbeTimeout is how long a server may stay silent when asked which era it
	// speaks before it is taken for legacy, 0 for two and a half seconds.
	ProbeTimeout time.Duration
}

// Server is one configured server, what has been learned about it, and every
// connection that is open to it. Its methods may be called from any goroutine.
type Server struct {
	spec Spec
	http *httpPlace // nil for a command
	// What is known of the eras the server speaks; it may be both.
	legacy, modern knowledge
	vitals         vitals

	mu      sync.Mutex
	shared  link          // the one link of a modern server
	unused  link          // a live link whose asker went on in another session
	dialing chan struct{} // non-nil while somebody makes the shared link
	// restarts of the shared process.
	restarts restarts
	links    map[link]struct{}
	// watching: the goroutine that looks after the links is running.
	watching bool
	closed   bool
	closing  chan struct{}  // closed with it
	starts   sync.WaitGroup // links being made; none is added once closed is set
	process  *stdioLink     // the last one that was started
	began    time.Time      // when the first link stood
}

// New checks the spec. It starts nothing: a server is started by its first call.
func New(spec Spec) (*Server, error) {
	s := &Server{spec: spec, links: make(map[link]struct{}), closing: make(chan struct{})}
	s.vitals.init()
	s.vitals.tell = spec.OnHealth
	s.vitals.pace.cheap = spec.URL != ""
	if s.spec.HungAfter <= 0 {
		s.spec.HungAfter = defaultHungAfter
	}
	if s.spec.LostAfter <= 0 {
		s.spec.LostAfter = defaultLostAfter
	}
	if s.spec.Grace <= 0 {
		s.spec.Grace = 2 * time.Second
	}
	if s.spec.ProbeTimeout <= 0 {
		s.spec.ProbeTimeout = 2500 * time.Millisecond
	}
	switch {
	case len(spec.Command) > 0 && spec.URL != "":
		return nil, errors.New("a server has a command or a URL, not both")
	case len(spec.Command) > 0:
		if spec.Command[0] == "" {
			return nil, errors.New("the command is empty")
		}
	case spec.URL != "":
		u, err := url.Parse(spec.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("%q is not an http or https URL", spec.URL)
		}
		s.http = newHTTPPlace(u, &s.spec)
	default:
		return nil, errors.New("a server needs a command or a URL")
	}
	return s, nil
}

// knowledge is a yes or a no that may not have been found out yet.
type knowledge struct{ v atomic.Int32 }

func (k *knowledge) yes() bool { return k.v.Load() > 0 }
func (k *knowledge) no() bool  { return k.v.Load() < 0 }
func (k *knowledge) forget()   { k.v.Store(0) }

func (k *knowledge) learn(is bool) {
	if is {
		k.v.Store(1)
	} else {
		k.v.Store(-1)
	}
}

// dial makes a new link. hear takes what is heard on it outside of replies.
func (s *Server) dial(hear receiver) (link, *fault.Fault) {
	s.mu.Lock()
	l := s.unused
	s.unused = nil
	s.mu.Unlock()
	if l != nil {
		if l.trouble() == nil {
			l.adopt(hear, false)
			return l, nil
		}
		s.drop(l)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, &fault.Fault{Delivery: fault.Unsent, Evidence: fault.Evidence{Text: "mcpmend is shutting down"}}
	}
	s.starts.Add(1) // whoever closes the server from here on waits for the link to be in the table
	s.mu.Unlock()
	defer s.starts.Done()
	s.vitals.beginning()
	var process *stdioLink
	if s.http != nil {
		l = s.http.dial(hear)
	} else {
		p, flt := startStdio(&s.spec, hear, s.processEnded)
		if flt != nil {
			s.vitals.lost(flt, false)
			return nil, flt
		}
		l, process = p, p
	}
	s.mu.Lock()
	s.links[l] = struct{}{}
	if process != nil {
		s.process = process
		if s.began.IsZero() {
			s.began = time.Now()
		}
	}
	if !s.watching {
		s.watching = true
		go s.watch()
	}
	s.mu.Unlock()
	return l, nil
}

// processEnded takes the news that a process has ended by itself.
func (s *Server) processEnded(why *fault.Fault, wasReady bool) { s.vitals.lost(why, wasReady) }

// drop ends a link and forgets it once nothing of it is left.
func (s *Server) drop(l link) {
	if l == nil {
		return
	}
	l.close()
	s.mu.Lock()
	if s.shared == l {
		s.shared = nil
	}
	s.mu.Unlock()
	go func() {
		<-l.closed()
		s.mu.Lock()
		delete(s.links, l)
		s.mu.Unlock()
	}()
}

// sharedLink is the link that all modern sessions use, if it is usable now.
func (s *Server) sharedLink() link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared != nil && s.shared.trouble() == nil {
		return s.shared
	}
	return nil
}

// openShared returns the shared link and makes it if need be. Whoever comes while
// it is being made waits for that one.
func (s *Server) openShared() (link, *fault.Fault) {
	for {
		s.mu.Lock()
		if s.shared != nil && s.shared.trouble() == nil {
			defer s.mu.Unlock()
			return s.shared, nil
		}
		wait := s.dialing
		if wait == nil {
			break
		}
		s.mu.Unlock()
		<-wait
	}
	stale := s.shared
	s.shared = nil
	pause := time.Duration(0)
	if process, ok := stale.(*stdioLink); ok {
		pause = s.restarts.pause(process.wasUseful())
	}
	made := make(chan struct{})
	s.dialing = made
	s.mu.Unlock()
	s.drop(stale)
	rest := time.NewTimer(pause)
	select {
	case <-rest.C:
	case <-s.closing:
		rest.Stop()
	}
	l, flt := s.dial(everybody)
	if flt == nil {
		l.adopt(everybody, true)
	}
	s.mu.Lock()
	s.dialing = nil
	if flt == nil {
		s.shared = l
	}
	s.mu.Unlock()
	close(made)
	if flt != nil {
		return nil, flt
	}
	return l, nil
}

// promote makes a session's link the shared one, for a server that turned out to
// be modern. If there is a shared link already, the session's own is dropped.
func (s *Server) promote(l link) link {
	l.adopt(everybody, true)
	s.mu.Lock()
	if s.shared != nil && s.shared.trouble() == nil {
		other := s.shared
		s.mu.Unlock()
		s.drop(l)
		return other
	}
	s.shared = l
	s.mu.Unlock()
	return l
}

// demote takes the shared link away from the others, for a server that turned
// out to be legacy: it becomes the link of the session that asked.
// It reports false if somebody else has it already.
func (s *Server) demote(l link, hear receiver, shared bool) bool {
	s.mu.Lock()
	mine := s.shared == l
	if mine {
		s.shared = nil
	}
	s.mu.Unlock()
	if mine {
		l.adopt(hear, shared)
	}
	return mine
}

// spare keeps a live link for the next session that needs one.
func (s *Server) spare(l link) {
	s.mu.Lock()
	if s.shared == l {
		s.shared = nil
	}
	old := s.unused
	s.unused = l
	s.mu.Unlock()
	if old != l {
		s.drop(old)
	}
}

// everybody hears what a modern server says to all sessions.
var everybody = receiver{take: hearShared}

// hearShared takes what a modern server says. Everything it may say belongs to a
// request; what does not is dropped, and a question is answered with an error: a
// modern server has no questions outside of its results.
func hearShared(l link, m wire.Message, f *flight) {
	switch {
	case m.Kind == wire.Request && m.Method() == wire.MethodPing:
		_ = l.post(wire.NewResult(m.ID(), []byte("{}")))
	case m.Kind == wire.Request:
		_ = l.post(notAsked(&m))
	case f != nil:
		f.hear(m)
		return
	}
	m.Release()
}

// notAsked answers a question of a server that is put to nobody.
func notAsked(m *wire.Message) wire.Message {
	return wire.NewError(m.ID(), wire.CodeMethodNotFound, "there is no client that can be asked this: "+m.Method(), nil)
}

// Close ends every connection and waits until nothing is left of them, or until
// ctx is done.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.starts.Wait() // for no longer than it takes to start a process
	s.mu.Lock()
	links := make([]link, 0, len(s.links))
	for l := range s.links {
		links = append(links, l)
	}
	s.mu.Unlock()
	for _, l := range links {
		l.close()
	}
	for _, l := range links {
		select {
		case <-l.closed():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.http != nil {
		s.http.client.CloseIdleConnections()
	}
	return nil
}
