package clinic

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

// An item is one thing that somebody has to agree to.
type item struct {
	// key stands for exactly this and nothing else: it holds hashes of files before
	// and after, or a whole command.
	key string
	// also are keys that are agreed to along with it.
	also []string
	// what says it in a line without secrets, diff shows it if it is a change.
	what, diff string
	// person: it takes a person; whoever calls a tool cannot agree in their name.
	person bool
	// terminal is what a person can type where they cannot be asked.
	terminal string
}

// writeKey is that of writing a draft.
func writeKey(d *doctor.Draft) string { return "write " + d.ID }

// A visit is one call of a tool, which may take several rounds.
type visit struct {
	agreed  map[string]bool
	refused []item
	asked   []item
	// then goes on from here instead of from the beginning, once what was asked is
	// agreed to: all that is left is to write.
	then func(context.Context, *visit) answer
}

// may reports whether an item has been agreed to, and notes it as a question if
// not.
func (v *visit) may(it item) bool {
	if v.agreed[it.key] {
		v.agree(it)
		return true
	}
	same := func(other item) bool { return other.key == it.key }
	if !slices.ContainsFunc(v.asked, same) && !slices.ContainsFunc(v.refused, same) {
		v.asked = append(v.asked, it)
	}
	return false
}

func (v *visit) agree(it item) {
	if v.agreed == nil {
		v.agreed = make(map[string]bool)
	}
	v.agreed[it.key] = true
	for _, key := range it.also {
		v.agreed[key] = true
	}
}

// onlyWrites reports whether nothing has to be tried any more.
func (v *visit) onlyWrites() bool {
	return !slices.ContainsFunc(v.asked, func(it item) bool { return !strings.HasPrefix(it.key, "write ") })
}

// A plan is a visit that waits for an answer.
type plan struct {
	tool, arguments string // whose it is
	items           []item
	visit           *visit
	// resume goes on with the tool.
	resume  func(context.Context, *visit) answer
	answer  answer
	rounds  int
	form    bool // a person sees it as a form, and nobody else can agree
	expires time.Time
}

const (
	planLife  = 10 * time.Minute
	mostPlans = 64
	// mostRounds is how often one call may ask. Each round only asks for what was
	// not known before; more than this is a server that changes all the time.
	mostRounds = 4
)

// plans are kept in memory only: a plan that outlives us is not binding.
type plans struct {
	mu   sync.Mutex
	byID map[string]*plan
}

func newPlans() *plans { return &plans{byID: make(map[string]*plan)} }

// put keeps a plan and returns its id. What has expired is let go of, and the
// oldest if there are too many.
func (ps *plans) put(p *plan) string {
	now := time.Now()
	p.expires = now.Add(planLife)
	id := "plan-" + strings.ToLower(rand.Text())
	ps.mu.Lock()
	defer ps.mu.Unlock()
	maps.DeleteFunc(ps.byID, func(_ string, p *plan) bool { return now.After(p.expires) })
	if len(ps.byID) >= mostPlans {
		ids := slices.Collect(maps.Keys(ps.byID))
		delete(ps.byID, slices.MinFunc(ids, func(a, b string) int { return ps.byID[a].expires.Compare(ps.byID[b].expires) }))
	}
	ps.byID[id] = p
	return id
}

// take returns a plan, once. It is nil if there is none, or not for this call.
func (ps *plans) take(id, tool, arguments string, form bool) *plan {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byID[id]
	if p == nil || p.tool != tool || p.arguments != arguments || p.form != form {
		return nil
	}
	delete(ps.byID, id)
	if time.Now().After(p.expires) {
		return nil
	}
	return p
}

// An answer is what a tool returns: data, which may ask for an approval, and the
// same in lines.
type answer interface {
	text() string
	setApproval(*Approval)
}

// addTool adds a tool whose calls may have to be agreed to.
func addTool[In interface{ clients() []string }](s *mcp.Server, c *clinic, t *mcp.Tool, run func(context.Context, *visit, In) answer) {
	mcp.AddTool(s, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		if err := knownClients(in.clients()); err != nil {
			return nil, nil, err
		}
		arguments, confirm, err := withoutConfirm(in)
		if err != nil {
			return nil, nil, err
		}
		p := &plan{tool: t.Name, arguments: arguments, visit: &visit{}}
		p.resume = func(ctx context.Context, v *visit) answer { return run(ctx, v, in) }
		result, err := c.call(ctx, req, p, confirm)
		return result, nil, err
	})
}

// withoutConfirm is what a plan is bound to: the arguments, but for the plan's id.
// One that is left out is the same as one that says nothing.
func withoutConfirm(in any) (arguments, confirm string, err error) {
	b, err := json.Marshal(in)
	if err != nil {
		return "", "", err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return "", "", err
	}
	confirm, _ = m["confirm"].(string)
	delete(m, "confirm")
	b, err = json.Marshal(m) // keys are sorted
	return string(b), confirm, err
}

// question is the one input that we ask a modern client for.
const question = "approval"

