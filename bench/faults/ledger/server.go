// Package ledger is a real MCP server whose tools write down what they do.
//
// Every effect is a begin and a commit line in an append-only book, synced to
// disk, under an op_id that the caller chose. Nothing is de-duplicated, so a
// call that was sent twice shows as two commits whatever the systems in
// between believe. The server speaks both eras of the protocol over stdio and
// Streamable HTTP, and fails exactly when and how its Plan says.
package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/bench/faults/rpc"
)

// server is one instance: one process.
type server struct {
	plan   Plan
	book   *Book
	points *points
	first  bool // no instance ran before this one

	// loop stands for the single thread of an event loop: the reader takes it
	// for each read, the writer for each answer, and a CPU-bound tool for all
	// of its work.
	loop sync.Mutex
	// reading is held while bytes are taken from the pipe and entered in the book.
	reading sync.Mutex
	// deaf tells the reader to close stdin and read no more.
	deaf atomic.Bool

	received atomic.Int64 // numbered tool calls read
	running  atomic.Int64 // tool calls at work

	mu      sync.Mutex
	calls   map[string]*call             // by JSON-RPC id, for cancellation (stdio)
	asked   map[string]chan *rpc.Message // questions to the client, by JSON-RPC id (legacy era)
	shed    map[string]int               // load shedding so far, by op
	session sessions                     // HTTP

	questions int // asked so far

	write func([]byte) // stdio: one raw write to stdout
}

// call is one tools/call on its way through the server.
type call struct {
	id       json.RawMessage
	op       string
	index    int
	tool     string
	args     arguments
	raw      json.RawMessage // the arguments as they came
	progress json.RawMessage // the caller's progress token
	answered bool            // the caller supplied the input that was asked for
	who      string          // and called itself this
	modern   bool
	gone     chan struct{} // closed on cancellation
	once     sync.Once
}

type arguments struct {
	Op string `json:"op_id"`
	// WorkMS is how long the tool works without using the processor.
	WorkMS int `json:"work_ms"`
	// BurnMS is how long it computes, with the event loop blocked.
	BurnMS int `json:"burn_ms"`
	// ProgressMS sends a progress notification each so many milliseconds of work.
	ProgressMS int `json:"progress_ms"`
	// Size pads the answer to so many bytes.
	Size int `json:"size"`
	// Ask needs one round of input from the client before the effect: who it is.
	Ask bool `json:"ask"`
	// Shed turns the call away so many times before it is let in (modern era).
	Shed int `json:"shed"`
	// Level and Season are what the fussy tools look at.
	Level  string `json:"level"`
	Season string `json:"season"`
}

// answer is what goes back for one request, and the faults that will spoil it.
type answer struct {
	msg   *rpc.Message
	call  *call
	spoil []Fault
}

func newServer(dir string) (*server, error) {
	plan, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	before, err := readLines(strikesPath(dir))
	if err != nil {
		return nil, err
	}
	first := sizeOf(bookPath(dir)) == 0
	book, err := OpenBook(dir)
	if err != nil {
		return nil, err
	}
	s := &server{
		plan: plan, book: book, first: first,
		points: newPoints(dir, book, plan.Faults, before, first),
		calls:  map[string]*call{}, shed: map[string]int{}, asked: map[string]chan *rpc.Message{},
	}
	s.session.live = map[string]*stream{}
	return s, nil
}

