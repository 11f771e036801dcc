package guard

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"

	"github.com/mcpmend/mcpmend/arguments"
	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/wire"
)

// tools are the definitions of a server's tools as they last passed by.
type tools struct {
	policy fault.Policy

	mu    sync.RWMutex
	known map[string]*tool
}

// tool is one definition. Only its schema is filled in later; a new definition
// takes the place of an old one.
type tool struct {
	hash        [sha256.Size]byte // of the whole definition, as the server wrote it
	effect      fault.Effect
	byUser      bool
	readOnly    bool // says so itself; good for a suggestion, not for a decision
	description string
	input       []byte // its input schema, as the server wrote it
	once        sync.Once
	compiled    *arguments.Schema
	// structured: it declares an output schema, so structuredContent is its own.
	structured bool
}

// find is the definition of a tool, nil if none was seen.
func (t *tools) find(name string) *tool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.known[name]
}

// effect is what a second execution of a tool would do. A tool of which nothing
// was seen is what the user says it is, or else destructive.
func (t *tools) effect(name string, seen *tool) (fault.Effect, bool) {
	if seen != nil {
		return seen.effect, seen.byUser
	}
	return t.policy.Effect(name, nil)
}

// learn takes in one page of a list that passes by.
func (t *tools) learn(page []byte) {
	found := t.read(page)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = make(map[string]*tool, len(found))
	}
	for name, def := range found {
		t.known[name] = def
	}
}

// replace takes in a whole list and reports whether it differs from what was known.
func (t *tools) replace(pages [][]byte) (differs bool) {
	fresh := make(map[string]*tool)
	for _, page := range pages {
		for name, def := range t.read(page) {
			fresh[name] = def
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = fresh
		return false // nobody has seen a list, so nobody has to see another
	}
	differs = len(fresh) != len(t.known)
	for name, def := range fresh {
		if was := t.known[name]; was == nil || was.hash != def.hash {
			differs = true
		}
	}
	t.known = fresh
	return differs
}

func (t *tools) read(page []byte) map[string]*tool {
	found := make(map[string]*tool)
	list, _ := wire.Member(page, "tools")
	wire.EachElement(list, func(def []byte) {
		raw, _ := wire.Member(def, "name")
		name, ok := wire.StringValue(raw)
		if !ok {
			return
		}
		annotations, _ := wire.Member(def, "annotations")
		hint, _ := wire.Member(annotations, "readOnlyHint")
		_, structured := wire.Member(def, "outputSchema")
		input, _ := wire.Member(def, "inputSchema")
		described, _ := wire.Member(def, "description")
		one := &tool{
			hash: sha256.Sum256(def), readOnly: string(hint) == "true", structured: structured,
			input: bytes.Clone(input),
		}
		one.description, _ = wire.StringValue(described)
		one.effect, one.byUser = t.policy.Effect(name, annotations)
		found[name] = one
	})
	return found
}

// names are the names of all tools.
func (t *tools) names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.known))
}

// verifier names a tool that reads and does not write, by which the effect of
// another one could be seen. It is the server's own word, good for a hint.
func (t *tools) verifier(except string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	best := ""
	for name, def := range t.known {
		if def.readOnly && name != except && (best == "" || name < best) {
			best = name
		}
	}
	return best
}
