package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// The rungs that can be seen in a file: what package clientconfig found, as
// findings.

// fileCase is the case of a file that is broken as a whole, or nil.
func fileCase(f *clientconfig.File) *Case {
	var found []Finding
	for _, p := range f.Problems {
		if p.Kind != clientconfig.Misplaced && (p.Server == "" || f.RefusedFor(p)) {
			found = append(found, fileFinding(f, p))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rung(a.Stage), rung(b.Stage)), cmp.Compare(severe(a), severe(b)))
	})
	c := &Case{Client: f.Client.ID, Scope: scopeOf(f), At: found[0].At, file: f}
	c.close(firstBroken(found), found)
	return c
}

func scopeOf(f *clientconfig.File) string {
	if len(f.Places) > 0 {
		return f.Places[0].Scope
	}
	return ""
}

func severe(f Finding) int {
	if f.Severity == Broken {
		return 0
	}
	return 1
}

// entryCase is the case of one entry. It is closed if the file shows all there is
// to know.
func (d *Doctor) entryCase(f *clientconfig.File, s *clientconfig.Server) *Case {
	c := &Case{Name: s.Name.Text, Client: f.Client.ID, Scope: s.Scope, At: place(s.At), file: f, server: s}
	c.climbed(AtFile)
	if f.Ignored {
		c.Reached, c.Ladder = "", nil
		misplaced := misplacedFinding(f, s)
		c.close(&misplaced, []Finding{misplaced})
		return c
	}
	c.climbed(AtParse)
	if s.Disabled || s.Off {
		c.State = Disabled
		return c
	}
	var found []Finding
	for _, p := range f.Problems {
		if p.Server == s.Name.Text && p.Server != "" {
			found = append(found, entryFinding(f, s, p))
		}
	}
	if b := firstBroken(found); b != nil {
		c.close(b, found)
		return c
	}
	c.climbed(AtShape)
	c.Also = found
	if f.Untrusted {
		c.State = Disabled
		c.Untrusted = fmt.Sprintf("%s does not trust this folder: %s", f.Client.Name, f.Client.Trust.How)
	}
	return c
}

// shadow marks entries that another one of the same name stands before: the
// narrower scope wins, and within one the later file of the table.
func shadow(cases []*Case) {
	winner := make(map[[2]string]*Case)
	for _, c := range cases {
		if c.server == nil || c.file.Ignored || c.State == Skipped {
			continue
		}
		key := [2]string{c.Client, c.Name}
		w := winner[key]
		if w == nil || narrower(c.Scope) > narrower(w.Scope) {
			winner[key] = c
			c, w = w, c
		}
		if c == nil || narrower(c.Scope) == narrower(w.Scope) {
			continue
		}
		f := finding(AtShape, kindShadowed, Warning, c.At)
		f.Explanation = fmt.Sprintf("%s uses the entry of that name in %s instead", c.file.Client.Name, w.At)
		c.State, c.Cause = Shadowed, &f
	}
}

func narrower(scope string) int {
	return slices.Index([]string{"system", "remote", "user", "cli", "project", "local"}, scope)
}

// finding is something wrong that is certain. Its kind is one of three packages'.
func finding[K ~string](stage Stage, kind K, severity Severity, at Place) Finding {
	return Finding{ID: string(stage) + "." + string(kind), Stage: stage, Kind: string(kind), Severity: severity, At: at, Confidence: 1}
}

func place(p clientconfig.Position) Place { return Place{File: p.File, Line: p.Line, Column: p.Column} }
