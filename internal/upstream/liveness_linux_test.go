package upstream

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// stage is a legacy client before one process after the other, each of which knows
// the handshake and answers a call when it is told to.
type livenessStage struct {
	*webClient
	health chan Health
	answer chan struct{} // one token for each call that may be answered
}

func newLivenessStage(t *testing.T, spec Spec) *livenessStage {
	t.Helper()
	puppets := NewPuppets(t)
	s := &livenessStage{health: make(chan Health, 100), answer: make(chan struct{}, 100)}
	go puppets.Each(func(p *Puppet) {
		for line := range p.Heard {
			m, err := wire.Parse([]byte(line))
			switch {
			case err != nil || m.Kind != wire.Request:
			case m.Method() == wire.MethodInitialize:
				p.Say(`{"jsonrpc":"2.0","id":` + string(m.ID()) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"p","version":"1"}}}`)
			default:
				<-s.answer
				p.Say(`{"jsonrpc":"2.0","id":` + string(m.ID()) + `,"result":{"content":[]}}`)
			}
		}
	})
	spec.Command, spec.Env = puppets.Command, puppets.Env
	spec.OnHealth = func(_, after Health) { s.health <- after }
	s.webClient = webDial(t, wire.Legacy, spec)
	s.greet()
	return s
}

func (s *livenessStage) signal(sig syscall.Signal) {
	s.t.Helper()
	pid := s.server.Seen().PID
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Fatal(err)
	}
	// The last of its threads stops a moment later, and may read until then.
	for running := sig == syscall.SIGSTOP; running; {
		running = false
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, thread := range threads {
			stat, _ := os.ReadFile(thread)
			_, rest, _ := bytes.Cut(stat, []byte(") "))
			running = running || !bytes.HasPrefix(rest, []byte("T"))
		}
	}
}

// await waits for a state and returns how long that took.
func (s *livenessStage) await(state State) time.Duration {
	s.t.Helper()
	began := time.Now()
	for {
		if h := webAwait(s.t, s.health, string(state)); h.State == state {
			return time.Since(began)
		}
	}
}

func TestAStoppedProcessIsShownAndItsCallsFinishWhenItGoesOn(t *testing.T) {
	s := newLivenessStage(t, Spec{})
	first := s.server.Seen().PID
	s.signal(syscall.SIGSTOP)
	call := s.start(webTool(1, "x", "{}"), nil)
	if took := s.await(Unresponsive); took > 4*time.Second { // 2 s, and room for a slow machine
		t.Errorf("shown after %v", took)
	}
	s.answer <- struct{}{}
	s.signal(syscall.SIGCONT)
	if o := call.wait(); o.Fault != nil {
		t.Errorf("the call: %v", o.Fault)
	}
	s.await(Healthy)
	if now := s.server.Seen().PID; now != first {
		t.Errorf("process %d was replaced by %d", first, now)
	}
}

func TestAProcessThatStaysStoppedIsReplacedAndWhatItDidNotReadIsProvenUnread(t *testing.T) {
	s := newLivenessStage(t, Spec{HungAfter: time.Second})
	s.signal(syscall.SIGSTOP)
	call := s.start(webTool(1, "x", "{}"), nil)
	webDelivery(t, call.wait(), fault.Unread)
	s.answer <- struct{}{}
	if o := s.do(webTool(2, "x", "{}")); o.Fault != nil {
		t.Errorf("the next one: %v", o.Fault)
	}
}

func TestAProcessThatHasReadACallIsNotReplacedWhileSomebodyWaitsForIt(t *testing.T) {
	s := newLivenessStage(t, Spec{HungAfter: time.Second})
	call := s.start(webTool(1, "x", "{}"), nil)
	for !s.inHand(call) { // until it has read the call
		<-time.After(time.Millisecond)
	}
	// From here on it reads nothing more and computes nothing, as in time.sleep.
	s.answer <- struct{}{}
	if o := call.wait(); o.Fault != nil {
		t.Errorf("the call: %v", o.Fault)
	}
}

// inHand reports whether the process has read a call.
func (s *livenessStage) inHand(c *webCall) bool {
	process := s.server.process
	work, _ := process.pendingWork(process.unreadBytes())
	return work.read
}
