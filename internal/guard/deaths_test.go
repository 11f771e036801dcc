package guard

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// toolCall is a call as deaths sees it.
func toolCall(name, arguments string) *Call {
	params := fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, name, arguments)
	return &Call{Msg: wire.NewRequest([]byte("1"), wire.MethodCall, params), name: name}
}

func died(alone bool) *upstream.Outcome {
	return &upstream.Outcome{Alone: alone, Fault: &fault.Fault{
		Delivery: fault.Silent, Evidence: fault.Evidence{Exited: true, Text: "it ended with exit code 2"},
	}}
}

var replied = &upstream.Outcome{}

func TestACallThatTheServerDiedOfTwiceIsRefusedForAMinuteAndThenTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deaths
		attempt := func(o *upstream.Outcome) (refused bool) {
			c := toolCall("bad", `{"x":1}`)
			if d.refuse(c, time.Now()) != nil {
				return true
			}
			d.note(c, o)
			d.settled(c)
			return false
		}
		for range 2 {
			if attempt(died(true)) {
				t.Fatal("refused before the second death")
			}
		}
		for _, other := range []*Call{toolCall("bad", `{"x":2}`), toolCall("good", `{"x":1}`)} {
			if f := d.refuse(other, time.Now()); f != nil {
				t.Errorf("%s is refused, too: %v", other.Msg.Raw, f)
			}
		}
		f := d.refuse(toolCall("bad", `{"x":1}`), time.Now())
		if f == nil || f.Delivery != fault.Unsent || f.RetryAfter != time.Minute || !strings.Contains(f.Text, "exit code 2") {
			t.Fatalf("got %+v, want a refusal for a minute with the cause", f)
		}
		<-time.After(time.Minute - time.Nanosecond)
		if !attempt(died(true)) {
			t.Error("tried before the minute was over")
		}
		<-time.After(time.Nanosecond)
		first, second := toolCall("bad", `{"x":1}`), toolCall("bad", `{"x":1}`)
		if d.refuse(first, time.Now()) != nil || d.refuse(second, time.Now()) == nil {
			t.Error("want one try, and no other beside it")
		}
		d.note(first, died(true))
		d.settled(first)
		if !attempt(died(true)) {
			t.Error("the try failed, and it is tried again at once")
		}
		<-time.After(time.Minute)
		if attempt(replied) || attempt(died(true)) || attempt(died(true)) {
			t.Error("an answer should make everything be forgotten")
		}
	})
}

func TestOnlyACallThatWasAloneIsHeldToAccount(t *testing.T) {
	var d deaths
	lost := &upstream.Outcome{Alone: true, Fault: &fault.Fault{Delivery: fault.Silent}} // a connection, not a process
	for _, o := range []*upstream.Outcome{died(false), died(false), lost, lost} {
		c := toolCall("x", `{}`)
		if f := d.refuse(c, time.Now()); f != nil {
			t.Fatalf("refused: %v", f)
		}
		d.note(c, o)
	}
}

func TestTheMemoryOfDeathsIsBounded(t *testing.T) {
	var d deaths
	for n := range 3 * deathsKept {
		d.note(toolCall("x", fmt.Sprint(n)), died(true))
	}
	if len(d.known) > deathsKept {
		t.Errorf("%d are kept, want at most %d", len(d.known), deathsKept)
	}
}

func TestOneBadCallDoesNotKeepTheOthersFromTheServer(t *testing.T) {
	c := newClient(t, "plain", Options{})
	c.greet()
	for n := range 8 {
		r := c.do("tools/call", `{"name":"die","arguments":{}}`)
		want := fault.OutcomeUnknown
		if n >= deathsAllowed {
			want = fault.NotExecuted
		}
		if r.Outcome != want {
			t.Errorf("death %d: outcome is %q, want %q: %v", n+1, r.Outcome, want, r.Fault)
		}
		if r := c.do("tools/call", `{"name":"echo","arguments":{}}`); r.Fault != nil {
			t.Fatalf("after death %d another tool is refused: %v", n+1, r.Fault)
		}
	}
	if r := c.do("tools/call", `{"name":"die","arguments":{"other":1}}`); r.Outcome != fault.OutcomeUnknown {
		t.Errorf("with other arguments: outcome is %q, want unknown", r.Outcome)
	}
}

func TestOneClientsDeadlyCallIsNotHeldAgainstAnother(t *testing.T) {
	c := newClient(t, "plain", Options{})
	c.greet()
	for range 3 {
		c.do("tools/call", `{"name":"die","arguments":{}}`)
	}
	other := &client{t: t, server: c.server, session: c.server.Open(Peer{Era: wire.Legacy, Message: func(wire.Message) {}})}
	t.Cleanup(other.session.Close)
	other.greet()
	if r := other.do("tools/call", `{"name":"die","arguments":{}}`); r.Outcome != fault.OutcomeUnknown {
		t.Errorf("outcome is %q, want unknown: %v", r.Outcome, r.Fault)
	}
}

func TestProgressExtendsTheTimeOfACall(t *testing.T) {
	c := newClient(t, "plain", Options{MaxCall: 400 * time.Millisecond})
	c.greet()
	if r := c.do("tools/call", `{"name":"steps","arguments":{},"_meta":{"progressToken":"p"}}`); r.Fault != nil {
		t.Errorf("with progress: %v", r.Fault)
	}
	if r := c.do("tools/call", `{"name":"steps","arguments":{}}`); r.Fault == nil || r.Outcome != fault.OutcomeUnknown {
		t.Errorf("without progress: %s, want unknown", r.Msg.Raw)
	}
}
