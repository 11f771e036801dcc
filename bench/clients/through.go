package main

import (
	"context"
	"strings"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/bench/testserver/witness/testimony"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// through puts one server behind mcpmend and leaves another one alone. Both must be
// connected, and the witnesses tell which of them mcpmend has started.
func through(ctx context.Context, w *world, c *realclient.Client) (*finding, error) {
	f := &finding{}
	h, err := w.home(c)
	if err != nil {
		return nil, err
	}
	place := h.client().Files[0] // the user's own, for all five
	guarded, alone := h.local("guarded", awkward, "PLAIN=a b"), h.local("alone", nil)
	wrapped := *guarded
	wrapped.Command = text(w.mcpmend)
	wrapped.Args = append(texts([]string{"run", "--", w.witness}), guarded.Args...)
	file, err := clientconfig.New(h.system.Path(place), h.client(), h.setup.Project, place).Add(&wrapped)
	if err == nil {
		file, err = file.Add(alone)
	}
	if err == nil {
		_, err = h.store.Save(ctx, file)
	}
	if err != nil {
		return nil, err
	}
	h.want = []*clientconfig.Server{guarded, alone}
	if err := h.understood(ctx, f, "behind mcpmend"); err != nil {
		return nil, err
	}
	for name, want := range map[string]bool{"guarded": true, "alone": false} {
		lines, err := testimony.Read(h.journal(name))
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			got := strings.TrimSuffix(l.Parent, " (deleted)") == w.mcpmend
			f.check(got == want, "%s was started by %s", name, l.Parent)
			if !want && l.Greeting != "" {
				f.note("greets by %s", l.Greeting)
			}
		}
	}
	return f, nil
}
