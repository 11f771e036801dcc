package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpmend/mcpmend/internal/wire"
)

// A conversation is a section of a txtar file: what the clients say, what the
// server must hear, what it says, and what the clients must get, one line each, in
// order. Nobody may get anything else.
//
//	over: stdio                      only over stdio, or only over http; else over both
//	probe timeout: 100ms             of the Spec; start timeout, too
//	alice is a modern client         or a legacy one, with a session of her own;
//	                                 "on stdio": no stream of its own for each call
//	bob shares the session of alice
//	alice > {"id":1,"method":...}    alice says that
//	server < {"id":"$call",...}      the server must hear exactly that
//	server/$call > {...}             it says that, over HTTP on the stream of that request
//	alice/1 < {...}                  alice must hear that on the stream of her call 1
//	alice < {"id":1,"result":...}    and that is the reply, or outside of calls
//	alice drops 1                    she gives the call up without a word, as over HTTP
//	alice leaves                     her session ends
//	server exits                     in the middle of what it does
//	server hears the end             of its input
//	10m pass                         in a bubble of testing/synctest
//
// "jsonrpc" is left out. "$name" stands for any value where it comes first, and for
// the same value from then on; "$_" for any. "...": "$name" in an object stands for
// the members of that one. Further lines of a message are indented. A second process
// of the server is server2. The section "names" gives values to names, "before" and
// "after" are put before and after every conversation of the file.
type conversation struct {
	t     *testing.T
	line  string
	names map[string]any

	server  *Server
	stage   stage
	clients map[string]*actor
}

// stage is where the server plays its part.
type stage interface {
	spec() Spec
	// hear returns the next message to this server, "" if its input has ended.
	hear(t *testing.T, name string) string
	say(t *testing.T, name, on, line string)
	exit(t *testing.T, name string)
	// rest is what nobody has asked for, once the server is closed.
	rest() []string
}

// actor is one client.
type actor struct {
	t       *testing.T
	session *Session
	streams bool // each call has a stream of its own
	calls   map[string]*Call
	got     chan said
}

// said is a message to a client, and the call on whose stream it came.
type said struct{ on, line string }

func TestConversationsAcrossTheEras(t *testing.T) {
	paths, err := filepath.Glob("testdata/eras/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file := txtar.Parse(data)
		section := func(name string) string {
			for _, f := range file.Files {
				if f.Name == name {
					return string(f.Data)
				}
			}
			return ""
		}
		for _, f := range file.Files {
			if slices.Contains([]string{"names", "before", "after"}, f.Name) {
				continue
			}
			script := section("before") + string(f.Data) + section("after")
			name := strings.TrimSuffix(filepath.Base(path), ".txtar") + "/" + f.Name
			if !strings.Contains(script, "over: http\n") {
				t.Run(name+"/stdio", func(t *testing.T) {
					t.Parallel()
					converse(t, newStdioStage(t), section("names"), script)
				})
			}
			if !strings.Contains(script, "over: stdio\n") {
				t.Run(name+"/http", func(t *testing.T) {
					t.Parallel()
					converse(t, newHTTPStage(t), section("names"), script)
				})
			}
		}
	}
}

func converse(t *testing.T, where stage, names, script string) {
	spec := where.spec()
	spec.Grace = webTimeout // a loaded machine is no reason to kill a puppet
	spec.ProbeTimeout = setting(t, script, "probe timeout", webTimeout)
	spec.StartTimeout = setting(t, script, "start timeout", 2*webTimeout)
	server, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := where.(*httpStage); ok && s.dial != nil {
		server.http.client.Transport.(*http.Transport).DialContext = s.dial
	}
	c := &conversation{t: t, names: make(map[string]any), server: server, stage: where, clients: make(map[string]*actor)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*webTimeout)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Errorf("closing the server: %v", err)
		}
	})
	if names != "" {
		c.names = c.decode(names).(map[string]any)
	}
	script = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(script, "")
	script = regexp.MustCompile(`\n[ \t]+`).ReplaceAllString(script, " ")
	for line := range strings.Lines(script) {
		if c.line = strings.TrimSpace(line); c.line != "" {
			c.play()
		}
	}
	c.end()
}

