package doctor

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/registry"
)

// A Wrapping is what became of putting one server behind "mcpmend run", or of
// taking it out again.
type Wrapping struct {
	Server string `json:"server"`
	Client string `json:"client"`
	File   string `json:"file"`
	// Done: the entry is changed; in a plan, it would be.
	Done bool `json:"done"`
	// Reason is why it was left alone, in words for people.
	Reason string `json:"reason,omitempty"`
	Diffs  []Diff `json:"diffs,omitempty"`
	// Undo is the ID of the change.
	Undo   string `json:"undo,omitempty"`
	Reload string `json:"reload,omitempty"`
	// Tools is how many the server has, the same before and after.
	Tools int `json:"tools,omitempty"`
}

// WrapOptions say how.
type WrapOptions struct {
	// Program is our own, as an absolute path that stays where it is. See
	// StableProgram.
	Program string
	// Plan writes nothing and starts nothing.
	Plan bool
}

// Wrap puts a server behind "mcpmend run", so that it is mended while it is used.
// The entry is kept only if the server, started that way in the client's own
// environment, has the very same tools as before.
func (d *Doctor) Wrap(ctx context.Context, c *Case, o WrapOptions) *Wrapping {
	w := &Wrapping{Server: c.Name, Client: c.Client, File: c.At.File}
	if w.Reason = d.reasonNotToWrap(c); w.Reason != "" {
		return w
	}
	f, s := c.reread()
	if s == nil {
		w.Reason = "the entry is gone"
		return w
	}
	if d.approvalKey(s, f).hash != d.approvalKey(c.server, c.file).hash || d.needsApproval(s, f) {
		w.Reason = "has changed in the meantime; look at it again"
		return w
	}
	changed, err := asCommand(f, s, behind(o.Program, s, d.Withheld, d.known(s)))
	if err != nil {
		w.Reason = err.Error()
		return w
	}
	d.exchange(ctx, w, f, changed, c.saw, o)
	return w
}

// Unwrap takes a server out again. It need not work for that.
func (d *Doctor) Unwrap(ctx context.Context, c *Case, o WrapOptions) *Wrapping {
	w := &Wrapping{Server: c.Name, Client: c.Client, File: c.At.File}
	f, s := c.reread()
	if s == nil {
		w.Reason = "the entry is gone"
		return w
	}
	inner, url := wrapped(s, d.Self)
	var changed *clientconfig.File
	var err error
	switch {
	case url != "":
		changed, err = asURL(f, s, url, d.speaks(ctx, url, o.Plan || d.needsApproval(s, f)))
	case inner != nil:
		changed, err = asCommand(f, s, inner)
	default:
		w.Reason = "is not behind mcpmend"
		return w
	}
	if err != nil {
		w.Reason = err.Error()
		return w
	}
	d.exchange(ctx, w, f, changed, nil, o)
	return w
}

// behind is the command line that runs a server through us. A variable that we would keep
// from it is named if the entry or the registry does: there, it is meant for the server.
func behind(program string, s *clientconfig.Server, withheld func(string) bool, known []registry.Variable) []string {
	if s.URL.Text != "" {
		return []string{program, "run", s.URL.Text}
	}
	var names []string
	for _, p := range s.Env {
		names = append(names, p.Name.Text)
	}
	for _, v := range s.EnvFrom {
		names = append(names, v.Text)
	}
	for _, v := range known {
		names = append(names, v.Name)
	}
	argv := []string{program, "run"}
	for i, name := range names {
		if withheld != nil && withheld(name) && !slices.Contains(names[:i], name) {
			argv = append(argv, "--pass-env", name)
		}
	}
	return append(append(argv, "--"), argvOf(s)...)
}

// Takes are the names of the variables that the registry names for the server which a
// command line runs.
func Takes(r *registry.Registry, command []string) []string {
	l := launchOf(command)
	entry, _ := r.Package(l.registry, l.id)
	p, _ := entry.Find(l.registry, l.id)
	var names []string
	for _, v := range p.Variables {
		names = append(names, v.Name)
	}
	return names
}

func (d *Doctor) reasonNotToWrap(c *Case) string {
	switch {
	case c.server == nil:
		return "the file cannot be read by its client"
	case c.server.URL.Text != "" && len(c.server.Headers)+len(c.server.HeadersFrom) > 0:
		return "its headers would have to stand on a command line, where others can read them"
	case c.State == SignIn && c.server.URL.Text == "":
		return "its credentials are not accepted; renew them first"
	case c.State == SignIn:
		return "the client signs in to it itself, which mcpmend cannot do yet"
	case c.State == InUse:
		return "a running copy is in the way; end that, and try again"
	case c.State == Pending:
		return "waits for your approval; mcpmend check says what it would run"
	case c.State != Healthy && c.State != Degraded:
		return fmt.Sprintf("is %s; mend it first", c.State)
	case c.saw == nil:
		return "was not started, so there is nothing to compare with"
	}
	if inner, url := wrapped(c.server, d.Self); inner != nil || url != "" {
		return "is behind mcpmend already"
	}
	return ""
}

