package fault

import "strings"

// StreamNeverTaken reports whether the error of an HTTP/2 request proves that the
// server never looked at it: it said with GOAWAY which stream was its last, and
// this one came later; or the connection was already leaving when the request was
// about to be written to it. A stream that is merely reset, by whatever code, may
// have been worked on before.
func StreamNeverTaken(text string) bool {
	return strings.Contains(text, "received Server's graceful shutdown GOAWAY") ||
		// net/http says this of a request without GetBody only where it found no
		// connection to write it to, after one that could not take it any more.
		strings.Contains(text, "net/http: cannot rewind body after connection loss")
}
