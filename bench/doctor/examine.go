package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
)

// What mcpmend prints with --json, as far as it is judged. It is spelt out here
// and not taken from package doctor: people's programs read it, too.
type (
	checked struct {
		SchemaVersion int
		Cases         []*caseOf
	}
	caseOf struct {
		Server, Client, Scope, State, Approve string
		Cause                                 *finding
		Also                                  []finding
	}
	finding struct {
		ID, Stage, Kind, Severity string
		Fixes                     []struct{ Name, Class string }
	}
	healed struct {
		SchemaVersion int
		Healings      []struct {
			Server, Client string
			Fixed          bool
			Undo           []string
			Case           *caseOf
		}
	}
)

// A verdict is what became of one set-up.
type verdict struct {
	Name   string  `json:"name"`
	Client string  `json:"client"`
	Void   string  `json:"void,omitempty"`
	Error  string  `json:"error,omitempty"`
	Secs   float64 `json:"seconds"`

	// What was found.
	Cause string `json:"cause,omitempty"`
	State string `json:"state,omitempty"`
	Fix   string `json:"fix,omitempty"`
	Exit  int    `json:"exit"`

	// Right is that the cause was. Rest are state, class, exit code and warnings
	// that were not.
	Right bool     `json:"right"`
	Rest  []string `json:"otherwiseWrong,omitempty"`
	Named bool     `json:"named"`

	Auto      bool     `json:"auto"` // it should be mended unasked
	Healed    bool     `json:"healed"`
	Asks      bool     `json:"asks"` // it should be mended when agreed to
	HealedYes bool     `json:"healedYes"`
	Notes     []string `json:"notes,omitempty"` // why it was not healed
	// Differs is where the judge and mcpmend do not say the same of the server.
	Differs []string `json:"judgedOtherwise,omitempty"`
	// Real is what the real client said of the server in the end.
	Real *realSays `json:"realClient,omitempty"`

	Damaged []string `json:"damaged,omitempty"`
	Ran     []string `json:"wrongProgramsRun,omitempty"`
	Leaks   []string `json:"secretsShown,omitempty"`
	Touched []string `json:"touched,omitempty"` // of what must not be

	Others map[string]otherSays `json:"others,omitempty"`

	broken, leave bool
	said          []string // for --verbose
	update        map[string]string
}

// An examiner takes one set-up through check, plan, heal and undo.
type examiner struct {
	tools *tools
	world *world
	setup *setup
	v     *verdict

	heals    bool               // or else it is only checked
	real     *realclient.Client // the client of the set-up, if it is installed
	original snapshot
	contents map[string]bool // all that has stood in a file, which a backup may hold
	approve  []string
}

func examine(ctx context.Context, t *tools, s *setup, dir string, random *rand.Rand, others []otherTool, heals bool) *verdict {
	v := &verdict{Name: s.Name, Client: s.Client, Auto: s.auto(), Asks: s.asks(), broken: !s.healthy(), leave: s.Leave, update: map[string]string{}}
	start := time.Now()
	defer func() { v.Secs = time.Since(start).Seconds() }()
	w, err := newWorld(ctx, t, s, dir, random)
	if err == nil {
		e := &examiner{tools: t, world: w, setup: s, v: v, heals: heals, contents: map[string]bool{}}
		for _, o := range others {
			if o.client.Config == s.Client {
				e.real = o.client
			}
		}
		err = e.run(ctx)
		err = errors.Join(err, w.close())
	}
	for i, o := range others {
		if !errors.Is(err, errVoid) {
			err = errors.Join(err, v.ask(ctx, o, t, s, fmt.Sprintf("%s-%d", dir, i), random))
		}
	}
	if errors.Is(err, errVoid) {
		v.Void = err.Error()
	} else if err != nil {
		v.Error = err.Error()
	}
	return v
}

