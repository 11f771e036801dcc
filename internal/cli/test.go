package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpmend/mcpmend/internal/doctor"
)

type testFlags struct {
	selection
	call, arguments string
	header          []string
	heal            bool
}

func testCommand(p *program) *cobra.Command {
	var o testFlags
	c := &cobra.Command{
		Use:         "test [flags] SERVER",
		Annotations: map[string]string{"use": "mcpmend test [flags] URL\nmcpmend test [flags] -- COMMAND ARGS..."},
		Short:       "start one server, or any command or URL, and show how each stage went",
		Long: `
Starts one server and shows how each stage went and how long it took: a server of
your clients by name, or any URL or command, also one that stands in no file yet.`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeServers,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misused("test needs a server, a URL or a command")
			}
			return p.test(c.Context(), o, args, c.ArgsLenAtDash() == 0)
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err.Error(), p.withDashes()} })
	o.register(p, c, true)
	c.Flags().StringVar(&o.call, "call", "", "call this `TOOL` at the end; exit code 5 if it fails")
	c.Flags().StringVar(&o.arguments, "arguments", "{}", "arguments for --call, as a `JSON` object")
	c.Flags().StringArrayVar(&o.header, "header", nil, "send this header to URL, as `'NAME: VALUE'`; may be given several times")
	c.Flags().BoolVar(&o.heal, "heal", false, "mend it, as 'mcpmend heal SERVER' does")
	return c
}

// withDashes is what somebody meant who typed a command after "test", and its flags
// with it; "" if that is not what they did.
func (p *program) withDashes() string {
	words := p.env.Args[1:]
	if len(words) == 0 || p.env.Args[0] != "test" || strings.HasPrefix(words[0], "-") || slices.Contains(words, "--") || isURL(words[0]) {
		return ""
	}
	if servers, _ := p.completeServers(nil, nil, words[0]); slices.Contains(servers, words[0]) {
		return ""
	}
	return "mcpmend test -- " + doctor.Quoted(words...)
}

func (p *program) test(ctx context.Context, o testFlags, args []string, dashed bool) error {
	d, v, err := p.doctor(o.selection)
	if err != nil {
		return err
	}
	if o.call != "" {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(o.arguments), &object) != nil || object == nil {
			return misused("--arguments must be a JSON object")
		}
		d.Call = &doctor.Call{Tool: o.call, Arguments: []byte(o.arguments)}
	}
	loose := dashed || isURL(args[0])
	switch {
	case !dashed && len(args) > 1:
		return usageError{fmt.Sprintf("unexpected %q", args[1]), "mcpmend test -- COMMAND ARGS..."}
	case loose && o.heal:
		return misused("--heal mends an entry of a client's file; this is none")
	case len(o.header) > 0 && !isURL(args[0]):
		return misused("--header is for a URL")
	}
	var cases []*doctor.Case
	if loose {
		cases = []*doctor.Case{v.testLoose(ctx, d, o, args, dashed)}
	} else {
		report, err := v.examine(ctx, d, o.which(args))
		if err != nil {
			return err
		}
		cases = report.Cases
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	code := testCode(cases)
	if p.json && !o.heal {
		return p.endJSON(testAnswer(cases, code), code)
	}
	if !p.json {
		for i, c := range cases {
			if i > 0 {
				v.printf("\n")
			}
			v.ladder(c, needsClient(cases, c))
		}
	}
	if o.heal && len(problemsOf(cases)) > 0 {
		if !p.json {
			v.printf("\n")
		}
		return p.heal(ctx, healFlags{selection: o.selection, maxAttempts: 3}, args)
	}
	if p.json {
		return p.endJSON(testAnswer(cases, code), code)
	}
	return exit(code)
}

