package guard

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// MetaOutcome is the key of _meta under which a reply of ours says as data what
// its text says in words, and under which a mended call says that it was mended.
const MetaOutcome = "mcpmend.dev/outcome"

// report is what stands under MetaOutcome.
type report struct {
	// Outcome is left out where the server answered with an error of its own.
	Outcome fault.Outcome `json:"outcome,omitempty"`
	// SafeToRetry: calling again with the same arguments cannot do it twice.
	SafeToRetry  bool       `json:"safe_to_retry"`
	Kind         fault.Kind `json:"kind,omitempty"`
	Evidence     *evidence  `json:"evidence,omitempty"`
	Attempts     int        `json:"attempts"`
	RetryAfterMS int64      `json:"retry_after_ms,omitempty"`
	VerifyWith   string     `json:"verify_with,omitempty"`
	Errors       []string   `json:"errors,omitempty"` // of all attempts, oldest first
}

type evidence struct {
	Delivery   string   `json:"delivery"`
	Text       string   `json:"text,omitempty"`
	ExitCode   *int     `json:"exit_code,omitempty"`
	Signal     string   `json:"signal,omitempty"`
	HTTPStatus int      `json:"http_status,omitempty"`
	Stderr     []string `json:"stderr,omitempty"`
}

// explain completes a fault with what its evidence says: the kind and a hint.
func explain(f *fault.Fault) *fault.Fault {
	out := *f
	if out.Kind != "" {
		return &out // whoever saw it knew
	}
	d := fault.Diagnose(f.Evidence)
	out.Kind = d.Kind
	if out.Hint == "" {
		out.Hint = d.SuggestedFix
	}
	return &out
}

// verdict is our answer to a request that could not be finished. A tool call gets
// a result, because only results are sure to reach the model; everything else
// gets an error.
func (c *Call) verdict(f *fault.Fault, outcome fault.Outcome) wire.Message {
	r := c.report(f, outcome)
	if c.method != wire.MethodCall {
		data, _ := json.Marshal(map[string]report{MetaOutcome: r})
		text := c.cause(f)
		if f.Hint != "" {
			text += ". Hint: " + f.Hint
		}
		return wire.NewError(c.id, wire.CodeServerTrouble, text, data)
	}
	data, _ := json.Marshal(r)
	return c.errorResult(c.words(f, r), MetaOutcome, data)
}

// errorResult is a result that says in words, and under a key of _meta as data,
// why the tool's own is missing.
func (c *Call) errorResult(text, key string, data []byte) wire.Message {
	result := make([]byte, 0, 2*len(data)+len(text)+256)
	result = append(result, `{"content":[{"type":"text","text":`...)
	result = wire.AppendString(result, text)
	result = append(result, `}],"isError":true`...)
	if c.session.peer.Era == wire.Modern {
		result = append(result, `,"resultType":"complete"`...)
	}
	if c.tool != nil && !c.tool.structured {
		// A client checks structuredContent against the tool's schema even when the
		// call failed, so ours may only stand where there is none.
		result = append(append(result, `,"structuredContent":`...), data...)
	}
	result = append(result, `,"_meta":{"`+key+`":`...)
	result = append(append(result, data...), `}}`...)
	return wire.NewResult(c.id, result)
}

func (c *Call) report(f *fault.Fault, outcome fault.Outcome) report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := report{
		Outcome:      outcome,
		SafeToRetry:  outcome == fault.NotExecuted || c.effect >= fault.Idempotent,
		Kind:         f.Kind,
		Attempts:     c.attempts,
		RetryAfterMS: f.RetryAfter.Milliseconds(),
		Evidence: &evidence{
			Delivery: f.Delivery.String(), Text: f.Text, Signal: f.Signal,
			HTTPStatus: f.HTTPStatus, Stderr: lastLines(f.Stderr, 5),
		},
	}
	if f.Exited && f.Signal == "" {
		code := f.ExitCode
		r.Evidence.ExitCode = &code
	}
	if outcome == fault.OutcomeUnknown {
		r.VerifyWith = c.session.server.tools.verifier(c.name)
	}
	if len(c.faults) > 1 {
		for _, each := range c.faults {
			r.Errors = append(r.Errors, each.Error())
		}
	}
	return r
}

// words is the text for the model: outcome, cause, and what to do. It never tells
// it to make the call that failed unless that is safe.
func (c *Call) words(f *fault.Fault, r report) string {
	var b strings.Builder
	if r.Outcome == fault.NotExecuted {
		fmt.Fprintf(&b, "Tool %q was not executed. Cause: %s.", c.name, c.cause(f))
		switch {
		case f.RetryAfter > 0:
			fmt.Fprintf(&b, " The server may be back in %d s; until then this tool does not work.", int(f.RetryAfter.Seconds())+1)
		case f.Kind.About().Scope == fault.OfSetup:
			b.WriteString(" Calling it again does not help before that is changed.")
		default:
			b.WriteString(" Calling it again is safe.")
		}
	} else {
		fmt.Fprintf(&b, "The outcome of tool %q is unknown: it may or may not have run. Cause: %s.", c.name, c.cause(f))
		if r.VerifyWith != "" {
			fmt.Fprintf(&b, " Do not repeat the call before you have checked its effect, for example with %q.", r.VerifyWith)
		} else {
			b.WriteString(" Do not repeat the call before its effect has been checked.")
		}
	}
	if f.Hint != "" {
		fmt.Fprintf(&b, " Hint: %s.", f.Hint)
	}
	if f.Delivery == fault.Partial && f.PartialText != "" {
		fmt.Fprintf(&b, " The reply broke off; what arrived, not to be trusted: %q", f.PartialText)
	}
	return b.String()
}

// cause is what happened, with the server's last words if it said any.
func (c *Call) cause(f *fault.Fault) string {
	text := strings.TrimSuffix(f.Error(), ".")
	if last := lastLines(f.Stderr, 3); len(last) > 0 {
		text += "; its last words: " + strings.Join(last, " | ")
	}
	return text
}

func lastLines(lines []string, n int) []string {
	return lines[max(0, len(lines)-n):]
}

// mended adds to the server's reply that it took more than one attempt, and what
// was said before. An error does not tell whether the tool ran, so neither do we.
func (c *Call) mended(reply wire.Message) wire.Message {
	_, _, failed := toolError(&reply)
	c.mu.Lock()
	r := report{Attempts: c.attempts}
	for _, f := range c.faults {
		r.Errors = append(r.Errors, f.Error())
	}
	c.mu.Unlock()
	if !failed {
		r.Outcome = fault.Executed
	}
	data, _ := json.Marshal(r)
	if result := reply.Result(); isObject(result) {
		return reply.WithResult(wire.Set(result, data, "_meta", MetaOutcome))
	}
	problem := reply.Error()
	if said, ok := wire.Member(problem, "data"); isObject(problem) && (!ok || isObject(said)) {
		return reply.WithError(wire.Set(problem, data, "data", MetaOutcome))
	}
	return reply
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }
