package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/doctor"
	"github.com/mcpmend/mcpmend/internal/registry"
)

func registryCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "registry update | search | info",
		Short: "look a server up in the MCP registry, or bring its index up to date",
		Long: `
What the official MCP registry says of servers: which variables they need, where one
gets them, what is deprecated. check and heal use it, from an index on this machine;
only update asks the registry itself. MCPMEND_REGISTRY is the address of another one.`,
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			return usageError{text: "choose update, search or info"}
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(registryUpdate(p), registrySearch(p), registryInfo(p))
	return c
}

// maySoon is how often the registry asks to be read at most.
const maySoon = time.Hour

func registryUpdate(p *program) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "update",
		Short: "read what is new in the registry",
		Long: `
Reads what is new in the registry since the last time; the first time that is all of
it, some hundred requests. The registry asks to be read at most once an hour.`,
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, _ []string) error { return p.updateRegistry(c.Context(), force) },
	}
	c.Flags().BoolVar(&force, "force", false, "also if that is less than an hour ago")
	return c
}

func (p *program) updateRegistry(ctx context.Context, force bool) error {
	r, v, err := p.registry()
	if err != nil {
		return err
	}
	began := time.Now()
	age, there := r.Age()
	fresh := there && age < maySoon && !force
	if !fresh {
		v.progress("reading the registry " + v.ellipsis)
		err := r.Update(ctx)
		v.progress("")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return hinted{fmt.Errorf("%s", hide(err.Error())), "the index is as it was; check and heal work without it"}
		}
	}
	n := r.Len()
	if p.json {
		return p.endJSON(registryJSON{answer: answerTo("registry", OK), Servers: []registry.Entry{}, Known: n}, OK)
	}
	if fresh {
		v.printf("%s known. The index is %d min old, and the registry asks to be read at most once an hour; --force does it all the same.\n",
			plural(n, "server"), int(age.Minutes()))
		return nil
	}
	v.printf("%s %s known %s %s\n", v.paint(green, v.ok), plural(n, "server"), v.dot, seconds(time.Since(began)))
	return nil
}

func registrySearch(p *program) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:                   "search TEXT...",
		Short:                 "find servers by words of their name, description or package",
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			text := strings.TrimSpace(strings.Join(args, " "))
			if text == "" || limit < 1 {
				return misused("registry search takes words to look for")
			}
			return p.searchRegistry(text, limit)
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "show at most `N`")
	return c
}

func (p *program) searchRegistry(text string, limit int) error {
	r, v, err := p.registry()
	if err != nil {
		return err
	}
	found := r.Search(text, limit)
	if p.json {
		return p.endJSON(registryJSON{answer: answerTo("registry", OK), Servers: append([]registry.Entry{}, found...), Known: r.Len()}, OK)
	}
	var rows [][]string
	for _, e := range found {
		rows = append(rows, []string{plain(e.Name), plain(wayTo(e)), v.cut(plain(e.Description), 80)})
	}
	v.table(rows)
	switch _, there := r.Age(); {
	case !there:
		v.printf("%sOnly the best-known servers were looked at. Next: mcpmend registry update\n", gap(rows))
	case len(rows) == 0:
		v.printf("Nothing is called like that. Next: fewer words, or mcpmend registry update\n")
	default:
		v.printf("\nNext: %s\n", doctor.Typed("registry info", []string{found[0].Name}))
	}
	return nil
}

func gap(rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	return "\n"
}

func registryInfo(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "info NAME",
		Short: "show what a server needs",
		Long: `
Shows what the registry knows of one server. NAME is its name there, a package such as
npm:@scope/name, pypi:name or oci:image, or its URL.`,
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misused("registry info takes the name of one server")
			}
			return p.registryInfo(args[0])
		},
	}
}

func (p *program) registryInfo(name string) error {
	r, v, err := p.registry()
	if err != nil {
		return err
	}
	e, ok := lookUp(r, name)
	if !ok {
		hint := doctor.Typed("registry search", []string{name})
		if _, there := r.Age(); !there {
			hint = "mcpmend registry update"
		}
		return hinted{fmt.Errorf("the registry has no %q, as far as we know", hide(name)), hint}
	}
	if p.json {
		return p.endJSON(registryJSON{answer: answerTo("registry", OK), Servers: []registry.Entry{e}, Known: r.Len()}, OK)
	}
	v.published(e)
	return nil
}

