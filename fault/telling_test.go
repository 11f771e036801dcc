package fault

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTellsWhatHappenedAndNotWhere(t *testing.T) {
	for _, test := range []struct{ name, wrote, want string }{
		{"Python", `Traceback (most recent call last):
  File "/srv/weather.py", line 1, in <module>
    print(1 / 0)
          ~~^~~
ZeroDivisionError: division by zero`, "ZeroDivisionError: division by zero"},
		{"Node", `file:///srv/index.js:3
undefined.x
          ^

TypeError: Cannot read properties of undefined (reading 'x')
    at file:///srv/index.js:3:11
    at ModuleJob.run (node:internal/modules/esm/module_job:343:25)

Node.js v24.1.0`, "TypeError: Cannot read properties of undefined (reading 'x')\nundefined.x"},
		{"Node with an object", `node:events:497
      throw er; // Unhandled 'error' event
      ^

Error: listen EADDRINUSE: address already in use 127.0.0.1:3000
    at Server.setupListenHandle [as _listen2] (node:net:1940:16)
  code: 'EADDRINUSE',
  errno: -98,
  syscall: 'listen',
  address: '127.0.0.1',
  port: 3000
}`, "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000"},
		{"npm", `npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@nosuch%2fzzzz
npm error 404
npm error 404  The requested resource '@nosuch/zzzz@*' could not be found or you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/me/.npm/_logs/2026-11-15T06_19_48_211Z-debug-0.log`,
			`npm error 404  The requested resource '@nosuch/zzzz@*' could not be found or you do not have permission to access it.
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@nosuch%2fzzzz`},
		{"plain words", "starting\nError: TOKEN is required", "Error: TOKEN is required\nstarting"},
		{"npm", "npm error code EACCES\nnpm error errno -13\nnpm error EACCES: permission denied, mkdir '/.npm/_cacache'\nnpm error\nnpm error Your cache folder contains root-owned files\nnpm error   sudo chown -R 501:20 \"/.npm\"",
			"npm error EACCES: permission denied, mkdir '/.npm/_cacache'\nnpm error Your cache folder contains root-owned files\nnpm error   sudo chown -R 501:20 \"/.npm\""},
		{"nothing but a trace", "    at a (b.js:1:1)\n    at c (d.js:2:2)", "    at a (b.js:1:1)\n    at c (d.js:2:2)"},
		{"too much", "one\ntwo\nthree\nfour", "two\nthree\nfour"},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, strings.Join(told(strings.Split(test.wrote, "\n")), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func told(stderr []string) []string {
	return Diagnose(Evidence{Exited: true, ExitCode: 1, Stderr: stderr}).Telling(stderr, 3)
}

func TestWhatIsShownOfAFailedConnectionSaysItOnce(t *testing.T) {
	for text, want := range map[string]string{
		"cannot connect to 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused":            "cannot connect to 127.0.0.1:1: connection refused",
		"cannot connect to [::1]:1: dial tcp [::1]:1: connect: connection refused":                    "cannot connect to [::1]:1: connection refused",
		"cannot connect to localhost:1: dial tcp 127.0.0.1:1: connect: connection refused":            "cannot connect to localhost:1 (127.0.0.1:1): connection refused",
		"cannot connect to example.com: dial tcp 93.184.215.14:443: i/o timeout":                      "cannot connect to example.com (93.184.215.14:443): i/o timeout",
		"cannot connect to nope.invalid: dial tcp: lookup nope.invalid on 10.0.0.53:53: no such host": "cannot connect to nope.invalid: no such host (asked 10.0.0.53:53)",
		"cannot connect to nope.invalid:1: dial tcp: lookup nope.invalid: no such host":               "cannot connect to nope.invalid:1: no such host",
		// What somebody else wrote stays as it is.
		"dial tcp 127.0.0.1:1: connect: connection refused":          "dial tcp 127.0.0.1:1: connect: connection refused",
		"cannot connect to db:1: dial tcp: missing address":          "cannot connect to db:1: missing address",
		"cannot connect to a: remote error: dial tcp b: connect: no": "cannot connect to a: remote error: dial tcp b: connect: no",
		"cannot connect to the database":                             "cannot connect to the database",
		"":                                                           "",
	} {
		e := Evidence{Text: text}
		if got := e.Brief(); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
		if e.Text != text {
			t.Errorf("the evidence is now %q", e.Text)
		}
	}
}
