// Command clients gives files written by internal/clientconfig to the real clients
// and asks them what they have understood.
//
//	go run ./bench/clients [--quick] [--only claude,codex] [--parts new,paste] [--json FILE]
//
// The clients are those of npm, in pinned versions, each in a home folder of its own.
// The servers in the files are witnesses: they write down with which arguments, which
// environment and by which program they were started, so that a value which a client
// has read differently is seen even where it shows no values.
//
// Parts:
//
//	new      files that did not exist, at every place we know of
//	edited   files a person has formatted; one value is set, one server added, one removed
//	grammar  comments, trailing commas and byte order marks: do we know who reads them?
//	through  a server behind `mcpmend run` is connected, and was started by mcpmend
//	shape    entries as people copy them: do we know which ones a client uses? (not with --quick)
//	handed   variables of the client: do we know which ones its servers get? (not with --quick)
//	paste    entries of other clients in the files of all 18: does heal convert them and break none?
//
// It exits with 1 if anything is wrong, fewer than three clients connect through mcpmend, a
// file that worked before heal does not after it, or fewer than 95 % of the pasted entries
// whose meaning is certain are converted; and with 3 if a client could not be installed and nothing is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/program"
	"github.com/mcpmend/mcpmend/bench/internal/realclient"
)

const (
	handshakeGoal = 3
	// atOnce is how many clients run at a time; they are busy while they start.
	atOnce = 2
)

// A part is one question to one client.
type part struct {
	name string
	run  func(context.Context, *world, *realclient.Client) (*finding, error)
}

var parts = []part{
	{"new", newFiles},
	{"edited", editedFiles},
	{"grammar", grammar},
	{"through", through},
	{"shape", shape},
	{"handed", handed},
}

