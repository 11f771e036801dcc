package doctor

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

// shapeFix makes a fix of an edit and completes it: the entries that it names are put
// into the client's form, all of them, and the whole file has to satisfy the client. There is no
// fix if that cannot be done, since the client may work as it is.
func (t *treatment) shapeFix(name string, class Class, does string, path clientconfig.Path, apply func(*clientconfig.File) (*clientconfig.File, []string, error)) []Fix {
	if t.file == nil {
		return nil
	}
	settled := func(f *clientconfig.File) (*clientconfig.File, bool, error) {
		g, names, err := apply(f)
		if err != nil {
			return nil, false, err
		}
		return g.Settle(func(name string) bool { return slices.Contains(names, name) })
	}
	whole, clear, err := settled(t.file)
	if err != nil {
		return nil
	}
	if !clear {
		class = Ask
	}
	if half, _, err := apply(t.file); err == nil && name != "convert_entry" && !bytes.Equal(half.Bytes(), whole.Bytes()) {
		does += fmt.Sprintf(", and write the rest as %s reads it", t.client.Name)
	}
	edit := t.editFile(path, func(f *clientconfig.File) (*clientconfig.File, error) {
		g, _, err := settled(f)
		return g, err
	})
	return []Fix{{Name: name, Class: class, Does: does, Edits: []Edit{edit}}}
}

// entryFix is a shapeFix of the case's entry alone.
func (t *treatment) entryFix(name string, class Class, does string, e Edit) []Fix {
	return t.shapeFix(name, class, does, e.Path, func(f *clientconfig.File) (*clientconfig.File, []string, error) {
		g, err := e.apply(f)
		return g, []string{t.c.Name}, err
	})
}

// convert writes the case's entry, or all for which the client refuses the file, in the
// form that the client reads.
func (t *treatment) convert() []Fix {
	does := fmt.Sprintf("write the entry %q as %s reads it", t.c.Name, t.client.Name)
	var path clientconfig.Path
	if p, ok := t.problem(); ok {
		path = p.Path
		if t.c.Name == "" {
			does = fmt.Sprintf("write the entries as %s reads them", t.client.Name)
		}
	}
	return t.shapeFix("convert_entry", Auto, does, path, func(f *clientconfig.File) (*clientconfig.File, []string, error) {
		return f, []string{t.c.Name}, nil
	})
}

// refusedFile is for a file that the client refuses because of an entry.
func refusedFile(_ context.Context, t *treatment) []Fix {
	p, _ := t.problem()
	byHand := never("by_hand", "", "correct %s: %s", t.where(), entryReason(t.client, p))
	if p.Kind == clientconfig.WrongName {
		byHand = never("by_hand", "", "correct %s: %s calls it %q", t.where(), t.client.Name, p.Want)
	}
	return orElse(t.convert(), byHand)
}

// orElse is what a person has to do if there is nothing else.
func orElse(fixes []Fix, byHand Fix) []Fix {
	if len(fixes) > 0 {
		return fixes
	}
	return []Fix{byHand}
}

// wrongKey puts servers under the key of the client. Beside others that it reads they are
// moved, about which somebody is asked: another client may read the file, too.
func wrongKey(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	byHand := never("by_hand", "", "put the servers under %q, in the form in which %s reads them", p.Want, t.client.Name)
	if !ok || strings.Contains(p.Want, ".") {
		return []Fix{byHand}
	}
	does, name, class := fmt.Sprintf("rename %q to %q, where %s looks for servers", p.Have, p.Want, t.client.Name), "rename_key", Auto
	if len(t.file.Servers) > 0 || len(p.Path) > 1 {
		does, name, class = fmt.Sprintf("move the servers from %q to %q, where %s looks for them", p.Have, p.Want, t.client.Name), "move_servers", Ask
	}
	return orElse(t.shapeFix(name, class, does, p.Path, func(f *clientconfig.File) (*clientconfig.File, []string, error) { return f.Gather(p.Path) }), byHand)
}

func noKey(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	byHand := never("by_hand", "", "put the servers under %q, in the form in which %s reads them", p.Want, t.client.Name)
	if !ok || strings.Contains(p.Want, ".") {
		return []Fix{byHand}
	}
	return orElse(t.shapeFix("wrap_key", Auto, fmt.Sprintf("put the servers under %q", p.Want), clientconfig.Path{p.Want}, func(f *clientconfig.File) (*clientconfig.File, []string, error) {
		g, err := f.Wrap(p.Want)
		return g, newServers(f, g), err
	}), byHand)
}

