package doctor

import (
	"fmt"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// What the registry says about the server of an entry.

// published finds the entry of the registry for a server, by its URL or by the
// package that it runs.
func (d *Doctor) published(s *clientconfig.Server) (registry.Entry, bool) {
	if d.Registry == nil {
		return registry.Entry{}, false
	}
	if s.URL.Text != "" {
		return d.Registry.Remote(s.URL.Text)
	}
	l := launchOf(argvOf(s))
	return d.Registry.Package(l.registry, l.id)
}

// known are the variables that a published server takes, or the headers if it is a
// URL.
func (d *Doctor) known(s *clientconfig.Server) []registry.Variable {
	entry, _ := d.published(s)
	if s.URL.Text != "" {
		r, _ := entry.FindRemote(s.URL.Text)
		return r.Headers
	}
	l := launchOf(argvOf(s))
	p, _ := entry.Find(l.registry, l.id)
	return p.Variables
}

// advisedAgainst says in a word what has become of a published server that should
// not be used any more, and what its makers say about it; "" if it may be used.
func advisedAgainst(e registry.Entry, s *clientconfig.Server) (word, why string) {
	if remote, there := e.FindRemote(s.URL.Text); there && remote.Gone != "" {
		return "gone", secret.Scrub(remote.Gone)
	}
	if e.Status == registry.Deprecated || e.Status == registry.Deleted {
		return string(e.Status), secret.Scrub(e.StatusMessage)
	}
	return "", ""
}

// deprecation: a server should not be used any more. It is said and nothing else:
// what replaces it is another program.
func (d *Doctor) deprecation(s *clientconfig.Server) []Finding {
	entry, _ := d.published(s)
	word, why := advisedAgainst(entry, s)
	if word == "" {
		return nil
	}
	f := finding(AtResolve, kindDeprecated, Warning, place(s.At))
	f.Explanation = fmt.Sprintf("This server is marked as %s.", word)
	if why != "" {
		f.Evidence = []string{why}
	}
	f.Help = entry.Help()
	return []Finding{f}
}
