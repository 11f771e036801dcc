package arguments

import "testing"

func TestSpliceTouchesOnePlace(t *testing.T) {
	for _, tc := range []struct {
		data string
		edit edit
		want string
	}{
		{`{"a":1,"b":[2, {"c":"x"}]}`, edit{path: []string{"b", "1", "c"}, text: "3"}, `{"a":1,"b":[2, {"c":3}]}`},
		{` {"a" : 1 } `, edit{path: []string{"a"}, text: `"x"`}, ` {"a" : "x" } `},
		{`{"\u0061":1}`, edit{path: []string{"a"}, text: "2"}, `{"\u0061":2}`},
		{`{"a}":"]\"}","b":1}`, edit{path: []string{"b"}, text: "2"}, `{"a}":"]\"}","b":2}`},
		{`{"a":1}`, edit{op: rename, key: "a", text: `b"`}, `{"b\"":1}`},
		{`{"a":1}`, edit{op: remove, key: "a"}, `{}`},
		{`{"a":1, "b":2}`, edit{op: remove, key: "a"}, `{"b":2}`},
		{`{"a":1, "b":2}`, edit{op: remove, key: "b"}, `{"a":1}`},
		{`{"a":1 , "b":2 , "c":3}`, edit{op: remove, key: "b"}, `{"a":1 , "c":3}`},
		{`{}`, edit{op: insert, key: "a", text: "1"}, `{"a":1}`},
		{`{ "b":2 }`, edit{op: insert, key: "a", text: "1"}, `{ "b":2,"a":1 }`},
		{`{"a":{ "x":1 }}`, edit{op: wrap, path: []string{"a"}}, `{"a":[{ "x":1 }]}`},
		{`{"a":[ 1.50 ]}`, edit{op: unwrap, path: []string{"a"}}, `{"a":1.50}`},
	} {
		out, _, ok := splice([]byte(tc.data), tc.edit)
		if !ok || string(out) != tc.want {
			t.Errorf("splice(%s, %+v) = %s, %v, want %s", tc.data, tc.edit, out, ok, tc.want)
		}
	}
	for _, e := range []edit{{path: []string{"x"}}, {path: []string{"a", "0"}}, {path: []string{"b", "2"}}, {op: rename, key: "x"}, {op: unwrap, path: []string{"a"}}} {
		if out, _, ok := splice([]byte(`{"a":1,"b":[2]}`), e); ok {
			t.Errorf("splice of a place that is not there (%+v) = %s", e, out)
		}
	}
}

func TestFoldKeepsWhatTellsNamesApart(t *testing.T) {
	for _, same := range [][2]string{{"userId", "user_id"}, {"user-id", "USER ID"}, {"x86 64", "x86_64"}, {"orgID", "org_id"}, {"a -b", "a_b"}, {"Maret-(UNS)", "maret (uns)"}} {
		if fold(same[0]) != fold(same[1]) {
			t.Errorf("fold(%q) = %q, fold(%q) = %q, want them equal", same[0], fold(same[0]), same[1], fold(same[1]))
		}
	}
	for _, other := range [][2]string{{"-1", "1"}, {"+1", "-1"}, {"-created", "created"}, {"1-2", "12"}, {"_id", "id"}, {"a.b", "ab"}, {"v1_2", "v12"}} {
		if fold(other[0]) == fold(other[1]) {
			t.Errorf("fold(%q) = fold(%q) = %q, want them different", other[0], other[1], fold(other[0]))
		}
	}
}
