package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func clientsCommand(p *program) *cobra.Command {
	var project string
	c := &cobra.Command{
		Use:   "clients",
		Short: "list the clients mcpmend knows, and their files",
		Long: `
Lists the clients that have a file here, with the number of servers in it. With -v
also the others, and every place where each of them would look.`,
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE:                  func(*cobra.Command, []string) error { return p.clients(project) },
	}
	c.Flags().StringVar(&project, "project", "", "the `DIR` that the clients would be opened in (default: this one)")
	return c
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misused("%s takes no arguments", c.Name())
	}
	return nil
}

func (p *program) clients(project string) error {
	d, v, err := p.doctor(selection{static: true, project: project})
	if err != nil {
		return err
	}
	j := clientsJSON{answer: answerTo("clients", OK)}
	for _, c := range clientconfig.Clients() {
		j.Clients = append(j.Clients, clientFiles(d.System, c))
	}
	if p.json {
		return p.endJSON(j, OK)
	}
	var rows [][]string
	for _, c := range j.Clients {
		for i, f := range c.Files {
			words := "not there"
			switch {
			case f.Ignored:
				words = plural(f.Servers, "server") + ", but the client does not read this file"
			case f.Broken:
				words = "the client cannot use it: mcpmend check --client " + c.ID
			case f.Exists:
				words = plural(f.Servers, "server")
			case !v.verbose:
				continue
			}
			id := c.ID
			if i > 0 && len(rows) > 0 && v.verbose {
				id = ""
			}
			rows = append(rows, []string{id, f.Scope, v.path(f.File), words})
		}
	}
	if len(rows) == 0 {
		v.printf("None of the %d clients mcpmend knows has a file here; -v shows where they were looked for.\n", len(j.Clients))
		return nil
	}
	v.table(rows)
	if !v.verbose {
		v.printf("\n-v shows all %d clients and every place where they look.\n", len(j.Clients))
	}
	return nil
}

// clientFiles are the places where a client looks, those that exist and those
// that do not.
func clientFiles(s clientconfig.System, c *clientconfig.Client) clientJSON {
	j := clientJSON{ID: c.ID, Name: c.Name, Files: []fileJSON{}}
	for _, f := range s.Find(c) {
		scope := ""
		if len(f.Places) > 0 {
			scope = f.Places[0].Scope
		}
		broken := slices.ContainsFunc(f.Problems, func(p clientconfig.Problem) bool {
			return p.Server == "" && p.Kind != clientconfig.Misplaced && p.Kind != clientconfig.DuplicateKey
		})
		j.Files = append(j.Files, fileJSON{File: f.Path, Scope: scope, Exists: true, Ignored: f.Ignored, Broken: broken, Servers: len(f.Servers)})
	}
	for _, place := range c.Files {
		path := s.Path(place)
		known := slices.ContainsFunc(j.Files, func(f fileJSON) bool { return f.File == path })
		if path == "" || known || strings.Contains(path, "*") {
			continue
		}
		if _, err := os.Lstat(path); err != nil {
			j.Files = append(j.Files, fileJSON{File: path, Scope: place.Scope})
		}
	}
	return j
}

type clientsJSON struct {
	answer
	Clients []clientJSON `json:"clients"`
}

type clientJSON struct {
	ID    string     `json:"id"`
	Name  string     `json:"name"`
	Files []fileJSON `json:"files"`
}

type fileJSON struct {
	File    string `json:"file"`
	Scope   string `json:"scope,omitempty"`
	Exists  bool   `json:"exists"`
	Ignored bool   `json:"ignored,omitempty"`
	Broken  bool   `json:"broken,omitempty"`
	Servers int    `json:"servers"`
}
