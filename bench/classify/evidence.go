package main

import (
	"regexp"
	"strings"
)

// carriesEvidence decides from the text alone whether a message says why
// something failed, or only that it did. The rule:
//
//  1. A message without one of the symptoms below carries evidence.
//  2. From a message with one, take away the symptoms, the words that stand around
//     errors everywhere (generic), and names: single words in quotes, and words with a
//     digit, a capital inside, a hyphen, underscore, dot or slash. If a word is left, or
//     the name of a system error, or an HTTP status that means one thing, it carries
//     evidence.
//
// "MCP error -32000: Connection closed" is thereby nothing to go by, which is
// right: in the data it stands for nine different causes. The rule does not know
// what Diagnose says. It was refined once after the first scoring, on messages that are
// not held out: names in quotes, and statuses of many meanings.
func carriesEvidence(text string) bool {
	rest := symptoms.ReplaceAllString(strings.ToLower(text), " ")
	if rest == strings.ToLower(text) {
		return true
	}
	if telling.MatchString(text) {
		return true
	}
	// Names are told by their capitals, so they go from the original text.
	rest = symptoms.ReplaceAllString(quotedWord.ReplaceAllString(text, " "), " ")
	for _, w := range chunk.FindAllString(rest, -1) {
		w = strings.Trim(w, "-_./@:")
		if len(w) < 3 || name.MatchString(w) || generic[strings.ToLower(w)] {
			continue
		}
		return true
	}
	return false
}

var (
	symptoms = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
		`connection (is |was )?closed`, `connection error`, `connection failed`, `connection lost`,
		`(fail(ed|s)|unable) to (re)?connect`, `(could not|couldn't|cannot|can't) connect`, `(is )?not connected`, `disconnected`,
		`fetch failed`, `failed to fetch`, `network error`,
		`(request|connection|operation|call)? ?timed out`, `(request|connection)? ?time-?out`, `deadline exceeded`,
		`(transport|stream|channel|server) closed`, `eof`,
		`closedresourceerror`, `brokenresourceerror`, `cancellederror`, `aborterror`,
		`unhandled errors in a taskgroup`, `sub-exception`,
		`(process|server) exited( with)?( (code|status))?`, `exit (code|status)`,
		`failed to (start|initialize|load)`, `(could not|couldn't|can't) start`, `startup failed`, `no server info found`,
		`(server )?unavailable`, `internal (server )?error`, `unknown error`, `something went wrong`, `undefined`,
		`400`, `404`, `500`, `502`, `503`, // each has many meanings here
	}, "|") + `)\b`)

	// telling are system errors and the HTTP statuses that have one meaning.
	telling    = regexp.MustCompile(`\b(E[A-Z]{4,}|401|403|405|406|407|413|415|421|429)\b`)
	quotedWord = regexp.MustCompile("'[^'\\s]{1,60}'|\"[^\"\\s]{1,60}\"|`[^`\\s]{1,60}`")
	chunk      = regexp.MustCompile(`[A-Za-z0-9@][A-Za-z0-9@_./\\:-]*`)
	name       = regexp.MustCompile(`[0-9@_./\\:-]|[a-z][A-Z]|^[A-Z]{2}[A-Za-z]*$`)
)

var generic = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(`
		a an and after again any are as at be been before by call called calling can client code config connect connecting
		connection context could did does during error errors exception failed failure for from get got handshaking has have
		http https initialize initialized initializing is it list local log mcp message method node not null occurred of on
		or our plugin post process python request requests resources response sending server servers service session sse start
		started starting startup state status stdio stream streamable that the there this to tool tools trying type unable
		unhandled uncaught url uvx npx was were when while with your warning info key name command promise rejection typeerror
		prompts remote invoking executing running discovery discovering`) {
		m[w] = true
	}
	return m
}()
