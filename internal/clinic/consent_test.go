package clinic

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// withCursor gives the home a second client, whose file has an address in it: a
// server at that address is known, so all there is to ask is whether to write.
func (w *ward) withCursor(t *testing.T) (known string) {
	t.Helper()
	file := filepath.Join(w.home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	known = "https://example.com/mcp"
	if err := os.WriteFile(file, []byte(`{"mcpServers": {"known": {"url": "`+known+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return known
}

func statuses(out ConfigureOutput) map[string]string {
	got := make(map[string]string)
	for _, p := range out.Clients {
		got[p.Client] = p.Status
	}
	return got
}

func TestSeveralThingsAreAgreedToOneByOne(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			w := newWard(t, doctor.Auto)
			known := w.withCursor(t)
			a := connect(t, w.Practice, version, func(p *mcp.ElicitParams) *mcp.ElicitResult {
				content := make(map[string]any)
				for name, box := range p.RequestedSchema.(map[string]any)["properties"].(map[string]any) {
					content[name] = strings.Contains(box.(map[string]any)["title"].(string), "cursor")
				}
				return &mcp.ElicitResult{Action: "accept", Content: content}
			})
			var out ConfigureOutput
			a.call(t, "configure_server", map[string]any{"name": "new", "url": known}, &out)
			if diff := cmp.Diff(map[string]string{"claude-code": "planned", "cursor": "written"}, statuses(out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if w.read(t) != brokenFile || len(a.questions) != 1 {
				t.Errorf("asked %d times, and what was not ticked was done: %v", len(a.questions), w.read(t) != brokenFile)
			}
			if refused := out.Approval.Wanted; out.Approval.Status != given || len(refused) != 1 || !strings.Contains(refused[0].What, ".claude.json") {
				t.Errorf("got %+v, want the one that was not ticked to be named", out.Approval)
			}
		})
	}
}

// A form that comes back empty is a no. It must not become a plan that the model
// could confirm instead.
func TestNothingTickedIsNotAgreed(t *testing.T) {
	for _, version := range eras {
		for name, content := range map[string]map[string]any{"no content": nil, "empty": {}} {
			t.Run(version+" "+name, func(t *testing.T) {
				w := newWard(t, doctor.Auto)
				known := w.withCursor(t)
				a := connect(t, w.Practice, version, func(*mcp.ElicitParams) *mcp.ElicitResult {
					return &mcp.ElicitResult{Action: "accept", Content: content}
				})
				var out ConfigureOutput
				a.call(t, "configure_server", map[string]any{"name": "new", "url": known}, &out)
				if out.Approval.Status != declined || out.Approval.Plan != "" || w.read(t) != brokenFile {
					t.Errorf("got %+v, want it declined", out.Approval)
				}
			})
		}
	}
}

// A client may say that it can ask, and fail.
func TestAClientThatCannotAskAfterAllGetsAPlan(t *testing.T) {
	w := newWard(t, doctor.Auto)
	a := connect(t, w.Practice, "2025-11-25", nil, func(o *mcp.ClientOptions) {
		o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("no window to ask in")
		}
	})
	var out HealthOutput
	a.call(t, "heal_server", map[string]any{"server": "gh"}, &out)
	if out.Approval.Status != needed || out.Approval.Plan == "" || w.read(t) != brokenFile {
		t.Errorf("got %+v, want a plan", out.Approval)
	}
}

func TestAQuestionThatNobodyAnswersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, doctor.Auto)
		a := connect(t, w.Practice, "2025-11-25", nil, func(o *mcp.ClientOptions) {
			o.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		began := time.Now()
		var out HealthOutput
		a.call(t, "heal_server", map[string]any{"server": "gh"}, &out)
		if waited := time.Since(began); waited != planLife {
			t.Errorf("it waited for %v", waited)
		}
		if out.Approval.Status != cancelled || out.Approval.Plan != "" || w.read(t) != brokenFile {
			t.Errorf("got %+v, want nothing done and no way around the person", out.Approval)
		}
	})
}

func TestAPlanExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, doctor.Auto)
		a := connect(t, w.Practice, "2025-11-25", nil)
		for wait, good := range map[time.Duration]bool{planLife - time.Second: true, planLife + time.Second: false} {
			if err := os.WriteFile(w.file, []byte(brokenFile), 0o600); err != nil {
				t.Fatal(err)
			}
			var out HealthOutput
			a.call(t, "heal_server", map[string]any{"server": "gh"}, &out)
			<-time.After(wait)
			// Whatever is left out may also be said, and means the same.
			r := a.call(t, "heal_server", map[string]any{"server": "gh", "client": "", "max_attempts": 0, "confirm": out.Approval.Plan}, nil)
			if r.IsError == good || (w.read(t) != brokenFile) != good {
				t.Errorf("after %v: failed %v, written %v", wait, r.IsError, w.read(t) != brokenFile)
			}
		}
	})
}

func TestTheOldestPlanMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ps := newPlans()
		var ids []string
		for range mostPlans + 1 {
			ids = append(ids, ps.put(&plan{}))
			<-time.After(time.Second)
		}
		if ps.take(ids[0], "", "", false) != nil || ps.take(ids[1], "", "", false) == nil || ps.take(ids[mostPlans], "", "", false) == nil {
			t.Error("not the oldest one was let go of")
		}
		<-time.After(planLife)
		ps.put(&plan{})
		if n := len(ps.byID); n != 1 {
			t.Errorf("%d plans are kept, all but one of which have expired", n)
		}
	})
}

// Two agents have seen the same fault and agreed to the same change.
func TestTwoAgentsMendTheSameServer(t *testing.T) {
	w := newWard(t, doctor.Auto)
	var wrote sync.Map
	write := w.Write
	w.Write = func(ctx context.Context, d *doctor.Draft) (clientconfig.Change, error) {
		change, err := write(ctx, d)
		if change.Done {
			wrote.Store(change.ID, true)
		}
		return change, err
	}
	agents := []*agent{connect(t, w.Practice, "", nil), connect(t, w.Practice, "", nil)}
	var plans []string
	for _, a := range agents {
		var out HealthOutput
		a.call(t, "heal_server", map[string]any{"server": "gh"}, &out)
		plans = append(plans, out.Approval.Plan)
	}
	var wg sync.WaitGroup
	answers := make([]HealthOutput, len(agents))
	for i, a := range agents {
		wg.Go(func() { a.call(t, "heal_server", map[string]any{"server": "gh", "confirm": plans[i]}, &answers[i]) })
	}
	wg.Wait()
	undo := 0
	for _, out := range answers {
		if s := out.Servers[0]; !s.Fixed || s.State != "healthy" || s.Person != "" {
			t.Errorf("got %+v, want both to hear that it works", s)
		}
		undo += len(out.Servers[0].Undo)
	}
	changes := 0
	wrote.Range(func(any, any) bool { changes++; return true })
	if changes != 1 || undo != 1 {
		t.Errorf("%d changes, %d of them told; want one", changes, undo)
	}
}

func TestTwoAgentsAddTheSameServer(t *testing.T) {
	w := newWard(t, doctor.Auto)
	known := w.withCursor(t)
	arguments := func(plan string) map[string]any {
		return map[string]any{"name": "new", "url": known, "clients": []string{"claude-code"}, "confirm": plan}
	}
	agents := []*agent{connect(t, w.Practice, "", nil), connect(t, w.Practice, "", nil)}
	var plans []string
	for _, a := range agents {
		var out ConfigureOutput
		a.call(t, "configure_server", arguments(""), &out)
		plans = append(plans, out.Approval.Plan)
	}
	for i, want := range []string{"written", "unchanged"} {
		var out ConfigureOutput
		agents[i].call(t, "configure_server", arguments(plans[i]), &out)
		if got := statuses(out)["claude-code"]; got != want {
			t.Errorf("agent %d: %s, want %s: %+v", i, got, want, out)
		}
	}
}

// Whoever agrees to several things has agreed to them all: the first write must not
// make the second one a new question.
func TestAPlanOfSeveralChangesIsConfirmedOnce(t *testing.T) {
	w := newWard(t, doctor.Ask)
	other := newWard(t, doctor.Auto) // a second server, in a file of its own
	w.Check = func(context.Context, doctor.Which, bool) *doctor.Report {
		first, second := w.found(), other.found()
		second.Name = "other"
		return &doctor.Report{Cases: []*doctor.Case{first, second}}
	}
	w.Heal = func(ctx context.Context, c *doctor.Case, o doctor.HealOptions) *doctor.Healing {
		if c.Name == "other" {
			// It is tried on the file as it is, whatever was mended before.
			if w.read(t) != brokenFile {
				t.Error("something was written before all was tried")
			}
			return other.healing(ctx, c, o)
		}
		return w.healing(ctx, c, o)
	}
	a := connect(t, w.Practice, "", nil)
	var out HealthOutput
	a.call(t, "check_health", map[string]any{"auto_heal": true}, &out)
	a.call(t, "check_health", map[string]any{"auto_heal": true, "confirm": out.Approval.Plan}, &out)
	if w.read(t) == brokenFile || other.read(t) == brokenFile || !out.Servers[0].Fixed || !out.Servers[1].Fixed {
		t.Errorf("got %+v, want both written", out)
	}
}

