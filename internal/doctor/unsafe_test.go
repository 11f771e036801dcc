package doctor

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnEntryThatGivesUpProtectionIsAFinding(t *testing.T) {
	for _, test := range []struct {
		entry string
		want  []string
	}{
		{`"command": "npx", "env": {"NODE_TLS_REJECT_UNAUTHORIZED": "0"}`, []string{"variables.unverified_tls NODE_TLS_REJECT_UNAUTHORIZED"}},
		{`"command": "npx", "env": {"NODE_TLS_REJECT_UNAUTHORIZED": "1", "NODE_OPTIONS": "--max-old-space-size=4096", "PATH": "/bin"}`, nil},
		{`"command": "uvx", "env": {"PYTHONHTTPSVERIFY": "0", "CURL_CA_BUNDLE": ""}`, []string{"variables.unverified_tls PYTHONHTTPSVERIFY", "variables.unverified_tls CURL_CA_BUNDLE"}},
		{`"command": "uvx", "env": {"CURL_CA_BUNDLE": "/etc/ca.pem", "npm_config_strict_ssl": "False"}`, []string{"variables.unverified_tls npm_config_strict_ssl"}},
		{`"command": "x", "env": {"LD_PRELOAD": "/tmp/a.so", "DYLD_INSERT_LIBRARIES": "b"}`, []string{"variables.preload LD_PRELOAD", "variables.preload DYLD_INSERT_LIBRARIES"}},
		{`"command": "x", "env": {"LD_PRELOAD": ""}`, nil},
		{`"command": "node", "env": {"NODE_OPTIONS": "--no-warnings --require ./hook.js"}`, []string{"variables.preload NODE_OPTIONS"}},
		{`"command": "node", "env": {"NODE_OPTIONS": "--import=./hook.mjs"}`, []string{"variables.preload NODE_OPTIONS"}},
		{`"command": "java", "env": {"JAVA_TOOL_OPTIONS": "-Xmx1g -javaagent:/a.jar"}`, []string{"variables.preload JAVA_TOOL_OPTIONS"}},
		{`"command": "env", "args": ["LD_PRELOAD=/a.so", "x"]`, []string{"variables.preload LD_PRELOAD"}},
		{`"command": "docker", "args": ["run", "-e", "NODE_TLS_REJECT_UNAUTHORIZED=0", "--env=GIT_SSL_NO_VERIFY=true", "-eLD_AUDIT=x", "i"]`,
			[]string{"variables.unverified_tls NODE_TLS_REJECT_UNAUTHORIZED", "variables.unverified_tls GIT_SSL_NO_VERIFY", "variables.preload LD_AUDIT"}},
		{`"command": "deno", "args": ["run", "--unsafely-ignore-certificate-errors=h"]`, []string{"variables.unverified_tls --unsafely-ignore-certificate-errors"}},
	} {
		s, _ := entry(t, "cursor", "user", fmt.Sprintf(`{"mcpServers": {"s": {%s}}}`, test.entry))
		var got []string
		for _, f := range unsafeSettings(s) {
			got = append(got, f.ID+" "+f.entryVariable)
			if f.Severity != Warning || f.Explanation == "" {
				t.Errorf("%s: %v", test.entry, f)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.entry, diff)
		}
	}
}

func TestAnOwnEntryWithoutProtectionIsNotCalledHealthy(t *testing.T) {
	d := ward(t, map[string]string{"~/.claude.json": `{"mcpServers": {"a": {"command": "true", "env": {"NODE_TLS_REJECT_UNAUTHORIZED": "0", "LD_PRELOAD": "/a.so"}}}}`}, healthy)
	c := d.only(t, "a")
	if c.State != Degraded || c.Cause == nil || c.Cause.ID != "variables.unverified_tls" || len(c.Also) != 1 || len(c.Cause.Fixes) != 1 {
		t.Errorf("%s, cause %v, also %v", c.State, c.Cause, c.Also)
	}
}
