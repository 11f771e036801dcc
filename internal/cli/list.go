package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

func listCommand(p *program) *cobra.Command {
	var o selection
	c := &cobra.Command{
		Use:                   "list [server...]",
		Short:                 "list the servers of all clients, without starting any",
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE:                  func(c *cobra.Command, args []string) error { return p.list(c.Context(), o, args) },
	}
	o.register(p, c, false)
	return c
}

func (p *program) list(ctx context.Context, o selection, servers []string) error {
	o.static = true
	d, v, err := p.doctor(o)
	if err != nil {
		return err
	}
	report := d.Check(ctx, o.which(servers), nil)
	if missing := unknownServers(report, servers); len(missing) > 0 {
		return unknownServer(d, missing[0])
	}
	if p.json {
		j := listJSON{answer: answerTo("list", OK), Servers: []listedJSON{}}
		for _, c := range report.Cases {
			if c.Name != "" {
				j.Servers = append(j.Servers, listedJSON{c.Name, c.Client, c.Scope, c.At, c.Runs, c.State})
			}
		}
		return p.endJSON(j, OK)
	}
	if len(report.Cases) == 0 {
		v.nothingFound(report, d.System)
		return nil
	}
	var rows [][]string
	for _, c := range report.Cases {
		runs := plain(c.Runs)
		if s := standingOf(c); s >= warned || c.State == doctor.Disabled {
			runs = "(" + stateWords(c) + ") " + runs
		}
		rows = append(rows, []string{nameOf(c), clientOf(c), v.place(c.At), runs})
	}
	v.table(rows)
	v.untrusted(report.Cases)
	return nil
}

type listJSON struct {
	answer
	Servers []listedJSON `json:"servers"`
}

type listedJSON struct {
	Server string       `json:"server"`
	Client string       `json:"client"`
	Scope  string       `json:"scope,omitempty"`
	At     doctor.Place `json:"at"`
	Runs   string       `json:"runs,omitempty"`
	State  doctor.State `json:"state"`
}
