package clientconfig

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// setYAML replaces or adds one value; only the last step of the path may be new.
func (d *document) setYAML(path Path, value any) ([]splice, error) {
	if len(path) == 0 { // an empty file, or one of comments only
		at := len(d.data)
		s := splice{at, at, d.blockYAML(value, "") + d.newline()}
		if !d.firstOnLine(at) {
			s.text = d.newline() + s.text
		}
		return []splice{s}, nil
	}
	parentPath, name := path[:len(path)-1], path[len(path)-1]
	parent := d.root.find(parentPath)
	if old := parent.step(name); old != nil {
		return d.replaceYAML(parent, name, old, value)
	}
	isNext := parent.kind == list && name == strconv.Itoa(len(parent.elements))
	if parent.kind != object && !isNext {
		return nil, errors.New("there is a value on the way that has no such part")
	}
	item := any(Object{{name, value}})
	if isNext {
		item = []any{value}
	}
	note := parent.note.(yamlNote)
	switch {
	case len(parent.members) == 0 && len(parent.elements) == 0 && len(parentPath) > 0:
		return d.setYAML(parentPath, item)
	case len(parent.members) == 0 && len(parent.elements) == 0:
		return []splice{{parent.start, parent.end, d.blockYAML(item, "")}}, nil
	case note.flow:
		return d.insertFlow(parent, name, value, isNext)
	}
	return d.insertBlock(parent, item)
}

func (d *document) replaceYAML(parent *node, name string, old *node, value any) ([]splice, error) {
	note := old.note.(yamlNote)
	if note.pinned {
		return nil, errors.New("the value has an anchor or a tag")
	}
	m := parent.member(name)
	known := old.end >= 0 && old.end >= old.start
	switch {
	case parent.note.(yamlNote).flow || isScalar(value) && known && (old.end > old.start || m == nil):
		if !known {
			return nil, errLayout
		}
		return []splice{{old.start, old.end, d.scalarLike(old, value)}}, nil
	case m == nil: // an element of a block list
		end := d.blockEnd(old.start, d.column(old.start)-1, nil, old)
		return []splice{{old.start, end, strings.TrimLeft(d.blockYAML(value, strings.Repeat(" ", d.column(old.start))), " ")}}, nil
	}
	return d.replaceMember(m, value)
}

// replaceMember writes another value behind a key that has a line of its own.
func (d *document) replaceMember(m *member, value any) ([]splice, error) {
	if m.end < 0 {
		return nil, errLayout
	}
	colon := m.end
	for colon < len(d.data) && (d.data[colon] == ' ' || d.data[colon] == '\t') {
		colon++
	}
	if colon >= len(d.data) || d.data[colon] != ':' {
		return nil, errLayout
	}
	colon++
	var splices []splice
	below := d.lineBreak(colon)
	oldEnd := d.blockEnd(m.start, d.column(m.start), m.value, m.value)
	if old := m.value; old.end > old.start && old.start < below { // on the same line
		splices = append(splices, splice{colon, old.end, ""})
		below = d.lineBreak(old.end)
	} else if old.kind == text { // a block scalar: "|" and the like would stay
		return nil, errLayout
	}
	if isScalar(value) || isEmpty(value) {
		splices = append(splices, splice{colon, colon, " " + d.scalarYAML(value)})
		return append(splices, splice{below, max(below, oldEnd), ""}), nil
	}
	indent := strings.Repeat(" ", d.column(m.start))
	if _, isList := value.([]any); !isList || d.listsAreIndented() {
		indent += d.unitYAML()
	}
	return append(splices, splice{below, max(below, oldEnd), d.newline() + d.blockYAML(value, indent)}), nil
}

