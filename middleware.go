package mcpmend

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// MiddlewareOptions adjusts [Middleware]. The zero value checks, mends and explains
// arguments and survives panics; it limits nothing.
type MiddlewareOptions struct {
	// Policy says what may be mended; the zero value is [arguments.Balanced]. What a
	// tool may do is read from its annotations. One that has none counts as
	// destructive, as MCP says, and is mended least: annotate your tools.
	Policy arguments.Policy
	// FullErrors explains a refused call at full length the first time. Otherwise
	// the explanation is short and grows when the very same call comes again in the
	// same session. A stateless HTTP server has no sessions to remember it in.
	FullErrors bool
	// ToolNames looks at calls of tools that are not listed: a name that can only
	// mean one listed tool is mended, any other is explained. Leave it off if there
	// are tools that can be called and are not listed.
	ToolNames bool

	// Limits of single tools by name. Those under "*" are for every tool that is not
	// named, each by itself.
	Limits map[string]Limit

	// OnMended is told what was changed in a call before its tool runs. The changes
	// hold values of the caller. It must not block. May be nil.
	OnMended func(tool string, changes []arguments.Change)
	// OnPanic is told of a panic, which the client learns nothing about but that
	// there was one. If it is nil, the panic is logged with package slog.
	OnPanic func(tool string, value any, stack []byte)
}

// Middleware checks the arguments of every tool call against the tool's own schema
// before the tool runs. A valid call passes as it is. One whose meaning is certain is
// mended (package [arguments] says what that means). Any other is answered with an
// error result from which a model can correct itself, and the tool does not run.
//
// A tool that panics ends its own call and not the process; a tool over its [Limit]
// is stopped waiting for. What the client is told then says whether the tool may have
// run.
//
//	server.AddReceivingMiddleware(mcpmend.Middleware(mcpmend.MiddlewareOptions{}))
//
// Add it after the server's other middleware: what is added later runs earlier, so
// that the others see a call as it was mended. It asks the server for its tools
// through them, only when it does not know a tool or has something to say about a
// call.
//
// One Middleware may serve several servers; their calls are then limited together.
// It panics if options name a policy that does not exist.
func Middleware(options MiddlewareOptions) mcp.Middleware {
	switch options.Policy {
	case "", arguments.Balanced, arguments.Strict, arguments.Off:
	default:
		panic(fmt.Sprintf("mcpmend: there is no policy %q", options.Policy))
	}
	options.Limits = maps.Clone(options.Limits)
	if options.OnPanic == nil {
		options.OnPanic = func(tool string, value any, stack []byte) {
			slog.Error("tool panicked", "tool", tool, "panic", value, "stack", string(stack))
		}
	}
	m := &mender{options: options, schemas: arguments.NewCache(0), seed: maphash.MakeSeed()}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && method == wire.MethodCall && call.Params != nil {
				return m.call(ctx, next, call)
			}
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListToolsResult); ok && list != nil && err == nil {
				m.learn(list.Tools)
			}
			return result, err
		}
	}
}

// metaArguments is the key of _meta under which a result says as data what was wrong
// with the arguments, or what was mended in them.
const metaArguments = "mcpmend.dev/arguments"

// mender is the state of one Middleware.
type mender struct {
	options MiddlewareOptions
	schemas *arguments.Cache
	seed    maphash.Seed
	gates   gates

	mu    sync.Mutex
	known map[string]*tool // as last listed
	// Calls that were refused and how often, those seen last in recent.
	recent, older map[refusal]int
}

// The memories are bounded; what they forget is asked again or explained anew.
const (
	maxKnown    = 4096
	maxRefusals = 512
)

