package doctor

import (
	"fmt"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// look notes what is wrong with a value whatever the client makes of it: it is the
// text of a manual, or a secret where everybody can read it.
func (x *expansion) look(part, variable string, v clientconfig.Value) {
	if len(x.client.References(part, v.Text)) > 0 {
		return
	}
	if isPlaceholder(part, v.Text) {
		f := finding(AtVariables, kindPlaceholder, Warning, place(v.At))
		f.pieces.Variable, f.entryVariable = variable, variable
		f.problem = &clientconfig.Problem{Kind: kindPlaceholder, At: v.At, Path: v.Path, Server: x.server.Name.Text}
		f.Evidence = []string{where(part, variable) + " holds the text of an example"}
		f.Explanation = fmt.Sprintf("%s still holds the text of an example where a real value belongs.", upperFirst(where(part, variable)))
		x.found = append(x.found, f)
		return
	}
	if x.server.Scope == "project" && isPlainSecret(part, variable, v.Text) {
		f := finding(AtVariables, kindPlainSecret, Warning, place(v.At))
		f.pieces.Variable, f.entryVariable = variable, variable
		f.problem = &clientconfig.Problem{Kind: kindPlainSecret, At: v.At, Path: v.Path, Server: x.server.Name.Text}
		f.Evidence = []string{where(part, variable) + " holds a secret in clear"}
		f.Explanation = "The secret stands in a file of the project, where everybody who has the project can read it."
		x.found = append(x.found, f)
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

var (
	// What people write where a value belongs: <token>, YOUR_API_KEY, xxxx, changeme.
	placeholderWords = pattern(`(?i)^(<[^<>]+>|\[(your|insert|api|token)[^\]]*\]|\{(your|insert)[^}]*\}` +
		`|(insert|enter|paste|put|add|replace)[-_ ](your|with|this|me|the|here).*` +
		`|your[-_ ]?[a-z0-9_ -]*(key|token|secret|password|id|name|url|host|value|here)s?([-_ ]here)?` +
		`|my[-_ ]?(api|access|secret|super)?[-_ ]?(key|token|secret|password)` +
		`|[a-z0-9_-]*[-_ ]here|change[-_ ]?me|replace[-_ ]?me|todo|placeholder|redacted|x{3,}|\*{3,}|\.{3,}|…` +
		`|(sk|pk|ghp|gho|github_pat|xox[bp]|glpat)[-_](x{3,}|\.{3,}|\*{3,}|…|your.*)` +
		`|(sk|ghp|xoxb|glpat)[-_]?\.\.\.)$`)
	placeholderPath = pattern(`(?i)^(/path/to/|[a-z]:\\path\\to\\|/absolute/path/|path/to/|<[^<>]*path[^<>]*>)`)
)

// isPlaceholder reports whether a value was copied from a manual and never filled
// in.
func isPlaceholder(part, value string) bool {
	value = strings.TrimSpace(value)
	switch part {
	case "env":
	case "headers":
		if _, credentials, ok := strings.Cut(value, " "); ok {
			value = credentials
		}
	case "args", "command", "cwd":
		if placeholderPath().MatchString(value) {
			return true
		}
		if part == "args" {
			if _, after, ok := strings.Cut(value, "="); ok {
				value = after
			}
			return strings.HasPrefix(value, "<") && placeholderWords().MatchString(value) || bareExample().MatchString(value)
		}
		return false
	case "url":
		return strings.Contains(value, "<") && strings.Contains(value, ">") || strings.Contains(strings.ToUpper(value), "YOUR_")
	}
	return placeholderWords().MatchString(value) || placeholderPath().MatchString(value)
}

// bareExample is a placeholder in capitals, which no argument is by accident.
var bareExample = pattern(`^YOUR[-_][A-Z0-9_-]+$|^[A-Z0-9_-]+_HERE$`)

// isPlainSecret reports whether a value is a secret that stands for itself.
func isPlainSecret(part, name, value string) bool {
	if secret.Scrub(value) != value {
		return true
	}
	return (part == "env" || part == "headers") && secret.Name(name) && len(value) >= 8 && !strings.HasPrefix(value, "/")
}
