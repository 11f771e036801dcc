package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// Which file of which client an entry goes to.

// placements finds the file of each client that an entry of that scope goes to.
func (d *Doctor) placements(ids []string, scope string) ([]*Placement, error) {
	if scope == "" {
		scope = "user"
	}
	named := len(ids) > 0 && !slices.Contains(ids, "all")
	if !named {
		ids = nil
	}
	for _, id := range ids {
		if clientconfig.ByID(id) == nil {
			return nil, fmt.Errorf("there is no client called %q; 'mcpmend clients' lists them", id)
		}
	}
	var ps []*Placement
	for _, c := range (Which{Clients: ids}).clients() {
		f := d.fileFor(c, scope, named)
		switch {
		case f != nil && slices.ContainsFunc(ps, func(p *Placement) bool { return p.File == f.Path }):
			// Two clients read the same file; one entry is enough for both.
		case f != nil:
			ps = append(ps, &Placement{Client: c.ID, Scope: scope, File: f.Path, Reload: c.Reload, file: f})
		case named:
			return nil, fmt.Errorf("%s has no file of the scope %q here", c.Name, scope)
		}
	}
	if len(ps) == 0 {
		return nil, errors.New("no client was found here; name one with its ID, 'mcpmend clients' lists them")
	}
	return ps, nil
}

// fileFor is the file of a client for a scope: the one that is there, or one that
// would be made. A client that was not named has to be here, which shows in a
// file or a folder of its own.
func (d *Doctor) fileFor(c *clientconfig.Client, scope string, named bool) *clientconfig.File {
	var first *clientconfig.File
	here := named
	for _, place := range c.Files {
		path := d.System.Path(place)
		if path == "" || strings.Contains(filepath.Base(path), "*") {
			continue
		}
		_, err := os.Lstat(path)
		exists := err == nil
		here = here || exists && place.Scope != "project" || d.ownFolder(path, place)
		if place.Scope != scope {
			continue
		}
		if exists {
			return clientconfig.Open(path, c, d.System.Project, place)
		}
		if first == nil {
			first = clientconfig.New(path, c, d.System.Project, place)
		}
	}
	if !here {
		return nil
	}
	return first
}

// ownFolder reports whether the folder of a file is there and is not one that
// everybody has.
func (d *Doctor) ownFolder(path string, place clientconfig.Place) bool {
	dir := filepath.Dir(path)
	if place.Scope == "project" || dir == d.System.Project || dir == d.System.Path(clientconfig.Place{Path: "~"}) {
		return false
	}
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}
