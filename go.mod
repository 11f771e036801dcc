module github.com/mcpmend/mcpmend

go 1.26.0

require github.com/modelcontextprotocol/go-sdk v1.8.0

require (
	github.com/google/go-cmp v0.7.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
