package doctor

import (
	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// DiffOf is the change of a file as a unified diff that may be shown: what is
// secret in either version is hidden. A nil File is one that is not there. Text is
// "" if there is no difference.
func DiffOf(before, after *clientconfig.File) Diff {
	var d Diff
	var old, now string
	hider := secret.New()
	if before != nil {
		d.File, old = before.Path, string(before.Bytes())
		know(hider, before)
	}
	if after != nil {
		d.File, now = after.Path, string(after.Bytes())
		know(hider, after)
	}
	const context = 3
	text, err := udiff.ToUnified(d.File, d.File, old, udiff.Lines(old, now), context)
	if err != nil {
		panic(err) // the edits were made from this very text
	}
	// It is hidden in the whole and not line by line: a flag and its value may stand
	// on two lines.
	d.Text = hider.Text(text)
	return d
}

// know tells a hider what is secret in a file.
func know(h *secret.Hider, f *clientconfig.File) {
	for _, s := range f.Servers {
		argv := argvOf(s)
		for i, shown := range secret.Args(argv) {
			if shown == secret.Mark {
				h.Know("hidden", argv[i])
			}
		}
		for _, p := range append(s.Env, s.Headers...) {
			h.Add(p.Name.Text, p.Value.Text)
		}
		h.Add("url", s.URL.Text)
	}
}
