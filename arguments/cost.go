package arguments

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The engine cannot be stopped once it runs, so what a check may cost is known
// before it starts. A step is one part of a schema looking at one value, about
// a third of a microsecond and, when it fails, some hundred bytes.
const (
	maxInPlace = 10_000  // parts that judge one value
	maxSteps   = 200_000 // steps of one check
)

// cost is what a schema is known to cost, whatever the arguments.
type cost struct {
	parts     int  // paths through the schema: a bound on the steps per value
	patterns  int  // instructions of all patterns: a bound on the work per byte
	recursive bool // the number of paths depends on the arguments
}

// estimate adds up the ways through a schema. Shared parts are reached on many
// paths and counted on each, but visited once; sums stop growing at a ceiling.
// A part that leads back to itself on the same value would never end.
func estimate(root *jsonschema.Schema) (cost, error) {
	e := estimator{here: map[*jsonschema.Schema]int{}, all: map[*jsonschema.Schema]int{}}
	for _, part := range reach(root) {
		n, err := e.inPlace(part)
		if err != nil {
			return cost{}, err
		}
		if n > maxInPlace {
			return cost{}, fmt.Errorf("%w: one value is judged in more than %d ways", ErrTooComplex, maxInPlace)
		}
		e.patterns += patternSize(part)
	}
	parts := e.total(root)
	return cost{parts: parts, patterns: e.patterns, recursive: e.recursive}, nil
}

type estimator struct {
	here, all map[*jsonschema.Schema]int // 0 while being counted
	patterns  int
	recursive bool
}

const ceiling = 1 << 40

func (e *estimator) inPlace(s *jsonschema.Schema) (int, error) {
	if n, ok := e.here[s]; ok {
		if n == 0 {
			return 0, fmt.Errorf("%w: it refers to itself without end", ErrTooComplex)
		}
		return n, nil
	}
	e.here[s] = 0
	sum, failed := 1, error(nil)
	inPlace(s, func(p *jsonschema.Schema) {
		n, err := e.inPlace(p)
		if err != nil {
			failed = err
		}
		sum = min(sum+n, ceiling)
	})
	e.here[s] = sum
	return sum, failed
}

func (e *estimator) total(s *jsonschema.Schema) int {
	if n, ok := e.all[s]; ok {
		e.recursive = e.recursive || n == 0
		return n
	}
	e.all[s] = 0
	sum := 1 + weight(s, nil)
	add := func(p *jsonschema.Schema) { sum = min(sum+e.total(p), ceiling) }
	inPlace(s, add)
	inside(s, add)
	e.all[s] = sum
	return sum
}

// weight is what comparing a value with the values a part names costs beyond
// one step. Texts are compared quickly; numbers as fractions, each made anew.
// Without a value, of whatever type, it is the most it can be.
func weight(s *jsonschema.Schema, v any) int {
	texts, others := 0, 0
	add := func(value any) {
		if _, ok := value.(string); ok {
			texts++
		} else {
			others += 2 * nodesOf(value)
		}
	}
	if s.Enum != nil {
		for _, value := range s.Enum.Values {
			add(value)
		}
	}
	if s.Const != nil {
		add(*s.Const)
	}
	if _, ok := v.(string); ok {
		others = 0
	}
	return texts/16 + others
}

func nodesOf(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += nodesOf(item)
		}
	case map[string]any:
		for _, item := range v {
			n += nodesOf(item)
		}
	}
	return n
}

func patternSize(s *jsonschema.Schema) int {
	size := 0
	if p, ok := s.Pattern.(*pattern); ok {
		size += p.size
	}
	for re := range s.PatternProperties {
		if p, ok := re.(*pattern); ok {
			size += p.size
		}
	}
	return size
}

// affordable says whether a check stays within bounds. Almost always the static
// bound answers; otherwise the steps are counted, pessimistically, as if every
// branch were tried.
func (c cost) affordable(root *jsonschema.Schema, v any, nodes, size int) bool {
	if !c.recursive && c.parts <= maxSteps && nodes <= maxSteps && c.parts*nodes <= maxSteps && c.patterns*size <= maxSteps*patternBytesPerStep {
		return true
	}
	budget := maxSteps
	return spend(root, v, 0, &budget)
}

const patternBytesPerStep = 100

func spend(s *jsonschema.Schema, v any, depth int, budget *int) bool {
	*budget -= 1 + depth/8
	if s.Enum != nil || s.Const != nil {
		*budget -= weight(s, v)
	}
	if text, ok := v.(string); ok {
		if p, ok := s.Pattern.(*pattern); ok {
			*budget -= len(text) / patternBytesPerStep * p.size
		}
	}
	if *budget < 0 {
		return false
	}
	ok := true
	each := func(p *jsonschema.Schema, v any, depth int) {
		ok = ok && spend(p, v, depth, budget)
	}
	inPlace(s, func(p *jsonschema.Schema) { each(p, v, depth) })
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if !ok {
				return false
			}
			spendMember(s, key, item, depth+1, budget, each)
		}
	case []any:
		if s.UniqueItems {
			*budget -= 2 * len(v) // each is hashed
		}
		for i, item := range v {
			if !ok {
				return false
			}
			itemParts(s, i, func(p *jsonschema.Schema) { each(p, item, depth+1) })
		}
	}
	return ok && *budget >= 0
}

func spendMember(s *jsonschema.Schema, key string, item any, depth int, budget *int, each func(*jsonschema.Schema, any, int)) {
	*budget -= len(s.PatternProperties)
	for re := range s.PatternProperties {
		if p, ok := re.(*pattern); ok {
			*budget -= len(key) / patternBytesPerStep * p.size
		}
	}
	if s.PropertyNames != nil {
		each(s.PropertyNames, key, depth)
	}
	memberParts(s, key, func(p *jsonschema.Schema) { each(p, item, depth) })
}
