package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestFindsMembersAtAPath(t *testing.T) {
	const object = ` { "a" : { "b" : [1, {"c":2}] , "n":null}, "a\u002fb":3, "":4, "x":1, "x":{"y":5}, "big":9007199254740993 } `
	for _, tt := range []struct {
		path []string
		want string // empty: absent
	}{
		{[]string{"a"}, `{ "b" : [1, {"c":2}] , "n":null}`},
		{[]string{"a", "b"}, `[1, {"c":2}]`},
		{[]string{"a", "n"}, `null`},
		{[]string{"a", "b", "c"}, ``}, // an array has no members
		{[]string{"a", "n", "c"}, ``},
		{[]string{"a/b"}, `3`},
		{[]string{`a\u002fb`}, ``},
		{[]string{""}, `4`},
		{[]string{"A"}, ``},
		{[]string{"x"}, `{"y":5}`}, // the last one counts
		{[]string{"x", "y"}, `5`},
		{[]string{"big"}, `9007199254740993`},
		{[]string{"absent", "too"}, ``},
	} {
		got, ok := Member([]byte(object), tt.path...)
		if string(got) != tt.want || ok != (tt.want != "") {
			t.Errorf("Member(%q) = %s, %t, want %s", tt.path, got, ok, tt.want)
		}
	}
	for _, other := range []string{``, `[]`, `1`, `"a"`, `null`} {
		if got, ok := Member([]byte(other), "a"); ok {
			t.Errorf("Member of %s = %s", other, got)
		}
	}
}

func TestVisitsMembersAndElementsInOrder(t *testing.T) {
	var seen []string
	EachMember([]byte(`{"b":1, "\u0061" : [2,3] ,"b":{}}`), func(key string, value []byte) {
		seen = append(seen, key+"="+string(value))
	})
	if want := []string{"b=1", "a=[2,3]", "b={}"}; !slices.Equal(seen, want) {
		t.Errorf("EachMember saw %q, want %q", seen, want)
	}
	seen = nil
	EachElement([]byte(` [ 1 , [2,3],"x" , {}] `), func(value []byte) { seen = append(seen, string(value)) })
	if want := []string{`1`, `[2,3]`, `"x"`, `{}`}; !slices.Equal(seen, want) {
		t.Errorf("EachElement saw %q, want %q", seen, want)
	}
	for _, other := range []string{``, `{}`, `[]`, `[ ]`, `{ }`, `7`, `null`, `"x"`} {
		EachMember([]byte(other), func(key string, _ []byte) { t.Errorf("a member %q in %s", key, other) })
		EachElement([]byte(other), func(value []byte) { t.Errorf("an element %s in %s", value, other) })
	}
}

func TestSetsOneMember(t *testing.T) {
	for _, tt := range []struct {
		object string
		path   []string
		want   string
	}{
		{`{"a": 1 , "b":2}`, []string{"a"}, `{"a": V , "b":2}`},
		{`{"a":1,"b": 2 }`, []string{"b"}, `{"a":1,"b": V }`},
		{`{"\u0061":1}`, []string{"a"}, `{"\u0061":V}`},
		{`{"a":1,"a":2}`, []string{"a"}, `{"a":1,"a":V}`},
		{` { "a":1}`, []string{"c"}, ` {"c":V, "a":1}`},
		{`{}`, []string{"c"}, `{"c":V}`},
		{`{ }`, []string{"c"}, `{"c":V }`},
		{`{"a":{"x":1.0}}`, []string{"a", "b"}, `{"a":{"b":V,"x":1.0}}`},
		{`{"a":{}}`, []string{"a", "b", "c"}, `{"a":{"b":{"c":V}}}`},
		{`{"a":null}`, []string{"a", "b"}, `{"a":{"b":V}}`},
		{`{"a":[1]}`, []string{"a", "b"}, `{"a":{"b":V}}`},
		{``, []string{"a", "b"}, `{"a":{"b":V}}`},
		{`null`, []string{"a"}, `{"a":V}`},
		{`{"k\"":0}`, []string{`k"`}, `{"k\"":V}`},
		{`{}`, []string{"\n"}, `{"\n":V}`},
		// Whatever a hostile peer sends as params, what leaves us is JSON.
		{`[1,2]`, []string{"a"}, `{"a":V}`},
		{`5`, []string{"a"}, `{"a":V}`},
		{`"text"`, []string{"a"}, `{"a":V}`},
		{` null `, []string{"a"}, `{"a":V}`},
	} {
		in := []byte(tt.object)
		want := bytes.ReplaceAll([]byte(tt.want), []byte("V"), []byte(`{"v":1}`))
		if got := Set(in, []byte(`{"v":1}`), tt.path...); !bytes.Equal(got, want) {
			t.Errorf("Set(%s, %q) = %s, want %s", tt.object, tt.path, got, want)
		}
		if string(in) != tt.object {
			t.Errorf("Set changed its argument from %s to %s", tt.object, in)
		}
	}
}

