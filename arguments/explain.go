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
