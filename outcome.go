package mcpmend

import (
	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/guard"
)

// Outcome says whether a call that failed has had an effect.
type Outcome string

const (
	// NotExecuted: the tool did not run. Calling it again is safe.
	NotExecuted Outcome = "not_executed"
	// Unknown: the request was handed over and nothing more is known. The tool
	// may have run, wholly or in part.
	Unknown Outcome = "unknown"
)

// CallError is the error of a call that got no answer from the server. Find it
// with errors.As. An answer that is itself an error is not a CallError.
type CallError struct {
	// Outcome says whether the tool may have run.
	Outcome Outcome
	// Fault says what went wrong and what was seen of it.
	Fault *fault.Fault
}

func (e *CallError) Error() string {
	if e.Outcome == NotExecuted {
		return "not executed: " + e.Fault.Error()
	}
	return "outcome unknown: " + e.Fault.Error()
}

func (e *CallError) Unwrap() error { return e.Fault }

// Event is something that was mended, or could not be.
type Event = guard.Event

// Health is a picture of a server at one moment.
type Health = guard.Health
