package advisor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/secret"
)

// Acceptable says whether a correction of arguments keeps within what a model may
// correct. Both are JSON objects. It is not, and the error says where, if it
//
//   - changes, adds, renames or removes what is sensitive: by its name (paths,
//     addresses, recipients, amounts, identifiers, commands, secrets, permissions),
//     by its value (a path, a URL, a mail address), or because sensitive says so of
//     its JSON pointer. To undo an encoding ("42" for 42) is no change;
//   - drops anything that was said, other than null: dry_run may be the key that the
//     schema does not know;
//   - brings in characters that a shell would act on.
//
// sensitive may be nil. Whether the result is valid, and a new key known, is for
// the schema to say.
func Acceptable(before, after []byte, sensitive func(pointer string) bool) error {
	b, err := decodeObject(before)
	if err != nil {
		return fmt.Errorf("before: %w", err)
	}
	a, err := decodeObject(after)
	if err != nil {
		return fmt.Errorf("after: %w", err)
	}
	return acceptable(compare(b, a), sensitive)
}

// change is one place where two argument objects differ.
type change struct {
	pointer  string
	op       op
	from, to any
	inList   bool // it is an item that was added or removed, not a member
}

type op uint8

const (
	replaced op = iota
	added
	removed
)

func (o op) String() string { return [...]string{"changes", "adds", "drops"}[o] }

// compare lists the differences, in the order of their pointers.
func compare(before, after any) []change {
	var out []change
	var walk func(pointer string, b, a any)
	walk = func(pointer string, b, a any) {
		switch b := b.(type) {
		case object:
			if a, ok := a.(object); ok {
				for key, v := range b {
					if now, ok := a[key]; ok {
						walk(under(pointer, key), v, now)
					} else {
						out = append(out, change{pointer: under(pointer, key), op: removed, from: v})
					}
				}
				for key, v := range a {
					if _, ok := b[key]; !ok {
						out = append(out, change{pointer: under(pointer, key), op: added, to: v})
					}
				}
				return
			}
		case []any:
			if a, ok := a.([]any); ok {
				for i := range max(len(b), len(a)) {
					switch {
					case i >= len(a):
						out = append(out, change{pointer: item(pointer, i), op: removed, from: b[i], inList: true})
					case i >= len(b):
						out = append(out, change{pointer: item(pointer, i), op: added, to: a[i], inList: true})
					default:
						walk(item(pointer, i), b[i], a[i])
					}
				}
				return
			}
		}
		if !reflect.DeepEqual(b, a) {
			out = append(out, change{pointer: pointer, op: replaced, from: b, to: a})
		}
	}
	walk("", before, after)
	slices.SortFunc(out, func(x, y change) int { return cmp.Compare(x.pointer, y.pointer) })
	return out
}

func acceptable(changes []change, sensitive func(string) bool) error {
	gone := make(map[string][]string) // what was said and is no longer there: text to pointers
	changes = slices.DeleteFunc(slices.Clone(changes), func(c change) bool {
		return c.op == replaced && decodes(c.from, c.to)
	})
	for _, c := range changes {
		if c.op == removed || isContainer(c.from) {
			eachLeaf(c.pointer, c.from, func(pointer string, v any) {
				gone[wording(v)] = append(gone[wording(v)], pointer)
			})
		}
	}
	for _, c := range changes {
		if err := c.touches(sensitive); err != nil {
			return err
		}
		if err := c.brings(gone); err != nil {
			return err
		}
	}
	delete(gone, "")
	for _, text := range slices.Sorted(maps.Keys(gone)) {
		if pointers := gone[text]; len(pointers) > 0 {
			return fmt.Errorf("%s %s", removed, show(pointers[0]))
		}
	}
	return nil
}

func isContainer(v any) bool {
	switch v.(type) {
	case object, []any:
		return true
	}
	return false
}

// touches complains of a change to something sensitive, above it, at it or below.
func (c change) touches(sensitive func(string) bool) error {
	if c.op == removed && c.from == nil {
		return nil // null said nothing
	}
	var err error
	check := func(pointer string, v any) {
		switch text, _ := v.(string); {
		case err != nil:
		case isSensitiveName(pointer) || sensitive != nil && sensitive(pointer):
			err = fmt.Errorf("%s %s, which is sensitive", c.op, show(pointer))
		case isPlace(text):
			err = fmt.Errorf("%s %s, which is a path or an address", c.op, show(pointer))
		}
	}
	// Its own name, then the old value and the new one with all that is in them.
	check(c.pointer, pointerPlain.Replace(c.pointer[strings.LastIndexByte(c.pointer, '/')+1:]))
	each(c.pointer, c.from, check)
	each(c.pointer, c.to, check)
	return err
}

