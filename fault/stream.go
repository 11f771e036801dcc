package fault

import "strings"

// StreamNeverTaken reports whether the error of an HTTP/2 request proves that the
// server never looked at it: it said with GOAWAY which stream was its last, and
// this one came later. A stream that is merely reset, by whatever code, may have
// been worked on before.
func StreamNeverTaken(text string) bool {
	return strings.Contains(text, "received Server's graceful shutdown GOAWAY")
}
