// Package mcpmend keeps MCP servers working: under an unmodified go-sdk client with
// [Transport], and inside a go-sdk server with [Middleware].
//
// # For clients
//
// A [Transport] is an mcp.Transport. Give it a command or a URL and connect a
// client over it:
//
//	t := &mcpmend.Transport{Command: []string{"npx", "-y", "@modelcontextprotocol/server-everything"}}
//	defer t.Close()
//
//	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
//	session, err := client.Connect(ctx, t, nil)
//
// The session works as it would over the SDK's own transports, with these
// differences: lines on the server's stdout that are no messages are skipped; a
// reply too large or too deep fails its own call and no other; a process that
// does not read blocks nobody; what the server has started and not detached ends
// with the session; and when the server dies it is started again for the next call.
//
// A call that could not be finished returns a [CallError], which says whether the
// tool ran:
//
//	_, err := session.CallTool(ctx, params)
//	var failed *mcpmend.CallError
//	if errors.As(err, &failed) && failed.Outcome == mcpmend.NotExecuted {
//		// it is safe to try again
//	}
//
// The Model Context Protocol has no way to make a call twice and have it run
// once. So a call whose outcome is unknown is never repeated, here or by you,
// before somebody has looked.
//
// # For servers
//
// A [Middleware] checks the arguments of each call before its tool runs, mends them
// when their meaning is certain, and explains them when it is not:
//
//	server.AddReceivingMiddleware(mcpmend.Middleware(mcpmend.MiddlewareOptions{
//		Limits: map[string]mcpmend.Limit{"*": {Timeout: 30 * time.Second, MaxConcurrent: 8}},
//	}))
//
// It also cures a crash of go-sdk v1.8.0, which a client can cause with null for the
// arguments of a tool whose schema has a default, and turns a panic of a tool into an
// error of that one call. What the runtime does not let anybody recover from, such
// as a concurrent map write, still ends the process.
//
// A server that is not made with go-sdk does the same with package
// [github.com/mcpmend/mcpmend/arguments], whose functions take and return bytes:
// Compile the tool's schema once, Repair each call, and answer with Explain what was
// not mended.
package mcpmend
