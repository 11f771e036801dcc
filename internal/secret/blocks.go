package secret

import (
	"strings"
)

// A value may begin on the line behind its name, and go on over several. Lines are
// hidden one by one, so that what is shown has as many as there were.

// mostLines of a value are looked at.
const mostLines = 200

// scrubBlocks hides values that do not stand on the line of their name, and goes on
// where a key was folded.
func scrubBlocks(s string) string {
	if !strings.Contains(s, "\n") {
		return s
	}
	lines := strings.Split(s, "\n")
	changed := false
	for i := 0; i+1 < len(lines); i++ {
		if n := hideBlock(lines[i:]); n > 0 {
			changed = true
			i += n
		}
	}
	if !changed {
		return s
	}
	return strings.Join(lines, "\n")
}

// An opening is how a line ends whose last name has its value below.
type opening struct {
	prefix string // what stands in front of the name: of a log, or blanks
	sure   rating
	opens  string // what stands behind the sign
}

// openingOf reads a line from its end, since only few end like that.
func openingOf(line string) (o opening, ok bool) {
	m := shapes.opening().FindStringSubmatchIndex(line)
	if m == nil {
		return o, false
	}
	o = opening{line[:m[0]], rate(line[m[2]:m[3]]), line[m[4]:m[5]]}
	if line[m[2]:m[3]] == "PWD" {
		return o, false
	}
	return o, o.sure != harmless
}

