package guard

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Call is one request of a client. A Call is used once.
type Call struct {
	// Msg is the request as the client wrote it.
	Msg wire.Message
	// Header holds the Mcp-Param-* headers the client sent along. May be nil.
	Header http.Header
	// On takes messages that belong to this call and come before its reply. nil
	// sends them to the session's Peer. It must not block.
	On func(wire.Message)
	// Done takes the reply, exactly once, on any goroutine. It must not block.
	Done func(Reply)

	session *Session
	method  string
	id      []byte // as the client wrote it
	name    string // of the tool, for tools/call
	tool    *tool  // its definition when the call arrived; nil if none was seen
	effect  fault.Effect
	byUser  bool
	tried   *death  // it is the one try of a call that the server died of
	misfit  *misfit // what was wrong with the arguments, or changed about them
	began   time.Time

	mu        sync.Mutex
	up        *upstream.Call // the present attempt; nil between two of them
	attempts  int
	resent    int
	sheds     int
	corrected int           // how often a model has changed the arguments after an error
	before    fault.Outcome // what the attempt before may have done
	faults    []*fault.Fault
	inHand    *Reply // an answer that a second thought is being given
	ending    ending
	deadline  *time.Timer // when the call is over, whatever happens; nil for never
	waiting   bool        // counted among those that wait
	size      int64       // what it counts for there
	pass      uint64      // its place on the ramp; 0 if it has none
	settled   bool
}

// ending is why a call is being ended from our side.
type ending uint8

const (
	notEnding  ending = iota
	byClient          // the client took it back
	byDeadline        // its time is up
)

// Reply is how a call was settled.
type Reply struct {
	// Msg is the response. Write it with the id of the call's own message.
	Msg wire.Message
	// Status is the HTTP status it came with, 0 if it did not come by HTTP.
	Status int
	// None: the caller gave the call up and expects no response.
	None bool
	// Fault is why the server's own answer is missing and Msg is ours; nil if Msg
	// is the server's. Outcome then says whether the call may have run.
	Fault   *fault.Fault
	Outcome fault.Outcome
}

// Limits of what may wait for a server to come back.
const (
	mostQueued      = 4096
	mostQueuedBytes = 32 << 20
	longestThrottle = 30 * time.Second // a server's wish to wait that we fulfil
	// A call waits for a start for as long as that lasts, but not through one failed
	// start after the other.
	startPatience = 30 * time.Second
	greetPatience = 3 * time.Second // an introduction is no use to a client that gave up
	shedPause     = 250 * time.Millisecond
	resendPause   = time.Millisecond
)

var resendIDs atomic.Int64

// Do sees a call through. It returns at once.
func (s *Session) Do(c *Call) {
	c.mu.Lock()
	c.session, c.began, c.id = s, time.Now(), c.Msg.ID()
	gone := c.ending != notEnding // taken back before it came
	c.mu.Unlock()
	if gone {
		c.settle(Reply{None: true})
		return
	}
	c.method = c.Msg.Method()
	if c.method == wire.MethodCall {
		raw, _ := wire.Member(c.Msg.Params(), "name")
		c.name, _ = wire.StringValue(raw)
		c.tool = s.server.tools.find(c.name)
		c.effect, c.byUser = s.server.tools.effect(c.name, c.tool)
	}
	s.server.budget.call(c.began)
	if limit := s.server.options.MaxCall; limit > 0 && c.method != wire.MethodListen {
		c.deadline = time.AfterFunc(limit, func() { c.end(byDeadline, nil) })
	}
	if c.method == wire.MethodCall {
		if f := s.deaths.refuse(c, c.began); f != nil {
			c.refuse(f)
			return
		}
		if !c.fit() {
			return
		}
	}
	c.gate()
}

// gate lets the call through to the server, has it wait for the server, or
// refuses it because waiting is of no use.
func (c *Call) gate() {
	s := c.session
	if h := s.server.up.Health(); h.State == upstream.Dead && !s.up.Connected() {
		if wait := time.Until(h.NextAttempt); wait > c.patience() {
			c.refuse(unavailable(h, wait))
			return
		}
		if !c.queueUp() {
			return
		}
	}
	c.enter()
}

// enter sends the call when there is room. Only tools do work that can be too
// much; everything else goes ahead.
func (c *Call) enter() {
	if c.method == wire.MethodCall && !(c.session.server.up.Health().State == upstream.Dead && c.session.up.Connected()) {
		c.session.server.ramp.enter(c.sendEntered)
		return
	}
	c.send()
}

func (c *Call) sendEntered(pass uint64) {
	c.mu.Lock()
	c.pass = pass
	c.mu.Unlock()
	c.send()
}

