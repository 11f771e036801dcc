// Package fault says what went wrong with a server or a call, and what may be
// done about it. Evidence comes in; a diagnosis and a decision come out. It is
// made of pure functions and values: it starts nothing, waits for nothing and
// imports none of our other packages.
package fault

import (
	"fmt"
	"strings"
	"time"
)

// Delivery is what the transport knows about how far one attempt of a request
// got. It is decided from facts alone (bytes written, connections made,
// replies read), never from the text of an error.
type Delivery uint8

const (
	// Unsent: no byte of the request left us.
	Unsent Delivery = iota
	// Unparseable: the peer is gone and was handed less than the whole request.
	Unparseable
	// Unread: the peer is dead and part of the request was found unread in its pipe.
	Unread
	// Silent: the whole request was handed over and nothing came back.
	Silent
	// Started: something bound to this request came back (progress, a stream's headers).
	Started
	// Partial: a reply began and broke off, or could not be understood.
	Partial
	// Refused: the peer said, before running anything, that it would not.
	Refused
	// Answered: a complete reply arrived; a tool's own error is an answer too.
	Answered
	// Cancelled: the caller gave up or went away.
	Cancelled
)

var deliveryNames = [...]string{
	"unsent", "unparseable", "unread", "silent", "started", "partial", "refused", "answered", "cancelled",
}

func (d Delivery) String() string {
	if int(d) < len(deliveryNames) {
		return deliveryNames[d]
	}
	return fmt.Sprintf("Delivery(%d)", d)
}

// Kind names a cause by its remedy: two causes that are mended in the same way
// share a kind.
type Kind string

// Unknown is the kind of what we cannot explain. It is never guessed away.
const Unknown Kind = "unknown"

// Evidence is what is known about a failure, gathered by whoever saw it.
// Every field is optional; the zero value means nothing was seen.
type Evidence struct {
	// Text is the message of the error as the one who saw it would print it.
	Text string
	// ExitCode of the process and Signal that ended it; Exited says that it ended at all.
	Exited   bool
	ExitCode int
	Signal   string
	// Stderr holds the last lines the server wrote, oldest first.
	Stderr []string
	// Stdout holds the last lines on standard output that were no protocol messages.
	Stdout []string
	// Errno is the name of the system error underneath, such as "ENOENT".
	Errno string
	// Command is the program that was to run, as the configuration names it.
	Command string
	// Moment is where in its life the server was.
	Moment Moment
	// PartialText is the beginning of a reply that broke off. It is the server's
	// text and not to be trusted.
	PartialText string
	// HTTPStatus and RPCCode of the answer, 0 when there was none.
	HTTPStatus int
	RPCCode    int
	// HadSession says that the request carried a session id, so that a bare
	// "404 Not Found" speaks of the session and not of the address.
	HadSession bool
	// RetryAfter is the wait the peer asked for.
	RetryAfter time.Duration
	// Challenge is how the peer says one may sign in: WWW-Authenticate as sent.
	Challenge string
}

// Moment is where in the life of a connection a failure happened.
type Moment string

const (
	AtStart     Moment = "start"     // the process or the connection could not be made
	AtHandshake Moment = "handshake" // before the server had introduced itself
	AtCall      Moment = "call"      // while a request was under way
	WhenIdle    Moment = "idle"      // with nothing under way
)

// Fault is trouble with a server or with one call. It is an error; act on its
// fields and show its text.
type Fault struct {
	Kind     Kind
	Delivery Delivery
	// Hint is one thing the reader can do, lower case, no full stop. May be empty.
	Hint string
	Evidence
	// Cause is the error underneath, if there was one.
	Cause error
}

func (f *Fault) Error() string {
	var b strings.Builder
	if f.Kind != "" && f.Kind != Unknown {
		b.WriteString(string(f.Kind))
		b.WriteString(": ")
	}
	switch {
	case f.Text != "":
		b.WriteString(f.Text)
	case f.Cause != nil:
		b.WriteString(f.Cause.Error())
	default:
		b.WriteString("failed for a reason that is not known")
	}
	return b.String()
}

func (f *Fault) Unwrap() error { return f.Cause }