// testLoose examines a server that stands in no file.
func (v view) testLoose(ctx context.Context, d *doctor.Doctor, o testFlags, args []string, dashed bool) *doctor.Case {
	start := doctor.Start{Timeout: o.timeout, Call: d.Call}
	if dashed {
		start.Command = args
	} else {
		start.URL, start.Header = args[0], o.header
	}
	v.progress("testing " + v.ellipsis)
	defer v.progress("")
	return d.Test(ctx, start)
}

func isURL(word string) bool {
	u, err := url.Parse(word)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

func testCode(cases []*doctor.Case) int {
	for _, c := range cases {
		if _, failed, _ := c.Called(); failed {
			return ToolError
		}
	}
	return exitCode(cases, doctor.Broken)
}

// ladder shows one case rung by rung.
func (v view) ladder(c *doctor.Case, withClient bool) {
	words := stateWords(c)
	if c.State == doctor.Healthy {
		words = "healthy " + v.dot + " " + v.wellWords(c)
	}
	if c.Client == "" { // it stands in no file
		v.printf("%s %s  %s\n", v.sign(c), v.paint(bold, plain(c.Runs)), words)
	} else {
		v.heading(c, columns{}, words)
		if c.Runs != "" {
			v.detail("runs", plain(c.Runs))
		}
	}
	if !v.quiet {
		v.rungs(c)
	}
	if c.Cause != nil {
		v.finding(c, *c.Cause, "cause", withClient)
	}
	for _, f := range c.Also {
		v.finding(c, f, "also", withClient)
	}
	if c.State == doctor.Pending {
		v.paste("fix", "", v.asked.about("test", c.Name, "--approve", c.Approve))
	}
	v.aboutServer(c)
	if result, failed, ok := c.Called(); ok {
		label := "result"
		if failed {
			label = "failed"
		}
		v.detail(label, v.cut(plain(hide(string(result))), 2000))
	}
}

func (v view) rungs(c *doctor.Case) {
	width := 0
	for _, s := range c.Ladder {
		width = max(width, len(s.Stage))
	}
	for _, s := range c.Ladder {
		sign := v.paint(green, v.ok)
		if !s.OK {
			sign = v.paint(red, v.bad)
		}
		words := plain(s.Note)
		if s.Stage == doctor.AtHandshake && c.Info != nil {
			words = "" // aboutServer says it
		}
		if s.Took > 0 {
			words = strings.TrimSpace(pad(seconds(s.Took), 7) + " " + words)
		}
		v.printf("%s\n", strings.TrimRight("    "+sign+" "+pad(string(s.Stage), width)+"  "+words, " "))
	}
}

// aboutServer is what the server said of itself.
func (v view) aboutServer(c *doctor.Case) {
	if c.Info == nil || v.quiet {
		return
	}
	var words []string
	for _, w := range []string{strings.TrimSpace(c.Info.Name + " " + c.Info.Version), "MCP " + c.Info.Protocol, c.Info.Transport} {
		if w = plain(w); w != "" && w != "MCP" {
			words = append(words, w)
		}
	}
	v.detail("server", strings.Join(words, " "+v.dot+" "))
	if len(c.Info.Tools) > 0 {
		const few = 12
		tools := c.Info.Tools
		more := ""
		if len(tools) > few+1 && !v.verbose {
			more = fmt.Sprintf(" and %d more", len(tools)-few)
			tools = tools[:few]
		}
		v.detail("tools", plain(strings.Join(tools, " "))+more)
	}
}

type testJSON struct {
	answer
	Cases  []*caseJSON `json:"cases"`
	Result any         `json:"result,omitempty"`
}

func testAnswer(cases []*doctor.Case, code int) testJSON {
	j := testJSON{answer: answerTo("test", code), Cases: []*caseJSON{}}
	for _, c := range cases {
		j.Cases = append(j.Cases, jsonOf(c))
		if result, _, ok := c.Called(); ok {
			var value any
			if json.Unmarshal([]byte(hide(string(result))), &value) == nil {
				j.Result = value
			}
		}
	}
	return j
}
