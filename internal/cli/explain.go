package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/fault"
	"github.com/mcpmend/mcpmend/internal/doctor"
)

func explainCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID | TEXT | -",
		Short: "say what an error message means, or an id that check has shown",
		Long: `
Explains a message that a client or a server has shown: paste it in quotes, or give
"-" and pipe it in. Or explains an id, such as start.missing_env_var.`,
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			text := strings.TrimSpace(strings.Join(args, " "))
			if text == "-" {
				const most = 1 << 20
				all, err := io.ReadAll(io.LimitReader(p.env.Stdin, most))
				if err != nil {
					return err
				}
				text = strings.TrimSpace(string(all))
			}
			if text == "" {
				return misused("explain needs an id or the text of a message")
			}
			return p.explain(text)
		},
	}
}

// pasted lets "explain" take a message without quotes that has a code in it, such as
// -32000, which is no flag of ours.
func pasted(args []string) []string {
	if len(args) == 0 || args[0] != "explain" || slices.Contains(args, "--") {
		return args
	}
	i := slices.IndexFunc(args, func(word string) bool { return len(word) > 1 && word[0] == '-' && '0' <= word[1] && word[1] <= '9' })
	if i < 0 {
		return args
	}
	return slices.Insert(slices.Clone(args), i, "--")
}

func (p *program) explain(text string) error {
	j := explainText(text)
	if p.json {
		return p.endJSON(j, OK)
	}
	v := view{screen: p.screen()}
	v.printf("%s\n", v.paint(bold, j.Title))
	v.detail("cause", plain(j.Explanation))
	if j.Fix != "" {
		v.detail("do", plain(j.Fix))
	}
	if v.verbose && j.Because != "" {
		v.detail("seen", plain(j.Because))
	}
	v.detail("id", j.Kind)
	return nil
}

// explainText explains an id, or any text.
func explainText(text string) explainJSON {
	x := doctor.Explain(fault.Evidence{Text: text})
	return explainJSON{answer: answerTo("explain", OK), Kind: x.Kind, Title: x.Title, Confidence: x.Confidence,
		Explanation: x.Meaning, Fix: x.Remedy, Retryable: x.Retryable, Because: x.Because}
}

type explainJSON struct {
	answer
	Kind        string  `json:"kind"`
	Title       string  `json:"title"`
	Explanation string  `json:"explanation"`
	Fix         string  `json:"fix,omitempty"`
	Confidence  float64 `json:"confidence"`
	Retryable   bool    `json:"retryable"`
	Because     string  `json:"because,omitempty"`
}
