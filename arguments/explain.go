package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Failure is a call that was not mended, to be explained to who made it.
type Failure struct {
	// Tool and Description as the server lists them. The description is used
	// only where everything is told.
	Tool        string
	Description string
	// Schema and Arguments are what was checked, the arguments as they came.
	// A nil schema could not be compiled.
	Schema    *Schema
	Arguments []byte
	// Suggested is a corrected call to propose, such as one a policy withheld.
	// It is left out if it holds a secret.
	Suggested []byte
	// Forwarded says that the call was sent all the same, so that it cannot be
	// said that the tool was not run.
	Forwarded bool
	// Repeats is how often this very call failed before, in the same session.
	// The explanation grows with it: the problems, then also the schema of the
	// failing parts, then everything.
	Repeats int
	// Full tells everything at once.
	Full bool
}

// Issue is one problem, with the way out of it.
type Issue struct {
	Field    string `json:"field"`
	Problem  string `json:"problem"`
	Received string `json:"received,omitempty"`
	Expected string `json:"expected"`
	Fix      string `json:"fix"`
	// Suggestion is the value or name that was probably meant, as JSON.
	Suggestion string `json:"suggestion,omitempty"`

	line string
}

// Explanation is an error a model can correct itself from: as text, and as data
// for `_meta`. The same failure always has the same explanation.
type Explanation struct {
	Text string `json:"-"`

	Tool   string  `json:"tool"`
	Issues []Issue `json:"issues"`
	// More counts the issues that were left out.
	More               int             `json:"more,omitempty"`
	SuggestedArguments json.RawMessage `json:"suggested_arguments,omitempty"`
	// The rest is there only when everything is told.
	Schema       *Documentation  `json:"schema,omitempty"`
	Suggestions  []string        `json:"suggestions,omitempty"`
	ValidExample json.RawMessage `json:"valid_example,omitempty"`
}

// maxIssues is how many problems are told; a model mends a few at a time.
const maxIssues = 5

// Explain puts into words what is wrong with a call and how to make it right.
func Explain(f Failure) Explanation {
	if f.Schema == nil {
		return Explanation{Tool: f.Tool, Text: fmt.Sprintf("The arguments for %s could not be checked.", f.Tool)}
	}
	found := f.Schema.examine(f.Arguments)
	findings := slices.DeleteFunc(found.findings(f.Schema), func(p finding) bool {
		return p.Keyword == "format" && !f.Forwarded
	})
	x := explainer{Failure: f, value: found.value}
	// Two findings may become one issue; more than this is only counted.
	x.explain(findings[:min(len(findings), 2*maxIssues)])
	e := Explanation{Tool: f.Tool, Issues: x.issues[:min(len(x.issues), maxIssues)]}
	e.More = len(x.issues) - len(e.Issues) + len(findings) - len(x.findings)
	if v, _, broken := decode(f.Suggested); broken == nil && !holdsSecret(v) {
		e.SuggestedArguments = f.Suggested
	}
	if f.Full || f.Repeats >= 2 {
		e.Schema = document(f.Schema, f.Description)
		e.Suggestions = x.advice()
		e.ValidExample, _ = f.Schema.Example()
		e.Text = x.fullText(e)
		return e
	}
	e.Text = x.text(e)
	return e
}

// text is the short form: what went wrong, field by field, and what to do.
func (x *explainer) text(e Explanation) string {
	var b strings.Builder
	n := len(e.Issues) + e.More
	if n == 0 {
		return fmt.Sprintf("The arguments for %s fit its schema.", x.Tool)
	}
	problems := ""
	if n > 1 {
		problems = fmt.Sprintf(" (%d problems)", n)
	}
	fmt.Fprintf(&b, "Invalid arguments for %s%s.", x.Tool, problems)
	if !x.Forwarded {
		b.WriteString(" The tool was not run.")
	}
	for _, issue := range e.Issues {
		b.WriteString("\n- " + issue.line)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n- and %d more", e.More)
	}
	if x.Repeats > 0 {
		x.parts(&b)
	}
	if s := e.SuggestedArguments; s != nil && len(s) <= 400 {
		fmt.Fprintf(&b, "\nIf you mean this, send it: %s", s)
		return b.String()
	}
	b.WriteString("\n" + x.closing())
	return b.String()
}

func (x *explainer) closing() string {
	if x.unreadable {
		return "Call it again with one complete JSON object."
	}
	return "Call it again with all arguments; keep the other fields."
}

// parts adds the schemas of the first failing parts.
func (x *explainer) parts(b *strings.Builder) {
	told := map[string]bool{}
	for _, f := range x.findings {
		source := x.Schema.sourceOf(f.part)
		if source == "" || told[source] || len(told) == 3 {
			continue
		}
		told[source] = true
		fmt.Fprintf(b, "\nSchema of %s: %s", field(f.path), clip(source, 400))
	}
}

// explainer turns findings into issues.
type explainer struct {
	Failure
	value      any
	findings   []finding
	issues     []Issue
	unreadable bool
	// renamed holds the stray keys that a missing member already accounts for.
	renamed map[string]bool
}

func (x *explainer) explain(found []finding) {
	x.findings = found
	x.renamed = map[string]bool{}
	issues := make([]Issue, len(found))
	// Missing members first: they may account for keys nobody knows.
	for i, f := range found {
		if f.Keyword == "required" {
			issues[i] = x.missing(f)
		}
	}
	for i, f := range found {
		switch {
		case f.Keyword == "required":
		case f.Keyword == "additionalProperties" && x.renamed[f.Path]:
			continue
		default:
			issues[i] = x.issue(f)
		}
	}
	for _, issue := range issues {
		if issue.line != "" {
			x.issues = append(x.issues, issue)
		}
	}
}

func (x *explainer) issue(f finding) Issue {
	i := Issue{Field: field(f.path), Received: f.Received, Expected: f.Expected}
	switch f.Keyword {
	case "syntax", "limit", "duplicate":
		if f.Warning {
			i.Problem, i.line = "was not checked", "not checked: "+f.Expected+"."
			break
		}
		x.unreadable = true
		i.Problem, i.Received, i.Fix = f.Received, "", "Send "+f.Expected+"."
		i.line = i.Problem + "; need " + f.Expected + "."
		if f.cut {
			i.line += " It seems cut off: send it again in full, or less at once."
		}
	case "additionalProperties":
		x.stray(f, &i)
	default:
		x.wrong(f, &i)
	}
	return i
}

// wrong explains a value that is there and does not fit.
func (x *explainer) wrong(f finding, i *Issue) {
	value, _ := at(x.value, f.path)
	got := clip(f.Received, 60)
	i.Problem = "does not satisfy " + f.Keyword
	if f.Keyword == "type" {
		i.Problem = "has the wrong type: " + typeOf(value)
		if typeOf(value) != "null" && f.Received != "(hidden)" {
			got += " (" + typeOf(value) + ")"
		}
	}
	need := "need " + f.Expected
	if f.Keyword == "format" {
		need = "need a " + f.Expected
	}
	i.Fix = "Give " + strings.TrimPrefix(need, "need ") + "."
	hint := ""
	switch meant, ok := x.meant(f, value); {
	case ok:
		i.Suggestion = meant
		hint = " Did you mean " + clip(meant, 120) + "?"
	case value == nil && f.Keyword == "type" && x.optional(f.path):
		i.Fix = "Leave it out, or give " + f.Expected + "."
		hint = " Or leave it out."
	}
	i.line = fmt.Sprintf("%s: got %s, %s.%s", i.Field, got, need, hint)
}

// stray explains a member the schema does not know.
func (x *explainer) stray(f finding, i *Issue) {
	parent, key := f.path[:max(0, len(f.path)-1)], ""
	if len(f.path) > 0 {
		key = f.path[len(f.path)-1]
	}
	object, _ := at(x.value, parent)
	members, _ := object.(map[string]any)
	names, _ := x.Schema.declared(parent)
	free := absent(names, members)
	i.Problem, i.Fix = "is not a field", "Remove it."
	i.line = i.Field + ": not a field"
	meant, ok := nearest(key, free)
	switch home := x.home(parent, names, key); {
	case ok:
		i.Suggestion, i.Fix = strconv.Quote(meant), "Rename it to "+meant+"."
		i.line += fmt.Sprintf(". Did you mean %q? Else remove it.", meant)
	case home != "":
		i.Fix = fmt.Sprintf("Put it inside %q, or remove it.", home)
		i.line += fmt.Sprintf("; put it inside %q, or remove it.", home)
	case len(free) == 0:
		i.line += "; remove it."
	default:
		i.line += "; remove it, or use one of " + names8(free) + "."
	}
}

// home is the only declared object that has a member of that name.
func (x *explainer) home(parent []string, names map[string]bool, key string) string {
	home := ""
	if len(names) > 200 {
		return "" // a search too far, for a hint
	}
	for name := range names {
		inner, _ := x.Schema.declared(append(slices.Clip(parent), name))
		if !inner[key] {
			continue
		}
		if home != "" {
			return ""
		}
		home = name
	}
	return home
}

func names8(names []string) string {
	const most = 8
	s := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		s += fmt.Sprintf(" (%d more)", more)
	}
	return s
}

// missing explains a member that is not there, and looks for it under another
// name, deeper inside, or lying about unpacked.
func (x *explainer) missing(f finding) Issue {
	i := Issue{Field: field(f.path), Problem: "is missing", Expected: f.Expected, Fix: "Add it: " + f.Expected + "."}
	parent, name := f.path[:len(f.path)-1], f.path[len(f.path)-1]
	object, _ := at(x.value, parent)
	members, _ := object.(map[string]any)
	names, stray := x.Schema.strays(parent, members)
	free := absent(names, members)
	stray = slices.DeleteFunc(stray, func(key string) bool {
		other, ok := onlyAlike(key, free)
		return ok && other != name // it is another one's
	})
	i.line = fmt.Sprintf("%s: missing, need %s.", i.Field, f.Expected)
	if len(stray) == 0 {
		return i
	}
	if inner, holder := x.unpacked(f, stray, members, name); inner != nil {
		i.Fix = fmt.Sprintf("Put %s into it.", strings.Join(inner, ", "))
		i.line += " " + i.Fix
		return i
	} else if holder != "" {
		x.renamed[pointer(append(slices.Clip(parent), holder))] = true
		i.Fix = fmt.Sprintf("It is inside %q; move it up.", holder)
		i.line += " " + i.Fix
		return i
	}
	for _, key := range stray {
		x.renamed[pointer(append(slices.Clip(parent), key))] = true
	}
	if meant, ok := nearest(name, stray); ok || len(stray) == 1 {
		if !ok {
			meant = stray[0]
		}
		i.Suggestion = strconv.Quote(meant)
		i.Fix = fmt.Sprintf("You sent %q, which is not a field; rename it?", meant)
	} else {
		i.Fix = fmt.Sprintf("You sent %s, which are not fields; is it one of them?", quoteAll(stray))
	}
	i.line += " " + i.Fix
	return i
}

// unpacked finds the members of a missing object lying beside it, or the missing
// member inside an object nobody knows.
func (x *explainer) unpacked(f finding, stray []string, members map[string]any, name string) (inner []string, holder string) {
	if f.part != nil {
		for _, p := range unfold([]*jsonschema.Schema{f.part}) {
			for _, key := range stray {
				if _, ok := p.Properties[key]; ok && !slices.Contains(inner, key) {
					inner = append(inner, key)
				}
			}
		}
	}
	for _, key := range stray {
		if object, ok := members[key].(map[string]any); ok {
			if _, ok := object[name]; ok {
				holder = key
			}
		}
	}
	return inner, holder
}

