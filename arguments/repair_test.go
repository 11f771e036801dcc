package arguments

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const repairSchema = `{
	"type": "object",
	"properties": {
		"n":        {"type": "integer"},
		"ratio":    {"type": "number"},
		"flag":     {"type": "boolean"},
		"name":     {"type": "string"},
		"zip_code": {"type": "string"},
		"tags":     {"type": "array", "items": {"type": "string"}},
		"args":     {"type": "array", "items": {"type": "string"}},
		"points":   {"type": "array", "items": {"type": "number"}},
		"rows":     {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
		"filter":   {"type": "object", "properties": {"userId": {"type": "integer"}}, "additionalProperties": false},
		"state":    {"type": "string", "enum": ["open", "in_progress", "re-sign", "resign"]},
		"vote":     {"type": "string", "enum": ["+1", "-1"]},
		"code":     {"type": ["integer", "string"]},
		"maybe":    {"type": ["string", "null"]},
		"since":    {"type": "string", "format": "date-time"}
	},
	"additionalProperties": false
}`

func TestRepairMendsWhatCanOnlyMeanOneThing(t *testing.T) {
	s := compiled(t, repairSchema)
	for _, tc := range []struct {
		args, want string
		rules      []Rule
	}{
		{`{"n":"42"}`, `{"n":42}`, []Rule{RuleNumberText}},
		{`{"n":"9007199254740993"}`, `{"n":9007199254740993}`, []Rule{RuleNumberText}},
		{`{"ratio":"250.0"}`, `{"ratio":250.0}`, []Rule{RuleNumberText}},
		{`{"flag":"true"}`, `{"flag":true}`, []Rule{RuleBooleanText}},
		{`{"flag":"False"}`, `{"flag":false}`, []Rule{RulePythonText}},
		{`{"tags":"[\"a\", \"b\"]"}`, `{"tags":["a", "b"]}`, []Rule{RuleArrayText}},
		{`{"filter":"{\"userId\": 1}"}`, `{"filter":{"userId": 1}}`, []Rule{RuleObjectText}},
		{`{"rows":["{\"id\":1}",{"id":2}]}`, `{"rows":[{"id":1},{"id":2}]}`, []Rule{RuleItemText}},
		{`{"name":12}`, `{"name":"12"}`, []Rule{RuleIntegerToken}},
		{`{"tags":"a b"}`, `{"tags":["a b"]}`, []Rule{RuleWrap}},
		{`{"rows":{ "id":1 }}`, `{"rows":[{ "id":1 }]}`, []Rule{RuleWrap}},
		{`{"name":["a\u0041"]}`, `{"name":"a\u0041"}`, []Rule{RuleUnwrap}},
		{`{"n":null,"name":"x"}`, `{"name":"x"}`, []Rule{RuleNull}},
		{`{"name":"x","n":null,"flag":null}`, `{"name":"x"}`, []Rule{RuleNull, RuleNull}},
		{`{"filter":{"user_id":1}}`, `{"filter":{"userId":1}}`, []Rule{RuleKey}},
		{`{"state":" Open "}`, `{"state":"open"}`, []Rule{RuleValue}},
		{`{"state":"in progress"}`, `{"state":"in_progress"}`, []Rule{RuleValue}},
		{`{"since":"2026-09-13 03:19:00Z"}`, `{"since":"2026-09-13T03:19:00Z"}`, []Rule{RuleDateTime}},
		{`{"arguments":{"n":1}}`, `{"n":1}`, []Rule{RuleEnvelope}},
		{`{"name":"do","arguments":"{\"n\":1}"}`, `{"n":1}`, []Rule{RuleEnvelope}},
		{`null`, `{}`, []Rule{RuleEmpty}},
		{`"  "`, `{}`, []Rule{RuleEmpty}},
		{`"{\"n\": 1}"`, `{"n": 1}`, []Rule{RuleText}},
		{`"\"{\\\"n\\\":1}\""`, `{"n":1}`, []Rule{RuleText}},
		{"\"```json\\n{\\\"n\\\":1}\\n```\"", `{"n":1}`, []Rule{RuleText}},
		{`"{'n': 1, 'flag': True, 'maybe': None, 'name': 'it\\'s \"x\"',}"`, `{"n": 1, "flag": true, "maybe": null, "name": "it's \"x\""}`, []Rule{RuleText}},
		{`"{n: 1, \"name\": \"a\nb\\'\"}"`, `{"n": 1, "name": "a\nb'"}`, []Rule{RuleText}},
		{`{'n': 1}`, `{"n": 1}`, []Rule{RuleText}},
		// Several at once, and one under another.
		{`{"n":"1","tags":"a","filter":"{\"user_id\":\"7\"}"}`, `{"n":1,"tags":["a"],"filter":{"userId":7}}`,
			[]Rule{RuleNumberText, RuleWrap, RuleObjectText, RuleKey, RuleNumberText}},
	} {
		raw := strings.ReplaceAll(tc.args, "\n", `\n`) // a raw line break inside the inner text
		r := s.Repair(Call{Tool: "do", Arguments: []byte(raw), Risk: ReadOnly})
		if r.Outcome != Mended || string(r.Arguments) != tc.want {
			t.Errorf("Repair(%s) = %v %s, want mended %s; problems %v", raw, r.Outcome, r.Arguments, tc.want, r.Problems)
			continue
		}
		var rules []Rule
		for _, c := range r.Changes {
			rules = append(rules, c.Rule)
		}
		slices.Sort(rules)
		slices.Sort(tc.rules)
		if diff := cmp.Diff(tc.rules, rules); diff != "" {
			t.Errorf("Repair(%s) rules (-want +got):\n%s", raw, diff)
		}
		if again := s.Repair(Call{Tool: "do", Arguments: r.Arguments, Risk: ReadOnly}); again.Outcome != Valid {
			t.Errorf("Repair(%s) is not stable: %v", raw, again)
		}
	}
}