// unavailable is the fault of a call that was not even sent.
func unavailable(h Health, wait time.Duration) *fault.Fault {
	f := &fault.Fault{Delivery: fault.Unsent, Evidence: fault.Evidence{Text: "the server is down", Moment: fault.WhenIdle}}
	if h.Cause != nil {
		*f = *h.Cause
		f.Delivery = fault.Unsent
	}
	f.RetryAfter = wait
	return f
}

// patience is how long the call may wait for a server that cannot be started. While
// a start is under way it has no limit.
func (c *Call) patience() time.Duration {
	if c.method == wire.MethodInitialize || c.method == wire.MethodDiscover {
		return greetPatience
	}
	return startPatience
}

// queueUp takes a place among those that wait for the server, or refuses the call
// if there is none left.
func (c *Call) queueUp() bool {
	s := c.session.server
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		return true
	}
	if c.settled {
		return false
	}
	size := int64(len(c.Msg.Raw))
	c.size = size
	calls, bytes := s.queue.Add(1), s.queued.Add(size)
	if calls > mostQueued || bytes > mostQueuedBytes {
		s.queue.Add(-1)
		s.queued.Add(-size)
		go c.refuse(&fault.Fault{
			Delivery: fault.Unsent,
			Evidence: fault.Evidence{Text: "the server is down and too many calls are waiting for it", Moment: fault.WhenIdle},
		})
		return false
	}
	c.waiting = true
	return true
}

// send makes an attempt.
func (c *Call) send() {
	c.mu.Lock()
	if c.settled || c.ending != notEnding {
		pass := c.pass
		c.pass = 0
		c.mu.Unlock()
		c.session.server.ramp.leave(pass)
		return
	}
	msg := c.Msg
	if c.attempts > 0 {
		// A new attempt has a new id, as the protocol demands.
		msg = msg.WithID(fmt.Appendf(nil, `"mcpmend-again-%d"`, resendIDs.Add(1)))
	}
	c.attempts++
	c.up = &upstream.Call{Msg: msg, Header: c.Header, On: c.On, Check: c.check, Done: c.outcome}
	if c.deadline != nil {
		c.up.On = c.heard
	}
	up := c.up
	c.mu.Unlock()
	c.session.up.Do(up)
}

// heard passes on what belongs to the call. A server that reports progress is at
// work, so the call's time begins anew.
func (c *Call) heard(m wire.Message) {
	if m.Method() == wire.MethodProgress {
		c.mu.Lock()
		if !c.settled && c.ending == notEnding {
			c.deadline.Reset(c.session.server.options.MaxCall)
		}
		c.mu.Unlock()
	}
	if c.On != nil {
		c.On(m)
		return
	}
	c.session.peer.Message(m)
}

var (
	errChanged = errors.New("definition changed")
	errShed    = errors.New("load shed")
	errForgot  = errors.New("memory lost")
)