// brings complains of text that is new and looks like more than a value. What was
// only moved is taken off gone.
func (c change) brings(gone map[string][]string) error {
	if c.op == removed {
		return nil
	}
	var had string
	each(c.pointer, c.from, func(_ string, v any) { had += wording(v) })
	var err error
	eachLeaf(c.pointer, c.to, func(pointer string, v any) {
		text := wording(v)
		if was := gone[text]; len(was) > 0 && (c.op == added || isContainer(c.from)) {
			gone[text] = was[1:]
			return
		}
		for _, sign := range shellSigns {
			if strings.Contains(text, sign) && !strings.Contains(had, sign) && err == nil {
				err = fmt.Errorf("%s %s with text that a shell would act on", c.op, show(pointer))
			}
		}
	})
	return err
}

var shellSigns = []string{"$", "`", ";", "|", "&", ">", "<", "\n", "\r", "\x00"}

// decodes says that to is what from is the text of, or the one item in a list: the
// same thing in another representation.
func decodes(from, to any) bool {
	if list, ok := to.([]any); ok && len(list) == 1 && reflect.DeepEqual(list[0], from) {
		return true
	}
	if list, ok := from.([]any); ok && len(list) == 1 && reflect.DeepEqual(list[0], to) {
		return true
	}
	text, ok := from.(string)
	if !ok || to == nil {
		return false // the text "null" may be a name
	}
	v, err := decode([]byte(text), maxArguments)
	if err != nil {
		return false
	}
	return reflect.DeepEqual(v, to)
}

// each visits a value and everything in it. No value, no visit.
func each(pointer string, v any, visit func(pointer string, v any)) {
	if v == nil {
		return
	}
	visit(pointer, v)
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			// A key is text, too.
			visit(under(pointer, key), key)
			each(under(pointer, key), v[key], visit)
		}
	case []any:
		for i := range v {
			each(item(pointer, i), v[i], visit)
		}
	}
}

func eachLeaf(pointer string, v any, visit func(pointer string, v any)) {
	switch v := v.(type) {
	case object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachLeaf(under(pointer, key), v[key], visit)
		}
	case []any:
		for i := range v {
			eachLeaf(item(pointer, i), v[i], visit)
		}
	default:
		visit(pointer, v)
	}
}

// wording is what a scalar says, whatever its type. null says nothing.
func wording(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

// show writes a pointer into an error. Keys are other people's text.
func show(pointer string) string {
	if pointer == "" {
		return "everything"
	}
	return printable(secret.Scrub(pointer), 80)
}

var (
	mailAddress = regexp.MustCompile(`[^\s@]+@[^\s@]+\.[^\s@]+`)
	drive       = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

// isPlace says by its look that a text is a path, a URL or a mail address.
func isPlace(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || strings.HasPrefix(text, `\\`) ||
		strings.HasPrefix(text, "./") || strings.Contains(text, "../") || strings.Contains(text, `..\`) || text == ".." ||
		strings.Contains(text, "://") || drive.MatchString(text) || mailAddress.MatchString(text)
}

// isSensitiveName says so of a JSON pointer if one of its names does.
func isSensitiveName(pointer string) bool {
	for name := range strings.SplitSeq(pointer, "/") {
		name = pointerPlain.Replace(name)
		if secret.Name(name) || slices.ContainsFunc(secret.Words(name), isSensitiveWord) {
			return true
		}
	}
	return false
}

func isSensitiveWord(w string) bool {
	return sensitiveWords[w] || sensitiveWords[strings.TrimSuffix(w, "s")]
}

// sensitiveWords are those that make a field one whose characters decide what is
// touched, who is told, what it costs or whether it is allowed.
var sensitiveWords = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(`
		path paths filepath file filename dir directory directorie folder root cwd workdir workspace destination dest source src target
		url uri href link host hostname domain endpoint address addresse ip port server origin webhook callback redirect proxy
		to cc bcc from recipient sender email mail phone mobile tel channel user username login owner assignee account member group team org organization reviewer attendee contact customer tenant project repo repository
		amount price cost total quantity qty currency balance payment salary fee sum budget iban bic card invoice
		id uid userid uuid guid key ref sha hash digest number slug branch commit code zip zipcode postcode pin otp
		command cmd arg argv script shell exec sql expression eval statement env
		role permission privilege visibility access scope policy policie grant acl admin public private sudo force confirm confirmed confirmation approve approved approval consent override bypass overwrite recursive dry dryrun delete`) {
		m[w] = true
	}
	return m
}()
