package fault

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	allDeliveries = []Delivery{Unsent, Unparseable, Unread, Silent, Started, Partial, Refused, Answered, Cancelled}
	allEffects    = []Effect{ReadOnly, Idempotent, Keyed, Unstated, Destructive}
	allRefusals   = []Refusal{ForGood, SessionLost, SignInExpired, Throttled, StreamRefused, LoadShed, WrongVersion, StaleHeaders}
	allMethods    = []string{"", "tools/call", "resources/read", "prompts/get", "tools/list", "ping", "initialize", "server/discover",
		"completion/complete", "tasks/get", "tasks/cancel", "tasks/update", "subscriptions/listen", "notifications/cancelled",
		"sampling/createMessage", "vendor/anything"}
)

// everyAttempt calls f with every combination there is, and with a few that
// cannot be.
func everyAttempt(f func(Attempt)) {
	bools := []bool{false, true}
	for _, method := range allMethods {
		for _, effect := range append(allEffects, 77) {
			for _, delivery := range append(allDeliveries, 77) {
				for _, refusal := range append(allRefusals, 77) {
					if delivery != Refused && refusal != ForGood {
						continue
					}
					for bits := range 32 {
						for resent := range 5 {
							f(Attempt{Method: method, Effect: effect, Delivery: delivery, Refusal: refusal, Resent: resent,
								ByUser: bools[bits&1], Alive: bools[bits>>1&1], Continuation: bools[bits>>2&1], Stateful: bools[bits>>3&1], Queued: bools[bits>>4&1]})
						}
					}
				}
			}
		}
	}
}

// A promise of the whole program: what may have run is not run again, unless
// that is known to do no harm.
func TestWhatMayHaveRunIsNeverSentAgain(t *testing.T) {
	n := 0
	everyAttempt(func(a Attempt) {
		n++
		d := Decide(a)
		mayHaveRun := slices.Contains([]Delivery{Silent, Started, Partial}, a.Delivery)
		harmful := (a.Method == "" || a.Method == "tools/call") && (a.Effect == Unstated || a.Effect == Destructive || a.Effect > ReadOnly)
		harmful = harmful || a.Method == "vendor/anything"
		switch {
		case d.Action == Settle:
		case mayHaveRun && harmful:
			t.Fatalf("Decide(%+v) = %+v", a, d)
		case a.Delivery == Answered || a.Delivery == Cancelled || a.Delivery > Cancelled:
			t.Fatalf("Decide(%+v) = %+v", a, d)
		case a.Continuation && mayHaveRun && (a.Effect != ReadOnly || !a.ByUser) && (a.Method == "" || a.Method == "tools/call"):
			t.Fatalf("the answer of a person is used twice: Decide(%+v) = %+v", a, d)
		}
	})
	t.Logf("%d attempts", n)
}

func TestOutcomesAreHonest(t *testing.T) {
	everyAttempt(func(a Attempt) {
		d := Decide(a)
		var want []Outcome
		switch a.Delivery {
		case Unsent, Unparseable, Unread, Refused:
			want = []Outcome{NotExecuted}
		case Silent, Started, Partial:
			want = []Outcome{OutcomeUnknown}
		case Answered:
			want = []Outcome{Executed}
		case Cancelled:
			want = []Outcome{OutcomeUnknown}
			if a.Queued {
				want = []Outcome{NotExecuted}
			}
		default:
			want = []Outcome{OutcomeUnknown}
		}
		if !slices.Contains(want, d.Outcome) {
			t.Fatalf("Decide(%+v) = %+v, want outcome %v", a, d, want)
		}
		if d.Reason == "" {
			t.Fatalf("Decide(%+v) gives no reason", a)
		}
	})
}

func TestWhatMayHaveRunBeforeMayHaveRun(t *testing.T) {
	first := Decide(Attempt{Effect: ReadOnly, Delivery: Silent})
	second := Decide(Attempt{Effect: ReadOnly, Delivery: Unsent, Resent: 1, Before: first.Outcome})
	if second.Outcome != OutcomeUnknown {
		t.Errorf("got %q, want %q: the first attempt may have run", second.Outcome, OutcomeUnknown)
	}
}