func TestRepairNeverGuesses(t *testing.T) {
	s := compiled(t, repairSchema)
	for _, args := range []string{
		`{"n":"007"}`, `{"n":"+5"}`, `{"n":"1e3"}`, `{"n":"1,000"}`, `{"n":"5 MB"}`, `{"n":"4.7"}`, `{"n":4.7}`, `{"n":""}`, `{"n":"-0"}`, `{"n":"0x1F"}`, `{"n":"null"}`,
		`{"ratio":"NaN"}`, `{"ratio":"Infinity"}`, `{"ratio":"1."}`, `{"ratio":".5"}`,
		`{"flag":"yes"}`, `{"flag":1}`, `{"flag":"TRUE"}`, `{"flag":"on"}`,
		`{"tags":"a,b"}`, `{"tags":"a;b"}`, `{"tags":""}`, `{"tags":"null"}`, `{"tags":"[a]"}`, `{"tags":5}`,
		`{"args":"ls"}`,                                // a command line
		`{"points":3}`, `{"points":"3"}`, `{"rows":1}`, // a vector needs all its parts
		`{"name":1.10}`, `{"name":1e5}`, `{"name":true}`, `{"name":{"a":1}}`, `{"name":["a","b"]}`, `{"name":[]}`,
		`{"zip_code":1234}`, // a zero in front would be gone already
		`{"state":"opne"}`, `{"state":"reopen"}`, `{"state":"re sign"}`, `{"state":""}`,
		`{"vote":"1"}`, `{"vote":" 1"}`, // a sign is no separator
		`{"nme":"x"}`, `{"title":"x"}`, `{"filter":{"id":1}}`,
		`{"filter":{"user_id":1,"user-id":2}}`,  // two for one
		`{"filter":{"userId":1,"user_id":2}}`,   // and one that is there already
		`{"rows":[{"id":1,"id":2}],"flag":"x"}`, // twice the same key
		`{"since":"03/04/2026","n":"x"}`,
		`{"n":"1","flag":"yes"}`, // the certain half is not enough
		`{"raw":"{\"n\":1}","len":7}`,
		`{"name":"other","arguments":{"n":1}}`, // another tool's call
		`[{"n":1}]`, `"do it"`, `5`, `"5"`,
		`"{\"n\": 1"`, `"{\"name\": \"ab"`, `"{\"tags\": [\"a\""`, `"{\"n\":1}{\"n\":2}"`, `"{\"n\":1,\"n\":2}"`, `"{'n': 1"`,
		"\"```json\\n{\\\"n\\\":1}\"", `"{\"n\": undefined}"`, `"{\"n\": (1, 2)}"`, `"{\"name\": \"\\d\"}"`, `"{\"n\":1,,}"`,
	} {
		r := s.Repair(Call{Tool: "do", Arguments: []byte(args), Risk: ReadOnly})
		if r.Outcome != Invalid || string(r.Arguments) != args || r.Changes != nil || r.Suggested != nil {
			t.Errorf("Repair(%s) = %v %s %v, want it left alone", args, r.Outcome, r.Arguments, r.Changes)
		}
		if len(r.Problems) == 0 {
			t.Errorf("Repair(%s) does not say what is wrong", args)
		}
	}
}

