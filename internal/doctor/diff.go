package doctor

import (
	"slices"

	"github.com/aymanbagabas/go-udiff"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
	"github.com/mcpmend/mcpmend/internal/secret"
)

// diffOf shows what changed in a file. Secrets are hidden before the texts are
// compared, so that none can be cut in two.
func diffOf(before, after *clientconfig.File) Diff {
	hide := hiderOf(before, after)
	old, now := hide.Text(string(before.Bytes())), hide.Text(string(after.Bytes()))
	return Diff{File: after.Path, Text: udiff.Unified(before.Path, after.Path, old, now)}
}

// hiderOf knows the secrets that stand in files.
func hiderOf(files ...*clientconfig.File) *secret.Hider {
	var known []string
	hide := func(h *secret.Hider) {
		for _, f := range files {
			f.EachText(func(path clientconfig.Path, text string) { h.Add(nameOf(path), text) })
		}
	}
	for _, f := range files {
		for _, s := range f.Servers {
			argv := argvOf(s)
			for i, shown := range secret.Args(slices.Clone(argv)) {
				if shown != argv[i] && i > 0 {
					known = append(known, argv[i])
				}
			}
		}
	}
	h := secret.New(known...)
	hide(h)
	return h
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

// entryShown is an entry with its secrets hidden.
func entryShown(f *clientconfig.File, name string) any {
	s := f.Server(name)
	if s == nil {
		return nil
	}
	hide := hiderOf(f)
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
			return hide.Text(v)
		}
		return v
	}
	return shown("", f.Value(s.Path))
}