// What a person is told to type must not do more than it says.
func TestANameIsNoFlag(t *testing.T) {
	w := newWard(t, doctor.Auto)
	var out ConfigureOutput
	connect(t, w.Practice, "", accept).call(t, "configure_server", map[string]any{"name": "--anyway", "command": "x"}, &out)
	if !strings.Contains(out.Verdict, "dash") {
		t.Errorf("got %q, want a name that is a flag to be refused", out.Verdict)
	}
}

// A name is shown without what cannot be seen, and is understood that way, too.
func TestAServerIsFoundByTheNameThatWasShown(t *testing.T) {
	const name = "git\u200bhub\n\U000E0041"
	w := newWard(t, doctor.Auto)
	w.Check = func(_ context.Context, which doctor.Which, _ bool) *doctor.Report {
		if len(which.Servers) > 0 && !slices.Contains(which.Servers, name) {
			return &doctor.Report{}
		}
		c := w.found()
		c.Name = name
		return &doctor.Report{Cases: []*doctor.Case{c}}
	}
	a := connect(t, w.Practice, "", nil)
	var out HealthOutput
	a.call(t, "check_health", nil, &out)
	shown := out.Servers[0].Server
	a.call(t, "test_connection", map[string]any{"server": shown}, &out)
	if len(out.Servers) != 1 || out.Servers[0].State != "dead" {
		t.Errorf("%q is not found by that name: %+v", shown, out)
	}
}

func TestAnApprovalThatCannotBeKeptIsSaid(t *testing.T) {
	w := newWard(t, doctor.Auto)
	w.pending = true
	w.Approve = func(string) error { return errors.New("the disk is full") }
	a := connect(t, w.Practice, "", accept)
	var out HealthOutput
	a.call(t, "test_connection", map[string]any{"server": "gh"}, &out)
	if out.Servers[0].State != "pending" || len(out.Notes) == 0 || !strings.Contains(out.Notes[0], "the disk is full") {
		t.Errorf("got %+v", out)
	}
}

// Two files are to be written, and one of them is refused. What is said of the server
// is how it is then: neither as it was found nor as it was to be.
func TestAChangeThatWasHalfMadeIsToldAsSuch(t *testing.T) {
	for name, first := range map[string]bool{"first": true, "second": false} {
		t.Run(name+" is written", func(t *testing.T) {
			w := newWard(t, doctor.Auto)
			w.Heal = func(ctx context.Context, c *doctor.Case, o doctor.HealOptions) *doctor.Healing {
				h := w.healing(ctx, c, o)
				h.Drafts = append(h.Drafts, &doctor.Draft{ID: "second", Diff: doctor.Diff{File: "second.json", Text: "+x\n"}})
				if !first {
					slices.Reverse(h.Drafts)
				}
				return h
			}
			found := w.Check
			w.Check = func(ctx context.Context, which doctor.Which, static bool) *doctor.Report {
				r := found(ctx, which, static)
				if c := r.Cases[0]; c.State == doctor.Healthy {
					c.State, c.Reached = doctor.Dead, doctor.AtResolve
					c.Cause = &doctor.Finding{ID: "resolve.command_not_found", Explanation: "There is no npx.", Confidence: 1}
				}
				return r
			}
			write := w.Write
			w.Write = func(ctx context.Context, d *doctor.Draft) (clientconfig.Change, error) {
				if d.ID == "second" {
					return clientconfig.Change{}, clientconfig.ErrRefused
				}
				return write(ctx, d)
			}
			a := connect(t, w.Practice, "", nil)
			var out HealthOutput
			a.call(t, "heal_server", map[string]any{"server": "gh"}, &out)
			plan := out.Approval.Plan
			out = HealthOutput{}
			a.call(t, "heal_server", map[string]any{"server": "gh", "confirm": plan}, &out)
			s := out.Servers[0]
			if s.Fixed || !strings.Contains(s.Person, "second.json was not written") || !strings.HasSuffix(out.Verdict, "1 needs attention") {
				t.Errorf("got %+v, want what is missing", s)
			}
			if !first {
				if len(s.Undo) != 0 || s.Reached != "parse" {
					t.Errorf("got %+v, want it as it was", s)
				}
				return
			}
			if len(s.Undo) != 1 || s.Reload == "" || s.Reached != "resolve" || s.Cause == nil || s.Cause.ID != "resolve.command_not_found" {
				t.Errorf("got %+v, want the one write with its undo, and how the server is after it", s)
			}
		})
	}
}

