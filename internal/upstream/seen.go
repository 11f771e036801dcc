package upstream

import "time"

// Seen is what can be told of a server beside its replies.
type Seen struct {
	// Began is when its process ran or the first connection to it stood. Zero: never.
	Began time.Time
	// PID is the newest process, 0 if there was none. It may have ended.
	PID int
	// Stderr and Stdout are the last lines of the newest process: what it wrote to
	// standard error, and what it wrote to standard output that was no message.
	// The values of its environment are hidden in them.
	Stderr, Stdout []string
	// Modern: it turned out to speak the modern era, Old: only HTTP with
	// server-sent events as it was in 2024.
	Modern, Old bool
}

// Seen is what has been seen of the server so far.
func (s *Server) Seen() Seen {
	s.mu.Lock()
	seen, process := Seen{Began: s.began, Modern: s.modern.yes()}, s.process
	s.mu.Unlock()
	if process != nil {
		seen.PID = process.cmd.Process.Pid
		seen.Stderr, seen.Stdout = process.tail.lines(), process.junk.lines()
	}
	if s.http != nil {
		seen.Old = s.http.oldStyle.Load()
		if n := s.http.reached.Load(); n != 0 {
			seen.Began = time.Unix(0, n)
		}
	}
	return seen
}
