package doctor

import (
	"regexp"
	"sync"
)

// pattern is compiled when it is first needed: "mcpmend run" carries this package
// and needs none of them.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
