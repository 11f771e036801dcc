package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

func historyCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "history [id]",
		Short: "list the changes mcpmend has made, or show one",
		Long: fmt.Sprintf(`
A change and the file as it was before are kept for %d days, and the last %d of
each file for longer. Older ones are deleted after a write.`, keptDays, clientconfig.KeptChanges),
		Args:                  atMostOne("history shows one change at a time"),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeChanges,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.showChange(args[0])
			}
			return p.history()
		},
	}
}

const keptDays = int(clientconfig.KeptFor / (24 * time.Hour))

func (p *program) history() error {
	d, v, err := p.doctor(selection{static: true})
	if err != nil {
		return err
	}
	all, err := d.Store.History()
	if err != nil {
		return err
	}
	undone := undoneBy(all)
	if p.json {
		j := historyJSON{answer: answerTo("history", OK), Changes: []changeJSON{}}
		for _, c := range all {
			j.Changes = append(j.Changes, jsonOfChange(c, undone, ""))
		}
		return p.endJSON(j, OK)
	}
	if len(all) == 0 {
		v.printf("mcpmend has changed no file.\n")
		return nil
	}
	rows := make([][]string, 0, len(all))
	for _, c := range all {
		rows = append(rows, []string{c.ID, c.Time.Local().Format(time.DateTime), about(c), c.Client, v.path(c.Path), deed(c, undone)})
	}
	v.table(rows)
	v.printf("\nKept for %d days, and the last %d of each file for longer.\nNext: mcpmend history %s   shows the change\n",
		keptDays, clientconfig.KeptChanges, all[0].ID)
	return nil
}

// about names the servers that a change was about; "" if that was not written down.
func about(c clientconfig.Change) string {
	const few = 3
	names := make([]string, 0, len(c.Servers))
	for _, name := range c.Servers {
		names = append(names, plain(name))
	}
	switch {
	case c.Servers == nil:
		return ""
	case len(names) == 0:
		return "(the file)"
	case len(names) > few+1:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// deed says what a change did, and what became of it.
func deed(c clientconfig.Change, undone map[string]string) string {
	switch {
	case !c.Done:
		return "was interrupted and changed nothing"
	case undone[c.ID] != "":
		return "undone by " + undone[c.ID]
	case c.Undoes != "":
		return "undid " + c.Undoes
	case c.Created:
		return "made the file"
	}
	return "changed"
}

func (p *program) showChange(id string) error {
	d, v, err := p.doctor(selection{static: true})
	if err != nil {
		return err
	}
	all, err := d.Store.History()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(c clientconfig.Change) bool { return c.ID == id })
	if i < 0 {
		return hinted{fmt.Errorf("there is no change %q", id), "mcpmend history lists the changes"}
	}
	undone := undoneBy(all)
	diff, err := changeDiff(d.Store, id)
	if err != nil {
		return err
	}
	if p.json {
		return p.endJSON(historyJSON{answer: answerTo("history", OK), Changes: []changeJSON{jsonOfChange(all[i], undone, diff.Text)}}, OK)
	}
	head := []string{v.paint(bold, id), all[i].Time.Local().Format(time.DateTime), about(all[i]), v.path(all[i].Path), deed(all[i], undone)}
	head = slices.DeleteFunc(head, func(cell string) bool { return cell == "" })
	v.printf("%s\n%s\n", strings.Join(head, "  "), v.diff(diff))
	if all[i].Done && undone[id] == "" {
		v.printf("Undo: mcpmend undo %s\n", id)
	}
	return nil
}

// changeDiff is a change as a diff without secrets.
func changeDiff(s *clientconfig.Store, id string) (doctor.Diff, error) {
	before, after, err := s.Versions(id)
	if err != nil {
		return doctor.Diff{}, err
	}
	return doctor.DiffOf(before, after), nil
}

type historyJSON struct {
	answer
	Changes []changeJSON `json:"changes"`
}

type changeJSON struct {
	ID     string `json:"id"`
	Time   string `json:"time"`
	Client string `json:"client"`
	File   string `json:"file"`
	// Servers are none if it was about the file as a whole, nil if that is not known.
	Servers  []string `json:"servers,omitzero"`
	Done     bool     `json:"done"`
	Created  bool     `json:"created,omitempty"`
	Removed  bool     `json:"removed,omitempty"`
	Undoes   string   `json:"undoes,omitempty"`
	UndoneBy string   `json:"undoneBy,omitempty"`
	Diff     string   `json:"diff,omitempty"`
}

func jsonOfChange(c clientconfig.Change, undone map[string]string, diff string) changeJSON {
	return changeJSON{ID: c.ID, Time: stamp(c.Time), Client: c.Client, File: c.Path, Servers: c.Servers, Done: c.Done, Created: c.Created,
		Removed: c.Removed, Undoes: c.Undoes, UndoneBy: undone[c.ID], Diff: diff}
}

// table writes rows whose columns line up.
func (s *screen) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if i == len(row)-1 {
				line += cell
				break
			}
			line += pad(cell, widths[i]) + "  "
		}
		s.printf("%s\n", strings.TrimRight(line, " "))
	}
}

func atMostOne(complaint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return misused("%s", complaint)
		}
		return nil
	}
}
