package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// Whatever is shown of a file, a server or a case goes through a Hider that knows
// the secrets in it.

// DiffOf is the change of a file as a unified diff that may be shown: what is
// secret in either version is hidden. A nil File is one that is not there. Text is
// "" if there is no difference.
func DiffOf(before, after *clientconfig.File) Diff {
	var path, old, now string
	var files []*clientconfig.File
	if before != nil {
		path, old, files = before.Path, string(before.Bytes()), append(files, before)
	}
	if after != nil {
		path, now, files = after.Path, string(after.Bytes()), append(files, after)
	}
	d := hiddenDiff(hiderOf(nil, files...), path, old, now)
	if before != nil {
		d.sayLink(before)
	}
	return d
}

// sayLink adds to a diff that its file is a link out of the project, so that nothing
// will be written.
func (d *Diff) sayLink(f *clientconfig.File) {
	if target := f.LeavesProject(); target != "" && d.Text != "" {
		d.Text = fmt.Sprintf("# not written: %s leads to %q, outside of the project\n", d.File, target) + d.Text
	}
}

// hiddenDiff hides in the whole and not line by line: a flag and its value may
// stand on two lines.
func hiddenDiff(h *secret.Hider, path, before, after string) Diff {
	was, marked := strings.CutPrefix(before, "\ufeff")
	is, stillMarked := strings.CutPrefix(after, "\ufeff")
	switch { // the two lines would look alike
	case marked && !stillMarked:
		before = "<BOM>" + was
	case stillMarked && !marked:
		after = "<BOM>" + is
	}
	return Diff{File: path, Text: h.Text(udiff.Unified(path, path, before, after))}
}

// hiderOf knows the secrets that stand in files, so that they can be hidden in any
// text that quotes them. others are values that must not be shown whatever they
// look like, by their names.
func hiderOf(others map[string]string, files ...*clientconfig.File) *secret.Hider {
	h := secret.New()
	for name, value := range others {
		h.Know(name, value)
	}
	for _, f := range files {
		f.EachText(func(path clientconfig.Path, text string) { h.Add(nameOf(path), text) })
		for _, s := range f.Servers {
			h.AddArgs(argvOf(s))
		}
	}
	return h
}

// hider knows the secrets that a start hands to a server, which may repeat them in
// anything that it says.
func (s *Start) hider() *secret.Hider {
	h := secret.New()
	h.AddEnviron(s.Env)
	h.AddEnviron(s.refers)
	h.Add("url", s.URL)
	h.AddArgs(s.Command)
	for _, header := range s.Header {
		h.AddHeader(header)
	}
	return h
}

// hide takes secrets out of what was seen, before anybody draws conclusions from it.
func (saw *Sighting) hide(h *secret.Hider) {
	all := h.Lines
	saw.Noise = all(saw.Noise)
	if saw.Result != nil {
		saw.Result = h.JSON(saw.Result)
	}
	if saw.Info != nil {
		info := *saw.Info
		info.Name, info.Version = h.Text(info.Name), h.Text(info.Version)
		saw.Info = &info
	}
	saw.Steps = slices.Clone(saw.Steps)
	for i := range saw.Steps {
		saw.Steps[i].Note = h.Text(saw.Steps[i].Note)
	}
	if saw.Fault != nil {
		flt := *saw.Fault
		flt.Stderr, flt.Stdout, flt.Text = all(flt.Stderr), all(flt.Stdout), h.Text(flt.Text)
		flt.PartialText, flt.Challenge = h.Text(flt.PartialText), h.Text(flt.Challenge)
		saw.Fault = &flt
	}
}

// hide takes out of a finding what the entry's variables hold.
func (c *Case) hide(f *Finding) {
	if c.hider == nil {
		return
	}
	f.Explanation = c.hider.Text(f.Explanation)
	f.Evidence = c.hider.Lines(f.Evidence)
	for i := range f.Fixes {
		f.Fixes[i].Does, f.Fixes[i].Run = c.hider.Text(f.Fixes[i].Does), c.hider.Text(f.Fixes[i].Run)
	}
}

// nameOf is the name that a value stands under: the last that is no position.
func nameOf(path clientconfig.Path) string {
	for i := len(path) - 1; i >= 0; i-- {
		if c := path[i]; c == "" || c[0] < '0' || c[0] > '9' {
			return path[i]
		}
	}
	return ""
}

// entryShown is an entry in the words of its client, with secrets hidden; nil if
// there is none. others are as in hiderOf.
func entryShown(f *clientconfig.File, s *clientconfig.Server, others map[string]string) any {
	if f == nil || s == nil {
		return nil
	}
	h := hiderOf(others, f)
	var shown func(name string, v any) any
	shown = func(name string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				v[k] = shown(k, inner)
			}
		case []any:
			for i, inner := range v {
				v[i] = shown(name, inner)
			}
		case string:
			// A short value that is named like a secret would slip through a search for
			// it in a text.
			text := secret.Args([]string{name + "=" + v})[0]
			return h.Text(strings.TrimPrefix(text, name+"="))
		}
		return v
	}
	return shown("", f.Value(s.Path))
}

// Entry is the entry of a case in the words of its client, with secrets hidden;
// nil for a file as a whole.
func (c *Case) Entry() any { return entryShown(c.file, c.server, nil) }
