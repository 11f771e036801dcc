package cli

import (
	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/app"
)

func mcpCommand(p *program) *cobra.Command {
	var project string
	c := &cobra.Command{
		Use:   "mcp",
		Short: "offer check, test, heal, configure and undo to an agent, as MCP tools",
		Long: `
Speaks MCP on stdin and stdout, so that an agent can find and mend what is wrong
with its servers. What would be written is shown to you first, where your client
can ask you; elsewhere the agent has to confirm a plan. A command that was not run
here before is only run if you agree yourself. docs/AGENTS.md says how to add it.`,
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			folder, err := projectFolder(project)
			if err != nil {
				return err
			}
			return app.ServeClinic(c.Context(), app.DoctorOptions{Environ: p.env.Environ, Project: folder}, version())
		},
	}
	c.Flags().StringVar(&project, "project", ".", "the `DIR` that the clients would be opened in")
	return c
}