func (e *examiner) run(ctx context.Context) (err error) {
	if e.original, err = e.look(); err != nil {
		return err
	}
	if err := e.check(ctx); err != nil {
		return err
	}
	if err := e.secondOpinion(ctx, e.v.State); err != nil {
		return err
	}
	if e.heals {
		if err := e.heal(ctx); err != nil {
			return err
		}
	}
	e.v.Ran = append(e.world.journal(), e.world.gone()...)
	e.v.Damaged = append(e.v.Damaged, e.world.cacheHarm()...)
	return e.searchState()
}

// look takes a snapshot and remembers what stood in the files.
func (e *examiner) look() (snapshot, error) {
	s, err := e.world.snapshot()
	for _, f := range s {
		e.contents[f.text] = true
	}
	return s, err
}

// mcpmend runs a command of it and searches what it said for secrets.
func (e *examiner) mcpmend(ctx context.Context, args ...string) (*spoken, error) {
	args = append(args, "--project", e.world.path("project"))
	return e.plain(ctx, args...)
}

func (e *examiner) plain(ctx context.Context, args ...string) (*spoken, error) {
	said, err := e.world.run(ctx, append([]string{e.tools.mcpmend}, args...)...)
	if said != nil {
		e.said(args, said)
	}
	return said, err
}

// said searches what was said for secrets and keeps it.
func (e *examiner) said(args []string, said *spoken) {
	line := "mcpmend " + strings.Join(args[:min(2, len(args))], " ")
	e.search(line+" stdout", string(said.out))
	e.search(line+" stderr", string(said.errs))
	e.v.said = append(e.v.said, fmt.Sprintf("$ mcpmend %s\n%sexit %d, %.1f s", strings.Join(args, " "), e.world.unfill(said.text()), said.exit, said.took.Seconds()))
}

func (e *examiner) search(where, text string) {
	for i, secret := range e.world.secrets {
		if strings.Contains(text, secret) {
			e.v.Leaks = append(e.v.Leaks, fmt.Sprintf("secret %d in %s", i+1, where))
		}
	}
}

// searchState looks for secrets in the names of files that mcpmend keeps, and in
// their content unless it is that of a configuration: backups have to hold it.
func (e *examiner) searchState() error {
	return filepath.WalkDir(e.world.path("state"), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		e.search("name of a state file", name)
		if d.IsDir() || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(name)
		if err == nil && !e.contents[string(data)] {
			e.search("state file "+d.Name(), string(data))
		}
		return err
	})
}

func (e *examiner) checkArgs(more ...string) []string {
	args := append([]string{"check"}, more...)
	if e.setup.Timeout != "" {
		args = append(args, "--timeout", e.setup.Timeout)
	}
	return append(args, e.approve...)
}

// check judges the diagnosis.
func (e *examiner) check(ctx context.Context) error {
	found, said, err := e.cases(ctx)
	if err != nil {
		return err
	}
	if e.setup.Approve {
		c := e.pick(found.Cases)
		if c == nil || c.State != "pending" || c.Approve == "" {
			e.v.Rest = append(e.v.Rest, "not pending before it was approved")
		}
		for _, c := range found.Cases {
			if c.Approve != "" {
				e.approve = append(e.approve, "--approve", c.Approve)
			}
		}
		e.noneRan("before it was approved")
		if found, said, err = e.cases(ctx); err != nil {
			return err
		}
	}
	e.judge(found.Cases, said.exit)
	text, err := e.mcpmend(ctx, e.checkArgs()...)
	if err != nil {
		return err
	}
	e.v.Named = names(e.world.fill, e.setup.Words, text.text())
	if !e.v.Named {
		e.v.Rest = append(e.v.Rest, "the text does not name it: "+strings.Join(e.setup.Words, " and "))
	}
	return e.unchanged("check")
}

// noneRan notes what has been run so far and should not have been.
func (e *examiner) noneRan(when string) {
	for _, line := range e.world.journal() {
		if line != "" {
			e.v.Ran = append(e.v.Ran, line+" "+when)
		}
	}
}