// check is the last look before the bytes leave: a tool that is no longer the one
// the client saw is not called, and waiting is over.
func (c *Call) check() *fault.Fault {
	if c.method == wire.MethodCall && c.session.forgot.CompareAndSwap(true, false) {
		return &fault.Fault{
			Kind:     fault.SessionExpired,
			Delivery: fault.Unsent,
			Evidence: fault.Evidence{Text: "the server was restarted and its memory is gone", Moment: fault.WhenIdle},
			Hint:     "set up again what the server had to remember, then repeat this call",
			Cause:    errForgot,
		}
	}
	if c.tool != nil {
		now := c.session.server.tools.find(c.name)
		if now == nil || now.hash != c.tool.hash {
			return &fault.Fault{
				Kind:     fault.StaleTools,
				Delivery: fault.Unsent,
				Evidence: fault.Evidence{Text: fmt.Sprintf("the definition of tool %q has changed since it was listed", c.name), Moment: fault.AtCall},
				Hint:     "list the tools again and call it as it is now",
				Cause:    errChanged,
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		c.waiting = false
		c.session.server.queue.Add(-1)
		c.session.server.queued.Add(-c.size)
	}
	return nil
}

// Cancel gives a call up. note is the client's notification, nil if it sent none.
func (s *Session) Cancel(c *Call, note *wire.Message) { c.end(byClient, note) }

// end ends a call from our side, for the reason given.
func (c *Call) end(why ending, note *wire.Message) {
	c.mu.Lock()
	if c.settled || c.ending != notEnding {
		c.mu.Unlock()
		return
	}
	c.ending = why
	up, begun := c.up, c.session != nil
	c.mu.Unlock()
	if !begun {
		return // Do will see it
	}
	if up == nil {
		c.outcome(upstream.Outcome{Fault: &fault.Fault{Delivery: fault.Cancelled}})
		return
	}
	c.session.up.Cancel(up, note)
}

// outcome takes what became of an attempt, and decides.
func (c *Call) outcome(o upstream.Outcome) {
	c.mu.Lock()
	if c.settled {
		c.mu.Unlock()
		return
	}
	pass := c.pass
	c.pass = 0
	why, sent, held := c.ending, c.up != nil && c.up.Sent(), c.inHand
	var d fault.Decision
	switch {
	case o.Fault == nil:
		c.inHand = &Reply{Msg: o.Reply, Status: o.Status}
	case why == notEnding:
		d = c.rule(o.Fault)
	}
	// Until the next attempt there is nothing that could be given up. What this one
	// may have done is noted above, under the same lock: the deadline may strike now.
	c.up = nil
	c.mu.Unlock()
	c.session.server.ramp.leave(pass)
	if c.method == wire.MethodCall {
		c.session.deaths.note(c, &o)
	}
	switch {
	case o.Fault == nil:
		c.answered(o)
	case why == byClient:
		c.settle(Reply{None: true, Fault: o.Fault})
	case held != nil:
		c.settle(*held) // it was answered; only a second thought was under way
	case why == byDeadline:
		c.timeUp(sent)
	default:
		c.act(o.Fault, d)
	}
}

// answered settles a call with the server's own reply.
func (c *Call) answered(o upstream.Outcome) {
	if c.method == wire.MethodTools {
		c.session.server.tools.learn(o.Reply.Result())
	}
	if f := c.shed(&o); f != nil {
		c.mu.Lock()
		c.inHand = nil
		d := c.rule(f)
		c.mu.Unlock()
		c.act(f, d)
		return
	}
	if c.method == wire.MethodCall && c.secondThought(o) {
		return
	}
	c.conclude(o)
}

// conclude passes on the server's reply with what was done to get it.
func (c *Call) conclude(o upstream.Outcome) {
	c.annotate(&o)
	c.mu.Lock()
	several := c.attempts > 1
	c.mu.Unlock()
	if several {
		o.Reply = c.mended(o.Reply)
	}
	c.settle(Reply{Msg: o.Reply, Status: o.Status})
}

// shed recognises a modern server that asks to be called again without asking for
// anything: it is too busy, and has not run the call.
func (c *Call) shed(o *upstream.Outcome) *fault.Fault {
	result := o.Reply.Result()
	if c.session.peer.Era != wire.Modern || !bytes.Contains(result, []byte(`"input_required"`)) {
		return nil
	}
	if kind, _ := wire.Member(result, "resultType"); string(kind) != `"input_required"` {
		return nil
	}
	asked := false
	requests, _ := wire.Member(result, "inputRequests")
	wire.EachMember(requests, func(string, []byte) { asked = true })
	if asked {
		return nil
	}
	if state, ok := wire.Member(result, "requestState"); ok {
		c.rewrite(wire.Set(c.Msg.Params(), bytes.Clone(state), "requestState"))
	}
	c.mu.Lock()
	c.sheds++
	sheds := c.sheds
	c.mu.Unlock()
	return &fault.Fault{
		Kind:     fault.RateLimited,
		Delivery: fault.Refused,
		Evidence: fault.Evidence{
			Text: "the server is too busy", Moment: fault.AtCall,
			RetryAfter: shedPause + rand.N(shedPause<<min(sheds, 4)),
		},
		Cause: errShed,
	}
}

// rule asks the table what to do after an attempt without an answer, and notes
// what that attempt may have done. The caller holds mu.
func (c *Call) rule(f *fault.Fault) fault.Decision {
	c.faults = append(c.faults, f)
	attempt := fault.Attempt{
		Method:       c.method,
		Effect:       c.effect,
		ByUser:       c.byUser,
		Delivery:     f.Delivery,
		Continuation: c.isContinuation(),
		Stateful:     c.session.server.options.Stateful,
		Resent:       c.resent,
		Before:       c.before,
	}
	if f.Delivery == fault.Refused {
		refusal, proven := fault.RefusalOf(f.Evidence)
		attempt.Refusal = refusal
		switch {
		case errors.Is(f.Cause, errShed):
			attempt.Refusal, attempt.Continuation = fault.LoadShed, false
		case !proven:
			attempt.Delivery = fault.Silent // a status alone does not prove that nothing ran
		case refusal == fault.SignInExpired:
			attempt.Refusal = fault.ForGood // nobody here can sign in again
		}
	}
	d := fault.Decide(attempt)
	c.before = d.Outcome
	if d.Action != fault.Settle && f.Delivery != fault.Unsent && f.Delivery != fault.Unparseable && f.Delivery != fault.Unread {
		c.resent++
	}
	return d
}

// act does what the table says, as far as the limits beside it allow.
func (c *Call) act(f *fault.Fault, d fault.Decision) {
	if d.Action == fault.Settle || !c.mayGoOn(f, &d) {
		c.giveUp(f, d.Outcome)
		return
	}
	c.session.server.tell(Event{What: "resent", Method: c.method, Tool: c.name, Fault: f})
	// Never on this goroutine: it may be the one that reads the server's replies, and
	// an attempt that fails at once would call itself.
	pause := max(f.RetryAfter, resendPause)
	if f.Delivery == fault.Refused && f.RetryAfter == 0 && f.HTTPStatus == http.StatusTooManyRequests {
		pause = shedPause + rand.N(shedPause)
	}
	time.AfterFunc(pause, c.again)
}

// again makes another attempt, in the queue if the server is down.
func (c *Call) again() {
	if c.session.server.up.Health().State == upstream.Dead && !c.session.up.Connected() && !c.queueUp() {
		return
	}
	c.enter()
}

// mayGoOn checks the limits that stand beside the decision.
func (c *Call) mayGoOn(f *fault.Fault, d *fault.Decision) bool {
	server := c.session.server
	now := time.Now()
	used := now.Sub(c.began)
	limit := server.options.MaxCall
	switch {
	case errors.Is(f.Cause, errChanged), errors.Is(f.Cause, errForgot), errors.Is(f.Cause, upstream.ErrEnded):
		return false
	case d.FirstHalf && limit > 0 && used > limit/2:
		return false
	case f.Delivery == fault.Unsent && used > c.patience():
		return false
	case f.RetryAfter > longestThrottle || limit > 0 && used+f.RetryAfter > limit:
		return false
	case c.hopeless(f):
		return false
	case !d.Free && !server.budget.take(now):
		return false
	}
	h := server.up.Health()
	return h.State != upstream.Dead || time.Until(h.NextAttempt) <= c.patience()
}

// hopeless: somebody has to change something before it can work.
func (c *Call) hopeless(f *fault.Fault) bool {
	if f.Delivery != fault.Unsent && c.method == wire.MethodCall {
		return false
	}
	kind := f.Kind
	if kind == "" {
		kind = fault.Diagnose(f.Evidence).Kind
	}
	about := kind.About()
	return kind != fault.Unknown && about.Scope == fault.OfSetup && !about.Retryable
}

// isContinuation: the request carries a person's answers or a server's state.
func (c *Call) isContinuation() bool {
	_, answers := wire.Member(c.Msg.Params(), "inputResponses")
	_, state := wire.Member(c.Msg.Params(), "requestState")
	return answers || state
}

// timeUp settles a call whose time is over. The connection may be well.
func (c *Call) timeUp(sent bool) {
	limit := c.session.server.options.MaxCall
	f := &fault.Fault{
		Kind:     fault.Timeout,
		Delivery: fault.Unsent,
		Evidence: fault.Evidence{Text: fmt.Sprintf("no answer within %v", limit), Moment: fault.AtCall},
	}
	outcome := fault.NotExecuted
	if sent {
		f.Delivery = fault.Silent
		outcome = fault.OutcomeUnknown
		f.Hint = "the tool may still be running; look before you call it again"
	}
	c.giveUp(f, outcome)
}

// refuse settles a call that was never sent.
func (c *Call) refuse(f *fault.Fault) {
	c.mu.Lock()
	c.faults = append(c.faults, f)
	c.mu.Unlock()
	c.giveUp(f, fault.NotExecuted)
}

// giveUp settles a call with an answer of ours.
func (c *Call) giveUp(f *fault.Fault, outcome fault.Outcome) {
	c.mu.Lock()
	if c.before == fault.OutcomeUnknown {
		outcome = fault.OutcomeUnknown
	}
	c.mu.Unlock()
	explained := explain(f)
	c.session.server.tell(Event{What: "settled", Method: c.method, Tool: c.name, Outcome: outcome, Fault: explained})
	c.settle(Reply{Msg: c.verdict(explained, outcome), Fault: explained, Outcome: outcome})
}

// settle hands out the reply, once.
func (c *Call) settle(r Reply) {
	c.mu.Lock()
	was := c.settled
	c.settled = true
	if c.deadline != nil {
		c.deadline.Stop()
	}
	if c.waiting {
		c.waiting = false
		c.session.server.queue.Add(-1)
		c.session.server.queued.Add(-c.size)
	}
	c.mu.Unlock()
	if was {
		return
	}
	if c.session != nil {
		c.session.deaths.settled(c)
	}
	c.Done(r)
}
