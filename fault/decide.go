package fault

import "strings"

// Attempt is one attempt of one request that did not bring an answer to its
// caller, or that did: then there is nothing to decide.
type Attempt struct {
	// Method is the JSON-RPC method; empty means "tools/call".
	Method string
	// Effect of the tool, for tools/call; ByUser says that it is the user's own
	// word. See Policy.Effect.
	Effect Effect
	ByUser bool
	// Delivery is how far the request got.
	Delivery Delivery
	// Alive: for Silent, the connection still stands and only the time is up.
	Alive bool
	// Refusal: for Refused, why. See RefusalOf.
	Refusal Refusal
	// Continuation: the request carries answers of a person or a requestState, so
	// it is not the first round of its exchange.
	Continuation bool
	// Stateful: the user marked the server as one that remembers between calls.
	Stateful bool
	// Queued: for Cancelled, the request had not left us yet.
	Queued bool
	// Resent counts how often the request was sent again already, other than for
	// having been Unsent, Unparseable or Unread.
	Resent int
	// Before is the Outcome decided after the attempt before this one, empty for
	// the first. What may have run then may have run, however this one ended.
	Before Outcome
}

// Action is what to do next.
type Action uint8

const (
	// Settle: do not send the request again; tell the caller.
	Settle Action = iota
	// SendAgain: send it again with a new id, at once.
	SendAgain
	// WaitThenSend: send it, with a new id if it was sent before, when the server is
	// ready and what the refusal asked for was done.
	WaitThenSend
)

func (a Action) String() string {
	return [...]string{"settle", "send again", "wait, then send"}[min(a, WaitThenSend)]
}

// Outcome is what is known of a call's execution.
type Outcome string

const (
	// Executed: the server answered; the tool ran, well or not.
	Executed Outcome = "executed"
	// NotExecuted: the tool certainly did not run.
	NotExecuted Outcome = "not_executed"
	// OutcomeUnknown: the tool may have run.
	OutcomeUnknown Outcome = "unknown"
)

// Decision says what may be done after an attempt. Before any sending the caller
// of Decide also checks what only it knows: that the server is a new or
// re-validated one, that the tool's definition is still the one the client saw, that
// the breaker is closed, and that the deadline leaves time.
type Decision struct {
	Action Action
	// Outcome is what to report if the call ends here: because the action is
	// Settle, or because a limit below stands against sending.
	Outcome Outcome
	// Times is how often the request may be sent again in all, 0 for as often as
	// the deadline and the budget allow.
	Times int
	// CancelFirst: tell the server to give the first attempt up before going on.
	CancelFirst bool
	// FirstHalf: only while less than half of the time to the deadline is used.
	FirstHalf bool
	// SameKey: the request must carry the same key again.
	SameKey bool
	// Free: takes nothing from the retry budget.
	Free bool
	// Reason says why, in a few words.
	Reason string
}

// Decide says whether a request may be sent again. It answers from one table
// and nothing else; a situation that is not in the table settles as unknown.
func Decide(a Attempt) Decision {
	d := look(a)
	if a.Delivery == Refused && d.Action != Settle && a.Resent > 0 {
		d.Free = false // only the first one costs nothing
	}
	if a.Before == OutcomeUnknown && d.Outcome == NotExecuted {
		d.Outcome = OutcomeUnknown
	}
	if d.Action != Settle && d.Times > 0 && a.Resent >= d.Times {
		d.Action, d.Reason = Settle, d.Reason+"; it was sent again already"
	}
	return d
}

func look(a Attempt) Decision {
	row := situationOf(a)
	if row == situations {
		return Decision{Outcome: OutcomeUnknown, Reason: "how far it got is not known"}
	}
	return a.adjust(table[row][columnOf(a)])
}

// adjust applies what depends on more than the two sides of the table.
func (a Attempt) adjust(d Decision) Decision {
	switch {
	case a.Delivery == Cancelled && a.Queued:
		d.Outcome, d.CancelFirst = NotExecuted, false
	case a.Delivery == Refused && a.Refusal == LoadShed && d.Action != Settle:
		d.Times = 3
	case a.Delivery == Refused && a.Refusal == SessionLost && a.Stateful && columnOf(a) == destructive:
		return Decision{Outcome: NotExecuted, Reason: "the session was reset, and with it what the server remembered"}
	}
	return d
}

// situation is a row of the rules.
type situation uint8

const (
	unsent situation = iota
	unparseable
	unread
	silentLost
	silentAlive
	started
	partial
	refusedForNow
	refusedForGood
	answered
	cancelled
	situations
)

func situationOf(a Attempt) situation {
	switch a.Delivery {
	case Unsent:
		return unsent
	case Unparseable:
		return unparseable
	case Unread:
		return unread
	case Silent:
		if a.Alive {
			return silentAlive
		}
		return silentLost
	case Started:
		return started
	case Partial:
		return partial
	case Refused:
		if a.Refusal.passes() {
			return refusedForNow
		}
		return refusedForGood
	case Answered:
		return answered
	case Cancelled:
		return cancelled
	}
	return situations
}

// column is a column of the rules: the effect of a tool, or the sort of method.
type column uint8

const (
	readOnly column = iota
	idempotent
	keyed
	unstated
	destructive
	safe      // a method that changes nothing and may be repeated freely
	listening // subscriptions/listen, which is meant to be opened again
	oneWay    // what is sent at most once and never kept
	columns
)

