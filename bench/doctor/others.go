package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcpmend/mcpmend/bench/internal/realclient"
	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/rogpeppe/go-internal/txtar"
)

// An otherTool is what somebody else offers for looking at one's servers.
type otherTool struct {
	name   string
	client *realclient.Client
}

// otherSays is what such a tool said of a set-up.
type otherSays struct {
	Says    string  `json:"says"` // cause, symptom, nothing, healthy, or n/a
	Text    string  `json:"text,omitempty"`
	Exit    int     `json:"exit"`
	Secs    float64 `json:"seconds"`
	Secrets bool    `json:"secretsShown"`
}

// others installs the clients that were asked for. One that npm does not have here
// is left out, and said so.
func (o options) others(ctx context.Context) ([]otherTool, error) {
	with := o.with
	if with == "" && (o.Quick || o.only != "") {
		with = "none"
	}
	var tools []otherTool
	for _, id := range []string{"claude", "gemini", "opencode", "codex"} {
		if with != "" && with != "all" && !slices.Contains(strings.Split(with, ","), id) {
			continue
		}
		c := realclient.ByID(id)
		err := c.Install(ctx)
		if errors.Is(err, realclient.ErrUnavailable) {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", id, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		name := id + " mcp list"
		if c.HasDoctor() {
			name = id + " doctor"
		}
		tools = append(tools, otherTool{name, c})
	}
	return tools, nil
}

// ask shows the set-up to another tool, on a machine of its own: the file as it is
// if it is this client's, else the entry in this client's words.
func (v *verdict) ask(ctx context.Context, o otherTool, t *tools, s *setup, dir string, random *rand.Rand) error {
	w, err := newWorld(ctx, t, s, dir, random)
	if err != nil {
		return err
	}
	defer w.close()
	if v.Others == nil {
		v.Others = map[string]otherSays{}
	}
	if !w.translate(o.client) {
		v.Others[o.name] = otherSays{Says: "n/a"}
		return nil
	}
	look := o.client.List
	if o.client.HasDoctor() {
		look = o.client.Doctor
	}
	env := []string{"PATH=" + w.path("bin") + ":" + t.path, "TMPDIR=" + w.path("tmp")}
	for _, e := range s.Env {
		env = append(env, w.fill(e))
	}
	out := look(ctx, realclient.Setup{Home: w.path("home"), Project: w.path("project"), Env: env, Timeout: 45 * time.Second})
	if out.Err != nil {
		return out.Err
	}
	verdict := o.client.Verdict(out, s.Server)
	says := otherSays{Exit: out.Exit, Secs: out.Took.Seconds(), Text: w.unfill(verdict.Text)}
	for _, secret := range w.secrets {
		says.Secrets = says.Secrets || strings.Contains(out.Stdout+out.Stderr, secret)
	}
	switch text := about(out, verdict, s.Server); {
	case verdict.State == realclient.OK:
		says.Says = "healthy"
	case names(w.fill, s.Words, text) && strings.TrimSpace(text) != "" && len(s.Words) > 0:
		says.Says = "cause"
	case verdict.State == realclient.Failed || verdict.Text != "" && verdict.State == realclient.Absent:
		says.Says = "symptom"
	default:
		says.Says = "nothing"
	}
	v.Others[o.name] = says
	return nil
}

// about is all that was said but the echo of the entry: that a list repeats the
// command is no diagnosis.
func about(o realclient.Output, v realclient.Verdict, server string) string {
	text := v.Text + "\n"
	for line := range strings.Lines(o.Stderr + "\n" + o.Stdout) {
		if strings.Contains(line, server+": ") || strings.HasPrefix(line, "│") || strings.HasPrefix(strings.TrimSpace(line), "{") {
			continue
		}
		text += line
	}
	if strings.HasPrefix(strings.TrimSpace(o.Stdout), "{") {
		return v.Text // JSON about everything there is
	}
	return text
}

// formOnly are the stages at which the form of one client's file is at fault, which
// no other client's file can have.
var formOnly = []string{"file", "parse", "shape", "variables"}

// translate puts the entry of the set-up where a client looks for it, and reports
// whether that could be done.
func (w *world) translate(c *realclient.Client) bool {
	s := w.setup
	if s.Client == c.Config {
		return true
	}
	stage, _, _ := strings.Cut(slices.Concat(s.Causes, s.Warns, []string{""})[0], ".")
	if s.Alone != "" || s.healthy() || slices.Contains(formOnly, stage) || slices.Contains(s.States, "pending") || slices.Contains(s.States, "disabled") {
		return false
	}
	system := clientconfig.System{Home: w.path("home"), Project: w.path("project"), Getenv: func(string) string { return "" }}
	var entry *clientconfig.Server
	for _, f := range system.Find(clientconfig.ByID(s.Client)) {
		if found := f.Server(s.Server); found != nil {
			entry = found
		}
	}
	if entry == nil {
		return false
	}
	client := clientconfig.ByID(c.Config)
	place := client.Files[0]
	name := system.Path(place)
	f, err := clientconfig.New(name, client, w.path("project"), place).Add(entry)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(w.dir, name)
	return err == nil && w.write([]txtar.File{{Name: rel, Data: f.Bytes()}}) == nil
}

// printOthers is the table beside our own figures. mcpmend is judged by the same
// words over the same set-ups.
func (r *result) printOthers(out io.Writer) {
	type row struct {
		of, mine, wrongExit, secrets int
		says                         map[string]int
		secs                         []float64
	}
	rows := map[string]*row{}
	for _, v := range r.Verdicts {
		for name, o := range v.Others {
			if rows[name] == nil {
				rows[name] = &row{says: map[string]int{}}
			}
			if !v.broken || o.Says == "n/a" || slices.Contains(notBroken, v.State) {
				continue
			}
			x := rows[name]
			x.of++
			x.says[o.Says]++
			x.secs = append(x.secs, o.Secs)
			if v.Named {
				x.mine++
			}
			if o.Exit == 0 && v.Exit != 0 {
				x.wrongExit++
			}
			if o.Secrets {
				x.secrets++
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "the same broken set-ups in\tset-ups\tnames the cause\ta symptom\tnothing\tsays healthy\texit 0 though broken\tshows secrets\tmedian s\tlongest s\tmcpmend names the cause")
	for _, name := range []string{"claude mcp list", "gemini mcp list", "opencode mcp list", "codex doctor"} {
		x := rows[name]
		if x == nil || x.of == 0 {
			continue
		}
		slices.Sort(x.secs)
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t%d\n", name, x.of, x.says["cause"], x.says["symptom"], x.says["nothing"], x.says["healthy"],
			x.wrongExit, x.secrets, x.secs[len(x.secs)/2], x.secs[len(x.secs)-1], x.mine)
	}
	_ = tw.Flush()
	fmt.Fprintln(out)
}