// setting is what a line "name: duration" of a script says.
func setting(t *testing.T, script, name string, usual time.Duration) time.Duration {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `: (.*)$`).FindStringSubmatch(script)
	if m == nil {
		return usual
	}
	d, err := time.ParseDuration(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	settings = regexp.MustCompile(`^(over|probe timeout|start timeout): `)

	speech = regexp.MustCompile(`^(\w+)(?:/(\S+))? ([<>]) (\{.*\})$`)
	action = regexp.MustCompile(`^(\w+) (is a modern client|is a legacy client|shares the session of|drops|leaves|exits|hears the end)(?: (.+))?$`)
)

// play does what one line says.
func (c *conversation) play() {
	c.t.Helper()
	if settings.MatchString(c.line) {
		return
	}
	if m := speech.FindStringSubmatch(c.line); m != nil {
		who, on := m[1], m[2]
		text := c.fill(c.decode(m[4]))
		switch isServer := strings.HasPrefix(who, "server"); {
		case isServer && m[3] == ">":
			c.stage.say(c.t, who, c.known(on), encode(text))
		case isServer:
			c.match(text, c.stage.hear(c.t, who))
		case m[3] == ">":
			c.client(who).say(encode(text))
		default:
			got := c.heard(who)
			if want := c.known(on); got.on != want {
				c.fatalf("it came on the stream of call %q, not of %q:\n%s", got.on, want, got.line)
			}
			c.match(text, got.line)
		}
		return
	}
	if d, ok := strings.CutSuffix(c.line, " pass"); ok {
		c.pass(d)
		return
	}
	m := action.FindStringSubmatch(c.line)
	if m == nil {
		c.fatalf("not understood")
	}
	switch who, what, object := m[1], m[2], m[3]; what {
	case "is a modern client":
		c.enter(who, Peer{Era: wire.Modern, Several: object != "on stdio"}, object != "on stdio")
	case "is a legacy client":
		c.enter(who, Peer{Era: wire.Legacy}, object != "on stdio")
	case "shares the session of":
		c.clients[who] = newActor(c.t, c.client(object).streams)
		c.clients[who].session = c.client(object).session
	case "drops":
		a := c.client(who)
		a.session.Cancel(a.calls[object], nil)
	case "leaves":
		c.client(who).session.Close()
	case "exits":
		c.stage.exit(c.t, who)
	case "hears the end":
		if got := c.stage.hear(c.t, who); got != "" {
			c.fatalf("it heard %s", got)
		}
	}
}

// pass lets time go by, and everything happen that is due then.
func (c *conversation) pass(text string) {
	c.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		c.fatalf("%v", err)
	}
	time.Sleep(d)
	synctest.Wait()
}

func newActor(t *testing.T, streams bool) *actor {
	return &actor{t: t, streams: streams, calls: make(map[string]*Call), got: make(chan said, 1000)}
}

func (c *conversation) enter(who string, peer Peer, streams bool) {
	a := newActor(c.t, streams)
	peer.Message = func(m wire.Message) { a.got <- said{line: string(m.Raw)} }
	a.session = c.server.Open(peer)
	c.clients[who] = a
}

func (c *conversation) client(who string) *actor {
	a := c.clients[who]
	if a == nil {
		c.fatalf("who is %s?", who)
	}
	return a
}

// say does with a client's message what package front does.
func (a *actor) say(line string) {
	m, err := wire.Parse([]byte(line))
	if err != nil {
		a.t.Fatalf("%s: %v", line, err)
	}
	switch {
	case m.Kind == wire.Request:
		a.call(m)
	case m.Method() == wire.MethodCancelled:
		id, _ := wire.Member(m.Params(), "requestId")
		a.session.Cancel(a.calls[string(id)], &m)
	default:
		a.session.Send(m)
		if m.Method() == wire.MethodInitialized {
			a.session.Attend()
		}
	}
}

