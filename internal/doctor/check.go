package doctor

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultParallel = 32
	// So many servers start at a time, each until it answers or is seen to be slow:
	// a machine that starts twenty at once makes all of them late.
	starting = 8
	isSlow   = 300 * time.Millisecond
)

// Check examines every server that which selects. each is told of every case as
// soon as it is closed, one at a time; it may be nil.
//
// Servers are started side by side, except that two entries which start the same
// program take turns: a client may have the same server as another client, and
// many servers cannot stand a second copy of themselves.
func (d *Doctor) Check(ctx context.Context, which Which, each func(*Case)) *Report {
	began := time.Now()
	looked := which.clients()
	files := ownFiles(d.System.Find(looked...))
	report := &Report{Looked: looked, Found: clientsOf(files)}

	var told sync.Mutex
	closed := func(c *Case) {
		told.Lock()
		defer told.Unlock()
		if each != nil {
			each(c)
		}
	}
	report.Cases = d.admit(files, which)
	looking := *d
	looking.look = new(oneLook)
	looking.examineAll(ctx, report.Cases, closed)
	report.Took = time.Since(began)
	return report
}

// Expects are the cases that Check will close, before any of them is looked at.
func (d *Doctor) Expects(which Which) []*Case {
	return d.admit(ownFiles(d.System.Find(which.clients()...)), which)
}

// Test examines one server that stands in no file. A command without an
// environment gets that of the client As, or of a terminal. Without a Probe it stays
// Unchecked.
func (d *Doctor) Test(ctx context.Context, s Start) *Case {
	c := &Case{Runs: runs(s.Command, s.URL), Reached: AtResolve}
	if d.Probe == nil {
		c.State = Unchecked
		return c
	}
	if s.URL == "" && s.Env == nil {
		s.Env = d.environment(d.As).list
	}
	began := time.Now()
	d.probe(ctx, c, s, nil)
	d.advise(ctx, c)
	c.Took = time.Since(began)
	return c
}

// reexamine looks at one entry of a file that may exist in memory only, or at the
// file as a whole if name is "".
func (d *Doctor) reexamine(ctx context.Context, f *clientconfig.File, name string) *Case {
	for _, c := range d.admit([]*clientconfig.File{f}, Which{}) {
		if c.Name != name {
			continue
		}
		d.examine(ctx, c)
		return c
	}
	if name != "" {
		return nil
	}
	return &Case{Client: f.Client.ID, At: Place{File: f.Path}, State: Healthy, Reached: AtShape, file: f}
}

// admit makes the cases of some files. A case whose state is known already needs
// no examination; the others have none yet.
func (d *Doctor) admit(files []*clientconfig.File, which Which) []*Case {
	var cases []*Case
	for _, f := range files {
		if c := fileCase(f); c != nil {
			if which.wantsFile(f) {
				cases = append(cases, c)
			}
			if c.State == Unreadable {
				continue // whatever is wrong inside, the client never gets there
			}
		}
		for _, s := range f.Servers {
			if which.wants(s) {
				cases = append(cases, d.entryCase(f, s))
			}
		}
	}
	shadow(cases)
	return cases
}

// examineAll returns when all cases are closed.
func (d *Doctor) examineAll(ctx context.Context, cases []*Case, closed func(*Case)) {
	parallel := d.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	slots, doors := make(chan struct{}, parallel), make(chan struct{}, starting)
	var wait sync.WaitGroup
	for _, row := range inTurns(cases) {
		wait.Go(func() {
			for _, c := range row {
				slots <- struct{}{}
				doors <- struct{}{}
				leave := sync.OnceFunc(func() { <-doors })
				patience := time.AfterFunc(isSlow, leave)
				began := time.Now()
				d.examine(ctx, c)
				c.Took = time.Since(began)
				if patience.Stop() {
					leave()
				}
				<-slots
				closed(c)
			}
		})
	}
	wait.Wait()
}

// inTurns groups cases that start the same program.
func inTurns(cases []*Case) [][]*Case {
	var rows [][]*Case
	where := make(map[string]int)
	for _, c := range cases {
		if c.State != "" {
			rows = append(rows, []*Case{c})
			continue
		}
		key := c.server.URL.Text + "\x00" + c.server.Command.Text
		for _, a := range c.server.Args {
			key += "\x00" + a.Text
		}
		i, there := where[key]
		if !there {
			i = len(rows)
			where[key] = i
			rows = append(rows, nil)
		}
		rows[i] = append(rows[i], c)
	}
	return rows
}

