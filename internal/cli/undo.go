package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func undoCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "undo [id...]",
		Short: "take a change back; without an id the last one",
		Long: `
Brings back what was in a file before mcpmend changed it. If the file was written
to since, only what that change had touched is brought back; if that is different
now, nothing is done. An undo is a change, too, and can be undone.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeChanges,
		RunE:                  func(c *cobra.Command, args []string) error { return p.undo(c.Context(), args) },
	}
}

func (p *program) undo(ctx context.Context, ids []string) error {
	d, v, err := p.doctor(selection{static: true})
	if err != nil {
		return err
	}
	all, err := d.Store.History()
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		last := lastStanding(all)
		if last == nil {
			if p.json {
				return p.endJSON(historyJSON{answer: answerTo("undo", OK), Changes: []changeJSON{}}, OK)
			}
			v.printf("Nothing to undo: mcpmend has changed no file, or all changes were taken back.\n")
			return nil
		}
		ids = []string{last.ID}
	}
	j := historyJSON{answer: answerTo("undo", OK), Changes: []changeJSON{}}
	for _, id := range ids {
		change, err := d.Store.Restore(ctx, id)
		if err != nil && !change.Done {
			return undoTrouble(id, err)
		}
		diff, err := changeDiff(d.Store, change.ID)
		if err != nil {
			return err
		}
		j.Changes = append(j.Changes, jsonOfChange(change, nil, diff.Text))
		if p.json {
			continue
		}
		v.printf("%s Undone: %s in %s\n", v.paint(green, v.ok), id, v.path(change.Path))
		if !v.quiet && diff.Text != "" {
			v.printf("%s\n", v.diff(diff))
		}
		v.printf("Redo: mcpmend undo %s\n", change.ID)
		if c := clientconfig.ByID(change.Client); c != nil && c.Reload != "" {
			v.printf("Restart: %s\n", plain(c.Name+": "+c.Reload))
		}
	}
	if p.json {
		return p.endJSON(j, OK)
	}
	return nil
}

func undoTrouble(id string, err error) error {
	switch {
	case errors.Is(err, clientconfig.ErrChanged):
		return hinted{err, "mcpmend history " + id + " shows what the change was"}
	case errors.Is(err, clientconfig.ErrNoChange):
		return hinted{err, "mcpmend history"}
	}
	return hinted{fmt.Errorf("%w, so nothing was undone", err), "mcpmend history lists the changes"}
}

// lastStanding is the newest change that has not been taken back, and takes none
// back itself.
func lastStanding(newestFirst []clientconfig.Change) *clientconfig.Change {
	undone := undoneBy(newestFirst)
	for i, c := range newestFirst {
		if c.Done && c.Undoes == "" && undone[c.ID] == "" {
			return &newestFirst[i]
		}
	}
	return nil
}

// undoneBy says of each change that was taken back which change did that. An undo
// that was itself undone does not count.
func undoneBy(newestFirst []clientconfig.Change) map[string]string {
	by := make(map[string]string)
	for _, c := range newestFirst {
		if c.Done && c.Undoes != "" && by[c.ID] == "" {
			by[c.Undoes] = c.ID
		}
	}
	return by
}

func (p *program) completeChanges(_ *cobra.Command, typed []string, begun string) ([]string, cobra.ShellCompDirective) {
	d, _, err := p.doctor(selection{static: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := d.Store.History()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return startingWith(begun, ids, typed...), cobra.ShellCompDirectiveNoFileComp
}
