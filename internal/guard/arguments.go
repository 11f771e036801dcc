package guard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/upstream"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// MetaArguments is the key of _meta under which a reply says what was wrong with a
// call's arguments, and what was changed about them.
const MetaArguments = "mcpmend.dev/arguments"

// ArgumentOptions say what is done about arguments that do not fit. The zero value
// mends what is certain and refuses, with an explanation, what is not.
type ArgumentOptions struct {
	// Policy for mending; "" means arguments.Balanced.
	Policy arguments.Policy
	// Full explains everything at once instead of growing with repetition.
	Full bool
	// Forward passes on what cannot be mended instead of refusing it, for every
	// tool and not only for those that change nothing.
	Forward bool
	// Advise asks a model for corrected arguments. nil asks nobody. What it
	// returns is used only if the schema accepts it.
	Advise func(context.Context, Advice) ([]byte, error)
	// AdviseBy makes an adviser that asks the client's own model, for clients that
	// lend one; it is called once for each session. nil, or a nil adviser, leaves it
	// to Advise.
	AdviseBy func(sample func(ctx context.Context, prompt string) (string, error)) func(context.Context, Advice) ([]byte, error)
	// RetryKinds are the kinds of a server's own errors after which a model is
	// asked for better arguments; nil means only that the arguments are invalid.
	// Sign-in, permission and security errors are never among them.
	RetryKinds []fault.Kind
	// MaxRetries is how often one call may be corrected so; 0 means once.
	MaxRetries int
}

// Advice is what is known about arguments that could not be mended.
type Advice struct {
	Tool      string
	Schema    []byte // the tool's input schema, as the server wrote it
	Arguments []byte
	Error     string
	Kind      fault.Kind
	// Known says whether the schema has a member at this JSON pointer.
	Known func(pointer string) bool
	// Wrong says whether the value at this JSON pointer is one of those that do not
	// fit. nil when that is not known: the server did not say.
	Wrong func(pointer string) bool
	// Valid says what is wrong with a proposal, nil if nothing is.
	Valid func([]byte) error
}

// schemas are shared by all servers: the same tool is often offered by many.
var schemas = arguments.NewCache(0)

// risk is what running the tool may do, in the words of package arguments.
func risk(effect fault.Effect) arguments.Risk {
	switch effect {
	case fault.ReadOnly:
		return arguments.ReadOnly
	case fault.Destructive:
		return arguments.Destructive
	}
	return arguments.Write
}

// schema is the compiled input schema, nil where it cannot be used. It is compiled
// by the first call, because most tools of most servers are never called.
func (t *tool) schema() *arguments.Schema {
	t.once.Do(func() { t.compiled, _ = schemas.Compile(t.input) })
	return t.compiled
}

// misfit is what is wrong with the arguments of a call that goes on nevertheless,
// or what was changed about them.
type misfit struct {
	Changes     []arguments.Change     `json:"changes,omitempty"`
	Explanation *arguments.Explanation `json:"explanation,omitempty"`
	ByModel     bool                   `json:"by_model,omitempty"`
}

// fit makes the arguments fit the tool before anything has run. It reports false
// when the call has been settled, or will be once a model has answered.
func (c *Call) fit() bool {
	server := c.session.server
	o := &server.options.Arguments
	if c.tool == nil {
		c.rename()
	}
	if c.tool == nil || o.Policy == arguments.Off {
		return true
	}
	schema := c.tool.schema()
	if schema == nil {
		return true
	}
	raw, _ := wire.Member(c.Msg.Params(), "arguments")
	result := schema.Repair(arguments.Call{Tool: c.name, Arguments: raw, Risk: risk(c.effect), Policy: o.Policy})
	switch result.Outcome {
	case arguments.Valid:
		return true
	case arguments.Mended:
		c.replaceArguments(result.Arguments, misfit{Changes: result.Changes})
		return true
	}
	if beyondUs(&result, c.tool.input) {
		return true
	}
	if string(raw) == "null" {
		raw = []byte("{}") // what it lacks says more than that it is null
	}
	failure := arguments.Failure{
		Tool: c.name, Schema: schema, Arguments: raw, Suggested: result.Suggested,
		Description: c.tool.description, Full: o.Full, Repeats: c.session.failedBefore(c.name, raw),
	}
	if c.session.advise != nil {
		go c.consult(failure)
		return false
	}
	return c.unfit(failure)
}

// beyondUs reports whether nothing but our own caution speaks against a call: it is
// too large or too deep for us to check, or it holds nulls for optional fields,
// which most servers take for absent. The server decides.
func beyondUs(r *arguments.Result, schema []byte) bool {
	onlyNulls := true
	for _, p := range r.Problems {
		if p.Keyword == "limit" {
			return true
		}
		if !p.Warning && (p.Received != "null" || !optional(schema, p.Path)) {
			onlyNulls = false
		}
	}
	return onlyNulls
}

