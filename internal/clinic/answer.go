package clinic

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// A Server is one entry of one client, and how it is.
type Server struct {
	Server string `json:"server,omitempty"`
	Client string `json:"client"`
	Scope  string `json:"scope,omitempty"`
	At     string `json:"at,omitempty"`
	State  string `json:"state"`
	// Reached is the last rung of the ladder that held.
	Reached string   `json:"reached,omitempty"`
	Runs    string   `json:"runs,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	Cause   *Cause   `json:"cause,omitempty"`
	Also    []Cause  `json:"also,omitempty"`
	// Entry is only in lists.
	Entry any `json:"entry,omitempty"`
}

// A Cause is what is wrong and what can be done.
type Cause struct {
	ID          string   `json:"id"`
	Explanation string   `json:"explanation"`
	Confidence  float64  `json:"confidence"`
	At          string   `json:"at,omitempty"`
	Evidence    []string `json:"evidence,omitempty"`
	Fixes       []Fix    `json:"fixes,omitempty"`
	Help        string   `json:"help,omitempty"`
}

// A Fix is one way to mend it.
type Fix struct {
	Name  string `json:"name"`
	Class string `json:"class"`
	Does  string `json:"does"`
	Run   string `json:"run,omitempty"`
}

// A Healing is the record of what was tried.
type Healing struct {
	Server   string    `json:"server,omitempty"`
	Client   string    `json:"client"`
	File     string    `json:"file"`
	Fixed    bool      `json:"fixed"`
	Attempts []Attempt `json:"attempts"`
	Entry    any       `json:"entry,omitempty"`
	Diffs    []string  `json:"diffs,omitempty"`
	Undo     []string  `json:"undo,omitempty"`
	Person   string    `json:"person,omitempty"`
	Reload   string    `json:"reload,omitempty"`
	Now      Server    `json:"now"`
}

// An Attempt is one diagnosis, one fix, and what came of it.
type Attempt struct {
	Number      int     `json:"number"`
	Kind        string  `json:"kind"`
	Explanation string  `json:"explanation"`
	Confidence  float64 `json:"confidence"`
	Fix         *Fix    `json:"fix,omitempty"`
	Result      string  `json:"result,omitempty"`
	Reached     string  `json:"reached,omitempty"`
	Kept        bool    `json:"kept"`
}

func server(c *doctor.Case) Server {
	s := Server{
		Server: c.Name, Client: c.Client, Scope: c.Scope, At: place(c.At),
		State: string(c.State), Reached: string(c.Reached), Runs: secret.Scrub(c.Runs),
	}
	if c.Info != nil {
		s.Tools = c.Info.Tools
	}
	if c.Cause != nil {
		cause := explain(c.Cause)
		s.Cause = &cause
	}
	for i := range c.Also {
		s.Also = append(s.Also, explain(&c.Also[i]))
	}
	return s
}

func place(p doctor.Place) string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

func explain(f *doctor.Finding) Cause {
	c := Cause{ID: f.ID, Explanation: secret.Scrub(f.Explanation), Confidence: f.Confidence, At: place(f.At), Help: f.Help}
	for _, e := range f.Evidence {
		c.Evidence = append(c.Evidence, secret.Scrub(e))
	}
	for _, x := range f.Fixes {
		c.Fixes = append(c.Fixes, fix(x))
	}
	return c
}

func fix(f doctor.Fix) Fix {
	return Fix{Name: f.Name, Class: string(f.Class), Does: secret.Scrub(f.Does), Run: secret.Scrub(f.Run)}
}

func healing(h *doctor.Healing) Healing {
	r := Healing{
		Server: h.Server, Client: h.Client, File: h.File, Fixed: h.Fixed, Attempts: []Attempt{}, Entry: h.Entry,
		Undo: h.Undo, Person: secret.Scrub(h.Person),
	}
	if len(h.Undo) > 0 {
		r.Reload = h.Reload
	}
	for _, d := range h.Diffs {
		r.Diffs = append(r.Diffs, secret.Scrub(d.Text))
	}
	for _, a := range h.Attempts {
		out := Attempt{
			Number: a.Number, Kind: a.Diagnosis.Kind, Explanation: secret.Scrub(a.Diagnosis.Explanation), Confidence: a.Diagnosis.Confidence,
			Result: string(a.Result), Reached: string(a.Reached), Kept: a.Kept,
		}
		if a.Fix != nil {
			f := fix(*a.Fix)
			out.Fix = &f
		}
		r.Attempts = append(r.Attempts, out)
	}
	if h.Case != nil {
		r.Now = server(h.Case)
	}
	return r
}

// approvable is the part of an answer that says what was agreed to.
type approvable struct {
	Approval *Approval `json:"approval,omitempty"`
}

func (a *approvable) setApproval(p *Approval) { a.Approval = p }

// lines says what is to be agreed to, and how.
func (a *approvable) lines(b *strings.Builder) {
	p := a.Approval
	if p == nil {
		return
	}
	switch p.Status {
	case declined, cancelled:
		b.WriteString("\nThe person has not agreed, so that was not done:\n")
	case needed:
		b.WriteString("\nNot done yet. This has to be agreed to:\n")
	}
	for _, w := range p.Wanted {
		fmt.Fprintf(b, "- %s\n", oneLine(w.What))
		if w.Diff != "" {
			fmt.Fprintf(b, "%s\n", strings.TrimRight(w.Diff, "\n"))
		}
		if w.Person != "" && p.Status == needed {
			fmt.Fprintf(b, "  Only a person can agree to this. They can type in a terminal: %s\n", oneLine(w.Person))
		}
	}
	if p.Plan != "" {
		fmt.Fprintf(b, "Show it to the user. If they agree, call this tool again with the same arguments and confirm: %q\n", p.Plan)
	}
}

// name is how a server is called in a line of text.
func (s *Server) name() string {
	if s.Server == "" {
		return oneLine(s.At)
	}
	return oneLine(s.Server) + " (" + s.Client + ")"
}

// oneLine keeps a name, a path or a message that somebody else wrote to the line it
// is quoted in: it could go on as if it were the answer of ours.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}

// line says how one server is, and why.
func (s *Server) line(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s", s.name(), s.State)
	if s.At != "" && s.Server != "" {
		fmt.Fprintf(b, ", %s", oneLine(s.At))
	}
	b.WriteByte('\n')
	if s.Cause == nil {
		return
	}
	fmt.Fprintf(b, "  %s [%s]\n", oneLine(s.Cause.Explanation), s.Cause.ID)
	for i, e := range s.Cause.Evidence {
		if i == 3 {
			break
		}
		fmt.Fprintf(b, "  seen: %s\n", oneLine(e))
	}
	if len(s.Cause.Fixes) > 0 {
		f := s.Cause.Fixes[0]
		fmt.Fprintf(b, "  fix (%s): %s\n", f.Class, oneLine(f.Does))
		if f.Run != "" {
			fmt.Fprintf(b, "  run: %s\n", oneLine(f.Run))
		}
	}
	if s.Cause.Help != "" {
		fmt.Fprintf(b, "  see: %s\n", oneLine(s.Cause.Help))
	}
}

func (h *Healing) line(b *strings.Builder) {
	fmt.Fprintf(b, "%s: ", h.Now.name())
	if h.Fixed {
		fmt.Fprintf(b, "fixed and written, now %s", h.Now.State)
	} else {
		fmt.Fprintf(b, "not fixed, %s", h.Now.State)
	}
	b.WriteByte('\n')
	for _, a := range h.Attempts {
		fmt.Fprintf(b, "  %d. %s (%.0f %%): %s\n", a.Number, a.Kind, 100*a.Confidence, oneLine(a.Explanation))
		switch {
		case a.Fix == nil:
		case a.Result == "":
			fmt.Fprintf(b, "     %s: %s; not tried\n", a.Fix.Name, oneLine(a.Fix.Does))
		default:
			fmt.Fprintf(b, "     %s: %s; then %s\n", a.Fix.Name, oneLine(a.Fix.Does), a.Result)
		}
	}
	if h.Person != "" {
		fmt.Fprintf(b, "  a person has to: %s\n", oneLine(h.Person))
	}
	for _, id := range h.Undo {
		fmt.Fprintf(b, "  undo_change id: %s\n", id)
	}
	if h.Reload != "" {
		fmt.Fprintf(b, "  then: %s\n", h.Reload)
	}
}