// call takes one call from its arrival to its result.
func (m *mender) call(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (mcp.Result, error) {
	if string(req.Params.Arguments) == "null" {
		// Null for a member that may be left out means nothing else than leaving it
		// out, and go-sdk's own checker writes into the nil map that it makes of it.
		req = with(req, req.Params.Name, []byte("{}"))
	}
	if t := m.remembered(req.Params.Name); t != nil && t.accepts(req) {
		return m.run(ctx, next, req)
	}
	// The server may have changed its tools since. A valid call goes on unchanged
	// whatever we remember, but only what is listed now may change or refuse one.
	listed, ok := m.list(ctx, next, req)
	if !ok {
		return m.run(ctx, next, req)
	}
	mended, changes, refused := m.mend(req, listed)
	if refused != nil {
		return refused, nil
	}
	if len(changes) > 0 && m.options.OnMended != nil {
		m.options.OnMended(mended.Params.Name, changes)
	}
	result, err := m.run(ctx, next, mended)
	return reportMended(result, changes), err
}

// mend returns the call as it is to be made and what was changed in it, or the
// answer to a call that is not to be made.
func (m *mender) mend(req *mcp.CallToolRequest, listed map[string]*tool) (*mcp.CallToolRequest, []arguments.Change, *mcp.CallToolResult) {
	name := req.Params.Name
	t := listed[name]
	var renamed []arguments.Change
	if t == nil && m.options.ToolNames {
		meant, _ := arguments.RepairName(name, names(listed))
		t = listed[meant]
		renamed = []arguments.Change{{From: quote(name), To: quote(meant), Rule: arguments.RuleToolName}}
		if t == nil || !m.options.Policy.Permits(t.risk(), arguments.RuleToolName) {
			e := arguments.ExplainName(name, names(listed))
			return nil, nil, errorResult(nil, e.Text, metaArguments, e)
		}
	}
	if t == nil {
		return req, nil, nil // the server knows better
	}
	result := t.repair(req, m.options.Policy)
	if result.Outcome == arguments.Invalid || result.Outcome == arguments.Withheld {
		return nil, nil, m.refuse(t, req, result)
	}
	changes := append(renamed, result.Changes...)
	if len(changes) == 0 {
		return req, nil, nil
	}
	return with(req, t.Name, result.Arguments), changes, nil
}

// refuse answers a call whose arguments cannot be what is meant.
func (m *mender) refuse(t *tool, req *mcp.CallToolRequest, result arguments.Result) *mcp.CallToolResult {
	e := arguments.Explain(arguments.Failure{
		Tool:        t.Name,
		Description: t.Description,
		Schema:      t.compiled(),
		Arguments:   req.Params.Arguments,
		Suggested:   result.Suggested,
		Repeats:     m.refusedBefore(t, req),
		Full:        m.options.FullErrors,
	})
	return errorResult(t, e.Text, metaArguments, e)
}

// A refusal is a call as far as it takes to recognise it.
type refusal struct {
	session   weak.Pointer[mcp.ServerSession] // so that we keep no session alive
	tool      string
	arguments uint64
}

// refusedBefore counts how often this very call was refused in its session before.
func (m *mender) refusedBefore(t *tool, req *mcp.CallToolRequest) int {
	r := refusal{weak.Make(req.Session), t.Name, maphash.Bytes(m.seed, req.Params.Arguments)}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.recent[r]
	if !ok {
		n = m.older[r]
	}
	if m.recent == nil || len(m.recent) >= maxRefusals {
		m.older, m.recent = m.recent, make(map[refusal]int)
	}
	m.recent[r] = n + 1
	return n
}

// A tool is a tool as its server lists it.
type tool struct {
	*mcp.Tool
	compiled func() *arguments.Schema // nil if the schema cannot be compiled
}

func (m *mender) newTool(listed *mcp.Tool) *tool {
	return &tool{listed, sync.OnceValue(func() *arguments.Schema {
		raw, err := json.Marshal(listed.InputSchema)
		if err != nil {
			return nil
		}
		schema, err := m.schemas.Compile(raw)
		if err != nil {
			return nil // what cannot be checked is not refused
		}
		return schema
	})}
}

// accepts says whether the arguments of a call are valid as they are.
func (t *tool) accepts(req *mcp.CallToolRequest) bool {
	schema := t.compiled()
	return schema == nil || !slices.ContainsFunc(schema.Check(req.Params.Arguments), func(p arguments.Problem) bool { return !p.Warning })
}

func (t *tool) repair(req *mcp.CallToolRequest, policy arguments.Policy) arguments.Result {
	call := arguments.Call{Tool: t.Name, Arguments: req.Params.Arguments, Risk: t.risk(), Policy: policy}
	if schema := t.compiled(); schema != nil {
		return schema.Repair(call)
	}
	return arguments.Result{Outcome: arguments.Valid, Arguments: call.Arguments}
}

// risk believes the annotations, since they are the word of the server we are in.
func (t *tool) risk() arguments.Risk {
	switch a := t.Annotations; {
	case a == nil:
		return arguments.Destructive
	case a.ReadOnlyHint:
		return arguments.ReadOnly
	case a.DestructiveHint != nil && !*a.DestructiveHint:
		return arguments.Write
	}
	return arguments.Destructive
}

// repeatable says that a second execution changes nothing more.
func (t *tool) repeatable() bool {
	return t.Annotations != nil && (t.Annotations.ReadOnlyHint || t.Annotations.IdempotentHint)
}

func (m *mender) remembered(name string) *tool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[name]
}

