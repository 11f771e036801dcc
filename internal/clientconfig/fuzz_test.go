package clientconfig

import (
	"strings"
	"testing"
)

// hostile is where fuzzing starts from: files people have, and what breaks them.
var hostile = []string{
	``, ` `, `{}`, `[]`, `null`, `{"mcpServers":{}}`, `{"mcpServers":null}`, `{"mcpServers":[{}]}`, "\ufeff{}", "\ufeff", "\xff\xfe{\x00",
	`{"mcpServers":{"a":{"command":"x","args":["-y",],"env":{"A":"b"}, /* c */ },}, // d`,
	`{"mcpServers":{"a":{"command":["x"],"args":"y","env":[1],"url":{},"type":7,"disabled":"no"}}}`,
	`{"mcpServers":{"mcpServers":{"a":{"command":"x"}}},"a":1,"a":2}`,
	"[mcp_servers.a]\ncommand = 'x' # c\nargs = [ \"a\",\n 'b', # d\n]\n[mcp_servers.a.env]\nA.b = 1\n[[x]]\ny = { z = [ {}, ] }\n",
	"mcp_servers = { a = { command = \"x\", \"b.c\" = 1 } }\r\n",
	"a.b.c = 1\n[a.d]\n[a]\nb.e = 2\n",
	"extensions:\n  a: &x\n    cmd: npx\n    args:\n    - -y\n    - 'it''s' # c\n  b:\n    <<: *x\n    envs: {A: b, C: [d, \"e\"]}\n  c: *x\n",
	"a: &a\n  b: *a\n", "a: |\n  text\n  more\nb: >-\n  folded\n", "- a\n- - b\n  - c\n", "? [x]\n: y\n", "%YAML 1.2\n---\na: 1\n...\n---\nb: 2\n",
	"a: \"x\\\n  y\"\nb: plain\n  over lines\n", "\ta: b", "a: 'x", "{a: b, c}", "a:\n\u2028b: c\n", "!!binary a", "a: !x b\n",
	strings.Repeat("[", 600), strings.Repeat("{a: ", 600), strings.Repeat("a.", 600) + "b = 1", strings.Repeat("- ", 600), strings.Repeat(`{"a":`, 600),
	"mcpServers:\n- name: a\n  command: x\n- name: b\n",
	"a: &x [1,1,1,1,1,1,1,1]\nb: &y [*x,*x,*x,*x,*x,*x,*x,*x]\nc: &z [*y,*y,*y,*y,*y,*y,*y,*y]\nd: [*z,*z,*z,*z,*z,*z]\n",
}

// fileOf makes a File out of bytes, for the client that has the most of the format.
func fileOf(format Format, data string) *File {
	c := ByID(map[Format]string{JSON: "claude-code", JSONC: "opencode", TOML: "codex", YAML: "goose"}[format])
	f := &File{Path: "f", Client: c, Places: []Place{c.Files[0]}, onDisk: []byte(data)}
	f.parse([]byte(data))
	return f
}

var formats = []Format{JSON, JSONC, TOML, YAML}

// Whatever the bytes are: no panic, and every place is inside the file.
func FuzzRead(f *testing.F) {
	for _, s := range hostile {
		for i := range formats {
			f.Add(byte(i), s)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, data string) {
		format := formats[int(which)%len(formats)]
		file := fileOf(format, data)
		lines := strings.Count(data, "\n") + 1
		check := func(at Position) {
			if at.Line < 1 || at.Line > lines || at.Column < 1 {
				t.Errorf("%s: %q has a place %s", format, data, at)
			}
		}
		for _, p := range file.Problems {
			check(p.At)
			if p.Kind.blocks() && len(file.Servers) > 0 {
				t.Errorf("%s: %q is %s and has servers", format, data, p.Kind)
			}
		}
		for _, s := range file.Servers {
			check(s.At)
			check(s.Name.At)
			if file.doc.root.find(s.Path) == nil {
				t.Errorf("%s: %q: the path %s of a server leads nowhere", format, data, s.Path)
			}
			for _, v := range append(s.Args, s.Command, s.URL, s.Cwd) {
				if v.Path == nil {
					continue
				}
				check(v.At)
				if n := file.doc.root.find(v.Path); n == nil || n.value != v.Text {
					t.Errorf("%s: %q: the path %s does not lead to %q", format, data, v.Path, v.Text)
				}
			}
		}
	})
}

// An edit is either refused or does what it says; it never panics. That the rest
// of the file means what it meant is checked by Set and Remove themselves; here
// the bytes around the value are compared.
func FuzzEdit(f *testing.F) {
	for _, s := range hostile {
		for i := range formats {
			f.Add(byte(i), s, uint(3), "new")
		}
	}
	for seed := range uint64(5) {
		for i, format := range formats {
			f.Add(byte(i), string(madeUp(seed, format).Bytes()), uint(seed), "it's: #\n")
		}
	}
	f.Fuzz(func(t *testing.T, which byte, data string, at uint, value string) {
		file := fileOf(formats[int(which)%len(formats)], data)
		if file.doc == nil || file.doc.root == nil {
			return
		}
		all := file.doc.root.paths(nil, func(*node) bool { return true })
		path := all[at%uint(len(all))]
		n := file.doc.root.find(path)
		if g, err := file.Set(path, value); err == nil && n.kind == text && n.end >= 0 {
			after := string(g.Bytes())
			if !strings.HasPrefix(after, data[:n.start]) || !strings.HasSuffix(after, data[n.end:]) {
				t.Errorf("setting %s turned %q into %q", path, data, after)
			}
		}
		if g, err := file.Set(path.then("new"), Object{{"a", []string{value}}, {value, true}}); err == nil && len(g.Bytes()) < len(data) {
			t.Errorf("adding to %s turned %q into %q", path, data, g.Bytes())
		}
		if g, err := file.Remove(path); err == nil && len(g.Bytes()) > len(data)+4 {
			t.Errorf("removing %s turned %q into %q", path, data, g.Bytes())
		}
	})
}
