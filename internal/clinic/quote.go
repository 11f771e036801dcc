package clinic

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// Names, entries, paths and messages are written by others: by whoever sent the
// project, or by a server that wants something of the model that reads about it.
// Nothing of it goes into an answer or a question but through here.

const (
	mostEvidence = 5
	mostTools    = 100
	mostQuoted   = 400  // runes of one quotation
	mostDiff     = 6000 // bytes of one diff
)

// shown is a message that may hold a secret, made fit to be shown.
func shown(message string) string { return clean(secret.Scrub(message)) }

// clean keeps a text in the line it is quoted in, and in sight: it could otherwise
// go on as if it were an answer of ours, or hide words from people that a model
// reads. It is not cut, since a person may have to agree to all of it. Names, paths
// and commands are cleaned and not scrubbed: a hash in them is no secret.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return visible(r)
	}, s)
}

// visible drops a rune that cannot be seen. Variation selectors and tags can
// spell out whole sentences for a model.
func visible(r rune) rune {
	if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector) {
		return -1
	}
	return r
}

// shownDiff is a diff without secrets, line by line. What is cut is at the end, and
// said.
func shownDiff(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, secret.Scrub(s))
	if len(s) <= mostDiff {
		return s
	}
	cut := max(strings.LastIndexByte(s[:mostDiff], '\n'), 0)
	return s[:cut] + fmt.Sprintf("\n(%d more lines)\n", strings.Count(s[cut:], "\n"))
}

// few are the first of a server's own words, without secrets, each cut to a length
// that shows what it is about.
func few(words []string, most int) []string {
	var out []string
	for i, w := range words {
		if i == most {
			return append(out, fmt.Sprintf("(%d more)", len(words)-most))
		}
		out = append(out, cut(shown(w)))
	}
	return out
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= mostQuoted {
		return s
	}
	return string([]rune(s)[:mostQuoted]) + "…"
}

// shownValue is an entry, whose secrets are hidden already, made harmless.
func shownValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			out[cut(clean(k))] = shownValue(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = shownValue(inner)
		}
		return out
	case string:
		return cut(clean(v))
	}
	return v
}
