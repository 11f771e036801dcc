package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

// program is one run of mcpmend: the world it runs in and what was typed that
// holds for every command.
type program struct {
	// end is what has to be done at last.
	end  func()
	env  Env
	done <-chan struct{} // closed when the person interrupts

	json    bool
	noColor bool
	ascii   bool
	noInput bool
	quiet   bool
	verbose bool
}

// commands are in the order of the help. The ones a person needs first come
// first and the rest stands under "more".
var commands = []struct {
	name string
	more bool
	make func(*program) *cobra.Command
}{
	{"check", false, checkCommand},
	{"heal", false, healCommand},
	{"undo", false, undoCommand},
	{"wrap", false, wrapCommand},
	{"run", false, runCommand},
	{"test", true, testCommand},
	{"list", true, listCommand},
	{"configure", true, configureCommand},
	{"remove", true, removeCommand},
	{"unwrap", true, unwrapCommand},
	{"clients", true, clientsCommand},
	{"explain", true, explainCommand},
	{"report", true, reportCommand},
	{"history", true, historyCommand},
	{"registry", true, registryCommand},
	{"mcp", true, mcpCommand},
	{"schema", true, schemaCommand},
	{"completion", true, completionCommand},
	{"version", true, versionCommand},
}

// meant are words that people type who know other tools.
var meant = map[string][]string{
	"check":     {"doctor", "diagnose", "status", "health", "scan", "validate", "approve"},
	"heal":      {"fix", "mend", "repair"},
	"undo":      {"revert", "restore", "rollback"},
	"list":      {"ls", "servers"},
	"configure": {"add", "install", "setup"},
	"remove":    {"rm", "delete", "uninstall"},
	"run":       {"start", "proxy", "serve", "gateway"},
	"explain":   {"why"},
	"history":   {"log", "changes", "backups"},
}

func init() {
	// On Windows cobra would print a text and wait when it believes that it was
	// started by a double click. What is printed belongs to a protocol.
	cobra.MousetrapHelpText = ""
	cobra.EnableCommandSorting = false
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpmend",
		Short:         "mcpmend keeps an AI agent's MCP servers working.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          p.knownCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if show, _ := c.Flags().GetBool("version"); show {
				return printVersion(p)
			}
			return p.check(c.Context(), selection{timeout: 10 * time.Second}, nil, doctor.Broken)
		},
	}
	// Not cobra's own --version: a template of cobra links text/template, and with
	// it two megabytes of methods that nobody calls into "run".
	root.Flags().Bool("version", false, "print the version")
	root.SetArgs(pasted(p.env.Args))
	root.SetIn(p.env.Stdin)
	root.SetOut(p.env.Stdout)
	root.SetErr(p.env.Stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misused("%v", err) })
	p.globalFlags(root.PersistentFlags())
	for _, c := range commands {
		command := c.make(p)
		command.Flags().SortFlags = false
		command.SuggestFor = meant[c.name]
		if c.more {
			command.GroupID = "more"
		}
		root.AddCommand(command)
	}
	root.AddGroup(&cobra.Group{ID: "more", Title: "More:"})
	root.CompletionOptions.DisableDefaultCmd = true // ours is in the table
	root.SuggestionsMinimumDistance = 2
	root.InitDefaultHelpCmd()
	if c, _, err := root.Find([]string{"help"}); err == nil {
		c.Hidden = true
	}
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { help(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error { help(c.ErrOrStderr(), c); return nil })
	return root
}

func (p *program) globalFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.BoolVar(&p.json, "json", false, "one JSON object on stdout; its form is what 'mcpmend schema' prints")
	flags.BoolVar(&p.noColor, "no-color", false, "no colours; NO_COLOR and CLICOLOR=0 do the same")
	flags.BoolVar(&p.ascii, "ascii", p.envSays("MCPMEND_ASCII"), "plain letters instead of signs; MCPMEND_ASCII=1 does the same")
	flags.BoolVar(&p.noInput, "no-input", p.envSays("MCPMEND_NO_INPUT"), "never ask; MCPMEND_NO_INPUT=1 does the same")
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "the verdict only")
	flags.BoolVarP(&p.verbose, "verbose", "v", false, "say more")
	for _, name := range []string{"ascii", "no-input"} {
		flags.Lookup(name).DefValue = "false" // what the environment says is no default
	}
}

func (p *program) envSays(name string) bool {
	value := lookupEnv(p.env.Environ, name)
	return value != "" && value != "0" && value != "false"
}

// knownCommand refuses arguments of the bare command: they are names of commands
// that do not exist.
func (p *program) knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usageError{text: fmt.Sprintf("unknown command %q", args[0])}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err.hint = "mcpmend " + near[0]
	} else if servers, _ := p.completeServers(c, nil, args[0]); slices.Contains(servers, args[0]) {
		err.hint = doctor.Typed("check", args[:1])
	}
	return err
}

// exitHelp is the end of the help of every command but "run", whose exit code
// means little to a client.
const exitHelp = `Exit codes: 0 healthy or healed, 1 a problem remains, 2 usage, 3 sign-in needed,
4 dead or unreachable, 5 the tool failed, 10 changes pending, 130 interrupted.
`

// help prints the help of a command; it is the same for all of them, so that it
// cannot forget a flag.
func help(w io.Writer, c *cobra.Command) {
	var b strings.Builder
	if !c.HasParent() {
		helpRoot(&b, c)
		_, _ = io.WriteString(w, b.String())
		return
	}
	uses := []string{c.UseLine()}
	if more := c.Annotations["use"]; more != "" {
		uses = append(uses, more)
	}
	fmt.Fprintf(&b, "%s\n\n", strings.Join(uses, "\n"))
	text := c.Long
	if text == "" {
		text = c.Short
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(text))
	if c.HasAvailableSubCommands() {
		b.WriteByte('\n')
		for _, sub := range c.Commands() {
			listed(&b, sub)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if c.InheritedFlags().Lookup(f.Name) == nil && f.Name != "help" {
			flags.AddFlag(f)
		}
	})
	if flags.HasAvailableFlags() {
		fmt.Fprintf(&b, "\n%s", flags.FlagUsagesWrapped(helpWidth))
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.Trim(c.Example, "\n"))
	}
	b.WriteString("\nFor every command: --json, --no-color, --ascii, --no-input, -q, -v; see 'mcpmend --help'.\n")
	_, _ = io.WriteString(w, b.String())
}

// helpWidth is what most people's windows have and what a README can show.
const helpWidth = 100

func helpRoot(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "%s\n\nmcpmend [command] [flags]\n\n", c.Short)
	for _, sub := range c.Commands() {
		if sub.GroupID == "" {
			listed(b, sub)
		}
	}
	for _, g := range c.Groups() {
		fmt.Fprintf(b, "\n%s\n", g.Title)
		for _, sub := range c.Commands() {
			if sub.GroupID == g.ID {
				listed(b, sub)
			}
		}
	}
	fmt.Fprintf(b, "\nFor every command:\n%s\n%s\n'mcpmend COMMAND --help' says more about one of them.\n",
		c.PersistentFlags().FlagUsagesWrapped(helpWidth), exitHelp)
}

func listed(b *strings.Builder, c *cobra.Command) {
	if c.IsAvailableCommand() {
		fmt.Fprintf(b, "  %-11s %s\n", c.Name(), c.Short)
	}
}