func (e *examiner) cases(ctx context.Context) (*checked, *spoken, error) {
	said, err := e.mcpmend(ctx, e.checkArgs("--json")...)
	if err != nil {
		return nil, nil, err
	}
	var found checked
	if err := json.Unmarshal(said.out, &found); err != nil {
		return nil, nil, fmt.Errorf("check --json, exit %d: %v: %s", said.exit, err, e.world.unfill(said.text()))
	}
	if found.SchemaVersion == 0 {
		e.v.Rest = append(e.v.Rest, "no schemaVersion")
	}
	return &found, said, nil
}

// pick returns the case that the set-up is about.
func (e *examiner) pick(cases []*caseOf) *caseOf {
	for _, c := range cases {
		if c.Server == e.setup.Server && c.Client == e.setup.Client && (e.setup.Scope == "" || c.Scope == e.setup.Scope) {
			return c
		}
	}
	// A file that is broken as a whole may be reported under the entry in it.
	for _, c := range cases {
		if c.Client == e.setup.Client && c.Cause != nil && right(e.setup.Causes, c.Cause.ID) && (c.Server == "" || e.setup.Server == "") {
			return c
		}
	}
	return nil
}

func (e *examiner) judge(cases []*caseOf, exit int) {
	v, s := e.v, e.setup
	v.Exit = exit
	if !slices.Contains(s.Exits, exit) {
		v.Rest = append(v.Rest, fmt.Sprintf("check exits with %d, not %v", exit, s.Exits))
	}
	for _, c := range cases {
		if c.Server != s.Server && c.Cause != nil && c.Cause.Severity == "error" && !right(s.Causes, c.Cause.ID) && !slices.Contains(notBroken, c.State) {
			v.Rest = append(v.Rest, fmt.Sprintf("%s of %s, which is well, is said to be %s: %s", c.Server, c.Client, c.State, c.Cause.ID))
		}
	}
	c := e.pick(cases)
	if c == nil {
		if slices.Contains(s.States, "absent") {
			v.State, v.Right = "absent", true
			return
		}
		v.Rest = append(v.Rest, "nothing said of "+s.Server)
		return
	}
	v.State = c.State
	if c.Cause != nil {
		v.Cause = c.Cause.ID
		if len(c.Cause.Fixes) > 0 {
			v.Fix = c.Cause.Fixes[0].Name + "/" + c.Cause.Fixes[0].Class
		}
	}
	v.Right = right(s.Causes, v.Cause)
	if !slices.Contains(s.States, c.State) {
		v.Rest = append(v.Rest, fmt.Sprintf("state %s, not %s", c.State, strings.Join(s.States, " or ")))
	}
	all := slices.Clone(c.Also)
	if c.Cause != nil {
		all = append(all, *c.Cause)
	}
	for _, want := range s.Warns {
		// Of a file as a whole, a warning stands in a case of its own.
		for _, other := range cases {
			if other.Server == "" && other.Client == s.Client && other.Cause != nil {
				all = append(all, *other.Cause)
			}
		}
		i := slices.IndexFunc(all, func(f finding) bool { return right([]string{want}, f.ID) })
		if i < 0 {
			v.Right = false
			v.Rest = append(v.Rest, "no "+want)
			continue
		}
		if len(s.Causes) == 0 {
			v.Cause, v.Right, v.Fix = want, true, ""
			if len(all[i].Fixes) > 0 {
				v.Fix = all[i].Fixes[0].Name + "/" + all[i].Fixes[0].Class
			}
		}
	}
	if len(s.Classes) > 0 {
		_, class, _ := strings.Cut(v.Fix, "/")
		if !slices.Contains(s.Classes, class) {
			v.Rest = append(v.Rest, fmt.Sprintf("best fix is %q, not of class %s", v.Fix, strings.Join(s.Classes, " or ")))
		}
	}
}

