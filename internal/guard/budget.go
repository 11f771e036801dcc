package guard

import (
	"sync"
	"time"
)

// budget bounds how much may be sent again: a fifth of the calls of the last ten
// seconds, and ten in any case, so that trouble is not multiplied.
type budget struct {
	mu      sync.Mutex
	slots   [budgetSlots]struct{ calls, resent int }
	current int64 // the second that the newest slot stands for
}

const (
	budgetSlots = 10 // seconds
	budgetShare = 5  // one in so many
	budgetFloor = 10
)

// call counts a call.
func (b *budget) call(now time.Time) {
	b.mu.Lock()
	b.at(now).calls++
	b.mu.Unlock()
}

// take asks for one more sending and reports whether it may be.
func (b *budget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	slot := b.at(now)
	calls, resent := 0, 0
	for _, s := range b.slots {
		calls += s.calls
		resent += s.resent
	}
	if resent >= max(budgetFloor, calls/budgetShare) {
		return false
	}
	slot.resent++
	return true
}

// at returns the slot of this second and clears those that have passed.
func (b *budget) at(now time.Time) *struct{ calls, resent int } {
	second := now.Unix()
	for b.current < second {
		b.current = max(b.current+1, second-budgetSlots)
		b.slots[b.current%budgetSlots] = struct{ calls, resent int }{}
	}
	return &b.slots[second%budgetSlots]
}
