// Package machine says where things are on this machine: programs, whatever PATH a
// client has; variables in .env files and those of the desktop; ports that docker
// compose publishes.
//
// It reads files, asks the user's login shell for its PATH, and whoever starts the
// desktop's programs for what they are given. Nothing else is started and nothing is
// written. No value of a variable is returned, except by [Desktop.Environ], whose
// values are for the servers that a client would start and for nobody to see.
package machine

import (
	"regexp"
	"sync"
)

// pattern is compiled when it is first needed: "mcpmend run" carries this package
// and needs none of them.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
