package doctor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpmend/mcpmend/fault"
)

// Whatever a check can show can be looked up.
func TestEveryKindIsExplained(t *testing.T) {
	var kinds []string
	for id := range treatments {
		kinds = append(kinds, id[strings.LastIndexByte(id, '.')+1:])
	}
	for k := range problemStages {
		kinds = append(kinds, string(k))
	}
	for _, k := range fault.Kinds() {
		kinds = append(kinds, string(k))
	}
	own := ownConstants(t)
	if len(own) < 10 {
		t.Fatalf("only %d constants were found; the search is broken", len(own))
	}
	for _, k := range append(kinds, own...) {
		for _, id := range []string{k, "start." + k} {
			title, meaning, remedy, ok := explainID(id)
			if !ok || title == "" || !strings.HasSuffix(meaning, ".") || remedy == "" || strings.ContainsAny(meaning+remedy, "{}|") && k != "empty" {
				t.Errorf("%s: %v %q %q %q", id, ok, title, meaning, remedy)
			}
		}
	}
	if _, _, _, ok := explainID("spawn npx ENOENT"); ok {
		t.Error("a message is taken for an ID")
	}
}

func TestAMessageThatHidesItsCauseLeadsToACheck(t *testing.T) {
	x := Explain(fault.Evidence{Text: "MCP error -32000: Connection closed"})
	if x.Kind != string(fault.Unknown) || !strings.Contains(x.Remedy, "mcpmend check") {
		t.Errorf("got %+v", x)
	}
}

// ownConstants are the values of this package's constants named kindX.
func ownConstants(t *testing.T) []string {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "kind") || len(spec.Values) != 1 {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				value, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	}
	return values
}