// learn remembers tools that were listed.
func (m *mender) learn(listed []*mcp.Tool) []*tool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) > maxKnown {
		m.known = make(map[string]*tool)
	}
	var out []*tool
	for _, each := range listed {
		if each == nil {
			continue // of another middleware; not our business
		}
		t := m.known[each.Name]
		if t == nil || t.Tool != each { // a tool does not change once it was added, it is replaced
			t = m.newTool(each)
			m.known[each.Name] = t
		}
		out = append(out, t)
	}
	return out
}

// maxPages keeps a list that has no end from keeping us.
const maxPages = 1000

// list asks the server for its tools, as the one who makes the call sees them.
func (m *mender) list(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (listed map[string]*tool, ok bool) {
	defer m.survive(req.Params.Name, func() { listed, ok = nil, false })
	listed = make(map[string]*tool)
	params := &mcp.ListToolsParams{}
	for range maxPages {
		result, err := next(ctx, wire.MethodTools, &mcp.ListToolsRequest{Session: req.Session, Params: params, Extra: req.Extra})
		page, isList := result.(*mcp.ListToolsResult)
		if err != nil || !isList || page == nil {
			return nil, false
		}
		for _, t := range m.learn(page.Tools) {
			listed[t.Name] = t
		}
		if page.NextCursor == "" {
			return listed, true
		}
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, false
}

func names(listed map[string]*tool) []string {
	return slices.Sorted(maps.Keys(listed))
}

func quote(name string) string { return string(wire.AppendString(nil, name)) }

// with returns the call under another name and with other arguments. The one that
// came in may be in other hands and stays as it is.
func with(req *mcp.CallToolRequest, name string, args []byte) *mcp.CallToolRequest {
	r, params := *req, *req.Params
	params.Name, params.Arguments = name, args
	r.Params = &params
	return &r
}

// errorResult is a result of ours: words for the model, and the same as data.
func errorResult(t *tool, text, key string, data any) *mcp.CallToolResult {
	r := &mcp.CallToolResult{
		Meta:    mcp.Meta{key: data},
		Content: []mcp.Content{&mcp.TextContent{Text: text}},
		IsError: true,
	}
	if t != nil && t.OutputSchema == nil {
		// A client checks structuredContent against the tool's schema even when the
		// call failed, so ours may only stand where there is none.
		r.StructuredContent = data
	}
	return r
}

// mendedAt names a change to the caller, who has the values already.
type mendedAt struct {
	Path string         `json:"path"`
	Rule arguments.Rule `json:"rule"`
}

// reportMended says in a result that the call was made with other arguments than came.
func reportMended(result mcp.Result, changes []arguments.Change) mcp.Result {
	r, ok := result.(*mcp.CallToolResult)
	if !ok || r == nil || len(changes) == 0 {
		return result
	}
	var at []mendedAt
	for _, c := range changes {
		at = append(at, mendedAt{c.Path, c.Rule})
	}
	out := *r // the handler may keep its own
	out.Meta = maps.Clone(r.Meta)
	if out.Meta == nil {
		out.Meta = make(mcp.Meta)
	}
	if _, taken := out.Meta[metaArguments]; !taken {
		out.Meta[metaArguments] = map[string]any{"mended": at}
	}
	return &out
}
