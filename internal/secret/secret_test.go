package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// Keys are put together here, so that no scanner takes this file for a leak.
var (
	gh     = "ghp" + "_" + "x7Kp2q9RtY4uW1zB5nM8cV3aS6dF0gHjKlQe"
	openAI = "sk" + "-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv"
	slack  = "xoxb" + "-123456789012-" + "AbCdEfGhIjKl"
	google = "AIza" + "SyA1b2C3d4E5f6G7h8I9j0KlMnOpQrStUvW"
	aws    = "AKIA" + "IOSFODNN7EXAMPLE"
	jwt    = "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + "zdWIiOiIxIn0" + "." + "c2lnbmF0dXJl"
	pem    = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIBOgIBAAJBAK\nx7Kp\n-----END RSA " + "PRIVATE KEY-----"
	b64    = "wJalrXUtnFEMI" + "/K7MDENG9/bPxRfi" + "CYEX4MPLEK3Y"
)

func TestANameTellsWhetherItsValueIsSecret(t *testing.T) {
	for _, name := range strings.Fields(`
		GITHUB_PERSONAL_ACCESS_TOKEN GH_TOKEN GITHUB_PAT OPENAI_API_KEY api-key apiKey apikey APIKEY X-Api-Key x-goog-api-key Authorization
		Proxy-Authorization Cookie Set-Cookie password db_passwords PGPASSWORD MYSQL_PWD Pwd passphrase client_secret clientSecret
		AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN SLACK_BOT_TOKEN NOTION_TOKEN accessToken accesstoken refresh_token
		token key private_key PRIVATE_KEY_PEM SSH_KEY bearer auth credentials GOOGLE_APPLICATION_CREDENTIALS Mcp-Session-Id session
		jwt otp pin --api-key --token sig signature AccountKey SharedAccessKey STRIPE_SECRET_KEY githubToken`) {
		if !Name(name) {
			t.Errorf("Name(%q) = false", name)
		}
	}
	for _, name := range append(strings.Fields(`
		PAGE_TOKEN nextPageToken max_tokens input_tokens tokenizer DATABASE_URL keyword keywords monkey keyboard author authors
		PATH HOME PWD OLDPWD LANG NODE_ENV LOG_LEVEL state passenger compass XDG_SESSION_CLASS XDG_SESSION_ID DESKTOP_SESSION
		DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK token_url TOKEN_ENDPOINT PASSWORD_FILE KeyError primary_key sortKey auth_type AUTH_ENABLED
		Content-Type Accept User-Agent Host MCP-Protocol-Version --port -y url command args secretary pinned`), "") {
		if Name(name) {
			t.Errorf("Name(%q) = true", name)
		}
	}
}