// hideBlock hides the value that the first of these lines opens, in place, and
// returns how many of the others it is on.
func hideBlock(lines []string) int {
	first := strings.TrimRight(lines[0], " \t\r")
	if strings.HasSuffix(first, Mark) {
		return hideRest(lines)
	}
	if first == "" || strings.IndexByte(":=|>+-\\['\"", first[len(first)-1]) < 0 && strings.Count(first, `"`)%2 == 0 && strings.Count(first, "'")%2 == 0 {
		return 0 // the usual line, which needs no closer look
	}
	o, ok := openingOf(first)
	if !ok {
		return 0
	}
	body := lines[1:min(len(lines), 1+mostLines)]
	switch quote := o.opens; {
	case quote == "" || quote == `\`:
		return hideBelow(o, body)
	case quote == "[":
		return hideList(body)
	case quote == `"""` || quote == "'''":
		return hideQuoted(lines, len(first), quote, len(body))
	case quote[0] == '"' || quote[0] == '\'':
		if strings.Contains(quote[1:], quote[:1]) {
			return 0 // it ends where it began
		}
		return hideQuoted(lines, len(first)-len(quote)+1, quote[:1], min(len(body), 20))
	default: // | or > of YAML
		return hideIndented(o, body)
	}
}

// hideBelow hides the one value on the next line, or a list of YAML.
func hideBelow(o opening, body []string) int {
	lead, rest := o.split(body[0])
	value := strings.TrimRight(rest, " \t\r,")
	indented := len(lead) > len(o.prefix) || o.opens != ""
	if strings.HasPrefix(value, "- ") {
		n := 0
		for n < len(body) {
			lead, rest := o.split(body[n])
			item, ok := strings.CutPrefix(strings.TrimRight(rest, "\r"), "- ")
			if !ok || !hideValue(o, &body[n], lead+"- ", item, rest[2+len(item):]) {
				break
			}
			n++
		}
		return n
	}
	end := value
	if o.opens != "" {
		end, _ = splitAt(value, " \t")
	}
	quoted := len(value) > 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0]
	if !quoted && (!indented || strings.ContainsAny(end, " \t") || strings.HasSuffix(end, ":") || isFlag(end)) {
		return 0
	}
	if !hideValue(o, &body[0], lead, end, rest[len(end):]) {
		return 0
	}
	return 1
}

// hideValue hides a value in a line, if it is one.
func hideValue(o opening, line *string, lead, value, after string) bool {
	quote := ""
	if len(value) > 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		quote, value = value[:1], value[1:len(value)-1]
	}
	if value == "" || value == Mark || isReference(value) || isPath(value) || trivial[strings.ToLower(value)] ||
		quote == "" && (isProse(value) || o.sure == doubtful && isWord(value)) || strings.ContainsAny(value, "{}[]") {
		return false
	}
	*line = lead + quote + Mark + quote + after
	return true
}

// split separates what stands in front of a value: the prefix of a log, in which only
// numbers differ, and blanks.
func (o opening) split(line string) (lead, rest string) {
	n := 0
	if len(line) >= len(o.prefix) && sameButNumbers(line[:len(o.prefix)], o.prefix) {
		n = len(o.prefix)
	}
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return line[:n], line[n:]
}

func sameButNumbers(a, b string) bool {
	for i := range len(a) {
		if a[i] != b[i] && (!isDigit(a[i]) || !isDigit(b[i])) {
			return false
		}
	}
	return true
}

// hideIndented hides lines that stand further in than the name above them.
func hideIndented(o opening, body []string) int {
	n := 0
	for ; n < len(body); n++ {
		lead, rest := o.split(body[n])
		bare := strings.TrimRight(rest, " \t\r")
		if bare == "" {
			continue
		}
		if len(lead) <= len(o.prefix) {
			break
		}
		body[n] = lead + Mark + rest[len(bare):]
	}
	return n
}

// hideList hides what stands in the quotes of a list of JSON, up to its end.
func hideList(body []string) int {
	end := -1
	for i, line := range body {
		if bare := strings.TrimSpace(line); strings.HasPrefix(bare, "]") {
			end = i
			break
		} else if bare != "" && bare[0] != '"' && bare[0] != '\'' {
			return 0 // objects and numbers
		}
	}
	for i := range max(end, 0) {
		bare := strings.TrimSpace(body[i])
		if closes := strings.LastIndexByte(bare, bareQuote(bare)); closes > 0 && !isReference(bare[1:closes]) {
			body[i] = strings.Replace(body[i], bare[1:closes], Mark, 1)
		}
	}
	return max(end, 0)
}

func bareQuote(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// hideQuoted hides from a place in the first line on up to the quote that closes.
func hideQuoted(lines []string, from int, quote string, most int) int {
	for n := 1; n <= most; n++ {
		end := strings.Index(lines[n], quote)
		if end < 0 {
			continue
		}
		if rest := strings.TrimRight(lines[0][from:], " \t\r"); rest != "" {
			lines[0] = lines[0][:from] + Mark + lines[0][from+len(rest):]
		}
		for i := 1; i < n; i++ {
			lines[i] = markOnly(lines[i], len(lines[i]))
		}
		lines[n] = markOnly(lines[n], end)
		return n
	}
	return 0
}

// markOnly hides the beginning of a line, but for its blanks.
func markOnly(line string, end int) string {
	bare := strings.TrimSpace(line[:end])
	if bare == "" {
		return line
	}
	return strings.Replace(line[:end], bare, Mark, 1) + line[end:]
}

// hideRest hides a line that is nothing but the rest of a key that the one above ends
// with.
func hideRest(lines []string) int {
	bare := strings.Trim(lines[1], " \t\r\"',;")
	run := strings.TrimRight(bare, "=")
	if len(run) < anchor || isWord(run) || isPath(run) || isHex(run) && isSum(run) || strings.ContainsFunc(run, func(r rune) bool {
		return r > 127 || !isLetter(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune("+/_.-", r)
	}) || shapes.timestamp().MatchString(run) || madeOfWords(run, true) {
		return 0
	}
	lines[1] = strings.Replace(lines[1], bare, Mark, 1)
	return 1
}

// scrubPrivateKeys hides keys in PEM. One that was cut goes on as long as its lines do.
func scrubPrivateKeys(s string) string {
	var b strings.Builder
	done := 0
	for _, at := range shapes.keyBegins().FindAllStringIndex(s, -1) {
		if at[0] < done {
			continue
		}
		end := at[1]
		if closes := shapes.keyEnds().FindStringIndex(s[end:min(len(s), end+1<<15)]); closes != nil {
			end += closes[1]
		} else {
			end += len(shapes.keyLines().FindString(s[end:]))
		}
		if end == at[1] && !strings.HasSuffix(s[:end], "\n") && end < len(s) {
			continue // only spoken about
		}
		b.WriteString(s[done:at[0]])
		markLines(&b, s[at[0]:end], Mark)
		done = end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}
