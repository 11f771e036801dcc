package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpmend/mcpmend/internal/app"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// selection is what check, heal and others look at, and how.
type selection struct {
	clients, scopes []string
	as              string
	project         string
	static          bool
	timeout         time.Duration
	approve         []string
	folder          bool
}

func (o *selection) register(p *program, c *cobra.Command, starts bool) {
	flags := c.Flags()
	flags.StringSliceVar(&o.clients, "client", nil, "only these clients, by `ID`; 'mcpmend clients' lists them")
	flags.StringSliceVar(&o.scopes, "scope", nil, "only entries of this `SCOPE`: user, project, local, …")
	flags.StringVar(&o.project, "project", "", "the `DIR` that the clients would be opened in (default: this one)")
	complete(c, "client", clientIDs)
	complete(c, "scope", scopes)
	if !starts {
		return
	}
	o.startFlags(flags)
	complete(c, "as", clientIDs)
}

func (o *selection) startFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.as, "as", "", "start every server the way the client with this `ID` would")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "longest `TIME` for one server to start and list its tools")
	flags.StringSliceVar(&o.approve, "approve", nil, "start the command of a project file that has this `HASH`")
	flags.BoolVar(&o.folder, "folder", false, "with --approve: trust the project's files, too, however they change later")
}

func clientIDs() []string {
	var ids []string
	for _, c := range clientconfig.Clients() {
		ids = append(ids, c.ID)
	}
	return ids
}

// scopes are those that files of clients have.
func scopes() []string {
	var all []string
	for _, c := range clientconfig.Clients() {
		for _, p := range c.Files {
			if !slices.Contains(all, p.Scope) {
				all = append(all, p.Scope)
			}
		}
	}
	return all
}

// doctor puts a doctor and a view together for a selection.
func (p *program) doctor(o selection) (*doctor.Doctor, view, error) {
	for _, id := range append(slices.Clone(o.clients), o.as) {
		if id != "" && clientconfig.ByID(id) == nil {
			return nil, view{}, usageError{fmt.Sprintf("no client is called %q", id), didYouMean(id, "clients", clientIDs(), "mcpmend clients")}
		}
	}
	for _, scope := range o.scopes {
		if known := scopes(); !slices.Contains(known, scope) {
			return nil, view{}, usageError{fmt.Sprintf("no scope is called %q", scope), didYouMean(scope, "scopes", known, "")}
		}
	}
	project, err := projectFolder(o.project)
	if err != nil {
		return nil, view{}, err
	}
	if p.env.Alone && !o.static {
		p.end = app.Adopt()
	}
	d, err := app.NewDoctor(app.DoctorOptions{
		Environ: p.env.Environ, Project: project, Timeout: o.timeout, As: clientconfig.ByID(o.as), Static: o.static,
	})
	if err != nil {
		return nil, view{}, err
	}
	v := view{p.screen(), d.System.Home, project, o}
	return d, v, v.approve(d)
}

// approve remembers what was approved by its hash.
func (v view) approve(d *doctor.Doctor) error {
	o := v.asked
	if o.folder && len(o.approve) == 0 {
		return misused("--folder goes with --approve")
	}
	for _, hash := range o.approve {
		approve := d.Approvals.Approve
		if o.folder {
			approve = d.Approvals.ApproveFolder
		}
		err := approve(hash)
		if errors.Is(err, doctor.ErrNoHash) {
			return misused("--approve: %v", err)
		}
		if err != nil {
			return err
		}
	}
	if o.folder {
		v.notef("The files of %s are trusted for this command: later changes of them are run without a question.\n", v.path(v.project))
	}
	return nil
}

// projectFolder is what --project says, "" being the folder we are in.
func projectFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", misused("--project: %s is no folder", dir)
	}
	return dir, nil
}

func (o selection) which(servers []string) doctor.Which {
	return doctor.Which{Servers: servers, Clients: o.clients, Scopes: o.scopes}
}

