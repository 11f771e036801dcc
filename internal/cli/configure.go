package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

type configureFlags struct {
	selection
	request     doctor.ConfigureRequest
	transport   string
	secretStdin bool
	yes         bool
}

func configureCommand(p *program) *cobra.Command {
	var o configureFlags
	r := &o.request
	c := &cobra.Command{
		Use:         "configure [flags] NAME PACKAGE [-- ARGS...]",
		Annotations: map[string]string{"use": "mcpmend configure [flags] NAME URL\nmcpmend configure [flags] NAME -- COMMAND ARGS..."},
		Short:       "add a server to your clients, once it has been seen to work",
		Long: `
Adds a server to the files of all clients that are here, or of those given with
--client. PACKAGE is npm:NAME, pypi:NAME, oci:IMAGE, or a bare name of npm. The
server is started the way each client would, mended if need be, and written only
if it works. It shows the change and asks first; a package is not fetched unasked.

In values, ${NAME} is a variable of your environment, in each client's spelling.
A secret is never typed here: --secret NAME refers to the variable NAME. A client
that cannot refer keeps the value in clear; you are asked for it, and told so.`,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.target(args, c.ArgsLenAtDash()); err != nil {
				return err
			}
			return p.configure(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&r.Clients, "client", nil, "the clients, by `ID`, or all that are here (default: all)")
	flags.StringVar(&r.Scope, "scope", "user", "the `SCOPE` of the file: user, project, local")
	flags.StringArrayVar(&r.Env, "env", nil, "a variable that is no secret, as `NAME=VALUE`; may be given several times")
	flags.StringSliceVar(&r.Secrets, "secret", nil, "refer to the variable `NAME`, which holds a secret")
	flags.BoolVar(&o.secretStdin, "secret-stdin", false, "read the values for clients that cannot refer from stdin, one line for each --secret")
	flags.StringArrayVar(&r.Headers, "header", nil, "send this header to URL, as `'NAME: VALUE'`; may be given several times")
	flags.StringVar(&o.transport, "transport", "", "`T` of a URL: http or sse (default: found out)")
	flags.BoolVar(&r.Replace, "replace", false, "replace a different server of that name; keys you do not ask about stay")
	flags.BoolVar(&r.Anyway, "anyway", false, "write it although it does not work")
	flags.BoolVar(&r.DryRun, "dry-run", false, "start nothing and write nothing; show what would be written")
	flags.BoolVar(&o.yes, "yes", false, "fetch, run and write it without asking")
	flags.StringVar(&o.project, "project", "", "the `DIR` that the clients would be opened in (default: this one)")
	flags.DurationVar(&o.timeout, "timeout", 0, "longest `TIME` for the server to start and list its tools (default: 1m0s)")
	complete(c, "client", func() []string { return append(clientIDs(), "all") })
	complete(c, "scope", func() []string { return []string{"user", "project", "local"} })
	complete(c, "transport", func() []string { return []string{"http", "sse"} })
	return c
}

// target reads what stands behind the flags.
func (o *configureFlags) target(args []string, dash int) error {
	r := &o.request
	switch {
	case len(args) < 2 || dash == 0 || dash > 2 || dash < 0 && len(args) > 2:
		return misused("configure takes a name, and a package, a URL, or -- and a command")
	case dash == 1:
		r.Command = args[1:]
	case isURL(args[1]):
		r.URL = args[1]
		if dash == 2 && len(args) > 2 {
			return misused("a URL takes no arguments")
		}
	default:
		r.Package, r.Args = args[1], args[2:]
	}
	r.Name = args[0]
	switch t := clientconfig.Transport(o.transport); t {
	case clientconfig.Unknown, clientconfig.HTTP, clientconfig.SSE:
		r.Transport = t
		return nil
	}
	return misused("--transport: choose http or sse")
}

func (p *program) configure(ctx context.Context, o configureFlags) error {
	d, v, err := p.doctor(o.selection)
	if err != nil {
		return err
	}
	r := o.request
	if !r.DryRun {
		if err := p.typeSecrets(ctx, d, v, o, &r); err != nil {
			return err
		}
	}
	r.Hold = true
	r.Allow = func(what string) bool {
		// Who types a command or an address means it; a package is somebody else's
		// code behind a short name.
		return o.yes || r.Package == "" || v.ask("This will "+plain(what)+". Go on?")
	}
	r.Heal.Allow = v.allow(ctx, d, healFlags{selection: o.selection, yes: o.yes}, false, make(map[string]bool))
	v.progress("trying " + plain(r.Name) + " " + v.ellipsis)
	c := d.Configure(ctx, r)
	v.progress("")
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Refused != "" {
		return errors.New(plain(c.Refused))
	}
	for _, n := range c.Notes {
		v.notef("mcpmend: note: %s\n", plain(n))
	}
	for _, one := range c.Clients {
		if !p.json {
			v.placement(one)
		}
		if one.Draft == nil || c.Planned {
			continue
		}
		may := o.yes || v.ask(fmt.Sprintf("Write %s?", v.path(one.File)))
		d.Keep(ctx, c, func(draft *doctor.Draft) bool { return may && draft == one.Draft })
		if !p.json && one.Undo != "" {
			v.printf("%s Written. Undo: mcpmend undo %s\n", v.paint(green, v.ok), one.Undo)
			if one.Reload != "" {
				v.printf("Restart: %s\n", plain(clientconfig.ByID(one.Client).Name+": "+one.Reload))
			}
		}
	}
	code := configureCode(c)
	if p.json {
		return p.endJSON(configureAnswer(c, code), code)
	}
	switch {
	case c.Needs != "":
		v.printf("Nothing was changed. It would %s.\nNext: %s\n", plain(c.Needs), o.line(true))
	case code == Pending && r.DryRun:
		v.printf("Nothing was changed.\nNext: %s\n", o.line(!v.asks))
	case code == Pending:
		v.printf("Next: %s\n", o.line(true))
	}
	return exit(code)
}

// line is the command that does what was shown, without a question if yes is set.
func (o configureFlags) line(yes bool) string {
	r := o.request
	words := []string{r.Name}
	flag := func(name string, values ...string) {
		for _, value := range values {
			if value != "" {
				words = append(words, name, value)
			}
		}
	}
	set := func(name string, on bool) {
		if on {
			words = append(words, name)
		}
	}
	flag("--client", strings.Join(r.Clients, ","))
	if r.Scope != "user" {
		flag("--scope", r.Scope)
	}
	flag("--env", r.Env...)
	flag("--secret", r.Secrets...)
	set("--secret-stdin", o.secretStdin)
	flag("--header", r.Headers...)
	flag("--transport", o.transport)
	set("--replace", r.Replace)
	set("--anyway", r.Anyway)
	words = append(words, o.inProject()...)
	if o.timeout > 0 {
		flag("--timeout", o.timeout.String())
	}
	set("--yes", yes)
	if target := r.Package + r.URL; target != "" {
		words = append(words, target)
	}
	if rest := slices.Concat(r.Command, r.Args); len(rest) > 0 {
		words = append(append(words, "--"), rest...)
	}
	return "mcpmend configure " + hide(doctor.Quoted(words...)) // a secret was refused, as far as it could be seen
}

type configureJSON struct {
	answer
	*doctor.Configuration
	Clients []placementJSON `json:"clients"`
}

// placementJSON is a placement whose case has its times.
type placementJSON struct {
	*doctor.Placement
	Healing *healingJSON `json:"healing,omitempty"`
	Case    *caseJSON    `json:"case,omitempty"`
}

func configureAnswer(c *doctor.Configuration, code int) configureJSON {
	j := configureJSON{answer: answerTo("configure", code), Configuration: c, Clients: []placementJSON{}}
	for _, one := range c.Clients {
		j.Clients = append(j.Clients, placementJSON{one, jsonOfHealing(one.Healing), jsonOf(one.Case)})
	}
	return j
}

func configureCode(c *doctor.Configuration) int {
	code := OK
	for _, one := range c.Clients {
		switch one.Status {
		case doctor.Written, doctor.Unchanged:
		case doctor.Intended:
			return Pending
		default:
			code = Failed
		}
	}
	return code
}

// placement shows what became of a server in one client.
func (v view) placement(one *doctor.Placement) {
	sign := v.paint(faint, v.arrow)
	words := string(one.Status)
	switch one.Status {
	case doctor.Unchanged:
		sign, words = v.paint(green, v.ok), "already there, the same"
	case doctor.Intended:
		words = "not tried"
		if one.Case != nil {
			sign, words = v.paint(green, v.ok), stateWords(one.Case)
			if one.Case.Info != nil {
				words += fmt.Sprintf(", %d tools", len(one.Case.Info.Tools))
			}
		}
	case doctor.Differs, doctor.Failing, doctor.Declined:
		sign = v.paint(red, v.bad)
	}
	v.printf("%s %s  %s  %s\n", sign, v.paint(bold, clientconfig.ByID(one.Client).Name), v.path(one.File), words)
	if one.Why != "" {
		v.printf("    %s\n", plain(one.Why))
	}
	if one.Case != nil && one.Case.Cause != nil {
		v.problem(one.Case, columns{}, false)
	}
	if one.Diff != nil && !v.quiet {
		v.printf("%s\n", v.diff(*one.Diff))
	}
}

// typeSecrets asks for the values of secrets that a client cannot refer to. They
// come from a terminal or from stdin, and from nowhere else: a command line can be
// read by others and stays in a history.
func (p *program) typeSecrets(ctx context.Context, d *doctor.Doctor, v view, o configureFlags, r *doctor.ConfigureRequest) error {
	dry := *r
	dry.DryRun = true
	var names, clients []string
	for _, one := range d.Configure(ctx, dry).Clients {
		for _, name := range one.Clear {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(one.Clear) > 0 {
			clients = append(clients, clientconfig.ByID(one.Client).Name)
		}
	}
	if len(names) == 0 || !v.asks && !o.secretStdin {
		return nil // those clients are passed over, and it is said why
	}
	r.Values = make(map[string]string)
	if o.secretStdin {
		lines := bufio.NewScanner(p.env.Stdin)
		for _, name := range r.Secrets {
			if !lines.Scan() {
				return misused("--secret-stdin: there is no line for %s", name)
			}
			r.Values[name] = strings.TrimRight(lines.Text(), "\r")
		}
		return lines.Err()
	}
	in, ok := p.env.Stdin.(*os.File)
	if !ok {
		return nil
	}
	for _, name := range names {
		v.notef("%s cannot refer to a variable and will keep %s in clear in a file.\n%s (not shown; nothing to pass over): ", strings.Join(clients, ", "), name, name)
		value, err := term.ReadPassword(in.Fd())
		v.notef("\n")
		if err != nil {
			return err
		}
		if len(value) > 0 {
			r.Values[name] = string(value)
		}
	}
	return nil
}