func TestRemovesOneMember(t *testing.T) {
	for _, tt := range []struct {
		object string
		path   []string
		want   string
	}{
		{`{"a":1,"b":2}`, []string{"a"}, `{"b":2}`},
		{`{"a":1,"b":2}`, []string{"b"}, `{"a":1}`},
		{`{"a":1}`, []string{"a"}, `{}`},
		{`{ "a" : 1 , "b" : 2 , "c" : 3 }`, []string{"b"}, `{ "a" : 1 , "c" : 3 }`},
		{`{ "a" : 1 , "b" : 2 }`, []string{"b"}, `{ "a" : 1  }`},
		{`{"x":{"a":[",{"]},"y":1}`, []string{"x", "a"}, `{"x":{},"y":1}`},
		{`{"a,":1,"b":2}`, []string{"b"}, `{"a,":1}`},
		{`{"\u0061":1}`, []string{"a"}, `{}`},
		// A reader must not find an earlier copy where the last one stood.
		{`{"a":1,"a":2}`, []string{"a"}, `{}`},
		{`{"a":1,"b":0,"\u0061":2,"a":3}`, []string{"a"}, `{"b":0}`},
	} {
		in := []byte(tt.object)
		if got := string(Remove(in, tt.path...)); got != tt.want {
			t.Errorf("Remove(%s, %q) = %s, want %s", tt.object, tt.path, got, tt.want)
		}
		if string(in) != tt.object {
			t.Errorf("Remove changed its argument from %s to %s", tt.object, in)
		}
	}
	for _, same := range []string{`{"a":1}`, `{}`, `[]`, `1`, `null`, ``} {
		in := []byte(same)
		if got := Remove(in, "b"); len(got) != len(in) || len(in) > 0 && &got[0] != &in[0] {
			t.Errorf("Remove of what is not in %s made a new slice: %s", same, got)
		}
		if got := Remove(in, "a", "b"); string(got) != same {
			t.Errorf("Remove of what is not in %s = %s", same, got)
		}
	}
}

func TestOneLineKeepsEverythingButLineBreaks(t *testing.T) {
	pretty := []byte("{\r\n  \"a\": \"x\\ny\",\n\t\"b\": [\r1]\n}")
	flat := OneLine(pretty)
	if bytes.ContainsAny(flat, "\r\n") || len(flat) != len(pretty) {
		t.Errorf("OneLine = %q", flat)
	}
	if a, b := decode(t, pretty), decode(t, flat); !reflect.DeepEqual(a, b) {
		t.Errorf("OneLine changed %v to %v", a, b)
	}
	already := []byte(`{"a":1}`)
	if got := OneLine(already); &got[0] != &already[0] {
		t.Error("OneLine copied what was one line already")
	}
}

// decode reads a value the way the Go programs around us do, numbers kept exact.
func decode(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}
