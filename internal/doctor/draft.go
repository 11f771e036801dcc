package doctor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
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

	before, file *clientconfig.File
}

// NewDraft drafts the change from one File to another that was made from it. It is
// nil if they do not differ. secrets are values that must not be shown whatever
// they look like, by their names.
func NewDraft(before, after *clientconfig.File, secrets map[string]string) *Draft {
	if bytes.Equal(before.Bytes(), after.Bytes()) {
		return nil
	}
	draft := &Draft{
		ID:     draftID(after.Path, before.Bytes(), after.Bytes()),
		Diff:   hiddenDiff(hiderOf(secrets, before, after), after.Path, string(before.Bytes()), string(after.Bytes())),
		before: before, file: after,
	}
	draft.Diff.sayLink(before)
	return draft
}

func draftID(path string, before, after []byte) string {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(path), before, after} {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Write makes a drafted change. A file that was written to since, by its client or
// by another draft, is changed in the same places, if the entries that the draft
// changes are as they were; [clientconfig.ErrChanged] if not. Where somebody has made
// the very same change it returns [clientconfig.ErrNoChange].
func (d *Doctor) Write(ctx context.Context, draft *Draft) (clientconfig.Change, error) {
	if d.Store == nil {
		return clientconfig.Change{}, fmt.Errorf("%w: there is no place for backups", clientconfig.ErrRefused)
	}
	change, err := d.Store.Save(ctx, draft.file)
	if !errors.Is(err, clientconfig.ErrChanged) {
		return change, err
	}
	now := draft.file.Again()
	if bytes.Equal(now.Bytes(), draft.file.Bytes()) {
		return change, fmt.Errorf("%w in %s", clientconfig.ErrNoChange, now.Path)
	}
	for _, s := range draft.before.Servers {
		was, will := draft.before.Value(s.Path), draft.file.Value(s.Path)
		if !reflect.DeepEqual(was, will) && !reflect.DeepEqual(was, now.Value(s.Path)) {
			return change, err // it was thought through for another entry
		}
	}
	again, rerr := now.Replay(draft.before, draft.file)
	if rerr != nil {
		return change, rerr
	}
	return d.Store.Save(ctx, again)
}

// Preview drafts what a fix would change in files, without trying it. There is
// none where the fix changes no file, or cannot be applied any more.
func (d *Doctor) Preview(c *Case, fix Fix) []*Draft {
	if c.file == nil {
		return nil
	}
	w, err := newWorkspace(c.file).with(fix)
	if err != nil {
		return nil
	}
	return w.drafts()
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
	was, _, err := d.Store.Versions(id)
	if err != nil {
		return nil, err
	}
	client := clientconfig.ByID(all[i].Client)
	if client == nil {
		return nil, fmt.Errorf("there is no client %q any more", all[i].Client)
	}
	now := clientconfig.Open(all[i].Target, client, d.System.Project, clientconfig.Place{Format: all[i].Format, Key: all[i].Key})
	files := []*clientconfig.File{now}
	if was != nil {
		files = append(files, was)
	}
	draft := &Draft{ID: draftID(all[i].Path+"\x00"+id, now.Bytes(), before)}
	draft.Diff = hiddenDiff(hiderOf(nil, files...), all[i].Path, string(now.Bytes()), string(before))
	return draft, nil
}
