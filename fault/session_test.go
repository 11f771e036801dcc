package fault

import "testing"

// The texts are those that servers were seen to send.
func TestRecognisesALostSession(t *testing.T) {
	for _, test := range []struct {
		status int
		text   string
		want   bool
	}{
		{404, "Session not found", true},
		{404, "Not Found: Invalid session ID", true},
		{404, "404 page not found", true},
		{404, "", true},
		{400, "Bad Request: No valid session ID provided", true},
		{400, "Bad Request: Unknown Mcp-Session-Id header", true},
		{400, "Bad Request: Server not initialized", true},
		{401, "Unauthorized: Session not found", true},
		{409, "stale Mcp-Session-Id", true},
		{200, "Session not found", true},
		{200, "Session terminated", true},

		{400, "Bad Request: Unsupported protocol version (supported versions: 2025-11-25)", false},
		{400, "Bad Request: Missing session ID", false}, // ours was sent; something on the way drops it
		{401, "invalid_token", false},
		{403, "Session not found", false},
		{409, "conflict", false},
		{500, "Session not found", false},
		{200, "no such file", false},
	} {
		if got := SessionIsLost(test.status, test.text); got != test.want {
			t.Errorf("SessionIsLost(%d, %q) = %v, want %v", test.status, test.text, got, test.want)
		}
	}
}
