package main

import (
	"testing"

	"github.com/mcpmend/mcpmend/bench/internal/toolset"
)

func TestAHintIsSeenOnlyIfItIsThere(t *testing.T) {
	for _, tc := range []struct {
		kind, field, suggestion, good, bad string
	}{
		{"key_typo", "/value", `{"rename":"vaule","to":"value"}`, `value: missing. You sent "vaule"`, `vaule: not a field`},
		{"enum_typo", "/s", `{"value":"open"}`, `Did you mean "open"?`, `need an opening`},
		{"csv_for_array", "/l", `{"value":["a", "b"]}`, `Did you mean ["a","b"]?`, `need a list of a, b`},
		{"enum_extended", "/r", `{"one_of":["x","y"]}`, `one of "x","y"`, `one of "x"`},
		{"missing_required", "/q", `{"add":"query"}`, `query: missing`, `something is missing`},
		{"out_of_range", "/limit", `{"maximum":100}`, `limit: need at most 100`, `limit is too high`},
		{"number_with_unit", "/a/0/size", ``, `a[0].size: got "3px", need integer`, `need integer`},
		{"truncated_mid_string", "", ``, `it seems cut off`, `not JSON`},
		{"duplicate_keys_conflict", "/k", ``, `the key "k" is given twice`, `a key is given twice`},
	} {
		c := toolset.Case{Kind: tc.kind, Field: tc.field, Suggestion: []byte(tc.suggestion)}
		if !hinted(c, tc.good) {
			t.Errorf("%s: the hint in %q is not seen", tc.kind, tc.good)
		}
		if hinted(c, tc.bad) {
			t.Errorf("%s: a hint is seen in %q", tc.kind, tc.bad)
		}
	}
}