// insertBlock adds a member or element behind the last one that has lines of its own.
func (d *document) insertBlock(parent *node, item any) ([]splice, error) {
	note := parent.note.(yamlNote)
	end := -1
	for i := range parent.members {
		if m := &parent.members[i]; !m.value.borrowed || m.value.start > m.start {
			end = max(end, d.blockEnd(m.start, note.column, m.value, m.value))
		}
	}
	for _, e := range parent.elements {
		end = max(end, d.blockEnd(e.start, note.column, nil, e))
	}
	if end < 0 {
		return nil, errLayout
	}
	return []splice{{end, end, d.newline() + d.blockYAML(item, strings.Repeat(" ", note.column))}}, nil
}

func (d *document) insertFlow(parent *node, name string, value any, isElement bool) ([]splice, error) {
	last := lastChild(parent)
	if parent.end < 0 || last.end < 0 {
		return nil, errLayout
	}
	label := ""
	if !isElement {
		label = d.scalarYAML(name) + ": "
	}
	return []splice{{last.end, last.end, ", " + label + d.scalarYAML(value)}}, nil
}

func (d *document) removeYAML(path Path) ([]splice, error) {
	parentPath, name := path[:len(path)-1], path[len(path)-1]
	parent := d.root.find(parentPath)
	all := children(parent)
	i := childIndex(parent, name)
	note := parent.note.(yamlNote)
	switch {
	case note.flow:
		if parent.end < 0 || slices.ContainsFunc(all, func(c child) bool { return c.end < 0 }) {
			return nil, errLayout
		}
		return d.cutFromList(all, i, parent), nil
	case len(all) == 1 && len(parentPath) == 0:
		return nil, errLayout
	case len(all) == 1:
		empty := any(Object{})
		if parent.kind == list {
			empty = []any{}
		}
		return d.setYAML(parentPath, empty)
	}
	start, of := all[i].start, d.root.find(path)
	if parent.kind == list {
		start = d.dash(start)
	}
	if !d.firstOnLine(start) {
		// The first key behind a dash: the next one moves up to it.
		if i+1 >= len(all) || parent.kind == list {
			return nil, errLayout
		}
		return []splice{{start, all[i+1].start, ""}}, nil
	}
	var keyed *node
	if parent.kind == object {
		keyed = of
	}
	end := d.lineEnd(d.blockEnd(start, note.column, keyed, of))
	return []splice{{d.lineStart(start), end, ""}}, nil
}

// dash finds the dash of an element.
func (d *document) dash(at int) int {
	for at--; at > 0 && strings.IndexByte(" \t\r\n", d.data[at]) >= 0; at-- {
	}
	return max(at, 0)
}

// blockEnd returns the end of the last line of a block, before its line break. The
// block begins at an offset and goes on in lines that are indented more than
// column. keyed is the value if a key stands before it: a list may then have its
// dashes below the key.
func (d *document) blockEnd(start, column int, keyed, value *node) int {
	if value.end >= value.start && value.end >= start {
		return d.lineBreak(value.end)
	}
	end := d.lineBreak(start)
	dashes := keyed != nil && keyed.kind == list
	for at := d.lineEnd(end); at < len(d.data); at = d.lineEnd(at) {
		line := strings.TrimRight(string(d.data[at:d.lineEnd(at)]), " \t\r\n")
		body := strings.TrimLeft(line, " ")
		indent := len(line) - len(body)
		isDash := body == "-" || strings.HasPrefix(body, "- ")
		switch {
		case body == "": // counts if something follows
		case indent > column, dashes && indent == column && isDash:
			end = d.lineBreak(at)
		default:
			return end
		}
	}
	return end
}

// lineBreak is the end of a line without its break.
func (d *document) lineBreak(at int) int {
	end := d.lineEnd(at)
	if end > at && d.data[end-1] == '\n' {
		end--
	}
	if end > at && d.data[end-1] == '\r' {
		end--
	}
	return end
}

// column counts the characters before an offset on its line.
func (d *document) column(at int) int {
	line := strings.TrimPrefix(string(d.data[d.lineStart(at):at]), byteOrderMark)
	return utf8.RuneCountInString(line)
}

