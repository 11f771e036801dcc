package clinic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

// The same answers in lines, for clients that show a model the text.

// A page is the text of an answer while it is written.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

func (p *page) notes(notes []string) {
	for _, n := range notes {
		p.line("note: %s", n)
	}
}

// lines says how a server is, why, and what was done about it.
func (s *Server) lines(p *page) {
	line := s.name() + ": "
	switch {
	case s.Healing == nil:
	case s.Fixed:
		line += "fixed and written, now "
	case s.State == string(doctor.Healthy):
		line += "works without a change, "
	default:
		line += "not fixed, "
	}
	line += s.State
	if s.At != "" && s.Server != "" {
		line += ", " + s.At
	}
	p.line("%s", line)
	s.details(p)
}

func (s *Server) details(p *page) {
	if s.Reached != "" {
		p.line("  got as far as: %s", s.Reached)
	}
	if s.Runs != "" {
		p.line("  runs: %s", s.Runs)
	}
	if len(s.Tools) > 0 {
		p.line("  tools: %s", strings.Join(s.Tools, ", "))
	}
	if s.Cause != nil {
		s.Cause.lines(p)
	}
	for i := range s.Also {
		s.Also[i].lines(p)
	}
	if s.Healing != nil {
		s.Healing.lines(p)
	}
	if s.Entry != nil {
		p.line("  entry: %s", compact(s.Entry))
	}
	for _, id := range s.Undo {
		p.line("  undo_change id: %s", id)
	}
	if s.Reload != "" {
		p.line("  then: %s", s.Reload)
	}
}

// name is how a server is called in a line.
func (s *Server) name() string {
	switch {
	case s.Server == "":
		return s.At + " (" + s.Client + ")"
	case s.Scope != "":
		return s.Server + " (" + s.Client + ", " + s.Scope + ")"
	}
	return s.Server + " (" + s.Client + ")"
}

func (c *Cause) lines(p *page) {
	p.line("  %s (%.0f %%): %s", c.ID, 100*c.Confidence, c.Explanation)
	if c.At != "" {
		p.line("  at %s", c.At)
	}
	p.evidence("  ", c.Evidence, c.Help)
	for _, f := range c.Fixes {
		p.line("  %s: %s", who[f.Class], f.Does)
		if f.Run != "" {
			p.line("  run: %s", f.Run)
		}
	}
}

// who says by whom a fix of a class is made.
var who = map[string]string{string(doctor.Auto): "fix", string(doctor.Ask): "fix, if the user agrees", string(doctor.Never): "a person has to"}

// evidence quotes. Who reads it can see where the quotation ends.
func (p *page) evidence(indent string, words []string, help string) {
	for _, e := range words {
		p.line("%sseen: %q", indent, e)
	}
	if help != "" {
		p.line("%ssee: %s", indent, help)
	}
}

func (h *Healing) lines(p *page) {
	for i, a := range h.Attempts {
		p.line("  %d. %s (%.0f %%): %s", i+1, a.Kind, 100*a.Confidence, a.Explanation)
		p.evidence("     ", a.Evidence, a.Help)
		if a.Fix == nil {
			continue
		}
		seen := "validated again: " + a.Result
		switch {
		case a.Result == "":
			seen = "not tried"
		case !a.Kept:
			seen += ", got as far as " + a.Reached + ", so not kept"
		}
		p.line("     %s: %s; %s", a.Fix.Name, a.Fix.Does, seen)
	}
	if h.Person != "" {
		p.line("  a person has to: %s", h.Person)
	}
}

// lines says what is to be agreed to, and how.
func (a *approvable) lines(p *page) {
	if a.Approval == nil {
		return
	}
	if a.Approval.Status == needed {
		p.line("\nNot done yet. This has to be agreed to:")
	} else if len(a.Approval.Wanted) > 0 {
		p.line("\nThe person has not agreed, so that was not done:")
	}
	for _, w := range a.Approval.Wanted {
		p.line("- %s", w.What)
		p.WriteString(w.Diff)
		if w.Person != "" && a.Approval.Status == needed {
			p.line("  Only a person can agree to this. They can type in a terminal: %s", w.Person)
		}
	}
	if a.Approval.Plan != "" {
		p.line("Show it to the user. Only if they agree, call this tool again with the same arguments and confirm: %q", a.Approval.Plan)
	}
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?" // it came out of a file as JSON
	}
	return string(b)
}