func TestValidCallsComeBackAsTheVeryBytes(t *testing.T) {
	s := compiled(t, repairSchema)
	for _, args := range []string{
		``, `{}`, ` { } `, `{"code":"007"}`, `{"code":7}`, `{"maybe":null}`, `{"maybe":"null"}`, `{"n":12345678901234567890}`,
		`{"name":"[\"x\"]","tags":["null"]}`, `{"name":"  ~/../a\\b  "}`, "{\"name\":\"\u201cquoted\u201d \u200b\"}", `{"name":"a}{b"}`, `{"since":"tomorrow"}`,
	} {
		in := []byte(args)
		r := s.Repair(Call{Arguments: in, Risk: ReadOnly})
		if r.Outcome != Valid || string(r.Arguments) != args || len(in) > 0 && &r.Arguments[0] != &in[0] {
			t.Errorf("Repair(%s) = %v %s, want the same bytes", args, r.Outcome, r.Arguments)
		}
	}
}

func TestUntouchedMembersKeepTheirBytes(t *testing.T) {
	s := compiled(t, repairSchema)
	args := "{ \"name\" : \"\\u0041\\/b\" ,\n\t\"ratio\":1.50E+2, \"n\" : \"7\" , \"maybe\":null , \"flag\":null }"
	r := s.Repair(Call{Arguments: []byte(args), Risk: ReadOnly})
	want := "{ \"name\" : \"\\u0041\\/b\" ,\n\t\"ratio\":1.50E+2, \"n\" : 7 , \"maybe\":null  }"
	if string(r.Arguments) != want {
		t.Errorf("Repair = %s\nwant     %s", r.Arguments, want)
	}
}

