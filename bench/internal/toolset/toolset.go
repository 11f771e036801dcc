// Package toolset reads sets of tools and broken calls in the format of
// shared/data/repair, and knows when two JSON values are the same.
package toolset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"

	"github.com/mcpmend/mcpmend/arguments"
)

// Tool is one tool of a set.
type Tool struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Project     string          `json:"project"`
	Description string          `json:"description"`
	Risk        string          `json:"risk"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Case is one call with the only acceptable outcome. A case of a wild set brings
// its own tool.
type Case struct {
	ID            string            `json:"id"`
	Kind          string            `json:"kind"`
	Group         string            `json:"group"`
	ToolID        string            `json:"tool_id"`
	ToolCalled    string            `json:"tool_called"`
	Risk          string            `json:"risk"`
	Field         string            `json:"field"`
	ValidatorMode string            `json:"validator_mode"`
	Arguments     json.RawMessage   `json:"arguments"`
	Verdict       string            `json:"verdict"`
	Expected      json.RawMessage   `json:"expected"`
	ExpectedTool  string            `json:"expected_tool"`
	Suggestion    json.RawMessage   `json:"suggestion"`
	Policy        map[string]string `json:"policy"`

	Tool        string          `json:"tool"`
	Catalog     []string        `json:"catalog"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Call is a valid call of a tool.
type Call struct {
	ToolID    string          `json:"tool_id"`
	Arguments json.RawMessage `json:"arguments"`
}

// RiskOf reads the name of a risk.
func RiskOf(name string) arguments.Risk {
	switch name {
	case "read":
		return arguments.ReadOnly
	case "write":
		return arguments.Write
	default:
		return arguments.Destructive
	}
}

// Lines reads a file with one JSON value per line.
func Lines[T any](name string) ([]T, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []T
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var v T
			if err := json.Unmarshal(line, &v); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			list = append(list, v)
		}
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Same reports whether two JSON texts are the same value, numbers exact.
func Same(a, b []byte) bool {
	x, errX := read(a)
	y, errY := read(b)
	return errX == nil && errY == nil && same(x, y)
}

func read(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return ok && okX && okY && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !same(v, w) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}
