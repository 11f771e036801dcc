package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func TestASecretInAProjectFileIsNoted(t *testing.T) {
	text := servers(`{"command": "tool", "args": ["--key=sk-abcdefghijklmnopqrstu"], "env": {"GITHUB_TOKEN": "0123456789abcdef", "MODE": "production", "KEY_FILE": "/etc/key/file", "OTHER_TOKEN": "${WORD}"}}`)
	s, f := entry(t, "claude-code", "project", text)
	_, found := (&Doctor{System: clientconfig.System{OS: "linux"}, Environ: []string{"WORD=w"}}).start(s, f)
	if diff := cmp.Diff([]string{"variables.plain_secret warn", "variables.plain_secret warn GITHUB_TOKEN"}, ids(found)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	for _, f := range found {
		if text := strings.Join(f.Evidence, " ") + f.Explanation; strings.Contains(text, "0123456789") || strings.Contains(text, "abcdefghij") {
			t.Errorf("the secret is shown: %s", text)
		}
	}
	s, f = entry(t, "claude-code", "user", text)
	if _, found := (&Doctor{System: clientconfig.System{OS: "linux"}, Environ: []string{"WORD=w"}}).start(s, f); len(found) != 0 {
		t.Errorf("findings in the user's own file: %v", ids(found))
	}
}

func TestOnlyExamplesAreTakenForExamples(t *testing.T) {
	for value, want := range map[string]bool{
		"<your-token>": true, "YOUR_API_KEY": true, "your-token-here": true, "xxxx": true, "changeme": true,
		"sk-...": true, "ghp_xxxxxxxx": true, "<INSERT TOKEN>": true, "insert your key": true, "my-api-key": true,
		"production": false, "ghp_0123456789abcdef": false, "myhost": false, "my_database_name": false, "here": false,
		"/home/u/data": false, "": false, "true": false, "https://example.com": false, "yours": false,
	} {
		if got := isPlaceholder("env", value); got != want {
			t.Errorf("%q is an example: %v, want %v", value, got, want)
		}
	}
}