func checkCommand(p *program) *cobra.Command {
	var o selection
	var failOn string
	c := &cobra.Command{
		Use:   "check [server...]",
		Short: "look at every server of every client and say what is wrong",
		Long: `
Reads the files of all clients, starts each server the way its client would, and
says what is wrong, why, and what to do. Nothing is changed. A command that comes
with a project is not started before you have approved it.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE: func(c *cobra.Command, args []string) error {
			if failOn != "error" && failOn != "warn" {
				return misused("--fail-on: choose error or warn")
			}
			return p.check(c.Context(), o, args, doctor.Severity(failOn))
		},
	}
	o.register(p, c, true)
	c.Flags().BoolVar(&o.static, "static", false, "look at the files and start nothing")
	c.Flags().StringVar(&failOn, "fail-on", "error", "`LEVEL` of what makes the exit code other than 0: error or warn")
	return c
}

func (p *program) check(ctx context.Context, o selection, servers []string, failOn doctor.Severity) error {
	d, v, err := p.doctor(o)
	if err != nil {
		return err
	}
	report, err := v.examine(ctx, d, o.which(servers))
	if err != nil {
		return err
	}
	code := exitCode(report.Cases, failOn)
	switch {
	case p.json:
		if err := p.printJSON(checkAnswer(report, o, servers, code)); err != nil {
			return err
		}
	case len(report.Cases) == 0:
		v.nothingFound(report, d.System)
	default:
		v.report(report, servers)
	}
	return exit(code)
}

// examine checks, shows that it is at work, and asks about commands that wait for
// approval.
func (v view) examine(ctx context.Context, d *doctor.Doctor, which doctor.Which) (*doctor.Report, error) {
	report, err := v.look(ctx, d, which)
	if err != nil {
		return nil, err
	}
	if missing := unknownServers(report, which.Servers); len(missing) > 0 {
		return nil, unknownServer(d, missing[0])
	}
	if again := v.askPending(d, report); len(again) > 0 {
		which.Servers = again
		second, err := v.look(ctx, d, which)
		if err != nil {
			return nil, err
		}
		replaceCases(report, second)
	}
	return report, nil
}

func (v view) look(ctx context.Context, d *doctor.Doctor, which doctor.Which) (*doctor.Report, error) {
	watch := v.watch(d, which)
	report := d.Check(ctx, which, func(c *doctor.Case) {
		if ctx.Err() == nil { // what ends now was ended by us, and says nothing
			watch.closed(c)
		}
	})
	watch.end(ctx.Err() != nil)
	return report, ctx.Err()
}

// askPending lets a person at a terminal approve commands of project files. It
// returns the names of those that were.
func (v view) askPending(d *doctor.Doctor, r *doctor.Report) []string {
	var names []string
	for _, c := range r.Cases {
		if c.State != doctor.Pending || !v.asks {
			continue
		}
		v.notef("%s wants to start, for %s:\n    %s\n", v.place(c.At), clientOf(c), plain(c.Runs))
		question := "Start it, now and from now on?"
		if c.EveryTime {
			question = "Start it this time?"
		}
		if !v.ask(question) {
			continue
		}
		if err := d.Approvals.Approve(c.Approve); err != nil {
			v.notef("mcpmend: error: the approval could not be kept: %v\n", err)
			continue
		}
		names = append(names, c.Name)
	}
	return names
}

// replaceCases puts the cases of a second look in the place of the first ones.
func replaceCases(r, second *doctor.Report) {
	for _, c := range second.Cases {
		i := slices.IndexFunc(r.Cases, func(o *doctor.Case) bool {
			return o.Client == c.Client && o.Scope == c.Scope && o.Name == c.Name && o.At == c.At
		})
		if i >= 0 {
			r.Cases[i] = c
		}
	}
	r.Took += second.Took
}

func unknownServers(r *doctor.Report, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(r.Cases, func(c *doctor.Case) bool { return c.Name == name || c.Name == "" })
	})
}

// unknownServer is the answer to a name that no server has.
func unknownServer(d *doctor.Doctor, name string) error {
	return usageError{fmt.Sprintf("no server is called %q", name), didYouMean(name, "servers", serverNames(d.System), "mcpmend list")}
}

// didYouMean says which of the known names somebody may have meant, the nearest first, and
// where to find the others.
func didYouMean(name, what string, known []string, more string) string {
	if len(known) == 0 {
		return "mcpmend clients"
	}
	near := func(other string) int { // the beginning of a long name will do
		return min(distance(other, name), 1+distance(other[:min(len(other), len(name))], name))
	}
	known = slices.Clone(known)
	slices.SortStableFunc(known, func(a, b string) int { return near(a) - near(b) })
	text := ""
	if best := near(known[0]); best <= max(2, len(name)/3) {
		same := 1
		for same < min(len(known), 3) && near(known[same]) == best {
			same++
		}
		text = fmt.Sprintf("did you mean %s? ", plain(strings.Join(known[:same], " or ")))
	}
	const most = 8
	text += "known " + what + ": " + plain(strings.Join(known[:min(len(known), most)], ", "))
	if len(known) > most {
		text += fmt.Sprintf(" and %d more", len(known)-most)
		if more != "" {
			text += " (" + more + ")"
		}
	}
	return text
}

// distance is small for names that somebody could have meant.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if strings.Contains(a, b) || strings.Contains(b, a) {
		return 0
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// serverNames are the names of all servers there are, each once.
func serverNames(s clientconfig.System) []string {
	var names []string
	for _, f := range s.Find() {
		for _, server := range f.Servers {
			if name := server.Name.Text; name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// nothingFound helps somebody who has no servers, or has them where we did not look.
func (v view) nothingFound(r *doctor.Report, system clientconfig.System) {
	v.printf("%s\n", v.paint(bold, "No MCP servers found."))
	if v.quiet {
		return
	}
	v.printf("\nLooked for the files of %s:\n", plural(len(r.Looked), "client"))
	names := make([]string, 0, len(r.Looked))
	for _, c := range r.Looked {
		names = append(names, c.Name)
	}
	for _, line := range wrap(strings.Join(names, ", "), max(v.width, 80)-4) {
		v.printf("  %s\n", line)
	}
	if len(r.Found) > 0 {
		var found []string
		for _, c := range r.Found {
			found = append(found, c.Name)
		}
		v.printf("There are files of %s, without servers in them.\n", strings.Join(found, ", "))
	}
	v.printf("\nProject files are looked for in %s; --project DIR looks elsewhere.\n", v.path(v.project))
	v.printf("\nNext: mcpmend clients -v                    which files each client reads\n")
	v.printf("      mcpmend test -- npx -y SOME-PACKAGE   try a server before you add it\n")
}

// A watch shows on a terminal how an examination goes on. Without one it is
// silent, or with -v says a line for each server as it is done.
type watch struct {
	view
	began time.Time
	rest  func() // ends the progress line

	mu          sync.Mutex
	waiting     []string
	closedN, of int
}

func (v view) watch(d *doctor.Doctor, which doctor.Which) *watch {
	w := &watch{view: v, began: time.Now(), rest: func() {}}
	if !v.live {
		return w
	}
	for _, c := range d.Expects(which) {
		w.waiting = append(w.waiting, nameOf(c))
	}
	w.of = len(w.waiting)
	w.rest = v.busy(w.text)
	return w
}

// closed is told of a case that is done.
func (w *watch) closed(c *doctor.Case) {
	if w.live || w.verbose && !w.quiet {
		w.passing(w.head(c, columns{name: 14}, strings.TrimSpace(stateWords(c)+" "+w.dot+" "+seconds(c.Took))))
	}
	w.mu.Lock()
	w.closedN++
	if i := slices.Index(w.waiting, nameOf(c)); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	w.mu.Unlock()
	w.progress(w.text())
}

func (w *watch) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("checking %s %d of %d done", w.dot, w.closedN, w.of)
	const most = 3
	var names []string
	for _, name := range w.waiting {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if n := len(names); n > 0 {
		text += fmt.Sprintf(" %s waiting for %s", w.dot, strings.Join(names[:min(n, most)], ", "))
		if n > most {
			text += fmt.Sprintf(" and %d more", n-most)
		}
	}
	return text + fmt.Sprintf(" %s %.0f s", w.dot, time.Since(w.began).Seconds())
}

// end takes away what was only shown while we worked. Who interrupts has nothing
// but that, and keeps it.
func (w *watch) end(interrupted bool) {
	w.rest()
	if interrupted {
		w.keep()
	} else {
		w.vanish()
	}
}
