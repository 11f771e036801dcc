package fault

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatTheMessageItselfSaysWouldHelp(t *testing.T) {
	for _, test := range []struct {
		text string
		want Remedy
	}{
		{`Error: Browser is already in use for C:\Users\ada\ms-playwright\mcp-chrome-profile, use --isolated to run multiple instances of the same browser`, Remedy{Flag: "--isolated"}},
		{"Because the current Python version (3.11.14) does not satisfy Python>=3.12", Remedy{Python: ">=3.12"}},
		{"Because the requested Python version (>=3.9) does not satisfy Python>=3.10 and your project depends on mcp[cli]", Remedy{Python: ">=3.10"}},
		{"Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/.npm/_npx/705d23756ff7dacc/node_modules/mcp-remote/dist/chunk-CYX6C3U3.js'", Remedy{NpxFolder: "/.npm/_npx/705d23756ff7dacc"}},
		{"npm error path /home/ada/.npm/_npx/e54cca0e4081644e/node_modules/zod", Remedy{NpxFolder: "/home/ada/.npm/_npx/e54cca0e4081644e"}},
		{`npm error path C:\Users\ada\AppData\Local\npm-cache\_npx\e54cca0e4081644e\node_modules\zod`, Remedy{NpxFolder: `C:\Users\ada\AppData\Local\npm-cache\_npx\e54cca0e4081644e`}},
		{"ModuleNotFoundError: No module named 'mcp.server.fastmcp'", Remedy{FastMCP: true}},
		{"HTTP server listening on 3000; to speak on standard input use --stdio", Remedy{Flag: "--stdio"}},
		{"for local clients run --transport=stdio instead", Remedy{Flag: "--transport=stdio"}},
		{"unknown option --frobnicate", Remedy{}},
		{"npm error code ENOTEMPTY", Remedy{}},
	} {
		if diff := cmp.Diff(test.want, RemedyIn(Evidence{Stderr: []string{"starting", test.text}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
}
