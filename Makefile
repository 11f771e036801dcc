.PHONY: check test bench

# What every change has to pass; .ci/run without arguments is what CI runs.
check:
	.ci/run fmt vet staticcheck test

test:
	go test ./...

bench:
	.ci/run bench-quick
