package secret

import (
	"regexp"
	"slices"
	"strings"
)

// Scrub hides what looks like a secret in any text: a line that a server wrote, a
// command line, an address, an error. Scrubbing twice changes nothing more.
func Scrub(text string) string {
	// What was hidden can bring to light what stood behind it, so this is repeated;
	// a text without secrets is looked at once.
	for range 8 {
		next := scrubOnce(text)
		if next == text {
			break
		}
		text = next
	}
	return text
}

// scrubOnce asks a regular expression only where it could match: this is also
// done to many lines at once while somebody waits to hear that a server died.
func scrubOnce(s string) string {
	if len(s) < 3 {
		return s
	}
	if strings.Contains(s, "PRIVATE KEY-----") {
		s = scrubPrivateKeys(s)
	}
	if strings.Contains(s, "://") || strings.Contains(s, `:\/`) || strings.Contains(s, `:/\/`) {
		s = shapes.url().ReplaceAllStringFunc(s, scrubURL)
	}
	if strings.Contains(s, "@tcp(") || strings.Contains(s, "@unix(") {
		s = shapes.login().ReplaceAllString(s, Mark+"@$1")
	}
	lower := strings.ToLower(s)
	if strings.Contains(lower, "bearer") {
		s = hideCredentials(shapes.bearer(), s, func(string) bool { return true })
	}
	if slices.ContainsFunc([]string{"basic", "token", "apikey", "bot", "negotiate", "dpop"}, func(w string) bool { return strings.Contains(lower, w) }) {
		s = hideCredentials(shapes.scheme(), s, func(c string) bool { return !isWord(c) })
	}
	s = scrubBlocks(scrubPairs(s))
	s = replaceRuns(s, "_.=-", 12, scrubMaker)
	if strings.Contains(s, "eyJ") {
		s = shapes.webToken().ReplaceAllLiteralString(s, Mark)
	}
	s = replaceRuns(s, "+/=", 32, func(before, run, path string) string {
		if m := measure(run); m.digits >= 2 && m.mixed >= 3 && m.humps >= 4 && !innocent(before, run, path) {
			return Mark
		}
		return run
	})
	return replaceRuns(s, "+_=-", 20, func(before, run, path string) string {
		if isRandom(run) && !innocent(before, run, path) {
			return Mark
		}
		return run
	})
}

func scrubMaker(_, run, _ string) string {
	if !mayBeMade(run) {
		return run
	}
	return shapes.maker().ReplaceAllStringFunc(run, func(key string) string {
		prefix, _ := splitAt(key, "-_")
		if isWord(key) && (ordinary[prefix] || !strings.ContainsAny(key, "0123456789")) {
			return key // npm_config_user_agent, key-value-store-v2
		}
		return Mark
	})
}

// mayBeMade reports whether a word in a run begins as the marks of makers do, which is
// much cheaper to ask than the whole shape.
func mayBeMade(run string) bool {
	for i := 0; i+1 < len(run); i++ {
		if (i == 0 || !isLetter(run[i-1]) && !isDigit(run[i-1]) && run[i-1] != '_') && strings.Contains(makers, run[i:i+2]) {
			return true
		}
	}
	return false
}

// makers are the first two letters of what shapes.maker begins with.
const makers = "sk pk rk fc tv pp gs xa ke wh re li nt se fi pa r8 ap ls nv sn ph sb gh gi gl xo np py hf do sh AT AI AK AS ya SG"

// ordinary beginnings of names are those of some keys, too.
var ordinary = set("key re secret pat npm")

