package fault

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// messages reads testdata/messages.txt.
func messages(t testing.TB) (all []struct{ kind, text string }) {
	data, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		kind, text, ok := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
		if !ok {
			t.Fatalf("no tab in %q", l)
		}
		all = append(all, struct{ kind, text string }{kind, text})
	}
	return all
}

func TestRealMessagesAreDiagnosed(t *testing.T) {
	for _, m := range messages(t) {
		if d := Diagnose(Evidence{Text: m.text}); string(d.Kind) != m.kind {
			t.Errorf("Diagnose(%q) = %s because of %s, want %s", m.text, d.Kind, d.Because, m.kind)
		}
	}
}

func TestEveryPhraseIsShownByARealMessage(t *testing.T) {
	shown := make(map[string]bool)
	for _, m := range messages(t) {
		l := cut(m.text)
		for i := range l.words {
			for _, r := range index()[l.words[i].lower] {
				if _, ok := r.phrase.matchAt(&l, i); ok && string(r.kind) == m.kind {
					shown[m.kind+" "+r.phrase.source] = true
				}
			}
		}
	}
	for _, row := range patterns {
		for _, source := range row.phrases {
			if !shown[string(row.kind)+" "+source] {
				t.Errorf("no message in testdata/messages.txt shows %s %q", row.kind, source)
			}
		}
	}
}

// Who says that it does not know a command is there, and is not to be looked for.
func TestAnUnknownSubcommandIsNotAMissingProgram(t *testing.T) {
	for text, want := range map[string]Pieces{
		"docker: unknown command: docker mcp":                    {Command: "docker", Subcommand: "mcp"},
		"docker: 'mcp' is not a docker command.":                 {Subcommand: "mcp"},
		`Error: unknown command "serve" for "github-mcp-server"`: {Command: "github-mcp-server", Subcommand: "serve"},
		"error: unrecognized subcommand 'mcp'":                   {Subcommand: "mcp"},
		"fish: Unknown command: npx":                             {Command: "npx"},
	} {
		d := Diagnose(Evidence{Text: text, Command: "npx"})
		if diff := cmp.Diff(want, d.Pieces); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if missing := strings.Contains(d.Explanation, "was not found"); missing != (want.Subcommand == "") {
			t.Errorf("%s: %s", text, d.Explanation)
		}
	}
}

// What only looks like a cause must not be taken for it.
func TestUnknownStaysUnknown(t *testing.T) {
	for _, text := range []string{
		"",
		"MCP error -32000: Connection closed",
		"TypeError: fetch failed",
		"connection closed: initialize response",
		"unhandled errors in a TaskGroup (1 sub-exception)",
		"POST /messages/?session_id=7f7ad4150c504c3bb9b9741f1930403f",
		"request 40312 failed",
		"trace 401a-4030-4290",
		"the author of the tool made an authoring mistake",
		"authority and authored are words of their own",
		"missing semicolon",
		"the required thickness is 3 mm",
		"listening on port 4290, 403 files read",
		"ENOENT: no such file or directory, open 'notes.txt'",
		"the file was not found",
		`no such file or directory "data"`,
		"Cannot find module '/srv/weather/node_modules/zod/index.js'",
		"Unexpected end of JSON input",
		"npm notice To update run: npm install -g npm@11.0.0",
		"PREDICTED_VALUE is 3, MAX_ROWS is 10",
		"the session was long and the answer empty",
		"Error: Request failed with status code 404",
		"500 Internal Server Error",
		"TypeError: Cannot read properties of undefined (reading 'map')",
	} {
		if d := Diagnose(Evidence{Text: text}); d.Kind != Unknown || d.Confidence >= enough {
			t.Errorf("Diagnose(%q) = %s (%.2f) because of %s, want unknown", text, d.Kind, d.Confidence, d.Because)
		}
	}
}

