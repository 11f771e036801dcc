package clientconfig

import (
	"regexp"
	"slices"
	"strings"
)

// Variables says what a client replaces in the values of an entry.
type Variables struct {
	// Forms are the spellings, such as "${env:NAME}".
	Forms []string
	// Places are words it knows in the form ${word}, such as workspaceFolder.
	Places []string
	// In are the parts of an entry in which it looks: command, args, env, ...
	In []string
	// Unset is what becomes of a variable that is not set: "kept", "empty", or ""
	// when that is not known.
	Unset string
}

// A Reference is something in a value that looks like a variable.
type Reference struct {
	// Text is what is written, Start its place in the value in bytes.
	Text  string
	Start int
	// Form is the spelling, such as "${env:NAME}".
	Form string
	// Source is where the value comes from.
	Source Source
	Name   string
	// Default is what stands for an unset variable, if HasDefault.
	Default    string
	HasDefault bool
	// Expanded is false if this client hands the text to the server as it is.
	Expanded bool
}

// Source is where a client takes the value of a variable from.
type Source int

// The sources.
const (
	Environment Source = iota
	Asked              // the client asks a person and remembers, as VS Code's inputs
	Secret             // the client's own store
	Builtin            // known to the client, such as the folder of the project
)

// forms are all spellings of all clients. At one place of a value the first
// that matches counts.
var forms = []struct {
	form   string
	source Source
	re     *regexp.Regexp
}{
	{"${{ secrets.NAME }}", Secret, regexp.MustCompile(`^\$\{\{\s*secrets\.([\w.-]+)\s*\}\}`)},
	{"${{ inputs.NAME }}", Asked, regexp.MustCompile(`^\$\{\{\s*inputs\.([\w.-]+)\s*\}\}`)},
	{"{{NAME}}", Builtin, regexp.MustCompile(`^\{\{\s*(\w+)\s*\}\}`)},
	{"${env:NAME}", Environment, regexp.MustCompile(`^\$\{env:([^}]+)\}`)},
	{"${input:NAME}", Asked, regexp.MustCompile(`^\$\{input:([^}]+)\}`)},
	{"${NAME:-DEFAULT}", Environment, regexp.MustCompile(`^\$\{(\w+):-([^}]*)\}`)},
	{"${NAME}", Environment, regexp.MustCompile(`^\$\{(\w+)\}`)},
	{"{env:NAME}", Environment, regexp.MustCompile(`^\{env:([^}]+)\}`)},
	{"%NAME%", Environment, regexp.MustCompile(`^%(\w+)%`)},
	{"$NAME", Environment, regexp.MustCompile(`^\$([A-Za-z_]\w*)`)},
}

// References finds what looks like a variable in a value of the named part of
// an entry: "command", "args", "env", "cwd", "url" or "headers". Spellings of
// other clients are found, too, and are not Expanded: that is how a token
// reaches a server as the text "${TOKEN}".
func (c *Client) References(part, value string) []Reference {
	var found []Reference
	for i := 0; i < len(value); {
		r, ok := c.referenceAt(value[i:])
		if !ok {
			i++
			continue
		}
		r.Start = i
		r.Expanded = r.Expanded && slices.Contains(c.Variables.In, part)
		found = append(found, r)
		i += len(r.Text)
	}
	return found
}

// Refer spells a reference in this client's favourite way: to the Name of r, from
// its Source, with its Default if it has one. It is "" if the client has no way to
// do so in that part of an entry.
func (c *Client) Refer(part string, r Reference) string {
	for _, form := range c.Variables.Forms {
		if strings.Contains(form, "DEFAULT") != r.HasDefault {
			continue
		}
		spelt := strings.Replace(strings.Replace(form, "DEFAULT", r.Default, 1), "NAME", r.Name, 1)
		if read := c.References(part, spelt); len(read) == 1 && read[0].Expanded && read[0].Source == r.Source && read[0].Name == r.Name {
			return spelt
		}
	}
	return ""
}

func (c *Client) referenceAt(s string) (Reference, bool) {
	if !strings.ContainsRune("${%", rune(s[0])) {
		return Reference{}, false
	}
	for _, f := range forms {
		m := f.re.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		r := Reference{Text: m[0], Form: f.form, Source: f.source, Name: m[1], Expanded: slices.Contains(c.Variables.Forms, f.form)}
		if len(m) > 2 {
			r.Default, r.HasDefault = m[2], true
		}
		if f.form == "${NAME}" && slices.Contains(c.Variables.Places, r.Name) {
			r.Source, r.Expanded = Builtin, true
		}
		// "$word" and "%word%" are also found in passwords and URLs. In capitals,
		// or where the client would replace them, they are meant.
		if !r.Expanded && (f.form == "$NAME" || f.form == "%NAME%") && strings.ToUpper(r.Name) != r.Name {
			continue
		}
		return r, true
	}
	return Reference{}, false
}