// call runs a tool, asks for what it may not do yet, and runs it again, until it
// is done or somebody says no.
func (c *clinic) call(ctx context.Context, req *mcp.CallToolRequest, p *plan, confirm string) (*mcp.CallToolResult, error) {
	status := ""
	switch state := req.Params.RequestState; {
	case state != "":
		old := c.plans.take(state, p.tool, p.arguments, true)
		reply, _ := req.Params.InputResponses[question].(*mcp.ElicitResult)
		if old == nil || reply == nil {
			return nil, fmt.Errorf("that question is no longer open; call %s again", p.tool)
		}
		p = old
		if status = p.settle(reply); status != given {
			return p.done(status)
		}
	case confirm != "":
		old := c.plans.take(confirm, p.tool, p.arguments, false)
		if old == nil {
			return nil, fmt.Errorf("there is no plan of that id for these arguments: it is used once, within %v; call %s again without confirm", planLife, p.tool)
		}
		p = old
		for _, it := range p.items {
			p.visit.agree(it)
		}
		status = given
	}
	for {
		p.visit.asked, p.visit.then = nil, nil
		p.answer = p.resume(ctx, p.visit)
		p.items = p.visit.asked
		if p.visit.then != nil {
			p.resume = p.visit.then
		}
		p.rounds++
		switch {
		case len(p.items) == 0:
			return p.done(status)
		case p.rounds > mostRounds || !canAsk(req):
			return c.propose(p)
		case req.ProtocolVersion() >= modern:
			p.form = true
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{question: p.ask()},
				RequestState:  c.plans.put(p),
			}, nil
		}
		reply, err := elicit(ctx, req.Session, p.ask())
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() // whoever called is gone, and so is the person
		case err != nil: // the client says that it can ask, and cannot
			return c.propose(p)
		}
		if status = p.settle(reply); status != given {
			return p.done(status)
		}
	}
}

// elicit asks a person. Who does not answer within the life of a plan has not
// agreed, and nobody else is asked instead.
func elicit(ctx context.Context, session *mcp.ServerSession, ask *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	ctx, cancel := context.WithTimeout(ctx, planLife)
	defer cancel()
	reply, err := session.Elicit(ctx, ask)
	if err != nil && ctx.Err() != nil {
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	return reply, err
}

// modern is the first version without requests from server to client.
const modern = "2026-07-28"

func canAsk(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	if caps == nil || caps.Elicitation == nil {
		return false
	}
	// A client that names no mode has forms: there was nothing else once.
	return caps.Elicitation.Form != nil || caps.Elicitation.URL == nil
}

// What became of a question.
const (
	given     = "given"
	declined  = "declined"
	cancelled = "cancelled"
	needed    = "needed"
)

// settle reads the reply to a form.
func (p *plan) settle(reply *mcp.ElicitResult) string {
	switch reply.Action {
	case "accept":
	case "decline":
		return declined
	default:
		return cancelled
	}
	if len(p.items) == 1 {
		p.visit.agree(p.items[0])
		return given
	}
	status := declined
	for i, it := range p.items {
		if yes, _ := reply.Content[field(i)].(bool); yes {
			p.visit.agree(it)
			status = given
		} else {
			p.visit.refused = append(p.visit.refused, it)
		}
	}
	return status
}

func field(i int) string { return fmt.Sprintf("approve_%d", i+1) }

// ask asks for the items of a plan. One is agreed to by accepting; of several
// each has its own box, which is not ticked.
func (p *plan) ask() *mcp.ElicitParams {
	// No box is required: one that is missing in the reply is one that is not ticked.
	properties := make(map[string]any)
	var b strings.Builder
	for i, it := range p.items {
		if len(p.items) > 1 {
			fmt.Fprintf(&b, "%d. ", i+1)
			properties[field(i)] = map[string]any{"type": "boolean", "title": fmt.Sprintf("%d. %s", i+1, clean(it.what))}
		}
		b.WriteString(clean(it.what) + "\n")
		if it.diff != "" {
			b.WriteString("\n" + strings.TrimRight(shownDiff(it.diff), "\n") + "\n\n")
		}
	}
	if len(p.items) == 1 {
		b.WriteString("Accept to allow exactly this.")
	} else {
		b.WriteString("Tick what you allow. Nothing else will be done.")
	}
	return &mcp.ElicitParams{Mode: "form", Message: b.String(), RequestedSchema: map[string]any{"type": "object", "properties": properties}}
}

// done is the result of a tool that has nothing more to ask.
func (p *plan) done(status string) (*mcp.CallToolResult, error) {
	if status == given {
		p.answer.setApproval(&Approval{Status: given, Wanted: wanted(p.visit.refused)})
	} else if status != "" {
		p.answer.setApproval(&Approval{Status: status, Wanted: wanted(p.items)})
	}
	return result(p.answer)
}

// propose is the result of a tool that has to ask and cannot: a plan, for whoever
// calls again, and what is left to a person.
func (c *clinic) propose(p *plan) (*mcp.CallToolResult, error) {
	a := &Approval{Status: needed, Wanted: wanted(p.items)}
	p.answer.setApproval(a)
	open := slices.DeleteFunc(slices.Clone(p.items), func(it item) bool { return it.person })
	if len(open) > 0 {
		kept := *p
		kept.items, kept.rounds, kept.form = open, 0, false
		a.Plan = c.plans.put(&kept)
		a.Expires = kept.expires.UTC().Format(time.RFC3339)
	}
	return result(p.answer)
}

// result sends an answer as data and as text, each of them whole.
//
// The protocol wants the data in the text again, as JSON, for clients that know no
// structuredContent (a SHOULD). We send lines instead, which say the same in fewer
// words. A model mostly sees one of the two: Claude Code, Codex and opencode give
// it the data and drop the text, Kimi and claude.ai give it the text. So neither may
// lack anything, and JSON in the text would help only a program that has not heard
// of structuredContent; programs have "mcpmend --json". Copilot gives its model
// both, and there JSON twice would be the dearest of all.
//
// We encode the data ourselves: the SDK would sort its members, and the verdict
// belongs in front.
func result(a answer) (*mcp.CallToolResult, error) {
	data, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.text()}}, StructuredContent: json.RawMessage(data)}, nil
}
