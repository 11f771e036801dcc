package arguments_test

import (
	"fmt"

	"github.com/mcpmend/mcpmend/arguments"
)

var search = []byte(`{
	"type": "object",
	"properties": {
		"query": {"type": "string"},
		"limit": {"type": "integer", "maximum": 100},
		"order": {"enum": ["newest", "oldest"]}
	},
	"required": ["query"]
}`)

func ExampleSchema_Repair() {
	schema, err := arguments.Compile(search)
	if err != nil {
		panic(err)
	}
	result := schema.Repair(arguments.Call{
		Tool:      "search",
		Arguments: []byte(`{"query": "boats",  "limit": "20", "order": "Newest"}`),
		Risk:      arguments.ReadOnly,
	})
	fmt.Println(result.Outcome, string(result.Arguments))
	for _, change := range result.Changes {
		fmt.Println(change)
	}
	// Output:
	// mended {"query": "boats",  "limit": 20, "order": "newest"}
	// /limit: "20" became 20 (number_text)
	// /order: "Newest" became "newest" (value_spelling)
}

func ExampleExplain() {
	schema, err := arguments.Compile(search)
	if err != nil {
		panic(err)
	}
	args := []byte(`{"qurey": "boats", "limit": 500, "order": "newset"}`)
	fmt.Println(arguments.Explain(arguments.Failure{Tool: "search", Schema: schema, Arguments: args}).Text)
	// Output:
	// Invalid arguments for search (3 problems). The tool was not run.
	// - limit: got 500, need at most 100.
	// - order: got "newset", need one of "newest","oldest". Did you mean "newest"?
	// - query: missing, need string. You sent "qurey", which is not a field; rename it?
	// Call it again with all arguments; keep the other fields.
}
