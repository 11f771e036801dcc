package arguments

import (
	"encoding/json"
	"strings"
	"testing"
)

const userSchema = `{
	"type": "object",
	"properties": {
		"username": {"type": "string", "minLength": 3, "maxLength": 20, "pattern": "^[a-zA-Z0-9_]+$", "description": "Name to sign in with"},
		"email":    {"type": "string", "format": "email"},
		"age":      {"type": "integer", "minimum": 18, "maximum": 120},
		"role":     {"type": "string", "enum": ["admin", "moderator", "user", "guest"]},
		"state":    {"type": "string", "enum": ["open", "closed"]},
		"tags":     {"type": "array", "items": {"type": "string"}, "minItems": 1},
		"active":   {"type": "boolean"},
		"address":  {"type": "object", "properties": {"city": {"type": "string"}, "street": {"type": "string"}}, "required": ["city"]},
		"password": {"type": "string"}
	},
	"required": ["username", "age"],
	"additionalProperties": false
}`

func TestExplainSaysWhatToDoInAFewWords(t *testing.T) {
	s := compiled(t, userSchema)
	for _, tc := range []struct{ args, want string }{
		{`{"username":"john","age":"18k"}`, `
Invalid arguments for create-user. The tool was not run.
- age: got "18k" (string), need integer.
Call it again with all arguments; keep the other fields.`},
		{`{"username":"john","age":5,"state":"opne"}`, `
Invalid arguments for create-user (2 problems). The tool was not run.
- age: got 5, need at least 18.
- state: got "opne", need one of "open","closed". Did you mean "open"?
Call it again with all arguments; keep the other fields.`},
		// Never a proposal for who may do what.
		{`{"username":"john","age":20,"role":"admim"}`, `
Invalid arguments for create-user. The tool was not run.
- role: got "admim", need one of "admin","moderator","user","guest".
Call it again with all arguments; keep the other fields.`},
		{`{"user":"john","age":20}`, `
Invalid arguments for create-user. The tool was not run.
- username: missing, need string. You sent "user", which is not a field; rename it?
Call it again with all arguments; keep the other fields.`},
		{`{"username":"john","age":20,"actve":true}`, `
Invalid arguments for create-user. The tool was not run.
- actve: not a field. Did you mean "active"? Else remove it.
Call it again with all arguments; keep the other fields.`},
		{`{"username":"john","age":20,"street":"Elm"}`, `
Invalid arguments for create-user. The tool was not run.
- street: not a field; put it inside "address", or remove it.
Call it again with all arguments; keep the other fields.`},
		{`{"user":{"username":"john"},"age":20}`, `
Invalid arguments for create-user. The tool was not run.
- username: missing, need string. It is inside "user"; move it up.
Call it again with all arguments; keep the other fields.`},
		{`{"username":"john","age":20,"tags":"a, b","active":"yes"}`, `
Invalid arguments for create-user (2 problems). The tool was not run.
- active: got "yes" (string), need boolean. Did you mean true?
- tags: got "a, b" (string), need array of string. Did you mean ["a","b"]?
Call it again with all arguments; keep the other fields.`},
		{`{"username":"john","age":20,"active":null,"password":17}`, `
Invalid arguments for create-user (2 problems). The tool was not run.
- active: got null, need boolean. Or leave it out.
- password: got (hidden), need string.
Call it again with all arguments; keep the other fields.`},
		{`"{\"username\":\"john\",\"age\":20"`, `
Invalid arguments for create-user. The tool was not run.
- an object is not closed: the text ends too early; need one complete JSON object. It seems cut off: send it again in full, or less at once.
Call it again with one complete JSON object.`},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"username":"john","age":20,"active":1.5}`, `
Invalid arguments for create-user (7 problems). The tool was not run.
- a: not a field; remove it, or use one of address, email, password, role, state, tags.
- active: got 1.5 (number), need boolean.
- b: not a field; remove it, or use one of address, email, password, role, state, tags.
- c: not a field; remove it, or use one of address, email, password, role, state, tags.
- d: not a field; remove it, or use one of address, email, password, role, state, tags.
- and 2 more
Call it again with all arguments; keep the other fields.`},
	} {
		got := Explain(Failure{Tool: "create-user", Schema: s, Arguments: []byte(tc.args)}).Text
		if want := strings.TrimPrefix(tc.want, "\n"); got != want {
			t.Errorf("Explain(%s) =\n%s\nwant\n%s", tc.args, got, want)
		}
	}
}

func TestExplainGrowsWhenTheSameCallFailsAgain(t *testing.T) {
	s := compiled(t, userSchema)
	f := Failure{Tool: "create-user", Description: "Create a user", Schema: s, Arguments: []byte(`{"username":"ab","age":20,"email":"nobody","role":"x"}`)}
	length := 0
	for f.Repeats = range 4 {
		e := Explain(f)
		if len(e.Text) <= length {
			t.Errorf("after %d repeats the text has %d bytes, not more than before (%d)", f.Repeats, len(e.Text), length)
		}
		length = len(e.Text)
		for _, part := range map[int][]string{
			1: {`Schema of username: {"type":"string","minLength":3`},
			2: {"Issues:\n1. role", "Received: \"ab\"", "Expected: at least 3 characters", "Fix: ", "Description: Create a user", "Required fields: username, age",
				"- username (string): Name to sign in with", "Constraints: at least 3 characters, at most 20 characters, matches ^[a-zA-Z0-9_]+$", "Suggestions:\n1. Use only the allowed values: role",
				"Valid example:\n{\"username\":", "format email"},
			3: {"failed 4 times: stop and ask the user"},
		}[f.Repeats] {
			if !strings.Contains(e.Text, part) {
				t.Errorf("after %d repeats the text does not say %q:\n%s", f.Repeats, part, e.Text)
			}
		}
	}
	f.Repeats, f.Full = 0, true
	if e := Explain(f); e.Schema == nil || e.ValidExample == nil || !strings.Contains(e.Text, "Valid example") {
		t.Errorf("Full does not tell everything:\n%s", e.Text)
	}
}

func TestExplainOffersWhatAPolicyWithheld(t *testing.T) {
	s := compiled(t, userSchema)
	args := []byte(`{"username":"john","age":20,"state":"OPEN"}`)
	r := s.Repair(Call{Arguments: args, Risk: Destructive})
	if r.Outcome != Withheld {
		t.Fatalf("Repair = %v, want it withheld", r.Outcome)
	}
	e := Explain(Failure{Tool: "create-user", Schema: s, Arguments: args, Suggested: r.Suggested})
	if !strings.HasSuffix(e.Text, `If you mean this, send it: {"username":"john","age":20,"state":"open"}`) {
		t.Errorf("Explain =\n%s", e.Text)
	}
	secret := []byte(`{"username":"john","age":20,"state":"OPEN","password":"hunter2"}`)
	if e := Explain(Failure{Tool: "create-user", Schema: s, Arguments: secret, Suggested: s.Repair(Call{Arguments: secret}).Suggested, Full: true}); strings.Contains(e.Text, "hunter2") || e.SuggestedArguments != nil {
		t.Errorf("Explain tells a secret:\n%s", e.Text)
	}
	data, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(data), `"suggested_arguments":{"username":"john"`) {
		t.Errorf("as data: %s, %v", data, err)
	}
}

func TestSecretsAreNotRepeated(t *testing.T) {
	s := compiled(t, userSchema)
	for _, args := range []string{
		`{"username":"john","age":20,"password":{"x":"hunter2"}}`,
		`{"username":"john","age":"hunter","address":{"city":1,"apiKey":"hunter2"},"tags":{"token":"hunter2"}}`,
		`{"username":"john","age":20,"tags":"{\"secret\":\"hunter2\"}"}`,
		`"{\"username\":\"john\",\"password\":\"hunter2\"}"`,
		`"{'username':'john','password':'hunter2"`,
	} {
		for repeats := range 3 {
			e := Explain(Failure{Tool: "t", Schema: s, Arguments: []byte(args), Repeats: repeats})
			data, err := json.Marshal(e)
			if err != nil || len(e.Issues) == 0 || strings.Contains(e.Text+string(data), "hunter2") {
				t.Errorf("Explain(%s) after %d repeats, %v:\n%s\n%s", args, repeats, err, e.Text, data)
			}
		}
	}
}

func TestExplainDoesNotClaimThatAForwardedCallDidNotRun(t *testing.T) {
	s := compiled(t, userSchema)
	e := Explain(Failure{Tool: "t", Schema: s, Arguments: []byte(`{"username":"john","age":"x"}`), Forwarded: true})
	if strings.Contains(e.Text, "not run") {
		t.Errorf("Explain =\n%s", e.Text)
	}
}

func TestExplainDoesNotBlameValidArguments(t *testing.T) {
	e := Explain(Failure{Tool: "t", Schema: compiled(t, userSchema), Arguments: []byte(`{"username":"john","age":20}`), Forwarded: true})
	if e.Text != "The arguments for t fit its schema." || len(e.Issues) != 0 {
		t.Errorf("Explain = %q %v", e.Text, e.Issues)
	}
}

func TestExplainNameAsksForTheNearestTool(t *testing.T) {
	catalogue := []string{"list_traces", "get_issue", "delete_issue", "create_issue_comment", "browser_network_requests"}
	for called, want := range map[string]string{
		"list_tracs":              `There is no tool "list_tracs". Nothing was run. Did you mean "list_traces"?`,
		"GetIssue":                `There is no tool "GetIssue". Nothing was run. Did you mean "get_issue"?`,
		"remove_issue":            `There is no tool "remove_issue". Nothing was run. Alike: get_issue, delete_issue, create_issue_comment.`,
		"delete_network_requests": `There is no tool "delete_network_requests". Nothing was run. Alike: browser_network_requests.`,
		"weather":                 `There is no tool "weather". Nothing was run. Choose one from the tool list.`,
	} {
		if got := ExplainName(called, catalogue).Text; got != want {
			t.Errorf("ExplainName(%q) = %s\nwant %s", called, got, want)
		}
	}
}

func TestExamplesValidate(t *testing.T) {
	for name, schema := range map[string]string{
		"a user without a role":  strings.Replace(userSchema, `"required": ["username", "age"]`, `"required": ["username", "age", "email", "tags", "state", "address"]`, 1),
		"no fields":              `{"type":"object"}`,
		"limits":                 `{"properties":{"a":{"type":"integer","exclusiveMinimum":3,"multipleOf":4},"b":{"type":"number","minimum":0.25,"maximum":0.5},"c":{"type":"integer","maximum":-7},"d":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},"e":{"type":"number","multipleOf":0.3,"minimum":1}},"required":["a","b","c","d","e"]}`,
		"patterns":               `{"properties":{"a":{"type":"string","pattern":"^gls_[a-zA-Z0-9]{2,}$","minLength":10},"b":{"type":"string","pattern":"^(foo|bar)\\d{3}-[^x]+$"},"c":{"type":"string","pattern":"^\\S+@\\S+$"}},"required":["a","b","c"]}`,
		"lengths":                `{"properties":{"a":{"type":"string","minLength":50},"b":{"type":"string","maxLength":2},"c":{"type":"string","minLength":1,"maxLength":1}},"required":["a","b","c"]}`,
		"formats":                `{"properties":{"a":{"type":"string","format":"uuid"},"b":{"type":"string","format":"date-time"},"c":{"type":"string","format":"uri"},"d":{"type":"string","format":"ipv6"}},"required":["a","b","c","d"]}`,
		"lists":                  `{"properties":{"a":{"type":"array","items":{"type":"integer"},"minItems":3,"uniqueItems":true},"b":{"type":"array","items":{"enum":["x","y"]},"minItems":2,"uniqueItems":true},"c":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2}},"required":["a","b","c"]}`,
		"references and choices": `{"$defs":{"node":{"type":"object","properties":{"id":{"type":"string"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["id","next"]}},"properties":{"n":{"$ref":"#/$defs/node"},"m":{"allOf":[{"required":["x"]},{"properties":{"x":{"const":5}}}],"type":"object"},"o":{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"],"additionalProperties":false},{"type":"string"}]}},"required":["n","m","o"]}`,
	} {
		s := compiled(t, schema)
		first, ok := s.Example()
		if !ok {
			t.Errorf("%s: no example", name)
			continue
		}
		if p := s.Check(first); p != nil {
			t.Errorf("%s: example %s is invalid: %v", name, first, p)
		}
		for range 10 {
			if again, _ := s.Example(); string(again) != string(first) {
				t.Fatalf("%s: example differs between runs: %s and %s", name, first, again)
			}
		}
	}
}

// A model copies what it is shown.
func TestExamplesNeverPickAPermission(t *testing.T) {
	for _, field := range []string{
		`"role":{"enum":["admin","user"]}`,
		`"visibility":{"type":"string","enum":["public","private"],"default":"public"}`,
		`"permissions":{"type":"array","items":{"enum":["read","write"]},"minItems":1}`,
		`"perm":{"type":"string","enum":["view","edit"]}`,
		`"confirmDeletion":{"type":"boolean","const":true}`,
		`"force":{"type":"boolean"}`,
		`"isAdmin":{"type":"boolean","default":true}`,
		`"impossible":{"type":"integer","minimum":5,"maximum":4}`,
		`"huge":{"type":"string","minLength":100000}`,
	} {
		name := strings.Split(field, `"`)[1]
		s := compiled(t, `{"properties":{`+field+`},"required":["`+name+`"]}`)
		if example, ok := s.Example(); ok {
			t.Errorf("%s: example %s, want none", field, example)
		}
	}
	s := compiled(t, `{"properties":{"api_key":{"type":"string","default":"sk-live-1","examples":["sk-live-2"]}},"required":["api_key"]}`)
	if example, _ := s.Example(); string(example) != `{"api_key":"<api_key>"}` {
		t.Errorf("example of a secret = %s, want a place to put it", example)
	}
}
