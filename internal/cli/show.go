package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// A view shows what a doctor found. It writes paths the way a person would.
type view struct {
	*screen
	home, project string
	// asked is what was typed, which commands that we tell people to type have to say
	// again.
	asked selection
}

// A standing is what a case means to somebody who wants to go on working.
type standing int

const (
	fine   standing = iota
	aside           // not running, and nobody has to do anything about it
	warned          // it works, or would, and something should be done
	broken          // it does not work in its client
)

func standingOf(c *doctor.Case) standing {
	switch c.State {
	case doctor.Healthy:
		return fine
	case doctor.Unchecked:
		if c.Cause != nil {
			return warned
		}
		return aside
	case doctor.Disabled, doctor.InUse:
		return aside
	case doctor.Degraded, doctor.Shadowed, doctor.Pending:
		return warned
	}
	return broken
}

// stateWords says how a server is, and where it stopped if it came as far as to be
// started.
func stateWords(c *doctor.Case) string {
	if c.Cause == nil || c.State != doctor.Dead && c.State != doctor.Unresponsive {
		return wordsOf(c.State)
	}
	switch c.Cause.Stage {
	case doctor.AtFile, doctor.AtParse, doctor.AtShape, doctor.AtVariables, doctor.AtResolve:
		return "cannot be started"
	}
	return wordsOf(c.State) + " at " + string(c.Cause.Stage)
}

func wordsOf(state doctor.State) string {
	switch state {
	case doctor.Unresponsive:
		return "no answer"
	case doctor.SignIn:
		return "sign-in needed"
	case doctor.Skipped:
		return "skipped by the client"
	case doctor.Unreadable:
		return "the client cannot read it"
	case doctor.Misplaced:
		return "not read by the client"
	case doctor.Degraded:
		return "works, but"
	case doctor.Shadowed:
		return "another entry wins"
	case doctor.Pending:
		return "waits for your approval"
	case doctor.InUse:
		return "in use"
	case doctor.Disabled:
		return "switched off"
	case doctor.Unchecked:
		return "not started"
	}
	return string(state)
}

// report shows the whole of an examination: the verdict, the problems with what
// to do about each, the rest folded, and what to type next.
func (v view) report(r *doctor.Report, servers []string) {
	v.printf("%s\n", v.verdict(r))
	if v.quiet {
		return
	}
	problems := problemsOf(r.Cases)
	columns := v.columns(problems)
	for _, c := range problems {
		v.printf("\n")
		v.problem(c, columns, needsClient(r.Cases, c))
	}
	v.folded(r, len(problems) > 0)
	if words, command := nextStep(r, v.asked, servers); command != "" {
		v.printf("\n%s %s\n", words, command)
	}
}

// problemsOf are the cases somebody has to do something about, the worst first.
func problemsOf(cases []*doctor.Case) []*doctor.Case {
	var problems []*doctor.Case
	for _, c := range cases {
		if standingOf(c) >= warned {
			problems = append(problems, c)
		}
	}
	slices.SortStableFunc(problems, func(a, b *doctor.Case) int { return int(standingOf(b)) - int(standingOf(a)) })
	return problems
}

func (v view) verdict(r *doctor.Report) string {
	if len(r.Cases) == 0 {
		return "no MCP servers found"
	}
	servers, files, attention := 0, 0, 0
	clients := make(map[string]bool)
	count := make(map[doctor.State]int)
	for _, c := range r.Cases {
		clients[c.Client] = true
		if c.Name != "" {
			servers++
			count[c.State]++
		}
		switch {
		case standingOf(c) < warned:
		case c.Name == "":
			files++
		default:
			attention++
		}
	}
	text := fmt.Sprintf("%s in %s %s ", plural(servers, "server"), plural(len(clients), "client"), v.dot)
	switch {
	case attention > 0 && files > 0:
		text += plural(attention, "server") + " and " + plural(files, "file") + " need attention"
	case files == 1:
		text += "1 file needs attention"
	case files > 1:
		text += fmt.Sprintf("%d files need attention", files)
	case attention == 1:
		text += "1 needs attention"
	case attention > 1:
		text += fmt.Sprintf("%d need attention", attention)
	case count[doctor.Healthy] == servers:
		text += "all healthy"
	case count[doctor.Healthy]+count[doctor.InUse] == 0:
		text += "nothing wrong to be seen, none was started"
	default:
		var parts []string
		for _, state := range []doctor.State{doctor.Healthy, doctor.InUse, doctor.Unchecked, doctor.Disabled} {
			if n := count[state]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, wordsOf(state)))
			}
		}
		text += strings.Join(parts, ", ")
	}
	style := green
	if attention+files > 0 {
		style = bold
	}
	return v.paint(style, text) + " " + v.paint(faint, v.dot+" "+seconds(r.Took))
}

// columns are the widths of what stands before the state of a case.
type columns struct{ name, client, place int }

