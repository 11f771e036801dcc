// Package upstream keeps one server reachable: it starts or dials it, finds out
// which era of MCP it speaks, passes requests to it and says what became of each.
//
// In comes a [Call]: a client's request, its bytes untouched. Out comes exactly
// one [Outcome]: the server's reply, or a fault with what is known about how far
// the request got. Whether to send it again is not decided here.
//
// A [Server] is a configured server and what has been learned about it. A
// [Session] is one client's conversation with it. A link is one live connection:
// a child process, an HTTP endpoint, or the old pair of SSE stream and POST. The
// session chooses the link and the dialect, which is plain relay where client and
// server are of one era, and a bridge where they are not.
package upstream