// What waits for the user's word is said once, with the question.
func TestAQuestionIsNotAlsoATask(t *testing.T) {
	for _, reply := range []func(*mcp.ElicitParams) *mcp.ElicitResult{nil, answers("decline")} {
		w := newWard(t, doctor.Ask)
		w.Heal = func(ctx context.Context, c *doctor.Case, o doctor.HealOptions) *doctor.Healing {
			if !o.Later {
				t.Error("healing is not told that its questions are put later")
			}
			return w.healing(ctx, c, o)
		}
		a := connect(t, w.Practice, "", reply)
		var out HealthOutput
		a.call(t, "heal_server", map[string]any{"server": "gh"}, &out)
		if len(out.Approval.Wanted) != 1 {
			t.Errorf("got %+v, want the fix to be asked about", out.Approval)
		}
	}
}

// A script of a project that was approved has another content now.
func TestAQuestionSaysWhetherItIsNew(t *testing.T) {
	for _, changed := range [][]string{nil, {"serve.sh"}} {
		w := newWard(t, doctor.Auto)
		w.pending = true
		found := w.Check
		w.Check = func(ctx context.Context, which doctor.Which, static bool) *doctor.Report {
			r := found(ctx, which, static)
			r.Cases[0].Changed = changed
			return r
		}
		a := connect(t, w.Practice, "", answers("decline"))
		a.call(t, "test_connection", map[string]any{"server": "gh"}, nil)
		const isNew, isOld = "which nobody has approved yet", "which is no longer what you approved"
		if q := a.questions[0]; strings.Contains(q, isNew) != (changed == nil) || strings.Contains(q, isOld) != (changed != nil) {
			t.Errorf("changed %q: asked %q", changed, q)
		}
	}
}

// An entry that the client has passed over has never run. Making the client read it is
// starting something new, even if all its words stand in the file.
func TestAnEntryThatTheClientIgnoredIsStartedByAPersonAlone(t *testing.T) {
	const entry = `{"command": "/bin/sh", "args": ["-c", "true"]}`
	for name, test := range map[string]struct{ file, text string }{
		"under another client's key":         {".claude.json", `{"servers": {"s": ` + entry + `}}`},
		"under no key":                       {".claude.json", `{"s": ` + entry + `}`},
		"under the key twice":                {".claude.json", `{"mcpServers": {"mcpServers": {"s": ` + entry + `}}}`},
		"beside the entries that are read":   {".claude.json", `{"mcpServers": {"well": {"type": "http", "url": "https://example.com/mcp"}}, "servers": {"s": ` + entry + `}}`},
		"in another client's form":           {".claude.json", `{"mcpServers": {"s": {"cmd": "/bin/sh", "args": ["-c", "true"]}}}`},
		"a URL under another client's name":  {".claude.json", `{"mcpServers": {"s": {"type": "http", "serverUrl": "https://example.com/other"}}}`},
		"a command and a list for opencode":  {".config/opencode/opencode.json", `{"mcp": {"s": ` + entry + `}}`},
		"the table of Codex by another name": {".codex/config.toml", "[mcpServers.s]\ncommand = \"/bin/sh\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, filepath.FromSlash(test.file))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			started := 0
			d := &doctor.Doctor{
				System: clientconfig.System{OS: "linux", Home: home, Root: filepath.Join(home, "root"), Getenv: func(string) string { return "" }},
				Store:  &clientconfig.Store{Dir: filepath.Join(home, "state")},
				Probe: func(_ context.Context, s doctor.Start) doctor.Sighting {
					if s.URL != "https://example.com/mcp" {
						started++
					}
					return doctor.Sighting{Steps: []doctor.Step{{Stage: doctor.AtTools, OK: true}}, Info: &doctor.Info{Tools: []string{"echo"}}}
				},
			}
			read := func() string {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			heal := map[string]any{"auto_heal": true}
			var out HealthOutput
			connect(t, Of(d), "", nil).call(t, "check_health", heal, &out)
			if started > 0 || read() != test.text {
				t.Errorf("nobody was asked, %d servers were started, and the file is\n%s", started, read())
			}
			if a := out.Approval; a == nil || a.Plan != "" || len(a.Wanted) == 0 || !strings.Contains(a.Wanted[0].Person, "mcpmend heal") {
				t.Errorf("got %+v, want what a person has to type, and nothing that a program could confirm", a)
			}
			out = HealthOutput{}
			connect(t, Of(d), "", accept).call(t, "check_health", heal, &out)
			if read() == test.text {
				t.Errorf("a person has agreed, and got %+v", out)
			}
		})
	}
}
