// Package secret keeps secrets out of what people and models read.
//
// Three things can give a secret away: the name it stands under (Name), its look
// (Scrub and Args), and that it is known, since we passed it on ourselves
// (Hider). When in doubt a text is hidden. What helps to understand a failure,
// such as paths, package names, versions, names of variables, stays.
package secret

import (
	"slices"
	"strings"
	"unicode"
)

// Mark stands where something was hidden.
const Mark = "[hidden]"

// Name reports whether a variable, field, header, flag or query parameter of that
// name holds a secret. The way it is written does not matter: API_KEY, apiKey and
// --api-key are one name.
func Name(name string) bool { return rate(name) != harmless }

// A rating says how sure a name makes us.
type rating int

const (
	harmless rating = iota
	doubtful        // also a word of ordinary sentences: "key: name", "auth: none"
	telling
)

func rate(name string) rating {
	switch name {
	case "PWD", "OLDPWD": // every shell's working directory; Pwd and pwd are passwords
		return harmless
	}
	ws := Words(name)
	if len(ws) == 0 {
		return harmless
	}
	has := func(list map[string]bool) bool {
		return slices.ContainsFunc(ws, func(w string) bool { return list[w] || list[strings.TrimSuffix(w, "s")] })
	}
	last := ws[len(ws)-1]
	joined := strings.Join(ws, "")
	switch {
	case about[last] && len(ws) > 1:
		return harmless // about a secret, and not one: token_url, PASSWORD_FILE
	case strings.Contains(joined, "publickey"):
		return harmless // PublicKeyToken is part of the name of a library of .NET
	case has(secretWords), strings.Contains(joined, "apikey"), strings.Contains(joined, "privatekey"),
		strings.Contains(joined, "accesskey"), strings.Contains(joined, "password"):
		return telling
	case has(wordToken), strings.HasSuffix(joined, "token"):
		if has(countedTokens) { // to hide a limit or a page would hide the mistake
			return harmless
		}
		return telling
	case has(wordKey):
		switch {
		case has(keysOfData):
			return harmless
		case len(ws) > 1:
			return telling
		}
		return doubtful
	case has(wordSession): // of desktops, too: XDG_SESSION_CLASS=user
		if len(ws) == 1 || last == "id" && ws[0] != "xdg" {
			return doubtful
		}
	case has(doubtfulWords):
		return doubtful
	}
	return harmless
}

func set(list string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

var (
	secretWords   = set("password passwd pwd passphrase passcode secret credential cred authorization bearer cookie otp totp pin jwt")
	doubtfulWords = set("auth pass signature sig pat sid sas")
	wordToken     = set("token")
	wordKey       = set("key")
	wordSession   = set("session")
	countedTokens = set("page max min next prev previou count limit type num number budget total input output prompt completion usage continuation cursor")
	keysOfData    = set("primary foreign sort partition group order cache idempotency")
	about         = set("url uri endpoint host port path file filename dir directory type mode name enabled timeout ttl expiry count limit length size error exception required rate method scheme provider algorithm alg format board sock")
)

// Words splits a name into its words in small letters: at what is no letter or digit,
// and where its case changes. userID is user and id, HTMLFile is html and file.
func Words(name string) []string {
	var out []string
	runes := []rune(name)
	start := 0
	cut := func(end int) {
		if end > start {
			out = append(out, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(i)
			start = i + 1
		case i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(runes[i-1]),
			i > 1 && unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1]):
			cut(i)
		}
	}
	cut(len(runes))
	return out
}
