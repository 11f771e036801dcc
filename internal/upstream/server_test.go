package upstream

import (
	"context"
	"os"
	"testing"

	"github.com/mcpmend/mcpmend/internal/wire"
)

func TestNothingIsStartedOnceTheServerIsClosed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Spec{Command: []string{self, "-test.run=none"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	l, flt := s.dial(receiver{take: func(_ link, m wire.Message, _ *flight) { m.Release() }})
	if l != nil {
		l.close()
		<-l.closed()
	}
	if flt == nil || s.Health().Detail != "idle" || !s.Seen().Began.IsZero() {
		t.Errorf("fault %v, health %q, began %v; want a refusal and nothing started", flt, s.Health().Detail, s.Seen().Began)
	}
}
