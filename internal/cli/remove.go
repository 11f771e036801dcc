package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

type removeFlags struct {
	selection
	yes bool
}

func removeCommand(p *program) *cobra.Command {
	var o removeFlags
	c := &cobra.Command{
		Use:   "remove SERVER",
		Short: "take a server out of the clients' files",
		Long: `
Takes the entries of that name out of the files of all clients, or of those given
with --client and --scope. It shows the change and asks first; 'mcpmend undo' brings
them back. Without a terminal nothing is changed unless --yes is given.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misused("remove takes the name of one server")
			}
			return p.remove(c.Context(), o, args[0])
		},
	}
	o.register(p, c, false)
	c.Flags().BoolVar(&o.yes, "yes", false, "do it without asking")
	return c
}

func (p *program) remove(ctx context.Context, o removeFlags, name string) error {
	o.static = true
	d, v, err := p.doctor(o.selection)
	if err != nil {
		return err
	}
	var clients []*clientconfig.Client
	for _, id := range o.clients {
		clients = append(clients, clientconfig.ByID(id))
	}
	j := removeJSON{answer: answerTo("remove", OK), Removed: []removedJSON{}}
	seen := make(map[string]bool)
	for _, f := range d.System.Find(clients...) {
		if seen[f.Path] { // two clients may share a file
			continue
		}
		changed, err := without(f, name, o.scopes)
		if err != nil {
			return fmt.Errorf("%s: %w", v.path(f.Path), err)
		}
		if changed == nil {
			continue
		}
		seen[f.Path] = true
		diff := doctor.DiffOf(f, changed)
		one := removedJSON{Server: name, Client: f.Client.ID, File: f.Path, Diff: diff.Text}
		if !p.json && !v.quiet {
			v.printf("%s  %s\n%s\n", v.paint(bold, f.Client.Name), v.path(f.Path), v.diff(diff))
		}
		if o.yes || v.ask(fmt.Sprintf("Remove %s from %s?", plain(name), v.path(f.Path))) {
			change, err := d.Store.Save(ctx, changed)
			if err != nil && !change.Done {
				return err
			}
			one.Undo = change.ID
			if !p.json {
				v.printf("%s Removed. Undo: mcpmend undo %s\n", v.paint(green, v.ok), change.ID)
				v.printf("Restart: %s\n", plain(f.Client.Name+": "+f.Client.Reload))
			}
		}
		j.Removed = append(j.Removed, one)
	}
	if len(j.Removed) == 0 {
		return unknownServer(d, name)
	}
	if slices.ContainsFunc(j.Removed, func(r removedJSON) bool { return r.Undo == "" }) {
		j.ExitCode = Pending
	}
	if p.json {
		return p.endJSON(j, j.ExitCode)
	}
	if j.ExitCode == Pending && !v.asks {
		v.printf("Nothing was changed.\nNext: %s\n", applyLine("remove", o.selection, []string{name}, false))
	}
	return exit(j.ExitCode)
}

// without returns the file without the servers of that name, nil if it has none.
func without(f *clientconfig.File, name string, scopes []string) (*clientconfig.File, error) {
	var changed *clientconfig.File
	for now := f; ; now = changed {
		i := slices.IndexFunc(now.Servers, func(s *clientconfig.Server) bool {
			return s.Name.Text == name && (len(scopes) == 0 || slices.Contains(scopes, s.Scope))
		})
		if i < 0 {
			return changed, nil
		}
		next, err := now.Remove(now.Servers[i].Path)
		if err != nil {
			return nil, err
		}
		if len(next.Servers) >= len(now.Servers) {
			return nil, errors.New("the entry cannot be told from another one; remove it by hand")
		}
		changed = next
	}
}

type removeJSON struct {
	answer
	Removed []removedJSON `json:"removed"`
}

type removedJSON struct {
	Server string `json:"server"`
	Client string `json:"client"`
	File   string `json:"file"`
	Diff   string `json:"diff"`
	// Undo is the id of the change; "" if nothing was changed.
	Undo string `json:"undo,omitempty"`
}
