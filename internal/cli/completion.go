package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// shells are those whose completion cobra can write.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
}

func completionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "print a script that completes commands, servers and clients",
		Example: `
  bash        source <(mcpmend completion bash), with the package bash-completion
  zsh         mcpmend completion zsh > "${fpath[1]}/_mcpmend"
  fish        mcpmend completion fish > ~/.config/fish/completions/mcpmend.fish
  powershell  mcpmend completion powershell | Out-String | Invoke-Expression`,
		ValidArgs:             []string{"bash", "zsh", "fish", "powershell"},
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return misused("choose a shell: bash, zsh, fish or powershell")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return shells[args[0]](c.Root(), p.env.Stdout)
		},
	}
}