func (v view) columns(cases []*doctor.Case) columns {
	var w columns
	for _, c := range cases {
		w.name = max(w.name, lipgloss.Width(nameOf(c)))
		w.client = max(w.client, lipgloss.Width(clientOf(c)))
		w.place = max(w.place, lipgloss.Width(v.place(c.At)))
	}
	const longestState = 26
	if v.width > 0 && 2+w.name+2+w.client+2+w.place+2+longestState > v.width {
		return columns{} // nothing lines up in a window this small
	}
	return w
}

func (v view) sign(c *doctor.Case) string {
	switch standingOf(c) {
	case broken:
		return v.paint(red, v.bad)
	case warned:
		return v.paint(yellow, v.warn)
	case aside:
		return v.paint(faint, v.dot)
	}
	return v.paint(green, v.ok)
}

func (v view) head(c *doctor.Case, w columns, words string) string {
	return fmt.Sprintf("%s %s  %s  %s  %s", v.sign(c), v.paint(bold, pad(nameOf(c), w.name)), pad(clientOf(c), w.client),
		pad(v.place(c.At), w.place), words)
}

// heading is the head of a case, on two lines in a window that is too small for one.
func (v view) heading(c *doctor.Case, w columns, words string) {
	if head := v.head(c, w, words); v.width == 0 || lipgloss.Width(head) <= v.width {
		v.printf("%s\n", head)
		return
	}
	v.printf("%s %s  %s\n    %s  %s\n", v.sign(c), v.paint(bold, nameOf(c)), words, clientOf(c), v.place(c.At))
}

// problem shows one case: where, what was seen, why, and what to do.
func (v view) problem(c *doctor.Case, w columns, withClient bool) {
	v.heading(c, w, stateWords(c))
	if c.State == doctor.Pending {
		v.detail("runs", plain(c.Runs))
		why := "it comes with the project: look at it before it is started for the first time"
		if len(c.Changed) > 0 {
			why = "it comes with the project and is not what you have approved: look at it again"
		}
		v.detail("why", why)
		v.paste("fix", "", v.asked.about("check", c.Name, "--approve", c.Approve))
		if len(c.Changed) > 0 || c.EveryTime {
			v.detail("or", "add --folder to trust later changes of the project's files, too")
		}
	}
	if c.Cause != nil {
		v.finding(c, *c.Cause, "cause", withClient)
	}
	for _, f := range c.Also {
		v.finding(c, f, "also", withClient)
	}
}

func (v view) finding(c *doctor.Case, f doctor.Finding, label string, withClient bool) {
	if seen := v.evidence(f.Evidence); seen != "" {
		v.detail("", seen)
	}
	v.detail(label, v.text(f.Explanation))
	said := false
	for i, fix := range f.Fixes {
		if i > 0 && !v.verbose {
			break
		}
		v.fix(c, fix, withClient)
		said = said || strings.Contains(fix.Does, f.Help)
	}
	if f.Help != "" && !said {
		v.detail("help", plain(f.Help))
	}
	if v.verbose {
		v.detail("id", f.ID)
	}
}

// evidence is what was seen, in one line; all of it only if asked for.
func (v view) evidence(lines []string) string {
	const few, long = 3, 160
	var shown []string
	for i, line := range lines {
		if i == few && !v.verbose {
			break
		}
		line = v.text(line)
		if !v.verbose {
			line = v.cut(line, long)
		}
		if line != "" {
			shown = append(shown, line)
		}
	}
	return strings.Join(shown, " "+v.dot+" ")
}

func (v view) fix(c *doctor.Case, fix doctor.Fix, withClient bool) {
	does := v.text(fix.Does)
	switch fix.Class {
	case doctor.Auto:
		v.paste("fix", does+" "+v.dot+" automatic", v.healLine(c, withClient))
	case doctor.Ask:
		v.paste("fix", does+" "+v.dot+" asks first", v.healLine(c, withClient))
	default:
		v.detail("do", does)
	}
	if fix.Run != "" {
		v.paste("run", "", visible(fix.Run))
	}
}

// paste is a detail with a command behind it, which is never broken: it is there to
// be copied.
func (v view) paste(label, text, command string) {
	switch whole := text + " " + v.dot + " " + command; {
	case text == "":
		v.printf("    %s%s\n", v.paint(faint, pad(label, 7)), command)
	case v.width == 0 || 4+7+lipgloss.Width(whole) <= v.width:
		v.detail(label, whole)
	default:
		v.detail(label, text)
		v.printf("    %s%s\n", strings.Repeat(" ", 7), command)
	}
}

// detail is a labelled line below a case; what does not fit goes on below it.
func (v view) detail(label, text string) {
	const indent = 4
	if label != "" {
		label = pad(label, 7)
	}
	width := 0
	if v.width > 0 {
		width = max(30, v.width-indent-len(label))
	}
	for i, line := range wrap(text, width) {
		if i > 0 {
			label = strings.Repeat(" ", len(label))
		}
		v.printf("%*s%s%s\n", indent, "", v.paint(faint, label), line)
	}
}