func TestSecretsAreHiddenAndTheRestIsNot(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		// What servers print.
		{"Error: Bad credentials for " + gh, "Error: Bad credentials for [hidden]"},
		{"using key " + openAI + ".", "using key [hidden]."},
		{"slack said " + slack + " is revoked", "slack said [hidden] is revoked"},
		{"maps: " + google, "maps: [hidden]"},
		{"aws id " + aws + " region eu-west-1", "aws id [hidden] region eu-west-1"},
		{"aws " + b64 + " bare", "aws [hidden] bare"},
		{"session " + jwt + " expired", "session [hidden] expired"},
		{"read " + pem + " from disk", "read [hidden]\n[hidden]\n[hidden]\n[hidden] from disk"},
		{"read -----BEGIN PRIVATE " + "KEY-----\nMIIabc", "read [hidden]\n[hidden]"},
		{"id 9f2c4a7b14b81e7d03aa52c6f0017be4 failed", "id [hidden] failed"},
		// Headers.
		{"Authorization: Bearer abc-def-123", "Authorization: Bearer [hidden]"},
		{"authorization: Basic dXNlcjpwYXNz", "authorization: Basic [hidden]"},
		{`{"Authorization":"Bearer abcdefgh"}`, `{"Authorization":"Bearer [hidden]"}`},
		{`{"Authorization": "Foo bar baz"}`, `{"Authorization": "[hidden]"}`},
		{"Authorization: hunter2", "Authorization: [hidden]"},
		{"Authorization: Foo s3cr3t!x y", "Authorization: [hidden] y"},
		{`Authorization: Digest username="bob", response="0af3" next`, `Authorization: Digest [hidden] next`},
		{"sent bearer hunter-two", "sent bearer [hidden]"},
		{"X-Api-Key: canary\nAccept: */*", "X-Api-Key: [hidden]\nAccept: */*"},
		{"Cookie: sid=abc; theme=dark; csrf=def\nHost: x", "Cookie: [hidden]\nHost: x"},
		{"headers { cookie: 'a=b; c=d', host: 'x' }", "headers { cookie: '[hidden]', host: 'x' }"},
		// Variables and fields.
		{"GITHUB_TOKEN=hunter2", "GITHUB_TOKEN=[hidden]"},
		{"env: GITHUB_TOKEN=hunter2 DEBUG=1", "env: GITHUB_TOKEN=[hidden] DEBUG=1"},
		{"export API_KEY='with blank' B=2", "export API_KEY='[hidden]' B=2"},
		{`export API_KEY="a \" b" B=2`, `export API_KEY="[hidden]" B=2`},
		{`{"apiKey":"x y","port":80}`, `{"apiKey":"[hidden]","port":80}`},
		{`"{\"client_secret\": \"hunter\", \"port\": 1}"`, `"{\"client_secret\": \"[hidden]\", \"port\": 1}"`},
		{`{"pin":1234}`, `{"pin":[hidden]}`},
		{"{password: 'hunter2', user: 'bob'}", "{password: '[hidden]', user: 'bob'}"},
		{"password: hunter2,", "password: [hidden],"},
		{"process.env['API_KEY'] = 'hunter2'", "process.env['API_KEY'] = '[hidden]'"},
		{":secret => 'hunter2'", ":secret => '[hidden]'"},
		{"Server=db;Uid=sa;Pwd=hunter2;Database=x", "Server=db;Uid=sa;Pwd=[hidden];Database=x"},
		{"UID=sa;PWD=hunter2;", "UID=sa;PWD=[hidden];"},
		{`{"tokens":["one","two"],"n":1}`, `{"tokens":[[hidden]],"n":1}`},
		{"PASSWORD=can PIN=on", "PASSWORD=[hidden] PIN=on"},
		{"host=db password=hunter2 dbname=x", "host=db password=[hidden] dbname=x"},
		{"AccountName=x;AccountKey=abc+def/==;EndpointSuffix=core", "AccountName=x;AccountKey=[hidden];EndpointSuffix=core"},
		{"//registry.npmjs.org/:_authToken=hunter2", "//registry.npmjs.org/:_authToken=[hidden]"},
		// Command lines.
		{"npx server --token=abc --port 80", "npx server --token=[hidden] --port 80"},
		{"npx server --api-key abc --port 80", "npx server --api-key [hidden] --port 80"},
		{"docker run -e GITHUB_TOKEN=abc -i img", "docker run -e GITHUB_TOKEN=[hidden] -i img"},
		// Addresses.
		{"postgres://u:p@h/db", "postgres://[hidden]@h/db"},
		{"postgres://u:p@ss@h:5432/db", "postgres://[hidden]@h:5432/db"},
		{"postgres://u:p/a?s#s@h:5432/db", "postgres://[hidden]@h:5432/db"},
		{"http://u:p/w@proxy:3128", "http://[hidden]@proxy:3128"},
		{"DATABASE_URL=mysql://root:hunter2@localhost/x", "DATABASE_URL=mysql://[hidden]@localhost/x"},
		{"redis://:hunter2@cache:6379/0", "redis://[hidden]@cache:6379/0"},
		{"mongodb+srv://u:p@c.mongodb.net/?retryWrites=true", "mongodb+srv://[hidden]@c.mongodb.net/?retryWrites=true"},
		{"root:hunter2@tcp(127.0.0.1:3306)/x", "[hidden]@tcp(127.0.0.1:3306)/x"},
		{"https://tok@github.com/o/r", "https://[hidden]@github.com/o/r"},
		{`"https:\/\/u:p@h\/x"`, `"https:\/\/[hidden]@h\/x"`},
		{"GET https://h/mcp?api_key=abc&page=2 failed", "GET https://h/mcp?api_key=[hidden]&page=2 failed"},
		{"https://h/mcp?x=s3cr3t-t0ken", "https://h/mcp?x=[hidden]"},
		{"(see https://h/?key=abc).", "(see https://h/?key=[hidden])."},
		{"https://h/cb#access_token=abc&token_type=bearer", "https://h/cb#access_token=[hidden]&token_type=bearer"},
		{"https://h/cb?code=4/abc&scope=read", "https://h/cb?code=[hidden]&scope=read"},
		{"https://mcp.example.com/s/550e8400-e29b-41d4-a716-446655440000/mcp", "https://mcp.example.com/s/[hidden]/mcp"},
		{"/mcp?token=abc", "/mcp?token=[hidden]"},
	} {
		if got := Scrub(test.text); got != test.want {
			t.Errorf("Scrub(%q)\n got %q\nwant %q", test.text, got, test.want)
		}
		if again := Scrub(test.want); again != test.want {
			t.Errorf("Scrub(%q) again = %q", test.want, again)
		}
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	for _, text := range []string{
		"", "x", "list_pull_request_review_comments", "internationalization-of-everything", "2026-11-14T10:20:30Z", "2026-11-14-to-2026-12-24",
		"got 5, need string", "unexpected token in JSON at position 4", "Unexpected token: <", "the keyboard layout", "AdditionalPropertiesNotAllowed",
		"src/components/NavigationBar/index.tsx", "12345678901234567890", "--------------------------------",
		"@modelcontextprotocol/server-everything@2026.1.14", "npx -y @modelcontextprotocol/server-github@latest", "uvx mcp-server-git==2025.9.25 --repository .",
		"/home/u/.npm/_npx/a3241bba59c344f5/node_modules/.bin/mcp-server-everything",
		"/home/u/.npm/_logs/2026-11-14T10_20_30_123Z-debug-0.log", "2026-11-14T10_20_30_123Z-debug-0.log",
		"/home/u/.cache/uv/archive-v0/Lt5Cq0T3WgX2GlkQvXgEo/bin/python", "file:///home/u/.cache/x/550e8400-e29b-41d4-a716-446655440000/a.js:12:3",
		`C:\Users\bob\AppData\Local\npm-cache\_npx\a3241bba59c344f5a1b2c3d4\node_modules`,
		"Error: Cannot find module '/home/u/a1b2c3d4e5f6a7b8c9d0e1f2/index.js'",
		"GITHUB_PERSONAL_ACCESS_TOKEN environment variable is not set", "GITHUB_PERSONAL_ACCESS_TOKEN is required", "Missing credentials: GITHUB_TOKEN",
		"OPENAI_API_KEY: not set", "API key: required", "error: --token requires a value", "error: --api-key must be given", "token: undefined", "api_key=null",
		"Bearer authentication is required", `WWW-Authenticate: Bearer realm="mcp", error="invalid_token"`, "Basic authentication failed",
		"password authentication failed for user bob", "KeyError: 'path'", "unknown key: mcpServers", "auth: none", "pass: 3, fail: 0", "duplicate key value",
		"GITHUB_TOKEN=${GITHUB_TOKEN}", "GITHUB_TOKEN=$GITHUB_TOKEN", `{"API_KEY":"${input:api-key}"}`, `"Authorization: Bearer ${TOKEN}"`, "API_KEY=<your-api-key>", "TOKEN={env:TOKEN}",
		"git+https://github.com/o/r@3f786850e387550fdab836ed7e6dc881de23001b", "HEAD is now at 3f78685", "commit 3f786850e387550fdab836ed7e6dc881de23001b",
		"ghcr.io/o/r@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		"https://github.com/o/r/commit/3f786850e387550fdab836ed7e6dc881de23001b",
		"integrity sha512-Z9aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2uV3wX4yZ5", "git@github.com:o/r.git", "ssh://git@github.com/o/r.git",
		"http://localhost:3000/@scope/pkg", "https://h/mcp?tools=list_issues,get_issue&version=2025-06-18", "https://h/x?email=a@b.de", "mailto:bob@example.com",
		"listen EADDRINUSE: address already in use :::3000", "connect ECONNREFUSED 127.0.0.1:5432", "npm error code E404", "npm warn exec The following package was not found",
		"claude-3-5-sonnet-20241022", "gpt-4o-mini-2024-07-18", "linux-x64-musl-node20-v3", "max_tokens=4096", "nextPageToken: abc", "token_url: https://h/token",
		"GOOGLE_APPLICATION_CREDENTIALS=/home/u/key.json", "--key-file /etc/ssl/key.pem", "key-value-store-server-for-redis", "secret-manager-mcp-v2", "npm_config_user_agent", "http://[::1]:3000/@scope/pkg", "TypeError: Cannot read properties of undefined (reading 'token')",
		"PWD=/home/u/project", "ModuleNotFoundError: No module named 'mcp_server_secrets_manager'", "node:internal/modules/cjs/loader:1228",
	} {
		if got := Scrub(text); got != text {
			t.Errorf("Scrub(%q)\n  = %q", text, got)
		}
	}
}

