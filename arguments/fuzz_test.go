package arguments

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func seeds(f *testing.F) {
	schemas := []string{issueSchema, repairSchema, userSchema, `{}`, `true`, `{"$ref":"#"}`,
		`{"properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		`{"anyOf":[{"required":["a"]},{"properties":{"b":{"const":"X"}},"required":["b"]}]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"p":{"items":[{"type":"integer"}],"additionalItems":false}},"dependencies":{"p":["q"]}}`,
		`{"properties":{"a":{"type":"string","default":"x"}},"required":["a"],"unevaluatedProperties":false}`,
		`{"patternProperties":{"^x-":{"type":"integer"}},"propertyNames":{"maxLength":5},"minProperties":1,"if":{"required":["x-a"]},"then":{"required":["b"]}}`,
	}
	args := []string{``, `{}`, `null`, `"{\"n\":1}"`, `{"n":"42","tags":"a","flag":"True"}`, `{"filter":{"user_id":"7"},"n":null}`,
		`{"arguments":{"n":1}}`, `{"a":{"a":{}}}`, `{"b":"x"}`, `{"p":["1"]}`, `{"x-a":"1","X-B":2}`, `{"a":1,"a":2}`, "\"```\\n{'a': None,}\\n```\"",
		`{"since":"2026-09-13 03:19:00Z"}`, `{"n":1e999}`, `[{"a":1}]`, `{"\u0061":"\ud83d\ude00\ud800"}`}
	for _, s := range schemas {
		for _, a := range args {
			f.Add([]byte(s), []byte(a))
		}
	}
}

func FuzzCheck(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		// Our decoder against the standard one: it may refuse more, for a reason
		// it names, and must not read anything differently.
		value, _, broken := decode(args)
		dec := json.NewDecoder(bytes.NewReader(args))
		dec.UseNumber()
		var standard any
		err := dec.Decode(&standard)
		if broken == nil {
			if !json.Valid(args) {
				t.Fatalf("decode accepts %q, which is not JSON", args)
			}
			if err == nil && utf8Clean(args) && !reflect.DeepEqual(value, standard) {
				t.Fatalf("decode(%q) = %#v, encoding/json says %#v", args, value, standard)
			}
		} else if json.Valid(args) && broken.keyword == "syntax" {
			t.Fatalf("decode(%q): %v, but it is JSON", args, broken)
		}
		s, err := Compile(schema)
		if err != nil {
			return
		}
		first := s.Check(args)
		if again := s.Check(args); !reflect.DeepEqual(first, again) {
			t.Fatalf("Check(%q) differs between runs: %v and %v", args, first, again)
		}
		if example, ok := s.Example(); ok && len(s.Check(example)) > 0 {
			t.Fatalf("example %s of %s is not valid: %v", example, schema, s.Check(example))
		}
	})
}

// utf8Clean: encoding/json replaces what is not UTF-8, we leave it alone.
func utf8Clean(data []byte) bool { return bytes.Equal(bytes.ToValidUTF8(data, nil), data) }

func FuzzRepair(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		s, err := Compile(schema)
		if err != nil {
			return
		}
		for _, policy := range []Policy{Off, Strict, Balanced} {
			for _, risk := range []Risk{Destructive, Write, ReadOnly} {
				in := bytes.Clone(args)
				r := s.Repair(Call{Tool: "t", Arguments: in, Risk: risk, Policy: policy})
				if !bytes.Equal(in, args) {
					t.Fatalf("Repair wrote into its input: %q became %q", args, in)
				}
				checkResult(t, s, args, policy, risk, r)
				if again := s.Repair(Call{Tool: "t", Arguments: in, Risk: risk, Policy: policy}); !reflect.DeepEqual(r, again) {
					t.Fatalf("Repair(%q) differs between runs: %v and %v", args, r, again)
				}
			}
		}
		for repeats := range 3 {
			failure := Failure{Tool: "t", Schema: s, Arguments: args, Repeats: repeats}
			if a, b := Explain(failure), Explain(failure); a.Text != b.Text {
				t.Fatalf("Explain(%q) differs between runs:\n%s\n%s", args, a.Text, b.Text)
			}
		}
	})
}

func checkResult(t *testing.T, s *Schema, args []byte, policy Policy, risk Risk, r Result) {
	t.Helper()
	blocking := func(args []byte) bool {
		for _, p := range s.Check(args) {
			if !p.Warning {
				return true
			}
		}
		return false
	}
	switch r.Outcome {
	case Mended, Withheld:
		out := r.Arguments
		if r.Outcome == Withheld {
			out = r.Suggested
		}
		if policy == Off || len(r.Changes) == 0 {
			t.Fatalf("%s, %v: Repair(%q) = %v with changes %v", policy, risk, args, r.Outcome, r.Changes)
		}
		if blocking(out) || !json.Valid(out) {
			t.Fatalf("%s, %v: Repair(%q) made %q, which is not valid: %v", policy, risk, args, out, s.Check(out))
		}
		if again := s.Repair(Call{Tool: "t", Arguments: out, Risk: risk, Policy: policy}); again.Outcome != Valid {
			t.Fatalf("%s, %v: Repair(%q) made %q, and then %v %q", policy, risk, args, out, again.Outcome, again.Arguments)
		}
		if r.Outcome == Withheld && !bytes.Equal(r.Arguments, args) {
			t.Fatalf("%s, %v: Repair(%q) withholds %q", policy, risk, args, r.Arguments)
		}
	case Valid:
		if !bytes.Equal(r.Arguments, args) || blocking(args) {
			t.Fatalf("%s, %v: Repair(%q) says valid and sends %q", policy, risk, args, r.Arguments)
		}
	case Invalid:
		if !bytes.Equal(r.Arguments, args) || !blocking(args) {
			t.Fatalf("%s, %v: Repair(%q) says invalid and sends %q: %v", policy, risk, args, r.Arguments, r.Problems)
		}
	}
}
