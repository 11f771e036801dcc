package guard

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFirstStartIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r ramp
		var entered atomic.Int32
		enter := func() { r.enter(func(uint64) { entered.Add(1) }) }
		for range 64 {
			enter()
		}
		r.open(time.Now())
		if n := entered.Load(); n != 64 {
			t.Errorf("%d of 64 calls were let in at the first start", n)
		}
		r.close()
		entered.Store(0)
		for range 64 {
			enter()
		}
		if n := entered.Load(); n != 1 {
			t.Errorf("%d calls were let in while the server was down, want 1", n)
		}
		r.open(time.Now())
		<-time.After(rampStep / 2)
		if n := entered.Load(); n > 2 {
			t.Errorf("%d calls were let in right after an outage", n)
		}
		<-time.After(rampFor + rampStep)
		if n := entered.Load(); n != 64 {
			t.Errorf("%d of 64 calls were let in in the end", n)
		}
	})
}