// fromStart are the stages of which "*" is any: when a process ends by itself, it
// is a matter of taste whether it has started.
var fromStart = []string{"start", "pure", "handshake", "tools"}

func right(causes []string, id string) bool {
	if len(causes) == 0 {
		return true // only its warnings are judged
	}
	stage, kind, _ := strings.Cut(id, ".")
	return slices.ContainsFunc(causes, func(want string) bool {
		if want == "none" {
			return id == ""
		}
		wantStage, wantKind, _ := strings.Cut(want, ".")
		return kind == wantKind && (stage == wantStage || wantStage == "*" && slices.Contains(fromStart, stage))
	})
}

// names reports whether a text has all the words. The rule is the same for us and
// for the others.
func names(fill func(string) string, words []string, text string) bool {
	text = strings.ToLower(text)
	for _, choice := range words {
		if !slices.ContainsFunc(strings.Split(choice, "|"), func(w string) bool { return strings.Contains(text, strings.ToLower(fill(w))) }) {
			return false
		}
	}
	return true
}

// unchanged notes every difference to the beginning as damage.
func (e *examiner) unchanged(after string) error {
	now, err := e.look()
	if err != nil {
		return err
	}
	for _, d := range now.differences(e.original) {
		e.damage(d + " after " + after)
	}
	return nil
}

func (e *examiner) damage(what string) {
	if e.setup.Leave {
		e.v.Touched = append(e.v.Touched, what)
	}
	e.v.Damaged = append(e.v.Damaged, what)
}

// heal judges the plan, the healing with and without agreement, and the undo.
func (e *examiner) heal(ctx context.Context) error {
	s := e.setup
	plan, err := e.mcpmend(ctx, append([]string{"heal", "--plan"}, e.approve...)...)
	if err != nil {
		return err
	}
	if err := e.unchanged("heal --plan"); err != nil {
		return err
	}
	// Cleaning a cache is a change that no file of the user's shows.
	if want := s.auto(); want != (plan.exit == 10) && !(s.asks() && plan.exit == 10) && !(len(s.Want) == 0 && plan.exit == 0) {
		e.v.Rest = append(e.v.Rest, fmt.Sprintf("heal --plan exits with %d", plan.exit))
	}
	var undo []string
	ids, ok, err := e.healOnce(ctx, "want", e.original.with(e.world, s.Want), s.After)
	if err != nil {
		return err
	}
	e.v.Healed = ok && s.auto()
	undo = append(undo, ids...)
	ids, ok, err = e.healOnce(ctx, "want-yes", e.original.with(e.world, slices.Concat(s.Want, s.WantYes)), s.AfterYes, "--yes")
	if err != nil {
		return err
	}
	e.v.HealedYes = ok && s.asks()
	return e.undo(ctx, append(undo, ids...))
}

func (e *examiner) undo(ctx context.Context, ids []string) error {
	slices.Reverse(ids)
	for _, id := range ids {
		said, err := e.plain(ctx, "undo", id)
		if err != nil {
			return err
		}
		if said.exit != 0 {
			e.damage(fmt.Sprintf("undo exits with %d: %s", said.exit, strings.TrimSpace(e.world.unfill(said.text()))))
		}
	}
	return e.unchanged("undo")
}