// Whatever the guard does, a call is sent a bounded number of times for each
// reason that may have cost something.
func TestLimitsEndTheSending(t *testing.T) {
	everyAttempt(func(a Attempt) {
		if d := Decide(a); d.Action != Settle && d.Times > 0 && a.Resent >= d.Times {
			t.Fatalf("Decide(%+v) = %+v", a, d)
		}
	})
}

// TestTheRulesInWords shows every decision of the table, spelled out by Decide
// itself, in testdata/decide.txt.
func TestTheRulesInWords(t *testing.T) {
	var b strings.Builder
	b.WriteString("What is decided after an attempt of tools/call, by how far it got and by the tool's effect.\n\n")
	rows := []struct {
		name string
		a    Attempt
	}{
		{"unsent", Attempt{Delivery: Unsent}},
		{"unparseable", Attempt{Delivery: Unparseable}},
		{"unread", Attempt{Delivery: Unread}},
		{"silent, connection lost", Attempt{Delivery: Silent}},
		{"silent, connection alive", Attempt{Delivery: Silent, Alive: true}},
		{"started", Attempt{Delivery: Started}},
		{"partial", Attempt{Delivery: Partial}},
		{"refused, session lost", Attempt{Delivery: Refused, Refusal: SessionLost}},
		{"refused, session lost, stateful", Attempt{Delivery: Refused, Refusal: SessionLost, Stateful: true}},
		{"refused, throttled", Attempt{Delivery: Refused, Refusal: Throttled}},
		{"refused, throttled, the second time", Attempt{Delivery: Refused, Refusal: Throttled, Resent: 1}},
		{"refused, load shed", Attempt{Delivery: Refused, Refusal: LoadShed}},
		{"refused, for good", Attempt{Delivery: Refused}},
		{"answered", Attempt{Delivery: Answered}},
		{"cancelled", Attempt{Delivery: Cancelled}},
		{"cancelled, still queued", Attempt{Delivery: Cancelled, Queued: true}},
		{"silent, lost, sent again once", Attempt{Delivery: Silent, Resent: 1}},
		{"continuation, unsent", Attempt{Delivery: Unsent, Continuation: true}},
		{"continuation, unread", Attempt{Delivery: Unread, Continuation: true}},
		{"continuation, silent", Attempt{Delivery: Silent, Continuation: true}},
		{"continuation, silent, user's word", Attempt{Delivery: Silent, Continuation: true, ByUser: true}},
		{"continuation, partial", Attempt{Delivery: Partial, Continuation: true}},
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "%s: %s\n", row.name, Decide(row.a).Reason)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, effect := range allEffects {
			row.a.Effect = effect
			fmt.Fprintf(w, "  %s\t%s\n", effect, inWords(Decide(row.a)))
		}
		w.Flush()
	}
	b.WriteString("\nOther methods.\n\n")
	for _, method := range allMethods[2:] {
		fmt.Fprintf(&b, "%s\n", method)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range rows[:7] {
			row.a.Method = method
			fmt.Fprintf(w, "  %s\t%s\n", row.name, inWords(Decide(row.a)))
		}
		w.Flush()
	}
	const golden = "testdata/decide.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the decisions have changed; if that is meant, run with -update (-want +got):\n%s", diff)
	}
}

func inWords(d Decision) string {
	say := []string{d.Action.String()}
	if d.CancelFirst {
		say[0] = "cancel, " + say[0]
	}
	if d.Action != Settle {
		if d.Times > 0 {
			say = append(say, fmt.Sprintf("at most %d×", d.Times))
		}
		if d.FirstHalf {
			say = append(say, "in the first half of the deadline")
		}
		if d.SameKey {
			say = append(say, "with the same key")
		}
		if d.Free {
			say = append(say, "at no cost")
		}
	}
	if d.Action == Settle {
		return say[0] + " as " + string(d.Outcome)
	}
	return strings.Join(say, ", ") + "; else " + string(d.Outcome)
}

