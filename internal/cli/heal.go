package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

type healFlags struct {
	selection
	plan, yes   bool
	maxAttempts int
}

func healCommand(p *program) *cobra.Command {
	var o healFlags
	c := &cobra.Command{
		Use:   "heal [server...]",
		Short: "mend what check found, with a backup and an undo",
		Long: `
Checks, tries what would mend each problem on a copy of the file, looks again, and
writes only what brought the server further. Changes that are certain are made;
you are asked about the others. Each write shows its diff and can be undone.
Without a terminal it shows the plan and writes nothing unless --yes is given.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE: func(c *cobra.Command, args []string) error {
			if o.plan && o.yes {
				return misused("--plan changes nothing and --yes agrees to changes: choose one")
			}
			if o.maxAttempts < 1 {
				return misused("--max-attempts must be at least 1")
			}
			return p.heal(c.Context(), o, args)
		},
	}
	o.register(p, c, true)
	c.Flags().BoolVar(&o.plan, "plan", false, "show what would be changed and change nothing; the default without a terminal")
	c.Flags().BoolVar(&o.yes, "yes", false, "agree to every change that would be asked about")
	c.Flags().IntVar(&o.maxAttempts, "max-attempts", 3, "try at most `N` fixes for one server")
	return c
}

func (p *program) heal(ctx context.Context, o healFlags, servers []string) error {
	d, v, err := p.doctor(o.selection)
	if err != nil {
		return err
	}
	report, err := v.examine(ctx, d, o.which(servers))
	if err != nil {
		return err
	}
	plan := o.plan || !o.yes && !v.asks
	var healings []*doctor.Healing
	seen := make(map[string]bool) // diffs that were shown with a question
	for _, c := range problemsOf(report.Cases) {
		if c.State == doctor.Shadowed || c.State == doctor.Pending && c.Cause == nil {
			continue // not ill
		}
		began := time.Now()
		rest := v.busy(func() string {
			return fmt.Sprintf("healing %s %s %.0f s", nameOf(c), v.dot, time.Since(began).Seconds())
		})
		h := d.Heal(ctx, c, doctor.HealOptions{MaxAttempts: o.maxAttempts, Plan: plan, Allow: v.allow(ctx, d, o, plan, seen)})
		rest()
		if err := ctx.Err(); err != nil && len(h.Changes) == 0 {
			return err
		}
		healings = append(healings, h)
		if !p.json {
			v.healing(h, o.maxAttempts, seen)
		}
	}
	code := healCode(healings, plan)
	if p.json {
		return p.endJSON(healAnswer(healings, plan, code), code)
	}
	v.healed(report, healings, plan, o, servers)
	return exit(code)
}

// allow decides about a fix that needs a person: by what was typed, or by asking,
// with the very change in sight.
func (v view) allow(ctx context.Context, d *doctor.Doctor, o healFlags, plan bool, seen map[string]bool) func(*doctor.Case, doctor.Fix) bool {
	if o.yes || plan {
		return func(*doctor.Case, doctor.Fix) bool { return true }
	}
	if !v.asks {
		return nil
	}
	return func(c *doctor.Case, fix doctor.Fix) bool {
		this := func(_ *doctor.Case, f doctor.Fix) bool { return f.Name == fix.Name && f.Does == fix.Does }
		preview := d.Heal(ctx, c, doctor.HealOptions{MaxAttempts: 1, Plan: true, Allow: this})
		v.notef("%s\n", v.head(c, columns{}, stateWords(c)))
		v.notef("    %s\n", v.text(fix.Does))
		for _, diff := range preview.Diffs {
			v.notef("%s\n", v.diff(diff))
			seen[diff.Text] = true
		}
		return v.ask("Do this?")
	}
}

// healing shows what was tried for one case, and what came of it.
func (v view) healing(h *doctor.Healing, most int, seen map[string]bool) {
	if v.quiet {
		return
	}
	sign := v.paint(red, v.bad)
	if h.Fixed || neededNothing(h) {
		sign = v.paint(green, v.ok)
	} else if h.Planned && changes(h) {
		sign = v.paint(bold, v.arrow)
	}
	name := plain(h.Server)
	if name == "" {
		name = "(the file)"
	}
	v.printf("%s %s  %s  %s\n", sign, v.paint(bold, name), clientOf(&doctor.Case{Client: h.Client}), v.path(h.File))
	cause := ""
	for _, a := range h.Attempts {
		if a.Diagnosis.Explanation != cause {
			cause = a.Diagnosis.Explanation
			v.detail("cause", v.text(cause))
		}
		v.attempt(a, h, most)
	}
	for _, d := range h.Diffs {
		if !seen[d.Text] {
			v.printf("%s\n", v.diff(d))
		}
	}
	if h.Person != "" {
		v.detail("you", v.text(h.Person))
	}
	v.printf("\n")
}

func (v view) attempt(a doctor.Attempt, h *doctor.Healing, most int) {
	if a.Fix == nil {
		return
	}
	words := []string{v.text(a.Fix.Does)}
	switch {
	case h.Planned && a.Fix.Class == doctor.Ask:
		words = append(words, "asks first")
	case h.Planned:
		words = append(words, "automatic")
	case a.Kept && a.Result != doctor.Healthy:
		words = append(words, "helped; now "+strings.TrimSuffix(wordsOf(a.Result), ", but"))
	case a.Kept && h.Server == "":
		words = append(words, v.ok+" "+clientOf(&doctor.Case{Client: h.Client})+" can read it")
	case a.Kept:
		words = append(words, v.ok+" "+wordsOf(a.Result))
		if h.Case != nil && h.Case.Info != nil {
			words = append(words, plural(len(h.Case.Info.Tools), "tool"))
		}
	default:
		words = append(words, v.bad+" did not help and was not kept")
	}
	label := fmt.Sprintf("%d/%d", a.Number, most)
	if h.Planned {
		label = "fix"
	}
	v.detail(label, strings.Join(words, " "+v.dot+" "))
}

// healed is the end of the story: how many, how to go back, what to restart.
func (v view) healed(r *doctor.Report, healings []*doctor.Healing, plan bool, o healFlags, servers []string) {
	fixed, fixable, slow, tries := 0, 0, 0, false
	var undo, reload, opened []string
	for _, h := range healings {
		if h.Fixed {
			fixed++
		}
		if neededNothing(h) {
			slow++
		}
		tries = tries || !h.Unwritable && slices.ContainsFunc(h.Attempts, func(a doctor.Attempt) bool { return a.Fix != nil })
		if h.Fixed && h.Server == "" && !slices.Contains(opened, h.Client) {
			opened = append(opened, h.Client)
		}
		if changes(h) {
			fixable++
		}
		undo = append(undo, h.Undo...)
		if line := clientOf(&doctor.Case{Client: h.Client}) + ": " + h.Reload; h.Reload != "" && len(h.Undo) > 0 && !slices.Contains(reload, line) {
			reload = append(reload, line)
		}
	}
	switch {
	case len(healings) == 0 && len(r.Cases) == 0:
		v.printf("No MCP servers found. Next: mcpmend clients\n")
	case len(healings) == 0:
		v.printf("%s\nNothing to heal.\n", v.verdict(r))
	case plan:
		v.printf("%s\n", v.paint(bold, fmt.Sprintf("A plan for %d of %s. Nothing was changed.", fixable, plural(len(healings), "problem"))))
		if tries {
			v.printf("Next: %s\n", applyLine("heal", o.selection, servers, v.asks))
		}
	default:
		v.printf("%s\n", v.paint(bold, healedWords(fixed, slow, len(healings))))
	}
	if len(undo) > 0 {
		slices.Reverse(undo) // the newest first, as it has to be undone
		v.printf("Undo: mcpmend undo %s\n", strings.Join(undo, " "))
	}
	for _, line := range reload {
		v.printf("Restart: %s\n", plain(line))
	}
	if len(opened) > 0 { // nobody could see the servers in there before
		v.printf("Next: mcpmend check --client %s\n", strings.Join(opened, ","))
	}
}

// healedWords counts what was ill, and then what was only slow.
func healedWords(fixed, slow, all int) string {
	switch {
	case slow == 0:
		return fmt.Sprintf("Healed %d of %d.", fixed, all)
	case slow == all && all == 1:
		return "Nothing to heal: it works, and only needed more time."
	case slow == all:
		return fmt.Sprintf("Nothing to heal: all %d work, and only needed more time.", all)
	case slow == 1:
		return fmt.Sprintf("Healed %d of %d. One more works, and only needed more time.", fixed, all-slow)
	}
	return fmt.Sprintf("Healed %d of %d. %d more work, and only needed more time.", fixed, all-slow, slow)
}

// applyLine is what does what the plan says, and no more than that.
func applyLine(command string, o selection, servers []string, asks bool) string {
	if asks {
		return o.line(command, servers)
	}
	return o.line(command, servers, "--yes")
}

// changes reports whether a healing has changed something, or would.
func changes(h *doctor.Healing) bool {
	return !h.Unwritable && slices.ContainsFunc(h.Attempts, func(a doctor.Attempt) bool {
		return a.Fix != nil && a.Fix.Changes() && (h.Planned || a.Kept)
	})
}

// neededNothing reports whether a server turned out to work as it is.
func neededNothing(h *doctor.Healing) bool {
	return !h.Planned && !h.Fixed && !changes(h) && h.Case != nil && h.Case.Cause == nil && h.Case.State == doctor.Healthy
}

// healCode is 10 for a plan with something in it, else what a check would now say.
func healCode(healings []*doctor.Healing, plan bool) int {
	if plan && slices.ContainsFunc(healings, changes) {
		return Pending
	}
	var now []*doctor.Case
	unwritten := false
	for _, h := range healings {
		if !h.Fixed && h.Case != nil {
			now = append(now, h.Case)
			unwritten = unwritten || changes(h)
		}
	}
	code := exitCode(now, doctor.Broken)
	if code == OK && unwritten {
		return Failed // it would work, and the file is as it was
	}
	return code
}

type healJSON struct {
	answer
	Planned  bool           `json:"planned"`
	Summary  healCountJSON  `json:"summary"`
	Healings []*healingJSON `json:"healings"`
}

type healCountJSON struct {
	Problems int `json:"problems"`
	Fixed    int `json:"fixed"`
	Fixable  int `json:"fixable"`
}

func healAnswer(healings []*doctor.Healing, plan bool, code int) healJSON {
	j := healJSON{answer: answerTo("heal", code), Planned: plan, Healings: []*healingJSON{}}
	for _, h := range healings {
		j.Healings = append(j.Healings, jsonOfHealing(h))
		j.Summary.Problems++
		if h.Fixed {
			j.Summary.Fixed++
		}
		if changes(h) {
			j.Summary.Fixable++
		}
	}
	return j
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
