package arguments

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An edit is one change of one place, made on the bytes: what it does not name
// keeps its spelling, its blanks and its order.
type edit struct {
	op   op
	path []string // of the value to replace, or of the object that holds the member
	key  string   // the member, for all but replace
	text string   // the new value as JSON; for rename the new key; unused by wrap and unwrap
	rule Rule
}

type op uint8

// In the order in which the edits of one plan are made: a value is found by the
// key it came under, so keys change after values.
const (
	replace op = iota
	wrap       // into a list of one
	unwrap     // out of a list of one
	rename
	remove
	insert
)

func (e edit) equal(o edit) bool {
	return e.op == o.op && e.key == o.key && e.text == o.text && slices.Equal(e.path, o.path)
}

// clashes reports that two different edits want the same place.
func (e edit) clashes(o edit) bool {
	if !slices.Equal(e.path, o.path) {
		return false
	}
	switch {
	case e.op < rename || o.op < rename:
		return e.op < rename && o.op < rename
	case e.op == rename && o.op == rename:
		return e.key == o.key || e.text == o.text
	default:
		return e.key == o.key
	}
}

// splice makes one edit. Data must be valid JSON that holds the place.
func splice(data []byte, e edit) (out []byte, c Change, ok bool) {
	s := scanner{data: data}
	start, end, ok := s.find(e.path)
	if !ok {
		return nil, c, false
	}
	c = Change{Path: pointer(e.path), Rule: e.rule}
	switch e.op {
	case wrap:
		e.text = "[" + string(data[start:end]) + "]"
	case unwrap:
		item := s.item(start, 0)
		if data[start] != '[' || item < 0 {
			return nil, c, false
		}
		e.text = string(data[item:s.skip(item)])
	}
	if e.op < rename {
		c.From, c.To = string(data[start:end]), e.text
		return cut(data, start, end, e.text), c, true
	}
	if e.op == insert {
		c.Path, c.To = pointer(append(slices.Clip(e.path), e.key)), e.text
		member := string(appendString(nil, e.key)) + ":" + e.text
		last := end - 1
		if inner := bytes.TrimRight(data[start+1:last], " \t\r\n"); len(inner) > 0 {
			last = start + 1 + len(inner)
			member = "," + member
		}
		return cut(data, last, last, member), c, true
	}
	m, ok := s.member(start, e.key)
	if !ok {
		return nil, c, false
	}
	c.Path = pointer(append(slices.Clip(e.path), e.key))
	if e.op == rename {
		c.From, c.To = string(data[m.key:m.keyEnd]), string(appendString(nil, e.text))
		return cut(data, m.key, m.keyEnd, c.To), c, true
	}
	c.From = string(data[m.value:m.valueEnd])
	return cut(data, m.from, m.to, ""), c, true
}

func cut(data []byte, start, end int, text string) []byte {
	out := make([]byte, 0, len(data)-(end-start)+len(text))
	out = append(out, data[:start]...)
	out = append(out, text...)
	return append(out, data[end:]...)
}

// scanner walks over JSON that is known to be valid and says where things are.
type scanner struct{ data []byte }

// member is where one member of an object is: its key, its value, and what has
// to go, one comma included, for the member to be gone.
type member struct {
	key, keyEnd, value, valueEnd int
	from, to                     int
}

func (s scanner) space(i int) int {
	for i < len(s.data) && (s.data[i] == ' ' || s.data[i] == '\t' || s.data[i] == '\n' || s.data[i] == '\r') {
		i++
	}
	return i
}

// skip returns the end of the value that starts at i.
func (s scanner) skip(i int) int {
	depth := 0
	for i < len(s.data) {
		switch s.data[i] {
		case '"':
			i = s.skipString(i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue
		default:
			for i < len(s.data) && !strings.ContainsRune(",:]} \t\r\n", rune(s.data[i])) {
				i++
			}
		}
		if depth == 0 {
			break
		}
	}
	return i
}

func (s scanner) skipString(i int) int {
	for i++; i < len(s.data) && s.data[i] != '"'; i++ {
		if s.data[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(s.data))
}

func (s scanner) find(path []string) (start, end int, ok bool) {
	i := s.space(0)
	for _, step := range path {
		if i >= len(s.data) {
			return 0, 0, false
		}
		switch s.data[i] {
		case '{':
			m, ok := s.member(i, step)
			if !ok {
				return 0, 0, false
			}
			i = m.value
		case '[':
			n, err := strconv.Atoi(step)
			if err != nil {
				return 0, 0, false
			}
			if i = s.item(i, n); i < 0 {
				return 0, 0, false
			}
		default:
			return 0, 0, false
		}
	}
	return i, s.skip(i), true
}

func (s scanner) item(i, n int) int {
	i = s.space(i + 1)
	for ; i < len(s.data) && s.data[i] != ']'; n-- {
		if n == 0 {
			return i
		}
		i = s.space(s.skip(i))
		if i < len(s.data) && s.data[i] == ',' {
			i = s.space(i + 1)
		}
	}
	return -1
}

// member finds a key in the object that starts at i.
func (s scanner) member(i int, key string) (member, bool) {
	comma := -1 // the one before this member
	i = s.space(i + 1)
	for i < len(s.data) && s.data[i] != '}' {
		m := member{key: i, keyEnd: s.skipString(i)}
		m.value = s.space(s.space(m.keyEnd) + 1)
		m.valueEnd = s.skip(m.value)
		i = s.space(m.valueEnd)
		last := i >= len(s.data) || s.data[i] != ','
		if s.is(m.key, m.keyEnd, key) {
			switch {
			case !last:
				m.from, m.to = m.key, s.space(i+1)
			case comma >= 0:
				m.from, m.to = comma, m.valueEnd
			default:
				m.from, m.to = m.key, m.valueEnd
			}
			return m, true
		}
		if last {
			break
		}
		comma = i
		i = s.space(i + 1)
	}
	return member{}, false
}

func (s scanner) is(start, end int, key string) bool {
	token := s.data[start:end]
	if bytes.IndexByte(token, '\\') < 0 {
		return string(token[1:len(token)-1]) == key
	}
	d := decoder{data: token}
	k, err := d.string()
	return err == nil && k == key
}

// pointer writes a path as a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(step))
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// at returns the value a path leads to.
func at(v any, path []string) (any, bool) {
	for _, step := range path {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(c) {
				return nil, false
			}
			v = c[n]
		default:
			return nil, false
		}
	}
	return v, true
}

// A Change is one thing that was mended, as JSON text: a value, or a key when
// the rule is about names. From is empty for what was added, To for what was
// taken away.
type Change struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Rule Rule   `json:"rule"`
}

// String says in one line what was done, without values that may be secrets.
func (c Change) String() string {
	steps := strings.Split(c.Path, "/")
	switch {
	case c.Path == "":
		return fmt.Sprintf("arguments: %s", c.Rule)
	case slices.ContainsFunc(steps, isSecret):
		return fmt.Sprintf("%s: %s", c.Path, c.Rule)
	case c.From == "":
		return fmt.Sprintf("%s: added %s (%s)", c.Path, clip(c.To, 60), c.Rule)
	case c.To == "":
		return fmt.Sprintf("%s: left out %s (%s)", c.Path, clip(c.From, 60), c.Rule)
	default:
		return fmt.Sprintf("%s: %s became %s (%s)", c.Path, clip(c.From, 60), clip(c.To, 60), c.Rule)
	}
}

// pointerUnescape reads one step of a pointer in the fragment of a URL.
func pointerUnescape(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}
