package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return printVersion(p) },
	}
}

func printVersion(p *program) error {
	if p.json {
		return p.printJSON(versionJSON{answerTo("version", OK), version()})
	}
	_, err := fmt.Fprintln(p.env.Stdout, "mcpmend", version())
	return err
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

type versionJSON struct {
	answer
	Version string `json:"version"`
}
