package arguments

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// bounded fails the test if work takes longer or allocates more than it may.
// The bounds are wide: they tell a cost that grows with the attack from one that
// does not, also on a slow machine with the race detector on.
func bounded(t *testing.T, work func()) {
	t.Helper()
	const (
		longest = time.Minute
		most    = 512 << 20
	)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(longest):
		t.Fatalf("still running after %v", longest)
	}
	runtime.ReadMemStats(&after)
	spent, allocated := time.Since(start), after.TotalAlloc-before.TotalAlloc
	t.Logf("%v, %.1f MB", spent.Round(time.Microsecond), float64(allocated)/(1<<20))
	if allocated > most {
		t.Errorf("allocated %d MB", allocated>>20)
	}
}

// useUp does everything one can do with a schema and arguments.
func useUp(schema, args []byte) (*Schema, error) {
	s, err := Compile(schema)
	if err != nil {
		return nil, err
	}
	s.Check(args)
	s.Repair(Call{Tool: "t", Arguments: args, Risk: ReadOnly})
	Explain(Failure{Tool: "t", Schema: s, Arguments: args, Repeats: 1})
	Explain(Failure{Tool: "t", Schema: s, Arguments: args, Full: true})
	return s, nil
}

func TestHostileSchemasAreRefusedOrBounded(t *testing.T) {
	// doubling refers to the next definition twice, n times over.
	doubling := func(keyword string, n int) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword, i+1, i+1)
		}
		fmt.Fprintf(&b, `"d%d":{"type":"integer"}}}`, n)
		return b.String()
	}
	deepObject := strings.Repeat(`{"a":`, 150) + "1" + strings.Repeat("}", 150)
	for _, tc := range []struct {
		name, schema, args string
		refused            bool // by Compile
	}{
		{"2^22 anyOf", doubling("anyOf", 22), `{}`, true},
		{"2^22 allOf", doubling("allOf", 22), `{}`, true},
		{"2^22 oneOf", doubling("oneOf", 22), `{}`, true},
		{"2^10 anyOf", doubling("anyOf", 10), `{}`, false},
		{"itself", `{"$ref":"#"}`, `{}`, true},
		{"each other", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`, `{}`, true},
		{"itself through not", `{"not":{"$ref":"#"}}`, `{}`, true},
		{"itself through a dynamic reference", `{"$dynamicAnchor":"x","$dynamicRef":"#x"}`, `{}`, true},
		{"a tree", `{"properties":{"a":{"$ref":"#"}},"required":["a"]}`, deepObject, false},
		{"a tree that forks at every level", `{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}`, deepObject, false},
		{"a tree that forks and closes", `{"oneOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, deepObject, false},
		{"10 MB of text", `{"description":"` + strings.Repeat("x", 10<<20) + `"}`, `{}`, true},
		{"10 MB of properties", `{"properties":{` + strings.Repeat(`"p":{"type":"string"},`, 10<<20/22) + `"q":{}}}`, `{}`, true},
		{"too deep", strings.Repeat(`{"not":`, 5000) + `{}` + strings.Repeat(`}`, 5000), `{}`, true},
		{"too many parts", `{"enum":[` + strings.Repeat("0,", 100_000) + `0]}`, `{}`, true},
		{"a limit beyond computing", `{"properties":{"n":{"minimum":1e10000000}}}`, `{"n":1}`, true},
		{"a multiple beyond computing", `{"properties":{"n":{"multipleOf":1e-10000000}}}`, `{"n":1}`, true},
		{"catastrophic pattern", `{"properties":{"s":{"pattern":"^(a+)+$"}}}`, `{"s":"` + strings.Repeat("a", 100_000) + `!"}`, false},
		{"pattern against much text", `{"properties":{"s":{"pattern":"(x+x+)+y[a-z]{500}[a-z]{400}"}}}`, `{"s":"` + strings.Repeat("x", 2<<20) + `"}`, false},
		{"pattern that unrolls", `{"properties":{"s":{"pattern":"((a{1,30}){1,30}){1,30}b"}}}`, `{"s":"` + strings.Repeat("a", 10_000) + `"}`, false},
		{"many patterns against many keys", `{"patternProperties":{` + many(2000, `"^k%d[a-z]+$":{"type":"integer"}`) + `}}`, `{` + many(5000, `"k%dz":"x"`) + `}`, false},
		{"wide choice for each item", `{"properties":{"l":{"items":{"anyOf":[` + many(2000, `{"const":"v%d"}`) + `]}}}}`, `{"l":[` + many(50_000, `"w%d"`) + `]}`, false},
		{"many numbers to compare with", `{"properties":{"l":{"items":{"enum":[` + many(15_000, `%d.5`) + `]}}}}`, `{"l":[` + many(50_000, `%d`) + `]}`, false},
		{"many lists to compare with", `{"properties":{"l":{"items":{"enum":[` + many(9_000, `[%d.5]`) + `]}}}}`, `{"l":[` + many(50_000, `[%d]`) + `]}`, false},
		{"many names to choose from", `{"properties":{` + many(3_000, `"property_number_%d":{}`) + `},"additionalProperties":false}`, `{` + many(1000, `"property_nvmber_%d":1`) + `}`, false},
		{"many different items", `{"properties":{"l":{"uniqueItems":true}}}`, `{"l":[` + many(100_000, `%d`) + `]}`, false},
		{"an example that never ends", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/a"}},"required":["x","y"]}}}`, `{}`, false},
		{"an example that is never enough", `{"properties":{"l":{"type":"array","minItems":1000000000,"items":{"type":"array","minItems":1000000000}},"s":{"type":"string","minLength":1000000000}},"required":["l","s"],"minProperties":1000000000}`, `{}`, false},
		{"no schema at all", `[1,2]`, `{}`, true},
		{"false", `false`, `{}`, false},
		{"two values", `{} {}`, `{}`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bounded(t, func() {
				s, err := useUp([]byte(tc.schema), []byte(tc.args))
				if tc.refused && err == nil {
					t.Errorf("Compile accepted it: %v", s.cost)
				}
				if !tc.refused && err != nil {
					t.Errorf("Compile: %v", err)
				}
			})
		})
	}
}

func many(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

func TestReferencesOutsideTheSchemaAreNotFollowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(file, []byte(`{"type":"integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"file://" + file, file, "secret.json", "http://127.0.0.1:1/s.json", "https://example.com/s.json", "mcpmend:///other.json", "//example.com/s.json"} {
		for _, schema := range []string{
			fmt.Sprintf(`{"properties":{"a":{"$ref":%q}}}`, ref),
			fmt.Sprintf(`{"properties":{"a":{"$dynamicRef":%q}}}`, ref),
			fmt.Sprintf(`{"$id":"file://%s/","properties":{"a":{"$ref":"secret.json"}}}`, filepath.Dir(file)),
			fmt.Sprintf(`{"properties":{"a":{"$id":"http://x/","$schema":%q}}}`, ref),
		} {
			if _, err := Compile([]byte(schema)); err == nil {
				t.Errorf("Compile(%s) succeeded", schema)
			}
		}
	}
}

func TestHostileArgumentsAreBounded(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"n":{"type":"number","minimum":0,"multipleOf":0.01},"a":{"type":"array","items":{"type":"object"}},"s":{"type":"string"}},"additionalProperties":false}`)
	for name, args := range map[string]string{
		"a number beyond computing":        `{"n":1e10000000}`,
		"a fraction beyond computing":      `{"n":1e-10000000}`,
		"an exponent beyond reading":       `{"n":1e99999999999999999999}`,
		"a million digits":                 `{"n":` + strings.Repeat("9", 1<<20) + `}`,
		"a million digits as text":         `{"n":"` + strings.Repeat("9", 1<<20) + `"}`,
		"deep lists":                       `{"a":` + strings.Repeat("[", 1<<20),
		"deep objects":                     strings.Repeat(`{"a":`, 1<<20),
		"deep text in text":                `{"a":"` + strings.Repeat(`[`, 1<<20) + `"}`,
		"many wrong items":                 `{"a":[` + strings.Repeat(`"x",`, 1<<18) + `1]}`,
		"many items as text":               `{"a":[` + strings.Repeat(`"{}",`, 5000) + `{}]}`,
		"many unknown keys":                `{` + many(50_000, `"k%d":1`) + `}`,
		"many duplicate keys":              `{` + strings.Repeat(`"s":"x",`, 1<<18) + `"s":""}`,
		"much text":                        `{"s":"` + strings.Repeat("x", 5<<20) + `"}`,
		"much text that is not closed":     `"{'s': '` + strings.Repeat("x", 1<<20) + `"`,
		"many slips":                       `"{` + strings.Repeat("'s': True,", 1<<17) + `}"`,
		"text in text in text":             string(appendString(nil, string(appendString(nil, string(appendString(nil, string(appendString(nil, `{"s":"x"}`)))))))),
		"a fence that never ends":          "\"```json\\n" + strings.Repeat("`", 1<<20) + `"`,
		"broken escapes":                   `"{\"s\":\"` + strings.Repeat(`\\u`, 1<<18) + `"`,
		"control characters and bad UTF-8": "{\"s\":\"\x00\xff\xfe\"}",
		"nothing but blanks":               strings.Repeat(" ", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			bounded(t, func() {
				if _, err := useUp(s.source, []byte(args)); err != nil {
					t.Error(err)
				}
			})
		})
	}
	for _, args := range []string{`{"n":1e10000000}`, `{"n":` + strings.Repeat("9", 2000) + `}`, strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)} {
		p := s.Check([]byte(args))
		if len(p) != 1 || p[0].Keyword != "limit" || p[0].Warning {
			t.Errorf("Check(%.40s…) = %v, want one problem with a limit", args, p)
		}
	}
}