// examine climbs from the variables on; what is below was seen in the file.
func (d *Doctor) examine(ctx context.Context, c *Case) {
	if c.State == "" {
		d.climb(ctx, c)
	}
	d.advise(ctx, c)
}

// advise attaches to each finding what can be done about it.
func (d *Doctor) advise(ctx context.Context, c *Case) {
	if c.Cause != nil {
		c.Cause.Fixes = d.fixes(ctx, c, c.Cause)
		c.hide(c.Cause)
	}
	for i := range c.Also {
		c.Also[i].Fixes = d.fixes(ctx, c, &c.Also[i])
		c.hide(&c.Also[i])
	}
}

func (d *Doctor) climb(ctx context.Context, c *Case) {
	start, variables := d.start(c.server, c.file)
	found := append(append(c.Also, variables...), unsafeSettings(c.server)...)
	c.Also, c.hider = nil, start.hider()
	// As it stands in the file: what a variable holds may be secret.
	c.Runs = runs(argvOf(c.server), c.server.URL.Text)
	if b := firstBroken(found); b != nil {
		c.close(b, found)
		return
	}
	c.climbed(AtVariables)
	if start.URL == "" {
		resolved := d.resolve(c.server, start)
		if again, better, ok := d.withLoginPath(ctx, c, resolved); ok {
			start, resolved = again, better
		}
		b := firstBroken(resolved)
		if f, ok := d.dependsOnFolder(c.server, start); ok && (b == nil || explains(found, *b) == nil) {
			c.close(nil, append(found, f))
			c.State = Unchecked
			return
		}
		if b != nil {
			if reason := blame(found, b); reason != b {
				b, resolved = reason, nil // what follows from it goes without saying
			}
			c.close(b, append(found, resolved...))
			return
		}
		found = append(found, resolved...)
		c.climbed(AtResolve)
	}
	found = append(found, d.deprecation(c.server)...)
	switch {
	case slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == kindAsked }):
		c.close(nil, found)
		c.State = Unchecked
	case d.Static || d.Probe == nil:
		c.close(nil, found)
		if c.State == Healthy {
			c.State = Unchecked
		}
	default:
		d.startApproved(ctx, c, start, found)
	}
}

// startApproved starts a server, unless a person has to agree first.
func (d *Doctor) startApproved(ctx context.Context, c *Case, start Start, found []Finding) {
	key, waits := d.pending(c.server, c.file)
	if !waits {
		d.probe(ctx, c, start, found)
		if key.hash != "" && d.Approvals != nil {
			d.Approvals.extend(key, d.approvalKey(c.server, c.file))
		}
		return
	}
	c.close(nil, found)
	c.State, c.Approve, c.EveryTime = Pending, key.hash, key.unbounded != ""
	if d.Approvals != nil {
		c.Changed = d.Approvals.changed(key)
	}
	c.Runs = wouldRun(c.server, key, c.Changed)
}

// withLoginPath looks for a program that was not found with the PATH of the login
// shell, for a client that asks that shell, or that is started from a terminal where
// we are not: we may have been started by something that has not. ok is false if it
// is not found even so.
func (d *Doctor) withLoginPath(ctx context.Context, c *Case, resolved []Finding) (start Start, found []Finding, ok bool) {
	b, as := firstBroken(resolved), d.client(c)
	asks := d.asksShell(as) || d.Served && !d.fromDesktop(as)
	if b == nil || b.Kind != string(fault.CommandNotFound) || !asks || d.Programs == nil {
		return Start{}, nil, false
	}
	path, err := d.Programs.LoginPath(ctx)
	if err != nil {
		return Start{}, nil, false
	}
	asked := *d
	asked.Environ = append(slices.Clone(d.Environ), "PATH="+path)
	start, _ = asked.start(c.server, c.file)
	found = asked.resolve(c.server, start)
	return start, found, firstBroken(found) == nil
}