func TestACommandLineIsSafeToShow(t *testing.T) {
	for _, test := range []struct{ argv, want string }{
		{"npx|-y|@scope/server@1.2.3|/home/u/docs", "npx|-y|@scope/server@1.2.3|/home/u/docs"},
		{"x|--api-key|canary|--port|80", "x|--api-key|[hidden]|--port|80"},
		{"x|--api-key|with blank", "x|--api-key|[hidden]"},
		{"x|--token|-canary7x9y2", "x|--token|[hidden]"},
		{"x|--token|--verbose", "x|--token|--verbose"},
		{"x|--token|required", "x|--token|[hidden]"},
		{"x|--api-key=canary", "x|--api-key=[hidden]"},
		{"x|--api-key=${KEY}|--token|${TOKEN}", "x|--api-key=${KEY}|--token|${TOKEN}"},
		{"x|--key=${env:KEY}|--token|${input:my-token}", "x|--key=${env:KEY}|--token|${input:my-token}"},
		{"x|${API_TOKEN:-canary}|--token|${T:-canary}|--key=${K:-canary}", "x|${API_TOKEN:[hidden]}|--token|[hidden]|--key=[hidden]"},
		{"x|-H|Authorization: Bearer ${T:-canary}", "x|-H|Authorization: Bearer [hidden]"},
		{"x|-H|Authorization: Bearer canary", "x|-H|Authorization: Bearer [hidden]"},
		{"x|-H|Authorization: canary and more", "x|-H|Authorization: [hidden]"},
		{"x|--header|Authorization:${AUTH}", "x|--header|Authorization:${AUTH}"},
		{"x|--header|Authorization: Bearer ${AUTH}", "x|--header|Authorization: Bearer ${AUTH}"},
		{"x|--header=X-Api-Key: canary", "x|--header=X-Api-Key: [hidden]"},
		{"x|--header|Accept: text/html", "x|--header|Accept: text/html"},
		{"docker|run|-i|--rm|-e|GITHUB_TOKEN|img", "docker|run|-i|--rm|-e|GITHUB_TOKEN|img"},
		{"docker|run|-e|GITHUB_TOKEN=canary|-eAPI_KEY=canary|-e|MODE=fast|img", "docker|run|-e|GITHUB_TOKEN=[hidden]|-eAPI_KEY=[hidden]|-e|MODE=fast|img"},
		{"docker|--env=DB_PASSWORD=canary", "docker|--env=DB_PASSWORD=[hidden]"},
		{"docker|-e|X=c4n4ry7x9|img", "docker|-e|X=[hidden]|img"},
		{"x|postgresql://u:canary@localhost/db", "x|postgresql://[hidden]@localhost/db"},
		{"mcp-remote|https://h/mcp?api_key=canary", "mcp-remote|https://h/mcp?api_key=[hidden]"},
		{"x|--url=https://h/mcp?api_key=canary", "x|--url=https://h/mcp?api_key=[hidden]"},
		{`x|--config|{"apiKey":"canary","port":1}`, `x|--config|{"apiKey":"[hidden]","port":1}`},
		{"curl|-u|bob:canary|https://h", "curl|-u|bob:[hidden]|https://h"},
		{"x|--key|/etc/ssl/key.pem", "x|--key|/etc/ssl/key.pem"},
		{"sh|-c|API_KEY=canary exec node x.js", "sh|-c|API_KEY=[hidden] exec node x.js"},
		{"x|" + gh, "x|[hidden]"},
	} {
		got := strings.Join(Args(strings.Split(test.argv, "|")), "|")
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.argv, diff)
		}
	}
}

