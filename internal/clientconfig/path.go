package clientconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Path leads from the top of a document to a value: names of members, and
// positions in lists as decimal numbers.
type Path []string

// String writes a path as a JSON Pointer.
func (p Path) String() string {
	var b strings.Builder
	for _, name := range p {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// MarshalJSON writes the top of a document as an empty list: a path is one everywhere.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal(append([]string{}, p...)) }

// then returns a longer path, never in the memory of this one.
func (p Path) then(names ...string) Path { return append(slices.Clip(p), names...) }

// A Position is a place in a file. Line and Column count from 1, columns in
// characters.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }
