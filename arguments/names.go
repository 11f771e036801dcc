package arguments

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RepairName finds the tool a model meant by a name that is not listed: the one
// listed name that differs only in case and separators, or by what a chat
// template left around it (blanks, "functions." before, ":0" after). If none or
// more than one fits, or the name is listed as it is, ok is false. Whether the
// tool may then be called is for [Policy.Permits] with [RuleToolName].
func RepairName(called string, catalogue []string) (name string, ok bool) {
	if slices.Contains(catalogue, called) {
		return "", false
	}
	bare := strings.TrimSpace(called)
	if rest, found := strings.CutPrefix(bare, "functions."); found {
		bare = rest
	}
	if i := strings.LastIndexByte(bare, ':'); i > 0 && i+1 < len(bare) && strings.Trim(bare[i+1:], "0123456789") == "" {
		bare = bare[:i]
	}
	for _, candidate := range []string{bare, strings.TrimSpace(called)} {
		if slices.Contains(catalogue, candidate) {
			return candidate, true
		}
	}
	return unique(foldName(bare), catalogue, foldName)
}

// unique returns the only one of the names that folds to the same.
func unique(folded string, names []string, fold func(string) string) (name string, ok bool) {
	if folded == "" {
		return "", false
	}
	for _, candidate := range names {
		if fold(candidate) != folded {
			continue
		}
		if ok && candidate != name {
			return "", false
		}
		name, ok = candidate, true
	}
	return name, ok
}

// foldName is fold for the names of tools, where a dot separates too.
func foldName(s string) string {
	return fold(strings.ReplaceAll(s, ".", "_"))
}

// fold takes away what different spellings of one name differ in: case, blanks
// around it, and the separators between words. A separator between digits or
// beside other signs may tell numbers apart, so one remains there; one in front
// is a sign ("-1", "-created") and remains as it is.
func fold(s string) string {
	s = strings.TrimSpace(s)
	var b strings.Builder
	b.Grow(len(s))
	var before rune
	separators := ""
	for _, r := range s {
		if r == '_' || r == '-' || r == ' ' {
			separators += string(r)
			continue
		}
		if separators != "" {
			switch {
			case before == 0:
				b.WriteString(separators)
			case !isWord(before) || !isWord(r) || unicode.IsDigit(before) && unicode.IsDigit(r):
				b.WriteByte('_')
			}
			separators = ""
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	b.WriteString(separators)
	return b.String()
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// words splits a name at separators and at changes of case.
func words(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, string(word))
			word = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !isWord(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush()
		}
		word = append(word, unicode.ToLower(r))
	}
	flush()
	return out
}

func hasWord(name string, any ...string) bool {
	for _, w := range words(name) {
		if slices.Contains(any, w) || slices.Contains(any, strings.TrimSuffix(w, "s")) {
			return true
		}
	}
	return false
}

// isSecret says by its name that a field holds something not to be shown.
func isSecret(name string) bool {
	ws := words(name)
	if slices.ContainsFunc(ws, func(w string) bool {
		switch strings.TrimSuffix(w, "s") {
		case "password", "passwd", "passphrase", "secret", "credential", "token", "apikey", "authorization", "bearer", "cookie", "privatekey":
			return true
		}
		return false
	}) {
		// Page tokens and token counts are no secrets, and hiding them hides the mistake.
		return !hasWord(name, "page", "max", "min", "next", "count", "limit", "type", "cursor", "sync", "budget", "num")
	}
	joined := strings.Join(ws, "")
	return strings.Contains(joined, "apikey") || strings.Contains(joined, "privatekey") || strings.Contains(joined, "accesskey")
}

// isPower says by its name that a field decides who may do or see what.
func isPower(name string) bool {
	return hasWord(name, "role", "permission", "perm", "privilege", "visibility", "access", "scope", "policy", "grant", "acl", "admin", "public", "private", "sudo", "force", "confirm", "confirmed", "confirmation", "approve", "approved", "consent", "override", "bypass")
}

// isCode says by its name that digits in a field are a code and no number:
// leading zeros and signs are lost before we see them.
func isCode(name string) bool {
	return hasWord(name, "phone", "telephone", "tel", "mobile", "fax", "msisdn", "zip", "zipcode", "postal", "postcode", "code", "pin", "otp")
}

// isCommand says by its name that text in a field is a command line, where a
// list means its words.
func isCommand(name string) bool {
	return hasWord(name, "command", "cmd", "arg", "argv", "argument", "script", "shell", "exec")
}

// nearest returns the name most like s, if one is clearly alike: within a third
// of its letters, and closer than any other.
func nearest(s string, names []string) (string, bool) {
	return nearestWithin(s, names, max(1, utf8.RuneCountInString(fold(s))/3))
}

func nearestWithin(s string, names []string, most int) (string, bool) {
	best, bestDistance, tie := "", 1<<30, false
	folded := fold(s)
	for _, name := range names {
		other := fold(name)
		if off := len(other) - len(folded); off > 4*most || off < -4*most {
			continue // by the bytes alone too many letters
		}
		switch d := distance(folded, other); {
		case d < bestDistance:
			best, bestDistance, tie = name, d, false
		case d == bestDistance:
			tie = true
		}
	}
	if best == "" || tie || bestDistance > most || utf8.RuneCountInString(folded) < 2 {
		return "", false
	}
	return best, true
}

// distance counts the letters to add, drop, change or swap. Long names are no
// typos of each other, and the cost is quadratic, so it stops at 64 letters.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return 1 << 20
	}
	prev2, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(y)]
}