func TestTheRootCauseBeatsTheSymptom(t *testing.T) {
	closed := "MCP error -32000: Connection closed"
	for _, test := range []struct {
		name string
		e    Evidence
		want Kind
	}{
		{"a missing program is a fact", Evidence{Errno: "ENOENT", Moment: AtStart, Text: "request timed out", Command: "npx"}, CommandNotFound},
		{"a missing file is not a missing program", Evidence{Errno: "ENOENT", Moment: AtCall}, Unknown},
		{"a missing socket of docker is docker", Evidence{Errno: "ENOENT", Moment: AtCall, Text: "connect ENOENT /var/run/docker.sock"}, DockerUnavailable},
		{"stderr explains the exit", Evidence{Text: closed, Exited: true, ExitCode: 1, Moment: AtHandshake,
			Stderr: []string{"Error: BRAVE_API_KEY environment variable is required"}}, MissingEnvVar},
		{"the last line of a traceback counts", Evidence{Text: closed, Exited: true, ExitCode: 1,
			Stderr: []string{"Traceback (most recent call last):", `  File "server.py", line 3, in <module>`, "    from mcp.server.fastmcp import FastMCP",
				"ModuleNotFoundError: No module named 'mcp.server.fastmcp'"}}, DependencyBreak},
		{"stderr beats the client's timeout", Evidence{Text: "Request timed out", Moment: AtHandshake,
			Stderr: []string{"npm error code ENOTEMPTY"}}, PackageCacheCorrupt},
		{"a warning is not the cause", Evidence{Exited: true, Signal: "segmentation fault",
			Stderr: []string{"npm warn EBADENGINE Unsupported engine {"}}, ServerCrashed},
		{"a warning before a plain exit is not the cause either", Evidence{Exited: true, ExitCode: 1,
			Stderr: []string{"warning: rate limit is not configured", "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000"}}, PortInUse},
		{"an exit without words", Evidence{Text: closed, Exited: true, ExitCode: 1}, ServerCrashed},
		{"the shell's word for a missing program", Evidence{Text: closed, Exited: true, ExitCode: 127}, CommandNotFound},
		{"the cause comes after those who passed it on", Evidence{Text: "Token refresh failed: dial tcp: connection refused"}, ConnectionRefused},
		{"and a phrase within a longer one does not count", Evidence{Text: "Error: pg_config executable not found"}, MissingDependency},
		{"killed", Evidence{Exited: true, Signal: "killed"}, ServerCrashed},
		{"killed, seen through a shell", Evidence{Exited: true, ExitCode: 137}, ServerCrashed},
		{"a connection cut in a call", Evidence{Errno: "ECONNRESET", Moment: AtCall}, ConnectionReset},
		{"a connection never made", Evidence{Errno: "ECONNRESET", Moment: AtStart, Text: "fetch failed"}, Unknown},
		{"401 is sign-in", Evidence{HTTPStatus: 401, Text: "HTTP 401"}, AuthFailed},
		{"401 for a lost session is the session", Evidence{HTTPStatus: 401, Text: "Unauthorized: Session not found"}, SessionExpired},
		{"404 with a session is the session", Evidence{HTTPStatus: 404, HadSession: true, Moment: AtCall}, SessionExpired},
		{"404 at first is the address", Evidence{HTTPStatus: 404, Moment: AtHandshake}, WrongEndpoint},
		{"400 alone says nothing", Evidence{HTTPStatus: 400, Moment: AtCall}, Unknown},
		{"400 with words", Evidence{HTTPStatus: 400, Text: "Bad Request: No valid session ID provided"}, SessionExpired},
		{"429", Evidence{HTTPStatus: 429, RetryAfter: time.Second}, RateLimited},
		{"-32602 for arguments", Evidence{RPCCode: -32602}, InvalidArguments},
		{"-32602 for a version", Evidence{RPCCode: -32602, Text: "Unsupported protocol version"}, ProtocolVersion},
		{"-32602 after the tool ran", Evidence{RPCCode: -32602, Text: "Structured content does not match the tool's output schema"}, OutputSchema},
		{"-32022", Evidence{RPCCode: -32022}, ProtocolVersion},
		{"-32000 says nothing", Evidence{RPCCode: -32000}, Unknown},
		{"a banner before the first message", Evidence{Moment: AtHandshake, Stdout: []string{"Starting server ..."}}, StdoutPollution},
		{"last words on the wrong stream", Evidence{Exited: true, ExitCode: 1, Stdout: []string{"Error: SLACK_BOT_TOKEN is not set"}}, MissingEnvVar},
		{"an old complaint of a living server", Evidence{Moment: AtCall, HTTPStatus: 429, Stderr: []string{"connect ECONNREFUSED 127.0.0.1:6379"}}, RateLimited},
	} {
		if d := Diagnose(test.e); d.Kind != test.want {
			t.Errorf("%s: got %s (%.2f) because of %s, want %s", test.name, d.Kind, d.Confidence, d.Because, test.want)
		}
	}
}