// What cannot be checked is passed on as it is, with a remark.
func TestWhatCostsTooMuchToCheckIsNotRefused(t *testing.T) {
	s := compiled(t, `{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}`)
	args := []byte(strings.Repeat(`{"a":`, 60) + "{}" + strings.Repeat("}", 60))
	r := s.Repair(Call{Arguments: args, Risk: Destructive})
	if r.Outcome != Valid || !bytes.Equal(r.Arguments, args) || len(r.Problems) != 1 || !r.Problems[0].Warning || r.Problems[0].Keyword != "limit" {
		t.Errorf("Repair = %v %v, want the call passed on with a warning", r.Outcome, r.Problems)
	}
}

// Where a dynamic reference leads is known only at run time.
func TestACycleFoundAtRunTimeIsNotTheCallsFault(t *testing.T) {
	s := compiled(t, `{"$id":"http://a.example/","$dynamicAnchor":"n","$ref":"b","$defs":{"b":{"$id":"b","$dynamicRef":"#n","$defs":{"n":{"$dynamicAnchor":"n","type":"object"}}}}}`)
	r := s.Repair(Call{Arguments: []byte(`{"a":1}`)})
	if r.Outcome != Valid || len(r.Problems) != 1 || r.Problems[0].Keyword != "limit" {
		t.Errorf("Repair = %v %v, want the call passed on with a warning", r.Outcome, r.Problems)
	}
}

func TestCompileSaysWhyItRefuses(t *testing.T) {
	if _, err := Compile([]byte(`{"$ref":"#"}`)); !errors.Is(err, ErrTooComplex) {
		t.Errorf("Compile = %v, want ErrTooComplex", err)
	}
	if _, err := Compile([]byte(`{"type":"nonsense"}`)); err == nil || errors.Is(err, ErrTooComplex) {
		t.Errorf("Compile = %v, want the engine's complaint", err)
	}
}