func columnOf(a Attempt) column {
	c := columnOfMethod(a)
	// An answer of a person was used up, and the server may take its state only
	// once: what may have arrived must not go there twice. Read-only is believed of
	// such a call only if the user says so.
	if a.Continuation && !(c == readOnly && a.ByUser) && c < unstated {
		switch a.Delivery {
		case Silent, Started, Partial:
			return unstated
		}
	}
	return c
}

func columnOfMethod(a Attempt) column {
	switch a.Method {
	case "", "tools/call":
		return columnOfEffect(a.Effect)
	case "resources/read", "prompts/get":
		return readOnly
	case "tasks/cancel", "tasks/update":
		return idempotent
	case "subscriptions/listen":
		return listening
	case "initialize", "server/discover", "ping",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list",
		"completion/complete", "tasks/get", "tasks/list", "logging/setLevel",
		"resources/subscribe", "resources/unsubscribe":
		return safe
	case "sampling/createMessage", "elicitation/create", "roots/list":
		// Requests of a server are bound to the very process that made them.
		return oneWay
	}
	if strings.HasPrefix(a.Method, "notifications/") {
		return oneWay
	}
	return destructive
}

func columnOfEffect(e Effect) column {
	switch e {
	case ReadOnly:
		return readOnly
	case Idempotent:
		return idempotent
	case Keyed:
		return keyed
	case Unstated:
		return unstated
	}
	return destructive
}

// rules is the rule book: what to do after an attempt that got as far as the row
// says, for a call whose second execution would do what the column says. The last
// three columns are the other methods. The words are explained below, the reasons
// in docs/RELIABILITY.md.
const rules = `
                 read-only idempotent keyed   unstated destructive | safe   listening one-way
unsent           ready     ready      ready   ready    ready       | ready  ready     no
unparseable      resend    resend     resend  resend   resend      | resend resend    no
unread           resend    resend     resend  resend   resend      | resend resend    no
silent,lost      once      once       samekey unknown  unknown     | freely freely    unknown
silent,alive     recall    giveup     samekey giveup   giveup      | freely freely    unknown
started          early     unknown    samekey unknown  unknown     | freely freely    unknown
partial          once      once       samekey unknown  unknown     | freely freely    unknown
refused,for-now  after     after      after   after1   after1      | after  after     no
refused,for-good no        no         no      no       no          | no     no        no
answered         done      done       done    done     done        | done   done      done
cancelled        gone      gone       gone    gone     gone        | gone   gone      gone
`

var words = map[string]Decision{
	// Send when the server is ready.
	"ready": {Action: WaitThenSend, Outcome: NotExecuted, Free: true},
	// Send again: it cannot have run.
	"resend": {Action: SendAgain, Outcome: NotExecuted, Free: true},
	// Send again one time; after cancelling the first; in the first half of the deadline.
	"once":   {Action: SendAgain, Outcome: OutcomeUnknown, Times: 1},
	"recall": {Action: SendAgain, Outcome: OutcomeUnknown, Times: 1, CancelFirst: true},
	"early":  {Action: SendAgain, Outcome: OutcomeUnknown, Times: 1, FirstHalf: true},
	// Send again as often as deadline and budget allow; the same, with the same key.
	"freely":  {Action: SendAgain, Outcome: OutcomeUnknown},
	"samekey": {Action: SendAgain, Outcome: OutcomeUnknown, SameKey: true},
	// Do what the refusal asks for, then send again: the first time at no cost, then
	// by budget; or one time only.
	"after":  {Action: WaitThenSend, Outcome: NotExecuted, Free: true},
	"after1": {Action: WaitThenSend, Outcome: NotExecuted, Free: true, Times: 1},
	// Settle: it may have run; it may still be running; it did not run; it is done;
	// nobody waits for it any more.
	"unknown": {Outcome: OutcomeUnknown},
	"giveup":  {Outcome: OutcomeUnknown, CancelFirst: true},
	"no":      {Outcome: NotExecuted},
	"done":    {Outcome: Executed},
	"gone":    {Outcome: OutcomeUnknown, CancelFirst: true},
}

var reasons = [...]string{
	unsent:         "no byte of it left us",
	unparseable:    "the server is gone and was handed less than the whole request",
	unread:         "the server is dead and part of the request was found unread",
	silentLost:     "it was handed over whole, and the connection was lost before anything came back",
	silentAlive:    "it was handed over whole, and nothing came back in time",
	started:        "it had begun to run",
	partial:        "its reply broke off",
	refusedForNow:  "the server refused it before running it, for a reason that passes",
	refusedForGood: "the server refused it before running it",
	answered:       "it was answered",
	cancelled:      "its caller gave it up",
}

// table is rules, ready to be looked up.
var table = func() (t [situations][columns]Decision) {
	lines := strings.Split(strings.TrimSpace(rules), "\n")[1:]
	if len(lines) != int(situations) {
		panic("fault: the rules have a row too many or too few")
	}
	for row, line := range lines {
		cells := strings.Fields(strings.ReplaceAll(line, "|", " "))[1:]
		if len(cells) != int(columns) {
			panic("fault: a cell too many or too few in " + line)
		}
		for col, word := range cells {
			d, ok := words[word]
			if !ok {
				panic("fault: nobody has explained " + word)
			}
			d.Reason = reasons[row]
			t[row][col] = d
		}
	}
	return t
}()
