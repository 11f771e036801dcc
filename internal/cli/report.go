package cli

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

func reportCommand(p *program) *cobra.Command {
	var o selection
	var template bool
	c := &cobra.Command{
		Use:   "report SERVER",
		Short: "write a bug report without secrets, to be pasted",
		Long: `
Checks one server and prints what its maintainers ask for first, as Markdown: versions,
system, client, stages, exit code, last words, cause. Secrets are hidden; look it
over all the same. --template prints a field for the bug form of a server's project.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case template && p.json:
				return p.endJSON(reportJSON{answerTo("report", OK), doctor.IssueTemplate}, OK)
			case template:
				p.screen().printf("%s", doctor.IssueTemplate)
				return nil
			case len(args) != 1:
				return misused("report takes the name of one server")
			}
			return p.report(c.Context(), o, args[0])
		},
	}
	o.register(p, c, true)
	c.Flags().BoolVar(&template, "template", false, "print a snippet for a GitHub issue form")
	return c
}

func (p *program) report(ctx context.Context, o selection, server string) error {
	d, v, err := p.doctor(o)
	if err != nil {
		return err
	}
	report, err := v.examine(ctx, d, o.which([]string{server}))
	if err != nil {
		return err
	}
	m := doctor.Machine{Version: version(), System: runtime.GOOS + "/" + runtime.GOARCH, Runtimes: runtimes(ctx, v.home)}
	var texts []string
	for _, c := range report.Cases {
		texts = append(texts, c.Markdown(m, v.home))
	}
	text := strings.Join(texts, "\n")
	if p.json {
		return p.endJSON(reportJSON{answerTo("report", OK), text}, OK)
	}
	v.printf("%s", text)
	return nil
}

// runtimes asks what most servers run on for its version. Some choose that by the
// folder they are started in, which may be a project's.
func runtimes(ctx context.Context, home string) []string {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var found []string
	for _, name := range []string{"node", "npm", "python3", "uv", "docker"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		c := exec.CommandContext(ctx, path, "--version")
		c.Dir, c.WaitDelay = home, time.Second
		out, err := c.Output()
		if err != nil {
			continue
		}
		line, _, _ := bytes.Cut(out, []byte("\n"))
		text := plain(string(line))
		if !strings.HasPrefix(strings.ToLower(text), strings.TrimSuffix(name, "3")) {
			text = name + " " + text
		}
		found = append(found, text)
	}
	return found
}

type reportJSON struct {
	answer
	Markdown string `json:"markdown"`
}