// optional reports whether a member at the top of the arguments may be left out.
func optional(schema []byte, pointer string) bool {
	name, ok := strings.CutPrefix(pointer, "/")
	if !ok || strings.Contains(name, "/") {
		return false
	}
	required, _ := wire.Member(schema, "required")
	found := false
	wire.EachElement(required, func(each []byte) {
		word, _ := wire.StringValue(each)
		found = found || word == name
	})
	return !found
}

// unfit refuses a call whose arguments could not be mended, or lets it go on where
// that can do no harm: the server may know better.
func (c *Call) unfit(failure arguments.Failure) bool {
	o := &c.session.server.options.Arguments
	if o.Forward || c.effect == fault.ReadOnly {
		failure.Forwarded = true
		explanation := arguments.Explain(failure)
		c.misfit = &misfit{Explanation: &explanation}
		return true
	}
	explanation := arguments.Explain(failure)
	data, _ := json.Marshal(explanation)
	c.session.server.tell(Event{What: "settled", Method: c.method, Tool: c.name, Outcome: fault.NotExecuted, Fault: &fault.Fault{
		Kind: fault.InvalidArguments, Evidence: fault.Evidence{Text: "the arguments do not fit the tool"},
	}})
	c.settle(Reply{Msg: c.errorResult(explanation.Text, MetaArguments, data)})
	return false
}

// rewrite gives the call other params. Its id stays, so whoever reads only that
// need not care.
func (c *Call) rewrite(params []byte) {
	c.mu.Lock()
	c.Msg = c.Msg.WithParams(params)
	c.mu.Unlock()
}

// replaceArguments puts other arguments in the place of the client's.
func (c *Call) replaceArguments(args []byte, what misfit) {
	c.rewrite(wire.Set(c.Msg.Params(), args, "arguments"))
	c.mu.Lock()
	c.misfit, c.inHand = &what, nil
	c.mu.Unlock()
	c.session.server.tell(Event{What: "mended", Method: c.method, Tool: c.name})
}

// consult asks a model, and goes on with what it says if that fits.
func (c *Call) consult(failure arguments.Failure) {
	better := c.advice(failure.Arguments, arguments.Explain(failure).Text, fault.InvalidArguments)
	if better != nil {
		c.replaceArguments(better, misfit{ByModel: true})
		c.gate()
		return
	}
	if c.unfit(failure) {
		c.gate()
	}
}