// lookUp finds a server by any of its names.
func lookUp(r *registry.Registry, name string) (registry.Entry, bool) {
	if isURL(name) {
		return r.Remote(name)
	}
	if kind, id, ok := strings.Cut(name, ":"); ok {
		if e, found := r.Package(kind, id); found {
			return e, true
		}
	}
	if e, ok := r.Named(name); ok {
		return e, true
	}
	return r.Package("npm", name)
}

// published shows an entry of the registry.
func (v view) published(e registry.Entry) {
	v.printf("%s\n", strings.TrimSpace(v.paint(bold, plain(e.Name))+" "+plain(e.Version)))
	if e.Description != "" {
		v.printf("    %s\n", plain(e.Description))
	}
	if e.Status != "" && e.Status != registry.Active {
		v.detail("status", strings.TrimSuffix(string(e.Status)+": "+plain(e.StatusMessage), ": "))
	}
	for _, pkg := range e.Packages {
		v.detail("runs", plain(strings.TrimSpace(pkg.Type+":"+pkg.Identifier+" "+pkg.Version)))
		for _, variable := range pkg.Variables {
			v.need(variable)
		}
	}
	for _, m := range e.Remotes {
		v.detail("url", plain(m.URL)+" ("+plain(m.Type)+")")
		if m.Gone != "" {
			v.detail("", plain(m.Gone))
		}
		for _, header := range m.Headers {
			v.need(header)
		}
	}
	if help := e.Help(); help != "" {
		v.detail("help", plain(help))
	}
	if add := configureLine(e); add != "" {
		v.printf("\nNext: %s\n", add)
	}
}

// need shows a variable or a header that a server reads.
func (v view) need(n registry.Variable) {
	var words []string
	if n.Required {
		words = append(words, "required")
	}
	if n.Secret {
		words = append(words, "secret")
	}
	text := plain(n.Name)
	if len(words) > 0 {
		text += " (" + strings.Join(words, ", ") + ")"
	}
	if n.Description != "" {
		text += " " + v.dot + " " + plain(n.Description)
	}
	v.detail("needs", text)
}

// wayTo is how one gets at a server: its package, or its URL.
func wayTo(e registry.Entry) string {
	for _, p := range e.Packages {
		return p.Type + ":" + p.Identifier
	}
	for _, m := range e.Remotes {
		return m.URL
	}
	return ""
}

// configureLine is the command that adds a server, "" if it is one that "configure"
// cannot add, or that should not be used.
func configureLine(e registry.Entry) string {
	if e.Status != "" && e.Status != registry.Active {
		return ""
	}
	name := e.Name[strings.LastIndexByte(e.Name, '/')+1:]
	if strings.HasPrefix(name, "-") { // what "configure" would take for a flag
		return ""
	}
	for _, p := range e.Packages {
		if p.Type != "npm" && p.Type != "pypi" && p.Type != "oci" {
			continue
		}
		words := []string{name, p.Type + ":" + p.Identifier}
		for _, v := range p.Variables {
			if v.Required && v.Secret {
				words = append(words, "--secret", v.Name)
			}
		}
		return "mcpmend configure " + doctor.Quoted(words...)
	}
	for _, m := range e.Remotes {
		if m.Gone == "" && isURL(m.URL) && !strings.Contains(m.URL, "{") {
			return "mcpmend configure " + doctor.Quoted(name, m.URL)
		}
	}
	return ""
}

func (p *program) registry() (*registry.Registry, view, error) {
	d, v, err := p.doctor(selection{static: true})
	if err != nil {
		return nil, view{}, err
	}
	return d.Registry, v, nil
}

type registryJSON struct {
	answer
	// Servers are those that were found; Known is how many the index has.
	Servers []registry.Entry `json:"servers"`
	Known   int              `json:"known"`
}
