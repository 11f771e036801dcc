package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show is a port in a line, as the tests below write them.
func (p Published) show(dir string) string {
	file, _ := filepath.Rel(dir, p.File)
	text := fmt.Sprintf("%s %s:%d:%d/%s %s:%d", p.Service, p.HostIP, p.Published, p.Target, p.Protocol, filepath.ToSlash(file), p.Line)
	if p.Inactive {
		text += " inactive"
	}
	return text
}

func TestPublishedPortsAreThoseOfDockerCompose(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"nothing", nil, nil},
		{"the example of every README", map[string]string{"docker-compose.yml": "version: '3'\nservices:\n  db:\n    image: postgres\n    ports:\n      - \"54320:5432\"\n"},
			[]string{"db :54320:5432/tcp docker-compose.yml:3"}},
		{"compose.yaml before docker-compose.yml", map[string]string{
			"compose.yaml":       "services: {a: {image: x, ports: ['1111:80']}}\n",
			"docker-compose.yml": "services: {b: {image: x, ports: ['2222:80']}}\n"},
			[]string{"a :1111:80/tcp compose.yaml:0"}},
		{"the many ways to write a port", map[string]string{"compose.yml": `
services:
  web:
    image: x
    ports:
      - "127.0.0.1:8081:80"
      - 8082:81
      - "8083-8084:82-83"
      - "84"
      - "8085-8090:85"
      - "5300:53/udp"
      - "[::1]:8086:86"
      - target: 87
        published: "8087"
        host_ip: 127.0.0.1
        protocol: tcp
      - target: 88
        published: 8088
      - target: 89
`}, []string{
			"web 127.0.0.1:8081:80/tcp compose.yml:3", "web :8082:81/tcp compose.yml:3",
			"web :8083:82/tcp compose.yml:3", "web :8084:83/tcp compose.yml:3",
			"web :0:84/tcp compose.yml:3", "web :0:85/tcp compose.yml:3", "web :5300:53/udp compose.yml:3",
			"web ::1:8086:86/tcp compose.yml:3", "web 127.0.0.1:8087:87/tcp compose.yml:3",
			"web :8088:88/tcp compose.yml:3", "web :0:89/tcp compose.yml:3"}},
		{"an override adds ports", map[string]string{
			"compose.yaml":          "services:\n  db:\n    image: x\n    ports: ['5432:5432']\n  cache:\n    image: x\n    ports: ['6380:6379']\n",
			"compose.override.yaml": "services:\n  db:\n    ports: !override ['54320:5432']\n"},
			[]string{"cache :6380:6379/tcp compose.yaml:5", "db :54320:5432/tcp compose.override.yaml:2"}},
		{"variables come from .env", map[string]string{
			".env":         "MCPMEND_TEST_DB_PORT=54399\n",
			"compose.yaml": "services:\n  db:\n    image: x\n    ports: ['${MCPMEND_TEST_DB_PORT}:5432', '${MCPMEND_TEST_UNSET:-7000}:7001']\n    env_file: [missing.env]\n"},
			[]string{"db :54399:5432/tcp compose.yaml:2", "db :7000:7001/tcp compose.yaml:2"}},
		{"the files that COMPOSE_FILE names", map[string]string{
			".env":            "COMPOSE_PATH_SEPARATOR=,\nCOMPOSE_FILE=docker/base.yml, docker/dev.yml\nMCPMEND_TEST_DB_PORT=54399\n",
			"compose.yaml":    "services:\n  no:\n    image: x\n    ports: ['1:1']\n",
			"docker/base.yml": "include: [more.yml]\nservices:\n  db:\n    image: x\n    ports: ['5432:5432']\n",
			"docker/dev.yml":  "services:\n  db:\n    ports: !override ['${MCPMEND_TEST_DB_PORT}:5432']\n",
			"docker/more.yml": "services:\n  c:\n    image: x\n    ports: ['3:3']\n"},
			[]string{"db :54399:5432/tcp docker/dev.yml:2", "c :3:3/tcp docker/more.yml:2"}},
		{"profiles", map[string]string{
			".env":         "COMPOSE_PROFILES=tools, other\n",
			"compose.yaml": "services:\n  db:\n    image: x\n    ports: ['1:1']\n  on:\n    image: x\n    profiles: [tools]\n    ports: ['2:2']\n  off:\n    image: x\n    profiles: [debug]\n    ports: ['3:3']\n"},
			[]string{"db :1:1/tcp compose.yaml:2", "on :2:2/tcp compose.yaml:5", "off :3:3/tcp compose.yaml:9 inactive"}},
		{"an anchor and an extended service", map[string]string{
			"compose.yaml":     "x-common: &common\n  image: x\nservices:\n  db:\n    <<: *common\n    extends:\n      file: common/base.yaml\n      service: base\n",
			"common/base.yaml": "services:\n  base:\n    image: y\n    ports: ['54321:5432']\n"},
			[]string{"db :54321:5432/tcp compose.yaml:4"}},
		{"included files", map[string]string{
			"compose.yaml":        "include:\n  - sub/compose.yaml\n  - path: [other.yaml, other.more.yaml]\n  - oci://example.com/x\n  - https://example.com/compose.yaml\n  - missing.yaml\nservices:\n  a:\n    image: x\n    ports: ['1:1']\n",
			"sub/compose.yaml":    "include: [../compose.yaml]\nservices:\n  b:\n    image: x\n    ports: ['${SUB_PORT}:2']\n",
			"sub/.env":            "SUB_PORT=22\n",
			"other.yaml":          "services:\n  c:\n    image: x\n    ports: ['3:3']\n",
			"other.more.yaml":     "services:\n  c:\n    ports: ['33:4']\n",
			"sub/never/read.yaml": "services: {z: {image: x, ports: ['9:9']}}\n"},
			[]string{"a :1:1/tcp compose.yaml:8", "b :22:2/tcp sub/compose.yaml:3", "c :3:3/tcp other.more.yaml:2", "c :33:4/tcp other.more.yaml:2"}},
		{"services without ports", map[string]string{"compose.yaml": "services: {a: {image: x, expose: ['80']}}\n"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			plant(t, dir, test.files)
			ports, err := PublishedPorts(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range ports {
				got = append(got, p.show(dir))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABrokenComposeFileIsAnErrorWithoutItsValues(t *testing.T) {
	for name, content := range map[string]string{
		"not YAML":       "services: [canary\n",
		"a wrong port":   "services: {a: {image: x, ports: ['canary:${MCPMEND_TEST_SECRET}']}}\n",
		"not a mapping":  "canary\n",
		"empty":          "",
		"huge":           "# " + strings.Repeat("x", maxCompose),
		"a wrong type":   "services: {a: {image: x, ports: canary}}\n",
		"an alias bomb":  "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\nservices: {}\n",
		"extends itself": "services: {a: {extends: {service: a}}}\n",
		"outside":        "services: {a: {extends: {file: ../../../../../../etc/passwd, service: a}}}\n",
		"from a network": "services: {a: {extends: {file: 'https://canary.example/x.yaml', service: a}}}\n",
		"required":       "services: {a: {image: x, ports: ['${MCPMEND_TEST_UNSET:?canary}:80']}}\n",
	} {
		dir := t.TempDir()
		plant(t, dir, map[string]string{"compose.yaml": content, ".env": "MCPMEND_TEST_SECRET=canary-secret\n"})
		ports, err := PublishedPorts(t.Context(), dir)
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "compose.yaml") {
			t.Errorf("%s: %v, %v", name, ports, err)
		}
	}
}

func TestAComposeFileThatDotenvNamesOutsideOfTheProjectIsNotRead(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	plant(t, outside, map[string]string{"compose.yaml": "services: {a: {image: x, ports: ['1:1']}}\n"})
	plant(t, dir, map[string]string{".env": "COMPOSE_FILE=" + filepath.Join(outside, "compose.yaml") + "\n"})
	if ports, err := PublishedPorts(t.Context(), dir); err == nil || ports != nil {
		t.Errorf("got %+v, %v; want nothing of another folder", ports, err)
	}
}

// A project is somebody else's: its links must not lead us out of it.
func TestComposeFilesOutsideOfTheProjectAreNotRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights here")
	}
	outside, dir := t.TempDir(), t.TempDir()
	plant(t, outside, map[string]string{"compose.yaml": "services: {a: {image: x, ports: ['1:1']}}\n", ".env": "P=1\n"})
	plant(t, dir, map[string]string{"compose.yaml": "include: [link.yaml, '" + outside + "/compose.yaml']\nservices: {b: {image: x, ports: ['${P:-2}:2']}}\n"})
	for from, to := range map[string]string{"link.yaml": "compose.yaml", ".env": ".env"} {
		if err := os.Symlink(filepath.Join(outside, to), filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	ports, err := PublishedPorts(t.Context(), dir)
	if err != nil || len(ports) != 1 || ports[0].Published != 2 {
		t.Errorf("got %+v, %v", ports, err)
	}
}

func TestTheRefusedPortLeadsToOneServiceOrNone(t *testing.T) {
	db := Published{Service: "db", Target: 5432, Published: 54320, Protocol: "tcp"}
	with := func(p Published, change func(*Published)) Published { change(&p); return p }
	second := with(db, func(p *Published) { p.Service, p.Published = "db2", 54321 })
	for name, test := range map[string]struct {
		ports Ports
		want  string
	}{
		"one":                      {Ports{db, {Service: "web", Target: 80, Published: 8080, Protocol: "tcp"}}, "db"},
		"none":                     {nil, ""},
		"two":                      {Ports{db, second}, ""},
		"the right one is down":    {Ports{db, with(second, func(p *Published) { p.Published = 5432 })}, ""},
		"another has taken it":     {Ports{db, {Service: "web", Target: 80, Published: 5432, Protocol: "tcp"}}, ""},
		"docker chooses":           {Ports{with(db, func(p *Published) { p.Published = 0 })}, ""},
		"of another address":       {Ports{with(db, func(p *Published) { p.HostIP = "192.168.1.5" })}, ""},
		"of this machine alone":    {Ports{with(db, func(p *Published) { p.HostIP = "127.0.0.1" })}, "db"},
		"udp":                      {Ports{with(db, func(p *Published) { p.Protocol = "udp" })}, ""},
		"one inactive":             {Ports{with(db, func(p *Published) { p.Inactive = true })}, "db"},
		"one active, one inactive": {Ports{with(db, func(p *Published) { p.Inactive = true }), second}, "db2"},
		"one on two ports":         {Ports{db, with(db, func(p *Published) { p.Published = 54399 })}, ""},
	} {
		got, ok := test.ports.Match(5432)
		if got.Service != test.want || ok != (test.want != "") {
			t.Errorf("%s: %+v, %v, want %q", name, got, ok, test.want)
		}
	}
}