// receive enters a request in the book. Only tools/call has an operation.
func (s *server) receive(m *rpc.Message) (*call, Line, bool) {
	if m.Method != "tools/call" || len(m.ID) == 0 {
		return nil, Line{}, false
	}
	var p struct {
		Name           string                     `json:"name"`
		Arguments      json.RawMessage            `json:"arguments"`
		InputResponses map[string]json.RawMessage `json:"inputResponses"`
		Meta           struct {
			ProgressToken json.RawMessage `json:"progressToken"`
			Version       string          `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	json.Unmarshal(m.Params, &p)
	var args arguments
	json.Unmarshal(p.Arguments, &args)
	c := &call{
		id: m.ID, op: args.Op, index: Index(args.Op), tool: p.Name, args: args, raw: p.Arguments,
		progress: p.Meta.ProgressToken, answered: len(p.InputResponses) > 0,
		modern: p.Meta.Version >= rpc.Modern, gone: make(chan struct{}),
	}
	c.who = whoOf(p.InputResponses["sure"])
	if c.index >= 0 {
		s.received.Add(1)
	}
	return c, Line{Kind: Recv, Op: c.op, Tool: c.tool, Note: s.evidence(c)}, true
}

// Index is the number at the end of an op_id, -1 when it has none. Faults leave
// operations without a number alone.
func Index(op string) int {
	n, err := strconv.Atoi(op[strings.LastIndexByte(op, '.')+1:])
	if err != nil {
		return -1
	}
	return n
}

// serve answers one request; nil means that none is owed (yet).
func (s *server) serve(ctx context.Context, m *rpc.Message, c *call, tell func(*rpc.Message)) *answer {
	if c != nil {
		return s.call(ctx, c, tell)
	}
	switch m.Method {
	case "initialize":
		if s.plan.Era == "modern" {
			return &answer{msg: &rpc.Message{ID: m.ID, Error: unsupported(rpc.Legacy)}}
		}
		s.book.Write(false, Line{Kind: Init, Note: "initialize"})
		return &answer{msg: rpc.Answer(m.ID, map[string]any{
			"protocolVersion": agree(m), "serverInfo": info,
			"capabilities": map[string]any{"tools": map[string]any{"listChanged": true}},
		})}
	case "server/discover":
		return s.discover(m)
	case "ping":
		return &answer{msg: rpc.Answer(m.ID, struct{}{})}
	case "tools/list":
		return &answer{msg: s.list(m)}
	}
	return &answer{msg: rpc.Refuse(m.ID, -32601, "method not found: %s", m.Method)}
}

// agree takes the client's version of the protocol if it is one of the legacy era.
func agree(m *rpc.Message) string {
	var p struct {
		Version string `json:"protocolVersion"`
	}
	json.Unmarshal(m.Params, &p)
	if slices.Contains([]string{"2024-11-05", "2025-03-26", "2025-06-18"}, p.Version) {
		return p.Version
	}
	return rpc.Legacy
}

var info = map[string]any{"name": "ledger", "version": "1"}

func unsupported(asked string) *rpc.Error {
	return &rpc.Error{Code: -32022, Message: "unsupported protocol version",
		Data: rpc.JSON(map[string]any{"supported": []string{rpc.Modern}, "requested": asked})}
}

func (s *server) discover(m *rpc.Message) *answer {
	if s.plan.Era == "legacy" {
		switch s.plan.Discover {
		case "silent":
			return nil
		case "exit":
			os.Exit(1)
		}
		return &answer{msg: rpc.Refuse(m.ID, -32601, "method not found: server/discover")}
	}
	s.book.Write(false, Line{Kind: Init, Note: "discover"})
	return &answer{msg: rpc.Answer(m.ID, map[string]any{
		"resultType": "complete", "supportedVersions": []string{rpc.Modern},
		"capabilities": map[string]any{"tools": map[string]any{}},
		"_meta":        map[string]any{"io.modelcontextprotocol/serverInfo": info},
		"ttlMs":        0, "cacheScope": "public",
	})}
}

// call runs a tool: received, begun, worked, committed, answered, with a place
// for a fault between any two.
func (s *server) call(ctx context.Context, c *call, tell func(*rpc.Message)) *answer {
	if n := s.running.Add(1); s.plan.Ceiling > 0 && n > int64(s.plan.Ceiling) {
		s.book.Write(true, Line{Kind: Fired, Op: c.op, Note: fmt.Sprintf("ceiling %d calls at once", n)})
		s.freeze()
		os.Exit(3)
	}
	defer s.running.Add(-1)

	ans := &answer{call: c}
	if s.plan.Era == "modern" && !c.modern {
		s.book.Write(false, Line{Kind: Refused, Op: c.op, Tool: c.tool, Note: "no protocol version"})
		ans.msg = rpc.Refuse(c.id, -32602, "the request does not say its protocol version")
		return ans
	}
	if ans.spoil = s.reach(AfterRead, c); ans.spoil != nil {
		s.book.Write(false, Line{Kind: Refused, Op: c.op, Tool: c.tool})
		ans.msg = s.result(c)
		return ans
	}
	if c.tool == Destructive && s.shape() == "removed" {
		ans.msg = rpc.Refuse(c.id, -32602, "unknown tool: %s", c.tool)
		return ans
	}
	if no := s.refuse(c); no != nil {
		s.book.Write(false, Line{Kind: Refused, Op: c.op, Tool: c.tool, Note: "invalid arguments"})
		ans.msg = no
		return ans
	}
	if early := s.turnAway(ctx, c, tell); early != nil {
		ans.msg = early
		return ans
	}
	// A tool that needs a file of its own fails cleanly when there is none to be had.
	f, err := os.Open(os.DevNull)
	if err != nil {
		ans.msg = rpc.Answer(c.id, toolError("not executed: %v", err))
		return ans
	}
	f.Close()

	if err := s.book.Write(true, Line{Kind: Begin, Op: c.op, Tool: c.tool}); err != nil {
		ans.msg = rpc.Answer(c.id, toolError("not executed: %v", err))
		return ans
	}
	if !s.work(ctx, c, tell) {
		return nil
	}
	ans.spoil = s.reach(BeforeCommit, c)
	if err := s.book.Write(true, Line{Kind: Commit, Op: c.op, Tool: c.tool}); err != nil {
		ans.msg = rpc.Answer(c.id, toolError("outcome unknown: %v", err))
		return ans
	}
	ans.spoil = append(ans.spoil, s.reach(AfterCommit, c)...)
	ans.msg = s.result(c)
	return ans
}

// reach is called at each phase. What concerns the process happens here and
// now; what concerns the answer is returned.
func (s *server) reach(at Phase, c *call) []Fault {
	var spoil []Fault
	for _, f := range s.points.match(at, c) {
		switch f.Do {
		case Say, Respond, Drop, Bomb:
			spoil = append(spoil, f)
		default:
			s.strike(f, c)
		}
	}
	return spoil
}

// question is the same for every call, so that nobody can tell by it whose it is.
var question = map[string]any{"message": "who are you?", "requestedSchema": map[string]any{
	"type": "object", "properties": map[string]any{"who": map[string]any{"type": "string"}},
}}

// whoOf reads the answer to it.
func whoOf(answer json.RawMessage) string {
	var a struct {
		Content struct {
			Who string `json:"who"`
		} `json:"content"`
	}
	json.Unmarshal(answer, &a)
	return a.Content.Who
}

// inquire puts the question to the client of the legacy era. It returns nil when the
// client went away.
func (s *server) inquire(ctx context.Context, c *call, tell func(*rpc.Message)) *rpc.Message {
	answer := make(chan *rpc.Message, 1)
	s.mu.Lock()
	s.questions++
	id := rpc.JSON(s.questions)
	s.asked[string(id)] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, string(id))
		s.mu.Unlock()
	}()
	tell(&rpc.Message{ID: id, Method: "elicitation/create", Params: rpc.JSON(question)})
	select {
	case m := <-answer:
		return m
	case <-c.gone:
	case <-ctx.Done():
	}
	return nil
}

// hear takes the client's answer to a question.
func (s *server) hear(m *rpc.Message) {
	s.mu.Lock()
	answer := s.asked[string(m.ID)]
	delete(s.asked, string(m.ID))
	s.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// turnAway asks for input or sheds load, both before anything ran.
func (s *server) turnAway(ctx context.Context, c *call, tell func(*rpc.Message)) *rpc.Message {
	switch {
	case !c.args.Ask || c.answered:
	case c.modern:
		return rpc.Answer(c.id, map[string]any{
			"resultType": "input_required", "requestState": "state of " + c.op,
			"inputRequests": map[string]any{"sure": map[string]any{"method": "elicitation/create", "params": question}},
		})
	default:
		m := s.inquire(ctx, c, tell)
		if m == nil || m.Error != nil {
			s.book.Write(false, Line{Kind: Refused, Op: c.op, Tool: c.tool, Note: "no answer to the question"})
			return rpc.Answer(c.id, toolError("not executed: nobody answered the question"))
		}
		c.who = whoOf(m.Result)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shed[c.op] < c.args.Shed {
		s.shed[c.op]++
		s.book.Write(false, Line{Kind: Fired, Op: c.op, Note: "shed load"})
		return rpc.Answer(c.id, map[string]any{"resultType": "input_required", "requestState": "later"})
	}
	return nil
}

// work is the time between begin and commit. It returns false when the caller
// took the request back.
func (s *server) work(ctx context.Context, c *call, tell func(*rpc.Message)) bool {
	if c.args.BurnMS > 0 {
		s.loop.Lock()
		for end := time.Now().Add(ms(c.args.BurnMS)); time.Now().Before(end); {
		}
		s.loop.Unlock()
	}
	done := time.After(ms(c.args.WorkMS))
	var beat <-chan time.Time
	if c.args.ProgressMS > 0 && len(c.progress) > 0 {
		t := time.NewTicker(ms(c.args.ProgressMS))
		defer t.Stop()
		beat = t.C
	}
	for n := 1; ; n++ {
		select {
		case <-c.gone:
			return false
		case <-ctx.Done():
			s.book.Write(false, Line{Kind: Cancelled, Op: c.op, Note: "connection closed"})
			return false
		case <-beat:
			tell(&rpc.Message{Method: "notifications/progress", Params: rpc.JSON(map[string]any{"progressToken": c.progress, "progress": n, "message": c.op})})
			continue
		case <-done:
		}
		return true
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func (s *server) result(c *call) *rpc.Message {
	text := c.op + " done"
	if c.args.Ask {
		text += " by " + c.who
	}
	if pad := c.args.Size - len(text); pad > 0 {
		text += " " + strings.Repeat("x", pad)
	}
	r := map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	if c.modern {
		r["resultType"] = "complete"
	}
	return rpc.Answer(c.id, r)
}

func toolError(format string, args ...any) map[string]any {
	return map[string]any{
		"isError": true, "resultType": "complete",
		"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf(format, args...)}},
	}
}

// cancel takes a request back (stdio).
func (s *server) cancel(m *rpc.Message) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	json.Unmarshal(m.Params, &p)
	s.mu.Lock()
	c := s.calls[string(p.ID)]
	s.mu.Unlock()
	if c == nil {
		return
	}
	s.book.Write(false, Line{Kind: Cancelled, Op: c.op, Tool: c.tool})
	c.once.Do(func() { close(c.gone) })
}