func TestAnErrorOverManyLinesIsReadAsOne(t *testing.T) {
	refused := Diagnose(Evidence{Exited: true, ExitCode: 1, Moment: AtStart, Stderr: []string{
		"Error: connect ECONNREFUSED 127.0.0.1:5432",
		"    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1607:16) {",
		"  errno: -111,",
		"  code: 'ECONNREFUSED',",
		"  syscall: 'connect',",
		"  address: '127.0.0.1',",
		"  port: 5432",
		"}",
	}})
	if refused.Kind != ConnectionRefused || refused.Pieces.Host != "127.0.0.1" || refused.Pieces.Port != 5432 {
		t.Errorf("got %s with %+v", refused.Kind, refused.Pieces)
	}
	half := Diagnose(Evidence{Exited: true, ExitCode: 1, Moment: AtStart, Stderr: []string{
		"Error: Cannot find module 'color-name'",
		"Require stack:",
		"- /home/ada/.npm/_npx/4fba13d51aeb5863/node_modules/weather-mcp/index.js",
		"  code: 'MODULE_NOT_FOUND',",
		"Node.js v20.20.2",
	}})
	if half.Kind != PackageCacheCorrupt {
		t.Errorf("got %s because of %s", half.Kind, half.Because)
	}
	whole := Diagnose(Evidence{Exited: true, ExitCode: 1, Moment: AtStart, Stderr: []string{"Error: Cannot find module 'color-name'", "- /home/ada/server/index.js"}})
	if whole.Kind == PackageCacheCorrupt {
		t.Errorf("a server of one's own is no cache of npx: %s", whole.Because)
	}
}

func TestPiecesAreNamed(t *testing.T) {
	for _, test := range []struct {
		text string
		want Pieces
	}{
		{"spawn npx ENOENT", Pieces{Command: "npx"}},
		{`exec: "uvx": executable file not found in $PATH`, Pieces{Command: "uvx"}},
		{"zsh:1: command not found: bunx", Pieces{Command: "bunx"}},
		{"[server stderr] Error: GITHUB_PERSONAL_ACCESS_TOKEN not set", Pieces{Variable: "GITHUB_PERSONAL_ACCESS_TOKEN"}},
		{"KeyError: 'OPENAI_API_KEY'", Pieces{Variable: "OPENAI_API_KEY"}},
		{"connect ECONNREFUSED ::1:5002", Pieces{Host: "::1", Port: 5002}},
		{"dial tcp 127.0.0.1:8080: connect: connection refused", Pieces{Host: "127.0.0.1", Port: 8080}},
		{"Port 6289 is already in use.", Pieces{Port: 6289}},
		{"npm error notarget No matching version found for @acme/mcp@9.9.9.", Pieces{Package: "@acme/mcp@9.9.9"}},
		{"Error: EACCES: permission denied, mkdir '/usr/local/lib dir'", Pieces{Path: "/usr/local/lib dir"}},
		{"getaddrinfo ENOTFOUND mcp.example.org", Pieces{Host: "mcp.example.org"}},
		{"Invalid arguments for tool create_issue: [", Pieces{Tool: "create_issue"}},
		{"unsupported protocol version 2025-11-25", Pieces{Version: "2025-11-25"}},
	} {
		if diff := cmp.Diff(test.want, Diagnose(Evidence{Text: test.text}).Pieces); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, diff)
		}
	}
}

func TestTheExplanationNamesWhatWasFound(t *testing.T) {
	d := Diagnose(Evidence{Text: "spawn npx ENOENT"})
	if !strings.Contains(d.Explanation, `"npx"`) || !strings.Contains(d.SuggestedFix, `"npx"`) {
		t.Errorf("npx is not named in %q, %q", d.Explanation, d.SuggestedFix)
	}
	d = Diagnose(Evidence{Errno: "ENOENT", Moment: AtStart, Command: "uvx"})
	if !strings.Contains(d.Explanation, `"uvx"`) {
		t.Errorf("the configured command is not named in %q", d.Explanation)
	}
	d = Diagnose(Evidence{Exited: true, ExitCode: 3})
	if !strings.Contains(d.Explanation, "exit code 3") {
		t.Errorf("the exit code is not named in %q", d.Explanation)
	}
}

func TestSecretsOfAnAddressAreNotKept(t *testing.T) {
	d := Diagnose(Evidence{Text: "Failed to connect to https://user:hunter2@mcp.example.org:8443/x?key=hunter2 port 8443"})
	if d.Pieces.Host != "mcp.example.org" || strings.Contains(d.Explanation, "hunter2") {
		t.Errorf("got host %q, explanation %q", d.Pieces.Host, d.Explanation)
	}
}