// probe starts the server and judges what was seen.
func (d *Doctor) probe(ctx context.Context, c *Case, start Start, found []Finding) {
	start.Timeout = max(d.timeout(), ownTime(c.server))
	if start.Call == nil {
		start.Call = d.Call
	}
	saw := d.Probe(ctx, start)
	saw.hide(start.hider())
	c.saw, c.Info = &saw, saw.Info
	if saw.Fault != nil {
		c.Stderr = append(c.Stderr, saw.Fault.Stderr...)
	}
	c.Ladder = append(c.Ladder, saw.Steps...)
	for _, s := range saw.Steps {
		if s.OK {
			c.Reached = s.Stage
		}
	}
	d.judge(c, start.Timeout, &saw, found)
}

func (d *Doctor) timeout() time.Duration {
	if d.Timeout <= 0 {
		return defaultTimeout
	}
	return d.Timeout
}

// climbed notes a rung that held.
func (c *Case) climbed(s Stage) {
	c.Reached = s
	c.Ladder = append(c.Ladder, Step{Stage: s, OK: true})
}

// close ends a case that was not started. The cause may be nil; what else was
// found comes beside it, and if there is no cause the first of them is the thing
// to say.
func (c *Case) close(cause *Finding, found []Finding) {
	c.State = Healthy
	if cause != nil {
		c.State = stateOf(cause)
		c.Ladder = append(c.Ladder, Step{Stage: cause.Stage, Note: cause.Kind})
	} else if i := slices.IndexFunc(found, worthSaying); i >= 0 {
		c.State, cause = Degraded, &found[i]
	}
	if cause != nil {
		picked := *cause
		c.settle(c.State, &picked, found)
	}
}

func worthSaying(f Finding) bool { return f.Kind != kindAsked }

func firstBroken(found []Finding) *Finding {
	for i := range found {
		if found[i].Severity == Broken {
			return &found[i]
		}
	}
	return nil
}

// runs is a command or a URL, safe to be shown.
func runs(argv []string, url string) string {
	if url != "" {
		return secret.Scrub(url)
	}
	return strings.Join(secret.Args(argv), " ")
}

func (w Which) clients() []*clientconfig.Client {
	if len(w.Clients) == 0 {
		return clientconfig.Clients()
	}
	var cs []*clientconfig.Client
	for _, id := range w.Clients {
		if c := clientconfig.ByID(id); c != nil {
			cs = append(cs, c)
		}
	}
	return cs
}

func (w Which) wants(s *clientconfig.Server) bool {
	return (len(w.Servers) == 0 || slices.Contains(w.Servers, s.Name.Text)) &&
		(len(w.Scopes) == 0 || slices.Contains(w.Scopes, s.Scope))
}

// wantsFile: a file that is broken as a whole may hold the server that was asked for.
// Where its entries cannot be seen, the name has to stand in it at least: nobody who
// asks about one server wants another file mended.
func (w Which) wantsFile(f *clientconfig.File) bool {
	if len(w.Scopes) > 0 && !slices.ContainsFunc(f.Places, func(p clientconfig.Place) bool { return slices.Contains(w.Scopes, p.Scope) }) {
		return false
	}
	if len(w.Servers) == 0 {
		return true
	}
	if len(f.Servers) == 0 {
		return slices.ContainsFunc(w.Servers, f.Mentions)
	}
	return slices.ContainsFunc(f.Servers, w.wants)
}

// ownFiles leaves out files that a client would read if it were here. Two clients
// read .mcp.json, and who has only one of them does not want to hear of the other:
// a client counts as being here if it has a file of its own. If none has, the
// first of the table stands for all.
func ownFiles(files []*clientconfig.File) []*clientconfig.File {
	readers := make(map[string]int)
	for _, f := range files {
		readers[f.Path]++
	}
	own := make(map[*clientconfig.Client]bool)
	for _, f := range files {
		if readers[f.Path] == 1 {
			own[f.Client] = true
		}
	}
	taken := make(map[string]bool)
	for _, f := range files {
		taken[f.Path] = taken[f.Path] || own[f.Client]
	}
	return slices.DeleteFunc(files, func(f *clientconfig.File) bool {
		if readers[f.Path] == 1 || own[f.Client] {
			return false
		}
		if !taken[f.Path] {
			taken[f.Path] = true
			return false
		}
		return true
	})
}

func clientsOf(files []*clientconfig.File) []*clientconfig.Client {
	var cs []*clientconfig.Client
	for _, f := range files {
		if !slices.Contains(cs, f.Client) {
			cs = append(cs, f.Client)
		}
	}
	return cs
}
