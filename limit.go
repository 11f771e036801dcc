package mcpmend

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/guard"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// Limit bounds the calls of a tool in a [Middleware]. The zero value is no limit.
type Limit struct {
	// Timeout is for a call from its arrival, the wait for others included. When it is
	// over, the context of the tool is cancelled, and a tool that does not return
	// soon after is left behind: the client is told that it is still running.
	Timeout time.Duration
	// MaxConcurrent calls run at once; others wait in the order they came. A tool that
	// was left behind counts until it has returned.
	MaxConcurrent int
}

// lastWord is how long a tool has to return after its context was cancelled, for
// "it has stopped" is better news than "it is still running".
const lastWord = 100 * time.Millisecond

func (m *mender) limit(tool string) Limit {
	if limit, ok := m.options.Limits[tool]; ok {
		return limit
	}
	return m.options.Limits["*"]
}

// run makes a call, within the limits of its tool.
func (m *mender) run(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (mcp.Result, error) {
	limit := m.limit(req.Params.Name)
	if limit.Timeout > 0 {
		return m.runInTime(ctx, next, req, limit)
	}
	leave, err := m.gates.enter(ctx, req.Params.Name, limit.MaxConcurrent)
	if err != nil {
		return nil, err // the client has given up
	}
	defer leave()
	return m.protected(ctx, next, req)
}

// runInTime makes a call in a goroutine of its own, which ends when the tool returns,
// and answers in time whatever the tool does.
func (m *mender) runInTime(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest, limit Limit) (mcp.Result, error) {
	inTime, cancel := context.WithTimeout(ctx, limit.Timeout)
	leave, err := m.gates.enter(inTime, req.Params.Name, limit.MaxConcurrent)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err() // the client has given up
		}
		return m.busy(ctx, next, req, limit), nil
	}
	deadline, _ := inTime.Deadline()
	done := make(chan reply, 1)
	go func() {
		defer leave()
		defer cancel()
		var r reply // stays empty if the tool calls runtime.Goexit
		defer func() { done <- r }()
		r.result, r.err = m.protected(inTime, next, req)
		r.late = errors.Is(inTime.Err(), context.DeadlineExceeded) && ctx.Err() == nil
	}()
	answer := time.NewTimer(time.Until(deadline) + lastWord)
	defer answer.Stop()
	select {
	case r := <-done:
		return m.settle(ctx, next, req, limit, r)
	case <-answer.C:
		return m.unknown(ctx, next, req, fault.Timeout,
			fmt.Sprintf("it is still running after its time limit of %v", limit.Timeout)), nil
	}
}

// A reply is what a tool returned; late, if its time was over by then.
type reply struct {
	result mcp.Result
	err    error
	late   bool
}

// settle makes an answer of what a tool with a time limit returned. A late success is
// a success. A late failure is most likely ours, who cancelled it; the tool's own words
// are kept.
func (m *mender) settle(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest, limit Limit, r reply) (mcp.Result, error) {
	result, _ := r.result.(*mcp.CallToolResult)
	failed := r.err != nil || result != nil && result.IsError
	switch {
	case r.result == nil && r.err == nil:
		return m.unknown(ctx, next, req, fault.ToolFailure, "it ended without a result"), nil
	case !r.late || !failed:
		return r.result, r.err
	}
	out := m.unknown(ctx, next, req, fault.Timeout,
		fmt.Sprintf("it was stopped at its time limit of %v", limit.Timeout))
	if r.err != nil {
		out.Content = append(out.Content, &mcp.TextContent{Text: r.err.Error()})
	} else {
		out.Content = append(out.Content, result.Content...)
	}
	return out, nil
}

// protected makes a call that ends with a result even if the tool panics.
func (m *mender) protected(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (result mcp.Result, err error) {
	defer m.survive(req.Params.Name, func() {
		result, err = m.unknown(ctx, next, req, fault.ToolFailure, "it crashed while running"), nil
	})
	return next(ctx, wire.MethodCall, req)
}

// survive is to be deferred. After a panic it reports it and goes on with instead.
func (m *mender) survive(tool string, instead func()) {
	if value := recover(); value != nil {
		m.options.OnPanic(tool, value, debug.Stack())
		instead()
	}
}

// outcome is what stands under guard.MetaOutcome, as far as a server knows it.
type outcome struct {
	Outcome     Outcome    `json:"outcome"`
	SafeToRetry bool       `json:"safe_to_retry"`
	Kind        fault.Kind `json:"kind"`
}

// unknown is the answer to a call that may have had an effect.
func (m *mender) unknown(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest, kind fault.Kind, cause string) *mcp.CallToolResult {
	t := m.current(ctx, next, req)
	o := outcome{Unknown, t != nil && t.repeatable(), kind}
	advice := "Do not repeat the call before its effect has been checked."
	if o.SafeToRetry {
		advice = "Calling it again is safe, but may end in the same way."
	}
	text := fmt.Sprintf("The outcome of tool %q is unknown: %s. %s", req.Params.Name, cause, advice)
	return errorResult(t, text, guard.MetaOutcome, o)
}

// busy is the answer to a call that waited for others until its time was over.
func (m *mender) busy(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest, limit Limit) *mcp.CallToolResult {
	text := fmt.Sprintf("Tool %q was not executed. Cause: it takes %d calls at once, and none of those before this one ended within %v. Calling it again later is safe.",
		req.Params.Name, limit.MaxConcurrent, limit.Timeout)
	return errorResult(m.current(ctx, next, req), text, guard.MetaOutcome, outcome{NotExecuted, true, fault.RateLimited})
}

// current is the tool as it is listed now, or nil.
func (m *mender) current(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) *tool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	listed, _ := m.list(ctx, next, req)
	return listed[req.Params.Name]
}

// gates let a number of calls of each tool through at once. There is a gate only while
// somebody is at it, so that names nobody knows cost nothing.
type gates struct {
	mu    sync.Mutex
	gates map[string]*gate
}

type gate struct {
	slots chan struct{}
	users int // within and before it; guarded by gates.mu
}

// enter waits for a place, until ctx is done. Whoever was let in has to leave.
func (g *gates) enter(ctx context.Context, tool string, width int) (leave func(), err error) {
	if width <= 0 {
		return func() {}, nil
	}
	at := g.approach(tool, width)
	leave = func() { <-at.slots; g.turnAway(tool, at) }
	select {
	case at.slots <- struct{}{}:
	case <-ctx.Done():
		g.turnAway(tool, at)
		return nil, ctx.Err()
	}
	if ctx.Err() != nil { // both at once, and nobody waits for the result any more
		leave()
		return nil, ctx.Err()
	}
	return leave, nil
}

func (g *gates) approach(tool string, width int) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.gates[tool]
	if at == nil {
		if g.gates == nil {
			g.gates = make(map[string]*gate)
		}
		at = &gate{slots: make(chan struct{}, width)}
		g.gates[tool] = at
	}
	at.users++
	return at
}

func (g *gates) turnAway(tool string, at *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(g.gates, tool)
	}
}