// A finding is the answer.
type finding struct {
	Client  string   `json:"client"`
	Version string   `json:"version"`
	Part    string   `json:"part"`
	Checks  int      `json:"checks"`
	Wrong   []string `json:"wrong,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Void    string   `json:"void,omitempty"`
	Seconds float64  `json:"seconds"`
}

// check counts one comparison and notes what is wrong with it.
func (f *finding) check(ok bool, format string, args ...any) {
	f.Checks++
	if !ok {
		f.Wrong = append(f.Wrong, fmt.Sprintf(format, args...))
	}
}

// note keeps what is worth knowing and no fault of ours, once.
func (f *finding) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// A report is all of a run.
type report struct {
	Findings []*finding `json:"findings"`
	Clients  int        `json:"clients"`
	Checks   int        `json:"checks"`
	Wrong    int        `json:"wrong"`
	Void     int        `json:"void"`
	Through  int        `json:"through"` // clients that connected through mcpmend
	Paste    *matrix    `json:"paste,omitempty"`
	Seconds  float64    `json:"seconds"`
}

func main() {
	o := program.Flags("one kind of line ends instead of three; under 45 s")
	only := flag.String("only", "", "the clients to run, separated by commas")
	parts := flag.String("parts", "", "the parts to run, separated by commas")
	verbose := flag.Bool("v", false, "show every pasted entry that was not converted")
	o.Main("clients", func(ctx context.Context) (any, program.Verdict, error) {
		return run(ctx, o.Quick, *only, *parts, *verbose)
	})
}

func run(ctx context.Context, quick bool, only, some string, verbose bool) (any, program.Verdict, error) {
	start := time.Now()
	w, err := newWorld(ctx, quick)
	if err != nil {
		return nil, program.Failed, err
	}
	defer w.close()
	var chosen []*realclient.Client
	for _, c := range realclient.All() {
		if names := strings.Split(only, ","); only == "" || slices.Contains(names, c.ID) || slices.Contains(names, c.Config) {
			chosen = append(chosen, c)
		}
	}
	w.parts = some
	rep, err := ask(ctx, w, chosen)
	if err != nil {
		return nil, program.Failed, err
	}
	if w.wants("paste") {
		real := make(map[string]*realclient.Client)
		for _, c := range chosen {
			if c.Installed() {
				real[c.Config] = c
			}
		}
		all, err := pasteAll(ctx, w, real, only)
		if err != nil {
			return nil, program.Failed, err
		}
		rep.Paste = w.matrix(all, real)
	}
	rep.Seconds = time.Since(start).Seconds()
	text, v := rep.verdict(only != "" || some != "")
	rep.print(text, verbose)
	return rep, v, nil
}

// ask puts every question to every client, in the order of the table.
func ask(ctx context.Context, w *world, clients []*realclient.Client) (*report, error) {
	rep := &report{Clients: len(clients)}
	results := make([][]*finding, len(clients))
	failures := make([]error, len(clients))
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			results[i], failures[i] = askOne(ctx, w, c)
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	for _, f := range slices.Concat(results...) {
		rep.Findings = append(rep.Findings, f)
		rep.Checks += f.Checks
		rep.Wrong += len(f.Wrong)
		switch {
		case f.Void != "":
			rep.Void++
		case f.Part == "through" && len(f.Wrong) == 0:
			rep.Through++
		}
	}
	return rep, nil
}

// install gives up on a registry that is slow: 1.4 GB are fetched the first time, and
// a slow line is no fault of the files that we write.
func install(ctx context.Context, c *realclient.Client) error {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	return c.Install(ctx)
}

func askOne(ctx context.Context, w *world, c *realclient.Client) ([]*finding, error) {
	if err := install(ctx, c); errors.Is(err, realclient.ErrUnavailable) {
		return []*finding{{Client: c.ID, Version: c.Version, Part: "install", Void: err.Error()}}, nil
	} else if err != nil {
		return nil, err
	}
	var found []*finding
	for _, p := range parts {
		if !w.wants(p.name) || w.quick && (p.name == "shape" || p.name == "handed") {
			continue // a dozen starts of each client; they test our table, not our writing
		}
		start := time.Now()
		f, err := p.run(ctx, w, c)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", c.ID, p.name, err)
		}
		f.Client, f.Version, f.Part, f.Seconds = c.ID, c.Version, p.name, time.Since(start).Seconds()
		found = append(found, f)
	}
	return found, nil
}

// wants says whether a part was asked for.
func (w *world) wants(part string) bool {
	return w.parts == "" || slices.Contains(strings.Split(w.parts, ","), part)
}

func (r *report) print(verdict string, verbose bool) {
	fmt.Printf("%-9s %-9s %-8s %6s %6s %7s\n", "client", "version", "part", "checks", "wrong", "seconds")
	for _, f := range r.Findings {
		if f.Void != "" {
			reason, _, _ := strings.Cut(f.Void, "\n")
			fmt.Printf("%-9s %-9s void: %s\n", f.Client, f.Version, reason)
			continue
		}
		fmt.Printf("%-9s %-9s %-8s %6d %6d %7.1f\n", f.Client, f.Version, f.Part, f.Checks, len(f.Wrong), f.Seconds)
	}
	for _, f := range r.Findings {
		for _, text := range f.Notes {
			fmt.Printf("\n%s, %s: %s", f.Client, f.Part, text)
		}
	}
	for _, f := range r.Findings {
		for _, text := range f.Wrong {
			fmt.Printf("\n%s, %s: WRONG: %s\n", f.Client, f.Part, strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	pasted := ""
	if r.Paste != nil {
		r.Paste.print(verbose)
		pasted = r.Paste.figures() + ", "
	}
	fmt.Printf("\n\nclients: %d clients, %d checks, %d wrong, %d connected through mcpmend, %s%.0f s; %s\n",
		r.Clients, r.Checks, r.Wrong, r.Through, pasted, r.Seconds, verdict)
}

// verdict is the result in words and the exit code. With some of the clients only,
// the goal for all of them does not count.
func (r *report) verdict(some bool) (string, program.Verdict) {
	switch {
	case r.Wrong > 0:
		return "FAILED", program.Missed
	case r.Paste != nil && !r.Paste.reached():
		return fmt.Sprintf("FAILED: no pasted file may break, and %d %% have to be converted", pasteGoal), program.Missed
	case r.Void > 0:
		return fmt.Sprintf("VOID: %d clients could not be installed from npm", r.Void), program.Void
	case r.Through < handshakeGoal && !some:
		return fmt.Sprintf("FAILED: %d clients have to connect through mcpmend", handshakeGoal), program.Missed
	}
	return "ok", program.Reached
}