// Word-like, so that nothing but being known gives it away.
const canary = `correct/horse "battery" & <staple>?+é`

// disguises are the ways a server may print what it was given.
func disguises(s string) map[string]string {
	quoted, _ := json.Marshal(s)
	twice, _ := json.Marshal(string(quoted))
	return map[string]string{
		"plain":            s,
		"json":             string(quoted),
		"json in json":     string(twice),
		"query":            url.QueryEscape(s),
		"path":             url.PathEscape(s),
		"query lower case": lowerEscapes(url.QueryEscape(s)),
		"query in a query": url.QueryEscape(url.QueryEscape(s)),
		"base64":           base64.StdEncoding.EncodeToString([]byte(s)),
		"base64 for URLs":  base64.RawURLEncoding.EncodeToString([]byte(s)),
		"basic":            base64.StdEncoding.EncodeToString([]byte("u:" + s)),
		"basic, longer":    base64.URLEncoding.EncodeToString([]byte("bo:" + s + ":x")),
		"basic, longest":   base64.StdEncoding.EncodeToString([]byte("bob:" + s)),
	}
}

func TestAKnownSecretIsFoundInAnyDisguise(t *testing.T) {
	h := New(canary)
	for name, text := range disguises(canary) {
		if got := h.Text("before <" + text + "> after"); !strings.Contains(got, "before <") || !strings.Contains(got, "[hidden]") || !strings.Contains(got, "> after") || len(got) > 30 {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestHalfASecretAtTheEdgeIsHidden(t *testing.T) {
	h := New("correct-horse-battery")
	for text, want := range map[string]string{
		"it was correct-horse-batt":      "it was [hidden]",
		"it was correct-horse-batt…":     "it was [hidden]…",
		`it was "correct-horse-batt..."`: `it was "[hidden]..."`,
		"it was correct-":                "it was [hidden]",
		"it was correct":                 "it was correct",
		"rse-battery it was":             "[hidden] it was",
		"correct-horse is not at an end": "correct-horse is not at an end",
	} {
		if got := h.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestAHiderLearnsFromAnEnvironment(t *testing.T) {
	h := New("tiny")
	h.AddEnviron([]string{
		"API_TOKEN=correct horse", "MODE=production", "X=c4n4ry7x9", "HOME=/home/u", "PATH=/usr/bin:/bin", "NODE_VERSION=20.11.1",
		"DATABASE_URL=postgres://u:staple@h/db", "GOOGLE_APPLICATION_CREDENTIALS=/home/u/key.json", "EMPTY_TOKEN=", "bad", "DEBUG_TOKEN=true", "REF_TOKEN=${OTHER}",
		`ACCOUNT_KEY={"type": "service_account", "private_key": "umbrella\nzebra-sleeve\n", "project_id": "shop"}`,
		"PASSWORD=abc", "DESKTOP_SESSION=ubuntu", "MODEL=claude-3-5-sonnet-20241022", "TERM=xterm-256color",
	})
	h.Add("Authorization", "Bearer battery-word")
	h.Add("X-Api-Key", "${K:-canary}")
	h.Add("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("bob:correctness")))
	h.Know("query", "plainly")
	for text, want := range map[string]string{
		"got correct horse in production":              "got [API_TOKEN] in production",
		"c4n4ry7x9 or tiny":                            "[X] or [hidden]",
		"/home/u/key.json on 20.11.1":                  "/home/u/key.json on 20.11.1",
		"staple":                                       "[DATABASE_URL]",
		"battery-word, correctness":                    "[Authorization], [Proxy-Authorization]",
		`the "abc" of abcess is true`:                  `the "[PASSWORD]" of abcess is true`,
		"zebra-sleeve of the shop":                     "[ACCOUNT_KEY] of the shop",
		"ubuntu, plainly":                              "ubuntu, [query]",
		"does not replace ${K:-canary}":                "does not replace [X-Api-Key]",
		"claude-3-5-sonnet-20241022 on xterm-256color": "claude-3-5-sonnet-20241022 on xterm-256color",
	} {
		if got := h.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	if got := (*Hider)(nil).Text("token=abc"); got != "token=[hidden]" {
		t.Errorf("a nil Hider: got %q", got)
	}
}

func FuzzScrub(f *testing.F) {
	for _, s := range []string{gh, openAI, jwt, pem, b64, canaryLine, "Authorization: Digest a=\"b\", c", "https://u:p@h/?a=b#c", `"\"key\": \"`, "Cookie: a; b", "--token x -H 'a: b'", "PWD=x;token", "Bearer [hidden]x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Scrub(s)
		if twice := Scrub(once); twice != once {
			t.Errorf("%q\nonce  %q\ntwice %q", s, once, twice)
		}
		Args(strings.Split(s, " "))
	})
}

const canaryLine = `{"a":"x","token":"y"} --key z https://h?k=v`

func FuzzAKnownSecretNeverSurvives(f *testing.F) {
	f.Add("before ", canary, " after")
	f.Add("token=", "correct-horse", "&x")
	f.Add("https://", "u:p@ss/word?", "@host/")
	f.Add("\"", "back\\slash\"quote", "\"")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		secret = strings.TrimSpace(strings.ToValidUTF8(secret, ""))
		// A secret that is part of a mark, or a word of every sentence, cannot be told.
		if len(secret) < 6 || trivial[strings.ToLower(secret)] || strings.Contains(Mark+Mark, secret) || strings.ContainsAny(secret, "\x00") {
			t.Skip()
		}
		h := New(secret)
		for name, text := range disguises(secret) {
			got := h.Text(before + text + after)
			if strings.Contains(got, text) && !strings.Contains(Mark+Mark, text) {
				t.Errorf("%s: %q survives in %q", name, text, got)
			}
		}
	})
}

// Whatever the text is: no panic, the same lines, twice as once, and no long wait.
func FuzzAHider(f *testing.F) {
	f.Add("it is correct-ho\n[x] rse-battery\n", "correct-horse-battery", 7)
	f.Add("aaaa\naaaa\naaaaaaaa\n\naaa", "aaaaaaaaaaaaaaaa", 2)
	f.Add("key:\n  'a\nb'\n", "k\ney: 'a", 3)
	f.Add("-----BEGIN PRIVATE "+"KEY-----\nMII\n", "\\n\\n\\n\\n1234567890", 1)
	f.Fuzz(func(t *testing.T, text, value string, at int) {
		h := New(value)
		began := time.Now()
		once := h.Text(text)
		if strings.Count(once, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q has other lines as %q", text, once)
		}
		if !strings.Contains(value, "[") && !strings.Contains(Mark+Mark, strings.TrimSpace(value)) && !strings.Contains(Mark, bone(value)) {
			if twice := h.Text(once); twice != once {
				t.Errorf("%q\nonce  %q\ntwice %q", text, once, twice)
			}
		}
		st := h.Stream()
		at = max(0, min(at, len(text)))
		shown := st.Push(text[:at]) + st.Push(text[at:]) + st.Flush()
		if strings.Count(shown, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q has other lines as the stream %q", text, shown)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%d bytes take %v", len(text), took)
		}
	})
}

func ExampleArgs() {
	fmt.Println(Args([]string{"docker", "run", "-e", "API_KEY=hunter2", "mcp/server", "--token", "hunter2"}))
	// Output: [docker run -e API_KEY=[hidden] mcp/server --token [hidden]]
}

func BenchmarkScrub(b *testing.B) {
	line := strings.Repeat("2026-11-14 10:20:30 INFO server: handled tools/call in 12 ms, path=/home/u/x ", 5)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		Scrub(line)
	}
}

func TestNamesAreSplitIntoWords(t *testing.T) {
	for name, want := range map[string]string{
		"userID": "user id", "HTMLFile": "html file", "file_path": "file path", "base-URL": "base url", "x": "x", "": "", "__a__": "a", "größeMax": "größe max",
		"APIKey": "api key", "DBKey": "db key", "AKey": "akey", "ABCd": "ab cd", "aBCd": "a b cd", "x-api--key": "x api key", "keyA": "key a",
	} {
		if got := strings.Join(Words(name), " "); got != want {
			t.Errorf("Words(%q) = %q, want %q", name, got, want)
		}
	}
}

// Neighbours of the letters in ASCII, such as @ and `, would make a token of an address.
func TestOnlyLettersAreLetters(t *testing.T) {
	for c := range 128 {
		if got, want := isLetter(byte(c)), unicode.IsLetter(rune(c)); got != want {
			t.Errorf("%q: got %v, want %v", rune(c), got, want)
		}
	}
}