// exchange writes the changed file in place of the other. If it is known what the
// old entry did, the new one is started first and has to do the same.
func (d *Doctor) exchange(ctx context.Context, w *Wrapping, before, after *clientconfig.File, did *Sighting, o WrapOptions) {
	draft := NewDraft(before, after, nil)
	if draft == nil {
		w.Reason = "is so already"
		return
	}
	if o.Plan {
		w.Done, w.Diffs = true, []Diff{draft.Diff}
		return
	}
	if did != nil {
		if w.Reason = d.doesAsBefore(ctx, after, w.Server, did.Tools); w.Reason != "" {
			return
		}
		w.Tools = len(did.Tools)
	}
	change, err := d.Write(ctx, draft)
	if err != nil && !change.Done {
		w.Reason = err.Error()
		return
	}
	w.Done, w.Undo, w.Reload, w.Diffs = true, change.ID, before.Client.Reload, []Diff{draft.Diff}
}

// doesAsBefore starts an entry behind us and says why it cannot take the place of
// the old one, which had these tools; "" if it can.
func (d *Doctor) doesAsBefore(ctx context.Context, f *clientconfig.File, name string, tools []Tool) string {
	// Whoever approved the command has approved it behind us, too.
	if err := d.approve(f.Server(name), f); err != nil {
		return err.Error()
	}
	c := d.reexamine(ctx, f, name)
	if c == nil || c.saw == nil || c.saw.Fault != nil {
		return "does not start behind mcpmend, so nothing was changed"
	}
	if !sameTools(tools, c.saw.Tools) {
		return "has other tools behind mcpmend than before, so nothing was changed"
	}
	return ""
}

func sameTools(a, b []Tool) bool {
	return slices.EqualFunc(a, b, func(a, b Tool) bool { return bytes.Equal(a.Definition, b.Definition) })
}

// reread reads the case's file again, since an earlier change may have been
// written to it, and finds the entry.
func (c *Case) reread() (*clientconfig.File, *clientconfig.Server) {
	f := c.file.Again()
	for _, s := range f.Servers {
		if slices.Equal(s.Path, c.server.Path) {
			return f, s
		}
	}
	return f, nil
}

// Wrapped reports whether the server of a case stands behind "mcpmend run".
func (c *Case) Wrapped() bool {
	if c.server == nil {
		return false
	}
	inner, url := wrapped(c.server, "")
	return inner != nil || url != ""
}

// wrapped takes apart an entry that runs us: the command behind "--", or the URL.
// self is a path of ours that need not be called mcpmend, or "".
func wrapped(s *clientconfig.Server, self string) (inner []string, url string) {
	argv := argvOf(s)
	if len(argv) < 3 || argv[1] != "run" {
		return nil, ""
	}
	if programName(argv[0]) != "mcpmend" && argv[0] != self {
		return nil, ""
	}
	if i := slices.Index(argv, "--"); i >= 0 {
		return argv[i+1:], ""
	}
	if last := argv[len(argv)-1]; strings.HasPrefix(last, "http://") || strings.HasPrefix(last, "https://") {
		return nil, last
	}
	return nil, ""
}

// speaks finds out over which transport a URL is to be spoken to. If that cannot
// be had, it is the one that is not on its way out.
func (d *Doctor) speaks(ctx context.Context, url string, unasked bool) clientconfig.Transport {
	if d.Probe != nil && !unasked && !d.Static {
		if t := d.Probe(ctx, Start{URL: url, Timeout: d.Timeout}).Transport; t != clientconfig.Unknown {
			return t
		}
	}
	return clientconfig.HTTP
}

// cacheMarks are in the path of a program that a package runner has unpacked for
// one use, or a compiler built for one run.
var cacheMarks = []string{"/_npx/", "/dlx-", "/.bun/install/cache/", "/bunx-", "/.cache/uv/", "/uv/archive-v", "/go-build", "/pnpm/dlx/", "/.yarn/berry/cache/"}

// StableProgram says whether a path may be written into a configuration: it has to
// be there tomorrow. executable is our own, as the system names it.
func StableProgram(executable string) (string, error) {
	file, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return "", err
	}
	slashed := filepath.ToSlash(file)
	for _, mark := range cacheMarks {
		if strings.Contains(slashed, mark) {
			return "", fmt.Errorf("this mcpmend runs from a package runner's cache (%s), which may be emptied at any time: install it first", file)
		}
	}
	// A link that a package manager keeps pointing at the newest version outlives
	// what it points at.
	if filepath.IsAbs(executable) {
		return executable, nil
	}
	return file, nil
}
