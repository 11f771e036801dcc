package clientconfig

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func v(s string) Value { return Value{Text: s} }

// shape is a server without places.
func shape(s *Server) map[string]any {
	return map[string]any{"command": s.Command.Text, "args": texts(s.Args), "env": pairs(s.Env), "url": s.URL.Text, "headers": pairs(s.Headers)}
}

func TestWhatIsAddedIsReadBackByEveryClient(t *testing.T) {
	local := &Server{Name: v("new one"), Command: v("npx"), Args: []Value{v("-y"), v("it's"), v("yes")}, Env: []Pair{{v("A.B"), v("8080")}, {v("C"), v("${D}")}}}
	remote := &Server{Name: v("far"), URL: v("https://example.com/mcp?a=b"), Transport: HTTP, Headers: []Pair{{v("X-Key"), v("y: #z")}}}
	sse := &Server{Name: v("old"), URL: v("https://example.com/sse"), Transport: SSE}
	for _, c := range Clients() {
		for _, place := range c.Files {
			f := New("f", c, "/p", place)
			for _, s := range []*Server{local, remote, sse} {
				g, err := f.Add(s)
				if errors.Is(err, ErrEdit) && (c.ID == "claude-desktop" || s == sse && (c.ID == "codex" || c.ID == "opencode")) && s != local {
					continue // these cannot
				}
				if err != nil {
					t.Errorf("%s: %v", c.ID, err)
					continue
				}
				got := g.Server(s.Name.Text)
				if got == nil || len(g.Problems) > 0 {
					t.Errorf("%s, %s: problems %v in\n%s", c.ID, s.Name.Text, g.Problems, g.Bytes())
					continue
				}
				if diff := cmp.Diff(shape(s), shape(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%s", c.ID, diff, g.Bytes())
				}
				if s.Transport != Unknown && got.Transport != Unknown && got.Transport != s.Transport {
					t.Errorf("%s: the transport %s became %s", c.ID, s.Transport, got.Transport)
				}
				if _, err := g.Add(s); !errors.Is(err, ErrEdit) {
					t.Errorf("%s: adding it twice gives %v, want ErrEdit", c.ID, err)
				}
				f = g
			}
		}
	}
}

// Without the type, "gemini mcp list" takes the URL for one of Streamable HTTP.
func TestGeminiIsToldWhichURLsAreSSE(t *testing.T) {
	c := ByID("gemini-cli")
	f, err := New("f", c, "/p", c.Files[0]).Add(&Server{Name: v("old"), URL: v("https://example.com/sse"), Transport: SSE})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Server("old"); got.Transport != SSE || got.Type.Text != "sse" {
		t.Errorf("the transport is %q by the type %q, want sse by its type, in\n%s", got.Transport, got.Type.Text, f.Bytes())
	}
}

// The files of the reading tests are the ones people have. Each value in them is
// changed in turn; one line changes and the server has the new value.
func TestEveryValueOfEveryClientCanBeChanged(t *testing.T) {
	clients := make(map[string]int)
	paths, err := filepath.Glob("testdata/read/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		for _, f := range readArchive(t, path).unpack(t).Find() {
			for _, s := range f.Servers {
				values := append([]Value{s.Command, s.Cwd, s.URL, s.Type, s.EnvFile}, s.Args...)
				for _, p := range append(append(s.Env, s.Headers...), s.HeadersFrom...) {
					values = append(values, p.Value)
				}
				for _, v := range append(values, s.EnvFrom...) {
					if v.Path == nil {
						continue
					}
					g, err := f.Set(v.Path, v.Text+" new")
					marked := slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Kind == ByteOrderMark })
					if n := f.doc.root.find(v.Path); n.borrowed || marked {
						if !errors.Is(err, ErrEdit) {
							t.Errorf("%s: changing a shared value, or a file that its client could not read, gives %v, want ErrEdit", v.At, err)
						}
						continue
					}
					if err != nil && strings.Contains(err.Error(), "something else would change") && f.Client.ID == "librechat" {
						continue // an alias elsewhere borrows this one
					}
					if err != nil {
						t.Errorf("%s: %v", v.At, err)
						continue
					}
					old, new := changed(f.Bytes(), g.Bytes())
					if len(old) != 1 || len(new) != 1 || g.doc.root.find(v.Path).value != v.Text+" new" {
						t.Errorf("%s: changing %s turned %q into %q", v.At, v.Path, old, new)
					}
					clients[f.Client.ID]++
				}
			}
		}
	}
	var missing []string
	for _, c := range Clients() {
		if clients[c.ID] == 0 {
			missing = append(missing, c.ID)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no value was changed for %s", strings.Join(missing, ", "))
	}
}
