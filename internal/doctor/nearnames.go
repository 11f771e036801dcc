package doctor

import (
	"cmp"
	"slices"
	"strings"
)

// nearNames returns those of have that probably mean the same variable as want,
// the likeliest first. NOTION_API_KEY is near NOTION_TOKEN: what they are about is
// the same, and both name a credential. It guesses; a person has to agree.
func nearNames(want string, have []string) []string {
	type near struct {
		name string
		rank int
	}
	var found []near
	for _, name := range have {
		if rank := nearness(want, name); rank > 0 && !slices.ContainsFunc(found, func(n near) bool { return n.name == name }) {
			found = append(found, near{name, rank})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, n := range found {
		names = append(names, n.name)
	}
	return names
}

// nearness is 0 for names that have nothing to do with each other, and smaller the
// nearer they are.
func nearness(want, have string) int {
	if want == have {
		return 1
	}
	a, b := wordsOf(want), wordsOf(have)
	if same(a, b) {
		return 2 // another case, or dashes
	}
	if same(singular(a), singular(b)) {
		return 3
	}
	a, b = withoutPrefix(singular(a)), withoutPrefix(singular(b))
	if same(a, b) {
		return 4
	}
	about, credential := subject(a)
	aboutToo, credentialToo := subject(b)
	if len(about) == 0 || len(aboutToo) == 0 {
		return 0 // TOKEN alone could be anybody's
	}
	if credential && credentialToo && same(about, aboutToo) {
		return 5
	}
	// A slip of the finger, in a word long enough not to be another one, and in names
	// that end alike.
	if len(a) == len(b) && credential == credentialToo {
		if x, y, one := onlyDifference(a, b); one && len(x) >= 6 && len(y) >= 6 && oneSlip(x, y) {
			return 6
		}
	}
	return 0
}

func wordsOf(name string) []string {
	return strings.FieldsFunc(strings.ToUpper(name), func(c rune) bool { return c == '_' || c == '-' || c == '.' })
}

func same(a, b []string) bool { return strings.Join(a, "") == strings.Join(b, "") }

func singular(words []string) []string {
	words = slices.Clone(words)
	if n := len(words); n > 0 && len(words[n-1]) > 3 && !strings.HasSuffix(words[n-1], "SS") {
		words[n-1] = strings.TrimSuffix(words[n-1], "S")
	}
	return words
}

// withoutPrefix drops what a host program or a framework puts before a name.
func withoutPrefix(words []string) []string {
	for _, prefix := range [][]string{{"MCP"}, {"NEXT", "PUBLIC"}, {"VITE"}} {
		if len(words) > len(prefix)+1 && slices.Equal(words[:len(prefix)], prefix) {
			return words[len(prefix):]
		}
	}
	return words
}

// credentials are the words at the end of a name that say "this is the secret";
// longer ones first.
var credentials = [][]string{
	{"PERSONAL", "ACCESS", "TOKEN"},
	{"PERSONAL", "TOKEN"},
	{"ACCESS", "TOKEN"}, {"AUTH", "TOKEN"}, {"API", "TOKEN"}, {"API", "KEY"}, {"API", "SECRET"},
	{"ACCESS", "KEY"}, {"SECRET", "KEY"},
	{"APIKEY"}, {"APITOKEN"}, {"TOKEN"}, {"KEY"}, {"SECRET"}, {"PAT"},
}

// subject is what a name is about, without the words for a credential, and whether
// there were any.
func subject(words []string) (about []string, credential bool) {
	for _, c := range credentials {
		if n := len(words) - len(c); n >= 0 && slices.Equal(words[n:], c) {
			return words[:n], true
		}
	}
	return words, false
}

// onlyDifference returns the one word in which two names of equal length differ.
func onlyDifference(a, b []string) (x, y string, one bool) {
	at := -1
	for i := range a {
		if a[i] != b[i] {
			if at >= 0 {
				return "", "", false
			}
			at = i
		}
	}
	if at < 0 {
		return "", "", false
	}
	return a[at], b[at], true
}

// oneSlip reports whether one letter was left out, added, changed or swapped with
// its neighbour. A changed digit is another thing, not a slip.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	digit := func(s string, at int) bool { return at < len(s) && s[at] >= '0' && s[at] <= '9' }
	if digit(a, i) || digit(b, i) {
		return false
	}
	switch {
	case len(b)-len(a) > 1 || a == b:
		return false
	case len(a) < len(b):
		return a[i:] == b[i+1:]
	case a[i+1:] == b[i+1:]:
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
