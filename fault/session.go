package fault

import "strings"

// SessionIsLost reports whether an answer to a request that named a session means
// that the server no longer knows it. status is that of HTTP; text is the
// message of the JSON-RPC error in the answer, or the whole body where there is
// none.
//
// The protocol says 404 for this, and servers say almost anything. A status other
// than 404 needs words that can mean nothing else; a 200 should be confirmed
// before it is believed, because a tool may speak of sessions of its own.
func SessionIsLost(status int, text string) bool {
	switch status {
	case 404:
		return true
	case 200, 400, 401, 409, 410:
	default:
		return false
	}
	text = strings.ToLower(text)
	for _, words := range lostSession {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

var lostSession = [...]string{
	"session not found",
	"no valid session id",
	"invalid session id",
	"unknown mcp-session-id",
	"unknown session",
	"stale mcp-session-id",
	"session terminated",
	"session expired",
	"session has expired",
	"session has been terminated",
	"server not initialized",
}
