package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpmend/mcpmend/internal/clientconfig"
)

func wrongKey(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok || strings.Contains(p.Want, ".") {
		return []Fix{never("by_hand", "", "put the servers under %q, where %s looks for them", p.Want, t.client.Name)}
	}
	does := fmt.Sprintf("rename %q to %q, where %s looks for servers", p.Have, p.Want, t.client.Name)
	return t.fix("rename_key", Auto, does, t.rename(p.Path, p.Want))
}

func noKey(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok || strings.Contains(p.Want, ".") {
		return []Fix{never("by_hand", "", "put the servers under %q, where %s looks for them", p.Want, t.client.Name)}
	}
	edit := t.editFile(clientconfig.Path{p.Want}, func(f *clientconfig.File) (*clientconfig.File, error) { return f.Wrap(p.Want) })
	return t.fix("wrap_key", Auto, fmt.Sprintf("put the servers under %q", p.Want), edit)
}

func doublyNested(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok {
		return nil
	}
	edit := t.editFile(p.Path, func(f *clientconfig.File) (*clientconfig.File, error) { return f.Unnest(p.Path) })
	if fixes := t.fix("unnest", Auto, fmt.Sprintf("take the inner of the two keys %q away", p.Have), edit); fixes != nil {
		return fixes
	}
	return []Fix{never("by_hand", "", "take the inner of the two keys %q away, at %s", p.Have, t.where())}
}

func wrongContainer(_ context.Context, t *treatment) []Fix {
	p, ok := t.problem()
	if !ok {
		return nil
	}
	edit := t.editFile(p.Path, func(f *clientconfig.File) (*clientconfig.File, error) { return f.ListToObject(p.Path) })
	if fixes := t.fix("list_to_object", Ask, "turn the list of servers into an object, each under its name", edit); fixes != nil {
		return fixes
	}
	return []Fix{never("by_hand", "", "rewrite %s: %s", t.where(), p.Detail)}
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
	return t.fix("rename_field", Auto, does, t.rename(p.Path, p.Want))
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
		fixes = append(fixes, t.fix(name, Auto, fmt.Sprintf("%s %q: %q", verb, e.Type, typ), edit)...)
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
	words, clear, ok := splitWords(written)
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
	return t.fix("split_args", class, fmt.Sprintf("write the arguments as a list of %d", len(words)), edit)
}

func commandHoldsArgs(_ context.Context, t *treatment) []Fix {
	if t.server == nil || t.fileExists(t.server.Command.Text) {
		return nil
	}
	words, _, ok := splitWords(t.server.Command.Text)
	if !ok || len(words) < 2 {
		return []Fix{never("by_hand", "", "write the program alone as %q and its arguments as the list %q", t.client.Entry.Command, t.client.Entry.Args)}
	}
	return t.splitLine(words)
}

// splitLine writes the words of a command apart.
func (t *treatment) splitLine(words []string) []Fix {
	class := Auto
	if _, clear, _ := splitWords(t.server.Command.Text); !clear {
		class = Ask
	}
	does := fmt.Sprintf("write %q as the command and the rest as its arguments", words[0])
	return t.fix("split_command", class, does, t.setLine(append(words, argvOf(t.server)[1:]...)...))
}

// splitWords splits a line as a shell would, as far as quotes go. It is clear if
// there is only one way to read it.
func splitWords(s string) (words []string, clear, ok bool) {
	clear = !strings.ContainsAny(s, "\"'\\$`*?~|&;<>()\n")
	var word strings.Builder
	inWord := false
	quote := rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, clear, quote == 0 && len(words) > 0
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
	return []Fix{never("by_hand", "", "correct %s: %s", t.where(), p.Detail)}
}

func shadowed(_ context.Context, t *treatment) []Fix {
	return []Fix{never("by_hand", "", "rename or remove %q at %s if you want this one: another entry of that name wins", t.c.Name, t.where())}
}
