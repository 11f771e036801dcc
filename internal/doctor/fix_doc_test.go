package doctor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fixesHead = `# Fixes

What ` + "`mcpmend heal`" + ` can do about a finding. This page is made from the table in
` + "`internal/doctor`" + ` by ` + "`go test ./internal/doctor -update`" + `; each fix has at least one
script under ` + "`internal/doctor/testdata/fix`" + ` with a file before, the evidence, and the
file after.

- **auto**: it can be taken back, runs the same program and trusts nobody new. It is
  tried on a copy, kept only if the server gets further, and shown as a diff.
- **ask**: the same, after somebody has agreed to this very change.
- **never**: only a person can do it. The exact step is said.

A single fix may be stricter than its row, for example where quotes can be read in
two ways. No fix replaces the program by another package, copies the value of a
secret, loosens permissions or TLS, or tries to sign in.

| fix | class | what it does |
|---|---|---|
`

func TestTheTableOfFixesIsWrittenDown(t *testing.T) {
	const path = "../../docs/FIXES.md"
	var b strings.Builder
	b.WriteString(fixesHead)
	for _, k := range fixKinds {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, k.class, strings.ReplaceAll(k.doc, "|", `\|`))
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), strings.ReplaceAll(string(got), "\r\n", "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFixesArePresentable(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range fixKinds {
		if k.doc == "" || strings.HasSuffix(k.doc, ".") || seen[k.name] {
			t.Errorf("%q: %q", k.name, k.doc)
		}
		seen[k.name] = true
	}
}
