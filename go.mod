module github.com/mcpmend/mcpmend

go 1.25.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/modelcontextprotocol/go-sdk v1.8.0
)
