module github.com/mcpmend/mcpmend/bench

go 1.25.0

require (
	github.com/mcpmend/mcpmend v0.0.0
	github.com/modelcontextprotocol/go-sdk v1.8.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/tiktoken-go/tokenizer v0.7.0
)

require (
	github.com/dlclark/regexp2 v1.11.5 // indirect
	golang.org/x/text v0.14.0 // indirect
)

replace github.com/mcpmend/mcpmend => ../