func quoteAll(names []string) string {
	const most = 6
	var quoted []string
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, strconv.Quote(n))
	}
	if len(names) > most {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// meant guesses what was meant by a value. A guess is good enough to ask with.
func (x *explainer) meant(f finding, value any) (string, bool) {
	name := ""
	if len(f.path) > 0 {
		name = f.path[len(f.path)-1]
	}
	if isSecret(name) {
		return "", false
	}
	text, isText := value.(string)
	var texts []string
	for _, v := range f.values {
		if t, ok := v.(string); ok {
			texts = append(texts, t)
		}
	}
	// Who may do what is not for us to propose.
	if isText && len(texts) > 0 && !isPower(name) {
		if t, ok := nearest(text, texts); ok {
			return string(appendString(nil, t)), true
		}
	}
	for _, want := range f.wants {
		switch want {
		case "boolean":
			if b, ok := booleanWord(value); ok {
				return b, true
			}
		case "array":
			if parts := separated(text); isText && parts != nil {
				return string(encode(parts)), true
			}
		}
	}
	return "", false
}

func booleanWord(value any) (string, bool) {
	switch strings.ToLower(strings.Trim(string(encode(value)), `" `)) {
	case "yes", "y", "on", "1", "true", "t", "enabled":
		return "true", true
	case "no", "n", "off", "0", "false", "f", "disabled":
		return "false", true
	}
	return "", false
}

// separated splits text at commas, or at semicolons.
func separated(text string) []any {
	for _, separator := range []string{",", ";", "|", "\n"} {
		if !strings.Contains(text, separator) || strings.ContainsAny(text, `{}[]"`) {
			continue
		}
		var parts []any
		for _, p := range strings.Split(text, separator) {
			parts = append(parts, strings.TrimSpace(p))
		}
		return parts
	}
	return nil
}

func (x *explainer) optional(path []string) bool {
	if len(path) == 0 {
		return false
	}
	for _, p := range x.Schema.parts(path[:len(path)-1]) {
		if slices.Contains(p.Required, path[len(path)-1]) {
			return false
		}
	}
	return true
}

// field writes a path as models write code: filter.rows[0].id
func field(path []string) string {
	if len(path) == 0 {
		return "arguments"
	}
	var b strings.Builder
	for i, step := range path {
		switch {
		case step != "" && strings.Trim(step, "0123456789") == "" && i > 0:
			b.WriteString("[" + step + "]")
		case i > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

// sourceOf returns a part of the schema as the server wrote it, or nothing.
func (s *Schema) sourceOf(part *jsonschema.Schema) string {
	if part == nil {
		return ""
	}
	_, fragment, ok := strings.Cut(part.Location, "#")
	if !ok || fragment == "" {
		return ""
	}
	var path []string
	for _, step := range strings.Split(fragment, "/")[1:] {
		path = append(path, pointerUnescape(step))
	}
	start, end, ok := scanner{data: s.source}.find(path)
	if !ok {
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, s.source[start:end]); err != nil {
		return ""
	}
	return b.String()
}

// ExplainName puts into words that there is no such tool, and which may have
// been meant.
func ExplainName(called string, catalogue []string) Explanation {
	e := Explanation{Tool: called}
	issue := Issue{Field: "name", Problem: "is not a tool", Received: clip(strconv.Quote(called), 80), Expected: "the name of a listed tool", Fix: "Choose a tool from the list."}
	e.Text = fmt.Sprintf("There is no tool %s. Nothing was run.", clip(strconv.Quote(called), 80))
	name, ok := RepairName(called, catalogue)
	if !ok {
		// Two letters at most: further off, another verb is another action.
		name, ok = nearestWithin(called, catalogue, 2)
	}
	if ok {
		issue.Suggestion = strconv.Quote(name)
		e.Text += fmt.Sprintf(" Did you mean %q?", name)
	} else if alike := shareWords(called, catalogue); len(alike) > 0 {
		e.Text += fmt.Sprintf(" Alike: %s.", strings.Join(alike, ", "))
	} else {
		e.Text += " Choose one from the tool list."
	}
	e.Issues = []Issue{issue}
	return e
}

// shareWords returns a few names that share most words with s.
func shareWords(s string, names []string) []string {
	have := words(s)
	best, out := 1, []string(nil)
	for _, name := range names {
		n := 0
		for _, w := range words(name) {
			if slices.Contains(have, w) {
				n++
			}
		}
		switch {
		case n > best:
			best, out = n, []string{name}
		case n == best && n > 0 && len(out) < 3:
			out = append(out, name)
		}
	}
	return out
}
