package fault

import "fmt"

// Refusal is why a server turned a request away before running it. The zero
// value is a refusal for good.
type Refusal uint8

const (
	// ForGood: the same request will be refused again.
	ForGood Refusal = iota
	// SessionLost: a new session has to be opened first.
	SessionLost
	// SignInExpired: the access token has to be renewed first. A second one in a row
	// is a refusal for good, and the caller says so by passing ForGood.
	SignInExpired
	// Throttled: the time the server asked for has to pass first.
	Throttled
	// StreamRefused: HTTP/2 never took the stream; nothing has to be done first. See
	// StreamNeverTaken: a reset stream alone proves nothing.
	StreamRefused
	// LoadShed: the server asked to be called again, without a question to answer.
	LoadShed
	// WrongVersion: a version both sides know has to be chosen first.
	WrongVersion
	// StaleHeaders: the tools have to be listed anew first, since the headers made
	// from their definitions did not fit.
	StaleHeaders
)

var refusalNames = [...]string{
	"for good", "session lost", "sign-in expired", "throttled", "stream refused", "load shed", "wrong version", "stale headers",
}

func (r Refusal) String() string {
	if int(r) < len(refusalNames) {
		return refusalNames[r]
	}
	return fmt.Sprintf("Refusal(%d)", r)
}

// passes says that the request may be taken once something was done or some time
// has passed.
func (r Refusal) passes() bool { return r != ForGood && int(r) < len(refusalNames) }

// NeverExecuted reports whether a JSON-RPC code says by itself that the request was
// turned away before anything ran. Every other error that names the request is an
// answer to it, whatever the HTTP status it came with: the tool may have run.
func NeverExecuted(code int) bool {
	return code == -32700 || code >= -32602 && code <= -32600 || code >= -32022 && code <= -32020
}

// RefusalOf says whether an error answer proves that the request was not run, and
// why it was turned away. The evidence is that of the answer alone: HTTP status,
// JSON-RPC code and text. What it does not recognise may have run.
func RefusalOf(e Evidence) (Refusal, bool) {
	if e.HTTPStatus == 404 && e.HadSession {
		return SessionLost, true
	}
	if StreamNeverTaken(e.Text) {
		return StreamRefused, true
	}
	switch Diagnose(Evidence{Text: e.Text, HTTPStatus: e.HTTPStatus, RPCCode: e.RPCCode, HadSession: e.HadSession}).Kind {
	case OutputSchema, ResultTooLarge:
		return ForGood, false // the tool has run, whatever the code says
	case SessionExpired:
		// Servers say this with 400, 401, 404 and 409. In an answer with status 200
		// the words may be the tool's own, about a session of its own.
		if e.HTTPStatus >= 400 && e.HTTPStatus < 500 {
			return SessionLost, true
		}
	}
	switch e.HTTPStatus {
	case 401:
		return SignInExpired, true
	case 429:
		return Throttled, true
	case 403, 405, 413, 415:
		return ForGood, true
	}
	switch e.RPCCode {
	case -32022:
		return WrongVersion, true
	case -32020:
		return StaleHeaders, true
	case -32700, -32600, -32601, -32602, -32021:
		return ForGood, true
	}
	return ForGood, false
}
