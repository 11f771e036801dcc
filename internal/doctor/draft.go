package doctor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// A Draft is a change to one file that has been thought through and not been
// written. It stays what it is: somebody may look at its diff, go away, and agree
// to it later.
type Draft struct {
	// ID stands for the file, every byte that was in it and every byte that would
	// be. Two drafts with the same ID are the same change.
	ID string `json:"id"`
	// Diff shows it, with secrets hidden.
	Diff Diff `json:"diff"`

	file *clientconfig.File
}

// NewDraft drafts the change from one File to another that was made from it. It is
// nil if they do not differ. secrets are values that must not be shown whatever
// they look like, by their names.
func NewDraft(before, after *clientconfig.File, secrets map[string]string) *Draft {
	if bytes.Equal(before.Bytes(), after.Bytes()) {
		return nil
	}
	hider := hiderFor(secrets, before, after)
	return &Draft{
		ID:   draftID(after.Path, before.Bytes(), after.Bytes()),
		Diff: Diff{File: after.Path, Text: hider.Text(unified(after.Path, string(before.Bytes()), string(after.Bytes())))},
		file: after,
	}
}

func draftID(path string, before, after []byte) string {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(path), before, after} {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Write makes a drafted change. It returns [clientconfig.ErrChanged] if the file no
// longer holds what the draft was made from.
func (d *Doctor) Write(ctx context.Context, draft *Draft) (clientconfig.Change, error) {
	if d.Store == nil {
		return clientconfig.Change{}, fmt.Errorf("%w: there is no place for backups", clientconfig.ErrRefused)
	}
	return d.Store.Save(ctx, draft.file)
}

// Preview drafts what a fix would change in files, without trying it. There is
// none where the fix changes no file, or cannot be applied any more.
func (d *Doctor) Preview(c *Case, fix Fix) []*Draft {
	type change struct{ before, after *clientconfig.File }
	var order []string
	changed := make(map[string]change)
	for _, e := range fix.Edits {
		ch, ok := changed[e.File]
		if !ok {
			f := d.fileOf(c, e.File)
			if f == nil {
				return nil
			}
			ch = change{f, f}
			order = append(order, e.File)
		}
		after, err := e.apply(ch.after)
		if err != nil {
			return nil
		}
		ch.after = after
		changed[e.File] = ch
	}
	var drafts []*Draft
	for _, name := range order {
		if draft := NewDraft(changed[name].before, changed[name].after, nil); draft != nil {
			drafts = append(drafts, draft)
		}
	}
	return drafts
}

// fileOf is the file that a fix of a case changes: mostly the one the case is in.
func (d *Doctor) fileOf(c *Case, path string) *clientconfig.File {
	if c.file != nil && c.file.Path == path {
		return c.file
	}
	for _, f := range d.System.Find(clientsByID([]string{c.Client})...) {
		if f.Path == path {
			return f
		}
	}
	return nil
}

// Undoing shows what taking a change back would do. It cannot be written; that is
// what the Store's Restore is for.
func (d *Doctor) Undoing(id string) (*Draft, error) {
	if d.Store == nil {
		return nil, fmt.Errorf("%w: there are no backups", clientconfig.ErrRefused)
	}
	before, err := d.Store.Before(id)
	if err != nil {
		return nil, err
	}
	all, err := d.Store.History()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(c clientconfig.Change) bool { return c.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("there is no change %q", id)
	}
	now, err := os.ReadFile(all[i].Target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	draft := &Draft{ID: draftID(all[i].Path+"\x00"+id, now, before)}
	hider := secret.New()
	if c := clientconfig.ByID(all[i].Client); c != nil {
		hider = hiderFor(nil, clientconfig.Open(all[i].Target, c, d.System.Project, clientconfig.Place{Format: all[i].Format, Key: all[i].Key}))
	}
	draft.Diff = Diff{File: all[i].Path, Text: hider.Text(unified(all[i].Path, string(now), string(before)))}
	return draft, nil
}

// hiderFor knows what is secret in the entries of some files, so that it can be
// hidden in any text that quotes them.
func hiderFor(secrets map[string]string, files ...*clientconfig.File) *secret.Hider {
	h := secret.New()
	for name, value := range secrets {
		h.Know(name, value)
	}
	for _, f := range files {
		for _, s := range f.Servers {
			for _, pairs := range [][]clientconfig.Pair{s.Env, s.Headers, s.Other} {
				for _, p := range pairs {
					h.Add(p.Name.Text, p.Value.Text)
				}
			}
			h.Add("url", s.URL.Text)
			words := []string{s.Command.Text}
			for _, a := range s.Args {
				words = append(words, a.Text)
			}
			hideArguments(h, words)
		}
	}
	return h
}

// hideArguments teaches h the words of a command line that may not be shown whole.
func hideArguments(h *secret.Hider, words []string) {
	for i, shown := range secret.Args(words) {
		if shown == words[i] {
			continue
		}
		// What stands before the mark, such as "--token=", is no part of the secret.
		before, _, _ := strings.Cut(shown, secret.Mark)
		h.Know("argument", strings.TrimPrefix(words[i], before))
	}
}

// showEntry is an entry in the words of its client, with secrets hidden.
func showEntry(f *clientconfig.File, s *clientconfig.Server, secrets map[string]string) map[string]any {
	h := hiderFor(secrets, f)
	e := &f.Client.Entry
	entry := make(map[string]any)
	put := func(name string, v clientconfig.Value) {
		if name != "" && v.Text != "" {
			entry[name] = h.Text(v.Text)
		}
	}
	list := func(name string, vs []clientconfig.Value) {
		if name == "" || len(vs) == 0 {
			return
		}
		words := make([]string, len(vs))
		for i, v := range vs {
			words[i] = h.Text(v.Text)
		}
		entry[name] = words
	}
	pairs := func(name string, ps []clientconfig.Pair) {
		if name == "" || len(ps) == 0 {
			return
		}
		m := make(map[string]string, len(ps))
		for _, p := range ps {
			m[p.Name.Text] = showValue(h, p)
		}
		entry[name] = m
	}
	put(e.Type, s.Type)
	if e.CommandList && s.Command.Text != "" {
		list(e.Command, append([]clientconfig.Value{s.Command}, s.Args...))
	} else {
		put(e.Command, s.Command)
		list(e.Args, s.Args)
	}
	put(e.Cwd, s.Cwd)
	put(urlName(s), s.URL)
	pairs(e.Env, s.Env)
	list(e.EnvFrom, s.EnvFrom)
	pairs(e.Headers, s.Headers)
	pairs(e.HeadersFrom, s.HeadersFrom)
	return entry
}

// showValue shows the value of a variable or header. A short one that is named
// like a secret would slip through a search for it in a text.
func showValue(h *secret.Hider, p clientconfig.Pair) string {
	if text := secret.Args([]string{p.Name.Text + "=" + p.Value.Text})[0]; text != p.Name.Text+"="+p.Value.Text {
		return h.Text(strings.TrimPrefix(text, p.Name.Text+"="))
	}
	return h.Text(p.Value.Text)
}

func urlName(s *clientconfig.Server) string {
	if n := len(s.URL.Path); n > 0 {
		return s.URL.Path[n-1]
	}
	return "url"
}

// Entry is the entry of a case in the words of its client, with secrets hidden;
// nil for a file as a whole.
func (c *Case) Entry() map[string]any {
	if c.server == nil || c.file == nil {
		return nil
	}
	return showEntry(c.file, c.server, nil)
}

// unified is the change of a text as a unified diff.
func unified(name, before, after string) string {
	const around = 3 // lines
	text, err := udiff.ToUnified(name, name, before, udiff.Lines(before, after), around)
	if err != nil { // edits that were just found can be made
		panic(err)
	}
	return text
}
