module github.com/mcpmend/mcpmend/bench

go 1.25.0

require (
	github.com/mcpmend/mcpmend v0.0.0
	github.com/modelcontextprotocol/go-sdk v1.8.0
)

replace github.com/mcpmend/mcpmend => ../