func (a *actor) call(m wire.Message) {
	id := string(m.ID())
	call := &Call{Msg: m}
	if a.streams {
		call.On = func(m wire.Message) { a.got <- said{on: id, line: string(m.Raw)} }
	}
	call.Done = func(o Outcome) {
		if o.Fault != nil {
			line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"fault":{"delivery":%q,"text":%q}}`, id, o.Fault.Delivery, o.Fault.Text)
			a.got <- said{line: line}
			return
		}
		reply := o.Reply.WithID([]byte(id))
		a.got <- said{line: string(reply.Raw)}
	}
	a.calls[id] = call
	a.session.Do(call)
}

func (c *conversation) heard(who string) said {
	c.t.Helper()
	select {
	case got := <-c.client(who).got:
		return got
	case <-time.After(webTimeout):
		c.fatalf("%s heard nothing", who)
		return said{}
	}
}

// end closes everything and looks for what nobody has asked for.
func (c *conversation) end() {
	c.t.Helper()
	for _, a := range c.clients {
		a.session.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*webTimeout)
	defer cancel()
	if err := c.server.Close(ctx); err != nil {
		c.t.Errorf("closing the server: %v", err)
	}
	for who, a := range c.clients {
		for len(a.got) > 0 {
			c.t.Errorf("%s also heard %s", who, (<-a.got).line)
		}
	}
	for _, line := range c.stage.rest() {
		c.t.Errorf("the server also heard %s", line)
	}
}

func (c *conversation) fatalf(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\n%s", c.line, fmt.Sprintf(format, args...))
}

func (c *conversation) decode(text string) any {
	c.t.Helper()
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber() // 1 is not 1.0
	var v any
	if err := in.Decode(&v); err != nil {
		c.fatalf("%s: %v", text, err)
	}
	return v
}

func encode(v any) string {
	message, _ := v.(map[string]any)
	message["jsonrpc"] = "2.0"
	text, _ := json.Marshal(message)
	return string(text)
}

// known is the value of a name as JSON, or the text itself if it is no name.
func (c *conversation) known(text string) string {
	if name, ok := strings.CutPrefix(text, "$"); ok {
		value, _ := json.Marshal(c.names[name])
		return string(value)
	}
	return text
}

// fill puts values in place of the names that have one.
func (c *conversation) fill(v any) any {
	switch v := v.(type) {
	case string:
		if name, ok := strings.CutPrefix(v, "$"); ok && name != "_" {
			if value, ok := c.names[name]; ok {
				return c.fill(value)
			}
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = c.fill(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any)
		if more, ok := c.fill(v["..."]).(map[string]any); ok {
			maps.Copy(out, more)
		}
		for key, value := range v {
			if key != "..." {
				out[key] = c.fill(value)
			}
		}
		return out
	}
	return v
}

// match compares and learns the names that have no value yet.
func (c *conversation) match(want any, line string) {
	c.t.Helper()
	if line == "" {
		c.fatalf("its input has ended")
	}
	got := c.decode(line)
	want.(map[string]any)["jsonrpc"] = "2.0"
	c.learn(want, got)
	if diff := cmp.Diff(c.fill(want), got, cmp.FilterPath(wildcard, cmp.Ignore())); diff != "" {
		c.fatalf("got %s\ndifference (-want +got):\n%s", line, diff)
	}
}

// wildcard reports whether a place may hold anything.
func wildcard(p cmp.Path) bool {
	want, _ := p.Last().Values()
	for want.IsValid() && want.Kind().String() == "interface" {
		want = want.Elem()
	}
	return want.IsValid() && want.Kind().String() == "string" && want.String() == "$_"
}

func (c *conversation) learn(want, got any) {
	switch want := want.(type) {
	case string:
		if name, ok := strings.CutPrefix(want, "$"); ok && name != "_" && c.names[name] == nil {
			c.names[name] = got
		}
	case map[string]any:
		object, _ := got.(map[string]any)
		for key, value := range want {
			if inner, ok := object[key]; ok {
				c.learn(value, inner)
			}
		}
	case []any:
		array, _ := got.([]any)
		for i := range min(len(want), len(array)) {
			c.learn(want[i], array[i])
		}
	}
}

// stdioStage is a server on stdio: a real process for each connection.
type stdioStage struct {
	puppets *Puppets
	playing map[string]*Puppet
}

func newStdioStage(t *testing.T) *stdioStage {
	return &stdioStage{puppets: NewPuppets(t), playing: make(map[string]*Puppet)}
}

func (s *stdioStage) spec() Spec { return Spec{Command: s.puppets.Command, Env: s.puppets.Env} }

func (s *stdioStage) puppet(t *testing.T, name string) *Puppet {
	t.Helper()
	p := s.playing[name]
	if p == nil {
		p = s.puppets.Next(t)
		s.playing[name] = p
	}
	return p
}

func (s *stdioStage) hear(t *testing.T, name string) string {
	t.Helper()
	return webAwait(t, s.puppet(t, name).Heard, name+" to hear something")
}

func (s *stdioStage) say(t *testing.T, name, _, line string) {
	t.Helper()
	s.puppet(t, name).Say(line)
}

func (s *stdioStage) exit(t *testing.T, name string) {
	t.Helper()
	s.puppet(t, name).Exit()
}

func (s *stdioStage) rest() []string {
	var lines []string
	for _, p := range s.playing {
		for line := range p.Heard {
			lines = append(lines, line)
		}
	}
	for len(s.puppets.started) > 0 {
		lines = append(lines, "that it is started once more")
		<-s.puppets.started
	}
	return lines
}

// httpStage is a server on Streamable HTTP. The end of a stream before its reply is
// how a modern client cancels, so the script sees it as the notification it stands
// for.
type httpStage struct {
	*httptest.Server
	heard   chan string
	outside chan string // for the stream of what belongs to no request
	// dial reaches it where there is no network. nil for the usual way.
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	streams map[string]chan string // by id of the request
}

func unstartedStage() *httpStage {
	s := &httpStage{heard: make(chan string, 1000), outside: make(chan string, 1000), streams: make(map[string]chan string)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	return s
}

// newBubbleStage is one without a network, so that time can be made to pass in a
// bubble of testing/synctest.
func newBubbleStage() *httpStage {
	s := unstartedStage()
	_ = s.Listener.Close()
	pipes := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.Listener, s.dial = pipes, pipes.dial
	s.Start()
	return s
}

// pipeListener is a net.Listener for connections within the process.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func newHTTPStage(t *testing.T) *httpStage {
	s := unstartedStage()
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *httpStage) serve(w http.ResponseWriter, r *http.Request) {
	legacy := r.Header.Get(headerVersion) != wire.ModernVersion
	switch {
	case r.Method == http.MethodGet && legacy:
		s.stream(w, r, s.outside, nil)
		return
	case r.Method == http.MethodDelete && legacy:
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := wire.Parse(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.Kind != wire.Request {
		s.heard <- string(body)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	id := string(m.ID())
	lines := make(chan string, 1000)
	s.mu.Lock()
	s.streams[id] = lines
	s.mu.Unlock()
	s.heard <- string(body)
	if !s.stream(w, r, lines, m.ID()) && !legacy {
		s.heard <- fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
	}
}

// stream writes lines as events up to the reply with this id, and reports whether
// it came to that.
func (s *httpStage) stream(w http.ResponseWriter, r *http.Request, lines <-chan string, id []byte) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		select {
		case line := <-lines:
			if strings.Contains(line, `"result":{`) && strings.Contains(line, `"protocolVersion":`) { // of initialize
				w.Header().Set(headerSession, "s1")
			}
			webEvents(w, "data: "+line)
			if m, err := wire.Parse([]byte(line)); err == nil && m.Kind == wire.Response && string(m.ID()) == string(id) {
				return true
			}
		case <-r.Context().Done():
			return false
		}
	}
}

func (s *httpStage) spec() Spec { return Spec{URL: s.URL} }

func (s *httpStage) hear(t *testing.T, name string) string {
	t.Helper()
	return webAwait(t, s.heard, name+" to hear something")
}

func (s *httpStage) say(t *testing.T, _, on, line string) {
	t.Helper()
	if m, err := wire.Parse([]byte(line)); err == nil && m.Kind == wire.Response {
		on = string(m.ID())
	}
	s.mu.Lock()
	lines := s.streams[on]
	s.mu.Unlock()
	if on == "" {
		lines = s.outside
	}
	if lines == nil {
		t.Fatalf("there is no stream %q for %s", on, line)
	}
	lines <- line
}

func (s *httpStage) exit(t *testing.T, _ string) {
	t.Fatal("a server on HTTP is not ours to end")
}

func (s *httpStage) rest() []string {
	s.CloseClientConnections()
	s.Server.Close()
	var lines []string
	for len(s.heard) > 0 {
		lines = append(lines, <-s.heard)
	}
	return lines
}
