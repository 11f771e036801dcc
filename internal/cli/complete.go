package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// complete offers values for a flag.
func complete(c *cobra.Command, flag string, values func() []string) {
	err := c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return startingWith(begun, values()), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil { // no flag of that name
		panic(err)
	}
}

// completeServers offers the names of the servers there are. It reads files and
// starts nothing, since it runs while somebody types.
func (p *program) completeServers(_ *cobra.Command, typed []string, begun string) ([]string, cobra.ShellCompDirective) {
	d, _, err := p.doctor(selection{static: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := slices.DeleteFunc(serverNames(d.System), func(name string) bool {
		// One key would make a flag of it, or a name that looks like another one's.
		return strings.HasPrefix(name, "-") || strings.ContainsFunc(name, harmful)
	})
	return startingWith(begun, names, typed...), cobra.ShellCompDirectiveNoFileComp
}

func startingWith(begun string, values []string, except ...string) []string {
	var some []string
	for _, v := range values {
		if strings.HasPrefix(v, begun) && !slices.Contains(except, v) {
			some = append(some, v)
		}
	}
	return some
}
