package clinic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

// What calls name as clients; nil is all of them. A wrong name would find nothing,
// which reads as if nothing were there.
func (in CheckInput) clients() []string     { return named(in.Clients...) }
func (in TestInput) clients() []string      { return named(in.Client) }
func (in HealInput) clients() []string      { return named(in.Client) }
func (in ConfigureInput) clients() []string { return named(in.Clients...) }
func (in ListInput) clients() []string      { return named(in.Clients...) }
func (ExplainInput) clients() []string      { return nil }
func (UndoInput) clients() []string         { return nil }

func named(ids ...string) []string {
	if slices.Contains(ids, "all") || slices.Contains(ids, "") {
		return nil
	}
	return ids
}

func knownClients(ids []string) error {
	for _, id := range ids {
		if clientconfig.ByID(id) == nil {
			var known []string
			for _, c := range clientconfig.Clients() {
				known = append(known, c.ID)
			}
			return fmt.Errorf("there is no client %q; the ids are %s", clean(id), strings.Join(known, ", "))
		}
	}
	return nil
}

// ExplainInput is what explain_error takes.
type ExplainInput struct {
	Error    string `json:"error" jsonschema:"the message, with the server's last lines on stderr if there are any"`
	ExitCode *int   `json:"exit_code,omitempty"`
	Command  string `json:"command,omitempty" jsonschema:"the program that was to run"`
}

// ExplainOutput is what explain_error answers.
type ExplainOutput struct {
	Kind        string  `json:"kind"`
	Title       string  `json:"title"`
	Explanation string  `json:"explanation"`
	Confidence  float64 `json:"confidence"`
	Fix         string  `json:"fix,omitempty"`
	// Retry: the same may go well later although nobody has changed anything.
	Retry bool `json:"retry"`
	approvable
}

func (c *clinic) explainError(_ context.Context, _ *visit, in ExplainInput) answer {
	e := fault.Evidence{Text: in.Error, Command: in.Command}
	if in.ExitCode != nil {
		e.Exited, e.ExitCode = true, *in.ExitCode
		e.Text, e.Stderr = "", strings.Split(strings.TrimSpace(in.Error), "\n")
	}
	x := doctor.Explain(e)
	out := &ExplainOutput{Kind: x.Kind, Title: x.Title, Explanation: shown(x.Meaning), Confidence: x.Confidence, Fix: shown(x.Remedy), Retry: x.Retryable}
	if x.Kind == string(fault.Unknown) { // a person would be told what to type
		out.Fix = "test_connection starts the server and sees its exit code and last words"
	}
	return out
}

func (o *ExplainOutput) text() string {
	var p page
	p.line("%s (%s, %.0f %%): %s", o.Title, o.Kind, 100*o.Confidence, o.Explanation)
	if o.Fix != "" {
		p.line("fix: %s", o.Fix)
	}
	if o.Retry {
		p.line("trying again later can help")
	}
	return p.String()
}

// nothing: there are no servers.
const nothing = "no servers in the clients' files"

// ListInput is what list_servers takes.
type ListInput struct {
	Clients []string `json:"clients,omitempty" jsonschema:"ids such as claude-code or cursor; all if left out"`
}

// ListOutput is what list_servers answers.
type ListOutput struct {
	Notes   []string `json:"notes,omitempty"`
	Servers []Server `json:"servers"`
	approvable
}

func (c *clinic) listServers(ctx context.Context, _ *visit, in ListInput) answer {
	out := &ListOutput{Servers: []Server{}}
	for _, one := range c.Check(ctx, doctor.Which{Clients: in.clients()}, true).Cases {
		s := full(one)
		s.Reached, s.Runs = "", "" // nothing was started, and the entry says it
		s.Entry = shownValue(one.Entry())
		out.Servers = append(out.Servers, s)
	}
	if slices.ContainsFunc(out.Servers, Server.quotes) {
		out.Notes = []string{quoting}
	}
	return out
}

func (o *ListOutput) text() string {
	var p page
	if len(o.Servers) == 0 {
		p.line(nothing)
	}
	p.notes(o.Notes)
	for i := range o.Servers {
		o.Servers[i].lines(&p)
	}
	return p.String()
}

// UndoInput is what undo_change takes.
type UndoInput struct {
	ID      string `json:"id" jsonschema:"of the change"`
	Confirm string `json:"confirm,omitempty" jsonschema:"plan of the last answer, only once the user has agreed to it"`
}

// UndoOutput is what undo_change answers.
type UndoOutput struct {
	Undone bool   `json:"undone"`
	File   string `json:"file,omitempty"`
	// Undo takes this one back again.
	Undo string `json:"undo,omitempty"`
	// Why says why it was not undone.
	Why    string `json:"why,omitempty"`
	Reload string `json:"reload,omitempty"`
	approvable
}

const takenBack = "it has been taken back already"

func (c *clinic) undoChange(ctx context.Context, v *visit, in UndoInput) answer {
	draft, err := c.Undoing(in.ID)
	if err != nil {
		return &UndoOutput{Why: shown(err.Error())}
	}
	out := &UndoOutput{File: clean(draft.Diff.File)}
	if draft.Diff.Text == "" {
		out.Why = takenBack
		return out
	}
	if !v.may(item{key: "undo " + draft.ID, what: "Take back the change " + in.ID + " of " + draft.Diff.File, diff: draft.Diff.Text, terminal: doctor.Typed("undo", []string{in.ID})}) {
		return out
	}
	change, err := c.Undo(ctx, in.ID)
	switch {
	case errors.Is(err, clientconfig.ErrNoChange):
		out.Why = takenBack
	case errors.Is(err, clientconfig.ErrChanged):
		out.Why = "the file was changed since by somebody else, at the same place"
	case err != nil && !change.Done:
		out.Why = shown(err.Error())
	default:
		out.Undone, out.Undo = true, change.ID
		if client := clientconfig.ByID(change.Client); client != nil {
			out.Reload = client.Reload
		}
	}
	return out
}

func (o *UndoOutput) text() string {
	var p page
	switch {
	case o.Undone:
		p.line("%s is as it was before; undo_change id: %s", o.File, o.Undo)
		if o.Reload != "" {
			p.line("then: %s", o.Reload)
		}
	case o.Why != "":
		p.line("not undone: %s", o.Why)
	}
	o.lines(&p)
	return p.String()
}
