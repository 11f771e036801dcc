// Package advisor asks a model one question about a call that failed, and takes
// one structured answer. It is optional: nothing else needs a model, and whoever
// does not make an [Advisor] has none.
//
// In comes a [Question]: a tool, the part of its schema that was broken, the
// arguments and the error. Out comes an [Answer] with arguments that may be sent,
// or the model's word that it cannot say what was meant, or an error, which leaves
// the caller where it was.
//
// The model is not trusted. What it is shown is quoted as data and holds no
// secrets; what it says is parsed, bounded, compared with what was sent, validated
// by the caller's own schema, and otherwise thrown away. It has no tools, and no
// word of it decides anything that [Acceptable] and the caller do not allow.
package advisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// Provider is a way of speaking to a model.
type Provider string

const (
	// OpenAI is chat completions, which Ollama, vLLM, LM Studio, OpenRouter and
	// many others speak as well.
	OpenAI Provider = "openai"
	// Anthropic is the messages API.
	Anthropic Provider = "anthropic"
	// Sampling asks through Options.Sample, which hands the question to an MCP client.
	Sampling Provider = "sampling"
)

// Secret is text that is never printed.
type Secret string

// Format implements fmt.Formatter for every verb.
func (Secret) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("(hidden)")) }

// MarshalText implements encoding.TextMarshaler, for logs and JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte("(hidden)"), nil }

// Options say which model is asked, and how much.
type Options struct {
	// Provider, when empty, is Sampling if Sample is set and OpenAI otherwise.
	Provider Provider
	// BaseURL is what the endpoint's path is appended to: "/chat/completions" for
	// OpenAI, "/v1/messages" for Anthropic. Empty means the provider's own.
	BaseURL string
	// Model is the name of the model. Only Sampling does without: there the client
	// chooses.
	Model string
	// Key is the API key. Servers on one's own machine need none. It is not sent
	// over plain HTTP, except to this machine.
	Key Secret
	// Local: only this machine and private networks are spoken to, whatever the name
	// in BaseURL resolves to, and no proxy.
	Local bool
	// Sample asks the model of an MCP client and returns its text.
	Sample func(ctx context.Context, prompt string) (string, error)
	// Given knows the secrets that the server has, which no model gets to see. They are
	// marked without their names. May be nil.
	Given *secret.Hider
	// Timeout bounds one question. 0 means 10 seconds, and there is no more.
	Timeout time.Duration
	// MaxPerHour bounds how many questions are asked in any 60 minutes. 0 means 60.
	MaxPerHour int
}

const (
	maxTimeout        = 10 * time.Second
	defaultMaxPerHour = 60
)

// Advisor asks one model. It may be used by any number of goroutines.
type Advisor struct {
	speak   func(context.Context, prompt) (string, error)
	timeout time.Duration
	given   *secret.Hider
	desk    desk
}

// New makes an advisor. It contacts nobody.
func New(o Options) (*Advisor, error) {
	switch {
	case o.Timeout < 0 || o.Timeout > maxTimeout:
		return nil, fmt.Errorf("advisor: timeout %v is not between 0 and %v", o.Timeout, maxTimeout)
	case o.MaxPerHour < 0:
		return nil, fmt.Errorf("advisor: %d questions per hour make no sense", o.MaxPerHour)
	}
	if o.Timeout == 0 {
		o.Timeout = maxTimeout
	}
	if o.MaxPerHour == 0 {
		o.MaxPerHour = defaultMaxPerHour
	}
	if o.Provider == "" && o.Sample != nil {
		o.Provider = Sampling
	}
	a := &Advisor{timeout: o.Timeout, given: o.Given, desk: desk{perHour: o.MaxPerHour}}
	var err error
	if o.Provider == Sampling {
		a.speak, err = sampler(o)
	} else {
		a.speak, err = dialler(o)
	}
	if err != nil {
		return nil, fmt.Errorf("advisor: %w", err)
	}
	return a, nil
}

// Question is one call that failed before it ran, or whose tool only reads.
type Question struct {
	// Tool that was called.
	Tool string
	// SchemaPart is the schema of what was wrong, as JSON. May be empty.
	SchemaPart []byte
	// Arguments as they were sent: a JSON object. Anything else is not for a model
	// to finish.
	Arguments []byte
	// Error is what was said about them, by us or by the server.
	Error string
	// Kind of the error. About sign-in and permission no model is asked.
	Kind fault.Kind

	// Valid says whether arguments fit the whole schema of the tool. Required.
	Valid func(arguments []byte) error
	// MayAdd says that the schema has a member at this JSON pointer. nil means that
	// no member may be added.
	MayAdd func(pointer string) bool
	// MayChange says that the value at this JSON pointer may be replaced, added to
	// its list, or taken away. What lies below a value that is wrong is wrong, too.
	// nil means every value that is not sensitive.
	MayChange func(pointer string) bool
	// Sensitive names what the model must leave alone, besides what [Acceptable]
	// knows by itself. May be nil.
	Sensitive func(pointer string) bool
}

// Answer is what the model made of a question.
type Answer struct {
	// Corrected says that there are Arguments to send. They have passed Acceptable
	// and all funcs of the question.
	Corrected bool
	Arguments []byte
	// Changed lists the JSON pointers at which they differ from those of the question.
	Changed []string
	// Reason is why there is no correction. It is the model's own text, shortened
	// and stripped of control characters: data to show, never to act on.
	Reason string
}

var (
	// ErrNotAsked: the model was not asked; the text says why.
	ErrNotAsked = errors.New("the model was not asked")
	// ErrRejected: the model proposed something that it may not.
	ErrRejected = errors.New("the model's correction was rejected")
)

// Correct asks the model what was meant. It takes no longer than the advisor's
// timeout and no more than a quarter of the time that ctx has left. The same
// question from several callers at once is asked once.
//
// The error is ErrNotAsked, ErrRejected, that of ctx, or a *fault.Fault about the
// model's service. None of them changes what is true of the call.
func (a *Advisor) Correct(ctx context.Context, q Question) (Answer, error) {
	before, err := q.check()
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNotAsked, err)
	}
	limit := a.timeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/4)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &tooSlow{limit})
	defer cancel()
	r, err := a.ask(ctx, q, before)
	if err != nil {
		return Answer{}, err
	}
	return r.judge(q, before)
}

// What one question may hold. A model that runs on one's own machine is slow to
// read and has a short memory.
const (
	maxArguments = 8 << 10
	maxSchema    = 16 << 10
	maxError     = 4 << 10 // of a longer one, both ends are shown
	maxName      = 256
)

// check says why a question cannot be asked, or returns its arguments.
func (q *Question) check() (object, error) {
	switch {
	case q.Valid == nil:
		return nil, errors.New("nobody could validate its answer")
	case q.Kind == fault.AuthFailed || q.Kind == fault.PermissionDenied:
		return nil, errors.New("sign-in and permission are not a matter of arguments")
	case q.Tool == "" || len(q.Tool) > maxName:
		return nil, errors.New("the name of the tool is missing or too long")
	case len(q.SchemaPart) > maxSchema:
		return nil, fmt.Errorf("the schema has more than %d bytes", maxSchema)
	}
	before, err := decodeObject(q.Arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	return before, nil
}
