// Package mcpmend keeps MCP servers working under an unmodified go-sdk client.
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
// does not read blocks nobody; the whole process group ends with the session;
// and when the server dies it is started again for the next call.
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
package mcpmend
