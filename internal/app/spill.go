package app

import (
	"io"
	"sync"
)

// spill passes a server's stderr on without ever blocking the server: a client
// that does not read ours loses lines, and nothing else happens.
type spill struct {
	to io.Writer

	mu      sync.Mutex
	waiting [][]byte
	size    int
	busy    bool
}

const spillLimit = 1 << 20

func newSpill(to io.Writer) *spill { return &spill{to: to} }

func (s *spill) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size+len(p) > spillLimit {
		return len(p), nil
	}
	s.waiting = append(s.waiting, append([]byte(nil), p...))
	s.size += len(p)
	if !s.busy {
		s.busy = true
		go s.pour()
	}
	return len(p), nil
}

func (s *spill) pour() {
	for {
		s.mu.Lock()
		batch := s.waiting
		s.waiting, s.size = nil, 0
		if len(batch) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, p := range batch {
			_, _ = s.to.Write(p)
		}
	}
}
