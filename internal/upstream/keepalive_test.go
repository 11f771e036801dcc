package upstream

import (
	"testing"
	"time"
)

func TestAConnectionIsLostWhenLostAfterIsOverAlsoWhileItWaits(t *testing.T) {
	for _, lostAfter := range []time.Duration{2 * time.Second, 3 * time.Second, 10 * time.Second, 29 * time.Second, time.Minute, 2 * time.Minute, time.Hour} {
		k := keepAlive(lostAfter)
		lost := k.Idle + time.Duration(k.Count)*k.Interval
		if !k.Enable || lost > lostAfter || lost < lostAfter-k.Interval {
			t.Errorf("%v: lost after %v (%+v)", lostAfter, lost, k)
		}
	}
}