// newServers are the names of those that g has and f has not.
func newServers(f, g *clientconfig.File) (names []string) {
	if g == nil {
		return nil
	}
	for _, s := range g.Servers {
		if f.Server(s.Name.Text) == nil {
			names = append(names, s.Name.Text)
		}
	}
	return names
}

func doublyNested(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok {
		return nil
	}
	does := fmt.Sprintf("take the inner of the two keys %q away", p.Have)
	if len(p.Path) < 2 || p.Path[len(p.Path)-2] != p.Have {
		does = fmt.Sprintf("take the key %q away, which stands inside the one that %s reads", p.Have, t.client.Name)
	}
	return orElse(t.shapeFix("unnest", Auto, does, p.Path, func(f *clientconfig.File) (*clientconfig.File, []string, error) {
		g, err := f.Unnest(p.Path)
		return g, newServers(f, g), err
	}), never("by_hand", "", "%s, at %s", does, t.where()))
}

func wrongContainer(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok {
		return nil
	}
	does, name := "turn the list of servers into an object, each under its name", "list_to_object"
	if len(t.file.Places) > 0 && t.file.Places[0].List {
		does, name = "turn the object of servers into a list, each with its name", "object_to_list"
	}
	fixes := t.shapeFix(name, Ask, does, p.Path, func(f *clientconfig.File) (*clientconfig.File, []string, error) {
		g, err := f.ListToObject(p.Path)
		if err == nil {
			return g, newServers(f, g), nil
		}
		return f.Gather(p.Path)
	})
	return orElse(fixes, never("by_hand", "", "rewrite %s: %s", t.where(), p.Detail))
}

func wrongName(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok {
		return nil
	}
	if p.Want == "" {
		return []Fix{never("by_hand", "", "look up what %s calls %q, or remove it at %s", t.client.Name, p.Have, t.where())}
	}
	does := fmt.Sprintf("rename %q to %q, the name that %s knows", p.Have, p.Want, t.client.Name)
	var fixes []Fix
	if !strings.Contains(p.Want, ".") {
		fixes = t.entryFix("rename_field", Auto, does, t.rename(p.Path, p.Want))
	}
	if fixes == nil {
		fixes = t.convert()
	}
	return orElse(fixes, never("by_hand", "", "write %q as %s reads it, under %q, at %s", p.Have, t.client.Name, p.Want, t.where()))
}

func missingType(ctx context.Context, t *treatment) []Fix {
	return t.types(ctx, "add_type", "add")
}

func wrongType(ctx context.Context, t *treatment) []Fix {
	return t.types(ctx, "set_type", "write")
}

// types are the types that the entry may be meant to have: that of its transport,
// and for a URL the other one, too, since only trying tells.
func (t *treatment) types(ctx context.Context, name, verb string) []Fix {
	p, ok := t.problem()
	if !ok {
		return nil
	}
	e := &t.client.Entry
	var wanted []string
	if t.server != nil && t.server.URL.Path != nil {
		for _, transport := range t.transports(ctx) {
			if names := e.Types[transport]; len(names) > 0 {
				wanted = append(wanted, names[0])
			}
		}
	}
	if len(wanted) == 0 && p.Want != "" {
		wanted = []string{p.Want}
	}
	var fixes []Fix
	for _, typ := range wanted {
		edit := t.editServer(p.Path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
			if s.Type.Text != t.server.Type.Text {
				return nil, errOtherNow
			}
			return f.Set(under(s.Path, e.Type), typ)
		})
		fixes = append(fixes, t.entryFix(name, Auto, fmt.Sprintf("%s %q: %q", verb, e.Type, typ), edit)...)
	}
	if fixes == nil {
		fixes = t.convert()
	}
	if fixes == nil {
		fixes = []Fix{never("by_hand", "", "write the %s of the server at %s", e.Type, t.where())}
	}
	return fixes
}

// transports are those of a URL, the likeliest first.
func (t *treatment) transports(ctx context.Context) []clientconfig.Transport {
	likely := clientconfig.Unknown
	if t.c.saw != nil {
		likely = t.c.saw.Transport
	}
	if likely == clientconfig.Unknown && t.speaks != nil {
		likely = t.speaks(ctx)
	}
	switch {
	case likely != clientconfig.Unknown:
		return []clientconfig.Transport{likely}
	case t.server != nil && strings.Contains(strings.ToLower(t.server.Type.Text), "sse"):
		return []clientconfig.Transport{clientconfig.SSE, clientconfig.HTTP}
	}
	return []clientconfig.Transport{clientconfig.HTTP, clientconfig.SSE}
}