func TestTheRulesAreThoseOfTheSpecification(t *testing.T) {
	// Written by hand from the specification, not from the code.
	const again, wait, settle = SendAgain, WaitThenSend, Settle
	for _, test := range []struct {
		name string
		a    Attempt
		want [5]Action // read-only, idempotent, keyed, unstated, destructive
	}{
		{"unsent", Attempt{Delivery: Unsent}, [5]Action{wait, wait, wait, wait, wait}},
		{"unparseable", Attempt{Delivery: Unparseable}, [5]Action{again, again, again, again, again}},
		{"proven unread", Attempt{Delivery: Unread}, [5]Action{again, again, again, again, again}},
		{"sent, silent, lost", Attempt{Delivery: Silent}, [5]Action{again, again, again, settle, settle}},
		{"sent, silent, alive", Attempt{Delivery: Silent, Alive: true}, [5]Action{again, settle, again, settle, settle}},
		{"started", Attempt{Delivery: Started}, [5]Action{again, settle, again, settle, settle}},
		{"partial", Attempt{Delivery: Partial}, [5]Action{again, again, again, settle, settle}},
		{"refused for now", Attempt{Delivery: Refused, Refusal: Throttled}, [5]Action{wait, wait, wait, wait, wait}},
		{"refused for now, twice", Attempt{Delivery: Refused, Refusal: Throttled, Resent: 1}, [5]Action{wait, wait, wait, settle, settle}},
		{"session of a stateful server", Attempt{Delivery: Refused, Refusal: SessionLost, Stateful: true}, [5]Action{wait, wait, wait, wait, settle}},
		{"refused for good", Attempt{Delivery: Refused}, [5]Action{}},
		{"answered", Attempt{Delivery: Answered}, [5]Action{}},
		{"cancelled", Attempt{Delivery: Cancelled}, [5]Action{}},
	} {
		for i, effect := range allEffects {
			test.a.Effect = effect
			if got := Decide(test.a).Action; got != test.want[i] {
				t.Errorf("%s, %s: got %v, want %v", test.name, effect, got, test.want[i])
			}
		}
	}
}

func TestEffectComesFromTheUserThenFromBelievedAnnotations(t *testing.T) {
	overrides := map[string]Effect{"pay": Keyed, "*": Idempotent}
	for _, test := range []struct {
		name        string
		policy      Policy
		tool        string
		annotations string
		want        Effect
		byUser      bool
	}{
		{"nothing said", Policy{}, "t", ``, Destructive, false},
		{"nothing believed", Policy{}, "t", `{"readOnlyHint":true}`, Destructive, false},
		{"none by name", Policy{Trust: TrustNone}, "t", `{"readOnlyHint":true}`, Destructive, false},
		{"a trust nobody knows", Policy{Trust: "most"}, "t", `{"readOnlyHint":true}`, Destructive, false},
		{"read-only believed", Policy{Trust: TrustReadOnly}, "t", `{"readOnlyHint":true}`, ReadOnly, false},
		{"idempotent not believed", Policy{Trust: TrustReadOnly}, "t", `{"idempotentHint":true,"destructiveHint":false}`, Destructive, false},
		{"idempotent believed", Policy{Trust: TrustAll}, "t", `{"idempotentHint":true}`, Idempotent, false},
		{"additive believed", Policy{Trust: TrustAll}, "t", `{"destructiveHint":false}`, Unstated, false},
		{"defaults of the protocol", Policy{Trust: TrustAll}, "t", `{"title":"T"}`, Destructive, false},
		{"null", Policy{Trust: TrustAll}, "t", `null`, Destructive, false},
		{"a contradiction", Policy{Trust: TrustAll}, "t", `{"readOnlyHint":true,"destructiveHint":true}`, Destructive, false},
		{"a contradiction, read-only believed", Policy{Trust: TrustReadOnly}, "t", `{"readOnlyHint":true,"destructiveHint":true}`, Destructive, false},
		{"the same name twice", Policy{Trust: TrustAll}, "t", `{"readOnlyHint":false,"readOnlyHint":true}`, Destructive, false},
		{"another case", Policy{Trust: TrustAll}, "t", `{"ReadOnlyHint":true}`, Destructive, false},
		{"no boolean", Policy{Trust: TrustAll}, "t", `{"readOnlyHint":"true"}`, Destructive, false},
		{"no object", Policy{Trust: TrustAll}, "t", `[true]`, Destructive, false},
		{"cut off", Policy{Trust: TrustAll}, "t", `{"readOnlyHint":true`, Destructive, false},
		{"the user's word", Policy{Tools: overrides}, "pay", `{"readOnlyHint":true}`, Keyed, true},
		{"the user's word for all others", Policy{Tools: overrides}, "t", ``, Idempotent, true},
		{"the user's word may be the worse", Policy{Trust: TrustAll, Tools: map[string]Effect{"t": Destructive}}, "t", `{"readOnlyHint":true}`, Destructive, true},
	} {
		got, byUser := test.policy.Effect(test.tool, json.RawMessage(test.annotations))
		if got != test.want || byUser != test.byUser {
			t.Errorf("%s: got %v, by user %v; want %v, %v", test.name, got, byUser, test.want, test.byUser)
		}
	}
}

