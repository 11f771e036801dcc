package doctor

import (
	"strings"
	"testing"
)

func TestSeesWhoRunsWhichPackage(t *testing.T) {
	for _, test := range []struct {
		line, runner, registry, id string
		rest                       string // what the runner does not read itself
	}{
		{"npx -y @scope/pkg@1.2 --port 1", "npx", "npm", "@scope/pkg@1.2", "@scope/pkg@1.2 --port 1"},
		{"npx -y -p pkg tool -p x", "npx", "npm", "pkg", "tool -p x"},
		{"npx --package=pkg -- tool", "npx", "npm", "pkg", "tool"},
		{"npx -p one -p two tool", "npx", "npm", "one", "tool"},
		{"npx -p pkg -c tool", "npx", "npm", "pkg", ""},
		{"npx", "npx", "npm", "", ""},
		{"npx -p", "npx", "npm", "", ""},
		{"/usr/bin/npx pkg", "npx", "npm", "pkg", "pkg"},
		{`cmd /c npx pkg`, "npx", "npm", "pkg", "pkg"},
		{`C:\Windows\cmd.exe /C C:\nodejs\npx.cmd -y pkg`, "npx", "npm", "pkg", "pkg"},
		{"bunx --bun pkg", "bunx", "npm", "pkg", "pkg"},
		{"bun x pkg", "bunx", "npm", "pkg", "pkg"},
		{"pnpm dlx pkg", "pnpx", "npm", "pkg", "pkg"},
		{"npm exec -- pkg", "npm exec", "npm", "pkg", "pkg"},
		{"npm run start", "", "", "", "npm run start"},
		{"uvx --with x --python 3.12 server==1 arg", "uvx", "pypi", "server==1", "server==1 arg"},
		{"uvx --from pkg[cli] tool", "uvx", "pypi", "pkg[cli]", "tool"},
		{"uv tool run --from pkg tool", "uvx", "pypi", "pkg", "tool"},
		{"uv run --with mcp server.py", "uv run", "", "", "server.py"},
		{"uv --directory x run server", "", "", "", "uv --directory x run server"},
		{"pipx run --spec pkg==1 tool", "pipx run", "pypi", "pkg==1", "tool"},
		{"docker run -i --rm -e TOKEN --cpus 2 --pull=always mcp/github arg", "docker run", "oci", "mcp/github", "mcp/github arg"},
		{"docker --context x run -ie TOKEN image", "docker run", "oci", "image", "image"},
		{"podman run -eTOKEN image", "docker run", "oci", "image", "image"},
		{"cmd /c docker run -i image", "docker run", "oci", "image", "image"},
		{"docker run -i", "docker run", "oci", "", ""},
		{"docker run --name", "docker run", "oci", "", ""},
		{"docker compose run service", "", "", "", "docker compose run service"},
		{"node server.js", "", "", "", "node server.js"},
		{"", "", "", "", ""},
	} {
		l := launchOf(strings.Fields(test.line))
		rest := strings.Join(l.words[l.rest:], " ")
		if l.runner != test.runner || l.registry != test.registry || l.id != test.id || rest != test.rest {
			t.Errorf("%q: %s runs %q of %q, then %q; want %s, %q of %q, %q",
				test.line, l.runner, l.id, l.registry, rest, test.runner, test.id, test.registry, test.rest)
		}
		if l.id != "" && !strings.HasSuffix(l.words[l.at], l.id) {
			t.Errorf("%q: %q does not end in %q", test.line, l.words[l.at], l.id)
		}
	}
}