func TestTwoPossibleMeaningsAreNone(t *testing.T) {
	s := compiled(t, `{"properties":{
		"v": {"anyOf":[{"type":"boolean"},{"type":"array","items":{"type":"string"}}]},
		"w": {"anyOf":[{"type":"integer"},{"type":"null"},{"type":"boolean"}]}}}`)
	if r := s.Repair(Call{Arguments: []byte(`{"v":"true"}`), Risk: ReadOnly}); r.Outcome != Invalid {
		t.Errorf(`"true" for a boolean or a list of texts = %v %s, want it left alone`, r.Outcome, r.Arguments)
	}
	table := compiled(t, `{"properties":{"rows":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}}`)
	if r := table.Repair(Call{Arguments: []byte(`{"rows":["a","b"]}`), Risk: ReadOnly}); r.Outcome != Invalid {
		t.Errorf("one row or two = %v %s, want it left alone", r.Outcome, r.Arguments)
	}
	if r := table.Repair(Call{Arguments: []byte(`{"rows":["a"]}`), Risk: ReadOnly}); string(r.Arguments) != `{"rows":[["a"]]}` {
		t.Errorf("one row of one = %v %s, want it wrapped", r.Outcome, r.Arguments)
	}
	// A branch takes the object as it is, so it is not the list that was meant.
	oneOrMany := compiled(t, `{"$defs":{"o":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},"properties":{"o":{"anyOf":[{"$ref":"#/$defs/o"},{"type":"array","items":{"$ref":"#/$defs/o"}}]}}}`)
	if r := oneOrMany.Repair(Call{Arguments: []byte(`{"o":{"n":"5"}}`), Risk: ReadOnly}); string(r.Arguments) != `{"o":{"n":5}}` {
		t.Errorf("an object, or a list of them = %v %s, want the object", r.Outcome, r.Arguments)
	}
	if r := s.Repair(Call{Arguments: []byte(`{"w":"5"}`), Risk: ReadOnly}); string(r.Arguments) != `{"w":5}` {
		t.Errorf(`"5" for an integer, null or boolean = %v %s, want 5`, r.Outcome, r.Arguments)
	}
}

func TestOnlyTheSchemaFillsInWhatIsMissing(t *testing.T) {
	s := compiled(t, `{"properties":{
		"lang":    {"type":"string","default":"en"},
		"kind":    {"const":"person"},
		"confirm": {"const":true},
		"q":       {"type":"string"}},
		"required":["lang","kind"]}`)
	for args, want := range map[string]string{
		`{}`:                       `{"lang":"en","kind":"person"}`,
		`{"q":"x" }`:               `{"q":"x","lang":"en","kind":"person" }`,
		`{"Lang":"de","kind":1}`:   "",
		`{"Lang":"de"}`:            "",
		`{"language":"de"}`:        "", // may be the missing one, misspelled
		`{"lang":"de","KIND":"x"}`: "",
	} {
		r := s.Repair(Call{Arguments: []byte(args), Risk: Write})
		if want == "" && r.Outcome != Invalid || want != "" && string(r.Arguments) != want {
			t.Errorf("Repair(%s) = %v %s, want %q", args, r.Outcome, r.Arguments, want)
		}
	}
	choice := compiled(t, `{"properties":{"id":{"type":"integer","default":0},"name":{"type":"string"}},"anyOf":[{"required":["id"]},{"required":["name"]}]}`)
	if r := choice.Repair(Call{Arguments: []byte(`{}`), Risk: ReadOnly}); r.Outcome != Invalid {
		t.Errorf("Repair chose a branch by itself: %s", r.Arguments)
	}
	confirm := compiled(t, `{"properties":{"confirm":{"const":true}},"required":["confirm"]}`)
	if r := confirm.Repair(Call{Arguments: []byte(`{}`), Risk: ReadOnly}); r.Outcome != Invalid {
		t.Errorf("Repair confirmed by itself: %s", r.Arguments)
	}
}