// advice is what a model proposes instead of args, nil if nothing that fits.
func (c *Call) advice(args []byte, text string, kind fault.Kind) []byte {
	schema := c.tool.schema()
	check := func(args []byte) error {
		for _, p := range schema.Check(args) {
			if !p.Warning {
				return &fault.Fault{Kind: fault.InvalidArguments, Evidence: fault.Evidence{Text: p.Path + ": expected " + p.Expected}}
			}
		}
		return nil
	}
	// Whoever answers takes a quarter of the time the call has left, at the most.
	left := advicePatience
	if limit := c.session.server.options.MaxCall; limit > 0 {
		left = min(left, limit-time.Since(c.began))
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	better, err := c.session.advise(ctx, Advice{
		Tool: c.name, Schema: c.tool.input, Arguments: args, Error: text, Kind: kind,
		Known: c.tool.hasMember, Wrong: wrongIn(schema.Check(args)), Valid: check,
	})
	if err == nil {
		err = check(better)
	}
	if err != nil {
		c.session.server.tell(Event{What: "not advised", Method: c.method, Tool: c.name, Fault: &fault.Fault{
			Kind: kind, Evidence: fault.Evidence{Text: err.Error()}, Cause: err,
		}})
		return nil
	}
	return better
}

// advicePatience is how long a call waits for advice if nobody has set it a limit.
const advicePatience = time.Minute

// wrongIn tells the values that do not fit by what a check found, nil if it found
// nothing: then it was the server that refused them, and only it knows which.
func wrongIn(problems []arguments.Problem) func(string) bool {
	var paths []string
	for _, p := range problems {
		if !p.Warning {
			paths = append(paths, p.Path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return func(pointer string) bool {
		for _, path := range paths {
			if pointer == path || strings.HasPrefix(pointer, path+"/") {
				return true
			}
		}
		return false
	}
}

// hasMember reports whether the tool's schema names a member at this JSON pointer.
// Only plain properties count; what stands behind a choice is not looked for.
func (t *tool) hasMember(pointer string) bool {
	schema := t.input
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		next, ok := wire.Member(schema, "properties", key)
		if !ok {
			return false
		}
		schema = next
	}
	return true
}

// secondThought looks at an error that the server answered with. If better
// arguments might help and nothing speaks against asking a model for some, it
// reports true and settles the call later: with another attempt where the first
// certainly did not run or the tool only reads, and otherwise with the server's
// error and the arguments that a model suggests.
func (c *Call) secondThought(o upstream.Outcome) bool {
	options := &c.session.server.options.Arguments
	if c.session.advise == nil || c.tool == nil || c.tool.schema() == nil || c.corrected >= max(1, options.MaxRetries) {
		return false
	}
	text, code, failed := toolError(&o.Reply)
	if !failed {
		return false
	}
	kind := fault.Diagnose(fault.Evidence{Text: text, RPCCode: code, Moment: fault.AtCall}).Kind
	wanted := options.RetryKinds
	if wanted == nil {
		wanted = []fault.Kind{fault.InvalidArguments}
	}
	if !slices.Contains(wanted, kind) || kind == fault.AuthFailed || kind == fault.PermissionDenied {
		return false
	}
	c.corrected++
	go c.reconsider(o, text, kind, code == wire.CodeInvalidParams || c.effect == fault.ReadOnly)
	return true
}

func (c *Call) reconsider(o upstream.Outcome, text string, kind fault.Kind, again bool) {
	args, _ := wire.Member(c.Msg.Params(), "arguments")
	better := c.advice(args, text, kind)
	switch {
	case better == nil:
		c.conclude(o)
	case again:
		c.mu.Lock()
		c.faults = append(c.faults, &fault.Fault{Kind: kind, Delivery: fault.Answered, Evidence: fault.Evidence{Text: text}})
		c.mu.Unlock()
		c.replaceArguments(better, misfit{ByModel: true})
		c.gate()
	default:
		result := o.Reply.Result()
		if len(result) > 0 && result[0] == '{' {
			data, _ := json.Marshal(map[string]json.RawMessage{"suggested_arguments": better})
			result = wire.Set(result, data, "_meta", MetaArguments)
			o.Reply = o.Reply.WithResult(withText(result, "Suggested arguments: "+string(better)))
		}
		c.settle(Reply{Msg: o.Reply, Status: o.Status})
	}
}

// toolError reads the error out of a reply: a JSON-RPC error, or a result that
// says it is one.
func toolError(reply *wire.Message) (text string, code int, failed bool) {
	if reply.Error() != nil {
		code, text = wire.ErrorOf(reply)
		return text, code, true
	}
	if flag, _ := wire.Member(reply.Result(), "isError"); string(flag) != "true" {
		return "", 0, false
	}
	content, _ := wire.Member(reply.Result(), "content")
	wire.EachElement(content, func(item []byte) {
		raw, _ := wire.Member(item, "text")
		if words, ok := wire.StringValue(raw); ok && text == "" {
			text = words
		}
	})
	return text, 0, true
}

// rename finds the tool that was meant by a name nobody has.
func (c *Call) rename() {
	server := c.session.server
	names := server.tools.names()
	name, ok := arguments.RepairName(c.name, names)
	if !ok {
		return
	}
	meant := server.tools.find(name)
	effect, byUser := server.tools.effect(name, meant)
	if !server.options.Arguments.policy().Permits(risk(effect), arguments.RuleToolName) {
		return
	}
	change := arguments.Change{Path: "/name", From: c.name, To: name, Rule: arguments.RuleToolName}
	c.name, c.tool, c.effect, c.byUser = name, meant, effect, byUser
	c.rewrite(wire.Set(c.Msg.Params(), wire.AppendString(nil, name), "name"))
	c.misfit = &misfit{Changes: []arguments.Change{change}}
}

func (o *ArgumentOptions) policy() arguments.Policy {
	if o.Policy == "" {
		return arguments.Balanced
	}
	return o.Policy
}

// annotate adds to a server's reply what was changed about the call, and, if it is
// an error about arguments that we saw coming, what would be right.
func (c *Call) annotate(o *upstream.Outcome) {
	result := o.Reply.Result()
	if c.misfit == nil || len(result) == 0 || result[0] != '{' {
		return
	}
	failed, _ := wire.Member(result, "isError")
	if c.misfit.Explanation != nil && string(failed) != "true" {
		return // the server took what its own schema does not: it knows better
	}
	data, _ := json.Marshal(c.misfit)
	result = wire.Set(result, data, "_meta", MetaArguments)
	if c.misfit.Explanation != nil {
		result = withText(result, c.misfit.Explanation.Text)
	}
	o.Reply = o.Reply.WithResult(result)
}

// withText adds a text to the content of a result.
func withText(result []byte, text string) []byte {
	item := append(wire.AppendString([]byte(`{"type":"text","text":`), text), '}')
	content, ok := wire.Member(result, "content")
	if !ok || len(content) == 0 || content[0] != '[' {
		return result
	}
	var items [][]byte
	wire.EachElement(content, func(each []byte) { items = append(items, each) })
	items = append(items, item)
	joined := []byte{'['}
	for i, each := range items {
		if i > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, each...)
	}
	return wire.Set(result, append(joined, ']'), "content")
}

// failures counts how often the same call has failed in one session.
type failures struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]int
}

const mostFailures = 256

// failedBefore says how often this very call failed before, and counts it.
func (s *Session) failedBefore(tool string, args []byte) int {
	key := sha256.Sum256(append([]byte(tool+"\x00"), args...))
	s.failures.mu.Lock()
	defer s.failures.mu.Unlock()
	if s.failures.seen == nil || len(s.failures.seen) >= mostFailures {
		s.failures.seen = make(map[[sha256.Size]byte]int)
	}
	n := s.failures.seen[key]
	s.failures.seen[key] = n + 1
	return n
}