func TestRefusalsProveThatNothingRan(t *testing.T) {
	for _, test := range []struct {
		name    string
		e       Evidence
		want    Refusal
		refused bool
	}{
		{"404 with a session", Evidence{HTTPStatus: 404, HadSession: true}, SessionLost, true},
		{"404 without one", Evidence{HTTPStatus: 404}, ForGood, false},
		{"400 in words", Evidence{HTTPStatus: 400, RPCCode: -32000, Text: "Bad Request: No valid session ID provided"}, SessionLost, true},
		{"401 in words", Evidence{HTTPStatus: 401, Text: "Unauthorized: Session not found"}, SessionLost, true},
		{"a tool's own session", Evidence{HTTPStatus: 200, RPCCode: -32000, Text: "Session not found"}, ForGood, false},
		{"401", Evidence{HTTPStatus: 401}, SignInExpired, true},
		{"403", Evidence{HTTPStatus: 403}, ForGood, true},
		{"429", Evidence{HTTPStatus: 429}, Throttled, true},
		{"400 for its headers", Evidence{HTTPStatus: 400, RPCCode: -32020}, StaleHeaders, true},
		{"400 for its version", Evidence{HTTPStatus: 400, RPCCode: -32022}, WrongVersion, true},
		{"400 alone", Evidence{HTTPStatus: 400}, ForGood, false},
		{"500", Evidence{HTTPStatus: 500}, ForGood, false},
		{"502", Evidence{HTTPStatus: 502}, ForGood, false},
		{"503", Evidence{HTTPStatus: 503, RetryAfter: time.Second}, ForGood, false},
		{"504", Evidence{HTTPStatus: 504}, ForGood, false},
		{"-32602", Evidence{RPCCode: -32602, Text: "Unknown tool: x"}, ForGood, true},
		{"-32602 after the tool ran", Evidence{RPCCode: -32602, Text: "Structured content does not match the tool's output schema"}, ForGood, false},
		{"-32603", Evidence{RPCCode: -32603}, ForGood, false},
		{"a connection that was leaving before the request was written", Evidence{Text: "net/http: cannot rewind body after connection loss"}, StreamRefused, true},
		{"a stream behind the last one of GOAWAY", Evidence{Text: "http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY] after Request.Body was written; define Request.GetBody to avoid this error"}, StreamRefused, true},
		{"a stream that was reset", Evidence{Text: "http2: Transport: cannot retry err [stream error: stream ID 3; REFUSED_STREAM; received from peer] after Request.Body was written; define Request.GetBody to avoid this error"}, ForGood, false},
		{"-32000", Evidence{RPCCode: -32000}, ForGood, false},
	} {
		if got, refused := RefusalOf(test.e); got != test.want || refused != test.refused {
			t.Errorf("%s: got %v, %v; want %v, %v", test.name, got, refused, test.want, test.refused)
		}
	}
}

func TestOnlyCodesOfTheProtocolProveThatNothingRan(t *testing.T) {
	for code, want := range map[int]bool{
		-32700: true, -32600: true, -32601: true, -32602: true, -32603: false, -32599: false, -32000: false, -32001: false,
		-32019: false, -32020: true, -32021: true, -32022: true, -32023: false, -32699: false, 0: false, 404: false,
	} {
		if got := NeverExecuted(code); got != want {
			t.Errorf("NeverExecuted(%d) = %v, want %v", code, got, want)
		}
	}
}