func isScalar(value any) bool {
	switch value.(type) {
	case Object, []any:
		return false
	}
	return true
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case Object:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// scalarLike writes a value with the quotes of another.
func (d *document) scalarLike(old *node, value any) string {
	s, ok := value.(string)
	style := old.note.(yamlNote).style
	switch {
	case ok && style&yaml.SingleQuotedStyle != 0 && isLiteralTOML(strings.ReplaceAll(s, "'", "")):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case ok && style&yaml.DoubleQuotedStyle != 0:
		return quoteJSON(s)
	}
	return d.scalarYAML(value)
}

// plainYAML is what may stand without quotes: cautious, since old and new versions
// of YAML disagree about the rest.
var plainYAML = regexp.MustCompile(`^-{0,2}[A-Za-z/.][A-Za-z0-9_./@+=-]*(:[A-Za-z0-9_./@+=-]+)*$`)

// reservedYAML are words that some version takes for something else.
var reservedYAML = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null|\.|\.inf|\.nan|\.\.\.)$`)

// scalarYAML writes a value on one line; objects and lists with brackets.
func (d *document) scalarYAML(value any) string {
	switch v := value.(type) {
	case string:
		if !plainYAML.MatchString(v) || reservedYAML.MatchString(v) || !resolvesToText(v) {
			return quoteJSON(v)
		}
		return v
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = d.scalarYAML(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Object:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = d.scalarYAML(m.Name) + ": " + d.scalarYAML(m.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "null"
}

func resolvesToText(s string) bool {
	n := yaml.Node{Kind: yaml.ScalarNode, Value: s}
	return n.ShortTag() == "!!str"
}

// blockYAML writes an object or list with a line for each part, without the last
// line break; anything else on one line.
func (d *document) blockYAML(value any, indent string) string {
	var lines []string
	part := func(label string, v any) {
		if isScalar(v) || isEmpty(v) {
			lines = append(lines, indent+label+" "+d.scalarYAML(v))
			return
		}
		inner := indent
		if _, isList := v.([]any); !isList || d.listsAreIndented() {
			inner += d.unitYAML()
		}
		lines = append(lines, indent+label, d.blockYAML(v, inner))
	}
	switch v := value.(type) {
	case Object:
		if len(v) == 0 {
			return indent + "{}"
		}
		for _, m := range v {
			part(d.scalarYAML(m.Name)+":", m.Value)
		}
	case []any:
		for _, e := range v {
			if isScalar(e) || isEmpty(e) {
				lines = append(lines, indent+"- "+d.scalarYAML(e))
			} else {
				lines = append(lines, indent+"- "+strings.TrimLeft(d.blockYAML(e, indent+"  "), " "))
			}
		}
	default:
		return indent + d.scalarYAML(value)
	}
	return strings.Join(lines, d.newline())
}

// unitYAML is one step of indentation in this file.
func (d *document) unitYAML() string {
	return strings.Repeat(" ", max(2, d.stepYAML(d.root, object)))
}

// listsAreIndented reports whether the dashes of a list stand further in than its
// key, as in the first list of the file.
func (d *document) listsAreIndented() bool { return d.stepYAML(d.root, list) != 0 }

// stepYAML finds the first value of a kind below a key and returns how much
// further in it stands, or -1.
func (d *document) stepYAML(n *node, k kind) int {
	if n == nil || n.borrowed {
		return -1
	}
	for _, m := range n.members {
		note, ok := m.value.note.(yamlNote)
		if ok && m.value.kind == k && !note.flow && !note.pinned && !m.value.borrowed && len(m.value.members)+len(m.value.elements) > 0 {
			return note.column - d.column(m.start)
		}
		if step := d.stepYAML(m.value, k); step >= 0 {
			return step
		}
	}
	for _, e := range n.elements {
		if step := d.stepYAML(e, k); step >= 0 {
			return step
		}
	}
	return -1
}
