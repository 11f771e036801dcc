package clientconfig

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestElementsThatStayKeepTheirBytes(t *testing.T) {
	eachMadeUp(t, func(t *testing.T, f *File, r *rand.Rand) {
		for _, path := range f.doc.root.paths(nil, func(n *node) bool { return n.kind == list }) {
			have, ok := f.texts(path)
			if !ok || len(have) == 0 {
				continue
			}
			i := r.IntN(len(have) + 1)
			longer := slices.Insert(slices.Clone(have), i, "new one")
			g, err := f.SetTexts(path, longer)
			if err != nil {
				t.Errorf("%v\n%s", err, f.Bytes())
				return
			}
			old, now := changed(f.Bytes(), g.Bytes())
			if len(old) > 1 || len(now) > 2 {
				t.Errorf("putting one element at %d of %s changed\n%q\ninto\n%q", i, path, old, now)
				return
			}
			got, _ := g.texts(path)
			if diff := cmp.Diff(longer, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			back, err := g.SetTexts(path, have)
			if err != nil {
				t.Errorf("%v\n%s", err, g.Bytes())
				return
			}
			if got, _ := back.texts(path); !slices.Equal(got, have) {
				t.Errorf("there and back: got %q, want %q", got, have)
			}
		}
	})
}

func TestTextsOverManyLines(t *testing.T) {
	before := "{\n  \"args\": [\n    \"run\", // first\n    \"image\"\n  ]\n}\n"
	want := "{\n  \"args\": [\n    \"run\", // first\n    \"-i\",\n    \"-e\",\n    \"image:2\"\n  ]\n}\n"
	g, err := fileOf(JSONC, before).SetTexts(Path{"args"}, []string{"run", "-i", "-e", "image:2"})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := g.texts(Path{"args"})
	if !slices.Equal(got, []string{"run", "-i", "-e", "image:2"}) || !strings.Contains(string(g.Bytes()), "// first") {
		t.Errorf("got\n%s\nwant something like\n%s", g.Bytes(), want)
	}
	if _, err := fileOf(JSON, "{").SetTexts(Path{"args"}, []string{"x"}); !errors.Is(err, ErrEdit) {
		t.Errorf("in a broken file: got %v, want ErrEdit", err)
	}
}

func TestSuggestions(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{"{\n  \"a\": 1\n  \"b\": 2\n}", "put a comma at the end of line 2"},
		{"{\"a\" 1}", "put a colon behind the name in line 1"},
		{"{\"a\": {\"b\": 1}", "put a } at the end of the file"},
		{"{\"a\": 1}}", "remove the character at line 1, column 9"},
		{"{\"a\": 'x'}", ""},
		{"{}", ""},
	} {
		if got := fileOf(JSON, test.data).Suggestion(); got != test.want {
			t.Errorf("%q: got %q, want %q", test.data, got, test.want)
		}
	}
}