func TestThePolicyGoesByRisk(t *testing.T) {
	s := compiled(t, repairSchema)
	const (
		text   = `{"n":"1"}`               // representation
		two    = `{"n":"1","flag":"true"}` // representation, twice over
		naming = `{"state":"OPEN"}`
		null   = `{"n":null}`
	)
	for _, tc := range []struct {
		policy Policy
		risk   Risk
		want   map[string]Outcome
	}{
		{Balanced, ReadOnly, map[string]Outcome{text: Mended, two: Mended, naming: Mended, null: Mended}},
		{Balanced, Write, map[string]Outcome{text: Mended, two: Mended, naming: Mended, null: Invalid}},
		{Balanced, Destructive, map[string]Outcome{text: Mended, two: Withheld, naming: Withheld, null: Invalid}},
		{"", Destructive, map[string]Outcome{text: Mended, naming: Withheld}},
		{Strict, ReadOnly, map[string]Outcome{text: Mended, two: Mended, naming: Mended, null: Mended}},
		{Strict, Write, map[string]Outcome{text: Mended, two: Withheld, naming: Withheld, null: Invalid}},
		{Strict, Destructive, map[string]Outcome{text: Withheld, two: Withheld, naming: Withheld, null: Invalid}},
		{Off, ReadOnly, map[string]Outcome{text: Invalid, naming: Invalid, null: Invalid}},
		{"lenient", ReadOnly, map[string]Outcome{text: Withheld}},
	} {
		for args, want := range tc.want {
			r := s.Repair(Call{Arguments: []byte(args), Policy: tc.policy, Risk: tc.risk})
			if r.Outcome != want {
				t.Errorf("%s, %v: Repair(%s) = %v, want %v", tc.policy, tc.risk, args, r.Outcome, want)
			}
			if r.Outcome != Mended && string(r.Arguments) != args {
				t.Errorf("%s, %v: Repair(%s) sends %s", tc.policy, tc.risk, args, r.Arguments)
			}
			if (r.Outcome == Withheld) != (r.Suggested != nil) {
				t.Errorf("%s, %v: Repair(%s) = %v and suggests %q", tc.policy, tc.risk, args, r.Outcome, r.Suggested)
			}
		}
	}
}

func TestChangesSayWhatWasDone(t *testing.T) {
	s := compiled(t, repairSchema)
	r := s.Repair(Call{Arguments: []byte(`{"filter":{"user_id":"7"},"n":null}`), Risk: ReadOnly})
	want := []Change{
		{Path: "/filter/user_id", From: `"user_id"`, To: `"userId"`, Rule: RuleKey},
		{Path: "/n", From: "null", Rule: RuleNull},
		{Path: "/filter/userId", From: `"7"`, To: "7", Rule: RuleNumberText},
	}
	if diff := cmp.Diff(want, r.Changes); diff != "" {
		t.Errorf("Changes (-want +got):\n%s", diff)
	}
	for want, c := range map[string]Change{
		`/n: "7" became 7 (number_text)`:     {Path: "/n", From: `"7"`, To: "7", Rule: RuleNumberText},
		`/n: left out null (null_for_none)`:  {Path: "/n", From: "null", Rule: RuleNull},
		`/lang: added "en" (schema_default)`: {Path: "/lang", To: `"en"`, Rule: RuleDefault},
		`/auth/password: integer_for_text`:   {Path: "/auth/password", From: "1234", To: `"1234"`, Rule: RuleIntegerToken},
		`arguments: arguments_text`:          {From: `"{\"token\":\"x\"}"`, To: `{"token":"x"}`, Rule: RuleText},
	} {
		if got := c.String(); got != want {
			t.Errorf("String() = %s, want %s", got, want)
		}
	}
}

func TestToolNamesAreMatchedOnlyIfOneFits(t *testing.T) {
	catalogue := []string{"read_file", "write_file", "list-items", "ChaDri.change_drink", "get_v1_2", "get_v12", "Run", "run"}
	for called, want := range map[string]string{
		"ReadFile": "read_file", " read_file": "read_file", "functions.read_file:0": "read_file", "functions.list_items": "list-items",
		"LIST ITEMS": "list-items", "chadri_change_drink": "ChaDri.change_drink", "getV1_2": "get_v1_2",
		"read_file": "", "RUN": "", "readfil": "", "delete_file": "", "repo_browser.read_file": "", "read_file_tool": "", "": "", "functions.": "",
	} {
		got, ok := RepairName(called, catalogue)
		if got != want || ok != (want != "") {
			t.Errorf("RepairName(%q) = %q, %v, want %q", called, got, ok, want)
		}
	}
}
