package cli

import (
	_ "embed"

	"github.com/spf13/cobra"
)

// schema is what the JSON of all commands follows. docs/schema has the same file.
//
//go:embed schema.json
var schema []byte

func schemaCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:                   "schema",
		Short:                 "print the JSON Schema of what --json prints",
		Args:                  noArgs,
		DisableFlagsInUseLine: true,
		RunE: func(*cobra.Command, []string) error {
			_, err := p.env.Stdout.Write(schema)
			return err
		},
	}
}