// folded shows the cases that nobody has to do anything about: their names, or
// with -v a line for each.
func (v view) folded(r *doctor.Report, apart bool) {
	groups := []struct {
		sign  string
		style lipgloss.Style
		state doctor.State
	}{
		{v.ok, green, doctor.Healthy},
		{v.dot, faint, doctor.InUse},
		{v.dot, faint, doctor.Unchecked},
		{v.dot, faint, doctor.Disabled},
	}
	for _, g := range groups {
		var cases []*doctor.Case
		for _, c := range r.Cases {
			if c.State == g.state && c.Name != "" {
				cases = append(cases, c)
			}
		}
		if len(cases) == 0 {
			continue
		}
		if apart {
			v.printf("\n")
			apart = false
		}
		if v.verbose {
			w := v.columns(cases)
			for _, c := range cases {
				v.heading(c, w, v.wellWords(c))
			}
			continue
		}
		words := string(g.state)
		if g.state != doctor.Healthy {
			words = stateWords(cases[0])
		}
		start := fmt.Sprintf("%s %d %s", g.sign, len(cases), words)
		lines := wrap(strings.Join(namesOf(cases), " "), v.width-lipgloss.Width(start)-2)
		v.printf("%s%s  %s\n", v.paint(g.style, g.sign), strings.TrimPrefix(start, g.sign), lines[0])
		for _, line := range lines[1:] {
			v.printf("%s%s\n", strings.Repeat(" ", lipgloss.Width(start)+2), line)
		}
		v.untrusted(cases)
	}
}

// untrusted says, once for each client, why it uses none of its servers here.
func (v view) untrusted(cases []*doctor.Case) {
	var said []string
	for _, c := range cases {
		if c.Untrusted != "" && !slices.Contains(said, c.Untrusted) {
			said = append(said, c.Untrusted)
			v.printf("  %s\n", plain(c.Untrusted))
		}
	}
}

// namesOf are the names of some cases, each once, with the number of clients that
// have it if that is more than one.
func namesOf(cases []*doctor.Case) []string {
	var names []string
	count := make(map[string]int)
	for _, c := range cases {
		name := plain(c.Name)
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d)", name, n)
		}
	}
	return names
}

// wellWords says of a server that works how well it does.
func (v view) wellWords(c *doctor.Case) string {
	if c.State != doctor.Healthy {
		if c.Cause != nil {
			return stateWords(c) + ": " + plain(c.Cause.Explanation)
		}
		return stateWords(c)
	}
	words := []string{}
	if c.Info != nil {
		words = append(words, plural(len(c.Info.Tools), "tool"))
	}
	return strings.Join(append(words, seconds(c.Took)), " "+v.dot+" ")
}

// exitCode says it all in a number. Problems of one sort have a code of their own.
func exitCode(cases []*doctor.Case, failOn doctor.Severity) int {
	code := OK
	for _, c := range cases {
		mine := OK
		switch standing := standingOf(c); {
		case standing == broken && c.State == doctor.SignIn:
			mine = SignIn
		case standing == broken && (c.State == doctor.Dead || c.State == doctor.Unresponsive):
			mine = Unreachable
		case standing == broken, standing == warned && failOn == doctor.Warning:
			mine = Failed
		}
		switch {
		case code == OK:
			code = mine
		case mine != OK && mine != code:
			code = Failed
		}
	}
	return code
}

func nameOf(c *doctor.Case) string {
	if c.Name == "" && c.Client != "" {
		return "(the file)"
	}
	return plain(c.Name)
}

func clientOf(c *doctor.Case) string {
	name := c.Client
	if client := clientconfig.ByID(c.Client); client != nil {
		name = client.Name
	}
	if c.Scope != "" {
		name += " (" + c.Scope + ")"
	}
	return name
}

func (v view) place(at doctor.Place) string {
	path := v.path(at.File)
	if at.Line > 0 {
		path += fmt.Sprintf(":%d", at.Line)
	}
	return path
}

// path is a file as a person would name it: from the project, or from home.
func (v view) path(file string) string {
	if v.project != "" && v.project != v.home {
		if rel, err := filepath.Rel(v.project, file); err == nil && filepath.IsLocal(rel) && rel != "." {
			return plain(rel)
		}
	}
	if v.home != "" {
		if rel, err := filepath.Rel(v.home, file); err == nil && filepath.IsLocal(rel) && rel != "." {
			return plain("~" + string(filepath.Separator) + rel)
		}
	}
	return plain(file)
}

// text is what a doctor wrote, with the home folder as a person names it.
func (v view) text(s string) string {
	s = plain(s)
	if v.home == "" || v.home == string(filepath.Separator) {
		return s
	}
	return strings.ReplaceAll(s, v.home+string(filepath.Separator), "~"+string(filepath.Separator))
}

// seconds is a time that people compare at a glance.
func seconds(d time.Duration) string {
	if d < 995*time.Millisecond {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok {
		thing = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