func TestOnlyTheEndsOfHugeEvidenceAreRead(t *testing.T) {
	filler := strings.Repeat("the server is not responding in time, session lost ", 1<<16)
	began := time.Now()
	d := Diagnose(Evidence{Text: filler + "spawn npx ENOENT", Stderr: []string{filler, filler}})
	if d.Kind != CommandNotFound {
		t.Errorf("got %s because of %s, want %s", d.Kind, d.Because, CommandNotFound)
	}
	// It takes a few milliseconds; reading all of it would take seconds.
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
}

func TestEveryKindIsExplained(t *testing.T) {
	seen := make(map[Kind]bool)
	for _, k := range Kinds() {
		if seen[k] {
			t.Errorf("%s stands twice in the table", k)
		}
		seen[k] = true
		about := k.About()
		for what, text := range map[string]string{"title": about.Title, "explanation": about.Explanation, "fix": about.Fix} {
			if text == "" || strings.Count(text, "{") != strings.Count(text, "}") {
				t.Errorf("%s: %s is %q", k, what, text)
			}
			if filled := fill(text, Evidence{}, Pieces{}); strings.ContainsAny(filled, "{|}") {
				t.Errorf("%s: %s reads %q when nothing is known", k, what, filled)
			}
		}
		if strings.HasSuffix(about.Fix, ".") || !strings.HasSuffix(about.Explanation, ".") {
			t.Errorf("%s: an explanation ends with a full stop, a hint does not", k)
		}
		if about.Retryable && about.Scope == OfSetup {
			t.Errorf("%s: what somebody has to change first does not go well by itself", k)
		}
	}
	for _, row := range patterns {
		if !seen[row.kind] {
			t.Errorf("%s has phrases and no row in the table of kinds", row.kind)
		}
	}
}

func TestSecurityAndSignInAreNeverRetryable(t *testing.T) {
	for _, k := range []Kind{AuthFailed, PermissionDenied, TLS, HostHeaderRejected, Proxy, MissingEnvVar} {
		if k.About().Retryable {
			t.Errorf("%s is retryable", k)
		}
	}
}

func FuzzDiagnose(f *testing.F) {
	for _, m := range messages(f) {
		f.Add(m.text, m.text, "", "", 0, 0, 0, false)
	}
	f.Add("", "", "ENOENT", "killed", 137, 404, -32602, true)
	f.Fuzz(func(t *testing.T, text, stderr, errno, signal string, exit, status, code int, exited bool) {
		for _, moment := range []Moment{"", AtStart, AtHandshake, AtCall} {
			e := Evidence{Text: text, Stderr: strings.Split(stderr, "\n"), Stdout: []string{text}, Errno: errno, Signal: signal,
				Exited: exited, ExitCode: exit, HTTPStatus: status, RPCCode: code, Moment: moment, HadSession: exited}
			d := Diagnose(e)
			if d.Confidence < 0 || d.Confidence > 1 {
				t.Errorf("confidence %v", d.Confidence)
			}
			if (d.Kind != Unknown) != (d.Confidence >= enough) {
				t.Errorf("kind %s with confidence %v", d.Kind, d.Confidence)
			}
			if d.Explanation == "" || d.SuggestedFix == "" || d.Because == "" {
				t.Errorf("something is not said: %+v", d)
			}
			if strings.ContainsAny(d.Because+d.Explanation+d.SuggestedFix, "\n\r\x1b\x00") {
				t.Errorf("control characters in %+v", d)
			}
			if again := Diagnose(e); again != d {
				t.Errorf("two diagnoses of the same evidence: %+v and %+v", d, again)
			}
		}
	})
}

func BenchmarkDiagnose(b *testing.B) {
	short := Evidence{Text: "Error: spawn npx ENOENT", Errno: "ENOENT", Moment: AtStart}
	crash := Evidence{Text: "MCP error -32000: Connection closed", Exited: true, ExitCode: 1}
	for range 50 {
		crash.Stderr = append(crash.Stderr, "    at Module._compile (node:internal/modules/cjs/loader:1554:14)")
	}
	huge := Evidence{Text: strings.Repeat("error session the tool names must be ... ", 1<<18)}
	for name, e := range map[string]Evidence{"short": short, "crash": crash, "huge": huge} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Diagnose(e)
			}
		})
	}
}
