package app

import (
	"path/filepath"

	"github.com/mcpmend/mcpmend/internal/registry"
)

// Registry knows what servers need: from the index in our state folder, if there
// is one, and from what is built in.
func Registry(environ []string) *registry.Registry {
	getenv := lookup(environ)
	r := &registry.Registry{BaseURL: getenv("MCPMEND_REGISTRY")}
	if state, err := stateFolder(getenv); err == nil {
		r.Dir = filepath.Join(state, "registry")
	}
	return r
}
