package doctor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// An approvalKey is what an approval of an entry is bound to: the entry with all its
// values, and the files that can be code in it. Hashes are keyed, see [Approvals].
type approvalKey struct {
	// hash is of it all.
	hash string
	// entry is the hash of the entry alone; base is that of the entry and the files
	// outside of the project, which is all that counts for somebody who trusts the
	// folder; code is that of everything but what a running server makes.
	entry, base, code string
	// parts are the files, those of a folder taken together.
	parts []keyPart
	// unbounded says why the files are too many to be covered; it is asked about every
	// time then. "" if they are not.
	unbounded string
	// envFiles are shown to the person.
	envFiles []envFile
}

// A keyPart is something that a key covers, by its name and by what stands for name and
// content.
type keyPart struct{ name, mark string }

// processKey is for a doctor who has no place to keep one.
var processKey = sync.OnceValue(newKey)

// approvalKey is what an approval of an entry is bound to. The folder counts as it is
// in the end: a file of the folder above holds for many projects, and the same relative
// path leads to another program in each. What the entry refers to in the user's own
// environment counts by its name: it may change, and is no part of the project.
func (d *Doctor) approvalKey(s *clientconfig.Server, f *clientconfig.File) approvalKey {
	return d.approvalKeyIn(nil, s, f)
}

// approvalKeyIn is the same as it was when a look began.
func (d *Doctor) approvalKeyIn(look *oneLook, s *clientconfig.Server, f *clientconfig.File) approvalKey {
	h := hasher(processKey())
	if d.Approvals != nil {
		h = hasher(d.Approvals.key())
	}
	what := struct {
		File, Transport, Command string
		Args                     []string
		Env                      [][2]string
		From                     []string
		EnvFile, Cwd, URL, Dir   string
		Headers, HeadersFrom     [][2]string
	}{File: s.File, Transport: string(s.Transport), Command: s.Command.Text, EnvFile: s.EnvFile.Text, Cwd: s.Cwd.Text, URL: s.URL.Text}
	for _, a := range s.Args {
		what.Args = append(what.Args, a.Text)
	}
	for _, v := range s.EnvFrom {
		what.From = append(what.From, v.Text)
	}
	slices.Sort(what.From)
	what.Env, what.Headers, what.HeadersFrom = sorted(s.Env), sorted(s.Headers), sorted(s.HeadersFrom)
	var c *cover
	if s.Command.Text != "" {
		c = d.cover(s, f, look)
		what.Dir = c.at.dir
	} else {
		c = &cover{}
	}
	outside, inside, made := c.parts(h)
	k := approvalKey{entry: h.sum(what), unbounded: c.unbounded, envFiles: c.envFiles}
	k.base = h.sum([]any{k.entry, outside})
	k.code = h.sum([]any{k.base, inside, c.unbounded})
	k.hash = h.sum([]any{k.code, made})
	for _, p := range slices.Concat(outside, inside, made) {
		k.parts = append(k.parts, keyPart{p[0], p[1][:16]})
	}
	return k
}

func sorted(pairs []clientconfig.Pair) [][2]string {
	var out [][2]string
	for _, p := range pairs {
		out = append(out, [2]string{p.Name.Text, p.Value.Text})
	}
	slices.SortFunc(out, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return out
}

// hasher makes hashes that say nothing to who does not know the key.
type hasher []byte

// sum is the hash of texts and lists of them.
func (h hasher) sum(what any) string {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err) // texts and lists of texts
	}
	mac := hmac.New(sha256.New, h)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}
