package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/app"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

type wrapFlags struct {
	selection
	plan, yes bool
	program   string
}

func wrapCommand(p *program) *cobra.Command {
	var o wrapFlags
	c := &cobra.Command{
		Use:   "wrap [server...]",
		Short: "put servers behind mcpmend, so that they are mended while in use",
		Long: `
Puts 'mcpmend run' before the command of each server. An entry is only changed if the
server has the very same tools that way. It shows the change and asks first; without
a terminal it shows the plan unless --yes is given. 'mcpmend unwrap' or 'mcpmend undo'
takes it back.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE:                  func(c *cobra.Command, args []string) error { return p.wrap(c.Context(), "wrap", o, args) },
	}
	o.wrapFlags(p, c, true)
	c.Flags().StringVar(&o.program, "program", "", "the `PATH` of mcpmend to write into the entries (default: this program)")
	return c
}

func unwrapCommand(p *program) *cobra.Command {
	var o wrapFlags
	c := &cobra.Command{
		Use:                   "unwrap [server...]",
		Short:                 "take servers out from behind mcpmend again",
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE:                  func(c *cobra.Command, args []string) error { return p.wrap(c.Context(), "unwrap", o, args) },
	}
	o.wrapFlags(p, c, false)
	return c
}

func (o *wrapFlags) wrapFlags(p *program, c *cobra.Command, starts bool) {
	o.register(p, c, starts)
	c.Flags().BoolVar(&o.plan, "plan", false, "show what would be changed and change nothing; the default without a terminal")
	c.Flags().BoolVar(&o.yes, "yes", false, "do it without asking")
}

func (p *program) wrap(ctx context.Context, command string, o wrapFlags, servers []string) error {
	if o.plan && o.yes {
		return misused("--plan changes nothing and --yes agrees to changes: choose one")
	}
	o.static = command == "unwrap" // what is taken out need not work
	d, v, err := p.doctor(o.selection)
	if err != nil {
		return err
	}
	act, how, err := d.Unwrap, doctor.WrapOptions{}, error(nil)
	if command == "wrap" {
		act = d.Wrap
		if how.Program, err = stableProgram(o.program); err != nil {
			return err
		}
	}
	report, err := v.examine(ctx, d, o.which(servers))
	if err != nil {
		return err
	}
	plan := o.plan || !o.yes && !v.asks
	var all []*doctor.Wrapping
	for _, c := range report.Cases {
		if c.Name == "" || c.State == doctor.Disabled || c.State == doctor.Shadowed {
			continue
		}
		w := v.wrapOne(ctx, act, c, how, plan, o.yes)
		if w.Reason != "" && len(servers) == 0 && !v.verbose && leftAlone(w) {
			continue
		}
		all = append(all, w)
		if !p.json {
			v.wrapping(w, command, plan)
		}
		if ctx.Err() != nil {
			break
		}
	}
	code := wrapCode(all, plan, len(servers) > 0)
	if p.json {
		return p.endJSON(wrapJSON{answerTo(command, code), plan, slices.Concat([]*doctor.Wrapping{}, all)}, code)
	}
	v.wrapped(all, command, plan, o.selection, servers)
	return exit(code)
}

// stableProgram is the path of ours that may be written into a configuration.
func stableProgram(chosen string) (string, error) {
	find := app.Self
	if chosen != "" {
		find = func() (string, error) { return doctor.StableProgram(chosen) }
	}
	program, err := find()
	if err != nil {
		return "", hinted{err, "go install github.com/mcpmend/mcpmend/cmd/mcpmend@latest"}
	}
	return program, nil
}

// wrapOne changes one entry, after showing how if a person is to be asked.
func (v view) wrapOne(ctx context.Context, act func(context.Context, *doctor.Case, doctor.WrapOptions) *doctor.Wrapping,
	c *doctor.Case, how doctor.WrapOptions, plan, yes bool) *doctor.Wrapping {
	how.Plan = true
	preview := act(ctx, c, how)
	if plan || !preview.Done {
		return preview
	}
	if !yes {
		v.notef("%s\n", v.head(c, columns{}, stateWords(c)))
		for _, diff := range preview.Diffs {
			v.notef("%s\n", v.diff(diff))
		}
		if !v.ask("Do this?") {
			preview.Done, preview.Diffs, preview.Reason = false, nil, "you said no"
			return preview
		}
	}
	v.progress("comparing tools of " + nameOf(c) + " " + v.ellipsis)
	defer v.progress("")
	how.Plan = false
	return act(ctx, c, how)
}

// leftAlone tells reasons that only somebody who named the server wants to hear.
func leftAlone(w *doctor.Wrapping) bool {
	return w.Reason == "is not behind mcpmend" || w.Reason == "is behind mcpmend already"
}

func (v view) wrapping(w *doctor.Wrapping, command string, plan bool) {
	if v.quiet {
		return
	}
	sign, words := v.paint(faint, v.dot), plain(w.Reason)
	switch {
	case w.Done && plan:
		sign, words = v.paint(faint, v.arrow), "would be changed"
	case w.Done:
		sign, words = v.paint(green, v.ok), "changed"
		if command == "wrap" {
			words = fmt.Sprintf("the same %s as before", plural(w.Tools, "tool"))
		}
	}
	v.printf("%s %s  %s  %s  %s\n", sign, v.paint(bold, plain(w.Server)), clientOf(&doctor.Case{Client: w.Client}), v.path(w.File), words)
	for _, diff := range w.Diffs {
		v.printf("%s\n", v.diff(diff))
	}
}

func (v view) wrapped(all []*doctor.Wrapping, command string, plan bool, o selection, servers []string) {
	done := 0
	var reload []string
	for _, w := range all {
		if w.Done {
			done++
		}
		if w.Reload != "" {
			if line := clientOf(&doctor.Case{Client: w.Client}) + ": " + plain(w.Reload); !slices.Contains(reload, line) {
				reload = append(reload, line)
			}
		}
	}
	if len(all) > 0 {
		v.printf("\n")
	}
	switch {
	case done == 0:
		v.printf("Nothing to %s.\n", command)
	case plan:
		v.printf("A plan for %s. Nothing was changed.\n", plural(done, "server"))
		v.printf("Next: %s\n", applyLine(command, o, servers, v.asks))
	default:
		v.printf("Changed %s.\n", plural(done, "entry"))
	}
	for _, w := range all {
		if w.Undo != "" {
			v.printf("Undo: mcpmend undo %s\n", w.Undo)
		}
	}
	for _, line := range reload {
		v.printf("Restart: %s\n", line)
	}
}

// wrapCode: a server that was named and could not be done is a problem that
// remains.
func wrapCode(all []*doctor.Wrapping, plan, named bool) int {
	done := slices.ContainsFunc(all, func(w *doctor.Wrapping) bool { return w.Done })
	missed := slices.ContainsFunc(all, func(w *doctor.Wrapping) bool { return !w.Done && !leftAlone(w) })
	switch {
	case plan && done:
		return Pending
	case named && missed:
		return Failed
	}
	return OK
}

type wrapJSON struct {
	answer
	Planned   bool               `json:"planned"`
	Wrappings []*doctor.Wrapping `json:"wrappings"`
}
