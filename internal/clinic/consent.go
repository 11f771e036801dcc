package clinic

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An item is one thing that somebody has to agree to.
type item struct {
	// key stands for exactly this and nothing else: it holds hashes of files before
	// and after, or a whole command.
	key string
	// also are keys that are agreed to along with it.
	also []string
	// what says it in a line, diff shows it if it is a change.
	what, diff string
	// person: it takes a person; whoever calls a tool cannot agree in their name.
	person bool
	// terminal is what a person can type where they cannot be asked.
	terminal string
}

// A visit is one call of a tool, which may take several rounds.
type visit struct {
	agreed  map[string]bool
	refused map[string]bool
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
	for _, other := range v.asked {
		if other.key == it.key {
			return false
		}
	}
	if !v.refused[it.key] {
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

func (v *visit) refuse(it item) {
	if v.refused == nil {
		v.refused = make(map[string]bool)
	}
	v.refused[it.key] = true
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
	mu    sync.Mutex
	byID  map[string]*plan
	order []string // oldest first
}

func newPlans() *plans { return &plans{byID: make(map[string]*plan)} }

// put keeps a plan and returns its id.
func (ps *plans) put(p *plan) string {
	p.expires = time.Now().Add(planLife)
	id := "plan-" + strings.ToLower(rand.Text())
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.byID[id] = p
	ps.order = append(ps.order, id)
	if len(ps.order) > mostPlans {
		delete(ps.byID, ps.order[0])
		ps.order = ps.order[1:]
	}
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

// An answer is what a tool returns: data, which may ask for an approval, and a few
// lines that say the same.
type answer interface {
	text() string
	setApproval(*Approval)
}

// Approval is what became of a question, or the question.
type Approval struct {
	Status string `json:"status"`
	// Plan agrees to all of Wanted that needs no person.
	Plan    string   `json:"plan,omitempty"`
	Expires string   `json:"expires,omitempty"`
	Wanted  []Wanted `json:"wanted,omitempty"`
}

// Wanted is one thing to agree to.
type Wanted struct {
	What string `json:"what"`
	Diff string `json:"diff,omitempty"`
	// Person says what to type where only a person can agree.
	Person string `json:"person,omitempty"`
}

func wanted(items []item) []Wanted {
	var ws []Wanted
	for _, it := range items {
		w := Wanted{What: it.what, Diff: it.diff}
		if it.person {
			w.Person = it.terminal
		}
		ws = append(ws, w)
	}
	return ws
}

// addTool adds a tool whose calls may have to be agreed to.
func addTool[In, Out any, A interface {
	*Out
	answer
}](s *mcp.Server, c *clinic, t *mcp.Tool, run func(context.Context, *visit, In) A) {
	handler := func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, A, error) {
		arguments, confirm := withoutConfirm(req.Params.Arguments)
		p := &plan{tool: t.Name, arguments: arguments, visit: &visit{}}
		p.resume = func(ctx context.Context, v *visit) answer { return run(ctx, v, in) }
		result, err := c.call(ctx, req, p, confirm)
		if err != nil {
			return nil, nil, err
		}
		if result.InputRequests != nil {
			return result, nil, nil
		}
		return result, p.answer.(A), nil
	}
	mcp.AddTool(s, t, handler)
}

// withoutConfirm is what a plan is bound to: the arguments, but for the plan's id.
func withoutConfirm(raw json.RawMessage) (hash, confirm string) {
	var m map[string]any
	_ = json.Unmarshal(raw, &m) // the SDK has held it against the schema
	confirm, _ = m["confirm"].(string)
	delete(m, "confirm")
	b, _ := json.Marshal(m) // keys are sorted
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), confirm
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
		*p = *old
		if status = p.settle(reply); status != given {
			return c.done(p, status), nil
		}
	case confirm != "":
		old := c.plans.take(confirm, p.tool, p.arguments, false)
		if old == nil {
			return nil, fmt.Errorf("there is no plan of that id for these arguments: it is used once, within %v; call %s again without confirm", planLife, p.tool)
		}
		*p = *old
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
		if len(p.items) == 0 {
			return c.done(p, status), nil
		}
		switch {
		case p.rounds > mostRounds || !canAsk(req):
			return c.propose(p), nil
		case req.ProtocolVersion() >= modern:
			p.form = true
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{question: p.ask()},
				RequestState:  c.plans.put(p),
			}, nil
		}
		reply, err := req.Session.Elicit(ctx, p.ask())
		if err != nil { // the client says it can and cannot, or is gone
			return c.propose(p), nil
		}
		if status = p.settle(reply); status != given {
			return c.done(p, status), nil
		}
	}
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
			p.visit.refuse(it)
		}
	}
	return status
}

func field(i int) string { return fmt.Sprintf("approve_%d", i+1) }

// ask asks for the items of a plan. One is agreed to by accepting; of several
// each has its own box, which is not ticked.
func (p *plan) ask() *mcp.ElicitParams {
	properties := make(map[string]any)
	var required []string
	var b strings.Builder
	for i, it := range p.items {
		if len(p.items) > 1 {
			fmt.Fprintf(&b, "%d. ", i+1)
			properties[field(i)] = map[string]any{"type": "boolean", "title": fmt.Sprintf("%d. %s", i+1, oneLine(it.what))}
			required = append(required, field(i))
		}
		b.WriteString(oneLine(it.what) + "\n")
		if it.diff != "" {
			b.WriteString("\n" + strings.TrimRight(shorten(it.diff), "\n") + "\n\n")
		}
	}
	if len(p.items) == 1 {
		b.WriteString("Accept to allow exactly this.")
	} else {
		b.WriteString("Tick what you allow. Nothing else will be done.")
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if required != nil {
		schema["required"] = required
	}
	return &mcp.ElicitParams{Mode: "form", Message: b.String(), RequestedSchema: schema}
}

// shorten keeps a question readable. What is cut is at the end, and said.
func shorten(s string) string {
	const most = 6000
	if len(s) <= most {
		return s
	}
	cut := strings.LastIndexByte(s[:most], '\n')
	return s[:max(cut, 0)] + fmt.Sprintf("\n(%d more lines)", strings.Count(s[max(cut, 0):], "\n"))
}

// done is the result of a tool that has nothing more to ask.
func (c *clinic) done(p *plan, status string) *mcp.CallToolResult {
	if status != "" {
		a := &Approval{Status: status}
		if status != given {
			a.Wanted = wanted(p.items)
		}
		p.answer.setApproval(a)
	}
	return result(p.answer)
}

// propose is the result of a tool that has to ask and cannot: a plan, for whoever
// calls again, and what is left to a person.
func (c *clinic) propose(p *plan) *mcp.CallToolResult {
	a := &Approval{Status: needed, Wanted: wanted(p.items)}
	var open []item
	for _, it := range p.items {
		if !it.person {
			open = append(open, it)
		}
	}
	p.answer.setApproval(a)
	if len(open) > 0 {
		kept := *p
		kept.items, kept.rounds, kept.form = open, 0, false
		a.Plan = c.plans.put(&kept)
		a.Expires = kept.expires.UTC().Format(time.RFC3339)
	}
	return result(p.answer)
}

func result(a answer) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.text()}}}
}