// replaceRuns replaces runs of letters, digits and the given signs, if they are
// long enough. replace also sees what is in front of a run, and the text between
// blanks in which it stands, or its beginning.
func replaceRuns(s, signs string, least int, replace func(before, run, around string) string) string {
	var b strings.Builder
	done, start := 0, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && (isLetter(s[i]) || isDigit(s[i]) || strings.IndexByte(signs, s[i]) >= 0) {
			continue
		}
		if i-start >= least {
			around := strings.LastIndexAny(s[:start], " \t\r\n\"'`=(,;<>|") + 1
			run := s[start:i]
			if shown := replace(s[:start], run, s[around:min(len(s), around+64)]); shown != run {
				b.WriteString(s[done:start])
				b.WriteString(shown)
				done = i
			}
		}
		start = i + 1
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// hideCredentials hides the second group of a shape if it is no word of a
// sentence ("Bearer authentication is required").
func hideCredentials(shape *regexp.Regexp, s string, secret func(string) bool) string {
	return shape.ReplaceAllStringFunc(s, func(all string) string {
		m := shape.FindStringSubmatch(all)
		if !secret(m[2]) || prose[strings.ToLower(strings.TrimRight(m[2], ".=:"))] {
			return all
		}
		return m[1] + Mark
	})
}

// scrubURL hides who signs in, and those values of the query that are more than
// words and numbers or stand under a telling name.
func scrubURL(u string) string {
	at := strings.Index(u, ":")
	head := u[:at+1+strings.IndexFunc(u[at+1:], func(r rune) bool { return r != '/' && r != '\\' })]
	if len(head) <= at || head == u {
		return u
	}
	rest := u[len(head):]
	host, _ := splitAt(rest, "/?#")
	end := strings.LastIndexByte(host, '@')
	if _, port, ok := strings.Cut(host, ":"); ok && end < 0 && host[0] != '[' {
		if !strings.HasPrefix(strings.ToLower(u), "http") || strings.Trim(port, "0123456789") != "" {
			end = strings.LastIndexByte(rest, '@') // a password with a slash that nobody escaped
		}
	}
	if end >= 0 && rest[:end] != "git" {
		rest = Mark + rest[end:]
	}
	path, query := splitAt(rest, "?#")
	return head + path + scrubQuery(query)
}

func splitAt(s, any string) (before, after string) {
	if i := strings.IndexAny(s, any); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func scrubQuery(query string) string {
	var b strings.Builder
	for query != "" {
		sign := query[:1]
		var parameter string
		parameter, query = splitAt(query[1:], "?#&;")
		b.WriteString(sign)
		name, value, ok := strings.Cut(parameter, "=")
		value, tail := trimEnd(value)
		switch {
		case !ok && isWord(parameter), ok && value == Mark, isReference(value):
			b.WriteString(parameter)
		case !ok:
			b.WriteString(Mark)
		case value != "" && (Name(name) || queryNames[strings.ToLower(name)] || len(value) >= 6 && !isWord(strings.ReplaceAll(value, "%", ""))):
			b.WriteString(name + "=" + Mark + tail)
		default:
			b.WriteString(parameter)
		}
	}
	return b.String()
}

// queryNames are secret in a query only.
var queryNames = set("code ticket assertion nonce state t")

// scrubPairs hides values behind telling names: NAME=value, "name": "value",
// Name: value, --name value.
func scrubPairs(s string) string {
	var b strings.Builder
	done := 0
	for from := 0; ; {
		name, lead, flag, at := nextPair(s, from)
		if name == "" {
			break
		}
		from = at
		sure := rate(name)
		if name == "PWD" && lead == "=" {
			sure = telling // of a connection string; a path will be let through
		}
		if sure == harmless {
			continue
		}
		before, value, after := cutValue(s[at:])
		scheme, kind := "", lastWord(name)
		switch {
		case kind == "authorization" && lead != "":
			scheme, value, after = cutCredentials(value, after)
			if value == "" {
				continue
			}
		case value == "" || value == Mark || value == `\` || !betrays(sure, lead, value, flag):
			continue
		case kind == "cookie" && strings.Contains(lead, ":"):
			_, after = splitAt(after, "\"'\r\n") // there may be several
		}
		b.WriteString(s[done:at] + before + scheme + Mark)
		done = len(s) - len(after)
		from = done
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// nextPair finds the next name that leads to a value, and where that begins. lead
// is the sign between them without quotes and brackets, and empty behind a flag
// that only a blank separates from its value.
func nextPair(s string, from int) (name, lead string, flag bool, at int) {
	for i := from; i < len(s); i++ {
		if !isLetter(s[i]) && s[i] != '_' {
			continue
		}
		end := i + 1
		for end < len(s) && (isLetter(s[end]) || isDigit(s[end]) || strings.IndexByte("_.-", s[end]) >= 0) {
			end++
		}
		j := end
		for j < len(s) && s[j] == '\\' {
			j++
		}
		if j < len(s) && (s[j] == '"' || s[j] == '\'') {
			j++
		}
		if j < len(s) && s[j] == ']' {
			j++
		}
		sign := skipBlanks(s, j)
		j = sign
		for j < len(s) && j < sign+2 && strings.IndexByte(":=>", s[j]) >= 0 {
			j++
		}
		flag = i > 0 && s[i-1] == '-'
		switch {
		case j > sign && s[sign] != '>':
			at = skipBlanks(s, j)
			lead = s[sign:j]
			if sign > end && s[sign-1] == ' ' || at > j {
				lead += " "
			}
			return s[i:end], lead, flag, at
		case flag && sign > end && (s[end] == ' ' || s[end] == '\t'):
			return s[i:end], "", flag, sign
		}
		i = end - 1
	}
	return "", "", false, len(s)
}

func skipBlanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

func lastWord(name string) string {
	if ws := Words(name); len(ws) > 0 {
		return ws[len(ws)-1]
	}
	return ""
}

// betrays decides whether a value behind the name of a secret is hidden. Behind a
// bare = it nearly always is; elsewhere it may be the rest of a sentence.
func betrays(sure rating, lead, value string, flag bool) bool {
	switch {
	case isReference(value), isPath(value):
		return false
	case lead == "":
		return flag && !isProse(value) && !strings.HasPrefix(value, "-")
	case lead == "=" && sure == telling:
		return !trivial[strings.ToLower(value)]
	case sure == doubtful && !strings.HasPrefix(lead, "="):
		return !isWord(value) && !isProse(value)
	}
	return !isProse(value)
}

// cutValue finds the value at the beginning of a text: what is in quotes, or what
// goes on until the next blank or separator.
func cutValue(s string) (before, value, after string) {
	quote := ""
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i < 8 {
			continue
		}
		if s[i] == '"' || s[i] == '\'' || s[i] == '`' {
			quote = s[:i+1]
		}
		break
	}
	if quote != "" {
		body := s[len(quote):]
		end := closing(body, quote)
		return quote, body[:end], body[end:]
	}
	if strings.HasPrefix(s, "[") && !strings.HasPrefix(s, Mark) { // a list
		if after, ok := strings.CutPrefix(s[1:], Mark); ok {
			return "[", Mark, after
		}
		if end := strings.IndexAny(s, "]\n"); end >= 0 {
			return "[", s[1:end], s[end:]
		}
	}
	end := strings.IndexAny(s, " \t\r\n\"'&;")
	if end < 0 {
		end = len(s)
	}
	value, tail := trimEnd(s[:end])
	return "", value, tail + s[end:]
}

// closing finds the end of what a quote, maybe itself escaped, has opened. Where
// there is none, all is taken up to the end of the line.
func closing(body, quote string) int {
	for i := 0; i < len(body); i++ {
		switch {
		case body[i] == '\n':
			return i
		case strings.HasPrefix(body[i:], quote):
			return i
		case body[i] == '\\' && len(quote) == 1:
			i++
		}
	}
	return len(body)
}

// trimEnd separates the signs that close a sentence or a structure.
func trimEnd(s string) (value, tail string) {
	if i := strings.LastIndex(s, Mark); i >= 0 && strings.Trim(s[i+len(Mark):], "})],.") == "" {
		return s[:i+len(Mark)], s[i+len(Mark):]
	}
	value = strings.TrimRight(s, "),.")
	if !isReference(value) {
		value = strings.TrimRight(s, "}),.")
	}
	return value, s[len(value):]
}

// cutCredentials finds what to hide of an Authorization header, whose value has
// been cut at the first blank if it stood without quotes. A known scheme stays.
func cutCredentials(value, after string) (scheme, credentials, rest string) {
	scheme, credentials, quoted := strings.Cut(value, " ")
	rest = after
	if !quoted {
		scheme = value
		if strings.HasPrefix(after, " ") {
			_, credentials, rest = cutValue(after[1:])
			if m := shapes.parameters().FindString(after[1:]); len(m) > len(credentials) {
				credentials, rest = m, after[1+len(m):]
			}
		}
	}
	switch {
	case schemes[strings.ToLower(scheme)]:
		if credentials == Mark || isProse(credentials) {
			return "", "", after
		}
		return scheme + " ", credentials, rest
	case scheme == Mark || isProse(value):
		return "", "", after
	case quoted || !isWord(credentials) && credentials != Mark:
		return "", value, rest
	}
	return "", value, after
}

var schemes = set("basic bearer digest token apikey api-key key bot negotiate ntlm dpop oauth hawk ssws splunk aws4-hmac-sha256 privatetoken")

// isDigest reports whether a run is the sum of a file or of a commit, by what
// stands in front of it.
func isDigest(before, run string) bool {
	// The parts of a sum in base64 are runs of their own.
	before = before[max(0, len(before)-112):]
	sum := strings.TrimRightFunc(before, func(r rune) bool { return r < 128 && isBase64(byte(r)) && r != '-' && r != '_' })
	for _, h := range [...]string{"sha1-", "sha256-", "sha384-", "sha512-", "h1:"} {
		if strings.HasSuffix(sum, h) && (len(sum) == len(before) || strings.ContainsAny(before[len(sum):], "+/")) {
			return true
		}
	}
	before = before[max(0, len(before)-16):]
	for _, kind := range [...]string{"sha1", "sha256", "sha384", "sha512"} {
		if strings.HasSuffix(before, kind+":") || strings.HasSuffix(before, kind+"-") || strings.HasPrefix(run, kind+"-") {
			return true
		}
	}
	return len(run) == 40 && strings.Trim(run, "0123456789abcdef") == "" && shapes.commit().MatchString(before)
}