func argsAsString(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok {
		return nil
	}
	written, _ := t.file.Text(p.Path)
	words, clear, ok := clientconfig.SplitWords(written)
	if !ok {
		return []Fix{never("by_hand", "", "write %q as a list, each argument a text of its own", p.Path[len(p.Path)-1])}
	}
	class := Auto
	if !clear {
		class = Ask
	}
	edit := t.editServer(p.Path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if now, _ := f.Text(p.Path); now != written {
			return nil, errOtherNow
		}
		return f.Set(p.Path, words)
	})
	byHand := never("by_hand", "", "write %q as a list, each argument a text of its own", p.Path[len(p.Path)-1])
	return orElse(t.entryFix("split_args", class, fmt.Sprintf("write the arguments as a list of %d", len(words)), edit), byHand)
}

func commandHoldsArgs(_ context.Context, t *treatment) []Fix {
	if t.server == nil || t.fileExists(t.server.Command.Text) {
		return nil
	}
	words, _, ok := clientconfig.SplitWords(t.server.Command.Text)
	if !ok || len(words) < 2 {
		return []Fix{never("by_hand", "", "write the program alone as %q and its arguments as the list %q", t.client.Entry.Command, t.client.Entry.Args)}
	}
	return t.splitLine(words)
}

// splitLine writes the words of a command apart.
func (t *treatment) splitLine(words []string) []Fix {
	class := Auto
	if _, clear, _ := clientconfig.SplitWords(t.server.Command.Text); !clear {
		class = Ask
	}
	does := fmt.Sprintf("write %q as the command and the rest as its arguments", words[0])
	return t.fix("split_command", class, does, t.setLine(append(words, argvOf(t.server)[1:]...)...))
}

func noCommand(_ context.Context, t *treatment) []Fix {
	e := &t.client.Entry
	if len(e.URLs) == 0 {
		return []Fix{never("by_hand", "", "add %q with the program to %q at %s", e.Command, t.c.Name, t.where())}
	}
	return []Fix{never("by_hand", "", "add %q with the program, or %q with the address, to %q at %s", e.Command, e.URLs[0].Name, t.c.Name, t.where())}
}

func noName(_ context.Context, t *treatment) []Fix {
	return []Fix{never("by_hand", "", `add "name" to the entry at %s`, t.where())}
}

func commandAndURL(_ context.Context, t *treatment) []Fix {
	e := &t.client.Entry
	return []Fix{never("by_hand", "", "remove %q or the URL from %q at %s: it can be one server only", e.Command, t.c.Name, t.where())}
}

// noURLs puts a URL behind mcpmend run, for a client that starts commands alone.
func noURLs(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok || t.server == nil {
		return nil
	}
	byHand := never("by_hand", "", "%s only starts commands: put the URL behind one, as in mcpmend run URL", t.client.Name)
	url, ok := t.file.Text(p.Path)
	others := func(o clientconfig.Pair) bool {
		return slices.Contains([]string{"headers", "oauth", "auth"}, o.Name.Text)
	}
	if !ok || t.self == "" || slices.ContainsFunc(t.server.Other, others) {
		return []Fix{byHand}
	}
	edit := t.editServer(p.Path, func(f *clientconfig.File, s *clientconfig.Server) (*clientconfig.File, error) {
		if now, _ := f.Text(p.Path); now != url {
			return nil, errOtherNow
		}
		e := &s.Client.Entry
		f, err := f.Set(under(s.Path, e.Command), t.self)
		if err == nil {
			f, err = f.Set(under(s.Path, e.Args), []string{"run", url})
		}
		if err == nil {
			f, err = f.Remove(p.Path)
		}
		return f, err
	})
	return or(t.fix("wrap", Ask, "start mcpmend run with the URL, which "+t.client.Name+" can do", edit), byHand)
}

func wrongShape(_ context.Context, t *treatment) []Fix {
	p, _ := t.problem()
	return orElse(t.convert(), never("by_hand", "", "correct %s: %s", t.where(), entryReason(t.client, p)))
}

func shadowed(_ context.Context, t *treatment) []Fix {
	return []Fix{never("by_hand", "", "rename or remove %q at %s if you want this one: another entry of that name wins", t.c.Name, t.where())}
}