// healing runs heal: with --yes as a program does, without as a person at a
// terminal who says no to every question, since otherwise it only shows its plan.
func (e *examiner) healing(ctx context.Context, flags []string) (claimed bool, undo []string, err error) {
	if len(flags) == 0 {
		args := append([]string{e.tools.mcpmend, "heal", "--project", e.world.path("project")}, e.approve...)
		said, err := e.world.atTerminal(ctx, "n", nil, args...)
		if said != nil {
			e.said(args[1:], said)
			for _, m := range undoLine.FindAllSubmatch(said.out, -1) {
				if !slices.Contains(undo, string(m[1])) {
					undo = append(undo, string(m[1]))
				}
			}
			claimed = said.exit == 0 && e.v.Exit != 0
		}
		return claimed, undo, err
	}
	said, err := e.mcpmend(ctx, append([]string{"heal", "--json"}, append(flags, e.approve...)...)...)
	if err != nil {
		return false, nil, err
	}
	var h healed
	if err := json.Unmarshal(said.out, &h); err != nil {
		return false, nil, fmt.Errorf("heal --json, exit %d: %v: %s", said.exit, err, e.world.unfill(said.text()))
	}
	for _, one := range h.Healings {
		undo = append(undo, one.Undo...)
		claimed = claimed || one.Fixed && one.Server == e.setup.Server
	}
	return claimed, undo, nil
}

var undoLine = regexp.MustCompile(`mcpmend undo ([0-9A-Za-z_-]+)`)

// healOnce heals and compares what is on disk with what is wanted: the file as it
// was is a missed healing, any third content is damage.
func (e *examiner) healOnce(ctx context.Context, section string, want snapshot, states []string, flags ...string) (undo []string, ok bool, err error) {
	before, err := e.look()
	if err != nil {
		return nil, false, err
	}
	claimed, undo, err := e.healing(ctx, flags)
	if err != nil {
		return undo, false, err
	}
	now, err := e.look()
	if err != nil {
		return undo, false, err
	}
	written := true
	for name, st := range now {
		if w, ok := want[name]; ok && w.hash == st.hash && w.link == st.link {
			continue
		}
		if old, ok := before[name]; ok && old.hash == st.hash {
			written = false // not mended, and not harmed
			continue
		}
		e.v.update[section+"/"+e.world.unfill(name)] = encode(e.world.unfill(st.text))
		e.damage(fmt.Sprintf("%s after heal %s is not as wanted:\n%s", name, strings.Join(flags, " "), lineDiff(e.world.unfill(want[name].text), e.world.unfill(st.text))))
	}
	for _, d := range now.differences(want) {
		if strings.Contains(d, " is gone") || strings.Contains(d, " has ") {
			if name, _, _ := strings.Cut(d, " is gone"); before[name] == (fileState{}) && strings.HasSuffix(d, " is gone") {
				written = false // should have been made
				continue
			}
			e.damage(d + " after heal " + strings.Join(flags, " "))
		}
	}
	if len(states) == 0 {
		if claimed && len(flags) == 0 && !e.setup.auto() {
			e.v.Rest = append(e.v.Rest, "heal says it mended what it must not")
		}
		return undo, false, nil
	}
	found, _, err := e.cases(ctx)
	if err != nil {
		return undo, false, err
	}
	state := "nothing"
	if c := e.pick(found.Cases); c != nil {
		state = c.State
	}
	if e.setup.Server == "" && len(found.Cases) > 0 && found.Cases[0].Cause == nil {
		state = found.Cases[0].State
	}
	why, err := e.ruling(ctx, state)
	if err != nil {
		return undo, false, err
	}
	if why != nil {
		e.v.Notes = append(e.v.Notes, fmt.Sprintf("after heal %s the judge says: %v", strings.Join(flags, " "), why))
	}
	ok = written && slices.Contains(states, state) && why == nil
	if ok {
		if err := e.askReal(ctx); err != nil {
			return undo, false, err
		}
	}
	if !written {
		e.v.Notes = append(e.v.Notes, "heal "+strings.Join(flags, " ")+" did not write")
	}
	if !slices.Contains(states, state) {
		e.v.Notes = append(e.v.Notes, fmt.Sprintf("after heal %s it is %s, not %s", strings.Join(flags, " "), state, strings.Join(states, " or ")))
	}
	if claimed != slices.Contains(states, state) && (claimed || ok) && len(flags) == 0 && e.v.Exit != 0 {
		e.v.Rest = append(e.v.Rest, fmt.Sprintf("heal says fixed: %v", claimed))
	}
	return undo, ok, nil
}
